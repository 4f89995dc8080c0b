//! The sets of lists with a skin, all in the precision of their engine.
//!
//! The precision is decided once, when the lists are made, so the loops over points have one type
//! and the branches stand here, one per call and none per point.
//!
//! **Invariant:** entry `k` is the set in slot `k` of the engine; a free slot has a set without
//! points.

use super::tracked::{Path, TrackedSet};
use crate::{Error, Positions, Precision};
use nearfield_grid::{Bounds, Domain};

/// Every set by number; numbers handed in are those of sets.
#[derive(Debug)]
pub(super) enum Sets {
    Single(Vec<TrackedSet<f32>>),
    Double(Vec<TrackedSet<f64>>),
}

impl Sets {
    /// No sets yet.
    pub(super) fn new(precision: Precision) -> Self {
        match precision {
            Precision::Single => Self::Single(Vec::new()),
            Precision::Double => Self::Double(Vec::new()),
        }
    }

    /// Slots, free ones included.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(sets) => sets.len(),
            Self::Double(sets) => sets.len(),
        }
    }

    /// Makes a set one of no points; adds it if its number is the next.
    pub(super) fn reset(&mut self, set: usize) {
        fn reset<T: Default>(sets: &mut Vec<T>, set: usize) {
            match sets.get_mut(set) {
                Some(set) => *set = T::default(),
                None => sets.push(T::default()),
            }
        }
        match self {
            Self::Single(sets) => reset(sets, set),
            Self::Double(sets) => reset(sets, set),
        }
    }

    /// Takes the last sets away, until `len` are left.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Single(sets) => sets.truncate(len),
            Self::Double(sets) => sets.truncate(len),
        }
    }

    /// See [`TrackedSet::take`].
    pub(super) fn take(
        &mut self,
        set: usize,
        positions: Positions<'_>,
        bounds: Bounds,
        domain: &Domain,
    ) -> Result<(), Error> {
        match self {
            Self::Single(sets) => sets[set].take(positions, bounds, domain),
            Self::Double(sets) => sets[set].take(positions, bounds, domain),
        }
    }

    /// See [`TrackedSet::was_built`].
    pub(super) fn was_built(&mut self, set: usize) -> Result<(), Error> {
        match self {
            Self::Single(sets) => sets[set].was_built(),
            Self::Double(sets) => sets[set].was_built(),
        }
    }

    /// Positions of now.
    pub(super) fn now(&self, set: usize) -> Positions<'_> {
        match self {
            Self::Single(sets) => sets[set].now().into(),
            Self::Double(sets) => sets[set].now().into(),
        }
    }

    /// How far the points of a set have come.
    pub(super) fn path(&self, set: usize) -> &Path {
        match self {
            Self::Single(sets) => sets[set].path(),
            Self::Double(sets) => sets[set].path(),
        }
    }

    /// Bytes held.
    ///
    /// Both copies of every set.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Single(sets) => sets.iter().map(TrackedSet::bytes).sum(),
            Self::Double(sets) => sets.iter().map(TrackedSet::bytes).sum(),
        }
    }
}
