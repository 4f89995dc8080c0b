//! The targets of this backend when it works beside another one.
//!
//! A map of bricks says which part of the work a point belongs to. It is made for one step and
//! serves many: wherever points move, each lies in exactly one part. The targets of this backend
//! are gathered from the sorted points into arrays of their own, which kernels read like any set.
//! Gathering is a counting sort by part: tiles count their points of each part, a scan adds the
//! counts up part by part, and tiles place their points in sorted order.
//!
//! Grouped by part, results leave in the order of the parts while later parts are computed.
//! Ungrouped, a share keeps the order of cells and has a cell table of its own, for strategies that
//! go from cell to cell. A share remembers the sort that it was made of and is refused after the
//! next one.

use super::{gpu::GpuBackend, lattice::DeviceLattice, points::DevicePoints};
use crate::{
    error::{Error, ErrorKind},
    launch::{self, Parts, SCAN_TILE, ShareKernels, Sharing, Status, scan_tiles},
    memory::Buffer,
};
use nearfield_grid::{BrickParts, Lattice};
use nearfield_kernels::constants;

/// Parts that a share may have.
pub const MAX_PARTS: usize = constants::MAX_PARTS as usize;

/// Whom bricks belong to, on the device.
#[derive(Debug)]
pub struct DeviceParts {
    lattice: launch::Lattice,
    bricks: Buffer<u8>,
    parts: Parts,
}

/// Points of a set that are targets of this backend.
///
/// Grouped, they are sorted by part; ungrouped they have a cell table of their own, as strategies
/// need that go from cell to cell.
#[derive(Debug)]
pub struct DeviceShare {
    at: Buffer<[f32; 4]>,
    wraps: Buffer<[i32; 4]>,
    slots: Buffer<u32>,
    ranks: Buffer<u32>,
    table: Buffer<u32>,
    keys: Buffer<u8>,
    counts: Buffer<u32>,
    starts: Buffer<u64>,
    tiles: Buffer<u64>,
    status: Buffer<Status>,
    on_device: Buffer<u64>,
    /// The number of the sort of the points that it was made of.
    sort: u64,
    /// Whether it has a cell table of its own.
    tabled: bool,
    /// Targets before every part, and behind the last.
    bounds: Vec<u64>,
    layout: Option<launch::Points>,
}

impl Default for DeviceShare {
    fn default() -> Self {
        Self {
            at: Buffer::new("targets of a share"),
            wraps: Buffer::new("image counts of a share"),
            slots: Buffer::new("places of a share"),
            ranks: Buffer::new("ranks of a share"),
            table: Buffer::new("the cell table of a share"),
            keys: Buffer::new("parts of points"),
            counts: Buffer::new("counts of parts"),
            starts: Buffer::new("starts of parts"),
            tiles: Buffer::new("tiles of a scan"),
            status: Buffer::new("the status"),
            on_device: Buffer::new("bounds of parts"),
            sort: 0,
            tabled: false,
            bounds: Vec::new(),
            layout: None,
        }
    }
}

impl GpuBackend {
    /// Whom bricks belong to, for shares: parts below `count` are this backend's. `lattice` is the
    /// one that the bricks were made of, which may be another than points are sorted into here.
    ///
    /// # Errors
    /// [`ErrorKind::SlantedBox`], [`ErrorKind::TooManyParts`], [`ErrorKind::OutOfMemory`] and
    /// [`ErrorKind::Driver`].
    pub fn parts(
        &self,
        bricks: &BrickParts,
        count: usize,
        lattice: &Lattice,
        old: Option<DeviceParts>,
    ) -> Result<DeviceParts, Error> {
        if lattice.domain().is_slanted() {
            return Err(Error::from(ErrorKind::SlantedBox));
        }
        if count > MAX_PARTS {
            return Err(Error::from(ErrorKind::TooManyParts {
                found: count,
                most: MAX_PARTS,
            }));
        }
        let mut buffer = old.map_or_else(|| Buffer::new("parts of bricks"), |old| old.bricks);
        buffer.upload(&self.stream, bricks.parts())?;
        Ok(DeviceParts {
            lattice: launch::Lattice::new(lattice),
            parts: Parts {
                parts: buffer.address(),
                first: bricks.first(),
                dims: bricks.dims(),
                edge: bricks.edge(),
                elsewhere: u32::from(bricks.elsewhere()),
                count: count as u32,
            },
            bricks: buffer,
        })
    }

    /// Gathers the targets of a share of sorted points, and waits until it is known how many there
    /// are. They hold until the points are sorted again.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::OtherLattice`], [`ErrorKind::OutOfMemory`] and those
    /// of running a program.
    pub fn share(
        &self,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        parts: &DeviceParts,
        grouped: bool,
        share: &mut DeviceShare,
    ) -> Result<(), Error> {
        let groups = match grouped {
            true => parts.parts.count as usize,
            false => 1,
        };
        points.check_sorted()?;
        points.check_lattice(lattice)?;
        (share.sort, share.tabled) = (points.last_sort(), !grouped);
        share.layout = None;
        share.bounds.clear();
        if points.is_empty() || parts.parts.count == 0 {
            share.bounds.resize(groups + 1, 0);
            return Ok(());
        }
        let kernels = self.shared.share()?;
        let whole = points.layout();
        let sharing = share.reserve(self, points, lattice, groups)?;
        let stream = &self.stream;
        kernels.count(
            stream,
            &whole,
            &parts.lattice,
            &parts.parts,
            grouped,
            &sharing,
        )?;
        let items = groups * ShareKernels::tiles(points.len());
        let (tiles, status) = (share.tiles.address(), share.status.address());
        let grid = &self.shared.grid;
        grid.reset(stream, status, tiles, scan_tiles(items), false)?;
        let (counts, starts) = (sharing.counts, sharing.starts);
        grid.list_scan(stream, counts, starts, items, tiles, status)?;
        kernels.place(stream, &whole, &sharing)?;
        let mut layout = launch::Points {
            at: sharing.at,
            wraps: sharing.wraps,
            slots: sharing.slots,
            ..whole
        };
        if !grouped {
            share.table.reserve(stream, points.cells() + 1)?;
            layout.starts = share.table.address();
            kernels.table(stream, &whole, &sharing, layout.starts)?;
        }
        share.bounds.resize(groups + 1, 0);
        let mut bounds = std::mem::take(&mut share.bounds);
        share.on_device.download(stream, 0, &mut bounds)?;
        share.bounds = bounds;
        layout.count = share.len() as u32;
        share.layout = Some(layout);
        Ok(())
    }
}

impl DeviceShare {
    /// Number of targets.
    pub fn len(&self) -> usize {
        self.bounds.last().map_or(0, |&all| all as usize)
    }

    /// Whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Targets before every part, and at the end all of them.
    pub fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.at.bytes()
            + self.wraps.bytes()
            + self.slots.bytes()
            + self.ranks.bytes()
            + self.table.bytes()
            + self.keys.bytes()
            + self.counts.bytes()
            + self.starts.bytes()
    }

    /// Whether it was made of these points as they are sorted now, with a cell table of its own
    /// where one is needed. A share of no targets is one of any points: it is not walked.
    pub(super) fn is_of(&self, points: &DevicePoints, table: bool) -> bool {
        self.is_empty() || (self.sort == points.last_sort() && (self.tabled || !table))
    }

    /// Where the points of the share are.
    pub(super) fn at(&self) -> &Buffer<[f32; 4]> {
        &self.at
    }

    /// The targets as kernels see them; None when there are none.
    pub(super) fn layout(&self) -> Option<launch::Points> {
        self.layout
    }

    fn reserve(
        &mut self,
        backend: &GpuBackend,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        groups: usize,
    ) -> Result<Sharing, Error> {
        let (stream, count) = (&backend.stream, points.len());
        self.at.reserve(stream, count)?;
        self.slots.reserve(stream, count)?;
        self.keys.reserve(stream, count)?;
        let items = groups * ShareKernels::tiles(count);
        let padded = backend.tiles_for(&mut self.tiles, items)? * SCAN_TILE;
        self.counts.reserve(stream, padded)?;
        self.starts.reserve(stream, padded + 1)?;
        self.status.reserve(stream, 1)?;
        self.on_device.reserve(stream, groups + 1)?;
        // The scan also reads these elements behind the last.
        self.counts.zero(stream, items..padded)?;
        if lattice.is_periodic() {
            self.wraps.reserve(stream, count)?;
        }
        // Only ungrouped shares have tables.
        let table = groups == 1;
        if table {
            self.ranks.reserve(stream, count)?;
        }
        Ok(Sharing {
            keys: self.keys.address(),
            counts: self.counts.address(),
            starts: self.starts.address(),
            bounds: self.on_device.address(),
            groups: groups as u32,
            at: self.at.address(),
            wraps: match lattice.is_periodic() {
                true => self.wraps.address(),
                false => 0,
            },
            slots: self.slots.address(),
            ranks: if table { self.ranks.address() } else { 0 },
        })
    }
}
