//! The sets of lists with a skin, all in the precision of their engine.

use super::tracked::{Path, Tracked};
use crate::{Error, Positions, Precision};
use nearfield_grid::{Bounds, Domain};

/// Every set by number; numbers handed in are those of sets.
#[derive(Debug)]
pub(super) enum Sets {
    Single(Vec<Tracked<f32>>),
    Double(Vec<Tracked<f64>>),
}

impl Sets {
    /// No sets yet.
    pub(super) fn new(precision: Precision) -> Self {
        match precision {
            Precision::Single => Self::Single(Vec::new()),
            Precision::Double => Self::Double(Vec::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(sets) => sets.len(),
            Self::Double(sets) => sets.len(),
        }
    }

    /// Adds a set of no points.
    pub(super) fn push(&mut self) {
        match self {
            Self::Single(sets) => sets.push(Tracked::default()),
            Self::Double(sets) => sets.push(Tracked::default()),
        }
    }

    /// Takes the last set away.
    pub(super) fn pop(&mut self) {
        match self {
            Self::Single(sets) => drop(sets.pop()),
            Self::Double(sets) => drop(sets.pop()),
        }
    }

    /// See [`Tracked::take`].
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

    /// See [`Tracked::was_built`].
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
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Single(sets) => sets.iter().map(Tracked::bytes).sum(),
            Self::Double(sets) => sets.iter().map(Tracked::bytes).sum(),
        }
    }
}
