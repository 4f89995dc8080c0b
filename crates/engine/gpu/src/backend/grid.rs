//! Points sorted by cell on the device.

use super::{
    GpuBackend,
    buffer::Buffer,
    launch::{SCAN_TILE, Sorting, scan_tiles},
    layout::{self, Row, Status},
    queue::HostCopy,
};
use crate::Error;
use cudarc::driver::{CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice};
use nearfield_grid::{Bounds, Lattice};
use std::sync::atomic::{AtomicU64, Ordering};

/// A dense table may have this many cells per point…
const CELLS_PER_POINT: u64 = 32;
/// …and always this many, so that small sets need no thought.
const SMALL_TABLE: u64 = 1 << 20;
/// Elements of `Points::flags` of contract.cuh.
const FLAGS: usize = 2;
/// Cells of a brick of a sparse table, `BRICK` of contract.cuh.
const BRICK: usize = 8;
/// Cells are numbered in 32 bits, and tables padded to whole tiles of a scan.
const MAX_CELLS: u64 = u32::MAX as u64 - 2 * SCAN_TILE as u64;

/// A number that this process has not given before, 1 at least.
fn next_number() -> u64 {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    GIVEN.fetch_add(1, Ordering::Relaxed) + 1
}

/// The cells that all sets of an engine share, as kernels read them.
#[derive(Debug)]
pub struct DeviceLattice {
    /// What tells it from all other lattices.
    number: u64,
    lattice: Lattice,
    subdivision: u32,
    pub(super) layout: layout::Lattice,
    pub(super) rows: Buffer<Row>,
    pub(super) row_count: u32,
    /// Cells ahead of a cell.
    pub(super) ahead: usize,
}

/// One point set, sorted by (cell, the caller's index).
#[derive(Debug)]
pub struct DevicePoints {
    positions: Buffer<f32>,
    /// Those before the ones that were [placed](GpuBackend::place) and are provisional, else only room.
    before: Buffer<f32>,
    count_before: u32,
    /// The positions were placed, and the host has not seen yet whether they can be used.
    provisional: bool,
    /// The points are in the cells of the lattice that they were sorted with last.
    sorted: bool,
    /// The number of the lattice that the table was made for.
    lattice: u64,
    /// The number of the last sort.
    sort: u64,
    /// The status is that of a sort that the host has not looked at.
    unlooked: bool,
    at: Buffer<[f32; 4]>,
    wraps: Buffer<[i32; 4]>,
    /// What the last sort met, as `Points::flags` of contract.cuh.
    flags: Buffer<u32>,
    starts: Buffer<u32>,
    counts: Buffer<u32>,
    keys: Buffer<[u32; 2]>,
    placed: Buffer<[u32; 2]>,
    tiles: Buffer<u64>,
    status: Buffer<Status>,
    answer: Option<HostCopy<Status>>,
    /// The answer is that of the last sort, or on its way.
    asked: bool,
    slots: Buffer<u32>,
    ids: Buffer<u32>,
    bricks: Buffer<[i64; 3]>,
    count: u32,
    origin: [i64; 3],
    dims: [u32; 3],
    /// Empty cells on either side of the box.
    pad: [u32; 3],
    /// Slots of the hash table of a sparse table, less 1; None where the table is dense.
    mask: Option<u32>,
    cells: u32,
    /// Whether the last step found cells with so many points that they are sorted apart.
    crowded: bool,
}

/// What was found out about positions on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
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
pub enum Settled {
    /// What was computed since it stands.
    AsBefore,
    /// Points of crowded cells have only now been brought into their order: sums over them that
    /// were computed before may differ in their last bits from those computed now.
    Reordered,
    /// The points are sorted well, but those of an earlier sort that was not looked at were not: what
    /// was computed from that one does not stand.
    Missed,
}

/// Whether one box holds another.
fn contains(outer: &Bounds, inner: &Bounds) -> bool {
    (0..3).all(|axis| outer.min[axis] <= inner.min[axis] && inner.max[axis] <= outer.max[axis])
}

impl GpuBackend {
    /// A lattice for the device. `subdivision` is what the lattice was made with.
    ///
    /// # Errors
    /// [`Error::SlantedBox`], [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn lattice(&self, lattice: &Lattice, subdivision: u32) -> Result<DeviceLattice, Error> {
        if lattice.domain().is_slanted() {
            return Err(Error::SlantedBox);
        }
        let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
        let mut buffer = Buffer::new("neighbour rows");
        buffer.upload(&self.stream, &rows)?;
        Ok(DeviceLattice {
            number: next_number(),
            lattice: lattice.clone(),
            subdivision,
            layout: layout::Lattice::new(lattice, subdivision),
            rows: buffer,
            row_count: rows.len() as u32,
            ahead: rows.iter().map(Row::cells_ahead).sum(),
        })
    }

    /// A set of no points.
    pub fn points(&self) -> DevicePoints {
        DevicePoints {
            positions: Buffer::new("positions"),
            before: Buffer::new("positions"),
            count_before: 0,
            provisional: false,
            sorted: true,
            lattice: 0,
            sort: 0,
            unlooked: false,
            at: Buffer::new("sorted points"),
            wraps: Buffer::new("image counts"),
            flags: Buffer::new("flags of a sort"),
            starts: Buffer::new("the cell table"),
            counts: Buffer::new("counts of cells"),
            keys: Buffer::new("cells of points"),
            placed: Buffer::new("points of cells"),
            tiles: Buffer::new("tiles of a scan"),
            status: Buffer::new("the status"),
            answer: None,
            asked: false,
            slots: Buffer::new("a hash table"),
            ids: Buffer::new("a hash table"),
            bricks: Buffer::new("bricks of cells"),
            count: 0,
            origin: [0; 3],
            dims: [0; 3],
            pad: [0; 3],
            mask: None,
            cells: 0,
            crowded: false,
        }
    }

    /// Copies positions to the device, and checks and measures them there.
    ///
    /// The set must be [sorted](Self::sort) before anything else is done with it.
    ///
    /// # Errors
    /// [`Error::TooManyPoints`], [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn upload(
        &self,
        points: &mut DevicePoints,
        positions: &[[f32; 3]],
    ) -> Result<Measured, Error> {
        self.expect(points, positions.len())?;
        self.receive(points, 0, positions.as_flattened())?;
        self.measure(points)
    }

    /// Makes room for the positions of so many points, which are then [received](Self::receive).
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn expect(&self, points: &mut DevicePoints, count: usize) -> Result<(), Error> {
        let count = countable(count)?;
        points.positions.reserve(&self.stream, 3 * count as usize)?;
        points.status.reserve(&self.stream, 1)?;
        points.tiles.reserve(&self.stream, 1)?;
        points.count = count;
        points.cells = 0;
        (points.sorted, points.provisional, points.unlooked) = (count == 0, false, false);
        Ok(())
    }

    /// Copies some of the positions that were [expected](Self::expect) to the device, x, y and z of one
    /// point after the other, from number `first` on, without looking at them. Where they are in
    /// [page-locked memory](crate::HostBuffer) this does not wait for the copy: leave them as they
    /// are until the backend has been [waited for](Self::wait).
    ///
    /// # Errors
    /// [`Error::FieldLength`] when there are more than were expected, and [`Error::Driver`].
    pub fn receive(
        &self,
        points: &mut DevicePoints,
        first: usize,
        numbers: &[f32],
    ) -> Result<(), Error> {
        let expected = 3 * points.count as usize;
        if first
            .checked_add(numbers.len())
            .is_none_or(|end| end > expected)
        {
            return Err(Error::FieldLength {
                what: "positions",
                found: first.saturating_add(numbers.len()),
                expected,
            });
        }
        points.positions.upload_at(&self.stream, first, numbers)
    }

    /// Takes over positions that are on the device already: x, y and z of one point after the other.
    /// They are copied, without waiting for it, and are provisional until [`finish`](Self::finish) has
    /// found that they can be used; [`DevicePoints::take_back`] returns to the ones before. The set must
    /// be [sorted](Self::sort), or [sorted again](Self::sort_again), before it is traversed.
    ///
    /// # Errors
    /// [`Error::FieldLength`] when there are no three numbers for every point,
    /// [`Error::OtherDevice`], [`Error::TooManyPoints`], [`Error::OutOfMemory`] and
    /// [`Error::Driver`]; the set is then as it was.
    pub fn place(
        &self,
        points: &mut DevicePoints,
        positions: &CudaView<'_, f32>,
    ) -> Result<(), Error> {
        self.holds("positions", positions.stream().context().ordinal())?;
        if !positions.len().is_multiple_of(3) {
            return Err(Error::FieldLength {
                what: "positions",
                found: positions.len(),
                expected: positions.len().next_multiple_of(3),
            });
        }
        let count = countable(positions.len() / 3)?;
        points.status.reserve(&self.stream, 1)?;
        points.tiles.reserve(&self.stream, 1)?;
        if points.provisional {
            // Nothing is known to be good about those there are.
            points.positions.copy_from(&self.stream, positions)?;
        } else {
            points.before.copy_from(&self.stream, positions)?;
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
    /// [`Error::Driver`].
    pub fn measure(&self, points: &mut DevicePoints) -> Result<Measured, Error> {
        if points.count == 0 {
            points.unlooked = false;
            return Ok(Measured::Bounds(Bounds::EMPTY));
        }
        let sorting = points.sorting();
        self.shared
            .grid
            .reset(&self.stream, sorting.status, sorting.tiles, 1, false)?;
        (points.unlooked, points.asked) = (false, false);
        self.shared.grid.bounds(&self.stream, &sorting)?;
        let status = points.read_status(self)?;
        Ok(match status.bad {
            0 => Measured::Bounds(status.bounds()),
            _ => Measured::NotFinite {
                first: status.first_bad,
                count: status.bad,
            },
        })
    }

    /// Sorts a set whose positions were [uploaded](Self::upload) and lie within `bounds`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn sort(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        self.begin_sort(points, lattice, bounds)?;
        self.finish(points, lattice, bounds).map(drop)
    }

    /// As [`sort`](Self::sort), without waiting for the device: [`finish`](Self::finish) has to follow
    /// before anything else is done with the set.
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
    /// same box of cells and without waiting for the device. What it gives is provisional until
    /// [`finish`](Self::finish) has looked whether the points still fit.
    ///
    /// # Errors
    /// [`Error::Unsorted`] when it has not been, [`Error::OtherLattice`] when that was into the cells of
    /// another lattice, [`Error::OutOfMemory`] and [`Error::Driver`].
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
            return Err(Error::Unsorted);
        }
        points.check_lattice(lattice)?;
        points.reserve(self, lattice)?;
        let (grid, stream) = (&self.shared.grid, &self.stream);
        let (layout, sorting) = (points.layout(), points.sorting());
        let periodic = lattice.is_periodic();
        points.asked = false;
        grid.reset(
            stream,
            sorting.status,
            sorting.tiles,
            scan_tiles(sorting.cells),
            points.unlooked,
        )?;
        points.unlooked = true;
        if periodic {
            // The cells of a periodic domain are as large as they are because of how far the
            // coordinates reach; `finish` looks whether they still do.
            grid.bounds(stream, &sorting)?;
        }
        match points.mask {
            None => grid.keys(stream, &sorting, &lattice.layout, &layout, periodic)?,
            Some(_) => {
                points.slots.fill_ones(&self.stream)?;
                points.ids.fill_ones(&self.stream)?;
                let slots = points.slots.address();
                grid.keys_sparse(stream, &sorting, &lattice.layout, &layout, slots)?;
            }
        }
        grid.scan(stream, &sorting, layout.starts)?;
        grid.place(stream, &sorting, layout.starts)?;
        self.settle(points, lattice, &sorting)?;
        (points.sorted, points.sort) = (true, next_number());
        Ok(())
    }

    /// Waits for the device and looks how the sorts went since it last did. Positions that were
    /// [placed](Self::place) and are sorted well are no longer provisional.
    ///
    /// # Errors
    /// [`Error::NotFinite`] and [`Error::Outside`] when points do not fit any more: the set must be
    /// sorted into new bounds then; [`Error::Unsorted`] when positions have been replaced since the
    /// last sort, [`Error::OtherLattice`] when that was into the cells of another lattice, and
    /// [`Error::Driver`].
    pub fn finish(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<Settled, Error> {
        // What is settled below is as long as the points of the last sort were many.
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
            let failed = unlooked && (status.failed + status.bad + status.outside > 0);
            return Ok(if failed {
                Settled::Missed
            } else {
                Settled::AsBefore
            });
        }
        if status.bad > 0 {
            return Err(Error::NotFinite {
                first: status.first_bad,
                count: status.bad,
            });
        }
        let strayed = lattice.is_periodic() && !contains(bounds, &status.bounds());
        if status.outside > 0 || strayed {
            return Err(Error::Outside {
                count: status.outside.max(1),
                bounds: *bounds,
            });
        }
        let crowded = status.crowded > 0;
        let settled_late = crowded && !points.crowded;
        if settled_late {
            // The first step that meets crowded cells settles them afterwards.
            points.crowded = true;
            let sorting = points.sorting();
            self.settle(points, lattice, &sorting)?;
        }
        points.crowded = crowded;
        points.provisional = false;
        Ok(if status.failed > 0 {
            Settled::Missed
        } else if settled_late {
            Settled::Reordered
        } else {
            Settled::AsBefore
        })
    }

    /// Brings values, `channels` of them a point, from the caller's order into that of the cells.
    ///
    /// # Errors
    /// [`Error::FieldLength`], [`Error::OtherDevice`] and [`Error::Driver`].
    pub fn reorder<T: DeviceRepr>(
        &self,
        points: &DevicePoints,
        channels: usize,
        from: &CudaView<'_, T>,
        to: &mut CudaViewMut<'_, T>,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        let words = channels.saturating_mul(size_of::<T>()) / 4;
        for (what, found, place) in [
            (
                "values to sort",
                from.len(),
                from.stream().context().ordinal(),
            ),
            ("sorted values", to.len(), to.stream().context().ordinal()),
        ] {
            self.holds(what, place)?;
            let expected = points.len().saturating_mul(channels);
            let countable = size_of::<T>().is_multiple_of(4) && u32::try_from(words).is_ok();
            if found != expected || !countable {
                return Err(Error::FieldLength {
                    what,
                    found,
                    expected,
                });
            }
        }
        if points.is_empty() {
            return Ok(());
        }
        let (from, _from) = from.device_ptr(&self.stream);
        let (to, _to) = to.device_ptr_mut(&self.stream);
        let layout = points.layout();
        self.shared
            .grid
            .values_in_order(&self.stream, &layout, from, words as u32, to)
    }

    /// The caller's index of every sorted point.
    ///
    /// # Errors
    /// As [`reorder`](Self::reorder).
    pub fn order_into(
        &self,
        points: &DevicePoints,
        to: &mut CudaViewMut<'_, u32>,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        self.holds("the order", to.stream().context().ordinal())?;
        if to.len() != points.len() {
            return Err(Error::FieldLength {
                what: "the order",
                found: to.len(),
                expected: points.len(),
            });
        }
        if points.is_empty() {
            return Ok(());
        }
        let (to, _to) = to.device_ptr_mut(&self.stream);
        let layout = points.layout();
        self.shared.grid.order_of_points(&self.stream, &layout, to)
    }

    fn settle(
        &self,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        sorting: &Sorting,
    ) -> Result<(), Error> {
        let layout = points.layout();
        if points.crowded {
            self.shared
                .grid
                .settle_crowded(&self.stream, sorting, layout.starts)?;
        }
        let periodic = lattice.is_periodic();
        self.shared
            .grid
            .settle(&self.stream, sorting, &lattice.layout, &layout, periodic)
    }
}

/// Number of points, if they can be numbered.
fn countable(points: usize) -> Result<u32, Error> {
    u32::try_from(points)
        .ok()
        .filter(|&count| count < u32::MAX)
        .ok_or(Error::TooManyPoints(points))
}

impl DeviceLattice {
    /// The lattice.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Cells to a radius.
    pub fn subdivision(&self) -> u32 {
        self.subdivision
    }

    pub(super) fn is_periodic(&self) -> bool {
        self.lattice.domain().is_periodic()
    }
}

impl DevicePoints {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the points are in their cells, so that they can be traversed.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Whether the positions were [placed](GpuBackend::place) and have not been found usable yet.
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

    /// The cells are not those of the lattice any more: the set must be [sorted](GpuBackend::sort) before
    /// it is traversed.
    pub fn unsort(&mut self) {
        (self.cells, self.sorted) = (0, self.count == 0);
    }

    pub(super) fn check_sorted(&self) -> Result<(), Error> {
        if self.sorted {
            Ok(())
        } else {
            Err(Error::Unsorted)
        }
    }

    /// Whether the points are in cells of this lattice; no points are in those of any.
    pub(super) fn check_lattice(&self, lattice: &DeviceLattice) -> Result<(), Error> {
        if self.is_empty() || self.lattice == lattice.number {
            Ok(())
        } else {
            Err(Error::OtherLattice)
        }
    }

    /// The number of the last sort.
    pub(super) fn last_sort(&self) -> u64 {
        self.sort
    }

    /// Whether the set has cells to be sorted into.
    pub fn has_table(&self) -> bool {
        self.cells > 0
    }

    /// Cells of the table.
    pub fn cells(&self) -> usize {
        self.cells as usize
    }

    /// Whether the table holds only cells around points, because they lie far apart.
    pub fn is_sparse(&self) -> bool {
        self.mask.is_some()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.positions.bytes()
            + self.before.bytes()
            + self.at.bytes()
            + self.wraps.bytes()
            + self.starts.bytes()
            + self.counts.bytes()
            + self.keys.bytes()
            + self.placed.bytes()
            + self.tiles.bytes()
            + self.slots.bytes()
            + self.ids.bytes()
            + self.bricks.bytes()
    }

    /// The caller's index of every sorted point.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn order(&self, backend: &GpuBackend) -> Result<Vec<u32>, Error> {
        self.check_sorted()?;
        let mut at = vec![[0.0f32; 4]; self.len()];
        self.at.download(&backend.stream, 0, &mut at)?;
        Ok(at.iter().map(|point| point[3].to_bits()).collect())
    }

    pub(super) fn layout(&self) -> layout::Points {
        layout::Points {
            at: self.at.address(),
            wraps: self.wraps.address(),
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
    /// than there are points, bricks around them.
    fn fit(&mut self, lattice: &DeviceLattice, bounds: &Bounds) -> Result<(), Error> {
        self.cells = 0;
        self.lattice = lattice.number;
        let (low, high, _) = lattice.lattice.cells_within(bounds);
        // Open axes are padded, so that the rows around a point need no bounds check.
        self.pad = (lattice.lattice.effective_domain().lengths()).map(|length| match length {
            None => lattice.subdivision,
            Some(_) => 0,
        });
        let mut cells = 1u64;
        for axis in 0..3 {
            self.origin[axis] = low[axis] - i64::from(self.pad[axis]);
            let dim = (high[axis] - low[axis]) as u64 + 1 + 2 * u64::from(self.pad[axis]);
            self.dims[axis] = u32::try_from(dim).unwrap_or(u32::MAX);
            cells = cells.saturating_mul(dim);
        }
        let most = (CELLS_PER_POINT * u64::from(self.count)).clamp(SMALL_TABLE, MAX_CELLS);
        if cells <= most {
            self.cells = cells as u32;
            self.mask = None;
            return Ok(());
        }
        // Every point may have a brick of its own; half of the slots stay empty.
        let bricks = u64::from(self.count) * BRICK as u64;
        let too_many = |_| Error::TooManyPoints(self.count as usize);
        self.cells = u32::try_from(bricks).map_err(too_many)?;
        self.mask = Some((2 * u64::from(self.count)).next_power_of_two() as u32 - 1);
        Ok(())
    }

    fn reserve(&mut self, backend: &GpuBackend, lattice: &DeviceLattice) -> Result<(), Error> {
        let (stream, count) = (&backend.stream, self.count as usize);
        // Loops over candidates read up to two points behind the last.
        self.at.reserve(stream, count + 2)?;
        self.keys.reserve(stream, count)?;
        self.placed.reserve(stream, count)?;
        if lattice.is_periodic() {
            self.wraps.reserve(stream, count)?;
        }
        self.flags.reserve(stream, FLAGS)?;
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

    fn sorting(&self) -> Sorting {
        Sorting {
            positions: self.positions.address(),
            count: self.count,
            counts: self.counts.address(),
            keys: self.keys.address(),
            placed: self.placed.address(),
            tiles: self.tiles.address(),
            status: self.status.address(),
            cells: self.cells(),
        }
    }

    /// Starts to bring the status of the last sort to the host, where it is read by
    /// [`GpuBackend::finish`]: one wait then serves several sets.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn ask(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        if self.status.capacity() == 0 {
            return Ok(());
        }
        let answer = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert(backend.host_copy(1)?),
        };
        self.status.start_host_copy(&backend.stream, 0, answer, 1)?;
        self.asked = true;
        Ok(())
    }

    fn read_status(&mut self, backend: &GpuBackend) -> Result<Status, Error> {
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
