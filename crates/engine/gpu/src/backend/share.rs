//! The targets of this backend when it works beside another one.
//!
//! A map of bricks says which part of the work a point belongs to. It is made for one step and
//! serves many: wherever points move, each lies in exactly one part. The targets of this backend
//! are gathered from the sorted points into arrays of their own, which kernels read like any set.
//! Gathering is a counting sort by part: tiles count their points of each part, a scan adds the
//! counts up part by part, and tiles place their points in sorted order.
//!
//! Parts below a number are this backend's; they are the subregions that are transferred one by
//! one. The same map says of every point whose target it is on either side, so every target is
//! computed by exactly one backend.
//!
//! Grouped by part, results leave in the order of the parts while later parts are computed.
//! Ungrouped, a share keeps the order of cells and has a cell table of its own, for strategies that
//! go from cell to cell. Cells of that table are those of the whole set, so sources need no second
//! table.
//!
//! # Chosen targets
//!
//! A share may also be some points that the caller chose one by one, for a job of this backend
//! alone. It is one part without a table, its positions are there in either precision, and where it
//! is small each of its targets gets a warp. Shares of work beside another backend are in `f32`.
//!
//! # Invariant
//!
//! A share remembers the sort that it was made of and is refused after the next one. Sources are
//! always the whole set: a share restricts who searches, never who is found, so each of its targets
//! has the neighbours that it has without one.
//!
//! # Cost
//!
//! Two passes over the sorted points, a scan of parts × tiles counts, and one wait for the number
//! of targets.

use super::{gpu::GpuBackend, lattice::DeviceLattice, points::DevicePoints};
use crate::constants;
use crate::{
    error::{Error, ErrorKind},
    launch::{self, GatheredPoints, Parts, SCAN_TILE, Scan, ShareKernels, Sharing, Status},
    memory::{Buffer, kept_buffers},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::{BrickParts, Lattice, Precision};

/// Parts that a share may have.
pub const MAX_PARTS: usize = constants::MAX_PARTS as usize;

/// Whom bricks belong to, on the device.
#[derive(Debug)]
pub struct DeviceParts {
    /// The cells that bricks are made of.
    lattice: launch::Lattice,
    /// The memory that `parts` has the address of.
    _bricks: Buffer<u8>,
    /// The map as kernels take it.
    parts: Parts,
}

kept_buffers! {
    /// Points of a set that are targets of this backend.
    ///
    /// Grouped, they are sorted by part; ungrouped they have a cell table of their own, as
    /// strategies need that go from cell to cell.
    pub struct DeviceShare {
        /// Position and the caller's index of every target.
        at: [f32; 4] = "targets of a share",
        /// Image counts of the targets; of periodic domains only.
        wraps: [i32; 4] = "image counts of a share",
        /// Position of every target; of double precision only.
        given: [f64; 3] = "positions of a share",
        /// Rank of every target in the whole sorted set.
        slots: u32 = "ranks of targets",
        /// Per point of the whole set the targets before it; without groups only.
        ranks: u32 = "ranks of a share",
        /// Targets before every cell; without groups only.
        table: u32 = "the cell table of a share",
        /// Part of every point of the whole set.
        keys: u8 = "parts of points",
        /// Points of every part in every tile.
        counts: u32 = "counts of parts",
        /// Their prefix sums.
        starts: u64 = "starts of parts",
        /// State of the tiles of the scan.
        tiles: u64 = "tiles of a scan",
        /// Status of the scan.
        status: Status = "the status",
        /// The bounds below, as the device writes them.
        on_device: u64 = "bounds of parts",
    }
    with {
        /// The number of the sort of the points that it was made of.
        sort: u64,
        /// True if it has a cell table of its own.
        tabled: bool,
        /// True if its points were chosen one by one, not for a part of the work.
        chosen: bool,
        /// Targets before every part, and behind the last.
        bounds: Vec<u64>,
        /// The targets as kernels take them; None when there are none.
        layout: Option<launch::Points>,
    }
}

impl GpuBackend {
    /// Whom bricks belong to, for shares: parts below `count` are this backend's. `lattice` is the
    /// one that the bricks were made of, which may be another than points are sorted into here.
    ///
    /// # Errors
    /// [`ErrorKind::SlantedBox`], [`ErrorKind::ReducedBox`], [`ErrorKind::TooManyParts`],
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn parts(
        &self,
        bricks: &BrickParts,
        count: usize,
        lattice: &Lattice,
    ) -> Result<DeviceParts, Error> {
        if lattice.domain().is_slanted() {
            return Err(Error::from(ErrorKind::SlantedBox));
        }
        if lattice.domain().is_reduced() {
            return Err(Error::from(ErrorKind::ReducedBox));
        }
        if count > MAX_PARTS {
            return Err(Error::from(ErrorKind::TooManyParts {
                found: count,
                most: MAX_PARTS,
            }));
        }
        let mut buffer = Buffer::new("parts of bricks");
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
            _bricks: buffer,
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
        let groups = if grouped {
            parts.parts.count as usize
        } else {
            1
        };
        points.check_sorted()?;
        points.check_lattice(lattice)?;
        (share.sort, share.tabled, share.chosen) = (points.last_sort(), !grouped, false);
        share.layout = None;
        share.bounds.clear();
        if points.is_empty() || parts.parts.count == 0 {
            share.bounds.resize(groups + 1, 0);
            return Ok(());
        }
        let kernels = self.shared.share()?;
        let whole = points.layout();
        let sharing = share.reserve(self, points, lattice.is_periodic(), groups)?;
        let stream = &self.stream;
        kernels.count(
            stream,
            &whole,
            &parts.lattice,
            &parts.parts,
            grouped,
            &sharing,
        )?;
        self.gather_share(points, &whole, &sharing, share)?;
        let mut layout = share_layout(&whole, &sharing);
        if !grouped {
            share.table.reserve(stream, points.cells() + 1)?;
            layout.starts = share.table.address();
            kernels.table(stream, &whole, &sharing, layout.starts)?;
        }
        layout.count = share.len() as u32;
        share.layout = Some(layout);
        Ok(())
    }
}

impl GpuBackend {
    /// Gathers the sorted points whose byte is not 0, in the caller's order at `chosen`, and waits
    /// until it is known how many they are. For the strategy `flat`: the share has no table.
    ///
    /// # Errors
    /// As [`share`](Self::share).
    pub(super) fn share_of_chosen(
        &self,
        points: &DevicePoints,
        chosen: CUdeviceptr,
        share: &mut DeviceShare,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        (share.sort, share.tabled, share.chosen) = (points.last_sort(), false, true);
        share.layout = None;
        share.bounds.clear();
        if points.is_empty() {
            share.bounds.resize(2, 0);
            return Ok(());
        }
        let kernels = self.shared.share()?;
        let whole = points.layout();
        let sharing = share.reserve(self, points, whole.wraps != 0, 1)?;
        kernels.choose(&self.stream, &whole, chosen, &sharing)?;
        self.gather_share(points, &whole, &sharing, share)?;
        share.layout = Some(launch::Points {
            count: share.len() as u32,
            ..share_layout(&whole, &sharing)
        });
        Ok(())
    }

    /// Gathers points with these indices, which are on the device and below the number of points:
    /// target k is the point with index k of them, so the same point may be several targets.
    /// `places` has the sorted place of every point. Does not wait. For the strategy `flat`: the
    /// share has no table.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::OutOfMemory`] and those of running a program.
    pub(super) fn share_of_indices(
        &self,
        points: &DevicePoints,
        (indices, count): (CUdeviceptr, u32),
        places: CUdeviceptr,
        share: &mut DeviceShare,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        (share.sort, share.tabled, share.chosen) = (points.last_sort(), false, true);
        share.layout = None;
        share.bounds.clear();
        share.bounds.resize(2, 0);
        if count == 0 {
            return Ok(());
        }
        let (whole, stream, targets) = (points.layout(), &self.stream, count as usize);
        share.at.reserve(stream, targets)?;
        share.slots.reserve(stream, targets)?;
        let mut to = GatheredPoints {
            indices,
            count,
            places,
            at: share.at.address(),
            slots: share.slots.address(),
            wraps: 0,
            given: 0,
        };
        if whole.wraps != 0 {
            share.wraps.reserve(stream, targets)?;
            to.wraps = share.wraps.address();
        }
        if points.precision() == Precision::Double {
            share.given.reserve(stream, targets)?;
            to.given = share.given.address();
        }
        self.shared.slots()?.gather(stream, &whole, &to)?;
        share.bounds[1] = u64::from(count);
        share.layout = Some(launch::Points {
            at: to.at,
            wraps: to.wraps,
            given: to.given,
            slots: to.slots,
            count,
            ..whole
        });
        Ok(())
    }

    /// Puts the points of a share in their places, once those of every part in every tile are
    /// counted, and reads the bounds of the parts.
    fn gather_share(
        &self,
        points: &DevicePoints,
        whole: &launch::Points,
        sharing: &Sharing,
        share: &mut DeviceShare,
    ) -> Result<(), Error> {
        let (stream, groups) = (&self.stream, sharing.groups as usize);
        let scan = Scan {
            counts: sharing.counts,
            starts: sharing.starts,
            items: groups * ShareKernels::tiles(points.len()),
            tiles: share.tiles.address(),
            status: share.status.address(),
            keep: false,
        };
        self.shared.grid.list_scan(stream, &scan)?;
        self.shared.share()?.place(stream, whole, sharing)?;
        share.bounds.resize(groups + 1, 0);
        let mut bounds = std::mem::take(&mut share.bounds);
        share.on_device.download(stream, 0, &mut bounds)?;
        share.bounds = bounds;
        Ok(())
    }
}

/// The points of a share as kernels see them, but for their number.
fn share_layout(whole: &launch::Points, sharing: &Sharing) -> launch::Points {
    launch::Points {
        at: sharing.at,
        wraps: sharing.wraps,
        given: sharing.given,
        slots: sharing.slots,
        ..*whole
    }
}

impl DeviceShare {
    /// Number of targets.
    pub fn len(&self) -> usize {
        self.bounds.last().map_or(0, |&all| all as usize)
    }

    /// Returns true if there are no targets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Targets before every part, and at the end all of them.
    pub fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// Returns true if it was made of these points as they are sorted now, with a cell table of its
    /// own where one is needed. A share of no targets is one of any points: it is not walked.
    pub(super) fn is_of(&self, points: &DevicePoints, table: bool) -> bool {
        self.is_empty() || (self.sort == points.last_sort() && (self.tabled || !table))
    }

    /// Returns true if its points were chosen one by one.
    pub(super) fn is_chosen(&self) -> bool {
        self.chosen
    }

    /// Where the points of the share are.
    pub(super) fn at(&self) -> &Buffer<[f32; 4]> {
        &self.at
    }

    /// The targets as kernels see them; None when there are none.
    pub(super) fn layout(&self) -> Option<launch::Points> {
        self.layout
    }

    /// Makes room for a share of all points, since it is not known how many there will be, and
    /// clears the counts behind the last tile.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    fn reserve(
        &mut self,
        backend: &GpuBackend,
        points: &DevicePoints,
        periodic: bool,
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
        if periodic {
            self.wraps.reserve(stream, count)?;
        }
        let double = points.precision() == Precision::Double;
        if double {
            self.given.reserve(stream, count)?;
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
            wraps: if periodic { self.wraps.address() } else { 0 },
            given: if double { self.given.address() } else { 0 },
            slots: self.slots.address(),
            ranks: if table { self.ranks.address() } else { 0 },
        })
    }
}
