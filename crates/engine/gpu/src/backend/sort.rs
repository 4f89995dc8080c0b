//! Points sorted by cell on the device, without the host.
//!
//! # Algorithm
//!
//! A counting sort in four passes over the points, by `kernels/cuda/grid.cu`:
//!
//! 1. *Keys.* Every point finds its cell and takes a rank in it with an atomic increment of the
//!    cell's count. Points of a sparse table first claim the brick of their cell in a hash table.
//! 2. *Scan.* One pass turns counts into starts: every block takes a ticket, publishes the sum of
//!    its tile, and looks back over the tiles before it until one knows its whole prefix (Merrill
//!    and Garland 2016, "Single-pass parallel prefix scan with decoupled look-back"). Tickets rule
//!    out that a tile waits for one that has not begun. The pass leaves the counts zero for the
//!    next sort.
//! 3. *Place.* Every point writes its index and cell to `start + rank`. Ranks come from atomics, so
//!    the order within a cell is arbitrary here.
//! 4. *Settle.* Every point counts the smaller indices of its cell, which is its final rank, and
//!    moves its coordinates there. Cells of more than 1,024 points are sorted by a block each
//!    instead: the count would take quadratic time. A sort that meets such cells for the first time
//!    settles again.
//!
//! The result is the order of the CPU backend, stable by (cell, index), so lists and sums of both
//! backends agree bit for bit.
//!
//! Every point is read a few times and moved once, and compared with the points of its cell. So the
//! cost is linear in the points at a given occupancy. A radix sort of the cells' numbers would make
//! a pass per 8 bits of them.
//!
//! # Precision
//!
//! The kernels are compiled once more for positions in double precision. Cells follow from the
//! distance to a centre that all sets share, as the CPU backend has them; everything behind the
//! cells is the same: counting, scanning and placing see numbers of cells only. What lands in
//! sorted order then are proxies in `f32` for the walks, and the positions themselves beside them.
//!
//! # Status
//!
//! Kernels cannot refuse input. They count what they cannot place (coordinates that are not finite,
//! points outside of the table) in a status on the device, and the last kernel looks at it: after a
//! failure it writes all points to where nothing finds them. The host reads the status when it next
//! waits. If several sorts lie before that, the reset of each keeps what the host has to know of
//! the one before.
//!
//! # Provisional results
//!
//! Nothing waits for the device until [`GpuBackend::finish`] reads the status of all sorts since it
//! was last called. Until then traversals may run on the sorted points. That is safe because a
//! failed sort too leaves a permutation of the set's own indices, with coordinates that are within
//! no radius: kernels that write by index stay inside their arrays. New positions are copied beside
//! the last good ones, which [`DevicePoints::take_back`] restores if the new ones are refused.

use super::{
    gpu::GpuBackend,
    lattice::{DeviceLattice, next_number},
    points::DevicePoints,
};
use crate::{
    error::{Error, ErrorKind},
    handles::{DeviceView, PositionNumber},
    launch::{GridKernels, Sorting, Status, scan_tiles},
    memory::Buffer,
};
use nearfield_grid::{Bounds, Precision};

/// Bounds and validity of positions on the device, found by one pass over them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PositionBounds {
    /// All are finite, and within these bounds.
    Bounds(Bounds),
    /// Some are not; the first of them has this index.
    NotFinite {
        /// Index in the caller's order.
        first: u32,
        /// How many there are.
        count: u32,
    },
}

/// How a sort went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOutcome {
    /// Results computed since then are valid.
    AsBefore,
    /// Points of large cells have only now been brought into their order: sums over them that
    /// were computed before may differ in their last bits from those computed now.
    Reordered,
    /// The points are sorted well, but those of an earlier sort that was not looked at were not:
    /// results that were computed from that one do not stand.
    Missed,
}

/// Returns true if one box holds another.
fn contains(outer: &Bounds, inner: &Bounds) -> bool {
    (0..3).all(|axis| outer.min[axis] <= inner.min[axis] && inner.max[axis] <= outer.max[axis])
}

impl GpuBackend {
    /// A set of no points.
    pub fn points(&self) -> DevicePoints {
        self.points_in(Precision::Single)
    }

    /// A set of no points, whose positions will be in this precision, as its lattice must be.
    pub fn points_in(&self, precision: Precision) -> DevicePoints {
        DevicePoints::new(precision)
    }

    /// Copies positions to the device, and checks and measures them there.
    ///
    /// The set must be [sorted](Self::sort) before anything else is done with it.
    ///
    /// # Errors
    /// [`ErrorKind::TooManyPoints`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn upload(
        &self,
        points: &mut DevicePoints,
        positions: &[[f32; 3]],
    ) -> Result<PositionBounds, Error> {
        self.expect(points, positions.len())?;
        self.receive(points, 0, positions.as_flattened())?;
        self.measure(points)
    }

    /// Makes room for the positions of `count` points, which are then [received](Self::receive).
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn expect(&self, points: &mut DevicePoints, count: usize) -> Result<(), Error> {
        let count = countable(count)?;
        let words = points.words(count as usize);
        points.positions.reserve(&self.stream, words)?;
        points.status.reserve(&self.stream, 1)?;
        points.tiles.reserve(&self.stream, 1)?;
        points.count = count;
        points.cells = 0;
        (points.sorted, points.provisional, points.unlooked) = (count == 0, false, false);
        Ok(())
    }

    /// Copies some of the positions that were [expected](Self::expect) to the device, x, y and z of
    /// one point after the other, from number `first` on, without looking at them. Positions in
    /// `f64` are taken as their bytes: two numbers for each of theirs. Where they are
    /// in [page-locked memory](crate::HostBuffer) this does not wait for the copy: leave them as
    /// they are until the backend has been [waited for](Self::wait).
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there are more than were expected, and
    /// [`ErrorKind::Driver`].
    pub fn receive(
        &self,
        points: &mut DevicePoints,
        first: usize,
        numbers: &[f32],
    ) -> Result<(), Error> {
        let expected = points.words(points.len());
        if first
            .checked_add(numbers.len())
            .is_none_or(|end| end > expected)
        {
            return Err(Error::from(ErrorKind::FieldLength {
                what: "positions",
                found: first.saturating_add(numbers.len()),
                expected,
            }));
        }
        points.positions.upload_at(&self.stream, first, numbers)
    }

    /// Takes over positions that are on the device already: x, y and z of one point after the
    /// other. They are copied, without waiting for it, and are provisional until
    /// [`finish`](Self::finish) has found that they can be used; [`DevicePoints::take_back`]
    /// returns to the ones before. The set must be [sorted](Self::sort), or [sorted
    /// again](Self::sort_again), before it is traversed.
    ///
    /// ```no_run
    /// use nearfield_gpu::{
    ///     DeviceLattice, DevicePoints, Error, GpuBackend, SortOutcome, DeviceView,
    /// };
    /// use nearfield_grid::Bounds;
    ///
    /// /// A step of a simulation whose positions live on the device.
    /// fn step(
    ///     backend: &GpuBackend,
    ///     points: &mut DevicePoints,
    ///     lattice: &DeviceLattice,
    ///     bounds: &Bounds,
    ///     positions: &DeviceView<'_, f32>,
    /// ) -> Result<SortOutcome, Error> {
    ///     backend.place(points, positions)?;
    ///     backend.sort_again(points, lattice)?;
    ///     // Traversals start here. The host has not waited yet.
    ///     points.ask(backend)?;
    ///     let settled = backend.finish(points, lattice, bounds);
    ///     if settled.is_err() {
    ///         // The positions of the step before are still there.
    ///         points.take_back();
    ///     }
    ///     settled
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there are no three numbers for every point,
    /// [`ErrorKind::Precision`] when they are in another precision than the set,
    /// [`ErrorKind::OtherDevice`], [`ErrorKind::TooManyPoints`], [`ErrorKind::OutOfMemory`] and
    /// [`ErrorKind::Driver`]; the set is then as it was.
    pub fn place<T: PositionNumber>(
        &self,
        points: &mut DevicePoints,
        positions: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.holds("positions", positions.ordinal())?;
        if T::PRECISION != points.precision {
            return Err(Error::from(ErrorKind::Precision {
                found: T::PRECISION,
                expected: points.precision,
            }));
        }
        let words = positions
            .words()
            .filter(|_| positions.len().is_multiple_of(3));
        let Some(words) = words else {
            return Err(Error::from(ErrorKind::FieldLength {
                what: "positions",
                found: positions.len(),
                expected: positions.len().next_multiple_of(3),
            }));
        };
        let count = countable(positions.len() / 3)?;
        points.status.reserve(&self.stream, 1)?;
        points.tiles.reserve(&self.stream, 1)?;
        if points.provisional {
            // Nothing is known to be good about those there are.
            points.positions.copy_from(&self.stream, &words.0)?;
        } else {
            points.before.copy_from(&self.stream, &words.0)?;
            std::mem::swap(&mut points.positions, &mut points.before);
            (points.count_before, points.provisional) = (points.count, true);
        }
        if count != points.count && points.is_sparse() {
            // The table of the bricks is as large as the points are many.
            points.cells = 0;
        }
        (points.count, points.sorted) = (count, false);
        Ok(())
    }

    /// Checks and measures the positions of a set, and waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn measure(&self, points: &mut DevicePoints) -> Result<PositionBounds, Error> {
        if points.count == 0 {
            points.unlooked = false;
            return Ok(PositionBounds::Bounds(Bounds::EMPTY));
        }
        let (grid, stream) = (self.shared.sorts(points.precision)?, &self.stream);
        let (status, tiles) = (points.status.address(), points.tiles.address());
        grid.reset(stream, status, tiles, 1, false)?;
        (points.unlooked, points.asked) = (false, false);
        grid.bounds(stream, points.positions.address(), points.count, status)?;
        let status = points.read_status(self)?;
        Ok(match status.bad {
            0 => PositionBounds::Bounds(status.bounds(points.precision)),
            _ => PositionBounds::NotFinite {
                first: status.first_bad,
                count: status.bad,
            },
        })
    }

    /// Sorts a set whose positions were [uploaded](Self::upload) and lie within `bounds`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn sort(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        self.begin_sort(points, lattice, bounds)?;
        self.finish(points, lattice, bounds).map(drop)
    }

    /// As [`sort`](Self::sort), without waiting for the device: [`finish`](Self::finish) has to
    /// follow before anything else is done with the set.
    ///
    /// # Errors
    /// As there.
    pub fn begin_sort(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        // Nothing of the table there is fits a new one.
        points.sorted = false;
        if points.count == 0 {
            points.cells = 0;
            points.sorted = true;
            return Ok(());
        }
        points.fit(lattice, bounds)?;
        self.sort_again(points, lattice)
    }

    /// Sorts a set anew whose positions on the device have changed since it was sorted, into the
    /// same box of cells and without waiting for the device. The result is provisional until
    /// [`finish`](Self::finish) has checked that the points still fit.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`] when it has not been, [`ErrorKind::OtherLattice`] when that was into
    /// the cells of another lattice, [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn sort_again(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
    ) -> Result<(), Error> {
        points.sorted = false;
        if points.count == 0 {
            points.sorted = true;
            return Ok(());
        }
        if !points.has_table() {
            return Err(Error::from(ErrorKind::Unsorted));
        }
        points.check_lattice(lattice)?;
        points.reserve(self, lattice)?;
        let (grid, stream) = (self.shared.sorts(points.precision)?, &self.stream);
        let sorting = points.sorting(lattice);
        let (status, tiles) = (sorting.status, scan_tiles(points.cells()));
        points.asked = false;
        grid.reset(stream, status, sorting.tiles, tiles, points.unlooked)?;
        points.unlooked = true;
        if lattice.is_periodic() && points.is_sparse() {
            // The cells of a periodic domain are as large as they are because of how far the
            // coordinates reach; `finish` looks whether they still do. Keys of dense tables
            // measure that themselves.
            grid.bounds(stream, sorting.positions, points.count, status)?;
        }
        if points.is_sparse() {
            points.slots.fill_ones(stream)?;
            points.ids.fill_ones(stream)?;
        }
        grid.keys(stream, &sorting)?;
        grid.scan(stream, &sorting)?;
        grid.place(stream, &sorting)?;
        self.settle(grid, &sorting, points.large_cells)?;
        (points.sorted, points.sort) = (true, next_number());
        Ok(())
    }

    /// Waits for the device and looks how the sorts went since it last did. Positions that were
    /// [placed](Self::place) and are sorted well are no longer provisional.
    ///
    /// # Errors
    /// [`ErrorKind::NotFinite`] and [`ErrorKind::Outside`] when points do not fit any more: the set
    /// must be sorted into new bounds then; [`ErrorKind::Unsorted`] when positions have been
    /// replaced since the last sort, [`ErrorKind::OtherLattice`] when that was into the cells of
    /// another lattice, and [`ErrorKind::Driver`].
    pub fn finish(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<SortOutcome, Error> {
        // The arrays settled below are as long as the last sort had points.
        points.check_sorted()?;
        points.check_lattice(lattice)?;
        let unlooked = std::mem::take(&mut points.unlooked);
        let status = if unlooked || points.count > 0 {
            points.read_status(self)?
        } else {
            Status::BEFORE
        };
        if points.count == 0 {
            points.provisional = false;
            if unlooked && status.failed + status.bad + status.outside > 0 {
                return Ok(SortOutcome::Missed);
            }
            return Ok(SortOutcome::AsBefore);
        }
        if status.bad > 0 {
            return Err(Error::from(ErrorKind::NotFinite {
                first: status.first_bad,
                count: status.bad,
            }));
        }
        let strayed = lattice.is_periodic() && !contains(bounds, &status.bounds(points.precision));
        if status.outside > 0 || strayed {
            return Err(Error::from(ErrorKind::Outside {
                count: status.outside.max(1),
                bounds: *bounds,
            }));
        }
        let large = status.large_cells > 0;
        let settled_late = large && !points.large_cells;
        if settled_late {
            // The first step that meets large cells settles them afterwards.
            let grid = self.shared.sorts(points.precision)?;
            self.settle(grid, &points.sorting(lattice), true)?;
        }
        points.large_cells = large;
        points.provisional = false;
        Ok(if status.failed > 0 {
            SortOutcome::Missed
        } else if settled_late {
            SortOutcome::Reordered
        } else {
            SortOutcome::AsBefore
        })
    }

    /// Mean number of points in the cell of a point of a sorted set, that point among them; 0
    /// without points. Waits for the device.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn occupancy(&self, points: &DevicePoints) -> Result<f64, Error> {
        points.check_sorted()?;
        if points.is_empty() {
            return Ok(0.0);
        }
        let mut sum = Buffer::<u64>::new("the occupancy of cells");
        sum.reserve_zeroed(&self.stream, 1)?;
        let (layout, mut squares) = (points.layout(), [0]);
        (self.shared.grid).occupancy(&self.stream, &layout, sum.address())?;
        sum.download(&self.stream, 0, &mut squares)?;
        Ok(squares[0] as f64 / points.len() as f64)
    }

    /// Brings every cell into the order of the caller's indices, those of high occupancy apart.
    fn settle(
        &self,
        grid: &GridKernels,
        sorting: &Sorting<'_>,
        large_cells: bool,
    ) -> Result<(), Error> {
        let stream = &self.stream;
        if large_cells {
            grid.settle_large(stream, sorting)?;
        }
        grid.settle(stream, sorting)
    }
}

/// Number of points, if they can be numbered.
fn countable(points: usize) -> Result<u32, Error> {
    u32::try_from(points)
        .ok()
        .filter(|&count| count < u32::MAX)
        .ok_or(Error::from(ErrorKind::TooManyPoints(points)))
}
