//! The pairs of many systems: arrays of the quantities that were asked for, side by side.
//!
//! **Invariant:** entry k of every array belongs to the same pair, and the entries of a point lie
//! between its offset and the next.

use super::{
    input::{SystemReal, WHAT},
    quantities::{PairIndex, Quantities},
};
use crate::{
    error::{Error, ErrorKind},
    lists::geometry::{PairArrays, PairGeometry},
};
use nearfield_grid::memory::{make_room, zeroed};
use std::{mem::take, ops::Range};

/// The pairs of all systems, in arrays whose memory is reused from one search to the next.
///
/// Pairs come point by point. Arrays that were not asked for are empty. The working memory of the
/// last search is kept too, four bytes a pair that was found directly and the images of its
/// systems; dropping this frees all of it.
#[derive(Debug)]
pub struct SystemPairs<T = f32, I = i64> {
    /// First entry of every point, and the number of pairs.
    pub(super) offsets: Vec<u64>,
    pub(super) targets: Vec<I>,
    pub(super) sources: Vec<I>,
    pub(super) images: Vec<[i32; 3]>,
    pub(super) displacements: Vec<[T; 3]>,
    pub(super) distances: Vec<T>,
    /// What tasks found, before it has its place.
    pub(super) found: super::tasks::Found<T>,
}

impl<T, I> Default for SystemPairs<T, I> {
    fn default() -> Self {
        Self {
            offsets: Vec::new(),
            targets: Vec::new(),
            sources: Vec::new(),
            images: Vec::new(),
            displacements: Vec::new(),
            distances: Vec::new(),
            found: Default::default(),
        }
    }
}

impl<T, I> SystemPairs<T, I> {
    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.offsets.last().map_or(0, |&pairs| pairs as usize)
    }

    /// Returns true if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of a point.
    ///
    /// # Panics
    /// When there is no such point, as indexing a slice does.
    pub fn of(&self, point: usize) -> Range<usize> {
        self.offsets[point] as usize..self.offsets[point + 1] as usize
    }

    /// First entry of every point and, behind the last, the number of pairs: one number more than
    /// there are points. Those of a system lie between the offsets of its first point and the first
    /// of the next.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The point of every pair, by its place in the array of all systems.
    pub fn targets(&self) -> &[I] {
        &self.targets
    }

    /// The neighbour of every pair, by its place in the array of all systems.
    pub fn sources(&self) -> &[I] {
        &self.sources
    }

    /// By how many vectors of the cell the neighbour of every pair is moved; zero along open axes.
    pub fn images(&self) -> &[[i32; 3]] {
        &self.images
    }

    /// From the point of every pair to the image of its neighbour, fl(fl(x_j − x_i) + S) per axis.
    pub fn displacements(&self) -> &[[T; 3]] {
        &self.displacements
    }

    /// The distance of every pair: the root of the squared distance that decided it, rounded once.
    pub fn distances(&self) -> &[T] {
        &self.distances
    }

    /// The arrays, each a vector of its own, for programs that hand them on; they are empty here
    /// afterwards. The working memory stays for the next search.
    pub fn take_columns(&mut self) -> PairColumns<T, I> {
        PairColumns {
            offsets: take(&mut self.offsets),
            targets: take(&mut self.targets),
            sources: take(&mut self.sources),
            images: take(&mut self.images),
            displacements: take(&mut self.displacements),
            distances: take(&mut self.distances),
        }
    }

    /// Lets the next search write into the memory of arrays, which have no meaning until then.
    pub fn give_columns(&mut self, columns: PairColumns<T, I>) {
        self.offsets = columns.offsets;
        self.targets = columns.targets;
        self.sources = columns.sources;
        self.images = columns.images;
        self.displacements = columns.displacements;
        self.distances = columns.distances;
    }

    /// Empties all arrays and keeps their memory.
    pub fn clear(&mut self) {
        self.offsets.clear();
        self.targets.clear();
        self.sources.clear();
        self.images.clear();
        self.displacements.clear();
        self.distances.clear();
    }
}

impl<T: bytemuck::Pod, I: PairIndex> SystemPairs<T, I> {
    /// Makes the arrays that are wanted as long as there are pairs, and empties the others.
    pub(super) fn resize(&mut self, wanted: Quantities, pairs: usize) -> Result<(), Error> {
        resize(&mut self.targets, wanted.targets, pairs)?;
        resize(&mut self.sources, wanted.sources, pairs)?;
        resize(&mut self.images, wanted.images, pairs)?;
        resize(&mut self.displacements, wanted.displacements, pairs)?;
        resize(&mut self.distances, wanted.distances, pairs)
    }
}

impl<T: SystemReal, I: PairIndex> SystemPairs<T, I> {
    /// Copies the pairs of a set from their geometry, without its gaps, for callers that want
    /// compact arrays of their own types. A set is one system here; pairs keep their order.
    ///
    /// # Errors
    /// [`ErrorKind::IndexType`] for more points than `I` can name, targets or sources;
    /// [`ErrorKind::GeometryPrecision`] for geometry of the other precision; and where memory is
    /// short. There are no pairs then.
    pub fn copy_geometry(
        &mut self,
        geometry: &PairGeometry,
        wanted: Quantities,
    ) -> Result<(), Error> {
        let lists = geometry.lists();
        let largest = lists.iter().flatten().copied().max().unwrap_or(0) as usize;
        let points = lists.len().max(largest.saturating_add(1));
        if points > I::MAX_POINTS {
            self.clear();
            let kind = I::NAME;
            return Err(ErrorKind::IndexType { points, kind }.into());
        }
        let (displacements, squares) = T::arrays(geometry.arrays());
        if squares.len() != geometry.images().len() {
            self.clear();
            let found = match geometry.arrays() {
                PairArrays::Single { .. } => "single",
                PairArrays::Double { .. } => "double",
            };
            return Err(ErrorKind::GeometryPrecision { found }.into());
        }
        self.receive(lists.len(), lists.pairs(), wanted, |to| {
            let mut end = 0;
            for (point, list) in lists.iter().enumerate() {
                let begin = lists.starts()[point] as usize;
                let from = begin..begin + list.len();
                let entries = end..end + list.len();
                to.offsets[point] = end as u64;
                end = entries.end;
                if wanted.targets {
                    to.targets[entries.clone()].fill(I::of(point));
                }
                if wanted.sources {
                    let to = &mut to.sources[entries.clone()];
                    (to.iter_mut().zip(list)).for_each(|(to, &j)| *to = I::of(j as usize));
                }
                if wanted.images {
                    to.images[entries.clone()].copy_from_slice(&geometry.images()[from.clone()]);
                }
                if wanted.displacements {
                    let to = &mut to.displacements[entries.clone()];
                    to.copy_from_slice(&displacements[from.clone()]);
                }
                if wanted.distances {
                    let to = &mut to.distances[entries];
                    let squares = &squares[from];
                    (to.iter_mut().zip(squares)).for_each(|(to, &square)| *to = square.root());
                }
            }
            to.offsets[lists.len()] = end as u64;
            Ok(())
        })
    }
}

/// The arrays of [`SystemPairs`], each a vector of its own, for programs that hand them on.
#[derive(Debug)]
pub struct PairColumns<T, I> {
    /// As [`SystemPairs::offsets`].
    pub offsets: Vec<u64>,
    /// The point of every pair, or empty as all that were not asked for.
    pub targets: Vec<I>,
    /// Its neighbour.
    pub sources: Vec<I>,
    /// By how many vectors that is moved.
    pub images: Vec<[i32; 3]>,
    /// From the point to the image of its neighbour.
    pub displacements: Vec<[T; 3]>,
    /// The length of that.
    pub distances: Vec<T>,
}

impl<T, I> From<SystemPairs<T, I>> for PairColumns<T, I> {
    fn from(mut pairs: SystemPairs<T, I>) -> Self {
        pairs.take_columns()
    }
}

/// The arrays of all pairs, as long as there are points and pairs, for another backend that writes
/// them; those that are not wanted are empty.
#[derive(Debug)]
pub struct ReceivedSystems<'a, T, I> {
    /// One number more than there are points.
    pub offsets: &'a mut [u64],
    /// Target of every pair.
    pub targets: &'a mut [I],
    /// Source of every pair.
    pub sources: &'a mut [I],
    /// Image of every pair.
    pub images: &'a mut [[i32; 3]],
    /// Displacement of every pair.
    pub displacements: &'a mut [[T; 3]],
    /// Distance of every pair.
    pub distances: &'a mut [T],
}

impl<T: bytemuck::Pod, I: PairIndex> SystemPairs<T, I> {
    /// Lets `write` write `pairs` pairs of `points` points that another backend has found. After an
    /// error there are no pairs.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), and those of `write`.
    pub fn receive<E: From<Error>>(
        &mut self,
        points: usize,
        pairs: u64,
        wanted: Quantities,
        write: impl FnOnce(ReceivedSystems<'_, T, I>) -> Result<(), E>,
    ) -> Result<(), E> {
        let entries = usize::try_from(pairs).unwrap_or(usize::MAX);
        let room = make_room(&mut self.offsets, points + 1, WHAT).map_err(Error::from);
        let room = room.and_then(|()| self.resize(wanted, entries));
        let written = room.map_err(E::from).and_then(|()| {
            self.offsets.resize(points + 1, 0);
            write(ReceivedSystems {
                offsets: &mut self.offsets,
                targets: &mut self.targets,
                sources: &mut self.sources,
                images: &mut self.images,
                displacements: &mut self.displacements,
                distances: &mut self.distances,
            })
        });
        if written.is_err() {
            self.clear();
        }
        written
    }
}

/// Makes an array as long as there are pairs, if it is wanted. Its elements are unspecified.
fn resize<T: bytemuck::Pod>(array: &mut Vec<T>, wanted: bool, pairs: usize) -> Result<(), Error> {
    let len = if wanted { pairs } else { 0 };
    if array.capacity() < len {
        // An eighth more, so that the next search of about as many pairs has room. Nothing is kept,
        // and pages of fresh zeros cost nothing until they are written.
        *array = Vec::new();
        *array = zeroed(len.saturating_add(len / 8), WHAT).or_else(|_| zeroed(len, WHAT))?;
        in_large_pages(array);
        array.truncate(len);
        return Ok(());
    }
    array.resize(len, T::zeroed());
    Ok(())
}

/// Bytes from which large pages are worth asking for.
#[cfg(target_os = "linux")]
const MANY_BYTES: usize = 1 << 22;

/// Asks the system to back fresh memory by pages of 2 MiB: otherwise the first write to every page
/// of 4 KiB takes longer than the pairs that go there.
#[cfg(target_os = "linux")]
fn in_large_pages<T>(array: &mut [T]) {
    use std::ffi::{c_int, c_void};
    const PAGE: usize = 4096;
    const MADV_HUGEPAGE: c_int = 14;
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    if size_of_val(array) < MANY_BYTES {
        return;
    }
    let begin = array.as_mut_ptr().cast::<u8>();
    let skipped = begin.align_offset(PAGE);
    let bytes = size_of_val(array).saturating_sub(skipped);
    // SAFETY: whole pages within memory that this process owns; the advice changes no content, and
    // a refusal changes nothing.
    unsafe {
        let _ = madvise(
            begin.wrapping_add(skipped).cast(),
            bytes / PAGE * PAGE,
            MADV_HUGEPAGE,
        );
    }
}

/// Elsewhere the system chooses.
#[cfg(not(target_os = "linux"))]
fn in_large_pages<T>(_: &mut [T]) {}
