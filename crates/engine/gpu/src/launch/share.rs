//! The kernels of share.cu: the targets of one backend gathered from a sorted set, and what crosses
//! the bus between two backends.
//!
//! Gathering is a stable counting sort by part. Tiles of [`ShareKernels::tiles`] points count the
//! points of every part; the counts lie part by part and tile by tile, so one prefix sum
//! ([`list_scan`](super::GridKernels::list_scan)) gives every tile the first place of each part.
//! Points keep the sorted order within a part, because tiles, and warps in a tile, take them in
//! order.

use super::{
    kernel::{Kernel, LaunchShape, one_each},
    layout::{Lattice, Parts, Points, StridedChannels},
};
use crate::constants::{GRID_THREADS, SHARE_TILE};
use crate::{
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;

/// The kernels of one context.
#[derive(Debug)]
pub(crate) struct ShareKernels {
    /// Part of every point, and points of every part in every tile.
    count: Kernel,
    /// The same for points that are chosen one by one.
    choose: Kernel,
    /// Points before every part.
    bounds: Kernel,
    /// Points to their parts.
    place: Kernel,
    /// The cell table of an ungrouped share.
    table: Kernel,
    /// Channels of a halo, transposed.
    fields: Kernel,
    /// Results of a halo to those of all targets.
    results: Kernel,
}

/// Arrays of the kernels that find and write the points of a share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sharing {
    /// Part of every sorted point, a byte each; 255 for points of the other backend.
    pub(crate) keys: CUdeviceptr,
    /// Points of every part in every tile: groups × tiles numbers of 32 bits.
    pub(crate) counts: CUdeviceptr,
    /// Their prefix sums, of 64 bits.
    pub(crate) starts: CUdeviceptr,
    /// Points before every part, and all of them behind the last: groups + 1 numbers of 64 bits.
    pub(crate) bounds: CUdeviceptr,
    /// Parts that are told apart: 1 where the share is not grouped.
    pub(crate) groups: u32,
    /// Position and index of every point of the share.
    pub(crate) at: CUdeviceptr,
    /// Image counts of every point of the share; 0 in an open domain.
    pub(crate) wraps: CUdeviceptr,
    /// Position of every point of the share in double precision; 0 in single precision.
    pub(crate) given: CUdeviceptr,
    /// Place of every point of the share in the whole set.
    pub(crate) slots: CUdeviceptr,
    /// Per point of the whole set, points of the share before it; 0 where no table is asked for.
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
    pub(crate) values: StridedChannels,
    /// Room for the channels of `count` points.
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
    /// `OVERWRITE`, `ADD`, `KEEP_SMALLER` or `KEEP_LARGER` of `crate::constants`.
    pub(crate) how: u32,
    /// Results of all targets.
    pub(crate) results: CUdeviceptr,
}

/// A block of [`GRID_THREADS`] threads for every tile.
fn per_tile(tiles: u32) -> LaunchShape {
    LaunchShape::of(tiles, GRID_THREADS)
}

impl ShareKernels {
    /// Compiles share.cu, or takes it from the cache, and looks up its kernels.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&super::sources::SHARE))?;
        let kernel = |name| Kernel::of(&module, name);
        Ok(Self {
            count: kernel("share_count")?,
            choose: kernel("share_choose")?,
            bounds: kernel("share_bounds")?,
            place: kernel("share_place")?,
            table: kernel("share_table")?,
            fields: kernel("share_fields")?,
            results: kernel("share_results")?,
        })
    }

    /// Number of tiles of `points` points, 1 at least.
    pub(crate) fn tiles(points: usize) -> usize {
        points.div_ceil(SHARE_TILE as usize).max(1)
    }

    /// Finds the part of every point and counts the points of every part in every tile. Without
    /// `grouped` all parts of this backend count as one.
    pub(crate) fn count(
        &self,
        queue: &Queue,
        points: &Points,
        lattice: &Lattice,
        parts: &Parts,
        grouped: bool,
        to: &Sharing,
    ) -> Result<(), Error> {
        let tiles = Self::tiles(points.count as usize) as u32;
        let Points { at, count, .. } = points;
        let grouped = u32::from(grouped);
        // SAFETY: as share_count declares; `counts` has groups × tiles numbers, and there are at
        // most MAX_PARTS groups.
        unsafe {
            self.count.start(
                queue,
                per_tile(tiles),
                &[
                    at, count, lattice, parts, &grouped, &to.keys, &to.counts, &tiles,
                ],
            )
        }
    }

    /// Finds the points whose byte in the caller's order is not 0, and counts those of every tile:
    /// one part.
    pub(crate) fn choose(
        &self,
        queue: &Queue,
        points: &Points,
        chosen: CUdeviceptr,
        to: &Sharing,
    ) -> Result<(), Error> {
        let tiles = Self::tiles(points.count as usize) as u32;
        let Points { at, count, .. } = points;
        // SAFETY: as share_choose declares; `chosen` has a byte per point, and `counts` a number
        // per tile.
        unsafe {
            self.choose.start(
                queue,
                per_tile(tiles),
                &[at, count, &chosen, &to.keys, &to.counts],
            )
        }
    }

    /// Places the points of all parts once `starts` holds the sums of the counts.
    pub(crate) fn place(&self, queue: &Queue, points: &Points, to: &Sharing) -> Result<(), Error> {
        let tiles = Self::tiles(points.count as usize) as u32;
        let wraps = if to.wraps == 0 { 0 } else { points.wraps };
        let given = if to.given == 0 { 0 } else { points.given };
        // SAFETY: as share_bounds and share_place declare; a share has at most as many points as
        // the set, for which its arrays have room.
        unsafe {
            self.bounds.start(
                queue,
                per_tile(1),
                &[&to.starts, &to.groups, &tiles, &to.bounds],
            )?;
            self.place.start(
                queue,
                per_tile(tiles),
                &[
                    &points.at,
                    &wraps,
                    &points.flags,
                    &to.keys,
                    &points.count,
                    &given,
                    &to.starts,
                    &to.groups,
                    &tiles,
                    &to.at,
                    &to.wraps,
                    &to.given,
                    &to.slots,
                    &to.ranks,
                ],
            )
        }
    }

    /// The cell table of an ungrouped share: points of it before every cell of the set's table, and
    /// all of them behind the last.
    pub(crate) fn table(
        &self,
        queue: &Queue,
        points: &Points,
        from: &Sharing,
        starts: CUdeviceptr,
    ) -> Result<(), Error> {
        let Points { cells, count, .. } = points;
        let shape = one_each(*cells as usize + 1);
        // SAFETY: as share_table declares; `starts` has one element more than there are cells.
        unsafe {
            self.table.start(
                queue,
                shape,
                &[
                    &points.starts,
                    cells,
                    &from.ranks,
                    count,
                    &from.bounds,
                    &starts,
                ],
            )
        }
    }

    /// Brings the channels of the points of a share together, one channel after the other.
    pub(crate) fn fields(&self, queue: &Queue, gather: HaloGather) -> Result<(), Error> {
        let HaloGather {
            at,
            count,
            values,
            to,
        } = gather;
        let StridedChannels {
            address,
            stride,
            channels,
        } = values;
        let shape = one_each(count as usize * channels as usize);
        // SAFETY: as share_fields declares; every point's index is below the number of points of
        // the set, for which the caller has checked the length of the values.
        unsafe {
            self.fields.start(
                queue,
                shape,
                &[&at, &count, &address, &stride, &channels, &to],
            )
        }
    }

    /// Writes results of some targets to where those of all targets are, or combines them with
    /// what is there.
    pub(crate) fn results(&self, queue: &Queue, scatter: HaloScatter) -> Result<(), Error> {
        let HaloScatter {
            targets,
            count,
            found,
            outputs,
            how,
            results,
        } = scatter;
        let shape = one_each(count as usize * outputs as usize);
        // SAFETY: as share_results declares; the caller has checked on the host that every index
        // is below the number of targets.
        unsafe {
            self.results.start(
                queue,
                shape,
                &[&targets, &count, &found, &outputs, &how, &results],
            )
        }
    }
}
