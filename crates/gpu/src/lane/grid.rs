//! Points sorted by cell on the device.

use super::{
    GpuLane,
    buffer::Buffer,
    launch::{SCAN_TILE, Sorting, scan_tiles},
    layout::{self, Row, Status},
};
use crate::Error;
use nearfield_grid::{Bounds, Lattice};

/// A dense table may have this many cells per point…
const CELLS_PER_POINT: u64 = 32;
/// …and always this many, so that small sets need no thought.
const SMALL_TABLE: u64 = 1 << 20;
/// Cells of a brick of a sparse table, `BRICK` of contract.cuh.
const BRICK: usize = 8;
/// Cells are numbered in 32 bits, and tables padded to whole tiles of a scan.
const MOST_CELLS: u64 = u32::MAX as u64 - 2 * SCAN_TILE as u64;

/// The cells that all sets of an engine share, as kernels read them.
#[derive(Debug)]
pub struct DeviceLattice {
    lattice: Lattice,
    subdivision: u32,
    pub(super) layout: layout::Lattice,
    pub(super) rows: Buffer<Row>,
    pub(super) row_count: u32,
}

/// One point set, sorted by (cell, the caller's index).
#[derive(Debug)]
pub struct DevicePoints {
    positions: Buffer<f32>,
    at: Buffer<[f32; 4]>,
    wraps: Buffer<[i32; 4]>,
    any_wrapped: Buffer<u32>,
    starts: Buffer<u32>,
    counts: Buffer<u32>,
    keys: Buffer<[u32; 2]>,
    placed: Buffer<[u32; 2]>,
    tiles: Buffer<u64>,
    status: Buffer<Status>,
    slots: Buffer<u32>,
    ids: Buffer<u32>,
    bricks: Buffer<[i64; 3]>,
    count: u32,
    origin: [i64; 3],
    dims: [u32; 3],
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
    },
}

impl GpuLane {
    /// A lattice for the device. `subdivision` is what the lattice was made with.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn lattice(&self, lattice: &Lattice, subdivision: u32) -> Result<DeviceLattice, Error> {
        let rows: Vec<Row> = lattice.rows().iter().map(Row::new).collect();
        let mut buffer = Buffer::new("neighbour rows");
        buffer.upload(&self.stream, &rows)?;
        Ok(DeviceLattice {
            lattice: lattice.clone(),
            subdivision,
            layout: layout::Lattice::new(lattice, subdivision),
            rows: buffer,
            row_count: rows.len() as u32,
        })
    }

    /// A set of no points.
    pub fn points(&self) -> DevicePoints {
        DevicePoints {
            positions: Buffer::new("positions"),
            at: Buffer::new("sorted points"),
            wraps: Buffer::new("image counts"),
            any_wrapped: Buffer::new("a flag"),
            starts: Buffer::new("the cell table"),
            counts: Buffer::new("counts of cells"),
            keys: Buffer::new("cells of points"),
            placed: Buffer::new("points of cells"),
            tiles: Buffer::new("tiles of a scan"),
            status: Buffer::new("the status"),
            slots: Buffer::new("a hash table"),
            ids: Buffer::new("a hash table"),
            bricks: Buffer::new("bricks of cells"),
            count: 0,
            origin: [0; 3],
            dims: [0; 3],
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
        let count = u32::try_from(positions.len())
            .ok()
            .filter(|&count| count < u32::MAX)
            .ok_or(Error::TooManyPoints(positions.len()))?;
        points
            .positions
            .upload(&self.stream, positions.as_flattened())?;
        points.status.reserve(&self.stream, 1)?;
        points.tiles.reserve(&self.stream, 1)?;
        points.count = count;
        points.cells = 0;
        if count == 0 {
            return Ok(Measured::Bounds(Bounds::EMPTY));
        }
        let sorting = points.sorting();
        self.shared
            .grid
            .reset(&self.stream, sorting.status, sorting.tiles, 1)?;
        self.shared.grid.bounds(&self.stream, &sorting)?;
        let status = points.read_status(self)?;
        Ok(match status.bad {
            0 => Measured::Bounds(status.bounds()),
            _ => Measured::NotFinite {
                first: status.first_bad,
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
        if points.count == 0 {
            points.cells = 0;
            return Ok(());
        }
        points.fit(lattice, bounds)?;
        points.reserve(self, lattice)?;
        self.sort_again(points, lattice)?;
        self.finish(points, lattice, bounds)
    }

    /// Sorts a set anew whose positions on the device have changed since it was sorted, into the
    /// same box of cells and without waiting for the device. What it gives is provisional until
    /// [`finish`](Self::finish) has looked whether the points still fit.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn sort_again(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
    ) -> Result<(), Error> {
        if points.count == 0 {
            return Ok(());
        }
        let (grid, stream) = (&self.shared.grid, &*self.stream);
        let (layout, sorting) = (points.layout(), points.sorting());
        let periodic = lattice.is_periodic();
        grid.reset(
            stream,
            sorting.status,
            sorting.tiles,
            scan_tiles(sorting.cells),
        )?;
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
        self.settle(points, lattice, &sorting)
    }

    /// Waits for the device and looks how the last sort went.
    ///
    /// # Errors
    /// [`Error::NotFinite`] and [`Error::Outside`] when points do not fit any more: the set must be
    /// sorted into new bounds then; and [`Error::Driver`].
    pub fn finish(
        &self,
        points: &mut DevicePoints,
        lattice: &DeviceLattice,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        if points.count == 0 {
            return Ok(());
        }
        let status = points.read_status(self)?;
        if status.bad > 0 {
            return Err(Error::NotFinite {
                first: status.first_bad,
                count: status.bad,
            });
        }
        if status.outside > 0 {
            return Err(Error::Outside {
                count: status.outside,
                bounds: *bounds,
            });
        }
        let crowded = status.crowded > 0;
        if crowded && !points.crowded {
            // The first step that meets crowded cells settles them afterwards.
            points.crowded = true;
            let sorting = points.sorting();
            self.settle(points, lattice, &sorting)?;
        }
        points.crowded = crowded;
        Ok(())
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
    pub fn order(&self, lane: &GpuLane) -> Result<Vec<u32>, Error> {
        let mut at = vec![[0.0f32; 4]; self.len()];
        self.at.download(&lane.stream, 0, &mut at)?;
        Ok(at.iter().map(|point| point[3].to_bits()).collect())
    }

    pub(super) fn layout(&self) -> layout::Points {
        layout::Points {
            at: self.at.address(),
            wraps: self.wraps.address(),
            starts: self.starts.address(),
            any_wrapped: self.any_wrapped.address(),
            ids: self.ids.address(),
            bricks: self.bricks.address(),
            origin: self.origin,
            dims: self.dims,
            mask: self.mask.unwrap_or(0),
            sparse: u32::from(self.mask.is_some()),
            cells: self.cells,
            count: self.count,
        }
    }

    /// Chooses the table: the box of cells around the points, or, where that has many more cells
    /// than there are points, bricks around them.
    fn fit(&mut self, lattice: &DeviceLattice, bounds: &Bounds) -> Result<(), Error> {
        let (low, high, _) = lattice.lattice.cells_within(bounds);
        // Open axes are padded, so that the rows around a point need no bounds check.
        let pad = |axis: usize| match lattice.lattice.domain().lengths()[axis] {
            None => i64::from(lattice.subdivision),
            Some(_) => 0,
        };
        let mut cells = 1u64;
        for axis in 0..3 {
            self.origin[axis] = low[axis] - pad(axis);
            let dim = (high[axis] - low[axis]) as u64 + 1 + 2 * pad(axis) as u64;
            self.dims[axis] = u32::try_from(dim).unwrap_or(u32::MAX);
            cells = cells.saturating_mul(dim);
        }
        let most = (CELLS_PER_POINT * u64::from(self.count)).clamp(SMALL_TABLE, MOST_CELLS);
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

    fn reserve(&mut self, lane: &GpuLane, lattice: &DeviceLattice) -> Result<(), Error> {
        let (stream, count) = (&lane.stream, self.count as usize);
        // Loops over candidates read up to two points behind the last.
        self.at.reserve(stream, count + 2)?;
        self.keys.reserve(stream, count)?;
        self.placed.reserve(stream, count)?;
        if lattice.is_periodic() {
            self.wraps.reserve(stream, count)?;
            self.any_wrapped.reserve(stream, 1)?;
        }
        if let Some(mask) = self.mask {
            self.slots.reserve(stream, mask as usize + 1)?;
            self.ids.reserve(stream, mask as usize + 1)?;
            self.bricks.reserve(stream, count)?;
        }
        let tiles = scan_tiles(self.cells());
        self.tiles.reserve(stream, tiles)?;
        self.starts.reserve(stream, tiles * SCAN_TILE + 1)?;
        if self.counts.reserve(stream, tiles * SCAN_TILE)? {
            // Every later step leaves them zero.
            let all = 0..self.counts.capacity();
            self.counts.zero(stream, all)?;
        }
        Ok(())
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

    fn read_status(&self, lane: &GpuLane) -> Result<Status, Error> {
        let mut status = [Status::BEFORE];
        self.status.download(&lane.stream, 0, &mut status)?;
        Ok(status[0])
    }
}
