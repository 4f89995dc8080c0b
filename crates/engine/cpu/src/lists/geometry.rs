//! Neighbour lists with the geometry of every pair.
//!
//! Lists alone do not say through which image a neighbour was found, and where a box is smaller
//! than twice the radius the same source stands in a list once per image. So geometry is written
//! together with its own lists, target by target, by a second search that knows the image of every
//! candidate ([`crate::sets::pairs`]). Index and geometry go to parallel arrays at once,
//! so their orders agree by construction.
//!
//! # Memory
//!
//! A pair takes 32 bytes, in double precision 48: the index, three components, the squared distance
//! and three image counts. The bytes are known after the counting pass and before anything is
//! allocated, so a limit can be checked by [`PairGeometry::bytes_after`].
//!
//! # Double precision
//!
//! The vector loops hand geometry on in `f32`, for kernels. In double precision it is computed once
//! more here, by the operations of the contract that decided the pair, from the positions as given
//! and the image that was found. Sources are found in sorted order by a table of four bytes per
//! source, which is made for the call. Compared with the search this costs little: a pair takes a
//! random read of its source and some 20 operations.
//!
//! Geometry is held in one precision, that of the search, so an `f64` search takes 48 bytes per
//! pair and not 80. [`PairArrays`] tells which; [`NeighborPair`] has `f64` for both, because it
//! holds every `f32` as it is.
//!
//! # Order
//!
//! In [`ListOrder::Unspecified`] pairs come as the search finds them, which is the order of the
//! runs. In ascending order the pairs of one target are collected and sorted by (index,
//! image), so images of one source are in order too.
//!
//! # Far images
//!
//! Images are 64-bit counts inside and 32-bit in the arrays. A pair whose image does not fit is
//! possible only between points 2³¹ boxes apart. It is remembered as the error of the call, and
//! the loop goes on, because it must not stop in the middle of a parallel job.

use super::{
    measured::MeasuredLists,
    neighbor_lists::{LaidOut, ListOrder, NeighborLists},
    storage::Storage,
};
use crate::{
    candidates::walk::Walk,
    contract::{Image, difference_f64, squared_f64},
    error::{Error, ErrorKind},
    sets::{
        PairOfSets,
        pairs::{PairsOfImage, VisitPairs},
    },
};
use bytemuck::Zeroable;
use nearfield_grid::{
    DoublePoints, Precision, SharedMut,
    memory::{Shortage, make_room, zeroed},
};
use nearfield_pairs::{ListKind, Pair};
use std::{
    ops::{ControlFlow, Range},
    sync::OnceLock,
};

/// Neighbour lists and, in arrays parallel to their storage, the geometry of every pair.
///
/// The lists' `starts` and `counts` apply to all arrays: value `starts[i] + k` of each belongs to
/// neighbour `k` of target `i`.
#[derive(Debug, Default)]
pub struct PairGeometry {
    /// The lists.
    pub(super) lists: NeighborLists,
    /// Displacements and squares of a search in `f32`.
    pub(super) single: Arrays<f32>,
    /// Those of a search in `f64`.
    pub(super) double: Arrays<f64>,
    /// Which of the two were written.
    pub(super) precision: Precision,
    /// Image of every entry.
    pub(super) image: Storage<[i32; 3]>,
}

/// Displacement and squared distance of every entry; empty in the other precision, whose memory is
/// freed so that a limit counts only used memory.
#[derive(Debug)]
pub(super) struct Arrays<T> {
    pub(super) displacement: Storage<[T; 3]>,
    pub(super) distance_squared: Storage<T>,
}

impl<T> Default for Arrays<T> {
    fn default() -> Self {
        Self {
            displacement: Storage::default(),
            distance_squared: Storage::default(),
        }
    }
}

/// Displacements and squared distances in the precision of the search; both are parallel to the
/// lists' storage and in the unit of the coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairArrays<'a> {
    /// Of a search in `f32`.
    Single {
        /// From target to source, fl(fl(x_j − x_i) + S) per axis.
        displacement: &'a [[f32; 3]],
        /// At most fl(r·r).
        distance_squared: &'a [f32],
    },
    /// Of a search in `f64`.
    Double {
        /// From target to source, fl(fl(x_j − x_i) + S) per axis.
        displacement: &'a [[f64; 3]],
        /// At most fl(r·r).
        distance_squared: &'a [f64],
    },
}

/// A neighbour and the image that it was found through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighborPair {
    /// Index of the source.
    pub index: u32,
    /// By how many box lengths the source is moved along each axis; zero on open axes.
    pub image: [i32; 3],
    /// Displacement from the target to that image of the source. `f64` holds the values of a search
    /// in either precision as they are.
    pub d: [f64; 3],
    /// Squared length of `d`, computed in the precision of the search.
    pub d2: f64,
}

impl NeighborPair {
    /// Distance between target and source, in the unit of the coordinates.
    ///
    /// The root is taken in `f64`, also of a square in `f32`, so it is the nearest `f64` to the
    /// root of [`d2`](Self::d2) in either precision.
    pub fn distance(&self) -> f64 {
        self.d2.sqrt()
    }

    /// The pair as kernels take it: rounded to `f32`, where the search was in `f64`.
    ///
    /// Displacement and square are rounded separately, as [`PairsOfImage`](crate::PairsOfImage) has
    /// them.
    pub fn pair(&self) -> Pair {
        Pair {
            d: self.d.map(|d| d as f32),
            d2: self.d2 as f32,
        }
    }
}

impl<T: Copy + Zeroable> Arrays<T> {
    /// Makes both arrays `len` long.
    pub(super) fn resize(&mut self, len: usize) -> Result<(), Error> {
        self.displacement.resize(len, WHAT)?;
        self.distance_squared.resize(len, WHAT)
    }

    fn bytes(&self) -> u64 {
        let numbers = 3 * self.displacement.capacity() + self.distance_squared.capacity();
        (size_of::<T>() * numbers) as u64
    }

    /// As [`PairGeometry::bytes_after`].
    fn bytes_after(&self, pairs: u64) -> u64 {
        let max = |held: usize| pairs.max(held as u64);
        let numbers = 3 * max(self.displacement.capacity()) + max(self.distance_squared.capacity());
        size_of::<T>() as u64 * numbers
    }
}

impl PairGeometry {
    /// The lists that the geometry belongs to.
    pub fn lists(&self) -> &NeighborLists {
        &self.lists
    }

    /// Displacements and squared distances, in the precision of the search.
    ///
    /// For programs that hand whole arrays on; [`of`](Self::of) reads either.
    pub fn arrays(&self) -> PairArrays<'_> {
        match self.precision {
            Precision::Single => PairArrays::Single {
                displacement: &self.single.displacement,
                distance_squared: &self.single.distance_squared,
            },
            Precision::Double => PairArrays::Double {
                displacement: &self.double.displacement,
                distance_squared: &self.double.distance_squared,
            },
        }
    }

    /// Image of the source: by how many box lengths it is moved along each axis, zero on open axes;
    /// parallel to the lists' storage.
    pub fn images(&self) -> &[[i32; 3]] {
        &self.image
    }

    /// Neighbours of target `i` with their geometry.
    ///
    /// # Panics
    /// When there is no target `i`, as indexing a slice does.
    pub fn of(&self, i: usize) -> impl ExactSizeIterator<Item = NeighborPair> {
        let begin = self.lists.starts()[i] as usize;
        (begin..begin + self.lists.count(i)).map(|at| {
            let (d, d2) = match self.arrays() {
                PairArrays::Single {
                    displacement,
                    distance_squared,
                } => (displacement[at].map(f64::from), distance_squared[at].into()),
                PairArrays::Double {
                    displacement,
                    distance_squared,
                } => (displacement[at], distance_squared[at]),
            };
            let (index, image) = (self.lists.storage()[at], self.image[at]);
            NeighborPair {
                index,
                image,
                d,
                d2,
            }
        })
    }

    /// Bytes held, room kept for the next time included.
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
            + (self.single.bytes() + self.double.bytes()) as usize
            + size_of::<[i32; 3]>() * self.image.capacity()
    }

    /// Bytes held after geometry of `pairs` neighbours of `targets` points was written in a
    /// precision: the larger of the bytes needed and the bytes held already.
    pub fn bytes_after(&self, targets: usize, pairs: u64, precision: Precision) -> u64 {
        self.lists.bytes_after(targets, pairs)
            + match precision {
                Precision::Single => self.single.bytes_after(pairs),
                Precision::Double => self.double.bytes_after(pairs),
            }
            + size_of::<[i32; 3]>() as u64 * pairs.max(self.image.capacity() as u64)
    }

    /// The lists alone.
    pub fn into_lists(self) -> NeighborLists {
        self.lists
    }

    /// Makes every array of a precision as long as the lists' storage, and gives back those of the
    /// other.
    pub(super) fn resize(&mut self, precision: Precision) -> Result<(), Error> {
        let len = self.lists.storage().len();
        self.precision = precision;
        match precision {
            Precision::Single => {
                self.double = Arrays::default();
                self.single.resize(len)?;
            }
            Precision::Double => {
                self.single = Arrays::default();
                self.double.resize(len)?;
            }
        }
        self.image.resize(len, WHAT)
    }
}

/// The name of the memory in messages.
pub(super) const WHAT: &str = "the geometry of pairs";

impl MeasuredLists<'_> {
    /// Writes all lists and the geometry of their pairs, reusing the memory of `geometry` where it
    /// is large enough. In [`ListOrder::Ascending`], images of one source ascend too.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), and
    /// [`ErrorKind::FarImage`](crate::ErrorKind::FarImage) when neighbours are more than 2³¹ boxes
    /// apart; the geometry is then unspecified.
    pub fn write_geometry(
        &self,
        order: ListOrder,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        self.lay_out(&mut geometry.lists)?;
        let precision = match self.sets().targets.points().double() {
            Some(_) => Precision::Double,
            None => Precision::Single,
        };
        geometry.resize(precision)?;
        let double = InDouble::of(self.sets(), &mut geometry.double)?;
        let LaidOut {
            starts,
            counts,
            storage: indices,
        } = geometry.lists.laid_out();
        let shared = TaskContext {
            sets: self.sets(),
            half: self.kind() == ListKind::Half && self.sets().same_set,
            order,
            starts,
            counts,
            indices: SharedMut::new(indices),
            displacement: SharedMut::new(&mut geometry.single.displacement),
            distance_squared: SharedMut::new(&mut geometry.single.distance_squared),
            double,
            image: SharedMut::new(&mut geometry.image),
            far: FirstError::default(),
        };
        let walk = Walk::with_images(self.sets())?;
        let backend = self.backend();
        backend.for_each_task(self.lengths().len(), &|slots, scratch| {
            let mut writer = Writer {
                shared: &shared,
                slot: 0,
                target: 0,
                list: 0..0,
                found: Vec::new(),
                failed: None,
            };
            walk.visit_pairs(backend.level(), slots, scratch, &mut writer);
            match writer.failed {
                None if scratch.failed.is_none() => writer.finish(),
                None => {}
                failed => scratch.failed = failed,
            }
        })?;
        shared.far.into_result()
    }
}

/// The first error of a job.
#[derive(Default)]
pub(super) struct FirstError(OnceLock<Error>);

impl FirstError {
    /// Keeps an error, if it is the first.
    pub(super) fn note(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.0.get_or_init(|| error);
        }
    }

    /// The image in 32-bit counts; a pair that has none is noted as an error.
    pub(super) fn narrowed(&self, image: Image, target: u32, source: u32) -> [i32; 3] {
        image.map(|boxes| {
            i32::try_from(boxes).unwrap_or_else(|_| {
                let far = ErrorKind::FarImage {
                    target,
                    source_point: source,
                    boxes,
                };
                self.note(Err(far.into()));
                0
            })
        })
    }

    /// That error.
    pub(super) fn into_result(self) -> Result<(), Error> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}

/// The state that all tasks share.
struct TaskContext<'a> {
    /// The sets.
    sets: PairOfSets<'a>,
    /// Each pair of the set stands once.
    half: bool,
    /// The order of every list.
    order: ListOrder,
    /// First entry of every list.
    starts: &'a [u64],
    /// Length of every list.
    counts: &'a [u32],
    /// Where indices go.
    indices: SharedMut<'a, u32>,
    /// Where displacements of a search in `f32` go.
    displacement: SharedMut<'a, [f32; 3]>,
    /// Where its squared distances go.
    distance_squared: SharedMut<'a, f32>,
    /// A search in `f64`.
    double: Option<InDouble<'a>>,
    /// Where images go.
    image: SharedMut<'a, [i32; 3]>,
    /// A pair whose image has no 32-bit counts.
    far: FirstError,
}

/// The input of geometry in `f64`, and where the results go.
struct InDouble<'a> {
    /// The sets.
    sets: PairOfSets<'a>,
    /// Positions of targets and sources as given.
    points: [&'a DoublePoints; 2],
    /// Place of every source in sorted order.
    slots: Vec<u32>,
    /// Where displacements go.
    displacement: SharedMut<'a, [f64; 3]>,
    /// Where squared distances go.
    distance_squared: SharedMut<'a, f64>,
}

impl<'a> InDouble<'a> {
    /// None of a search in `f32`.
    fn of(sets: PairOfSets<'a>, to: &'a mut Arrays<f64>) -> Result<Option<Self>, Error> {
        let [targets, sources] = [sets.targets, sets.sources].map(|grid| grid.points().double());
        let (Some(targets), Some(sources)) = (targets, sources) else {
            return Ok(None);
        };
        let points = sets.sources.points();
        // Vectors read beyond the last point.
        let index = &points.index()[..points.len()];
        let mut slots = zeroed(index.len(), WHAT)?;
        for (slot, &source) in index.iter().enumerate() {
            slots[source as usize] = slot as u32;
        }
        Ok(Some(Self {
            sets,
            points: [targets, sources],
            slots,
            displacement: SharedMut::new(&mut to.displacement),
            distance_squared: SharedMut::new(&mut to.distance_squared),
        }))
    }

    /// Displacement and squared distance of a pair, by the contract; the image counts the vectors
    /// as given.
    fn pair(&self, target_slot: usize, source: u32, image: Image) -> ([f64; 3], f64) {
        let [targets, sources] = self.points;
        let shift = (self.sets.sources.lattice().domain()).given_image_vector_f64(image);
        let source = sources.position(self.slots[source as usize] as usize);
        let d = difference_f64(targets.position(target_slot), source, shift);
        (d, squared_f64(d))
    }
}

/// The displacement with its image vector added, by the contract: searches that need none leave a
/// vector of zeros out, which makes +0 of a difference of −0.
#[inline(always)]
fn with_image_vector(d: [f32; 3]) -> [f32; 3] {
    [d[0] + 0.0, d[1] + 0.0, d[2] + 0.0]
}

/// Writes the pairs of one target after the other.
struct Writer<'a> {
    /// The job.
    shared: &'a TaskContext<'a>,
    /// The target's place in sorted order.
    slot: usize,
    /// The target's index.
    target: u32,
    /// Entries of its list that are yet to be written.
    list: Range<usize>,
    /// Ascending order: the pairs of the target so far.
    found: Vec<NeighborPair>,
    /// Memory that was refused.
    failed: Option<Shortage>,
}

impl VisitPairs for Writer<'_> {
    fn target(&mut self, slot: usize) -> ControlFlow<()> {
        self.finish();
        self.slot = slot;
        self.target = self.shared.sets.targets.points().index()[slot];
        self.list = self.shared.list(self.target as usize);
        if self.shared.order == ListOrder::Ascending
            && let Err(shortage) = make_room(&mut self.found, self.list.len(), WHAT)
        {
            self.failed = Some(shortage);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn pairs(&mut self, pairs: PairsOfImage<'_>) {
        let shared = self.shared;
        if !shared.half && shared.order == ListOrder::Unspecified && shared.double.is_none() {
            let source = pairs.sources.first().copied().unwrap_or_default();
            let image = shared.far.narrowed(pairs.image, self.target, source);
            let begin = self.list.start;
            self.list.start = self.list.end.min(begin + pairs.sources.len());
            // SAFETY: entries of this target's list, and every sorted target is visited once.
            unsafe { shared.put_all(begin..self.list.start, image, pairs) };
            return;
        }
        for (index, pair) in pairs.iter() {
            if shared.half && (index, pairs.image) <= (self.target, [0; 3]) {
                continue;
            }
            let image = shared.far.narrowed(pairs.image, self.target, index);
            let (d, d2) = match &shared.double {
                Some(double) => double.pair(self.slot, index, pairs.image),
                None => (pair.d.map(f64::from), pair.d2.into()),
            };
            let neighbor = NeighborPair {
                index,
                image,
                d,
                d2,
            };
            if shared.order == ListOrder::Ascending {
                if self.found.len() < self.list.len() {
                    self.found.push(neighbor);
                }
            } else if let Some(at) = self.list.next() {
                // SAFETY: as above.
                unsafe { shared.put(at, &neighbor) };
            }
        }
    }
}

impl Writer<'_> {
    /// Ends a target; ascending order: sorts its pairs and writes them.
    fn finish(&mut self) {
        if self.shared.order == ListOrder::Ascending {
            debug_assert_eq!(
                self.list.len(),
                self.found.len(),
                "both passes find the same"
            );
            (self.found).sort_unstable_by_key(|neighbor| (neighbor.index, neighbor.image));
            for (at, neighbor) in self.list.clone().zip(&self.found) {
                // SAFETY: as in `pairs`.
                unsafe { self.shared.put(at, neighbor) };
            }
            self.found.clear();
        } else {
            debug_assert!(self.list.is_empty(), "both passes find the same neighbours");
        }
    }
}

impl TaskContext<'_> {
    /// The entries of a target's list in all arrays.
    fn list(&self, target: usize) -> Range<usize> {
        let begin = self.starts[target] as usize;
        begin..begin + self.counts[target] as usize
    }

    /// Writes pairs to their entries, as many as there are of either.
    ///
    /// # Safety
    /// As for [`put`](Self::put), for all of `entries`.
    unsafe fn put_all(&self, entries: Range<usize>, image: [i32; 3], pairs: PairsOfImage<'_>) {
        let (begin, end) = (entries.start, entries.end);
        // SAFETY: guaranteed by the caller.
        let (indices, displacement, squares, images) = unsafe {
            (
                self.indices.slice_mut(begin, end),
                self.displacement.slice_mut(begin, end),
                self.distance_squared.slice_mut(begin, end),
                self.image.slice_mut(begin, end),
            )
        };
        indices.copy_from_slice(&pairs.sources[..end - begin]);
        squares.copy_from_slice(&pairs.d2[..end - begin]);
        let [x, y, z] = pairs.d;
        for (((to, &x), &y), &z) in displacement.iter_mut().zip(x).zip(y).zip(z) {
            *to = with_image_vector([x, y, z]);
        }
        images.fill(image);
    }

    /// Writes a pair to its entry.
    ///
    /// # Safety
    /// `at` lies in the list of a target that no other worker visits. Lists were laid out one
    /// behind the other within the storage, which all arrays are as long as.
    #[inline(always)]
    unsafe fn put(&self, at: usize, neighbor: &NeighborPair) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.indices.write(at, neighbor.index);
            self.image.write(at, neighbor.image);
            match &self.double {
                Some(double) => {
                    double.displacement.write(at, neighbor.d);
                    double.distance_squared.write(at, neighbor.d2);
                }
                None => {
                    let pair = neighbor.pair();
                    self.displacement.write(at, with_image_vector(pair.d));
                    self.distance_squared.write(at, pair.d2);
                }
            }
        }
    }
}
