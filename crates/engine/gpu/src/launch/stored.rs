//! The kernels of stored.cu and slots.cu: pair kernels over stored lists, and what these need.
//!
//! A program of stored.cu is compiled for one pair kernel and one way to find images, as programs
//! of flat.cu are, for one precision and, where lists do not say everything, with the filters that
//! they were found with. It takes the same walk, filters behind it, and has the same
//! `gather_fields`. slots.cu is a program as it stands, loaded when lists are first traversed.

use super::{
    kernel::{Kernel, LaunchShape, WARP, one_each},
    layout::{FilteredWalk, Following, Judged, Lattice, Outlet, Points, Stored},
};
use crate::{
    constants::{FLAT_THREADS, GRID_THREADS, STORED_LANES},
    error::Error,
    memory::Queue,
    program::{Module, Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;

/// Blocks of the kernel that goes through entries: enough to fill the largest devices several
/// times.
const ENTRY_BLOCKS: usize = 1 << 14;

/// The kernel of a program of stored.cu.
#[derive(Debug)]
pub(crate) struct OverLists {
    /// `stored`.
    traverse: Kernel,
    /// Threads of a target.
    lanes: usize,
}

impl OverLists {
    /// Looks up the kernel; `warps` says that every target has a warp.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module, warps: bool) -> Result<Self, Error> {
        Ok(Self {
            traverse: Kernel::overlapping(module, "stored")?,
            lanes: if warps { WARP } else { STORED_LANES as usize },
        })
    }

    /// Evaluates the pair kernel for all targets of the walk over their lists: `starts` and
    /// `counts` of the outlet are those of the sorted targets, and `entries` sorted places of
    /// sources.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        walk: &FilteredWalk,
        outlet: &Outlet,
        stored: &Stored,
    ) -> Result<(), Error> {
        let threads = (walk.walk.targets.count as usize).saturating_mul(self.lanes);
        let shape = LaunchShape::covering(threads, FLAT_THREADS);
        // SAFETY: as `stored` declares; it looks at no target behind the last, and at no entry
        // from the outlet's capacity on.
        unsafe { self.traverse.start(queue, shape, &[walk, outlet, stored]) }
    }
}

/// Kernels of slots.cu.
#[derive(Debug)]
pub(crate) struct SlotKernels {
    of_points: Kernel,
    of_entries: Kernel,
    /// Single precision, and double.
    follow: [Kernel; 2],
    judge: Kernel,
    positions: Kernel,
    positions_of_given: Kernel,
    gather: Kernel,
    part: Kernel,
}

/// Some points as targets of their own; 0 for what there is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatheredPoints {
    /// The caller's indices of these, all below the number of points.
    pub(crate) indices: CUdeviceptr,
    /// How many.
    pub(crate) count: u32,
    /// The sorted place of every point.
    pub(crate) places: CUdeviceptr,
    /// Room for the position and index of each.
    pub(crate) at: CUdeviceptr,
    /// Room for the image counts of each; 0 in an open domain.
    pub(crate) wraps: CUdeviceptr,
    /// Room for the position of each in double precision; 0 in single precision.
    pub(crate) given: CUdeviceptr,
    /// Room for the place of each in the whole set.
    pub(crate) slots: CUdeviceptr,
}

/// Some lists that lie one behind the other, and where they go as lists of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOfLists {
    /// Sorted targets of all lists.
    pub(crate) at: CUdeviceptr,
    /// Entries before every list, and all of them behind the last.
    pub(crate) all_starts: CUdeviceptr,
    /// The first list.
    pub(crate) first: u32,
    /// Number of lists.
    pub(crate) count: u32,
    /// Entries before the first list.
    pub(crate) base: u64,
    /// Room for the caller's index of every target.
    pub(crate) targets: CUdeviceptr,
    /// Room for the start of every list and the end of the last.
    pub(crate) starts: CUdeviceptr,
    /// Room for the length of every list.
    pub(crate) counts: CUdeviceptr,
}

/// Entries of lists, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries {
    /// The caller's indices of sources.
    pub(crate) entries: CUdeviceptr,
    /// A `u64`: number of entries of all lists.
    pub(crate) total: CUdeviceptr,
    /// Entries that there is room for.
    pub(crate) capacity: usize,
}

impl SlotKernels {
    /// Compiles slots.cu, or takes it from the cache, and looks up its kernels.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&super::sources::SLOTS))?;
        let kernel = |name| Kernel::overlapping(&module, name);
        Ok(Self {
            of_points: kernel("slots_of_points")?,
            of_entries: kernel("slots_of_entries")?,
            follow: [kernel("follow_points")?, kernel("follow_given")?],
            judge: kernel("judge_lists")?,
            positions: kernel("positions_of_points")?,
            positions_of_given: kernel("positions_of_given")?,
            gather: kernel("gather_points")?,
            part: kernel("part_of_lists")?,
        })
    }

    /// The sorted place of every point, by the caller's index.
    pub(crate) fn of_points(
        &self,
        queue: &Queue,
        points: &Points,
        slots: CUdeviceptr,
    ) -> Result<(), Error> {
        let Points { at, count, .. } = points;
        let shape = one_each(*count as usize);
        // SAFETY: as slots_of_points declares; `slots` has one element per point.
        unsafe { self.of_points.start(queue, shape, &[at, count, &slots]) }
    }

    /// Entries as sorted places: `slots` has those of `count` points, and `out` room for as many
    /// entries as there is room for.
    pub(crate) fn of_entries(
        &self,
        queue: &Queue,
        lists: Entries,
        slots: CUdeviceptr,
        count: u32,
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        let Entries {
            entries,
            total,
            capacity,
        } = lists;
        let blocks = capacity.div_ceil(GRID_THREADS as usize);
        let shape = LaunchShape::of(blocks.clamp(1, ENTRY_BLOCKS) as u32, GRID_THREADS);
        let capacity = capacity as u64;
        // SAFETY: as slots_of_entries declares; nothing from the capacity on is read or written.
        unsafe {
            self.of_entries.start(
                queue,
                shape,
                &[&entries, &total, &capacity, &slots, &count, &out],
            )
        }
    }

    /// Brings positions into the sorted order of the build, and finds the largest displacement.
    pub(crate) fn follow(
        &self,
        queue: &Queue,
        set: &Following,
        the_box: &Lattice,
    ) -> Result<(), Error> {
        let shape = one_each(set.count as usize);
        let follow = &self.follow[usize::from(set.given != 0)];
        // SAFETY: as follow_points and follow_given declare; all arrays of the precision have
        // elements for every point.
        unsafe { follow.start(queue, shape, &[set, the_box]) }
    }

    /// Whether lists with a skin of some pairs of sets may miss a pair.
    pub(crate) fn judge(&self, queue: &Queue, judged: &Judged) -> Result<(), Error> {
        // SAFETY: as judge_lists declares, for one warp; there is a word for the answer.
        unsafe { (self.judge).start(queue, LaunchShape::of(1, WARP as u32), &[judged]) }
    }

    /// Positions that were followed, from sorted order back to the caller's.
    pub(crate) fn positions(
        &self,
        queue: &Queue,
        set: &Following,
        positions: CUdeviceptr,
    ) -> Result<(), Error> {
        let (count, shape) = (set.count, one_each(set.count as usize));
        // SAFETY: as positions_of_points and positions_of_given declare; `positions` has three
        // numbers of the precision per point.
        unsafe {
            if set.given == 0 {
                (self.positions).start(queue, shape, &[&set.now, &count, &positions])
            } else {
                let from = [&set.built, &set.now_given];
                (self.positions_of_given).start(
                    queue,
                    shape,
                    &[from[0], from[1], &count, &positions],
                )
            }
        }
    }

    /// Gathers sorted points with some indices, in the order of the indices.
    pub(crate) fn gather(
        &self,
        queue: &Queue,
        points: &Points,
        to: &GatheredPoints,
    ) -> Result<(), Error> {
        let shape = one_each(to.count as usize);
        let wraps = if to.wraps == 0 { 0 } else { points.wraps };
        let given = if to.given == 0 { 0 } else { points.given };
        // SAFETY: as gather_points declares; indices are below the number of points, for each of
        // which there is a place, and all other arrays have an element per index.
        unsafe {
            self.gather.start(
                queue,
                shape,
                &[
                    &to.indices,
                    &to.count,
                    &to.places,
                    &points.at,
                    &wraps,
                    &points.flags,
                    &given,
                    &to.at,
                    &to.wraps,
                    &to.given,
                    &to.slots,
                ],
            )
        }
    }

    /// Writes starts, lengths and targets of some lists as those of lists of their own.
    pub(crate) fn part(&self, queue: &Queue, part: &PartOfLists) -> Result<(), Error> {
        let shape = one_each(part.count as usize + 1);
        // SAFETY: as part_of_lists declares; the range lies within the lists that were counted, and
        // the arrays that are written have room for it.
        unsafe {
            self.part.start(
                queue,
                shape,
                &[
                    &part.at,
                    &part.all_starts,
                    &part.first,
                    &part.count,
                    &part.base,
                    &part.targets,
                    &part.starts,
                    &part.counts,
                ],
            )
        }
    }
}
