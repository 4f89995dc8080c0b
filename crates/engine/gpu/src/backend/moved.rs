//! Positions that the host sends for lists that were found at earlier ones.
//!
//! The host has measured how far the points have come, and asks for kernels over the lists only
//! while these hold every pair. So nothing is decided here: positions come in the caller's order
//! and are brought into the order of the sort that the lists were made of. Positions that live on
//! the device are [followed](GpuBackend::follow), where the device does the measuring.
//!
//! In single precision the kernel of followed points serves, whose displacement nobody reads. In
//! double precision traversals over lists read positions as given, and nothing but these changes.
//!
//! **Invariant:** a traversal reads positions only with the sort by which they were brought into
//! order.

use super::{gpu::GpuBackend, lattice::DeviceLattice, points::DevicePoints};
use crate::{
    error::{Error, ErrorKind},
    launch::{Following, Lattice, Points},
    memory::kept_buffers,
};
use nearfield_grid::{Precision, Radius};

kept_buffers! {
    /// Positions of a set since its lists were found, from the host.
    pub struct MovedPoints {
        /// In the caller's order: in double precision two elements a number.
        given: f32 = "positions",
        /// Position, and the caller's index as bits, in the order of the sort; in single precision.
        now: [f32; 4] = "positions of now",
        /// Positions in the order of the sort; in double precision.
        exact: [f64; 3] = "positions of now",
        /// Words that the kernel of followed points writes.
        moved: u32 = "displacements",
    }
    with {
        /// Elements of `given` that are expected.
        expected: usize,
        /// The sort by which they were brought into order; 0 for none.
        sort: u64,
    }
}

/// Where the points of both sets are now, whose lists were found for a larger radius.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'a> {
    /// Pairs beyond it are passed over.
    pub radius: Radius,
    /// Positions of targets and of sources; None for those of the search.
    pub sets: [Option<&'a MovedPoints>; 2],
}

impl GpuBackend {
    /// Makes room for new positions of a sorted set, which are then
    /// [received](Self::receive_moved).
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`], [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    pub fn expect_moved(
        &self,
        points: &DevicePoints,
        moved: &mut MovedPoints,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        let (stream, count) = (&self.stream, points.len());
        (moved.sort, moved.expected) = (0, points.words(count));
        moved.given.reserve(stream, moved.expected)?;
        match points.precision() {
            Precision::Single => {
                moved.now.reserve(stream, count)?;
                moved.moved.reserve_zeroed(stream, 2)
            }
            Precision::Double => moved.exact.reserve(stream, count).map(drop),
        }
    }

    /// Copies some of the positions that were [expected](Self::expect_moved) to the device, from
    /// number `first` on, as [`receive`](Self::receive) does those of a set.
    ///
    /// # Errors
    /// As there.
    pub fn receive_moved(
        &self,
        moved: &mut MovedPoints,
        first: usize,
        numbers: &[f32],
    ) -> Result<(), Error> {
        let (found, expected) = (first.saturating_add(numbers.len()), moved.expected);
        if found > expected {
            let what = "positions";
            return Err(Error::from(ErrorKind::FieldLength {
                what,
                found,
                expected,
            }));
        }
        moved.given.upload_at(&self.stream, first, numbers)
    }

    /// Brings the positions that were received into the order of the sort; without waiting.
    ///
    /// # Errors
    /// As [`expect_moved`](Self::expect_moved).
    pub fn arrange_moved(
        &self,
        points: &DevicePoints,
        lattice: &DeviceLattice,
        moved: &mut MovedPoints,
    ) -> Result<(), Error> {
        points.check_sorted()?;
        if points.is_empty() {
            return Ok(());
        }
        let (stream, layout, given) = (&self.stream, points.layout(), moved.given.address());
        match points.precision() {
            Precision::Single => {
                let set = Following {
                    built: layout.at,
                    given: 0,
                    positions: given,
                    now: moved.now.address(),
                    now_given: 0,
                    moved: moved.moved.address(),
                    next: moved.moved.address() + size_of::<u32>() as u64,
                    low: [f64::NEG_INFINITY; 3],
                    high: [f64::INFINITY; 3],
                    count: layout.count,
                };
                let in_box = Lattice::of_box(lattice.lattice());
                self.shared.slots()?.follow(stream, &set, &in_box)?;
            }
            Precision::Double => {
                let (words, to) = (points.words(1) as u32, moved.exact.address());
                (self.shared.grid).values_in_order(stream, &layout, given, words, to)?;
            }
        }
        moved.sort = points.last_sort();
        Ok(())
    }
}

impl MovedPoints {
    /// Returns true if these are in the order of the points as they are sorted now.
    pub fn are_of(&self, points: &DevicePoints) -> bool {
        self.sort != 0 && self.sort == points.last_sort()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held()
    }

    /// The points of a set where they are now.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`] for another sort.
    fn place(&self, points: &DevicePoints, layout: &mut Points) -> Result<(), Error> {
        if points.is_empty() {
            return Ok(());
        }
        if !self.are_of(points) {
            return Err(Error::from(ErrorKind::Unsorted));
        }
        match points.precision() {
            Precision::Single => layout.at = self.now.address(),
            Precision::Double => layout.given = self.exact.address(),
        }
        Ok(())
    }
}

impl Moved<'_> {
    /// Puts the positions of now into the layouts of targets and sources.
    ///
    /// # Errors
    /// [`ErrorKind::Unsorted`] for positions that are in the order of another sort.
    pub(super) fn place(
        &self,
        points: [&DevicePoints; 2],
        layouts: [&mut Points; 2],
    ) -> Result<(), Error> {
        for ((moved, points), layout) in self.sets.iter().zip(points).zip(layouts) {
            if let Some(moved) = moved {
                moved.place(points, layout)?;
            }
        }
        Ok(())
    }
}
