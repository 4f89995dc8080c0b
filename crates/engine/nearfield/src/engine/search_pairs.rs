//! Which pairs of sets search each other, and the lists of these pairs.
//!
//! An engine of 10,000 sets has 100 million pairs of sets, and a program may need no more of them
//! than there are sets. So a pair has a record only once it differs from all others: when lists
//! were found for it, or when it was switched by itself. Adding a set makes no record. A search
//! visits the records and, while pairs without a record are active, the pairs of sets that there
//! are. Both are linear in the number of active pairs.
//!
//! **Invariants.** A record is between two sets that are there: the records of a set are dropped
//! when it is removed. `rows` and `columns` name the same pairs as `records`, by ascending slot. A
//! pair is `current` only while neither of its sets has another stamp than when its lists were
//! written.

use crate::{PointSetId, error::MissingLists, slots::Slots};
use nearfield_cpu::NeighborLists;
use nearfield_grid::memory::{Shortage, make_room_for_one};
use std::collections::{HashMap, hash_map::Entry};

/// Name of the memory of records, for messages.
const RECORDS: &str = "records of pairs of sets";

/// Targets and sources of a pair, by slot.
pub(crate) type SlotPair = [u32; 2];

/// A pair of sets that search each other, and its lists.
#[derive(Debug)]
pub(crate) struct SearchPair {
    /// Whether `find_neighbors` writes lists for it.
    pub(crate) active: bool,
    /// Whether the lists are those of the sets as they are.
    pub(crate) current: bool,
    /// Why they are not, where they are not.
    missing: MissingLists,
    /// Outdated lists stay here for their memory, which the next search uses.
    pub(crate) lists: NeighborLists,
    /// Better memory for the next lists, such as a device can write to.
    spare: Option<Box<NeighborLists>>,
}

impl SearchPair {
    /// A pair that has no lists yet.
    fn new(active: bool) -> Self {
        Self {
            active,
            current: false,
            missing: MissingLists::NotFound,
            lists: NeighborLists::default(),
            spare: None,
        }
    }

    /// The lists, to be written anew.
    pub(crate) fn take_lists(&mut self) -> NeighborLists {
        let before = std::mem::take(&mut self.lists);
        self.spare.take().map_or(before, |spare| *spare)
    }

    /// The lists, if there were any, are no longer those of the sets as they are.
    ///
    /// The first reason counts: later changes find no current lists and leave it.
    pub(crate) fn outdate(&mut self, why: MissingLists) {
        if std::mem::take(&mut self.current) {
            self.missing = why;
        }
    }

    /// Switches the pair on or off; one that is switched off has no lists any longer.
    fn set_active(&mut self, active: bool) {
        self.active = active;
        if !active {
            self.outdate(MissingLists::NotFound);
        }
    }
}

/// All pairs of the sets of an engine.
#[derive(Debug)]
pub(crate) struct SearchPairs {
    /// Whether pairs without a record are active.
    others_active: bool,
    records: HashMap<SlotPair, SearchPair>,
    /// By slot of the targets, the sources of the records.
    rows: Vec<Vec<u32>>,
    /// By slot of the sources, the targets of the records.
    columns: Vec<Vec<u32>>,
}

impl SearchPairs {
    /// Pairs of no sets. Those to come are active.
    pub(crate) fn new() -> Self {
        Self {
            others_active: true,
            records: HashMap::new(),
            rows: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Makes room for as many slots, so that a set can be added.
    ///
    /// # Errors
    /// [`Shortage`]; nothing has changed then.
    pub(crate) fn make_room(&mut self, slots: usize) -> Result<(), Shortage> {
        for lines in [&mut self.rows, &mut self.columns] {
            while lines.len() < slots {
                make_room_for_one(lines, RECORDS)?;
                lines.push(Vec::new());
            }
        }
        Ok(())
    }

    /// The record of a pair, if it has one.
    pub(crate) fn get(&self, pair: SlotPair) -> Option<&SearchPair> {
        self.records.get(&pair)
    }

    /// Whether a pair is active.
    pub(crate) fn is_active(&self, pair: SlotPair) -> bool {
        self.get(pair)
            .map_or(self.others_active, |pair| pair.active)
    }

    /// Why a pair has no current lists.
    pub(crate) fn missing(&self, pair: SlotPair) -> MissingLists {
        if self.is_active(pair) {
            self.get(pair)
                .map_or(MissingLists::NotFound, |pair| pair.missing)
        } else {
            MissingLists::Inactive
        }
    }

    /// The record of a pair of sets that are there, made now if it has none.
    ///
    /// # Errors
    /// [`Shortage`]; the pair then has none.
    pub(crate) fn record(&mut self, pair: SlotPair) -> Result<&mut SearchPair, Shortage> {
        let [targets, sources] = pair;
        let count = self.records.len() + 1;
        (self.records.try_reserve(1)).map_err(|_| Shortage::of::<SearchPair>(count, RECORDS))?;
        let (row, column) = (
            &mut self.rows[targets as usize],
            &mut self.columns[sources as usize],
        );
        Ok(match self.records.entry(pair) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                make_room_for_one(row, RECORDS)?;
                make_room_for_one(column, RECORDS)?;
                insert(row, sources);
                insert(column, targets);
                new.insert(SearchPair::new(self.others_active))
            }
        })
    }

    /// Switches one pair on or off.
    ///
    /// # Errors
    /// [`Shortage`]; the pair is then as it was.
    pub(crate) fn set_active(&mut self, pair: SlotPair, active: bool) -> Result<(), Shortage> {
        if self.is_active(pair) != active {
            self.record(pair)?.set_active(active);
        }
        Ok(())
    }

    /// Switches all pairs on or off, also the pairs of sets to come.
    pub(crate) fn set_all_active(&mut self, active: bool) {
        self.others_active = active;
        for pair in self.records.values_mut() {
            pair.set_active(active);
        }
    }

    /// Lists that involve a set are no longer those of the sets as they are; they keep their
    /// memory.
    pub(crate) fn outdate(&mut self, set: PointSetId) {
        let slot = set.slot() as u32;
        let row = self.rows[set.slot()].iter().map(|other| [slot, *other]);
        let column = self.columns[set.slot()].iter().map(|other| [*other, slot]);
        for pair in row.chain(column) {
            if let Some(pair) = self.records.get_mut(&pair) {
                pair.outdate(MissingLists::Changed { set });
            }
        }
    }

    /// No lists are those of the sets as they are.
    pub(crate) fn outdate_all(&mut self, why: MissingLists) {
        for pair in self.records.values_mut() {
            pair.outdate(why);
        }
    }

    /// Drops the records of a set that is removed.
    pub(crate) fn forget(&mut self, slot: usize) {
        let set = slot as u32;
        for other in std::mem::take(&mut self.rows[slot]) {
            self.records.remove(&[set, other]);
            remove(&mut self.columns[other as usize], set);
        }
        for other in std::mem::take(&mut self.columns[slot]) {
            self.records.remove(&[other, set]);
            remove(&mut self.rows[other as usize], set);
        }
    }

    /// All records, in no order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &SearchPair> {
        self.records.values()
    }

    /// Memory for the next lists of a pair that has some.
    pub(crate) fn spare_lists(&mut self, pair: SlotPair, lists: NeighborLists) {
        if let Some(record) = self.records.get_mut(&pair) {
            record.spare = Some(Box::new(lists));
        }
    }

    /// The lists of all pairs, which have none then.
    pub(crate) fn take_lists(&mut self) -> Vec<(SlotPair, NeighborLists)> {
        let taken = self.records.iter_mut().map(|(pair, record)| {
            record.current = false;
            (*pair, record.take_lists())
        });
        taken.collect()
    }

    /// Bytes of all lists.
    pub(crate) fn list_bytes(&self) -> usize {
        self.records().map(|pair| pair.lists.bytes()).sum()
    }

    /// All records, to be changed, in no order.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut SearchPair> {
        self.records.values_mut()
    }

    /// The active pairs of the sets in `slots`, with their records: row by row, the sources of the
    /// first targets first.
    pub(crate) fn active<'a>(
        &'a self,
        slots: &'a Slots,
    ) -> impl Iterator<Item = (SlotPair, Option<&'a SearchPair>)> {
        let rows = slots.used().map(PointSetId::slot);
        rows.flat_map(move |targets| self.active_of(slots, targets))
    }

    /// The active pairs of one set with those that it searches.
    ///
    /// Records are looked up only where the row says that there is one, because most pairs of many
    /// sets have none.
    fn active_of<'a>(
        &'a self,
        slots: &'a Slots,
        targets: usize,
    ) -> impl Iterator<Item = (SlotPair, Option<&'a SearchPair>)> {
        let row = &self.rows[targets];
        let recorded = (!self.others_active).then(|| row.iter().copied());
        let all = self.others_active.then(|| slots.used());
        let all = all.into_iter().flatten().map(|set| set.slot() as u32);
        let mut left = row.iter().peekable();
        let sources = all.chain(recorded.into_iter().flatten());
        sources.filter_map(move |source| {
            let pair = [targets as u32, source];
            let known = left.next_if(|recorded| **recorded == source);
            let record = known.and_then(|_| self.records.get(&pair));
            let active = record.map_or(self.others_active, |record| record.active);
            active.then_some((pair, record))
        })
    }
}

/// Puts a slot among ascending ones, in room that was made.
fn insert(line: &mut Vec<u32>, slot: u32) {
    let at = line.partition_point(|other| *other < slot);
    line.insert(at, slot);
}

/// Takes a slot away from ascending ones.
fn remove(line: &mut Vec<u32>, slot: u32) {
    if let Ok(at) = line.binary_search(&slot) {
        line.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Slots with `sets` sets, and room for their pairs.
    fn sets(sets: usize) -> (Slots, SearchPairs) {
        let (mut slots, mut pairs) = (Slots::new(), SearchPairs::new());
        for _ in 0..sets {
            add(&mut slots, &mut pairs);
        }
        (slots, pairs)
    }

    fn add(slots: &mut Slots, pairs: &mut SearchPairs) {
        let id = slots.next().unwrap();
        pairs.make_room(id.slot() + 1).unwrap();
        slots.take(id);
    }

    #[test]
    fn a_search_visits_active_pairs_and_no_others() {
        let (slots, mut pairs) = sets(65_536);
        pairs.set_all_active(false);
        for k in 0..100 {
            pairs.set_active([(k * 631) % 65_536, k], true).unwrap();
        }
        // Switching off what is off makes no record.
        pairs.set_active([5, 6], false).unwrap();
        assert_eq!(pairs.records().count(), 100);
        assert_eq!(pairs.active(&slots).count(), 100);
        pairs.forget(0);
        assert_eq!(pairs.records().count(), 99);
        assert_eq!(pairs.active(&slots).count(), 99);
        let held: usize = pairs.rows.iter().chain(&pairs.columns).map(Vec::len).sum();
        assert_eq!(held, 2 * 99);
    }

    #[test]
    fn pairs_are_those_of_a_table_of_all() {
        let (mut slots, mut pairs) = sets(0);
        let (mut table, mut others) = (BTreeMap::new(), true);
        let mut number = 1u64;
        let mut draw = |below: usize| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (number >> 33) as usize % below
        };
        for _ in 0..3000 {
            let used: Vec<PointSetId> = slots.used().collect();
            let count = used.len();
            match draw(40) {
                0..3 if count < 9 => {
                    add(&mut slots, &mut pairs);
                    let new = slots.used().find(|id| !used.contains(id)).unwrap();
                    for other in slots.used() {
                        for (a, b) in [(new, other), (other, new)] {
                            table.insert([a.slot() as u32, b.slot() as u32], (others, false));
                        }
                    }
                }
                3 if count > 0 => {
                    let gone = used[draw(count)];
                    slots.free(gone);
                    pairs.forget(gone.slot());
                    let slot = gone.slot() as u32;
                    table.retain(|pair: &SlotPair, _| !pair.contains(&slot));
                }
                4 => {
                    others = draw(2) == 0;
                    pairs.set_all_active(others);
                    table.values_mut().for_each(|(active, current)| {
                        *active = others;
                        *current &= others;
                    });
                }
                5..20 if count > 0 => {
                    let pair = [0, 1].map(|_| used[draw(count)].slot() as u32);
                    let active = draw(2) == 0;
                    pairs.set_active(pair, active).unwrap();
                    let known = table.get_mut(&pair).unwrap();
                    *known = (active, known.1 && active);
                }
                20..24 if count > 0 => {
                    let set = used[draw(count)];
                    pairs.outdate(set);
                    for (pair, (_, current)) in &mut table {
                        *current &= !pair.contains(&(set.slot() as u32));
                    }
                }
                _ => {
                    // A search, which finds some of the lists.
                    let active: Vec<SlotPair> =
                        pairs.active(&slots).map(|(pair, _)| pair).collect();
                    for pair in active.into_iter().filter(|_| draw(3) == 0) {
                        pairs.record(pair).unwrap().current = true;
                        table.get_mut(&pair).unwrap().1 = true;
                    }
                }
            }
            let current = |pair: Option<&SearchPair>| pair.is_some_and(|pair| pair.current);
            let found: Vec<_> = (pairs.active(&slots))
                .map(|(pair, record)| (pair, current(record)))
                .collect();
            let expected: Vec<_> = (table.iter())
                .filter(|(_, (active, _))| *active)
                .map(|(pair, (_, current))| (*pair, *current))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
