//! Every launch of a kernel: one typed function each, and the only unsafe code of the backend.
//!
//! **What the functions rely on:** every address handed over is of a live buffer with as many
//! elements as the counts beside it say (the buffers' owners see to it), and every kernel is on the
//! backend's one stream, so it finds what the one before it wrote.

mod all_pairs;
mod share;

pub(super) use all_pairs::THREADS as ALL_PAIRS_THREADS;
pub(crate) use all_pairs::{AllPairsKernels, Summing};
pub(crate) use share::{ShareKernels, Sharing};

use super::{
    layout::{Arguments, Lattice, Outlet, Points, Walk},
    queue::Queue,
};
use crate::{Error, Module, Modules, Program};
use cudarc::driver::{CudaFunction, DeviceRepr, PushKernelArg, sys::CUdeviceptr};

/// Threads of a block in grid.cu.
const GRID_THREADS: u32 = 256;
/// Items that a block of a scan takes.
pub(crate) const SCAN_TILE: usize = 4096;
/// Threads of a block of `flat`.
const FLAT_THREADS: u32 = 256;
/// Threads of a block of `flat_lists`, and in tasks.cu and half.cu.
const TRAVERSAL_THREADS: u32 = 128;
/// Threads of a parent block in children.cu.
const PARENT_THREADS: u32 = 256;
/// Cells that one parent kernel goes through.
const CHILD_BATCH: usize = 1 << 18;
/// Cells that share a block where tasks are listed.
const TASK_THREADS: u32 = 256;

/// Tiles of a scan of `items`.
pub(crate) fn scan_tiles(items: usize) -> usize {
    items.div_ceil(SCAN_TILE).max(1)
}

/// Blocks of `threads` for `items`, one each at least.
fn blocks(items: usize, threads: u32) -> u32 {
    u32::try_from(items.div_ceil(threads as usize).max(1)).unwrap_or(u32::MAX)
}

/// A kernel with its name for messages and traces.
#[derive(Debug, Clone)]
struct Kernel {
    name: String,
    function: CudaFunction,
}

impl Kernel {
    fn of(module: &Module, name: &str) -> Result<Self, Error> {
        let function = module.function(name)?;
        let name = format!("{name} of {}", module.program());
        Ok(Self { name, function })
    }

    /// Starts `blocks` × `threads`; `arguments` push what the kernel declares.
    ///
    /// # Safety
    /// The arguments are those the kernel declares, and the module's promise holds for them.
    unsafe fn start(
        &self,
        queue: &Queue,
        shape: (u32, u32),
        arguments: &[&dyn Argument],
    ) -> Result<(), Error> {
        let mut launch = queue.launch_builder(&self.function);
        for argument in arguments {
            argument.push(&mut launch);
        }
        // SAFETY: the caller's promise.
        unsafe { queue.launch(&self.name, &mut launch, shape) }
    }
}

/// Something that a kernel takes.
trait Argument {
    fn push<'a>(&'a self, launch: &mut cudarc::driver::LaunchArgs<'a>);
}

impl<T: DeviceRepr> Argument for T {
    fn push<'a>(&'a self, launch: &mut cudarc::driver::LaunchArgs<'a>) {
        launch.arg(self);
    }
}

/// The kernels of grid.cu.
#[derive(Debug)]
pub(crate) struct GridKernels {
    reset: Kernel,
    bounds: Kernel,
    keys: [Kernel; 2],
    claim_bricks: Kernel,
    keys_sparse: Kernel,
    scan: Kernel,
    list_scan: Kernel,
    place: Kernel,
    settle_crowded: Kernel,
    settle: [Kernel; 2],
    counts_in_order: Kernel,
    list_bounds: Kernel,
    order_of_points: Kernel,
    lists_in_order: Kernel,
    values_in_order: Kernel,
    fill_values: Kernel,
    interleave: Kernel,
}

/// What sorting a set reads and writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sorting {
    pub(crate) positions: CUdeviceptr,
    pub(crate) count: u32,
    pub(crate) counts: CUdeviceptr,
    pub(crate) keys: CUdeviceptr,
    pub(crate) placed: CUdeviceptr,
    pub(crate) tiles: CUdeviceptr,
    pub(crate) status: CUdeviceptr,
    pub(crate) cells: usize,
}

impl GridKernels {
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&nearfield_kernels::GRID))?;
        let kernel = |name| Kernel::of(&module, name);
        Ok(Self {
            reset: kernel("grid_reset")?,
            bounds: kernel("grid_bounds")?,
            keys: [kernel("grid_keys_open")?, kernel("grid_keys_periodic")?],
            claim_bricks: kernel("grid_claim_bricks")?,
            keys_sparse: kernel("grid_keys_sparse")?,
            scan: kernel("grid_scan")?,
            list_scan: kernel("list_scan")?,
            place: kernel("grid_place")?,
            settle_crowded: kernel("grid_settle_crowded")?,
            settle: [kernel("grid_settle_open")?, kernel("grid_settle_periodic")?],
            counts_in_order: kernel("counts_in_order")?,
            list_bounds: kernel("list_bounds")?,
            order_of_points: kernel("order_of_points")?,
            lists_in_order: kernel("lists_in_order")?,
            values_in_order: kernel("values_in_order")?,
            fill_values: kernel("fill_values")?,
            interleave: kernel("interleave")?,
        })
    }

    /// Clears the tiles of a scan, and the status, of which `keep` keeps what the host has yet to learn
    /// of the step before.
    pub(crate) fn reset(
        &self,
        stream: &Queue,
        status: CUdeviceptr,
        tiles: CUdeviceptr,
        tiles_in_all: usize,
        keep: bool,
    ) -> Result<(), Error> {
        let shape = (blocks(tiles_in_all, GRID_THREADS), GRID_THREADS);
        let (tiles_in_all, keep) = (tiles_in_all as u32, u32::from(keep));
        // SAFETY: the module's promise.
        unsafe {
            self.reset
                .start(stream, shape, &[&status, &tiles, &tiles_in_all, &keep])
        }
    }

    pub(crate) fn bounds(&self, stream: &Queue, sorting: &Sorting) -> Result<(), Error> {
        let Sorting {
            positions,
            count,
            status,
            ..
        } = *sorting;
        // Enough to fill the largest devices; blocks go on to further points.
        let shape = (blocks(count as usize, GRID_THREADS).min(1024), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.bounds
                .start(stream, shape, &[&positions, &count, &status])
        }
    }

    pub(crate) fn keys(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        lattice: &Lattice,
        points: &Points,
        periodic: bool,
    ) -> Result<(), Error> {
        let Sorting {
            positions,
            count,
            counts,
            keys,
            status,
            ..
        } = *sorting;
        let shape = (blocks(count as usize, GRID_THREADS), GRID_THREADS);
        let kernel = &self.keys[usize::from(periodic)];
        // SAFETY: the module's promise.
        unsafe {
            kernel.start(
                stream,
                shape,
                &[&positions, &count, lattice, points, &counts, &keys, &status],
            )
        }
    }

    /// The keys of a sparse table; `slots` and the table's ids are `NONE` throughout.
    pub(crate) fn keys_sparse(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        lattice: &Lattice,
        points: &Points,
        slots: CUdeviceptr,
    ) -> Result<(), Error> {
        let Sorting {
            positions,
            count,
            counts,
            keys,
            status,
            ..
        } = *sorting;
        let Points {
            ids, bricks, mask, ..
        } = *points;
        let shape = (blocks(count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise; there are more slots than points.
        unsafe {
            self.claim_bricks.start(
                stream,
                shape,
                &[
                    &positions, &count, lattice, &mask, &slots, &ids, &bricks, &keys, &status,
                ],
            )
        }?;
        // SAFETY: the module's promise.
        unsafe {
            self.keys_sparse
                .start(stream, shape, &[&count, &ids, &counts, &keys])
        }
    }

    pub(crate) fn scan(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let Sorting {
            counts,
            tiles,
            status,
            cells,
            ..
        } = *sorting;
        let tiles_in_all = scan_tiles(cells) as u32;
        // SAFETY: the module's promise; counts and starts are padded to whole tiles.
        unsafe {
            self.scan.start(
                stream,
                (tiles_in_all, GRID_THREADS),
                &[&counts, &starts, &tiles_in_all, &tiles, &status],
            )
        }
    }

    pub(crate) fn list_scan(
        &self,
        stream: &Queue,
        counts: CUdeviceptr,
        starts: CUdeviceptr,
        items: usize,
        tiles: CUdeviceptr,
        status: CUdeviceptr,
    ) -> Result<(), Error> {
        let tiles_in_all = scan_tiles(items) as u32;
        // SAFETY: the module's promise; counts and starts are padded to whole tiles.
        unsafe {
            self.list_scan.start(
                stream,
                (tiles_in_all, GRID_THREADS),
                &[&counts, &starts, &tiles_in_all, &tiles, &status],
            )
        }
    }

    pub(crate) fn place(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let Sorting {
            count,
            keys,
            placed,
            ..
        } = *sorting;
        let shape = (blocks(count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.place
                .start(stream, shape, &[&keys, &starts, &count, &placed])
        }
    }

    pub(crate) fn settle_crowded(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let Sorting { placed, cells, .. } = *sorting;
        let cells = cells as u32;
        // SAFETY: the module's promise.
        unsafe {
            self.settle_crowded
                .start(stream, (cells.min(1024), 1024), &[&starts, &cells, &placed])
        }
    }

    pub(crate) fn settle(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        lattice: &Lattice,
        points: &Points,
        periodic: bool,
    ) -> Result<(), Error> {
        let Sorting {
            positions,
            count,
            placed,
            status,
            ..
        } = *sorting;
        let Points {
            at,
            wraps,
            starts,
            flags,
            ..
        } = *points;
        let shape = (blocks(count as usize, GRID_THREADS), GRID_THREADS);
        let kernel = &self.settle[usize::from(periodic)];
        // SAFETY: the module's promise.
        unsafe {
            kernel.start(
                stream,
                shape,
                &[
                    &positions, lattice, &starts, &placed, &count, &at, &wraps, &flags, &status,
                ],
            )
        }
    }

    pub(crate) fn counts_in_order(
        &self,
        stream: &Queue,
        points: &Points,
        counts: CUdeviceptr,
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (blocks(points.count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.counts_in_order
                .start(stream, shape, &[&points.at, &counts, &points.count, &out])
        }
    }

    /// `sorted` and `ordered` are starts and lengths of lists, in sorted and in the caller's order.
    pub(crate) fn lists_in_order(
        &self,
        stream: &Queue,
        points: &Points,
        sorted: (CUdeviceptr, CUdeviceptr),
        ordered: (CUdeviceptr, CUdeviceptr),
    ) -> Result<(), Error> {
        let shape = (blocks(points.count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.lists_in_order.start(
                stream,
                shape,
                &[
                    &points.at,
                    &sorted.0,
                    &sorted.1,
                    &points.count,
                    &ordered.0,
                    &ordered.1,
                ],
            )
        }
    }

    /// Brings the starts of `parts` lists, `step` apart, and what stands at `last` behind them to `out`,
    /// memory of the host for one more than these.
    pub(crate) fn list_bounds(
        &self,
        stream: &Queue,
        starts: CUdeviceptr,
        (step, parts, last): (u32, u32, u32),
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        // SAFETY: the module's promise.
        unsafe {
            self.list_bounds.start(
                stream,
                (1, GRID_THREADS),
                &[&starts, &step, &parts, &last, &out],
            )
        }
    }

    pub(crate) fn order_of_points(
        &self,
        stream: &Queue,
        points: &Points,
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (blocks(points.count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.order_of_points
                .start(stream, shape, &[&points.at, &points.count, &out])
        }
    }

    pub(crate) fn fill_values(
        &self,
        stream: &Queue,
        out: CUdeviceptr,
        count: usize,
        value: f32,
    ) -> Result<(), Error> {
        let shape = (blocks(count, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.fill_values
                .start(stream, shape, &[&out, &(count as u64), &value])
        }
    }

    /// `from` holds `numbers` numbers, `width` a point, which go to the first of `stride` of each at `to`.
    pub(crate) fn interleave(
        &self,
        stream: &Queue,
        from: CUdeviceptr,
        (width, stride): (u32, u32),
        numbers: usize,
        to: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (blocks(numbers, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.interleave.start(
                stream,
                shape,
                &[&from, &width, &stride, &(numbers as u64), &to],
            )
        }
    }

    /// `from` and `to` hold `channels` numbers of four bytes per point.
    pub(crate) fn values_in_order(
        &self,
        stream: &Queue,
        points: &Points,
        from: CUdeviceptr,
        channels: u32,
        to: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (blocks(points.count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.values_in_order.start(
                stream,
                shape,
                &[&points.at, &from, &channels, &points.count, &to],
            )
        }
    }
}

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
    gather: Option<Kernel>,
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
    /// `lists`: the program writes lists; `pairs`: it evaluates a pair kernel.
    pub(crate) fn load(module: &Module, lists: bool, pairs: bool) -> Result<Self, Error> {
        let (traverse, threads) = match lists {
            true => ("flat_lists", TRAVERSAL_THREADS),
            false => ("flat", FLAT_THREADS),
        };
        Ok(Self {
            traverse: Kernel::of(module, traverse)?,
            threads,
            gather: gather(module, pairs)?,
        })
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
        let shape = (blocks(cells, TASK_THREADS), TASK_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.list.start(stream, shape, &[walk, &tasks]) }?;
        // As many warps as the device can hold; they take tasks until none is left.
        let shape = (16 * multiprocessors.max(1), TRAVERSAL_THREADS);
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
        // What is too much by far is for the device to refuse.
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
        let shape = (blocks(cells, TASK_THREADS), TASK_THREADS);
        // SAFETY: the module's promise.
        unsafe { self.list.start(stream, shape, &[walk, &tasks]) }?;
        // As in `Tasks::run`.
        let shape = (16 * multiprocessors.max(1), TRAVERSAL_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.traverse
                .start(stream, shape, &[walk, outlet, &tasks, &sums])
        }?;
        let shape = (
            blocks(walk.targets.count as usize, GRID_THREADS),
            GRID_THREADS,
        );
        // SAFETY: the module's promise; planes that were not written are of cells that hold no point,
        // which the kernel does not look at.
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

    /// Grids that a traversal of so many cells can have in flight.
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
