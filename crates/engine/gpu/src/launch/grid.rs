//! The kernels of grid.cu: sorting a set into cells, scans, and passes between orders.
//!
//! The module [`sort`](crate::backend) of the room above has the algorithm; here is one function
//! per kernel. All of them start one thread per point, cell or number, except for the scans (a
//! block per tile) and the two that give a block several items. None waits for the device.
//!
//! Kernels of an open domain need no wraps and find cells by fewer operations, so keys and the
//! sorted points have two kernels each, chosen by the lattice. A sparse table has kernels of its
//! own for keys; everything behind the keys is the same for both tables, because a cell is a number
//! from there on.
//!
//! Arrays are addressed by 32-bit indices of points, and by 64-bit numbers where an index is
//! multiplied by a number of channels or counts entries of lists.

use super::{
    kernel::{Argument, Kernel, LaunchShape, one_each, scan_tiles},
    layout::{Lattice, Points, StridedChannels},
};
use crate::constants::{GRID_THREADS, SETTLE_THREADS};
use crate::{
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::Precision;

/// Most blocks of a kernel whose blocks go on to further items: enough to fill the largest devices.
const MAX_BLOCKS: u32 = 1024;

/// The kernels of one context. Pairs of them are for open and for periodic domains.
#[derive(Debug)]
pub(crate) struct GridKernels {
    /// Clears the status and the tiles of a scan.
    reset: Kernel,
    /// Bounds of positions, by a minimum and a maximum per block.
    bounds: Kernel,
    /// Cell and rank of every point, for dense tables.
    keys: [Kernel; 2],
    /// Brick of every point, for sparse tables.
    claim_bricks: Kernel,
    /// From bricks to cells and ranks.
    keys_sparse: Kernel,
    /// Prefix sums of 32 bits over cells.
    scan: Kernel,
    /// Prefix sums of 64 bits over lists.
    list_scan: Kernel,
    /// Squares of the numbers of points of cells.
    occupancy: Kernel,
    /// Points to their cells.
    place: Kernel,
    /// Order within cells of more than 1,024 points.
    settle_large: Kernel,
    /// Order within all other cells, and the sorted points.
    settle: [Kernel; 2],
    /// Starts of parts of the lists, to the host.
    list_bounds: Kernel,
    /// The caller's index of every sorted point.
    order_of_points: Kernel,
    /// Starts and lengths of lists to the caller's order.
    lists_in_order: Kernel,
    /// Values to sorted order.
    values_in_order: Kernel,
    /// One value everywhere.
    fill_values: Kernel,
    /// Channels of one field beside those of others.
    interleave: Kernel,
}

/// A set that is sorted: its positions, its table, and the scratch of the sort. Arrays per point
/// have `points.count` elements, arrays per cell `points.cells`, padded to whole tiles of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sorting<'a> {
    /// The cells.
    pub(crate) lattice: &'a Lattice,
    /// The table, and the arrays that the sorted points go to.
    pub(crate) points: Points,
    /// x, y and z of one point after the other, in the caller's order and in the precision of the
    /// kernels.
    pub(crate) positions: CUdeviceptr,
    /// Points of every cell: zero before the first sort, and again after every scan.
    pub(crate) counts: CUdeviceptr,
    /// Per point the number of its cell and its rank there.
    pub(crate) keys: CUdeviceptr,
    /// Per place among the sorted points the caller's index and the cell.
    pub(crate) placed: CUdeviceptr,
    /// Sparse tables: the slots of the hash table, `NONE` throughout before a sort.
    pub(crate) slots: CUdeviceptr,
    /// State of every tile of the scan.
    pub(crate) tiles: CUdeviceptr,
    /// One `Status`.
    pub(crate) status: CUdeviceptr,
}

impl Sorting<'_> {
    /// Index into pairs of kernels.
    fn domain(&self) -> usize {
        usize::from(self.lattice.is_periodic())
    }

    /// A thread for every point of the set.
    fn one_per_point(&self) -> LaunchShape {
        one_each(self.points.count as usize)
    }
}

/// Numbers that become their exclusive prefix sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// `items` numbers of 32 bits, and zeros up to the end of the last tile.
    pub(crate) counts: CUdeviceptr,
    /// Sums of 64 bits: as many as the padded counts, and the sum of all behind them.
    pub(crate) starts: CUdeviceptr,
    /// How many numbers there are.
    pub(crate) items: usize,
    /// State of every tile.
    pub(crate) tiles: CUdeviceptr,
    /// One `Status`, whose entry `pairs` keeps the largest sum.
    pub(crate) status: CUdeviceptr,
    /// The host has not read the status of the scan before: what it has to see stays.
    pub(crate) keep: bool,
}

/// Start (64 bits) and length (32 bits) of every list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListArrays {
    /// Number of entries before every list.
    pub(crate) starts: CUdeviceptr,
    /// Number of entries of every list.
    pub(crate) counts: CUdeviceptr,
}

impl GridKernels {
    /// Compiles grid.cu, or takes it from the cache, and looks up its kernels.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules, precision: Precision) -> Result<Self, Error> {
        let module = modules.load(&Self::program(precision))?;
        let kernel = |name| Kernel::overlapping(&module, name);
        Ok(Self {
            reset: kernel("grid_reset")?,
            bounds: kernel("grid_bounds")?,
            keys: [kernel("grid_keys_open")?, kernel("grid_keys_periodic")?],
            claim_bricks: kernel("grid_claim_bricks")?,
            keys_sparse: kernel("grid_keys_sparse")?,
            scan: kernel("grid_scan")?,
            list_scan: kernel("list_scan")?,
            occupancy: kernel("grid_occupancy")?,
            place: kernel("grid_place")?,
            settle_large: kernel("grid_settle_large")?,
            settle: [kernel("grid_settle_open")?, kernel("grid_settle_periodic")?],
            list_bounds: kernel("list_bounds")?,
            order_of_points: kernel("order_of_points")?,
            lists_in_order: kernel("lists_in_order")?,
            values_in_order: kernel("values_in_order")?,
            fill_values: kernel("fill_values")?,
            interleave: kernel("interleave")?,
        })
    }

    /// The program for positions in a precision.
    pub(crate) fn program(precision: Precision) -> Program {
        let program = Program::from(&super::sources::GRID);
        match precision {
            Precision::Single => program,
            Precision::Double => program.define("NF_DOUBLE", 1),
        }
    }

    /// Clears `tiles` tiles of a scan and the status. `keep` keeps the entries of the status that
    /// the host has not yet read for the step before, and notes in `failed` whether that one
    /// failed.
    pub(crate) fn reset(
        &self,
        queue: &Queue,
        status: CUdeviceptr,
        tiles: CUdeviceptr,
        tiles_in_all: usize,
        keep: bool,
    ) -> Result<(), Error> {
        let (count, keep) = (tiles_in_all as u32, u32::from(keep));
        // SAFETY: as grid_reset declares; `tiles` has room for that number.
        unsafe {
            self.reset.start(
                queue,
                one_each(tiles_in_all),
                &[&status, &tiles, &count, &keep],
            )
        }
    }

    /// Smallest and largest coordinates of `count` positions into the status, and how many
    /// positions are not finite.
    pub(crate) fn bounds(
        &self,
        queue: &Queue,
        positions: CUdeviceptr,
        count: u32,
        status: CUdeviceptr,
    ) -> Result<(), Error> {
        let mut shape = one_each(count as usize);
        shape.blocks = shape.blocks.min(MAX_BLOCKS);
        // SAFETY: as grid_bounds declares; there are `count` positions.
        unsafe {
            self.bounds
                .start(queue, shape, &[&positions, &count, &status])
        }
    }

    /// Finds the cell of every point and counts the points of every cell. Points that cannot be
    /// placed are counted in the status and get no cell.
    pub(crate) fn keys(&self, queue: &Queue, sorting: &Sorting<'_>) -> Result<(), Error> {
        let Sorting {
            lattice,
            points,
            positions,
            counts,
            keys,
            slots,
            status,
            ..
        } = *sorting;
        let (shape, count) = (sorting.one_per_point(), points.count);
        if points.sparse == 0 {
            let arguments: &[&dyn Argument] = &[
                &positions, &count, lattice, &points, &counts, &keys, &status,
            ];
            // SAFETY: as grid_keys_open and grid_keys_periodic declare.
            return unsafe { self.keys[sorting.domain()].start(queue, shape, arguments) };
        }
        let Points {
            mask, ids, bricks, ..
        } = points;
        // SAFETY: as grid_claim_bricks declares. There are at least twice as many slots as points,
        // so every search for a free one ends, and a brick for every point.
        unsafe {
            self.claim_bricks.start(
                queue,
                shape,
                &[
                    &positions, &count, lattice, &mask, &slots, &ids, &bricks, &keys, &status,
                ],
            )
        }?;
        // SAFETY: as grid_keys_sparse declares; the kernel before wrote keys and ids.
        unsafe {
            self.keys_sparse
                .start(queue, shape, &[&count, &ids, &counts, &keys])
        }
    }

    /// Turns the points of every cell into the start of every cell, and clears the counts.
    pub(crate) fn scan(&self, queue: &Queue, sorting: &Sorting<'_>) -> Result<(), Error> {
        let points = &sorting.points;
        let tiles = scan_tiles(points.cells as usize) as u32;
        // SAFETY: as grid_scan declares; counts and starts are padded to whole tiles.
        unsafe {
            self.scan.start(
                queue,
                LaunchShape::of(tiles, GRID_THREADS),
                &[
                    &sorting.counts,
                    &points.starts,
                    &tiles,
                    &sorting.tiles,
                    &sorting.status,
                ],
            )
        }
    }

    /// Prefix sums of counts of neighbours, or of points of parts; resets tiles and status first.
    pub(crate) fn list_scan(&self, queue: &Queue, scan: &Scan) -> Result<(), Error> {
        let Scan {
            counts,
            starts,
            items,
            tiles,
            status,
            keep,
        } = *scan;
        self.reset(queue, status, tiles, scan_tiles(items), keep)?;
        let count = scan_tiles(items) as u32;
        // SAFETY: as list_scan declares; counts and starts are padded to whole tiles.
        unsafe {
            self.list_scan.start(
                queue,
                LaunchShape::of(count, GRID_THREADS),
                &[&counts, &starts, &count, &tiles, &status],
            )
        }
    }

    /// Adds the squares of the numbers of points of all cells of a sorted set to a number of 64
    /// bits.
    pub(crate) fn occupancy(
        &self,
        queue: &Queue,
        points: &Points,
        sum: CUdeviceptr,
    ) -> Result<(), Error> {
        let Points { starts, cells, .. } = points;
        let mut shape = one_each(*cells as usize);
        shape.blocks = shape.blocks.min(MAX_BLOCKS);
        // SAFETY: as grid_occupancy declares; behind the starts of the cells is that of no cell.
        unsafe { self.occupancy.start(queue, shape, &[starts, cells, &sum]) }
    }

    /// Brings the points of every cell together, in arbitrary order within the cell.
    pub(crate) fn place(&self, queue: &Queue, sorting: &Sorting<'_>) -> Result<(), Error> {
        let Points { starts, count, .. } = sorting.points;
        // SAFETY: as grid_place declares; a rank is below its cell's count.
        unsafe {
            self.place.start(
                queue,
                sorting.one_per_point(),
                &[&sorting.keys, &starts, &count, &sorting.placed],
            )
        }
    }

    /// Sorts the points of cells of more than 1,024 points by index, one block a cell, in place.
    pub(crate) fn settle_large(&self, queue: &Queue, sorting: &Sorting<'_>) -> Result<(), Error> {
        let Points { starts, cells, .. } = sorting.points;
        let shape = LaunchShape::of(cells.min(MAX_BLOCKS), SETTLE_THREADS);
        // SAFETY: as grid_settle_large declares.
        unsafe {
            self.settle_large
                .start(queue, shape, &[&starts, &cells, &sorting.placed])
        }
    }

    /// Writes the sorted points, every cell in the order of the caller's indices, and the flags.
    /// After a sort that failed the points stay in the caller's order, within no radius.
    pub(crate) fn settle(&self, queue: &Queue, sorting: &Sorting<'_>) -> Result<(), Error> {
        let Sorting {
            lattice,
            points,
            positions,
            placed,
            status,
            ..
        } = *sorting;
        let Points {
            at,
            wraps,
            proxies,
            boxes,
            given,
            starts,
            flags,
            count,
            ..
        } = points;
        // SAFETY: as grid_settle_open and grid_settle_periodic declare; `at` has room for what is
        // read ahead.
        unsafe {
            self.settle[sorting.domain()].start(
                queue,
                sorting.one_per_point(),
                &[
                    &positions, lattice, &starts, &placed, &count, &at, &wraps, &proxies, &boxes,
                    &given, &flags, &status,
                ],
            )
        }
    }

    /// Brings starts and lengths of lists from sorted order to the caller's.
    pub(crate) fn lists_in_order(
        &self,
        queue: &Queue,
        points: &Points,
        sorted: ListArrays,
        ordered: ListArrays,
    ) -> Result<(), Error> {
        let Points { at, count, .. } = points;
        // SAFETY: as lists_in_order declares; `ordered` has elements for every index of the set.
        unsafe {
            self.lists_in_order.start(
                queue,
                one_each(*count as usize),
                &[
                    at,
                    &sorted.starts,
                    &sorted.counts,
                    count,
                    &ordered.starts,
                    &ordered.counts,
                ],
            )
        }
    }

    /// Copies the starts of `parts` lists, `step` apart, and the start number `last` behind them,
    /// to `out`: page-locked memory of the host with `parts` + 1 elements, which the device writes
    /// to directly.
    pub(crate) fn list_bounds(
        &self,
        queue: &Queue,
        starts: CUdeviceptr,
        step: u32,
        parts: u32,
        last: u32,
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        // One thread per bound: there may be more of them than threads of a block.
        let shape = one_each(parts as usize + 1);
        // SAFETY: as list_bounds declares; no start behind `last` is read.
        unsafe {
            self.list_bounds
                .start(queue, shape, &[&starts, &step, &parts, &last, &out])
        }
    }

    /// The caller's index of every sorted point.
    pub(crate) fn order_of_points(
        &self,
        queue: &Queue,
        points: &Points,
        out: CUdeviceptr,
    ) -> Result<(), Error> {
        let Points { at, count, .. } = points;
        // SAFETY: as order_of_points declares; `out` has one element per point.
        unsafe {
            self.order_of_points
                .start(queue, one_each(*count as usize), &[at, count, &out])
        }
    }

    /// Writes `value` to the first `count` elements at `out`.
    pub(crate) fn fill_values(
        &self,
        queue: &Queue,
        out: CUdeviceptr,
        count: usize,
        value: f32,
    ) -> Result<(), Error> {
        // SAFETY: as fill_values declares.
        unsafe {
            self.fill_values
                .start(queue, one_each(count), &[&out, &(count as u64), &value])
        }
    }

    /// Copies the channels of each of `points` points, or its index, to the first of the numbers
    /// that every point has at `to`.
    pub(crate) fn interleave(
        &self,
        queue: &Queue,
        from: StridedChannels,
        points: usize,
        to: StridedChannels,
    ) -> Result<(), Error> {
        let numbers = points as u64 * u64::from(from.channels);
        // SAFETY: as interleave declares; both have the channels of every point within a stride.
        unsafe {
            self.interleave.start(
                queue,
                one_each(numbers as usize),
                &[
                    &from.address,
                    &from.stride,
                    &from.channels,
                    &numbers,
                    &to.address,
                    &to.stride,
                ],
            )
        }
    }

    /// Brings values from the caller's order into sorted order, `channels` words of four bytes per
    /// point.
    pub(crate) fn values_in_order(
        &self,
        queue: &Queue,
        points: &Points,
        from: CUdeviceptr,
        channels: u32,
        to: CUdeviceptr,
    ) -> Result<(), Error> {
        let Points { at, count, .. } = points;
        // SAFETY: as values_in_order declares; both arrays have `channels` words per point.
        unsafe {
            self.values_in_order.start(
                queue,
                one_each(*count as usize),
                &[at, &from, &channels, count, &to],
            )
        }
    }
}
