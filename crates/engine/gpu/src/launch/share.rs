//! The kernels of share.cu.

use super::{
    kernel::{Kernel, blocks},
    layout::{Lattice, Parts, Points},
};
use crate::{
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_kernels::constants::{GRID_THREADS, SHARE_TILE};

/// Those of a device.
#[derive(Debug)]
pub(crate) struct ShareKernels {
    count: Kernel,
    bounds: Kernel,
    place: Kernel,
    table: Kernel,
    fields: Kernel,
    results: Kernel,
}

/// Arguments of the kernels that find and write the points of a share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sharing {
    pub(crate) keys: CUdeviceptr,
    pub(crate) counts: CUdeviceptr,
    pub(crate) starts: CUdeviceptr,
    pub(crate) bounds: CUdeviceptr,
    /// Parts that are told apart.
    pub(crate) groups: u32,
    pub(crate) at: CUdeviceptr,
    pub(crate) wraps: CUdeviceptr,
    pub(crate) slots: CUdeviceptr,
    /// 0 where no table is asked for.
    pub(crate) ranks: CUdeviceptr,
}

/// Channels of the points of a share, brought together one channel after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HaloGather {
    /// Points of the share.
    pub(crate) at: CUdeviceptr,
    /// Number of these points.
    pub(crate) count: u32,
    /// Channels of all points of the set, in the caller's order.
    pub(crate) values: CUdeviceptr,
    /// Numbers from one point's channels to the next point's.
    pub(crate) stride: u32,
    /// Channels of a point.
    pub(crate) channels: u32,
    /// Room for `count` × `channels` numbers.
    pub(crate) to: CUdeviceptr,
}

/// Results of some targets, put among those of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HaloScatter {
    /// The caller's indices of these targets.
    pub(crate) targets: CUdeviceptr,
    /// Number of these targets.
    pub(crate) count: u32,
    /// Their results, one target after the other.
    pub(crate) found: CUdeviceptr,
    /// Numbers of a result.
    pub(crate) outputs: u32,
    /// `OVERWRITE`, `ADD`, `KEEP_SMALLER` or `KEEP_LARGER` of `nearfield_kernels::constants`.
    pub(crate) how: u32,
    /// Results of all targets.
    pub(crate) results: CUdeviceptr,
}

impl ShareKernels {
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&nearfield_kernels::SHARE))?;
        let kernel = |name| Kernel::of(&module, name);
        Ok(Self {
            count: kernel("share_count")?,
            bounds: kernel("share_bounds")?,
            place: kernel("share_place")?,
            table: kernel("share_table")?,
            fields: kernel("share_fields")?,
            results: kernel("share_results")?,
        })
    }

    /// Tiles of so many points.
    pub(crate) fn tiles(points: usize) -> usize {
        points.div_ceil(SHARE_TILE as usize).max(1)
    }

    /// Counts the points of every part in every tile; `counts` has room for groups × tiles.
    pub(crate) fn count(
        &self,
        stream: &Queue,
        points: &Points,
        lattice: &Lattice,
        parts: &Parts,
        grouped: bool,
        to: &Sharing,
    ) -> Result<(), Error> {
        let tiles = Self::tiles(points.count as usize) as u32;
        // SAFETY: the module's promise.
        unsafe {
            self.count.start(
                stream,
                (tiles, GRID_THREADS),
                &[
                    &points.at,
                    &points.count,
                    lattice,
                    parts,
                    &u32::from(grouped),
                    &to.keys,
                    &to.counts,
                    &tiles,
                ],
            )
        }
    }

    /// Places the points of all parts once `starts` holds the sums of the counts.
    pub(crate) fn place(&self, stream: &Queue, points: &Points, to: &Sharing) -> Result<(), Error> {
        let tiles = Self::tiles(points.count as usize) as u32;
        let wraps = if to.wraps == 0 { 0 } else { points.wraps };
        // SAFETY: the module's promise; there are at most as many points as `at` has room for.
        unsafe {
            self.bounds.start(
                stream,
                (1, GRID_THREADS),
                &[&to.starts, &to.groups, &tiles, &to.bounds],
            )?;
            self.place.start(
                stream,
                (tiles, GRID_THREADS),
                &[
                    &points.at,
                    &wraps,
                    &points.flags,
                    &to.keys,
                    &points.count,
                    &to.starts,
                    &to.groups,
                    &tiles,
                    &to.at,
                    &to.wraps,
                    &to.slots,
                    &to.ranks,
                ],
            )
        }
    }

    /// The cell table of an ungrouped share, for one cell more than the points' table has.
    pub(crate) fn table(
        &self,
        stream: &Queue,
        points: &Points,
        from: &Sharing,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (
            blocks(points.cells as usize + 1, GRID_THREADS),
            GRID_THREADS,
        );
        // SAFETY: the module's promise.
        unsafe {
            self.table.start(
                stream,
                shape,
                &[
                    &points.starts,
                    &points.cells,
                    &from.ranks,
                    &points.count,
                    &from.bounds,
                    &starts,
                ],
            )
        }
    }

    /// Brings `channels` of each of the `count` points at `at` together, one channel after the
    /// other.
    pub(crate) fn fields(&self, stream: &Queue, gather: HaloGather) -> Result<(), Error> {
        let HaloGather {
            at,
            count,
            values,
            stride,
            channels,
            to,
        } = gather;
        let shape = (
            blocks(count as usize * channels as usize, GRID_THREADS),
            GRID_THREADS,
        );
        // SAFETY: the module's promise; every point's index is below the number of points, for
        // which the caller has checked the values.
        unsafe {
            self.fields.start(
                stream,
                shape,
                &[&at, &count, &values, &stride, &channels, &to],
            )
        }
    }

    /// Puts the results `found` of `count` targets where those of all targets are.
    pub(crate) fn results(&self, stream: &Queue, scatter: HaloScatter) -> Result<(), Error> {
        let HaloScatter {
            targets,
            count,
            found,
            outputs,
            how,
            results,
        } = scatter;
        let shape = (
            blocks(count as usize * outputs as usize, GRID_THREADS),
            GRID_THREADS,
        );
        // SAFETY: the module's promise; the caller has checked that all targets have results there.
        unsafe {
            self.results.start(
                stream,
                shape,
                &[&targets, &count, &found, &outputs, &how, &results],
            )
        }
    }
}
