//! The slots of an engine, in which its point sets are, and the names of these sets.
//!
//! The slot of a removed set is used again, under a name that was not given before: memory follows
//! the number of sets there are, not of those there have been.
//!
//! A name is a slot, the generation of the set in it, and a stamp of the engine. So a name of a
//! removed set, or of another engine, is refused instead of naming some other set.
//!
//! **Invariant:** `slots` is as long as the engine's sets, and a slot's generation never falls.
//! `free` has the slots that can be used again, so neither looking up a name nor finding the first
//! free slot looks at the others.

use crate::{Error, ErrorKind, PointSetId, point_set_id::EngineStamp};
use std::collections::BTreeSet;

/// Number of sets that one engine can hold at a time.
///
/// A slot has 16 bits of a name's number.
const MAX_SETS: usize = 1 << 16;

/// A slot for a point set.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The name of the set in the slot, or of the last that was.
    id: PointSetId,
    /// False after a removal.
    used: bool,
}

/// The slots of an engine, and the names of the sets in them.
#[derive(Debug)]
pub(crate) struct Slots {
    engine: EngineStamp,
    slots: Vec<Slot>,
    /// The slots without a set whose generations are not used up.
    free: BTreeSet<usize>,
    /// Number of slots with a set.
    used: usize,
}

impl Slots {
    /// No slots yet, of a new engine.
    pub(crate) fn new() -> Self {
        Self {
            engine: EngineStamp::new(),
            slots: Vec::new(),
            free: BTreeSet::new(),
            used: 0,
        }
    }

    /// The name that the next set will have: in the first free slot, or in a new one.
    ///
    /// Changes nothing: a set that cannot be added leaves its name for the next. Slots whose
    /// generations are used up are passed over.
    ///
    /// # Errors
    /// [`ErrorKind::TooManyPointSets`].
    pub(crate) fn next(&self) -> Result<PointSetId, Error> {
        let first = self.free.first().map(|slot| self.slots[*slot].id);
        if let Some(id) = first.and_then(PointSetId::next_in_slot) {
            return Ok(id);
        }
        let slot = u16::try_from(self.slots.len())
            .map_err(|_| ErrorKind::TooManyPointSets { limit: MAX_SETS })?;
        Ok(PointSetId::from_number(slot.into(), self.engine))
    }

    /// Takes the slot of a name that [`next`](Self::next) gave.
    ///
    /// To be called once the set has its points.
    pub(crate) fn take(&mut self, id: PointSetId) {
        let taken = Slot { id, used: true };
        self.used += 1;
        self.free.remove(&id.slot());
        match self.slots.get_mut(id.slot()) {
            Some(slot) => *slot = taken,
            None => self.slots.push(taken),
        }
    }

    /// Frees the slot of a set.
    pub(crate) fn free(&mut self, id: PointSetId) {
        self.slots[id.slot()].used = false;
        self.used -= 1;
        if id.next_in_slot().is_some() {
            self.free.insert(id.slot());
        }
    }

    /// Number of sets.
    pub(crate) fn count(&self) -> usize {
        self.used
    }

    /// The names of all sets, by slot.
    pub(crate) fn used(&self) -> impl Iterator<Item = PointSetId> {
        let used = self.slots.iter().filter(|slot| slot.used);
        used.map(|slot| slot.id)
    }

    /// The name of the set in a slot, or of the last one that was there; of a slot behind the last,
    /// the name that a set which is being added there will have.
    pub(crate) fn id(&self, slot: usize) -> PointSetId {
        let first = || PointSetId::from_number(slot as u32, self.engine);
        self.slots.get(slot).map_or_else(first, |slot| slot.id)
    }

    /// The name of the set with this number.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::RemovedPointSet`].
    pub(crate) fn with_number(&self, number: u32) -> Result<PointSetId, Error> {
        let id = PointSetId::from_number(number, self.engine);
        self.check(id)?;
        Ok(id)
    }

    /// Refuses a name that is not one of this engine's sets.
    ///
    /// A name is of a removed set if its slot has had that generation: the set in the slot is gone,
    /// or another one is there now.
    ///
    /// # Errors
    /// [`ErrorKind::OtherEngine`], [`ErrorKind::UnknownPointSet`] and
    /// [`ErrorKind::RemovedPointSet`].
    pub(crate) fn check(&self, set: PointSetId) -> Result<(), Error> {
        if set.engine() != self.engine {
            return Err(ErrorKind::OtherEngine { set }.into());
        }
        match self.slots.get(set.slot()) {
            Some(slot) if slot.used && slot.id == set => Ok(()),
            Some(slot) if slot.id.generation() >= set.generation() => {
                Err(ErrorKind::RemovedPointSet { set }.into())
            }
            _ => {
                let sets = self.count();
                Err(ErrorKind::UnknownPointSet { set, sets }.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_under_another_number() {
        let mut slots = Slots::new();
        for number in 0..3 {
            let id = slots.next().unwrap();
            assert_eq!((id.number(), id.slot()), (number, number as usize));
            slots.take(id);
        }
        let removed = slots.with_number(1).unwrap();
        slots.free(removed);
        let kind = |error: Error| format!("{:?}", error.kind());
        assert!(kind(slots.check(removed).unwrap_err()).starts_with("RemovedPointSet"));
        let next = slots.next().unwrap();
        assert_eq!((next.number(), next.slot()), (65_537, 1));
        slots.take(next);
        assert!(kind(slots.check(removed).unwrap_err()).starts_with("RemovedPointSet"));
        assert!(kind(slots.with_number(3).unwrap_err()).starts_with("UnknownPointSet"));
        assert_eq!(
            slots.used().map(PointSetId::number).collect::<Vec<_>>(),
            [0, 65_537, 2]
        );
        assert!(kind(Slots::new().check(next).unwrap_err()).starts_with("OtherEngine"));
    }
}
