//! The geometry of pairs on the device: arrays parallel to the entries of lists.
//!
//! Lists name sources, but not the image through which each was found. Where that is asked for, the
//! kernels that write entries also write image, displacement and distance of every pair, each to an
//! array of its own: value k of every array belongs to entry k of the storage. There is no second
//! search, and programs that want lists alone are compiled without all of this.
//!
//! # Why an array each
//!
//! Programs want some of these numbers and not others: molecular dynamics the displacement and its
//! square, a graph network both ends of a pair and the image vector. What is not asked for is
//! neither computed nor written, and writing is what such a job takes its time for. Displacements
//! are three numbers side by side, as positions are.
//!
//! # Precision
//!
//! Of positions in double precision displacements and all that follows from them are `f64`, as the
//! contract has them. Arrays are then made of twice as many elements of four bytes, and copied as
//! such, so one set of buffers serves both precisions. An engine has one precision, so arrays are
//! not made anew between searches.
//!
//! Squares that lists are ordered by are the contract's in that precision, bit for bit, so the k
//! nearest are the same pairs as on the CPU, also among distances that `f32` does not tell apart.
//! Where a host wants displacements in `f32`, as batches do, it rounds them when they have arrived:
//! on the way they take twice the room of page-locked memory.
//!
//! # Memory
//!
//! Arrays grow with the storage of entries and are kept as that is. An array that nobody asks for
//! any more is given back at the next search, so a program that stops to want images holds none.
//!
//! # Invariant
//!
//! Every array that was asked for has room for as many pairs as [`PairBuffers::room`] says, which
//! kernels are told as the end of the storage.

use crate::{
    error::Error,
    handles::{DeviceView, Stream},
    launch::PairArrays,
    memory::{Buffer, Queue, kept_buffers},
};
use cudarc::driver::{CudaView, DeviceRepr};
use nearfield_grid::Precision;
use std::ops::Range;

/// Which numbers of every pair are written beside the entries of lists.
///
/// All of them are those of the contract, with the bits that the CPU backend gives: the
/// displacement is fl(fl(x_j − x_i) + S) per axis, its square fma(dz, dz, fma(dy, dy, dx·dx)), and
/// S the image vector, computed in `f64` and rounded once.
///
/// ```
/// use nearfield_gpu::GeometryQuantities;
/// use nearfield_grid::Precision;
/// let mut wanted = GeometryQuantities::NONE;
/// (wanted.displacements, wanted.images) = (true, true);
/// assert_eq!(wanted.bytes_per_pair(Precision::Single), 24);
/// assert_eq!(wanted.bytes_per_pair(Precision::Double), 36);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GeometryQuantities {
    /// The caller's index of the target, `u32`: with the entry, both ends of a pair.
    pub targets: bool,
    /// By how many boxes the source is moved along each axis, three `i32`; zero on open axes.
    pub images: bool,
    /// The vector of that image, three `f32` in the unit of the coordinates.
    pub shifts: bool,
    /// From the target to that image of the source, three `f32`.
    pub displacements: bool,
    /// Squared length of the displacement, `f32`.
    pub squares: bool,
    /// Its length, `f32`: the root of the square, rounded to the nearest.
    pub distances: bool,
}

impl GeometryQuantities {
    /// Lists alone.
    pub const NONE: Self = Self {
        targets: false,
        images: false,
        shifts: false,
        displacements: false,
        squares: false,
        distances: false,
    };

    /// Returns true if nothing is asked for.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Bytes that a pair takes beside its entry where positions are in this precision.
    pub fn bytes_per_pair(self, precision: Precision) -> usize {
        let of = |wanted: bool, bytes: usize| if wanted { bytes } else { 0 };
        let number = match precision {
            Precision::Single => size_of::<f32>(),
            Precision::Double => size_of::<f64>(),
        };
        of(self.targets, 4)
            + of(self.images, 12)
            + of(self.shifts, 3 * number)
            + of(self.displacements, 3 * number)
            + of(self.squares, number)
            + of(self.distances, number)
    }
}

/// The arrays of the geometry of pairs on the device; None of a quantity that was not asked for.
///
/// Pairs stand in the order of the lists. Pairs of a half list are seen from the point that has the
/// list: displacements point from it to the other one.
///
/// All are parallel to the entries of the lists, room behind the last list included.
#[derive(Debug)]
pub struct PairViews<'a> {
    /// The caller's index of the target.
    pub targets: Option<DeviceView<'a, u32>>,
    /// Boxes by which the source is moved.
    pub images: Option<DeviceView<'a, [i32; 3]>>,
    /// The vector of that image.
    pub shifts: Option<DeviceView<'a, [f32; 3]>>,
    /// From the target to that image of the source.
    pub displacements: Option<DeviceView<'a, [f32; 3]>>,
    /// Squared lengths of the displacements.
    pub squares: Option<DeviceView<'a, f32>>,
    /// Lengths of the displacements.
    pub distances: Option<DeviceView<'a, f32>>,
    /// In an engine in `f64` those of these that are `f64` then; the others above are None.
    pub double: DoublePairViews<'a>,
}

/// The geometry of pairs in double precision, as [`PairViews`] has it in single.
///
/// A search in `f64` writes these, one in `f32` none of them: which of the two a program meets
/// follows from the precision that it built its engine with, so no value is ever converted. Values
/// have the bits that the CPU backend computes, roots included. All are parallel to the entries of
/// the lists, and an array takes twice the memory that it takes in `f32`.
#[derive(Debug, Default)]
pub struct DoublePairViews<'a> {
    /// The vector of a pair's image.
    pub shifts: Option<DeviceView<'a, [f64; 3]>>,
    /// From the target to that image of the source.
    pub displacements: Option<DeviceView<'a, [f64; 3]>>,
    /// Squared lengths of the displacements.
    pub squares: Option<DeviceView<'a, f64>>,
    /// Lengths of the displacements.
    pub distances: Option<DeviceView<'a, f64>>,
}

impl PairViews<'_> {
    /// Which arrays there are. A caller that keeps views of several searches learns from it whether
    /// those that it has are the ones that it wants now.
    pub fn quantities(&self) -> GeometryQuantities {
        GeometryQuantities {
            targets: self.targets.is_some(),
            images: self.images.is_some(),
            shifts: self.shifts.is_some() || self.double.shifts.is_some(),
            displacements: self.displacements.is_some() || self.double.displacements.is_some(),
            squares: self.squares.is_some() || self.double.squares.is_some(),
            distances: self.distances.is_some() || self.double.distances.is_some(),
        }
    }
}

/// The order of the pairs of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PairOrder {
    /// As they are found.
    #[default]
    Any,
    /// By the caller's index of the source, then by image.
    Ascending,
    /// By squared distance, then as ascending ones.
    NearestFirst,
}

/// Memory of the host that displacements, their squares and, where they are wanted, images are
/// copied to, one value for each entry of the lists.
///
/// Distances are left to the host, where a root takes less time than four bytes on the bus; so are
/// targets, which the starts of the lists tell. Copies are under way until the call that takes this
/// returns, and are fastest to page-locked memory.
#[derive(Debug)]
pub struct HostPairs<'a> {
    /// Boxes by which the source is moved; None where only displacements are wanted.
    pub images: Option<&'a mut [[i32; 3]]>,
    /// From the target to that image of the source: in double precision words of four bytes, two
    /// elements a pair.
    pub displacements: &'a mut [[f32; 3]],
    /// Squared lengths of the displacements, in words likewise.
    pub squares: &'a mut [f32],
}

impl HostPairs<'_> {
    /// What is written for the host where images are wanted.
    pub(super) const WANTED: GeometryQuantities = GeometryQuantities {
        images: true,
        ..Self::WITHOUT_IMAGES
    };
    /// What is written for the host where they are not.
    pub(super) const WITHOUT_IMAGES: GeometryQuantities = GeometryQuantities {
        displacements: true,
        squares: true,
        ..GeometryQuantities::NONE
    };
}

kept_buffers! {
    /// Arrays of the geometry of pairs, one for each of [`GeometryQuantities`]. Those that are not
    /// wanted hold no memory.
    pub(super) struct PairBuffers {
        /// The caller's index of the target.
        targets: u32 = "targets of pairs",
        /// Boxes by which the source is moved.
        images: [i32; 3] = "images of pairs",
        /// The vector of that image.
        shifts: [f32; 3] = "image vectors of pairs",
        /// From the target to that image of the source.
        displacements: [f32; 3] = "displacements of pairs",
        /// Squared lengths of the displacements.
        squares: f32 = "squared distances of pairs",
        /// Lengths of the displacements.
        distances: f32 = "distances of pairs",
    }
    with {
        /// Of positions in double precision: all numbers but targets and images take two elements.
        precision: Precision,
        /// What searches write from now on. Arrays of the last search that are wanted no more have
        /// been given back.
        wanted: GeometryQuantities,
        /// These, and images where pairs of one source are sorted by them.
        written: GeometryQuantities,
    }
}

impl PairBuffers {
    /// What searches write.
    pub(super) fn wanted(&self) -> GeometryQuantities {
        self.wanted
    }

    /// From the next search on these are written, and other arrays are given back. Pairs that are
    /// to be ordered have in any case what they are ordered by.
    pub(super) fn want(&mut self, wanted: GeometryQuantities, order: PairOrder) {
        self.wanted = wanted;
        let near = order == PairOrder::NearestFirst;
        let ascending = order == PairOrder::Ascending && !wanted.is_none();
        self.hold(GeometryQuantities {
            images: wanted.images || near || ascending,
            squares: wanted.squares || near,
            ..wanted
        });
    }

    /// Bytes of what searches write of a pair beside its entry.
    pub(super) fn bytes_per_pair(&self) -> usize {
        self.written.bytes_per_pair(self.precision)
    }

    /// From the next search on displacements and what follows from them are in this precision.
    pub(super) fn set_precision(&mut self, precision: Precision) {
        self.precision = precision;
    }

    /// Elements of the arrays that a number, or a vector of three, takes: they are made of words of
    /// four bytes, or of three of these, in either precision.
    pub(super) fn wide(&self) -> usize {
        match self.precision {
            Precision::Single => 1,
            Precision::Double => 2,
        }
    }

    /// Returns true if searches write nothing beside entries.
    pub(super) fn are_none(&self) -> bool {
        self.written.is_none()
    }

    /// Gives back all arrays but these.
    fn hold(&mut self, written: GeometryQuantities) {
        fn keep<T: DeviceRepr>(array: &mut Buffer<T>, wanted: bool) {
            if !wanted {
                array.release();
            }
        }
        self.written = written;
        keep(&mut self.targets, written.targets);
        keep(&mut self.images, written.images);
        keep(&mut self.shifts, written.shifts);
        keep(&mut self.displacements, written.displacements);
        keep(&mut self.squares, written.squares);
        keep(&mut self.distances, written.distances);
    }

    /// Gives all arrays back; the same are wanted.
    pub(super) fn release(&mut self) {
        let written = self.written;
        self.hold(GeometryQuantities::NONE);
        self.written = written;
    }

    /// Makes room for `pairs` pairs in every array that is written. Returns true if memory was
    /// allocated.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory); some arrays may then be longer than others.
    pub(super) fn reserve(&mut self, stream: &Stream, pairs: usize) -> Result<bool, Error> {
        fn grow<T: DeviceRepr>(
            (array, wanted): (&mut Buffer<T>, bool),
            stream: &Stream,
            pairs: usize,
        ) -> Result<bool, Error> {
            if wanted {
                array.reserve(stream, pairs)
            } else {
                Ok(false)
            }
        }
        let (wanted, wide) = (self.written, self.wide().saturating_mul(pairs));
        let grown = [
            grow((&mut self.targets, wanted.targets), stream, pairs)?,
            grow((&mut self.images, wanted.images), stream, pairs)?,
            grow((&mut self.shifts, wanted.shifts), stream, wide)?,
            grow(
                (&mut self.displacements, wanted.displacements),
                stream,
                wide,
            )?,
            grow((&mut self.squares, wanted.squares), stream, wide)?,
            grow((&mut self.distances, wanted.distances), stream, wide)?,
        ];
        Ok(grown.contains(&true))
    }

    /// Pairs that every array that is written has room for; as many as there may be if none is.
    pub(super) fn room(&self) -> usize {
        let of = |wanted: bool, room: usize| if wanted { room } else { usize::MAX };
        let (wanted, wide) = (self.written, self.wide());
        [
            of(wanted.targets, self.targets.capacity()),
            of(wanted.images, self.images.capacity()),
            of(wanted.shifts, self.shifts.capacity() / wide),
            of(wanted.displacements, self.displacements.capacity() / wide),
            of(wanted.squares, self.squares.capacity() / wide),
            of(wanted.distances, self.distances.capacity() / wide),
        ]
        .into_iter()
        .fold(usize::MAX, usize::min)
    }

    /// The arrays from pair `first` on, as kernels take them. `far` is where they count pairs whose
    /// image has no 32-bit numbers.
    pub(super) fn layout(&self, first: usize, far: u64) -> PairArrays {
        fn from<T: DeviceRepr>(array: &Buffer<T>, wanted: bool, first: usize) -> u64 {
            match array.address() {
                address if wanted && address != 0 => address + (first * size_of::<T>()) as u64,
                _ => 0,
            }
        }
        let (wanted, wide) = (self.written, first * self.wide());
        PairArrays {
            targets: from(&self.targets, wanted.targets, first),
            images: from(&self.images, wanted.images, first),
            shifts: from(&self.shifts, wanted.shifts, wide),
            displacements: from(&self.displacements, wanted.displacements, wide),
            squares: from(&self.squares, wanted.squares, wide),
            distances: from(&self.distances, wanted.distances, wide),
            far,
        }
    }

    /// The first `pairs` values of every array that is wanted.
    pub(super) fn views(&self, pairs: usize) -> PairViews<'_> {
        fn view<T: DeviceRepr>(
            array: &Buffer<T>,
            wanted: bool,
            pairs: usize,
        ) -> Option<DeviceView<'_, T>> {
            let found: Option<CudaView<'_, T>> = array.view(pairs).filter(|_| wanted);
            found.map(DeviceView)
        }
        fn double<T: DeviceRepr, D>(
            array: &Buffer<T>,
            wanted: bool,
            pairs: usize,
        ) -> Option<DeviceView<'_, D>> {
            let found = array.view(2 * pairs).filter(|_| wanted)?;
            // SAFETY: kernels of double precision write `f64` there, and any bits are some; the
            // array begins where any number may.
            unsafe { found.transmute(pairs) }.map(DeviceView)
        }
        let is_double = self.precision == Precision::Double;
        let all = self.wanted;
        // Numbers that are in the other precision are not wanted.
        let wanted = |double: bool| GeometryQuantities {
            shifts: all.shifts && double == is_double,
            displacements: all.displacements && double == is_double,
            squares: all.squares && double == is_double,
            distances: all.distances && double == is_double,
            ..all
        };
        let (single, of_double) = (wanted(false), wanted(true));
        PairViews {
            targets: view(&self.targets, all.targets, pairs),
            images: view(&self.images, all.images, pairs),
            shifts: view(&self.shifts, single.shifts, pairs),
            displacements: view(&self.displacements, single.displacements, pairs),
            squares: view(&self.squares, single.squares, pairs),
            distances: view(&self.distances, single.distances, pairs),
            double: DoublePairViews {
                shifts: double(&self.shifts, of_double.shifts, pairs),
                displacements: double(&self.displacements, of_double.displacements, pairs),
                squares: double(&self.squares, of_double.squares, pairs),
                distances: double(&self.distances, of_double.distances, pairs),
            },
        }
    }

    /// Starts to copy values from `first` on to the places `to` of the host's arrays.
    ///
    /// # Errors
    /// [`FieldLength`](crate::ErrorKind::FieldLength) if an array ends before them.
    pub(super) fn copy_to(
        &self,
        queue: &Queue,
        first: usize,
        pairs: &mut HostPairs<'_>,
        to: Range<usize>,
    ) -> Result<(), Error> {
        fn part<'a, T>(
            array: &'a mut [T],
            what: &'static str,
            to: &Range<usize>,
        ) -> Result<&'a mut [T], Error> {
            let found = array.len();
            let part = array.get_mut(to.clone());
            part.ok_or_else(|| {
                Error::from(crate::ErrorKind::FieldLength {
                    what,
                    found,
                    expected: to.end,
                })
            })
        }
        if let Some(images) = &mut pairs.images {
            let images = part(images, "images of pairs", &to)?;
            self.images.copy_to(queue, first, images)?;
        }
        let wide = self.wide();
        let (first, to) = (wide * first, wide * to.start..wide * to.end);
        let displacements = part(pairs.displacements, "displacements of pairs", &to)?;
        self.displacements.copy_to(queue, first, displacements)?;
        let squares = part(pairs.squares, "squared distances of pairs", &to)?;
        self.squares.copy_to(queue, first, squares)
    }
}
