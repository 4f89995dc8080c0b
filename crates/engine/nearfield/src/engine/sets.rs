//! The point sets of an engine.
//!
//! A set is its sorted points and whatever is made of them on demand: the table of places, sorted
//! radii, a copy on a wider lattice for queries. All of these are forgotten when the points are
//! sorted anew ([`Set::was_sorted`]), which is also when its stamp is counted up. Devices and plans
//! compare stamps to know whether they have the positions of now.
//!
//! **Invariant:** while its stamp stays the same, a set has the same points in the same order.

use crate::{
    Error, ErrorKind, PointSetId, RadiusRule,
    backend::{DataStamps, HostMemory, lazy::LazyGrid},
    engine::{
        point_data::{EXCLUSIONS, EngineFilters, Missing, PointData, TARGETS},
        point_radii::{PointRadii, places_in},
    },
    own_radii::OwnRadii,
    report::{SetReport, TableKind},
};
use nearfield_cpu::{CpuBackend, PairFilter, PairOfSets, SortedRadii};
use nearfield_grid::{Grid, Lattice, Permutation, Radii};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Copies of the positions that take turns.
const SPARES: usize = 2;

/// A point set sorted by cell.
#[derive(Debug)]
pub(crate) struct Set {
    /// The name of the set, or of the last one in this slot.
    pub(crate) id: PointSetId,
    /// Sorted on the host, or a copy of the positions that a device has sorted.
    pub(crate) grid: LazyGrid,
    /// Memory for up to [`SPARES`] copies of the positions that the GPU can read, while they are
    /// not needed: page-locking it takes as long as sorting.
    pub(crate) spare_copies: Vec<HostMemory>,
    /// Counts the positions that the set has had.
    ///
    /// Moving to another lattice counts too, as sorted places change with it.
    pub(crate) stamp: u64,
    /// Sorted place of every point, made when first asked for.
    ///
    /// Four bytes per point.
    pub(crate) places: OnceLock<Permutation>,
    /// Empty unless the engine's rule has radii of single points.
    pub(crate) radii: PointRadii,
    /// What filters need of the points.
    pub(crate) data: PointData,
    /// The points once more, on the lattice of a query that reaches beyond that of the engine.
    ///
    /// One copy is kept, for the lattice of the last such query. It is shared, so a thread that
    /// replaces it does not take it away from a query that still reads it.
    wide: Mutex<Option<Arc<WideSet>>>,
    /// Why the set is on another lattice than the engine: memory was short when it was to be moved,
    /// and when it was to be moved back.
    pub(crate) astray: Option<nearfield_grid::Error>,
}

/// A set on a wider lattice than the engine's, for queries.
#[derive(Debug)]
pub(crate) struct WideSet {
    pub(crate) grid: Grid,
    pub(crate) radii: SortedRadii,
}

impl Set {
    /// A set without points.
    ///
    /// Allocates nothing for points.
    pub(crate) fn new(lattice: Lattice, id: PointSetId) -> Self {
        Self {
            id,
            grid: Grid::new(lattice).into(),
            spare_copies: Vec::new(),
            stamp: 0,
            places: OnceLock::new(),
            radii: PointRadii::default(),
            data: PointData::default(),
            wide: Mutex::default(),
            astray: None,
        }
    }

    /// The set on `lattice`, made by `make` unless the last query was on the same one. Two threads
    /// that come at once both make it, to the same end: nothing is locked while they do.
    pub(crate) fn wide(
        &self,
        lattice: &Lattice,
        make: impl FnOnce() -> Result<WideSet, Error>,
    ) -> Result<Arc<WideSet>, Error> {
        let kept = || self.wide.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wide) = kept()
            .as_ref()
            .filter(|wide| wide.grid.lattice() == lattice)
        {
            return Ok(wide.clone());
        }
        let made = Arc::new(make()?);
        *kept() = Some(made.clone());
        Ok(made)
    }

    /// The points or their radii have changed: a copy of them is of no use any longer.
    pub(crate) fn forget_wide(&mut self) {
        let wide = self.wide.get_mut().unwrap_or_else(PoisonError::into_inner);
        *wide = None;
    }

    /// Bytes of the copy for queries.
    pub(crate) fn wide_bytes(&self) -> usize {
        let wide = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
        wide.as_ref()
            .map_or(0, |wide| wide.grid.bytes() + wide.radii.bytes())
    }

    /// Refuses a set that is on another lattice than the engine.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] with the shortage that kept the set from being moved back.
    pub(crate) fn in_place(&self) -> Result<(), Error> {
        match &self.astray {
            None => Ok(()),
            Some(source) => Err(self.refusal(source.clone())),
        }
    }

    /// Bytes of copies of the positions.
    pub(crate) fn copy_bytes(&self) -> usize {
        let spare: usize = self
            .spare_copies
            .iter()
            .map(|copy| size_of_val(&**copy))
            .sum();
        self.grid.copy_bytes() + spare
    }

    /// Keeps memory for the next copy, unless there is enough.
    pub(crate) fn keep_spare(&mut self, copy: Option<HostMemory>) {
        if self.spare_copies.len() < SPARES {
            self.spare_copies.extend(copy);
        }
    }

    /// The grid has been built anew.
    ///
    /// To be called after every change of the grid, whether it succeeded or was undone.
    pub(crate) fn was_sorted(&mut self, backend: &CpuBackend) {
        self.places.take();
        self.forget_wide();
        self.astray = None;
        self.stamp += 1;
        self.data.follow(self.grid.len());
        self.follow_radii(backend);
    }

    /// Radii follow points that were sorted anew, or that a device has sorted alone.
    fn follow_radii(&mut self, backend: &CpuBackend) {
        match &self.grid {
            LazyGrid::Built(grid) => self.radii.follow(grid, backend),
            LazyGrid::Deferred(_) => self.radii.follow_later(self.grid.len()),
        }
    }

    /// A set that only a device has sorted has no table on the host: it reports 0 cells, and its
    /// copy of the positions as bytes.
    pub(crate) fn report(&self) -> SetReport {
        SetReport {
            points: self.grid.len(),
            cells: self.grid.made().map_or(0, Grid::table_len),
            table: self.grid.made().map_or(TableKind::Dense, Grid::table_kind),
            bytes: self.grid.made().map_or(0, Grid::bytes)
                + self.grid.copy_bytes()
                + self.places_bytes()
                + self.wide_bytes()
                + self.radii.bytes()
                + self.data.bytes(),
        }
    }

    /// That the points cannot be sorted.
    fn refusal(&self, source: nearfield_grid::Error) -> Error {
        let set = self.id;
        ErrorKind::Positions { set, source }.into()
    }

    /// The points as the CPU pool searches them by the `rule`: sorted by their radii first, where
    /// that is faster, and else by cell alone.
    ///
    /// # Errors
    /// [`ErrorKind::Positions`] for a set that cannot be sorted, and those of memory.
    fn searched(&self, rule: RadiusRule, backend: &CpuBackend) -> Result<&Grid, Error> {
        self.in_place()?;
        let grid = (self.grid.get(backend)).map_err(|source| self.refusal(source))?;
        let by_radii = match rule {
            RadiusRule::Uniform => None,
            _ => self.radii.by_radii(self.id, grid, rule, backend)?,
        };
        Ok(by_radii.map_or(grid, |copy| &copy.grid))
    }

    /// The sorted place of every point among those that the CPU pool [searches](Self::searched).
    ///
    /// # Errors
    /// As [`searched`](Self::searched).
    pub(crate) fn searched_places(
        &self,
        rule: RadiusRule,
        backend: &CpuBackend,
    ) -> Result<&Permutation, Error> {
        let grid = self.searched(rule, backend)?;
        let places = match self.radii.copy_of(grid) {
            Some(copy) => copy.places(),
            None => places_in(&self.places, grid),
        };
        places.map_err(|source| self.refusal(source))
    }

    /// Bytes of the sorted places.
    pub(crate) fn places_bytes(&self) -> usize {
        let places = self.places.get();
        places.map_or(0, |places| size_of_val(places.order()))
    }
}

impl Set {
    /// Takes the radii of points that have stayed while others were removed, in the order of the
    /// points.
    ///
    /// This cannot fail: sorted radii still have the room of more points, and the radii were
    /// checked with the same radius of the grid when they were given.
    pub(crate) fn keep_radii(&mut self, radii: OwnRadii, backend: &CpuBackend) {
        self.radii.replace(radii);
        self.follow_radii(backend);
    }

    /// Radii of the points in the order of the grid; `id` and `rule` are for the error.
    ///
    /// # Errors
    /// [`ErrorKind::NoRadii`] when there is not one radius per point, and those of a sort.
    pub(crate) fn sorted_radii(
        &self,
        id: PointSetId,
        rule: RadiusRule,
        backend: &CpuBackend,
    ) -> Result<&SortedRadii, Error> {
        self.given_radii(id, rule)?;
        let refuse = |source| Error::from(ErrorKind::Positions { set: id, source });
        let grid = self.grid.get(backend).map_err(refuse)?;
        self.radii.sorted(grid, backend)
    }

    /// The same in the order of the points that the CPU pool [searches](Self::searched).
    ///
    /// # Errors
    /// As [`sorted_radii`](Self::sorted_radii).
    fn searched_radii(
        &self,
        rule: RadiusRule,
        backend: &CpuBackend,
    ) -> Result<&SortedRadii, Error> {
        self.given_radii(self.id, rule)?;
        let grid = self.searched(rule, backend)?;
        match self.radii.copy_of(grid) {
            Some(copy) => Ok(&copy.radii),
            None => self.radii.sorted(grid, backend),
        }
    }

    /// What tells the data of the points from those before.
    pub(crate) fn stamps(&self) -> DataStamps {
        DataStamps {
            radii: self.radii.stamp(),
            ..self.data.stamps
        }
    }

    /// Radii of the points in the caller's order; `id` and `rule` are for the error.
    ///
    /// A set without points has all radii that it needs.
    ///
    /// # Errors
    /// [`ErrorKind::NoRadii`] when there is not one radius per point.
    pub(crate) fn given_radii(&self, id: PointSetId, rule: RadiusRule) -> Result<Radii<'_>, Error> {
        let (points, given) = (self.grid.len(), self.radii.given());
        if given.len() == points {
            return Ok(given);
        }
        Err(ErrorKind::NoRadii {
            set: id,
            points,
            rule,
        }
        .into())
    }
}

/// The filters of a pair of sets, by slot.
///
/// # Errors
/// [`ErrorKind::NoTypes`] and [`ErrorKind::StaleData`].
pub(crate) fn pair_filter<'a>(
    sets: &'a [Set],
    filters: &'a EngineFilters,
    pair: [usize; 2],
) -> Result<PairFilter<'a>, Error> {
    let data = pair.map(|slot| &sets[slot].data);
    let points = pair.map(|slot| sets[slot].grid.len());
    let filter = filters.of_pair(data, points, pair[0] == pair[1]);
    filter.map_err(|(side, missing)| {
        let (set, points) = (sets[pair[side]].id, points[side]);
        let what = match missing {
            Missing::Types => return ErrorKind::NoTypes { set, points }.into(),
            Missing::Exclusions => EXCLUSIONS,
            Missing::Targets => TARGETS,
        };
        ErrorKind::StaleData { set, what, points }.into()
    })
}

/// The grids of a pair of sets, for the backend, with the radii that count by the `rule` and the
/// filters.
///
/// `targets` and `sources` are slots. Both sets are sorted on the host now if only a device has
/// done so.
///
/// # Errors
/// [`ErrorKind::Positions`] for a set that is astray or cannot be sorted, and
/// [`ErrorKind::NoRadii`], and those of [`pair_filter`].
pub(crate) fn pair_of_sets<'a>(
    backend: &CpuBackend,
    sets: &'a [Set],
    rule: RadiusRule,
    filters: &'a EngineFilters,
    [targets, sources]: [usize; 2],
) -> Result<PairOfSets<'a>, Error> {
    let grid = |set: usize| sets[set].searched(rule, backend);
    let radii = |set: usize| sets[set].searched_radii(rule, backend);
    Ok(PairOfSets {
        targets: grid(targets)?,
        sources: grid(sources)?,
        same_set: targets == sources,
        radii: rule.choose(|| radii(targets), || radii(sources))?,
        filter: pair_filter(sets, filters, [targets, sources])?,
        share: None,
    })
}
