//! Lists and geometry of targets whose neighbours are visited one by one.
//!
//! Two kinds of callers have such targets: lists with a skin, whose pairs are decided again at the
//! current positions, and callers that ask for a few points of a set. Both visit every target
//! twice: the first time neighbours are counted, the second time they are written to their places.
//!
//! **Invariant:** a visit finds the same neighbours each time, because everything that it reads is
//! borrowed. What it finds beyond what was counted is left out.

use super::{
    geometry::{Arrays, FirstError, PairGeometry, WHAT},
    neighbor_lists::{ListOrder, NeighborLists},
    storage::Storage,
};
use crate::{
    contract::Image,
    error::Error,
    pool::CpuBackend,
    sets::PairOfSets,
    stored::{
        coordinate::PairArithmetic,
        pairs::{ListWalk, StoredPairs},
    },
};
use bytemuck::Zeroable;
use nearfield_grid::{Precision, SharedMut, memory::zeroed};

/// A neighbour of a target.
#[derive(Clone, Copy)]
struct Visited<T> {
    /// Index of the source.
    source: u32,
    /// Boxes by which it is moved, in counts of the vectors as given.
    image: Image,
    /// From the target to that image.
    d: [T; 3],
    /// Its square.
    d2: T,
}

/// Targets whose neighbours can be visited.
trait Visits: Sync {
    /// The numbers of the geometry.
    type Real: Copy + Send + Sync + Zeroable;

    /// Hands the neighbours of target number `target` to `each`; `seen` is scratch.
    fn visit(
        &self,
        target: usize,
        seen: &mut Vec<u32>,
        each: &mut impl FnMut(Visited<Self::Real>),
    ) -> Result<(), Error>;
}

/// Pairs of lists that were found earlier.
struct Stored<'a, T>(ListWalk<'a, T>);

impl<T: PairArithmetic + Zeroable> Visits for Stored<'_, T> {
    type Real = T;

    #[inline(always)]
    fn visit(
        &self,
        target: usize,
        seen: &mut Vec<u32>,
        each: &mut impl FnMut(Visited<T>),
    ) -> Result<(), Error> {
        let domain = self.0.pairs.lattice.domain();
        let visited = self
            .0
            .visit_exactly(target, seen, &mut |source, image, d, d2| {
                let image = domain.given_image(image);
                // A search adds an image vector of zeros, which makes +0 of a difference of −0.
                let d = d.map(|d| d + T::default());
                each(Visited {
                    source,
                    image,
                    d,
                    d2,
                });
            });
        Ok(visited?)
    }
}

/// Some targets of sorted sets.
struct Places<'a> {
    sets: PairOfSets<'a>,
    /// The sorted place of every target.
    of: &'a [u32],
}

impl<'a> Places<'a> {
    /// All of them search, chosen or not.
    fn new(sets: PairOfSets<'a>, of: &'a [u32]) -> Self {
        let mut sets = sets;
        sets.filter.chosen = None;
        Self { sets, of }
    }
}

impl Visits for Places<'_> {
    type Real = f32;

    #[inline(always)]
    fn visit(
        &self,
        target: usize,
        _: &mut Vec<u32>,
        each: &mut impl FnMut(Visited<f32>),
    ) -> Result<(), Error> {
        let place = self.of[target] as usize;
        self.sets.for_each_neighbor(place, |source, image, pair| {
            each(Visited {
                source,
                image,
                d: pair.d,
                d2: pair.d2,
            });
        })
    }
}

impl CpuBackend {
    /// Numbers of neighbours of some targets of sorted sets, given by their places in sorted order,
    /// whether or not they are among the [chosen](crate::PairFilter::chosen) targets.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) and
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    ///
    /// # Panics
    /// When there is no such place, as indexing a slice does.
    pub fn count_some(&self, sets: PairOfSets<'_>, places: &[u32]) -> Result<Vec<u32>, Error> {
        self.count_visited(places.len(), &Places::new(sets, places))
    }

    /// The lists of these targets, which are full: list i has the neighbours of the target at
    /// `places[i]`. `lengths` are what [`count_some`](Self::count_some) found.
    ///
    /// # Errors
    /// As there; `lists` are then unspecified.
    ///
    /// # Panics
    /// As there.
    pub fn lists_of_some(
        &self,
        sets: PairOfSets<'_>,
        places: &[u32],
        lengths: &[u32],
        order: ListOrder,
        lists: &mut NeighborLists,
    ) -> Result<(), Error> {
        let (of, targets) = (Places::new(sets, places), places.len().min(lengths.len()));
        lay_out(lengths, lists)?;
        let laid_out = lists.laid_out();
        let (starts, counts) = (laid_out.starts, laid_out.counts);
        let (storage, failed) = (SharedMut::new(laid_out.storage), FirstError::default());
        self.for_each_task(targets, &|targets, _| {
            for target in targets {
                let begin = starts[target] as usize;
                // SAFETY: lists were laid out one behind the other, and every target lies in one
                // task.
                let list = unsafe { storage.slice_mut(begin, begin + counts[target] as usize) };
                let mut entries = list.iter_mut();
                failed.note(of.visit(target, &mut Vec::new(), &mut |visited| {
                    if let Some(entry) = entries.next() {
                        *entry = visited.source;
                    }
                }));
                if order == ListOrder::Ascending {
                    list.sort_unstable();
                }
            }
        })?;
        failed.into_result()
    }

    /// The pairs of stored lists that are within the radius at the current positions, with their
    /// geometry, in the order of the lists.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory),
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), and
    /// [`ErrorKind::FarImage`](crate::ErrorKind::FarImage) when neighbours are more than 2³¹
    /// boxes apart; the geometry is then unspecified.
    pub fn stored_geometry(
        &self,
        pairs: &StoredPairs<'_, f32>,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let (of, targets) = (Stored(pairs.walk()), pairs.targets.len());
        lay_out(&self.count_visited(targets, &of)?, &mut geometry.lists)?;
        geometry.resize(Precision::Single)?;
        let (lists, images) = (&mut geometry.lists, &mut geometry.image);
        self.write_visited(targets, &of, lists, &mut geometry.single, images)
    }

    /// The same in double precision.
    ///
    /// # Errors
    /// As [`stored_geometry`](Self::stored_geometry).
    pub fn stored_geometry_f64(
        &self,
        pairs: &StoredPairs<'_, f64>,
        geometry: &mut PairGeometry,
    ) -> Result<(), Error> {
        let (of, targets) = (Stored(pairs.walk()), pairs.targets.len());
        lay_out(&self.count_visited(targets, &of)?, &mut geometry.lists)?;
        geometry.resize(Precision::Double)?;
        let (lists, images) = (&mut geometry.lists, &mut geometry.image);
        self.write_visited(targets, &of, lists, &mut geometry.double, images)
    }

    /// Writes the neighbours of every target, and their geometry, to places that were laid out.
    fn write_visited<V: Visits>(
        &self,
        targets: usize,
        of: &V,
        lists: &mut NeighborLists,
        arrays: &mut Arrays<V::Real>,
        images: &mut Storage<[i32; 3]>,
    ) -> Result<(), Error> {
        let laid_out = lists.laid_out();
        let (starts, counts) = (laid_out.starts, laid_out.counts);
        let (indices, images) = (SharedMut::new(laid_out.storage), SharedMut::new(images));
        let displacement = SharedMut::new(&mut arrays.displacement);
        let squares = SharedMut::new(&mut arrays.distance_squared);
        let failed = FirstError::default();
        self.for_each_task(targets, &|range, _| {
            let mut seen = Vec::new();
            for target in range {
                let begin = starts[target] as usize;
                let mut places = begin..begin + counts[target] as usize;
                failed.note(of.visit(target, &mut seen, &mut |visited| {
                    let Some(at) = places.next() else { return };
                    let image = failed.narrowed(visited.image, target as u32, visited.source);
                    // SAFETY: as in `lists_of_some`; all arrays are as long as the storage.
                    unsafe {
                        indices.write(at, visited.source);
                        displacement.write(at, visited.d);
                        squares.write(at, visited.d2);
                        images.write(at, image);
                    }
                }));
            }
        })?;
        failed.into_result()
    }

    /// Counts the neighbours of every target.
    fn count_visited<V: Visits>(&self, targets: usize, of: &V) -> Result<Vec<u32>, Error> {
        let mut lengths = zeroed::<u32>(targets, WHAT)?;
        let (shared, failed) = (SharedMut::new(&mut lengths), FirstError::default());
        self.for_each_task(targets, &|range, _| {
            let mut seen = Vec::new();
            for target in range {
                let mut count = 0;
                failed.note(of.visit(target, &mut seen, &mut |_| count += 1));
                // SAFETY: every target lies in one task.
                unsafe { shared.write(target, count) };
            }
        })?;
        failed.into_result()?;
        Ok(lengths)
    }
}

/// Makes room for lists of these lengths.
fn lay_out(lengths: &[u32], lists: &mut NeighborLists) -> Result<(), Error> {
    let pairs = lengths.iter().map(|&length| u64::from(length)).sum();
    let numbered = lengths.iter().enumerate();
    lists.lay_out(
        numbered.map(|(target, &count)| (target as u32, count)),
        pairs,
    )
}
