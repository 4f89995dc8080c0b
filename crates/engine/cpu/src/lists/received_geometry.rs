//! Geometry of pairs that another backend wrote, in memory borrowed from it.
//!
//! A GPU writes lists and the geometry of their pairs into page-locked memory, where both stay.
//! Starts and counts are [checked](Inside::check) as those of lists without geometry are, so no
//! number of the device leads outside of the arrays. What a pair holds is not checked.
//!
//! Pairs come in the order in which the device found them. [`PairGeometry::sort`] brings them into
//! ascending order afterwards, on the host: a pair is moved with all that belongs to it.
//!
//! **Invariant:** afterwards all arrays have as many values as there are pairs.

use super::{
    geometry::{Arrays as Numbers, PairGeometry, WHAT},
    neighbor_lists::NeighborLists,
    received::{CheckedLists, Inside},
    storage::{BorrowedBuffer, BufferProvider, Storage},
};
use crate::error::Error;
use bytemuck::Pod;
use nearfield_grid::{
    HostLists, Precision, SharedMut,
    memory::{Shortage, make_room},
    parallel::PoolLoops,
};
use rayon::prelude::*;
use std::{fmt, marker::PhantomData, ops::Range, ptr::NonNull, sync::OnceLock};

/// Lists that a worker sorts at a time.
const SORT_TASK: usize = 1 << 8;

/// The arrays that another backend writes lists and the geometry of their pairs to.
#[derive(Debug)]
pub struct ReceivedPairs<'a> {
    /// Start and count per target in the caller's order, and all entries.
    pub lists: HostLists<'a>,
    /// Image of every entry.
    pub images: &'a mut [[i32; 3]],
    /// Displacement of every entry; in double precision the words of four bytes of its numbers, two
    /// elements an entry.
    pub displacements: &'a mut [[f32; 3]],
    /// Squared distance of every entry, in words likewise.
    pub squares: &'a mut [f32],
}

/// Memory of words, as memory of numbers that are made of them.
#[derive(Debug)]
struct OfWords<W, T> {
    words: Box<dyn BorrowedBuffer<W>>,
    of: PhantomData<T>,
}

// SAFETY: the words are initialised, stay where they are and are reached through this value alone;
// any bits are a `T`, which needs no more alignment than a word and is some of them long.
unsafe impl<W: Pod + fmt::Debug, T: Pod + Send + Sync + fmt::Debug> BorrowedBuffer<T>
    for OfWords<W, T>
{
    fn elements(&mut self) -> NonNull<[T]> {
        const {
            assert!(size_of::<T>().is_multiple_of(size_of::<W>()));
            assert!(align_of::<T>() <= align_of::<W>());
        };
        let words = self.words.elements();
        let of_one = size_of::<T>() / size_of::<W>();
        NonNull::slice_from_raw_parts(words.cast(), words.len() / of_one)
    }
}

/// Makes `array` one of `pairs` elements in borrowed memory, which `lend` gives by a number of
/// words. What is too small is replaced by `room` elements.
fn borrow<W: Pod + Send + Sync + fmt::Debug, T: Pod + Send + Sync + fmt::Debug, E: From<Error>>(
    array: &mut Storage<T>,
    (pairs, room): (usize, usize),
    lend: impl FnOnce(usize) -> Result<Box<dyn BorrowedBuffer<W>>, E>,
) -> Result<(), E> {
    if !array.is_borrowed_with(pairs) {
        *array = Storage::default();
        let words = room.saturating_mul(size_of::<T>() / size_of::<W>());
        let borrowed: Box<dyn BorrowedBuffer<T>> = Box::new(OfWords {
            words: lend(words)?,
            of: PhantomData,
        });
        *array = borrowed.into();
    }
    Ok(array.resize(pairs, WHAT)?)
}

impl PairGeometry {
    /// Takes lists and the geometry of their `pairs` pairs that another backend has found in a
    /// precision, into memory borrowed from it. `fill` writes all arrays; starts and counts that
    /// arrive before the entries it may have [checked](Inside::check) meanwhile.
    ///
    /// # Errors
    /// Those of `provider` and `fill`, and
    /// [`ErrorKind::ListsOutside`](crate::ErrorKind::ListsOutside); the geometry is then of no use
    /// until it is written again.
    pub fn receive<P: BufferProvider>(
        &mut self,
        precision: Precision,
        targets: usize,
        pairs: u64,
        provider: &P,
        fill: impl FnOnce(ReceivedPairs<'_>, Inside) -> Result<Option<CheckedLists>, P::Error>,
    ) -> Result<(), P::Error> {
        // Lists of the last time must not name arrays that are replaced.
        self.lists.forget();
        let len = (pairs as usize, provider.roomy(pairs as usize));
        self.precision = precision;
        let (words, of_double) = (|len| provider.words(len), |len| provider.starts(len));
        borrow(&mut self.image, len, words)?;
        match precision {
            Precision::Single => {
                self.double = Default::default();
                borrow(&mut self.single.displacement, len, words)?;
                borrow(&mut self.single.distance_squared, len, words)?;
            }
            Precision::Double => {
                self.single = Default::default();
                borrow(&mut self.double.displacement, len, of_double)?;
                borrow(&mut self.double.distance_squared, len, of_double)?;
            }
        }
        let (displacements, squares): (&mut [[f32; 3]], &mut [f32]) = match precision {
            Precision::Single => (
                &mut self.single.displacement,
                &mut self.single.distance_squared,
            ),
            Precision::Double => (
                bytemuck::cast_slice_mut(&mut self.double.displacement),
                bytemuck::cast_slice_mut(&mut self.double.distance_squared),
            ),
        };
        let image = &mut self.image;
        (self.lists).receive(targets, pairs, provider, |start, count, entries, inside| {
            let lists = HostLists {
                start,
                count,
                entries,
            };
            let arrays = ReceivedPairs {
                lists,
                images: image,
                displacements,
                squares,
            };
            fill(arrays, inside)
        })?;
        // Room behind the last entry has no geometry.
        Ok(self.lists.indices.resize(len.0, WHAT)?)
    }

    /// Brings the pairs of every target into the order of their indices, and those of one source
    /// into the order of their images, by the workers of the pool that this is called in.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); some targets are then sorted.
    pub fn sort(&mut self) -> Result<(), Error> {
        let (lists, images) = (&mut self.lists, &mut self.image);
        match self.precision {
            Precision::Single => sort_all(lists, images, &mut self.single),
            Precision::Double => sort_all(lists, images, &mut self.double),
        }
    }
}

/// Sorts the pairs of every target.
fn sort_all<T: Copy + Send + Sync>(
    lists: &mut NeighborLists,
    images: &mut [[i32; 3]],
    numbers: &mut Numbers<T>,
) -> Result<(), Error> {
    let apart = !lists.foreign || lists.are_apart();
    let (starts, counts) = (&*lists.start, &*lists.count);
    // They differ in length only after an error.
    let lengths = [
        lists.indices.len(),
        images.len(),
        numbers.displacement.len(),
        numbers.distance_squared.len(),
    ];
    let len = lengths.into_iter().min().unwrap_or(0);
    let arrays = Arrays {
        indices: SharedMut::new(&mut lists.indices),
        images: SharedMut::new(images),
        displacements: SharedMut::new(&mut numbers.displacement),
        squares: SharedMut::new(&mut numbers.distance_squared),
    };
    let short = OnceLock::new();
    let sort = |targets: Range<usize>| {
        let mut room = Vec::new();
        for (&start, &count) in starts[targets.clone()].iter().zip(&counts[targets]) {
            let end = start.saturating_add(u64::from(count));
            let [begin, end] = [start, end].map(|at| at.min(len as u64) as usize);
            let list = begin..end;
            // SAFETY: the range is cut to the shortest array. Lists are sorted in parallel if no
            // two of them overlap, else one after the other.
            if let Err(shortage) = unsafe { arrays.sort(list, &mut room) } {
                short.get_or_init(|| shortage);
                return;
            }
        }
    };
    let targets = starts.len();
    if apart {
        let tasks = (0..targets.div_ceil(SORT_TASK)).into_par_iter();
        tasks.run(|task| {
            let begin = task * SORT_TASK;
            sort(begin..(begin + SORT_TASK).min(targets));
        });
    } else {
        sort(0..targets);
    }
    let short = short.into_inner();
    short.map_or(Ok(()), |shortage| Err(shortage.into()))
}

/// The arrays of the geometry, which are all of one length.
struct Arrays<'a, T> {
    indices: SharedMut<'a, u32>,
    images: SharedMut<'a, [i32; 3]>,
    displacements: SharedMut<'a, [T; 3]>,
    squares: SharedMut<'a, T>,
}

/// All that belongs to a pair.
#[derive(Debug, Clone, Copy)]
struct PairValues<T> {
    index: u32,
    image: [i32; 3],
    displacement: [T; 3],
    square: T,
}

impl<T: Copy> Arrays<'_, T> {
    /// Sorts the pairs of a list by way of `room`.
    ///
    /// # Safety
    /// The range lies within the arrays, and no other thread uses it.
    unsafe fn sort(
        &self,
        list: Range<usize>,
        room: &mut Vec<PairValues<T>>,
    ) -> Result<(), Shortage> {
        let (begin, end) = (list.start, list.end.max(list.start));
        // SAFETY: guaranteed by the caller.
        let (indices, images, displacements, squares) = unsafe {
            (
                self.indices.slice_mut(begin, end),
                self.images.slice_mut(begin, end),
                self.displacements.slice_mut(begin, end),
                self.squares.slice_mut(begin, end),
            )
        };
        room.clear();
        make_room(room, indices.len(), WHAT)?;
        let pairs = (indices.iter().zip(&*images)).zip(displacements.iter().zip(&*squares));
        room.extend(
            pairs.map(|((&index, &image), (&displacement, &square))| PairValues {
                index,
                image,
                displacement,
                square,
            }),
        );
        room.sort_unstable_by_key(|pair| (pair.index, pair.image));
        for (at, pair) in room.iter().enumerate() {
            indices[at] = pair.index;
            images[at] = pair.image;
            displacements[at] = pair.displacement;
            squares[at] = pair.square;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Words(Vec<u32>);

    // SAFETY: the Vec is never changed.
    unsafe impl BorrowedBuffer<u32> for Words {
        fn elements(&mut self) -> NonNull<[u32]> {
            NonNull::from(self.0.as_mut_slice())
        }
    }

    #[derive(Debug)]
    struct Starts(Vec<u64>);

    // SAFETY: the Vec is never changed.
    unsafe impl BorrowedBuffer<u64> for Starts {
        fn elements(&mut self) -> NonNull<[u64]> {
            NonNull::from(self.0.as_mut_slice())
        }
    }

    struct Provider;

    impl BufferProvider for Provider {
        type Error = Error;

        fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Error> {
            Ok(Box::new(Starts(vec![0; len])))
        }

        fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Error> {
            Ok(Box::new(Words(vec![0; len])))
        }
    }

    /// Geometry of targets with these starts and counts; pair k has source 9 − k.
    fn received(places: &[(u64, u32)], pairs: u64) -> Result<PairGeometry, Error> {
        let mut geometry = PairGeometry::default();
        geometry.receive(
            Precision::Single,
            places.len(),
            pairs,
            &Provider,
            |to, _| {
                for (target, place) in places.iter().enumerate() {
                    (to.lists.start[target], to.lists.count[target]) = *place;
                }
                for k in 0..pairs as usize {
                    to.lists.entries[k] = 9 - k as u32;
                    to.images[k] = [k as i32, 0, 0];
                    to.displacements[k] = [k as f32; 3];
                    to.squares[k] = k as f32;
                }
                Ok(None)
            },
        )?;
        Ok(geometry)
    }

    fn indices(geometry: &PairGeometry, target: usize) -> Vec<u32> {
        let pairs = geometry.of(target);
        pairs
            .map(|pair| {
                let k = 9 - pair.index;
                let values = ([k as i32, 0, 0], [f64::from(k); 3], f64::from(k));
                assert_eq!((pair.image, pair.d, pair.d2), values, "moved together");
                pair.index
            })
            .collect()
    }

    #[test]
    fn pairs_are_sorted_with_all_that_belongs_to_them() {
        let mut geometry = received(&[(3, 4), (0, 3), (7, 0)], 7).unwrap();
        assert_eq!(geometry.images().len(), geometry.lists().storage().len());
        assert_eq!(indices(&geometry, 0), [6, 5, 4, 3]);
        geometry.sort().unwrap();
        assert_eq!(indices(&geometry, 0), [3, 4, 5, 6]);
        assert_eq!(indices(&geometry, 1), [7, 8, 9]);
        assert_eq!(indices(&geometry, 2), []);
    }

    #[test]
    fn images_of_one_source_ascend() {
        let mut geometry = received(&[(0, 3)], 3).unwrap();
        geometry.lists.indices.fill(4);
        geometry
            .image
            .copy_from_slice(&[[1, 0, 0], [0, 5, 0], [0, -5, 9]]);
        geometry.sort().unwrap();
        let squares: Vec<_> = geometry.of(0).map(|pair| pair.d2).collect();
        assert_eq!(squares, [2.0, 1.0, 0.0]);
    }

    #[test]
    fn lists_of_a_device_may_overlap_but_not_reach_outside() {
        let mut geometry = received(&[(0, 4), (2, 4)], 6).unwrap();
        geometry.sort().unwrap();
        assert_eq!(geometry.lists().pairs(), 6);
        assert!(received(&[(0, 4), (4, 3)], 6).is_err());
        assert!(received(&[(u64::MAX, 1)], 6).is_err());
        let none = received(&[(0, 0)], 0).unwrap();
        assert_eq!(none.of(0).len(), 0);
    }

    #[test]
    fn borrowed_memory_serves_again_and_gives_way_to_a_longer_search() {
        let mut geometry = received(&[(0, 8)], 8).unwrap();
        let bytes = geometry.bytes();
        for pairs in [3, 8] {
            let fill = |to: ReceivedPairs<'_>, _: Inside| {
                to.lists.start[0] = 0;
                to.lists.count[0] = pairs as u32;
                assert_eq!(to.images.len(), pairs as usize);
                Ok(None)
            };
            geometry
                .receive(Precision::Single, 1, pairs, &Provider, fill)
                .unwrap();
            assert_eq!(geometry.bytes(), bytes);
        }
        geometry = received(&[(0, 10)], 10).unwrap();
        assert_eq!(geometry.of(0).len(), 10);
    }
}
