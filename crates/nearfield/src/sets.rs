//! The point sets of an engine, and who searches whom.

use crate::{Error, RadiusRule, SetReport, TableKind, lazy::LazyGrid, radii::PointRadii};
use nearfield_cpu::{CpuLane, NeighborLists, PairOfSets};
use nearfield_gpu::HostBuffer;
use nearfield_grid::{Grid, Lattice, Permutation};
use std::{fmt, sync::OnceLock};

/// Names a point set of an engine; sets are numbered from 0 in the order added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSetId(pub(crate) usize);

impl PointSetId {
    /// The set with this number, counted from 0; engines refuse the names of sets they do not have
    /// ([`Error::UnknownPointSet`]).
    pub fn new(number: usize) -> Self {
        Self(number)
    }

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
    pub(crate) grid: LazyGrid,
    /// Memory for a copy of the positions that the GPU can read, while none is needed: page-locking it
    /// takes as long as sorting.
    pub(crate) spare_copy: Option<HostBuffer<f32>>,
    /// Counts the positions that the set has had.
    pub(crate) stamp: u64,
    /// Sorted place of every point, made when first asked for.
    pub(crate) places: OnceLock<Permutation>,
    /// Empty unless the engine's rule has radii of single points.
    pub(crate) radii: PointRadii,
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
    /// A set without points.
    pub(crate) fn new(lattice: Lattice) -> Self {
        Self {
            grid: Grid::new(lattice).into(),
            spare_copy: None,
            stamp: 0,
            places: OnceLock::new(),
            radii: PointRadii::default(),
        }
    }

    /// Bytes of copies of the positions.
    pub(crate) fn copy_bytes(&self) -> usize {
        let spare = self.spare_copy.as_deref().map_or(0, size_of_val);
        self.grid.copy_bytes() + spare
    }

    /// The grid has been built anew.
    pub(crate) fn was_sorted(&mut self, lane: &CpuLane) {
        self.places.take();
        self.stamp += 1;
        // Only grids that are made at once have radii of their own.
        if let LazyGrid::Built(grid) = &self.grid {
            self.radii.follow(grid, lane);
        }
    }

    pub(crate) fn report(&self) -> SetReport {
        SetReport {
            points: self.grid.len(),
            cells: self.grid.made().map_or(0, Grid::table_len),
            table: self.grid.made().map_or(TableKind::Dense, Grid::table_kind),
            bytes: self.grid.made().map_or(0, Grid::bytes)
                + self.grid.copy_bytes()
                + self.places_bytes()
                + self.radii.bytes(),
        }
    }

    /// The sorted place of every point of the set, whose grid is `grid`.
    pub(crate) fn places(&self, grid: &Grid) -> Result<&Permutation, nearfield_grid::Error> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let places = grid.permutation()?.inverse()?;
        Ok(self.places.get_or_init(|| places))
    }

    /// Bytes of the sorted places.
    pub(crate) fn places_bytes(&self) -> usize {
        let places = self.places.get();
        places.map_or(0, |places| size_of_val(places.order()))
    }
}

/// The grids of a pair of sets, for the lane, with the radii that count by the `rule`.
pub(crate) fn pair_of_sets<'a>(
    lane: &CpuLane,
    sets: &'a [Set],
    rule: RadiusRule,
    targets: usize,
    sources: usize,
) -> Result<PairOfSets<'a>, Error> {
    let grid = |set: usize| {
        let refuse = |source| Error::Positions {
            set: PointSetId(set),
            source,
        };
        sets[set].grid.get(lane).map_err(refuse)
    };
    let radii = |set: usize| sets[set].sorted_radii(PointSetId(set), rule);
    Ok(PairOfSets {
        targets: grid(targets)?,
        sources: grid(sources)?,
        same_set: targets == sources,
        radii: rule.choose(|| radii(targets), || radii(sources))?,
        share: None,
    })
}
