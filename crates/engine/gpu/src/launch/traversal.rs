//! The kernels of the traversals: flat.cu, children.cu and stored.cu.
//!
//! A traversal program is compiled for one job, so every program has one kernel that traverses
//! ([`Traverse`]), whatever it does with the pairs; those that evaluate a pair kernel also have
//! `gather_fields`, which brings the channels of the sources into sorted order first.
//!
//! # Points outside the box
//!
//! In a periodic domain of single precision two kernels are started for each walk by `flat`: one
//! compares positions, the other proxies, or positions in images of their own. Both look at the
//! flags of the sort, and one of them ends at once. A wait for the flags would take longer than the
//! launch of a kernel that does nothing.
//! Programs of double precision have one kernel, which compares proxies always; so have those that
//! give every target a warp, which take either way by a branch.
//!
//! # Targets of large radius
//!
//! Where cells are made for the bulk of the radii, one kernel more is started behind each that
//! walks, in programs of single precision with radii of single points. It has a block for each
//! target whose radius is too large for the cells, and overwrites what the walk has written for it:
//! no neighbours. How many there are is known on the device, so a fixed number of blocks takes them
//! in turn.
//!
//! # How the strategies are launched
//!
//! - `flat`: one thread per target, or one warp where there are few.
//! - `child-per-cell`, `child-aggregated`: one thread per cell, of occupied cells or not, in
//!   batches of [`CHILD_BATCH`] cells. It launches grids, and the host waits for their status.

use super::{
    kernel::{Argument, CHILD_BATCH, Kernel, LaunchShape, WARP, one_each},
    layout::{FilteredWalk, Outlet, PairArrays, Points, StridedChannels},
    stored::OverLists,
};
use crate::constants::{FLAT_THREADS, LIST_THREADS, PARENT_THREADS, WIDE_THREADS};
use crate::{error::Error, memory::Queue, program::Module};
use cudarc::driver::sys::CUdeviceptr;

/// The kernels of one traversal program.
#[derive(Debug)]
pub(crate) struct TraversalKernels {
    /// The kernels that visit the pairs.
    pub(crate) traverse: Traverse,
    /// Sorts channels, in programs that evaluate a pair kernel.
    gather: Option<Kernel>,
}

/// The kernels that visit the pairs, by strategy.
#[derive(Debug)]
pub(crate) enum Traverse {
    /// flat.cu, or its writer of lists.
    Flat(Flat),
    /// children.cu.
    Children(Children),
    /// stored.cu.
    OverLists(OverLists),
}

/// Kernels of flat.cu.
#[derive(Debug)]
pub(crate) struct Flat {
    /// `flat` or `flat_lists`.
    traverse: Kernel,
    /// `flat_wrapped`: takes the place of `flat` where points have left a periodic box.
    wrapped: Option<Kernel>,
    /// Threads of a block.
    threads: u32,
    /// Threads of a target: one, or those of a warp.
    ///
    /// With warps, `flat_lists` finds its lists by walking, and there are no masks: the rows of a
    /// target are walked side by side, so the second walk takes hardly longer than reading bits.
    lanes: usize,
    /// `flat_lists` also writes the geometry of pairs, and so takes arrays for it.
    geometry: bool,
    /// `flat_wide` or `flat_wide_lists`, in programs with radii of single points: for targets
    /// whose radii are too large for the cells.
    wide: Option<Kernel>,
    /// In programs of lists that are made from masks.
    pub(crate) masks: Option<Box<Masks>>,
}

/// Kernels that make lists in one walk, which leaves a bit per candidate; see masks.cuh.
#[derive(Debug)]
pub(crate) struct Masks {
    /// `flat_masks`: counts, and writes the bits.
    count: Kernel,
    /// `flat_masks_wrapped`: the same where points have left a periodic box.
    wrapped: Option<Kernel>,
    /// `flat_wide_counts`, as there.
    wide: Option<Kernel>,
    /// `flat_expand`: from bits to lists.
    expand: Kernel,
    /// Maximum number of entries that a block may stage.
    max_staged: u32,
    /// `flat_expand` also writes the geometry of pairs.
    geometry: bool,
}

/// Which kernels a program of flat.cu has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlatKernels {
    /// Those that write lists.
    pub(crate) lists: bool,
    /// These also write the geometry of pairs.
    pub(crate) geometry: bool,
    /// Also those that make lists from masks.
    pub(crate) masks: bool,
    /// Points that have left the box have kernels of their own.
    pub(crate) apart: bool,
    /// Every target has a warp.
    pub(crate) warps: bool,
    /// Radii may be too large for the cells.
    pub(crate) wide: bool,
}

/// Kernels of children.cu.
#[derive(Debug)]
pub(crate) struct Children {
    /// `child_per_cell` or `child_aggregated`.
    parent: Kernel,
    /// It is `child_aggregated`: a child per block of parents.
    aggregated: bool,
}

impl TraversalKernels {
    /// The kernels of `module`: `traverse`, which visits the pairs, and with `pairs` the one that
    /// gathers channels, which programs of pair kernels have.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module, traverse: Traverse, pairs: bool) -> Result<Self, Error> {
        let gather = pairs.then(|| Kernel::overlapping(module, "gather_fields"));
        let gather = gather.transpose()?;
        Ok(Self { traverse, gather })
    }

    /// Brings the channels of the sources into sorted order: the first beside the position, in
    /// `sources`, the others in `more`, four at a time. Does nothing for other jobs.
    pub(crate) fn gather(
        &self,
        queue: &Queue,
        points: &Points,
        from: StridedChannels,
        sources: CUdeviceptr,
        more: CUdeviceptr,
    ) -> Result<(), Error> {
        let Some(gather) = &self.gather else {
            return Ok(());
        };
        let StridedChannels {
            address, stride, ..
        } = from;
        // SAFETY: as gather_fields declares; the arrays written to also have room for what loops
        // over candidates read behind the last point.
        unsafe {
            gather.start(
                queue,
                one_each(points.count as usize),
                &[points, &address, &stride, &sources, &more],
            )
        }
    }
}

impl Flat {
    /// The kernels of flat.cu that a program has.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module, kernels: FlatKernels) -> Result<Self, Error> {
        let FlatKernels {
            lists,
            geometry,
            masks,
            apart,
            warps,
            wide,
        } = kernels;
        let (traverse, wide_targets, threads) = if lists {
            ("flat_lists", "flat_wide_lists", LIST_THREADS)
        } else {
            ("flat", "flat_wide", FLAT_THREADS)
        };
        let wrapped = (apart && !lists).then(|| Kernel::overlapping(module, "flat_wrapped"));
        let masks = masks.then(|| Masks::load(module, kernels));
        let wide = wide.then(|| Kernel::overlapping(module, wide_targets));
        Ok(Self {
            traverse: Kernel::overlapping(module, traverse)?,
            wrapped: wrapped.transpose()?,
            threads,
            lanes: if warps { WARP } else { 1 },
            geometry,
            wide: wide.transpose()?,
            masks: masks.transpose()?.map(Box::new),
        })
    }

    /// Visits the pairs of `targets` targets: all of them, or, when lists are written, those from
    /// the outlet's `first` on.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        walk: &FilteredWalk,
        outlet: &Outlet,
        targets: usize,
    ) -> Result<(), Error> {
        let shape = LaunchShape::covering(targets.saturating_mul(self.lanes), self.threads);
        // SAFETY: as flat and flat_lists declare; flat looks at no target behind the last of the
        // walk, flat_lists at none behind the outlet's last.
        unsafe { self.traverse.start(queue, shape, &[walk, outlet]) }?;
        start_wrapped(self.wrapped.as_ref(), queue, walk, outlet)?;
        start_wide(self.wide.as_ref(), queue, walk, &[walk, outlet])
    }

    /// Writes the lists of `targets` targets from the outlet's first on, those that masks have not
    /// given, and the geometry of their pairs in programs that have it.
    pub(crate) fn write(
        &self,
        queue: &Queue,
        walk: &FilteredWalk,
        outlet: &Outlet,
        arrays: &PairArrays,
        targets: usize,
    ) -> Result<(), Error> {
        if !self.geometry {
            return self.run(queue, walk, outlet, targets);
        }
        let shape = LaunchShape::covering(targets.saturating_mul(self.lanes), self.threads);
        // SAFETY: as flat_lists declares with NF_GEOMETRY; it looks at no target behind the
        // outlet's last, and every array that is not null has as much room as the entries.
        unsafe { self.traverse.start(queue, shape, &[walk, outlet, arrays]) }?;
        start_wide(self.wide.as_ref(), queue, walk, &[walk, outlet, arrays])
    }
}

/// Starts the kernel of flat_wide.cuh behind one of flat.cu, where targets may be wide; `values`
/// are those that the other has taken.
fn start_wide(
    kernel: Option<&Kernel>,
    queue: &Queue,
    walk: &FilteredWalk,
    values: &[&dyn Argument],
) -> Result<(), Error> {
    let Some(kernel) = kernel.filter(|_| walk.filters.wide_targets != 0) else {
        return Ok(());
    };
    let shape = LaunchShape::of(WIDE_BLOCKS, WIDE_THREADS);
    // SAFETY: as flat_wide, flat_wide_counts and flat_wide_lists declare: each takes what the
    // kernel before it has taken, and writes the results of some of its targets.
    unsafe { kernel.start(queue, shape, values) }
}

/// Starts the kernel beside one of flat.cu that takes its place where points have left the box.
fn start_wrapped(
    kernel: Option<&Kernel>,
    queue: &Queue,
    walk: &FilteredWalk,
    outlet: &Outlet,
) -> Result<(), Error> {
    let Some(kernel) = kernel else {
        return Ok(());
    };
    let mut shape = LaunchShape::covering(walk.walk.targets.count as usize, FLAT_THREADS);
    shape.blocks = shape.blocks.min(WRAPPED_BLOCKS);
    // SAFETY: as flat_wrapped and flat_masks_wrapped declare; they take the walk's targets, and
    // write what the kernel before has room for.
    unsafe { kernel.start(queue, shape, &[walk, outlet]) }
}

/// Blocks of the kernels for wide targets, which take these in turn. A device holds about as many
/// at a time.
const WIDE_BLOCKS: u32 = 256;

/// Blocks of the kernels for points that have left the box: about as many as a large device holds
/// at a time, so that a kernel that has nothing to do ends soon.
const WRAPPED_BLOCKS: u32 = 1_024;

impl Masks {
    /// The kernels of flat.cu that make lists from masks.
    fn load(module: &Module, kernels: FlatKernels) -> Result<Self, Error> {
        let FlatKernels {
            geometry,
            apart,
            wide,
            ..
        } = kernels;
        let expand = Kernel::overlapping(module, "flat_expand")?;
        let staged = staged_at_most(geometry);
        let allowed = |entries: &u32| expand.allow_shared(entries * staged_bytes(geometry));
        let max_staged = staged.into_iter().find(allowed).unwrap_or(staged[1]);
        Ok(Self {
            count: Kernel::overlapping(module, "flat_masks")?,
            wrapped: apart
                .then(|| Kernel::overlapping(module, "flat_masks_wrapped"))
                .transpose()?,
            wide: wide
                .then(|| Kernel::overlapping(module, "flat_wide_counts"))
                .transpose()?,
            expand,
            max_staged,
            geometry,
        })
    }

    /// Counts the neighbours of all targets and writes their masks: `counts` and `masks` of the
    /// outlet.
    pub(crate) fn count(
        &self,
        queue: &Queue,
        walk: &FilteredWalk,
        outlet: &Outlet,
    ) -> Result<(), Error> {
        let shape = LaunchShape::covering(walk.walk.targets.count as usize, FLAT_THREADS);
        // SAFETY: as flat_masks declares; counts and masks have room for every target.
        unsafe { self.count.start(queue, shape, &[walk, outlet]) }?;
        start_wrapped(self.wrapped.as_ref(), queue, walk, outlet)?;
        start_wide(self.wide.as_ref(), queue, walk, &[walk, outlet])
    }

    /// Writes the lists of `targets` targets from the outlet's first on, and the geometry of their
    /// pairs in programs that have it; `entries` is about how many entries these have together, by
    /// which shared memory is taken.
    pub(crate) fn expand(
        &self,
        queue: &Queue,
        walk: &FilteredWalk,
        outlet: &Outlet,
        arrays: &PairArrays,
        (targets, entries): (usize, u64),
    ) -> Result<(), Error> {
        let room = staged_entries(targets, entries).min(self.max_staged);
        let shape = LaunchShape::covering(targets, LIST_THREADS);
        let shape = shape.with_shared(room * staged_bytes(self.geometry));
        // SAFETY: as flat_expand declares, the second with NF_GEOMETRY; a block has shared memory
        // for `room` entries, and every array that is not null as much room as the entries.
        unsafe {
            if self.geometry {
                self.expand
                    .start(queue, shape, &[walk, outlet, &room, arrays])
            } else {
                self.expand.start(queue, shape, &[walk, outlet, &room])
            }
        }
    }
}

/// Entries that a block of `flat_expand` stages at a time: those of its lists, if they are not much
/// longer than the mean.
fn staged_entries(targets: usize, entries: u64) -> u32 {
    const STEP: u64 = 512;
    let mean = u64::from(LIST_THREADS).saturating_mul(entries) / targets.max(1) as u64;
    let room = (mean + mean / 16)
        .next_multiple_of(STEP)
        .clamp(STEP, u64::from(STAGED_AT_MOST));
    room as u32
}

/// 56 KiB: devices since 2018 let a block have 64. Longer lists are staged in turns.
const STAGED_AT_MOST: u32 = 14_336;
/// 40 KiB: with what the kernel declares, less than the 48 that a block has without asking.
const STAGED_ANYWHERE: u32 = 10_240;

/// Bytes of a staged entry: its index, or the sorted place of its source and a note of 16 bits.
fn staged_bytes(geometry: bool) -> u32 {
    if geometry { 6 } else { 4 }
}

/// Entries in 56 KiB, and in the 40 that every device lets a block have.
fn staged_at_most(geometry: bool) -> [u32; 2] {
    [STAGED_AT_MOST, STAGED_ANYWHERE].map(|entries| entries * 4 / staged_bytes(geometry))
}

impl Children {
    /// The parent kernel of children.cu, by strategy.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module, aggregated: bool) -> Result<Self, Error> {
        let parent = if aggregated {
            "child_aggregated"
        } else {
            "child_per_cell"
        };
        Ok(Self {
            parent: Kernel::of(module, parent)?,
            aggregated,
        })
    }

    /// Goes through `cells` cells, batch by batch. `arguments` is one
    /// [`Arguments`](super::ChildArguments) in device memory, `lists` has room for the
    /// [`padded`](Self::padded) cells of one batch, and `launches` is one
    /// [`Launches`](super::Launches), zero before.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        arguments: CUdeviceptr,
        lists: CUdeviceptr,
        launches: CUdeviceptr,
        cells: usize,
    ) -> Result<(), Error> {
        // A parent is done when its children are, so no more grids wait than one batch launches.
        for first in (0..cells).step_by(CHILD_BATCH) {
            let shape = LaunchShape::covering((cells - first).min(CHILD_BATCH), PARENT_THREADS);
            let first = first as u32;
            // SAFETY: as child_aggregated and child_per_cell declare; only the first takes lists.
            // Children read the arguments, which live until the host has waited.
            unsafe {
                if self.aggregated {
                    self.parent
                        .start(queue, shape, &[&arguments, &first, &lists, &launches])
                } else {
                    self.parent
                        .start(queue, shape, &[&arguments, &first, &launches])
                }
            }?;
        }
        Ok(())
    }

    /// Maximum number of grids in flight in a traversal of this number of cells.
    pub(crate) fn pending(&self, cells: usize) -> usize {
        let cells = cells.min(CHILD_BATCH);
        if self.aggregated {
            cells.div_ceil(PARENT_THREADS as usize)
        } else {
            cells
        }
    }

    /// Cells of a batch, rounded up to whole parent blocks.
    pub(crate) fn padded(cells: usize) -> usize {
        cells
            .min(CHILD_BATCH)
            .next_multiple_of(PARENT_THREADS as usize)
    }
}
