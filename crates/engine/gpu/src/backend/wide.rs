//! Wide points: those whose radii are too large for the cells of their lattice.
//!
//! Cells of the largest radius make a target of small radius test far more candidates than it has
//! neighbours. Where few points have a radius far above that of all others, a
//! lattice [for the bulk](super::DeviceLattice::for_bulk) has cells for these, and kernels compare
//! the few with all others (`kernels/cuda/wide.cuh`). They are found on the device after a sort,
//! once for every sort and array of radii.
//!
//! # What is compared with what
//!
//! | target | sources in cells | wide sources |
//! | --- | --- | --- |
//! | not wide, or its radius does not count | by the walk | by the walk if their radii do not count, else one by one |
//! | wide | all, by a block of threads | the same |
//!
//! So every pair is met once, whoever's radius decides. Pairs that are met one by one are computed
//! by the contract from the positions as given, also where walks see proxies.
//!
//! # Cost
//!
//! A wide target takes the time in which one block looks at all sources, and 128 or more of them
//! run at a time. A wide source adds one candidate to every target. Finding wide points reads every
//! radius once.
//!
//! # Order
//!
//! Places of wide points ascend, so a list has its wide sources behind those of the walk, in the
//! order of the sort, and sums add them in that order. The list of a wide target is in the order of
//! the sorted sources. Both depend on positions, radii and cells alone: the atomic counter by which
//! wide points are found gives them an arbitrary order, which a second kernel undoes.
//!
//! # Boxes
//!
//! The largest radius is less than half of a periodic box. So a pair that is met one by one is
//! looked at in the nearest image alone, as kernels over stored lists do (`nearest_image.cuh`).
//!
//! # Double precision
//!
//! Walks of double precision compare proxies with a bound of the radii, and pairs within it as
//! given. Wide points would need the second alone; there are no kernels for that, so cells are
//! always for all radii.
//!
//! # Shares and named targets
//!
//! Targets that are a share have sorted places of their own. Where these are chosen points their
//! wide ones are found too; wide targets of other shares are compared with all sources by the
//! threads that walk, which takes long for each, and finds the same.
//!
//! # Too many
//!
//! Whoever makes the lattice counts the radii first. Radii that come from the device later are
//! counted there, and the host may learn after a job that a set has more than [`MAX_WIDE_POINTS`].
//! Jobs then see that many of them and leave the others out: they write nothing out of place, and
//! their results do not stand.
//!
//! **Invariant:** results count only if no set has more than [`MAX_WIDE_POINTS`] wide points.

use super::{
    gpu::GpuBackend,
    lattice::DeviceLattice,
    nearest_image::{nearest_is_certain, rounded_inverse},
};
use crate::{
    constants::MAX_WIDE,
    error::Error,
    launch::{Filters, Points, WIDE_WORDS},
    memory::Buffer,
};
use nearfield_grid::{Lattice, Precision, Radius};

/// Maximum number of points of a set whose radii may be larger than that of the cells.
pub const MAX_WIDE_POINTS: usize = MAX_WIDE as usize;

/// Boxes that the largest radius may reach: a neighbour is then seen through one image alone.
const MAX_BOXES: f64 = 0.48;

/// The wide points of a set, or of a share of it.
#[derive(Debug)]
pub(super) struct WidePoints {
    /// Their number and sorted places, and room to sort these.
    places: Buffer<u32>,
    /// The sort, or choice, and the radii that they were found for; zero for none.
    of: [u64; 4],
}

impl Default for WidePoints {
    fn default() -> Self {
        Self {
            places: Buffer::new("points of large radius"),
            of: [0; 4],
        }
    }
}

impl WidePoints {
    /// Where they are; 0 if they were found for something else.
    ///
    /// Kernels take 0 for a side that has none, and then compare nothing one by one there.
    pub(super) fn address(&self, of: [u64; 4]) -> u64 {
        if self.of == of {
            self.places.address()
        } else {
            0
        }
    }

    /// Finds those of some sorted points, by radii in the caller's order, unless that has been done
    /// for the same: `of` tells.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) and those of running a program.
    pub(super) fn find(
        &mut self,
        backend: &GpuBackend,
        points: &Points,
        radii: u64,
        bulk: f32,
        of: [u64; 4],
    ) -> Result<(), Error> {
        if self.of == of {
            return Ok(());
        }
        self.of = [0; 4];
        let stream = &backend.stream;
        self.places.reserve(stream, WIDE_WORDS)?;
        self.places.zero(stream, 0..WIDE_WORDS)?;
        if points.count > 0 {
            let kernels = backend.shared.point_data()?;
            kernels.wide(stream, points, radii, bulk, self.places.address())?;
        }
        self.of = of;
        Ok(())
    }

    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.places.bytes()
    }
}

impl DeviceLattice {
    /// Says that some radii are larger than that of the lattice, but none than `largest`: only
    /// searches by [radii of single points](super::DeviceFilter::radii) may use it, where both sets
    /// have radii if those of their side count. `None` if that radius reaches half of the box, and
    /// in double precision.
    pub fn for_bulk(mut self, largest: Radius) -> Option<Self> {
        if !Self::may_be_for_bulk(&self.lattice, largest) {
            return None;
        }
        self.layout = self.layout.within(largest);
        self.wide = Some(largest);
        Some(self)
    }

    /// Returns true if a lattice may be [for the bulk](Self::for_bulk) of points whose radii are up
    /// to `largest`: in single precision, if cells see all axes repeat that do, and if a point can
    /// be within that radius only through its nearest image, which kernels find in `f32`.
    pub fn may_be_for_bulk(lattice: &Lattice, largest: Radius) -> bool {
        let domain = lattice.domain();
        let boxes = |[x, y, z]: [f64; 3]| largest.value_f64() * x.hypot(y).hypot(z);
        let short = (domain.inverse().iter().flatten()).any(|&row| boxes(row) > MAX_BOXES);
        lattice.radius().precision() == Precision::Single
            && !short
            && nearest_is_certain(domain, largest)
            && lattice.effective_domain() == domain
    }

    /// No pair is farther apart.
    pub fn largest(&self) -> Radius {
        self.wide.unwrap_or(self.lattice.radius())
    }

    /// The radius of its cells, where some points have larger ones; `None` where its cells are for
    /// all of them.
    pub fn bulk(&self) -> Option<f32> {
        self.wide.map(|_| self.lattice.radius().value())
    }

    /// What kernels know of wide points, but for these.
    pub(super) fn wide_filters(&self, filters: Filters) -> Filters {
        match self.wide {
            Some(_) => filters.for_bulk(&self.lattice),
            None => filters,
        }
    }
}

impl Filters {
    /// The same in cells of this lattice, which are for the bulk of the points: the radius above
    /// which a point is wide, what nearest images are found by, and how far walks reach for
    /// sources, of which they find no wide ones.
    pub(super) fn for_bulk(self, lattice: &Lattice) -> Self {
        let bulk = lattice.radius().value();
        Self {
            bulk,
            inverse: rounded_inverse(lattice.domain()),
            largest_source: self.largest_source.min(bulk),
            ..self
        }
    }
}
