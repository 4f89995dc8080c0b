//! The point sets of an engine, and who searches whom.

use crate::SetReport;
use nearfield_cpu::{NeighborLists, PairOfSets};
use nearfield_grid::Grid;
use std::{fmt, sync::OnceLock};

/// Names a point set of an engine; sets are numbered from 0 in the order added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSetId(pub(crate) usize);

impl PointSetId {
    /// The set's number.
    pub fn index(self) -> usize {
        self.0
    }
}

impl fmt::Display for PointSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point set sorted by cell.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) grid: Grid,
    /// Sorted place of every point, made when first asked for.
    pub(crate) places: OnceLock<Vec<u32>>,
}

/// Who searches whom, and the lists of it.
#[derive(Debug)]
pub(crate) struct SearchPair {
    pub(crate) active: bool,
    /// Whether the lists are those of the sets as they are.
    pub(crate) current: bool,
    pub(crate) lists: NeighborLists,
}

impl SearchPair {
    pub(crate) fn active() -> Self {
        Self {
            active: true,
            current: false,
            lists: NeighborLists::default(),
        }
    }
}

impl Set {
    pub(crate) fn report(&self) -> SetReport {
        SetReport {
            points: self.grid.points().len(),
            cells: self.grid.table_len(),
            table: self.grid.table_kind(),
            bytes: self.grid.bytes() + self.places_bytes(),
        }
    }

    /// Bytes of the sorted places.
    pub(crate) fn places_bytes(&self) -> usize {
        let places = self.places.get();
        places.map_or(0, |places| size_of::<u32>() * places.capacity())
    }
}

/// The grids of a pair of sets, for the lane.
pub(crate) fn pair_of_sets(sets: &[Set], targets: usize, sources: usize) -> PairOfSets<'_> {
    PairOfSets {
        targets: &sets[targets].grid,
        sources: &sets[sources].grid,
        same_set: targets == sources,
    }
}
