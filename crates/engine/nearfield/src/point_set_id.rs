//! Names of point sets, which remember the engine that gave them.
//!
//! An engine keeps its sets in slots and uses the slot of a removed set again. The name of a set
//! holds its slot, how often the slot had been used before, and a stamp of the engine, so a name
//! that another engine gave, or that names a removed set, is refused instead of naming some other
//! set.
//!
//! **Invariant:** no two sets of an engine ever have equal names: slot and generation together are
//! given once. A slot whose 2¹⁶ generations are used up is left empty. Names of different engines
//! differ by the stamp, until 2³² engines have been made in a process.

use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering},
};

/// Bits of a number that hold the slot; the bits above count how often the slot was used before.
const SLOT_BITS: u32 = 16;

/// Tells engines of a process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EngineStamp(u32);

impl EngineStamp {
    /// A stamp that no engine has had, until 2³² engines have been made.
    pub(crate) fn new() -> Self {
        // Relaxed suffices: stamps must differ, and nothing else is published by them.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Names a point set of one engine. Other engines refuse it, and so does its own once the set is
/// removed.
///
/// ```
/// use nearfield::prelude::*;
/// let mut engine = Engine::builder(1.0).build()?;
/// let mut other = Engine::builder(1.0).build()?;
/// let fluid: PointSetId = engine.add_point_set(&[[0.0f32; 3]])?;
/// assert_eq!((fluid.number(), fluid.to_string()), (0, "0".to_owned()));
/// other.add_point_set(&[[0.0f32; 3]])?;
/// assert!(matches!(other.points(fluid).unwrap_err().kind(), ErrorKind::OtherEngine { .. }));
/// engine.remove_point_set(fluid)?;
/// assert!(matches!(engine.points(fluid).unwrap_err().kind(), ErrorKind::RemovedPointSet { .. }));
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSetId {
    slot: u16,
    /// How often the slot had been used before.
    generation: u16,
    engine: EngineStamp,
}

impl PointSetId {
    /// The set's number: 0, 1, 2, … in the order in which sets are added. A set that is added after
    /// another one was removed takes over its place and gets a number of 65,536 or more, which the
    /// engine has not given before. For programs in which only numbers can name sets; the engine's
    /// `point_set` turns a number into a name again.
    pub fn number(self) -> u32 {
        u32::from(self.generation) << SLOT_BITS | u32::from(self.slot)
    }

    /// Where the engine has the set.
    pub(crate) fn slot(self) -> usize {
        self.slot.into()
    }

    /// The engine that gave the name.
    pub(crate) fn engine(self) -> EngineStamp {
        self.engine
    }

    /// How often the slot had been used before.
    pub(crate) fn generation(self) -> u16 {
        self.generation
    }

    /// The name of the next set in the same slot; none where numbers have run out.
    pub(crate) fn next_in_slot(self) -> Option<Self> {
        let generation = self.generation.checked_add(1)?;
        Some(Self { generation, ..self })
    }

    /// The name that `engine` gives to a number.
    ///
    /// Any number has a name; whether there is such a set is for `Slots::check` to say.
    pub(crate) fn from_number(number: u32, engine: EngineStamp) -> Self {
        Self {
            slot: number as u16,
            generation: (number >> SLOT_BITS) as u16,
            engine,
        }
    }
}

/// The [number](PointSetId::number).
impl fmt::Display for PointSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}
