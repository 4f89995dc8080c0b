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
//! A pair takes 32 bytes: the index, three components, the squared distance and three image
//! counts. The bytes are known after the counting pass and before anything is allocated, so a
//! limit can be checked by [`PairGeometry::bytes_after`].
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
};
use crate::{
    candidates::walk::Walk,
    contract::Image,
    error::{Error, ErrorKind},
    sets::{
        PairOfSets,
        pairs::{PairsOfImage, VisitPairs, VisitTask},
    },
    simd::with_level,
};
use nearfield_grid::{
    SharedMut,
    memory::{Shortage, make_room},
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
    lists: NeighborLists,
    /// Displacement of every entry.
    displacement: Vec<[f32; 3]>,
    /// Squared distance of every entry.
    distance_squared: Vec<f32>,
    /// Image of every entry.
    image: Vec<[i32; 3]>,
}

/// A neighbour and the image that it was found through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighborPair {
    /// Index of the source.
    pub index: u32,
    /// By how many box lengths the source is moved along each axis; zero on open axes.
    pub image: [i32; 3],
    /// Displacement from the target to that image of the source, and its square.
    pub pair: Pair,
}

impl NeighborPair {
    /// Distance between target and source, in the unit of the coordinates.
    pub fn distance(&self) -> f32 {
        self.pair.d2.sqrt()
    }
}

impl PairGeometry {
    /// The lists that the geometry belongs to.
    pub fn lists(&self) -> &NeighborLists {
        &self.lists
    }

    /// Displacement from target to source, fl(fl(x_j − x_i) + S) per axis (in double precision
    /// rounded to `f32`), in the unit of the coordinates; parallel to the lists' storage.
    pub fn displacements(&self) -> &[[f32; 3]] {
        &self.displacement
    }

    /// Squared distance, at most fl(r·r) (in double precision both rounded to `f32`); parallel to
    /// the lists' storage.
    pub fn distances_squared(&self) -> &[f32] {
        &self.distance_squared
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
        (begin..begin + self.lists.count(i)).map(|at| NeighborPair {
            index: self.lists.storage()[at],
            image: self.image[at],
            pair: Pair {
                d: self.displacement[at],
                d2: self.distance_squared[at],
            },
        })
    }

    /// Bytes held, room kept for the next time included.
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
            + size_of::<[f32; 3]>() * self.displacement.capacity()
            + size_of::<f32>() * self.distance_squared.capacity()
            + size_of::<[i32; 3]>() * self.image.capacity()
    }

    /// Bytes held after geometry of `pairs` neighbours of `targets` points was written: the larger
    /// of the bytes needed and the bytes held already.
    pub fn bytes_after(&self, targets: usize, pairs: u64) -> u64 {
        let max = |held: usize| pairs.max(held as u64);
        self.lists.bytes_after(targets, pairs)
            + size_of::<[f32; 3]>() as u64 * max(self.displacement.capacity())
            + size_of::<f32>() as u64 * max(self.distance_squared.capacity())
            + size_of::<[i32; 3]>() as u64 * max(self.image.capacity())
    }

    /// Makes every array as long as the lists' storage.
    fn resize(&mut self) -> Result<(), Error> {
        let len = self.lists.storage().len();
        resize(&mut self.displacement, len)?;
        resize(&mut self.distance_squared, len)?;
        resize(&mut self.image, len)
    }
}

/// The name of the memory in messages.
const WHAT: &str = "the geometry of pairs";

/// Makes an array `len` long.
fn resize<T: Clone + Default>(array: &mut Vec<T>, len: usize) -> Result<(), Error> {
    make_room(array, len, WHAT)?;
    array.resize(len, T::default());
    Ok(())
}

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
        geometry.resize()?;
        let LaidOut {
            starts,
            counts,
            storage: indices,
        } = geometry.lists.laid_out();
        let shared = Shared {
            sets: self.sets(),
            half: self.kind() == ListKind::Half && self.sets().same_set,
            order,
            starts,
            counts,
            indices: SharedMut::new(indices),
            displacement: SharedMut::new(&mut geometry.displacement),
            distance_squared: SharedMut::new(&mut geometry.distance_squared),
            image: SharedMut::new(&mut geometry.image),
            far: OnceLock::new(),
        };
        let walk = Walk::with_images(self.sets())?;
        let backend = self.backend();
        backend.for_each_task(self.lengths().len(), &|slots, scratch| {
            let mut writer = Writer {
                shared: &shared,
                target: 0,
                list: 0..0,
                found: Vec::new(),
                failed: None,
            };
            let task = VisitTask {
                walk: &walk,
                slots,
                scratch,
                to: &mut writer,
            };
            with_level(backend.level(), task);
            match writer.failed {
                None if scratch.failed.is_none() => writer.finish(),
                None => {}
                failed => scratch.failed = failed,
            }
        })?;
        match shared.far.into_inner() {
            Some(far) => Err(far),
            None => Ok(()),
        }
    }
}

/// The state that all tasks share.
struct Shared<'a> {
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
    /// Where displacements go.
    displacement: SharedMut<'a, [f32; 3]>,
    /// Where squared distances go.
    distance_squared: SharedMut<'a, f32>,
    /// Where images go.
    image: SharedMut<'a, [i32; 3]>,
    /// A pair whose image has no 32-bit counts.
    far: OnceLock<Error>,
}

/// Writes the pairs of one target after the other.
struct Writer<'a> {
    /// The job.
    shared: &'a Shared<'a>,
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
        if !shared.half && shared.order == ListOrder::Unspecified {
            let source = pairs.sources.first().copied().unwrap_or_default();
            let image = shared.narrowed(pairs.image, self.target, source);
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
            let image = shared.narrowed(pairs.image, self.target, index);
            let neighbor = NeighborPair { index, image, pair };
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

impl Shared<'_> {
    /// The image in 32-bit counts; a pair that has none is remembered as the error of the call.
    fn narrowed(&self, image: Image, target: u32, source: u32) -> [i32; 3] {
        image.map(|boxes| {
            i32::try_from(boxes).unwrap_or_else(|_| {
                self.far.get_or_init(|| {
                    Error::from(ErrorKind::FarImage {
                        target,
                        source_point: source,
                        boxes,
                    })
                });
                0
            })
        })
    }

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
            *to = [x, y, z];
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
            self.displacement.write(at, neighbor.pair.d);
            self.distance_squared.write(at, neighbor.pair.d2);
            self.image.write(at, neighbor.image);
        }
    }
}
