//! Pairs among those that were found before within a larger radius.
//!
//! A list with a skin serves many steps: while points have moved little, every pair within the
//! radius is in it, through the image that it was found by. [`Candidates`] keep the source and the
//! image of each, eight bytes; a step recomputes each by the contract and keeps the pairs within
//! the radius. So its pairs are those of a search, bit for bit, in the order of the list.
//!
//! # Two passes
//!
//! Parts of 2,048 points are cut by number alone. The first pass tests the candidates of every part
//! and notes those within the radius, and how many each point has. Then all lengths are known,
//! every array gets its final size, and the second pass computes what was asked for from the notes,
//! as that of a search does. Every candidate is stored, and the next overwrites it unless it is a
//! pair: a branch that cannot be predicted costs more than a store.
//!
//! **Invariant:** the caller decides whether the list still holds all pairs; the points, their
//! number and the cells are otherwise those of the search that found it.

use super::{
    input::{SystemReal, Systems, WHAT},
    pairs::SystemPairs,
    place::{Place, displacement, square},
    quantities::{PairIndex, Quantities},
};
use crate::{
    error::{Error, ErrorKind},
    pool::CpuBackend,
    simd::{Simd, Task, with_level},
};
use nearfield_grid::{
    Stop,
    memory::{make_room, make_room_for_one},
    parallel::PoolLoops,
};
use rayon::prelude::*;
use std::ops::Range;

/// Points of a part, about half a millisecond of work.
const PART: usize = 2048;

/// The pairs of a search with a larger radius.
///
/// They take eight bytes each. Where points fill space evenly, a skin of a tenth of the radius
/// makes them a third more than the pairs that count, and a skin as large as the radius eight times
/// as many.
#[derive(Debug, Default)]
pub struct Candidates<T> {
    /// First candidate of every point, and their number.
    offsets: Vec<u64>,
    /// By their place in the array of all systems.
    sources: Vec<u32>,
    /// Places in the table, one a candidate.
    images: Vec<u32>,
    /// Every image of a system that a candidate has, with its vector.
    table: Vec<([i32; 3], [T; 3])>,
    /// Those that are within the radius now, and working memory, by part. The memory stays from
    /// step to step.
    parts: Vec<Part>,
}

/// Consecutive points, and their pairs.
///
/// One thread works at a part at a time.
#[derive(Debug, Default)]
struct Part {
    /// By their place in the array of all systems.
    points: Range<usize>,
    /// Candidates that are within the radius, in their order.
    hits: Vec<u32>,
    /// Why it has none.
    error: Option<Error>,
}

impl<T: SystemReal> Candidates<T> {
    /// Takes over what a search of the same systems found: sources and images of all pairs.
    ///
    /// # Errors
    /// [`ErrorKind::System`], [`ErrorKind::OutOfMemory`], and [`ErrorKind::TooManyCandidates`] for
    /// more than 32 bits count. There are no candidates then.
    ///
    /// A skin as large as the radius makes eight times as many candidates as pairs that count, so a
    /// smaller one is the first remedy.
    pub fn take(
        &mut self,
        systems: &Systems<'_, T>,
        found: &mut SystemPairs<T, u32>,
    ) -> Result<(), Error> {
        let count = found.sources().len();
        for list in [&mut self.images, &mut self.sources] {
            list.clear();
        }
        self.offsets.clear();
        self.table.clear();
        check_count(count)?;
        make_room(&mut self.images, count, WHAT)?;
        for system in 0..systems.len() {
            let domain = systems.system(system)?.domain;
            let begin = self.table.len();
            let points = systems.range(system);
            let pairs = found.offsets()[points.start]..found.offsets()[points.end];
            let images = &found.images()[pairs.start as usize..pairs.end as usize];
            // Neighbouring pairs often have the same image, and few differ.
            for image in images {
                let known = self.table[begin..].binary_search_by_key(image, |(image, _)| *image);
                if let Err(place) = known {
                    make_room_for_one(&mut self.table, WHAT)?;
                    let vector = domain.given_image_vector_f64(image.map(i64::from));
                    let vector = vector.map(<T as nearfield_pairs::Real>::of);
                    self.table.insert(begin + place, (*image, vector));
                }
            }
            for image in images {
                let known = self.table[begin..].binary_search_by_key(image, |(image, _)| *image);
                self.images.push((begin + known.unwrap_or_default()) as u32);
            }
        }
        let columns = found.take_columns();
        (self.offsets, self.sources) = (columns.offsets, columns.sources);
        Ok(())
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Cuts the points into parts.
    fn cut(&mut self, points: usize) -> Result<(), Error> {
        let count = points.div_ceil(PART);
        self.parts.truncate(count);
        while self.parts.len() < count {
            make_room_for_one(&mut self.parts, WHAT)?;
            self.parts.push(Part::default());
        }
        for (number, part) in self.parts.iter_mut().enumerate() {
            part.points = number * PART..points.min((number + 1) * PART);
        }
        Ok(())
    }
}

impl CpuBackend {
    /// Writes the candidates that are within the radius of their system now, as
    /// [`search_systems`](Self::search_systems) does.
    ///
    /// # Errors
    /// As [`search_systems`](Self::search_systems), and [`ErrorKind::OtherCandidates`] for
    /// candidates of another number of points, or none; `pairs` is then empty.
    pub fn search_candidates<T: SystemReal, I: PairIndex>(
        &self,
        systems: &Systems<'_, T>,
        candidates: &mut Candidates<T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let _span = tracing::debug_span!("cpu.candidates", points = systems.positions.len());
        let _span = _span.entered();
        let done = self.candidates_into(systems, candidates, wanted, pairs);
        if done.is_err() {
            pairs.clear();
        }
        done
    }

    fn candidates_into<T: SystemReal, I: PairIndex>(
        &self,
        systems: &Systems<'_, T>,
        candidates: &mut Candidates<T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        systems.check_for::<I>()?;
        let points = systems.positions.len();
        let searched = candidates.offsets.len().checked_sub(1);
        if searched != Some(points) {
            return Err(ErrorKind::OtherCandidates { searched, points }.into());
        }
        candidates.cut(points)?;
        let Candidates {
            offsets,
            sources,
            images,
            table,
            parts,
        } = candidates;
        let lists = Lists {
            offsets,
            sources,
            images,
            table,
        };
        make_room(&mut pairs.offsets, points + 1, WHAT)?;
        pairs.offsets.resize(points + 1, 0);
        let stop = Stop::current();
        let lengths = pairs.offsets.par_chunks_mut(PART);
        self.install_for(lists.sources.len(), || {
            lengths
                .zip(&mut *parts)
                .with_max_len(1)
                .run(|(lengths, part)| {
                    if !stop.is_asked_now() {
                        part.error = part.find(self, systems, lists, lengths).err();
                    }
                });
        });
        if stop.is_asked() {
            return Err(ErrorKind::Interrupted.into());
        }
        if let Some(error) = parts.iter_mut().find_map(|part| part.error.take()) {
            return Err(error);
        }
        let size = |part: &Part| (part.points.len(), part.hits.len());
        self.write_parts(wanted, pairs, parts, size, |part, before, to| Write {
            positions: systems.positions,
            lists,
            part,
            to,
            before,
            wanted,
        })
    }
}

/// Refuses more candidates than 32 bits number, before memory is asked for.
///
/// With more than that a smaller skin or fewer systems help, and more memory does not.
///
/// # Errors
/// [`ErrorKind::TooManyCandidates`].
fn check_count(candidates: usize) -> Result<(), Error> {
    if u32::try_from(candidates).is_err() {
        return Err(ErrorKind::TooManyCandidates(candidates).into());
    }
    Ok(())
}

/// Candidates, for many threads.
///
/// They are of as many points as the systems that are searched, which is checked before.
#[derive(Debug, Clone, Copy)]
struct Lists<'a, T> {
    /// First candidate of every point.
    offsets: &'a [u64],
    /// Source of every candidate.
    sources: &'a [u32],
    /// Place of its image in the table.
    images: &'a [u32],
    /// Images with their vectors.
    table: &'a [([i32; 3], [T; 3])],
}

impl<T: SystemReal> Lists<'_, T> {
    /// From a point to a candidate.
    #[inline(always)]
    fn displacement(&self, positions: &[[T; 3]], from: [T; 3], candidate: usize) -> [T; 3] {
        let source = positions[self.sources[candidate] as usize];
        displacement(from, source, self.table[self.images[candidate] as usize].1)
    }
}

impl Part {
    /// Finds the pairs, and writes how many every point has.
    fn find<T: SystemReal>(
        &mut self,
        backend: &CpuBackend,
        systems: &Systems<'_, T>,
        lists: Lists<'_, T>,
        lengths: &mut [u64],
    ) -> Result<(), Error> {
        let Range { start, end } = self.points;
        let candidates = (lists.offsets[end] - lists.offsets[start]) as usize;
        self.hits.clear();
        make_room(&mut self.hits, candidates, WHAT)?;
        self.hits.resize(candidates, 0);
        let first = systems
            .offsets
            .partition_point(|&begin| begin as usize <= start);
        let (mut point, mut found) = (start, 0);
        for system in first.saturating_sub(1)..systems.len() {
            let last = systems.range(system).end.min(end);
            if point < last {
                let find = Find {
                    positions: systems.positions,
                    r2: T::squared(systems.system(system)?.radius),
                    lists,
                    points: point..last,
                    hits: &mut self.hits[found..],
                    lengths: &mut lengths[point - start..last - start],
                    found: &mut found,
                };
                with_level(backend.level(), find);
                point = last;
            }
        }
        self.hits.truncate(found);
        Ok(())
    }
}

/// Tests the candidates of points of a system, compiled for a level.
struct Find<'a, T> {
    /// Of all systems.
    positions: &'a [[T; 3]],
    /// The largest squared distance of a pair.
    r2: T,
    /// What is tested.
    lists: Lists<'a, T>,
    points: Range<usize>,
    /// Room for all candidates of these points.
    hits: &'a mut [u32],
    lengths: &'a mut [u64],
    /// Number of pairs, added to.
    found: &'a mut usize,
}

impl<T: SystemReal> Task for Find<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut found = 0;
        for (point, length) in self.points.zip(self.lengths) {
            let (from, before) = (self.positions[point], found);
            let begin = self.lists.offsets[point] as usize;
            let end = self.lists.offsets[point + 1] as usize;
            for candidate in begin..end {
                let d = self.lists.displacement(self.positions, from, candidate);
                // Written in any case, which is faster than a branch.
                self.hits[found] = candidate as u32;
                found += usize::from(square(d) <= self.r2);
            }
            *length = (found - before) as u64;
        }
        *self.found += found;
    }
}

/// Writes the pairs of a part, compiled for a level.
struct Write<'a, T, I> {
    positions: &'a [[T; 3]],
    lists: Lists<'a, T>,
    part: &'a Part,
    /// The offsets hold the lengths of the lists, and become offsets.
    to: Place<'a, T, I>,
    /// Pairs before the part.
    before: u64,
    wanted: Quantities,
}

impl<T: SystemReal, I: PairIndex> Task for Write<'_, T, I> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (lists, mut to) = (self.lists, self.to);
        let (offsets, mut begin) = (std::mem::take(&mut to.offsets), 0);
        for (point, length) in self.part.points.clone().zip(offsets) {
            let entries = begin..begin + *length as usize;
            *length = self.before + begin as u64;
            begin = entries.end;
            if self.wanted.targets {
                to.targets[entries.clone()].fill(I::of(point));
            }
            let (from, hits) = (self.positions[point], &self.part.hits[entries.clone()]);
            let source = |hit: u32| lists.sources[hit as usize] as usize;
            let image = |hit: u32| lists.table[lists.images[hit as usize] as usize].0;
            let d = |hit: u32| lists.displacement(self.positions, from, hit as usize);
            to.write_found(self.wanted, entries, hits, source, image, d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::CpuBackend;

    #[test]
    fn candidates_of_other_points_are_refused_and_too_many_name_the_skin() {
        let backend = CpuBackend::new(1).unwrap();
        let (mut candidates, mut pairs) =
            (Candidates::default(), SystemPairs::<f32, u32>::default());
        let three = [[0.0f32; 3], [1.0, 0.0, 0.0], [5.0, 0.0, 0.0]];
        let systems = Systems::new(&three, &[0, 3], &[2.0]);
        let wanted = Quantities {
            images: true,
            ..Quantities::LISTS
        };
        let mut search = |systems: &Systems<'_, f32>, candidates: &mut Candidates<f32>| {
            let searched = backend.search_candidates(systems, candidates, wanted, &mut pairs);
            searched.map(|()| pairs.sources().len())
        };
        let text = search(&systems, &mut candidates).unwrap_err().to_string();
        assert!(
            text.contains("search first") && text.contains("3 points"),
            "{text}"
        );
        let mut found = SystemPairs::default();
        let (kind, order) = (nearfield_pairs::ListKind::Full, crate::ListOrder::default());
        backend
            .search_systems(&systems, kind, order, wanted, &mut found)
            .unwrap();
        candidates.take(&systems, &mut found).unwrap();
        assert_eq!(search(&systems, &mut candidates).unwrap(), 2);
        let two = Systems::new(&three[..2], &[0, 2], &[2.0]);
        let text = search(&two, &mut candidates).unwrap_err().to_string();
        assert!(
            text.contains("2 points") && text.contains("those of 3"),
            "{text}"
        );

        assert!(check_count(u32::MAX as usize).is_ok());
        let text = check_count(1 << 32).unwrap_err().to_string();
        assert!(
            text.contains("4294967296") && text.contains("skin"),
            "{text}"
        );
    }
}
