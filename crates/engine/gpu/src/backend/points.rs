//! One point set on the device: its buffers, and the table of cells that suits its points.
//!
//! # Tables
//!
//! A dense table has one start per cell of the box around the points, padded by empty cells on open
//! axes. Looking up a row of cells is one load, and the padding makes bounds checks unnecessary. It
//! is used up to 32 cells per point, or 2²⁰ cells for small sets. Where other sets share the box
//! that is 32 cells per point of all sets, if no more than 128 per point of its own: a tank's walls
//! are few beside its water, and finding them by hashing takes several times as long.
//!
//! Sets that are spread farther have a sparse table: bricks of 8 cells along x, found by hashing,
//! for cells around points only. Its size follows from the number of points, so an outlier costs no
//! memory. A lookup is a search in the hash table, which is at most half full.
//!
//! # Proxies
//!
//! Walks around single targets compare proxies ([`WrappedProxies`](nearfield_grid::WrappedProxies))
//! where positions themselves do not serve: where points lie outside a periodic box, and in double
//! precision. The sort makes them, because it has the place of every point in the box anyway.
//!
//! | precision | `at` | beside it |
//! | --- | --- | --- |
//! | `f32` | positions | `wraps`, `boxes`, `proxies`, written if a point lies outside the box |
//! | `f64` | proxies | `given`, the positions; `wraps` as above |
//!
//! So a set of points inside their box is walked by its positions in `f32`, as if there were no
//! proxies, and a step whose first point leaves the box needs nothing from the host. A periodic set
//! in `f32` holds 36 bytes a point for that. A set in `f64` holds 24 bytes a point for `given`,
//! takes 24 instead of 12 for positions, and has no `proxies`.
//!
//! # States of a set
//!
//! | state | positions | may be |
//! | --- | --- | --- |
//! | expected | room for them | received, measured |
//! | placed, provisional | of this step, unchecked; the last good ones beside them | sorted, taken back |
//! | sorted | in cells of a lattice | traversed, sorted again |
//! | unlooked | sorted, the status not yet read | traversed, finished |
//!
//! Every sort has a number. Lists and shares remember the numbers that they were made with.
//!
//! # Invariant
//!
//! All buffers are as long as the table and the count of points ask for before a kernel is started;
//! the room `launch` relies on it. Changing count or table marks the set as unsorted, and a set
//! that is not sorted is refused by every traversal.

use super::{gpu::GpuBackend, lattice::DeviceLattice};
use crate::constants::{BRICK, FLAGS, READ_AHEAD};
use crate::{
    error::{Error, ErrorKind},
    launch::{self, Geometry, SCAN_TILE, Sorting, Status, Table, scan_tiles},
    memory::{HostCopy, kept_buffers},
};
use nearfield_grid::{Bounds, Precision};

/// A dense table may have this many cells per point of its set…
const CELLS_PER_POINT: u64 = 32;
/// …and, because points of other sets are looked for in it, this many for each of these…
const CELLS_PER_OTHER: u64 = 64;
/// …but no more than this many per point of its own in all…
const MAX_CELLS_PER_POINT: u64 = 256;
/// …and always this many, so that small sets need no thought.
const SMALL_TABLE: u64 = 1 << 20;
/// Cells are numbered in 32 bits, and tables padded to whole tiles of a scan.
const MAX_CELLS: u64 = u32::MAX as u64 - 2 * SCAN_TILE as u64;

kept_buffers! {
    /// One point set, sorted by (cell, the caller's index).
    pub struct DevicePoints {
        /// x, y and z of one point after the other, in the caller's order: in double precision two
        /// elements each.
        pub(super) positions: f32 = "positions",
        /// Those before the ones that were [placed](GpuBackend::place) and are provisional, else
        /// only room.
        pub(super) before: f32 = "positions",
        /// Position, and the caller's index as bits, of every sorted point.
        pub(super) at: [f32; 4] = "sorted points",
        /// Whole boxes between every sorted point and its image in the box; of periodic domains
        /// only.
        pub(super) wraps: [i32; 4] = "image counts",
        /// Flags of the last sort, as `Points::flags` of contract.cuh.
        pub(super) flags: u32 = "flags of a sort",
        /// Proxy and index of every sorted point; of single precision in periodic domains only.
        pub(super) proxies: [f32; 4] = "sorted proxies",
        /// The counts of `wraps` in a byte each; of single precision in periodic domains only.
        pub(super) boxes: u32 = "packed image counts",
        /// Position of every sorted point; of double precision only.
        pub(super) given: [f64; 3] = "sorted positions",
        /// Sorted points before every cell, and all of them behind the last.
        pub(super) starts: u32 = "the cell table",
        /// Points of every cell while a set is sorted, zero between sorts.
        pub(super) counts: u32 = "counts of cells",
        /// Cell and rank of every point, in the caller's order.
        pub(super) keys: [u32; 2] = "cells of points",
        /// The caller's index and the cell, by cell, in arbitrary order within one.
        pub(super) placed: [u32; 2] = "points of cells",
        /// State of the tiles of the scan.
        pub(super) tiles: u64 = "tiles of a scan",
        /// Findings of the sorts, for the host.
        pub(super) status: Status = "the status",
        /// Sparse tables: a point of the brick in every slot of the hash table.
        pub(super) slots: u32 = "a hash table",
        /// Sparse tables: number of the brick in every slot.
        pub(super) ids: u32 = "a hash table",
        /// Sparse tables: where every brick lies.
        pub(super) bricks: [i64; 3] = "bricks of cells",
    }
    with {
        /// How many these are.
        pub(super) count_before: u32,
        /// The positions were placed, and the host has not seen yet whether they can be used.
        pub(super) provisional: bool,
        /// The points are in the cells of the lattice that they were sorted with last.
        pub(super) sorted: bool,
        /// The number of the lattice that the table was made for.
        pub(super) lattice: u64,
        /// The number of the last sort.
        pub(super) sort: u64,
        /// The status is that of a sort that the host has not looked at.
        pub(super) unlooked: bool,
        /// Where the host reads the status.
        pub(super) answer: Option<HostCopy<Status>>,
        /// The answer is that of the last sort, or on its way.
        pub(super) asked: bool,
        /// Number of points, below 2³² − 1.
        pub(super) count: u32,
        /// Precision of the positions.
        pub(super) precision: Precision,
        /// Dense tables: first cell of the box along each axis.
        pub(super) origin: [i64; 3],
        /// Dense tables: cells of the box along each axis.
        pub(super) dims: [u32; 3],
        /// Empty cells on either side of the box.
        pub(super) pad: [u32; 3],
        /// The radius that cells are made for, if some points have larger ones.
        pub(super) bulk: Option<f32>,
        /// How a dense table is walked around single targets, if it can be.
        pub(super) geometry: Option<Geometry>,
        /// Slots of the hash table of a sparse table, less 1; None where the table is dense.
        pub(super) mask: Option<u32>,
        /// Cells of the table; 0 if there is none that fits.
        pub(super) cells: u32,
        /// True if the last step found cells that are large enough to be sorted apart.
        pub(super) large_cells: bool,
    }
}

/// Maximum number of cells of the dense table of a set of `own` points that shares its lattice with
/// others; all of them have `all` points, as far as that is known.
fn max_dense_cells(own: u32, all: usize) -> u64 {
    let own = u64::from(own);
    let others = (all as u64).saturating_sub(own);
    let wanted = (CELLS_PER_POINT * own).saturating_add(CELLS_PER_OTHER.saturating_mul(others));
    wanted
        .min(MAX_CELLS_PER_POINT * own)
        .clamp(SMALL_TABLE, MAX_CELLS)
}

impl DevicePoints {
    /// A set of no points, which any lattice fits.
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            precision,
            sorted: true,
            ..Self::default()
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Precision of the positions.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Elements of four bytes that `points` positions take.
    pub(super) fn words(&self, points: usize) -> usize {
        match self.precision {
            Precision::Single => 3 * points,
            Precision::Double => 6 * points,
        }
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the points are in their cells, so that they can be traversed.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Returns true if the positions were [placed](GpuBackend::place) and have not been found
    /// usable yet.
    pub fn is_provisional(&self) -> bool {
        self.provisional
    }

    /// Returns to the positions before those that are provisional, if any are. The set must be
    /// [sorted](GpuBackend::sort) then.
    pub fn take_back(&mut self) {
        if std::mem::take(&mut self.provisional) {
            std::mem::swap(&mut self.positions, &mut self.before);
            self.count = self.count_before;
        }
        self.unsort();
    }

    /// The cells are not those of the lattice any more: the set must be [sorted](GpuBackend::sort)
    /// before it is traversed.
    pub fn unsort(&mut self) {
        (self.cells, self.sorted) = (0, self.count == 0);
    }

    /// Refuses a set that is not in its cells.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`].
    pub(super) fn check_sorted(&self) -> Result<(), Error> {
        if self.sorted {
            Ok(())
        } else {
            Err(Error::from(ErrorKind::Unsorted))
        }
    }

    /// Refuses points in cells of another lattice; a set of no points fits any.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLattice`].
    pub(super) fn check_lattice(&self, lattice: &DeviceLattice) -> Result<(), Error> {
        let same = self.precision == lattice.lattice.radius().precision();
        if self.is_empty() || same && self.lattice == lattice.number {
            Ok(())
        } else {
            Err(Error::from(ErrorKind::OtherLattice))
        }
    }

    /// The number of the last sort. No other sort of this process has it.
    pub fn last_sort(&self) -> u64 {
        self.sort
    }

    /// Returns true if the set has cells to be sorted into.
    pub fn has_table(&self) -> bool {
        self.cells > 0
    }

    /// Cells of the table.
    pub fn cells(&self) -> usize {
        self.cells as usize
    }

    /// Returns true if the table holds only cells around points, because they lie far apart.
    pub fn is_sparse(&self) -> bool {
        self.mask.is_some()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// The caller's index of every sorted point.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn order(&self, backend: &GpuBackend) -> Result<Vec<u32>, Error> {
        self.check_sorted()?;
        let mut at = vec![[0.0f32; 4]; self.len()];
        self.at.download(&backend.stream, 0, &mut at)?;
        Ok(at.iter().map(|point| point[3].to_bits()).collect())
    }

    /// The set as kernels take it: addresses as of now, so it is made anew for every launch.
    pub(super) fn layout(&self) -> launch::Points {
        launch::Points {
            at: self.at.address(),
            wraps: self.wraps.address(),
            proxies: self.proxies.address(),
            boxes: self.boxes.address(),
            given: self.given.address(),
            starts: self.starts.address(),
            flags: self.flags.address(),
            ids: self.ids.address(),
            bricks: self.bricks.address(),
            origin: self.origin,
            dims: self.dims,
            mask: self.mask.unwrap_or(0),
            sparse: u32::from(self.mask.is_some()),
            cells: self.cells,
            count: self.count,
            pad: self.pad,
            slots: 0,
        }
    }

    /// Chooses the table: the box of cells around the points, or, where that has many more cells
    /// than there are points, bricks around them. Allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::TooManyPoints`] if the cells of a sparse table cannot be numbered in 32 bits.
    pub(super) fn fit(&mut self, lattice: &DeviceLattice, bounds: &Bounds) -> Result<(), Error> {
        self.cells = 0;
        self.lattice = lattice.number;
        self.bulk = lattice.bulk();
        let table = Table::around(&lattice.lattice, bounds);
        Table {
            origin: self.origin,
            dims: self.dims,
            pad: self.pad,
        } = table;
        self.geometry = None;
        let cells = table.cells();
        if cells <= max_dense_cells(self.count, lattice.points) {
            self.cells = cells as u32;
            self.mask = None;
            self.geometry = Geometry::of(&lattice.lattice, table, lattice.subdivision);
            return Ok(());
        }
        // Every point may have a brick of its own; half of the slots stay empty.
        let bricks = u64::from(self.count) * u64::from(BRICK);
        let too_many = |_| Error::from(ErrorKind::TooManyPoints(self.count as usize));
        self.cells = u32::try_from(bricks).map_err(too_many)?;
        self.mask = Some((2 * u64::from(self.count)).next_power_of_two() as u32 - 1);
        Ok(())
    }

    /// Makes room for the count of points and the table.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub(super) fn reserve(
        &mut self,
        backend: &GpuBackend,
        lattice: &DeviceLattice,
    ) -> Result<(), Error> {
        let (stream, count) = (&backend.stream, self.count as usize);
        self.at.reserve(stream, count + READ_AHEAD as usize)?;
        self.keys.reserve(stream, count)?;
        self.placed.reserve(stream, count)?;
        if lattice.is_periodic() {
            self.wraps.reserve(stream, count)?;
        }
        match self.precision {
            Precision::Single if !lattice.is_periodic() => (),
            Precision::Single => {
                let room = count + READ_AHEAD as usize;
                self.proxies.reserve(stream, room)?;
                self.boxes.reserve(stream, room)?;
            }
            Precision::Double => {
                self.given.reserve(stream, count)?;
            }
        }
        self.flags.reserve(stream, FLAGS as usize)?;
        if let Some(mask) = self.mask {
            self.slots.reserve(stream, mask as usize + 1)?;
            self.ids.reserve(stream, mask as usize + 1)?;
            self.bricks.reserve(stream, count)?;
        }
        let tiles = scan_tiles(self.cells());
        self.tiles.reserve(stream, tiles)?;
        self.starts.reserve(stream, tiles * SCAN_TILE + 1)?;
        // Every step leaves them zero.
        self.counts.reserve_zeroed(stream, tiles * SCAN_TILE)
    }

    /// The set as the kernels of a sort take it.
    pub(super) fn sorting<'a>(&self, lattice: &'a DeviceLattice) -> Sorting<'a> {
        Sorting {
            lattice: &lattice.layout,
            points: self.layout(),
            positions: self.positions.address(),
            counts: self.counts.address(),
            keys: self.keys.address(),
            placed: self.placed.address(),
            slots: self.slots.address(),
            tiles: self.tiles.address(),
            status: self.status.address(),
        }
    }

    /// Starts to bring the status of the last sort to the host, where it is read by
    /// [`GpuBackend::finish`]: one wait then serves several sets.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn ask(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        if self.status.capacity() == 0 {
            return Ok(());
        }
        let answer = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert(backend.host_copy_of(1)?),
        };
        self.status.start_host_copy(&backend.stream, 0, answer, 1)?;
        self.asked = true;
        Ok(())
    }

    /// Waits for the status of the last sort, which is copied first unless that was asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub(super) fn read_status(&mut self, backend: &GpuBackend) -> Result<Status, Error> {
        if !std::mem::take(&mut self.asked) {
            self.ask(backend)?;
            self.asked = false;
        }
        match &mut self.answer {
            Some(answer) => Ok(answer.read()?[0]),
            None => Ok(Status::BEFORE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a tank of water, whose cells are some twelve for each particle of water.
    #[test]
    fn walls_have_dense_tables_beside_their_water_and_single_points_have_small_ones() {
        let (water, walls, cells) = (8_000_000, 2_900_000, 100_000_000);
        assert!(max_dense_cells(water, 0) >= cells);
        assert!(max_dense_cells(walls, 0) < cells);
        assert!(max_dense_cells(walls, (water + walls) as usize) >= cells);
        // The walls of a tank for twice the water, on a rank that has most of them and a quarter of
        // the water.
        assert!(max_dense_cells(3_000_000, 7_000_000) >= 2 * cells);
        assert_eq!(max_dense_cells(10, water as usize), SMALL_TABLE);
        assert_eq!(max_dense_cells(u32::MAX, usize::MAX), MAX_CELLS);
        // A set that is nearly all points has no more than it would have alone.
        assert_eq!(
            max_dense_cells(water, water as usize),
            max_dense_cells(water, 0)
        );
    }
}
