//! A traversal: one set searches another, by any strategy.
//!
//! Every strategy visits the same pairs. The cells within reach of a target lie in rows along x,
//! and the points of a row are one contiguous run of the sorted array, because x runs fastest in
//! the cell's number. A table of row offsets (y, z, half length) is made once per lattice. `flat`
//! gives every target a thread, which cuts each row to the chord of the search sphere and tests the
//! run. The tile strategies give every occupied cell a warp or a block, which stages the runs in
//! shared memory once for all targets of the cell.
//!
//! Where there are few targets `flat` gives each of them a warp, whose lanes take rows. Lists are
//! the same, in the same order; sums are added up in another.
//!
//! In a dense table `flat` unrolls its loops over rows for the number of cells to a radius; warps
//! with a target near a face of a periodic box, or of the table of another set, find the image of
//! every row. Sparse tables and boxes that the radius reaches across take the general walk.
//!
//! Points that have left a periodic box are walked as proxies, which lie in one box
//! (`kernels/cuda/exact.cuh`), by kernels of their own, which are started beside those for points
//! inside. Whether there are such points is known on the device alone, where one of the two kernels
//! returns at once; so a step never waits to find out. Points of double precision are always walked
//! as proxies, by programs of their own.
//!
//! In a tilted box a point lies along an axis where the dot product with a row of one matrix says
//! so, along open axes too. Should a box vector lean along an open axis, that row is the direction
//! without images, and no walk needs to know.
//!
//! Programs for `f64` are keyed by the precision of the lattice. Sets remember theirs, and a set in
//! another precision than its lattice is refused as one that was sorted into other cells.
//!
//! [`PairOfPoints::traversal`] refuses sets that are not sorted into the cells of the lattice, and
//! shares that were made of another sort. Kernels rely on this: they index by the sorted order
//! without checks.

use super::{
    filter::DeviceFilter, gpu::GpuBackend, lattice::DeviceLattice, points::DevicePoints,
    share::DeviceShare,
};
use crate::{
    error::{Error, ErrorKind},
    launch::{
        ChildArguments, Children, FilteredWalk, Launches, Outlet, PairArrays, Points,
        TraversalKernels, Traverse, Walk, scan_tiles,
    },
    memory::{Buffer, kept_buffers},
    traversal::{Candidates, Filtering, Strategy, Traversal, Work},
};
use cudarc::driver::sys::{CUdeviceptr, CUlimit};
use nearfield_grid::Precision;
use nearfield_pairs::ListKind;

/// A pair of sets on one lattice: the argument of every job. It borrows the sets, so they can be
/// neither sorted nor freed while a job is started; kernels under way are ordered by the stream.
#[derive(Debug, Clone, Copy)]
pub struct PairOfPoints<'a> {
    /// Cells of both sets.
    pub lattice: &'a DeviceLattice,
    /// Points that search.
    pub targets: &'a DevicePoints,
    /// Points that are found.
    pub sources: &'a DevicePoints,
    /// True if both are the same set, so that a point is not its own neighbour.
    pub same_set: bool,
    /// Which targets are searched for; None for all. Made of the targets as they are sorted now;
    /// results of the others are unspecified.
    pub share: Option<&'a DeviceShare>,
    /// Pairs within the radius that are left out.
    pub filter: DeviceFilter<'a>,
}

/// Targets up to which `flat` gives each a warp.
///
/// An H200 holds 270,336 threads at a time, those of 8,448 warps. With 10,648 targets a warp each
/// takes less than a thread each, in open and periodic domains (docs/measurements/features.md).
const MAX_BY_WARPS: usize = 1 << 14;

kept_buffers! {
    /// Scratch of a traversal; callers keep it between runs.
    pub(crate) struct Scratch {
        /// Occupied cells of every block of parents.
        lists: u32 = "the list of cells",
        /// Walk and outlet for children.
        arguments: ChildArguments = "arguments of children",
        /// Launches of children that failed.
        launches: Launches = "the status of launches",
    }
}

impl PairOfPoints<'_> {
    /// Number of targets that are searched for.
    pub(crate) fn searching(&self) -> usize {
        self.share.map_or(self.targets.len(), DeviceShare::len)
    }

    /// The precision of both sets.
    pub(crate) fn precision(&self) -> Precision {
        self.lattice.lattice.radius().precision()
    }

    /// Returns true if there is nothing to visit.
    pub(crate) fn is_empty(&self) -> bool {
        self.searching() == 0 || self.sources.is_empty()
    }

    /// Returns true if both are the same set, and really the same points: programs for one set read
    /// and write sums and cells of the sources by the ranks of the targets.
    fn is_one_set(&self) -> bool {
        self.same_set && std::ptr::eq(self.targets, self.sources)
    }

    /// The program that does `work` with these pairs.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`] when a set is not in its cells: kernels write by its sorted order;
    /// [`ErrorKind::OtherLattice`] when it is in those of another lattice, and
    /// [`ErrorKind::OtherShare`].
    pub(crate) fn traversal(
        &self,
        strategy: Strategy,
        work: Work,
        half: bool,
    ) -> Result<Traversal, Error> {
        self.targets.check_sorted()?;
        self.sources.check_sorted()?;
        self.targets.check_lattice(self.lattice)?;
        self.sources.check_lattice(self.lattice)?;
        let strategy = match strategy {
            Strategy::Auto => Strategy::Flat,
            strategy => strategy,
        };
        let filtering = self.filter.filtering();
        let double = self.precision() == Precision::Double;
        if strategy != Strategy::Flat && filtering != Filtering::default() {
            return Err(Error::from(ErrorKind::FilteredStrategy {
                strategy: strategy.name(),
            }));
        }
        self.filter.check(self.targets, self.sources)?;
        let fits = |share: &DeviceShare| share.is_of(self.targets, strategy != Strategy::Flat);
        if !self.share.is_none_or(fits) {
            return Err(Error::from(ErrorKind::OtherShare {
                strategy: strategy.name(),
            }));
        }
        Ok(Traversal {
            strategy,
            work,
            candidates: self.candidates(strategy),
            subdivision: self.lattice.subdivision(),
            half: half && self.same_set,
            double,
            by_warps: strategy == Strategy::Flat && self.are_few(),
            filtering,
        })
    }

    /// Returns true if a thread per target would leave most of the device idle. Shares of the work
    /// of two backends are excepted: their sizes change from step to step, and with them the last
    /// bits of sums.
    fn are_few(&self) -> bool {
        let whole = self.share.is_none_or(DeviceShare::is_chosen);
        whole && self.searching() <= MAX_BY_WARPS
    }

    /// How candidates are found. `flat` walks a dense table around every target if the table has a
    /// geometry; other strategies know only the padded table of one set and the neighbour rows.
    fn candidates(&self, strategy: Strategy) -> Candidates {
        let (flat, periodic) = (strategy == Strategy::Flat, self.lattice.is_periodic());
        let padded = self.is_one_set() && !periodic && !self.sources.is_sparse();
        if flat && self.sources.geometry.is_none() {
            Candidates::Rows
        } else if padded {
            Candidates::OneSet
        } else if !flat {
            Candidates::Rows
        } else if self.lattice.lattice().effective_domain().is_tilted() {
            Candidates::Tilted
        } else if periodic {
            Candidates::Periodic
        } else {
            Candidates::Open
        }
    }

    /// The targets that are searched for, as kernels see them.
    pub(crate) fn targets_layout(&self) -> Points {
        let share = self.share.and_then(DeviceShare::layout);
        share.unwrap_or_else(|| self.targets.layout())
    }

    /// Sets, lattice, geometry and filters as kernels take them.
    pub(crate) fn walk(&self) -> FilteredWalk {
        let walk = Walk {
            lattice: self.lattice.layout,
            geometry: self.sources.geometry.unwrap_or_default(),
            targets: self.targets_layout(),
            sources: self.sources.layout(),
            rows: self.lattice.rows.address(),
            steps: self.lattice.steps.address(),
            row_count: self.lattice.row_count,
            same_set: u32::from(self.same_set),
        };
        FilteredWalk {
            walk,
            filters: (self.filter).layout(self.lattice, [self.targets, self.sources], self.share),
        }
    }
}

/// Where counts of neighbours go: an array with room for all targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountsTo {
    pub(crate) address: CUdeviceptr,
    /// By the caller's index; else by the sorted order, or that of a share.
    pub(crate) in_order: bool,
}

/// Returns true if a strategy goes from cell to cell, and so leaves the results of targets that a
/// failed sort could not place as they were.
pub(crate) fn goes_by_cells(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::ChildPerCell | Strategy::ChildAggregated)
}

impl GpuBackend {
    /// Number of neighbours of every target, or of every target of the share.
    ///
    /// # Errors
    /// The errors of [`PairOfPoints::traversal`] and of compiling and running a program.
    pub(crate) fn count_into(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        to: CountsTo,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let traversal = of.traversal(strategy, Work::Count, kind == ListKind::Half)?;
        let kernels = self.traversal(traversal)?;
        let outlet = Outlet {
            counts: to.address,
            in_order: u32::from(to.in_order),
            ..Outlet::default()
        };
        self.traverse(&kernels, of, &outlet, scratch)
    }

    /// Runs a traversal; `outlet` holds what its job needs. Waits only for strategies that launch
    /// kernels from kernels, whose launches may fail.
    ///
    /// # Errors
    /// [`ErrorKind::Launches`], [`ErrorKind::OutOfMemory`] for the scratch, and
    /// [`ErrorKind::Driver`].
    pub(crate) fn traverse(
        &self,
        kernels: &TraversalKernels,
        of: PairOfPoints<'_>,
        outlet: &Outlet,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        self.traverse_into(kernels, of, (outlet, &PairArrays::default()), scratch)
    }

    /// As [`traverse`](Self::traverse), with arrays for the geometry of pairs, which strategies
    /// that launch kernels from kernels write beside lists.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn traverse_into(
        &self,
        kernels: &TraversalKernels,
        of: PairOfPoints<'_>,
        (outlet, arrays): (&Outlet, &PairArrays),
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let (walk, stream) = (of.walk(), &self.stream);
        let cells = of.targets.cells();
        match &kernels.traverse {
            Traverse::Flat(flat) => flat.run(stream, &walk, outlet, of.searching()),
            // Traversals over lists are started where these are known.
            Traverse::OverLists(_) => Err(Error::from(ErrorKind::OtherLists)),
            Traverse::Children(children) => {
                self.allow_pending(children.pending(cells))?;
                let arguments = ChildArguments {
                    walk: walk.walk,
                    outlet: *outlet,
                    arrays: *arrays,
                };
                scratch.arguments.upload(stream, &[arguments])?;
                scratch.lists.reserve(stream, Children::padded(cells))?;
                scratch.launches.reserve(stream, 1)?;
                scratch.launches.zero(stream, 0..1)?;
                let (arguments, lists) = (scratch.arguments.address(), scratch.lists.address());
                let launches = scratch.launches.address();
                children.run(stream, arguments, lists, launches, cells)?;
                let mut status = [Launches::default()];
                scratch.launches.download(stream, 0, &mut status)?;
                let [Launches { failed, error }] = status;
                if failed > 0 {
                    return Err(Error::from(ErrorKind::Launches { failed, error }));
                }
                Ok(())
            }
        }
    }

    /// Sets how many grids launched by kernels may wait at a time. The limit belongs to the
    /// context; it is only ever raised, because raising it takes memory and a wait.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    fn allow_pending(&self, grids: usize) -> Result<(), Error> {
        let limit = CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
        let failed = |error| Error::of_call("setting the limit of pending launches", error);
        let allowed = self.shared.context.0.get_limit(limit).map_err(failed)?;
        if allowed < grids {
            self.shared
                .context
                .0
                .set_limit(limit, grids.next_power_of_two())
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Number of tiles of a scan over `items` items, with room for their states.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub(crate) fn tiles_for(&self, tiles: &mut Buffer<u64>, items: usize) -> Result<usize, Error> {
        let count = scan_tiles(items);
        tiles.reserve(&self.stream, count)?;
        Ok(count)
    }
}
