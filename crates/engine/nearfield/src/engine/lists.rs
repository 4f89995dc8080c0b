//! Neighbour lists of an engine: written, handed out, and counts without lists.
//!
//! Lists of a pair of sets are kept until one of the sets changes, and their memory longer. Without
//! a memory limit they are written in one pass, into storage that grows when it proves too small.
//! With a limit the storage of that pass stays within it. Where the lists do not fit with the gaps
//! that one pass leaves, a first pass counts, so that the bytes are known, and refused, before
//! anything is allocated.
//!
//! **Invariant:** a pair of sets is `current` only while its lists are those of both sets as they
//! are; every change of a set or of the radius goes through `SearchPairs`.

use crate::{
    Device, Engine, Error, ErrorKind, ListOrder, NeighborLists, PointSetId,
    backend::{
        Fault, Job, JobKind,
        accelerator::{KernelWork, Numbers},
        limit::{LISTS, within},
        support::Feature,
        values::Values,
    },
    engine::{
        jobs::{Assigned, job},
        search_pairs::{SearchPairs, SlotPair},
        sets::pair_of_sets,
    },
    error::MissingLists,
};
use nearfield_cpu::{CpuBackend, PairOfSets};
use nearfield_grid::{
    memory::{collected, with_room, zeroed},
    parallel,
};
use nearfield_pairs::ListKind;
use rayon::prelude::*;
use std::time::Instant;

/// Targets that a worker visits at a time.
///
/// Fewer would cost more in handing out work than a callback over a short list takes.
const MIN_TARGETS: usize = 64;

impl Engine {
    /// Writes the neighbour lists of every active pair of sets; pairs whose lists are current are
    /// left as they are. [`neighbors`](Self::neighbors) hands them out.
    ///
    /// Lists hold every neighbour, as many as there are, and no point itself. Entries take four
    /// bytes, and storage is kept for the next step.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let row: Vec<[f32; 3]> = (0..5).map(|x| [x as f32, 0.0, 0.0]).collect();
    /// let mut engine = Engine::builder(1.0).list_order(ListOrder::Ascending).build()?;
    /// let points = engine.add_point_set(&row)?;
    /// engine.find_neighbors()?;
    /// let lists = engine.neighbors(points, points)?;
    /// assert_eq!(lists.of(0), &[1]);
    /// assert_eq!(lists.of(2), &[1, 3]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// With a memory limit that leaves room for gaps, about a tenth, lists are written as without
    /// one. Otherwise the lists of all sets together are counted before any is kept, which takes
    /// about twice as long. A GPU alone counts in any case, so a limit costs it little; the entries
    /// on the way take no more of its own memory than the limit.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`] with no list of this call kept, [`ErrorKind::NoRadii`], and
    /// [`ErrorKind::Cpu`] when memory is short; lists finished before are kept.
    #[doc(alias("neighbor_search", "neighbour_list", "cell_list"))]
    pub fn find_neighbors(&mut self) -> Result<(), Error> {
        self.usable()?;
        let _span = tracing::debug_span!("engine.find_neighbors").entered();
        self.in_place()?;
        let begin = Instant::now();
        match self.settings.memory_limit {
            None => self.find_unlimited()?,
            Some(limit) => self.find_within(limit)?,
        }
        self.record(|times| times.search = begin.elapsed());
        Ok(())
    }

    /// Writes all lists that are out of date, one pair of sets after the other. A failure leaves
    /// the pairs before it current, and its own without lists.
    ///
    /// Lists are taken out of their pair while they are written, as the search borrows the engine.
    fn find_unlimited(&mut self) -> Result<(), Error> {
        for pair in self.outdated()? {
            let mut lists = self.pairs.record(pair)?.take_lists();
            let found = self.find_pair(lists_of(pair), &mut lists);
            let pair = self.pairs.record(pair)?;
            pair.lists = lists;
            pair.current = found.is_ok();
            found?;
        }
        Ok(())
    }

    /// The active pairs of sets whose lists are out of date.
    fn outdated(&self) -> Result<Vec<SlotPair>, Error> {
        let active = self.pairs.active(&self.slots);
        let outdated = active.filter(|(_, record)| !record.is_some_and(|pair| pair.current));
        let pairs = outdated.map(|(pair, _)| pair);
        Ok(collected(pairs, "pairs of sets to search")?)
    }

    /// Writes the lists of one pair of sets, wherever that is done.
    ///
    /// Lists that a device had a part in are sorted here, by the CPU backend, where they are to
    /// ascend.
    pub(super) fn find_pair(&self, job: Job, lists: &mut NeighborLists) -> Result<(), Error> {
        let (kind, rule) = (self.settings.lists, self.settings.rule);
        let feature = match kind {
            ListKind::Full => Feature::Lists,
            ListKind::Half => Feature::HalfLists,
        };
        let pair = [job.targets, job.sources];
        match self.assign_pair(&feature, pair)? {
            Assigned::Cpu(reason) => {
                let of = pair_of_sets(&self.backend, &self.sets, rule, &self.filters, pair)?;
                self.backend.search(of, kind, self.settings.order, lists)?;
                self.was_done(job, Device::Cpu, reason);
            }
            Assigned::Device(device) => {
                self.ran(job, device.find(&self.input(), job, lists)?);
                if self.settings.order == ListOrder::Ascending {
                    tracing::debug_span!("cpu.sort_lists")
                        .in_scope(|| self.backend.install_for(lists.len(), || lists.sort()));
                }
            }
        }
        Ok(())
    }

    /// Writes all lists that are out of date, if everything stays within `limit`.
    ///
    /// Lists are written in one pass where the storage that this takes fits. Otherwise they are
    /// counted first.
    ///
    /// Two sums are taken over all pairs of sets: the bytes that the lists *need* without gaps and
    /// in fresh memory, by which the search is refused, and the bytes that would be *held* with the
    /// room kept from earlier steps. If only the second exceeds the limit, that room is given back
    /// before anything is written. Counting takes four bytes per target on top of the limit.
    fn find_within(&mut self, limit: u64) -> Result<(), Error> {
        // Whether the device that was asked for can keep a limit is said once for all lists.
        let reason = match self.assign(&Feature::LimitedLists)? {
            Assigned::Cpu(reason) => reason,
            Assigned::Device(_) => match self.find_within_on_device(limit)? {
                None => return Ok(()),
                Some(fault) => fault.to_string().into(),
            },
        };
        let pairs = self.outdated()?;
        if !self.find_at_once(&pairs, limit)? {
            self.find_measured(&pairs, limit)?;
        }
        for pair in pairs {
            self.was_done(lists_of(pair), Device::Cpu, reason.clone());
        }
        Ok(())
    }

    /// Counts the lists of `pairs`, which are those that are out of date, and writes them where
    /// everything stays within `limit`.
    fn find_measured(&mut self, pairs: &[SlotPair], limit: u64) -> Result<(), Error> {
        let mut measured = with_room(pairs.len(), COUNTED)?;
        let mut counted = with_room(pairs.len(), COUNTED)?;
        for &pair in pairs {
            let slots = pair.map(|slot| slot as usize);
            let (rule, kind) = (self.settings.rule, self.settings.lists);
            self.pairs.record(pair)?;
            let of = pair_of_sets(&self.backend, &self.sets, rule, &self.filters, slots)?;
            let lists = self.backend.measure(of, kind)?;
            counted.push((pair, lists.lengths().len(), lists.pairs()));
            measured.push((pair, lists));
        }
        if held_within(&self.pairs, limit, &counted)? > limit {
            // Room kept from earlier steps is given back where it is too much altogether.
            for pair in self.pairs.records_mut() {
                match pair.current {
                    true => pair.lists.shrink(),
                    false => pair.lists.release(),
                }
            }
        }
        for (pair, lists) in measured {
            let record = self.pairs.record(pair)?;
            lists.write(self.settings.order, &mut record.lists)?;
            record.current = true;
        }
        Ok(())
    }

    /// The same on the device of the engine. Returns its fault, if it failed before all lists were
    /// counted; the CPU backend then keeps the limit.
    ///
    /// Memory that a device has lent does not shrink. Where that kept from earlier steps is too
    /// much, all of it is given back, and the lists that were current are found again.
    fn find_within_on_device(&mut self, limit: u64) -> Result<Option<Fault>, Error> {
        let pairs = self.outdated()?;
        let mut counted = with_room(pairs.len(), COUNTED)?;
        for &pair in &pairs {
            self.pairs.record(pair)?;
            let (slots, job) = (pair.map(|slot| slot as usize), lists_of(pair));
            let Assigned::Device(device) = self.assign_pair(&Feature::LimitedLists, slots)? else {
                continue;
            };
            let input = self.input();
            match device.alone(&input, |device| device.measure(&input, job))? {
                Ok(found) => counted.push((pair, self.sets[slots[0]].grid.len(), found)),
                Err(fault) => return Ok(Some(fault)),
            }
        }
        if held_within(&self.pairs, limit, &counted)? > limit {
            for pair in self.pairs.records_mut() {
                pair.current = false;
                pair.lists.release();
            }
        }
        self.find_unlimited()?;
        Ok(None)
    }

    /// Writes the lists of all `pairs` in one pass each, into storage that together with all other
    /// lists stays within `limit`. False if they do not fit; the pairs then have no lists.
    ///
    /// Errors count as lists that do not fit: counting them first needs less memory, and finds
    /// every other error again.
    fn find_at_once(&mut self, pairs: &[SlotPair], limit: u64) -> Result<bool, Error> {
        let mut held = self.pairs.list_bytes();
        let mut found = true;
        for &pair in pairs {
            found = found
                && self
                    .find_one_within(pair, limit, &mut held)
                    .unwrap_or(false);
        }
        found &= held as u64 <= limit;
        for &pair in pairs {
            self.pairs.record(pair)?.current = found;
        }
        Ok(found)
    }

    /// Writes the lists of one pair in one pass; false if they do not fit into what the other lists
    /// leave of `limit`. All lists together hold `held` bytes.
    fn find_one_within(
        &mut self,
        pair: SlotPair,
        limit: u64,
        held: &mut usize,
    ) -> Result<bool, Error> {
        let mut lists = std::mem::take(&mut self.pairs.record(pair)?.lists);
        let others = *held - lists.bytes();
        let slots = pair.map(|slot| slot as usize);
        let rule = self.settings.rule;
        let found = pair_of_sets(&self.backend, &self.sets, rule, &self.filters, slots)
            .and_then(|of| self.search_within(of, self.settings.lists, limit, others, &mut lists));
        *held = others + lists.bytes();
        self.pairs.record(pair)?.lists = lists;
        found
    }

    /// Writes lists in one pass, if they and `others` bytes stay within `limit`.
    pub(super) fn search_within(
        &self,
        of: PairOfSets<'_>,
        kind: ListKind,
        limit: u64,
        others: usize,
        lists: &mut NeighborLists,
    ) -> Result<bool, Error> {
        let targets = of.targets.points().len();
        let beside = lists.bytes_after(targets, 0) - lists.entry_bytes() as u64;
        let Some(left) = limit.checked_sub(others as u64 + beside) else {
            return Ok(false);
        };
        let (order, max) = (self.settings.order, left / size_of::<u32>() as u64);
        Ok(self.backend.search_within(of, kind, order, max, lists)?)
    }

    /// Lists written by the last [`find_neighbors`](Self::find_neighbors): for every point of
    /// `targets`, the indices of its neighbours in `sources`. Costs nothing: the lists are borrowed
    /// where they lie.
    ///
    /// ```
    /// use nearfield::{error::MissingLists, prelude::*};
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let early = engine.neighbors(points, points).unwrap_err();
    /// let ErrorKind::NoLists { why, .. } = early.kind() else { panic!("{early}") };
    /// assert_eq!(*why, MissingLists::NotFound);
    /// engine.find_neighbors()?;
    /// for (i, neighbors) in engine.neighbors(points, points)?.iter().enumerate() {
    ///     println!("{i} is near {neighbors:?}");
    /// }
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// They stay valid until either set or the radius changes; a failed search of another pair of
    /// sets leaves them.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] when the pair is inactive or a set was updated since, and
    /// [`ErrorKind::UnknownPointSet`].
    pub fn neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<&NeighborLists, Error> {
        let pair = self.pair(targets, sources)?;
        match self.pairs.get(pair) {
            Some(record) if record.current => Ok(&record.lists),
            _ => Err(ErrorKind::NoLists {
                targets,
                sources,
                why: self.pairs.missing(pair),
            }
            .into()),
        }
    }

    /// Hands over the lists that the last [`find_neighbors`](Self::find_neighbors) wrote; the
    /// engine goes on with the memory of `spare`, such as lists taken in an earlier step and done
    /// with. The pair then has no lists until they are found again.
    ///
    /// A program that works on lists while the engine finds the next ones takes turns with two of
    /// them, and nothing is copied:
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// let mut lists = NeighborLists::default();
    /// for _step in 0..3 {
    ///     engine.find_neighbors()?;
    ///     lists = engine.take_neighbors(points, points, lists)?;
    ///     assert_eq!(lists.pairs(), 2);
    /// }
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// The lists taken are the caller's and are not outdated by later updates.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors); `spare` is dropped.
    pub fn take_neighbors(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        spare: NeighborLists,
    ) -> Result<NeighborLists, Error> {
        self.neighbors(targets, sources)?;
        let pair = self.pair(targets, sources)?;
        let pair = self.pairs.record(pair)?;
        pair.outdate(MissingLists::NotFound);
        Ok(std::mem::replace(&mut pair.lists, spare))
    }

    /// Calls `visit` for every point of `targets` with its index, its neighbours in `sources` and
    /// its element of `values`, which it may change. Points are shared out among the engine's
    /// workers. Every point has an element of its own, so the values do not depend on the number of
    /// threads.
    ///
    /// Neighbours are those of the [lists](Self::neighbors) that
    /// [`find_neighbors`](Self::find_neighbors) wrote, on whichever device; in half lists a pair of
    /// points stands in the list of one of them.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let positions = [[0.0f32; 3], [0.5, 0.0, 0.0], [0.0, 0.9, 0.0]];
    /// let mut engine = Engine::builder(0.6).build()?;
    /// let points = engine.add_point_set(&positions)?;
    /// engine.find_neighbors()?;
    /// let mut lowest = [0.0f32; 3];
    /// engine.map_targets(points, points, &mut lowest, |i, neighbors, lowest| {
    ///     let near = neighbors.iter().map(|&j| positions[j as usize][0]);
    ///     *lowest = near.fold(positions[i][0], f32::min);
    /// })?;
    /// assert_eq!(lowest, [0.0, 0.0, 0.0]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A worker takes at least 64 targets at a time. `visit` is called in any order, from several
    /// threads at a time.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] saying why there are none, [`ErrorKind::UnknownPointSet`], and
    /// [`ErrorKind::Cpu`] when there is not one value per target; nothing is visited then.
    pub fn map_targets<T: Send>(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        values: &mut [T],
        visit: impl Fn(usize, &[u32], &mut T) + Sync,
    ) -> Result<(), Error> {
        let lists = self.neighbors(targets, sources)?;
        let (found, expected) = (values.len(), lists.len());
        if found != expected {
            let wrong = nearfield_cpu::ErrorKind::OutputLength { found, expected };
            return Err(nearfield_cpu::Error::from(wrong).into());
        }
        let visit = |(target, value): (usize, &mut T)| visit(target, lists.of(target), value);
        self.backend.start()?;
        self.backend.install(|| {
            if parallel::is_shared() {
                let values = values.par_iter_mut().enumerate();
                values.with_min_len(MIN_TARGETS).for_each(visit);
            } else {
                values.iter_mut().enumerate().for_each(visit);
            }
        });
        Ok(())
    }

    /// Number of neighbours in `sources` of every point of `targets`, without storing lists; in the
    /// caller's order. Faster than a search, and takes no memory but the counts.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(0.5).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.25, 0.0, 0.0], [9.0, 0.0, 0.0]])?;
    /// assert_eq!(engine.count_neighbors(points, points)?, [1, 1, 0]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A GPU does it where the engine has one. Half lists do not matter here: every neighbour of a
    /// target is counted.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::NoRadii`].
    pub fn count_neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<Vec<u32>, Error> {
        let (t, s) = (targets.slot(), sources.slot());
        let _span = tracing::debug_span!("engine.count", targets = t, sources = s).entered();
        self.pair(targets, sources)?;
        let begin = Instant::now();
        self.in_place()?;
        let mut counts = zeroed(self.points(targets)?, "counts of neighbours")?;
        let job = job(JobKind::Counts, targets, sources);
        match self.assign_pair(&Feature::Counts, [t, s])? {
            Assigned::Cpu(reason) => {
                self.backend
                    .count(self.pair_of_sets(targets, sources)?, &mut counts)?;
                self.was_done(job, Device::Cpu, reason);
            }
            Assigned::Device(device) => {
                let instead = device.evaluate(&self.input(), job, &Counting, &mut counts)?;
                self.ran(job, instead);
            }
        }
        self.record(|times| times.traverse = begin.elapsed());
        Ok(counts)
    }
}

/// The job that writes the lists of a pair of sets.
fn lists_of(pair: SlotPair) -> Job {
    let [targets, sources] = pair.map(|slot| slot as usize);
    Job {
        kind: JobKind::Lists,
        targets,
        sources,
    }
}

/// Name of the memory of counts, in messages.
const COUNTED: &str = "counted lists";

/// Refuses lists that with those that are current exceed `limit`: of every pair of sets in
/// `counted` the numbers of its targets and of their neighbours. Returns the bytes that will be
/// held, with the room kept from earlier steps.
fn held_within(
    pairs: &SearchPairs,
    limit: u64,
    counted: &[(SlotPair, usize, u64)],
) -> Result<u64, Error> {
    let (mut needed, mut held) = (0, 0);
    let mut add = |lists: &NeighborLists, targets: usize, pairs: u64| {
        needed += NeighborLists::default().bytes_after(targets, pairs);
        held += lists.bytes_after(targets, pairs);
    };
    for record in pairs.records() {
        // Those of outdated pairs were counted, and inactive ones have no lists.
        match record.current {
            true => add(&record.lists, record.lists.len(), record.lists.pairs()),
            false if record.active => {}
            false => add(&record.lists, 0, 0),
        }
    }
    for &(pair, targets, found) in counted {
        let none = NeighborLists::default();
        let lists = pairs.get(pair).map_or(&none, |record| &record.lists);
        add(lists, targets, found);
    }
    within(limit, LISTS, needed)?;
    Ok(held)
}

/// Counts of neighbours, as a job that two backends share. A device writes them as the bits of
/// `f32`, because that is what all of its values are copied as.
struct Counting;

impl Numbers for Counting {
    fn compute(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        numbers: &mut [f32],
    ) -> Result<(), Error> {
        Ok(cpu.count(of, bytemuck::cast_slice_mut(numbers))?)
    }
}

impl Values for Counting {
    type Value = u32;

    fn width(&self) -> usize {
        1
    }

    fn kernel(&self) -> Option<&KernelWork<'_>> {
        None
    }

    fn combines(&self) -> bool {
        false
    }

    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        counts: &mut [u32],
    ) -> Result<(), Error> {
        Ok(cpu.count(of, counts)?)
    }

    fn put(&self, place: &mut u32, numbers: &[f32]) {
        *place = numbers[0].to_bits();
    }
}
