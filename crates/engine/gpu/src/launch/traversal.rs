//! The kernels of the traversals: flat.cu, tasks.cu, half.cu and children.cu.

use super::{
    kernel::{CHILD_BATCH, Kernel, blocks},
    layout::{Arguments, Outlet, Points, Walk},
};
use crate::{error::Error, memory::Queue, program::Module};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_kernels::constants::{
    FLAT_THREADS, GRID_THREADS, LIST_THREADS, LISTING_THREADS, PARENT_THREADS, TILE_THREADS,
};

/// The kernels of one traversal program.
#[derive(Debug)]
pub(crate) enum TraversalKernels {
    /// flat.cu, and its writer of lists.
    Flat(Flat),
    /// tasks.cu.
    Tasks(Tasks),
    /// children.cu.
    Children(Children),
    /// half.cu.
    Halves(Halves),
}

/// Kernels of flat.cu.
#[derive(Debug)]
pub(crate) struct Flat {
    traverse: Kernel,
    threads: u32,
    masks: Option<Masks>,
    gather: Option<Kernel>,
}

/// Kernels that make lists in one walk; see masks.cuh.
#[derive(Debug)]
pub(crate) struct Masks {
    count: Kernel,
    expand: Kernel,
    /// Maximum number of entries that a block may stage.
    max_staged: u32,
}

/// Kernels of tasks.cu.
#[derive(Debug)]
pub(crate) struct Tasks {
    list: Kernel,
    traverse: Kernel,
    gather: Option<Kernel>,
}

/// Kernels of half.cu.
#[derive(Debug)]
pub(crate) struct Halves {
    list: Kernel,
    traverse: Kernel,
    add: Kernel,
    gather: Kernel,
    outputs: usize,
}

/// Kernels of children.cu.
#[derive(Debug)]
pub(crate) struct Children {
    parent: Kernel,
    aggregated: bool,
    gather: Option<Kernel>,
}

impl Flat {
    /// `lists`: the program writes lists; `masks`: also from masks; `pairs`: it evaluates a pair
    /// kernel.
    pub(crate) fn load(
        module: &Module,
        lists: bool,
        masks: bool,
        pairs: bool,
    ) -> Result<Self, Error> {
        let (traverse, threads) = match lists {
            true => ("flat_lists", LIST_THREADS),
            false => ("flat", FLAT_THREADS),
        };
        Ok(Self {
            traverse: Kernel::of(module, traverse)?,
            threads,
            masks: masks.then(|| Masks::load(module)).transpose()?,
            gather: gather(module, pairs)?,
        })
    }

    /// The kernels that make lists from masks, if this program has them.
    pub(crate) fn masks(&self) -> Option<&Masks> {
        self.masks.as_ref()
    }

    pub(crate) fn run(&self, stream: &Queue, walk: &Walk, outlet: &Outlet) -> Result<(), Error> {
        let shape = (
            blocks(walk.targets.count as usize, self.threads),
            self.threads,
        );
        // SAFETY: the module's promise.
        unsafe { self.traverse.start(stream, shape, &[walk, outlet]) }
    }
}

impl Flat {
    /// As [`run`](Self::run), for `targets` targets from the outlet's first on: of `flat_lists`.
    pub(crate) fn run_part(
        &self,
        stream: &Queue,
        walk: &Walk,
        outlet: &Outlet,
        targets: usize,
    ) -> Result<(), Error> {
        let shape = (blocks(targets, self.threads), self.threads);
        // SAFETY: the module's promise; the kernel looks at no target behind the outlet's last.
        unsafe { self.traverse.start(stream, shape, &[walk, outlet]) }
    }
}

impl Masks {
    fn load(module: &Module) -> Result<Self, Error> {
        let expand = Kernel::of(module, "flat_expand")?;
        let staged = [STAGED_AT_MOST, STAGED_ANYWHERE];
        let allowed = |entries: &u32| expand.allow_shared(entries * size_of::<u32>() as u32);
        let max_staged = staged.into_iter().find(allowed).unwrap_or(STAGED_ANYWHERE);
        Ok(Self {
            count: Kernel::of(module, "flat_masks")?,
            expand,
            max_staged,
        })
    }

    /// Counts the neighbours of all targets and writes their masks: `counts` and `masks` of the
    /// outlet.
    pub(crate) fn count(&self, stream: &Queue, walk: &Walk, outlet: &Outlet) -> Result<(), Error> {
        let targets = walk.targets.count as usize;
        let shape = (blocks(targets, FLAT_THREADS), FLAT_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.count.start(stream, shape, &[walk, outlet]) }
    }

    /// Writes the lists of `targets` targets from the outlet's first on; `entries` is about how many
    /// entries these have together, by which shared memory is taken.
    pub(crate) fn expand(
        &self,
        stream: &Queue,
        walk: &Walk,
        outlet: &Outlet,
        targets: usize,
        entries: u64,
    ) -> Result<(), Error> {
        let shape = (blocks(targets, LIST_THREADS), LIST_THREADS);
        let room = staged_entries(targets, entries).min(self.max_staged);
        let bytes = room * size_of::<u32>() as u32;
        // SAFETY: the module's promise; a block has memory for `room` entries.
        unsafe { (self.expand).start_staged(stream, shape, bytes, &[walk, outlet, &room]) }
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

impl Tasks {
    pub(crate) fn load(module: &Module, pairs: bool) -> Result<Self, Error> {
        Ok(Self {
            list: Kernel::of(module, "list_tasks")?,
            traverse: Kernel::of(module, "cell_tasks")?,
            gather: gather(module, pairs)?,
        })
    }

    /// `tasks` has room for two numbers and one per cell, the two being 0.
    pub(crate) fn run(
        &self,
        stream: &Queue,
        walk: &Walk,
        outlet: &Outlet,
        tasks: CUdeviceptr,
        cells: usize,
        multiprocessors: u32,
    ) -> Result<(), Error> {
        let shape = (blocks(cells, LISTING_THREADS), LISTING_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.list.start(stream, shape, &[walk, &tasks]) }?;
        // As many warps as the device can hold; they take tasks until none is left.
        let shape = (16 * multiprocessors.max(1), TILE_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.traverse.start(stream, shape, &[walk, outlet, &tasks]) }
    }
}

impl Halves {
    /// `outputs`: channels of a result.
    pub(crate) fn load(module: &Module, outputs: usize) -> Result<Self, Error> {
        Ok(Self {
            outputs,
            list: Kernel::of(module, "list_halves")?,
            traverse: Kernel::of(module, "half_tiles")?,
            add: Kernel::of(module, "add_halves")?,
            gather: Kernel::of(module, "gather_fields")?,
        })
    }

    /// Sums of so many points, where so many cells lie ahead of a cell.
    pub(crate) fn sums(&self, points: usize, ahead: usize) -> usize {
        let room = (ahead + 1)
            .saturating_mul(points)
            .saturating_mul(self.outputs);
        // Larger requests are left to the driver, which returns an error.
        room.min(usize::MAX / 64)
    }

    /// `tasks` is as for [`Tasks::run`]; `sums` has room for as many as [`sums`](Self::sums) says.
    pub(crate) fn run(
        &self,
        stream: &Queue,
        walk: &Walk,
        outlet: &Outlet,
        (tasks, cells): (CUdeviceptr, usize),
        sums: CUdeviceptr,
        multiprocessors: u32,
    ) -> Result<(), Error> {
        let shape = (blocks(cells, LISTING_THREADS), LISTING_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.list.start(stream, shape, &[walk, &tasks]) }?;
        // As in `Tasks::run`.
        let shape = (16 * multiprocessors.max(1), TILE_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.traverse
                .start(stream, shape, &[walk, outlet, &tasks, &sums])
        }?;
        let shape = (
            blocks(walk.targets.count as usize, GRID_THREADS),
            GRID_THREADS,
        );
        // SAFETY: the module's promise; planes that were not written are of cells that hold no
        // point, which the kernel does not look at.
        unsafe { self.add.start(stream, shape, &[walk, outlet, &sums]) }
    }
}

impl Children {
    pub(crate) fn load(module: &Module, aggregated: bool, pairs: bool) -> Result<Self, Error> {
        let parent = match aggregated {
            true => "child_aggregated",
            false => "child_per_cell",
        };
        Ok(Self {
            parent: Kernel::of(module, parent)?,
            aggregated,
            gather: gather(module, pairs)?,
        })
    }

    /// `arguments` is one [`Arguments`]; `lists` has room for the cells of one batch.
    pub(crate) fn run(
        &self,
        stream: &Queue,
        arguments: CUdeviceptr,
        lists: CUdeviceptr,
        launches: CUdeviceptr,
        cells: usize,
    ) -> Result<(), Error> {
        // A parent is done when its children are, so no more grids wait than one batch launches.
        for first in (0..cells).step_by(CHILD_BATCH) {
            let shape = (
                blocks((cells - first).min(CHILD_BATCH), PARENT_THREADS),
                PARENT_THREADS,
            );
            let first = first as u32;
            match self.aggregated {
                // SAFETY: the module's promise.
                true => unsafe {
                    self.parent
                        .start(stream, shape, &[&arguments, &first, &lists, &launches])
                },
                // SAFETY: the module's promise.
                false => unsafe {
                    self.parent
                        .start(stream, shape, &[&arguments, &first, &launches])
                },
            }?;
        }
        Ok(())
    }

    /// Maximum number of grids in flight in a traversal of this number of cells.
    pub(crate) fn pending(&self, cells: usize) -> usize {
        let cells = cells.min(CHILD_BATCH);
        match self.aggregated {
            true => cells.div_ceil(PARENT_THREADS as usize),
            false => cells,
        }
    }

    /// Cells of a batch, rounded up to whole parent blocks.
    pub(crate) fn padded(cells: usize) -> usize {
        cells
            .min(CHILD_BATCH)
            .next_multiple_of(PARENT_THREADS as usize)
    }
}

fn gather(module: &Module, pairs: bool) -> Result<Option<Kernel>, Error> {
    match pairs {
        true => Kernel::of(module, "gather_fields").map(Some),
        false => Ok(None),
    }
}

impl TraversalKernels {
    /// Brings the channels of the sources into sorted order.
    pub(crate) fn gather(
        &self,
        stream: &Queue,
        points: &Points,
        (fields, stride): (CUdeviceptr, u32),
        sources: CUdeviceptr,
        more: CUdeviceptr,
    ) -> Result<(), Error> {
        let gather = match self {
            Self::Flat(Flat { gather, .. })
            | Self::Tasks(Tasks { gather, .. })
            | Self::Children(Children { gather, .. }) => gather.as_ref(),
            Self::Halves(Halves { gather, .. }) => Some(gather),
        };
        let Some(gather) = gather else { return Ok(()) };
        let shape = (blocks(points.count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            gather.start(
                stream,
                shape,
                &[&points.at, &fields, &stride, &points.count, &sources, &more],
            )
        }
    }
}

/// Size of the arguments of children.cu, for the buffer that holds them.
pub(crate) type ChildArguments = Arguments;
