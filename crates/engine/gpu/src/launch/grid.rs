//! The kernels of grid.cu.

use super::{
    kernel::{Kernel, blocks, scan_tiles},
    layout::{Lattice, Points},
};
use crate::{
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_kernels::constants::{GRID_THREADS, SETTLE_THREADS};

/// Those of a device.
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
    settle_large: Kernel,
    settle: [Kernel; 2],
    counts_in_order: Kernel,
    list_bounds: Kernel,
    order_of_points: Kernel,
    lists_in_order: Kernel,
    values_in_order: Kernel,
    fill_values: Kernel,
    interleave: Kernel,
}

/// Arguments of the kernels that sort a set.
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
            settle_large: kernel("grid_settle_large")?,
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

    /// Clears the tiles of a scan, and the status. `keep` keeps the entries of the status that the
    /// host has not yet read for the step before.
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

    pub(crate) fn settle_large(
        &self,
        stream: &Queue,
        sorting: &Sorting,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let Sorting { placed, cells, .. } = *sorting;
        let cells = cells as u32;
        // SAFETY: the module's promise.
        unsafe {
            self.settle_large.start(
                stream,
                (cells.min(1024), SETTLE_THREADS),
                &[&starts, &cells, &placed],
            )
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

    /// Brings the starts of `parts` lists, `step` apart, and what stands at `last` behind them to
    /// `out`, memory of the host for one more than these.
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

    /// `from` holds `numbers` numbers, `width` a point, which go to the first of `stride` of each
    /// at `to`.
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
