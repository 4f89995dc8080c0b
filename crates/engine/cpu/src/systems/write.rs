//! The second pass: every pair goes to its place in the arrays that were asked for.
//!
//! The first pass left tags; their source and image give every quantity, from positions and image
//! vectors that are still in a cache. So only what was asked for is computed, and every array is
//! written once, in order. Displacements are computed by the operations that decided the pair.
//!
//! # Parts
//!
//! A part is a task of small systems, or some thousands of points of a large one, so a system of a
//! million points is written by all workers. The lengths of all lists are added up on one thread;
//! every part then knows where its entries begin, and gets the slices of all arrays that are its
//! own.
//!
//! There is a loop per quantity over the tags of a list, which is in the first-level cache, so that
//! what is not asked for costs nothing.
//!
//! **Invariant:** parts cover every point once, in order, and a part writes to its own slices
//! alone, so the pass needs no unsafe code.

use super::{
    SystemPairs,
    cells::{OneImage, Pairs},
    direct::Tags,
    input::{SystemReal, Systems},
    quantities::{PairIndex, Quantities},
    tasks::{By, FoundTask},
};
use crate::simd::{Simd, Task};
use std::ops::Range;

/// Points of a part of a system that was searched by cells.
const PART: usize = 4096;

/// Consecutive points of a task: whole systems that are small, or a part of one.
pub(super) struct Part<'a, T> {
    pub(super) task: &'a FoundTask<T>,
    pub(super) systems: Range<usize>,
    /// Points, by their place in the array of all systems.
    pub(super) points: Range<usize>,
}

/// Where a part writes: the arrays from its first pair to its last, or empty ones.
pub(super) struct Place<'a, T, I> {
    /// Offsets of the points of the part.
    pub(super) offsets: &'a mut [u64],
    /// The point of every pair.
    pub(super) targets: &'a mut [I],
    /// Its neighbour.
    pub(super) sources: &'a mut [I],
    /// By how many vectors of the cell that is moved.
    pub(super) images: &'a mut [[i32; 3]],
    /// From the point to the neighbour that was moved.
    pub(super) displacements: &'a mut [[T; 3]],
    /// The length of that.
    pub(super) distances: &'a mut [T],
}

impl<T: SystemReal> FoundTask<T> {
    /// Cuts the task into parts.
    pub(super) fn parts<'a>(
        &'a self,
        systems: &'a Systems<'a, T>,
    ) -> impl Iterator<Item = Part<'a, T>> {
        let all = systems.points_of_range(&self.systems);
        let is_one = self.systems.len() == 1 && !self.cells.is_empty();
        let step = if is_one { PART } else { all.len().max(1) };
        let end = all.end;
        // A task of empty systems has no part.
        all.step_by(step).map(move |begin| Part {
            task: self,
            systems: self.systems.clone(),
            points: begin..(begin + step).min(end),
        })
    }

    /// The length of a point's list, by its number in the task and in its system.
    #[inline(always)]
    fn count(&self, by: By, in_task: usize, in_system: usize) -> usize {
        match by {
            By::Direct(_) => self
                .hits
                .counts
                .get(in_task)
                .map_or(0, |&count| count as usize),
            By::Cells(number) => self.cells[number].lists().count(in_system),
        }
    }
}

impl<T: SystemReal> Part<'_, T> {
    /// Calls `each` with every point of the part: its system's way, the first point of its system,
    /// and its own place.
    #[inline(always)]
    fn for_each_point(&self, systems: &Systems<'_, T>, mut each: impl FnMut(By, usize, usize)) {
        for system in self.systems.clone() {
            let range = systems.range(system);
            let by = self.task.by[system - self.task.systems.start];
            let begin = range.start.max(self.points.start);
            for point in begin..range.end.min(self.points.end) {
                each(by, range.start, point);
            }
        }
    }

    /// Writes the lengths of all lists of the part; returns the number of pairs.
    pub(super) fn count(&self, systems: &Systems<'_, T>, lengths: &mut [u64]) -> usize {
        let first = systems.range(self.task.systems.start).start;
        let mut pairs = 0;
        self.for_each_point(systems, |by, begin, point| {
            let count = self.task.count(by, point - first, point - begin);
            lengths[point - self.points.start] = count as u64;
            pairs += count;
        });
        pairs
    }
}

impl<T, I> SystemPairs<T, I> {
    /// Cuts all arrays, which have their lengths, into the places of parts with so many points and
    /// pairs each.
    pub(super) fn places_of<'a>(
        &'a mut self,
        parts: impl Iterator<Item = (usize, usize)>,
    ) -> impl Iterator<Item = Place<'a, T, I>> {
        let mut rest = Place {
            offsets: &mut self.offsets[..],
            targets: &mut self.targets[..],
            sources: &mut self.sources[..],
            images: &mut self.images[..],
            displacements: &mut self.displacements[..],
            distances: &mut self.distances[..],
        };
        parts.map(move |(points, pairs)| Place {
            offsets: cut(&mut rest.offsets, points),
            targets: cut(&mut rest.targets, pairs),
            sources: cut(&mut rest.sources, pairs),
            images: cut(&mut rest.images, pairs),
            displacements: cut(&mut rest.displacements, pairs),
            distances: cut(&mut rest.distances, pairs),
        })
    }
}

impl<T: SystemReal, I: PairIndex> Place<'_, T, I> {
    /// Writes the pairs that were `found` of a point to `entries`, as many as there are; three
    /// functions return the source of a pair, its image and its displacement.
    #[inline(always)]
    pub(super) fn write_found(
        &mut self,
        wanted: Quantities,
        entries: Range<usize>,
        found: &[u32],
        source: impl Fn(u32) -> usize,
        image: impl Fn(u32) -> [i32; 3],
        displacement: impl Fn(u32) -> [T; 3],
    ) {
        if wanted.sources {
            let to = &mut self.sources[entries.clone()];
            for (to, &pair) in to.iter_mut().zip(found) {
                *to = I::of(source(pair));
            }
        }
        if wanted.images {
            let to = &mut self.images[entries.clone()];
            for (to, &pair) in to.iter_mut().zip(found) {
                *to = image(pair);
            }
        }
        if wanted.displacements {
            let to = &mut self.displacements[entries.clone()];
            for (to, &pair) in to.iter_mut().zip(found) {
                *to = displacement(pair);
            }
        }
        if wanted.distances {
            let to = &mut self.distances[entries];
            for (to, &pair) in to.iter_mut().zip(found) {
                *to = square(displacement(pair)).root();
            }
        }
    }
}

/// Takes the first elements off an array, or none off an empty one.
fn cut<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let all = std::mem::take(rest);
    let (first, others) = all.split_at_mut(len.min(all.len()));
    *rest = others;
    first
}

/// The second pass of a part, compiled for a level.
pub(super) struct Write<'a, T, I> {
    pub(super) systems: &'a Systems<'a, T>,
    pub(super) part: &'a Part<'a, T>,
    /// The offsets hold the lengths of the lists, and become offsets.
    pub(super) to: Place<'a, T, I>,
    /// Pairs before the part.
    pub(super) before: u64,
    pub(super) wanted: Quantities,
}

impl<T: SystemReal, I: PairIndex> Task for Write<'_, T, I> {
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let (systems, part) = (self.systems, self.part);
        let first = systems.range(part.task.systems.start).start;
        let mut at = 0;
        for system in part.systems.clone() {
            let range = systems.range(system);
            let by = part.task.by[system - part.task.systems.start];
            let begin = range.start.max(part.points.start);
            for point in begin..range.end.min(part.points.end) {
                let length = &mut self.to.offsets[point - part.points.start];
                let entries = at..at + *length as usize;
                *length = self.before + at as u64;
                at = entries.end;
                if self.wanted.targets {
                    self.to.targets[entries.clone()].fill(I::of(point));
                }
                match by {
                    By::Direct(tags) => {
                        let start = part.task.hits.starts[point - first];
                        let list = &part.task.hits.tags[start..start + entries.len()];
                        self.direct(tags, range.start, point, list, entries);
                    }
                    By::Cells(number) => {
                        let pairs = &part.task.cells[number];
                        self.by_cells(pairs, range.start, point - range.start, entries);
                    }
                }
            }
        }
    }
}

impl<T: SystemReal, I: PairIndex> Write<'_, T, I> {
    /// The pairs of a point of a system that was searched directly.
    #[inline(always)]
    fn direct(
        &mut self,
        tags: Tags,
        begin: usize,
        point: usize,
        list: &[u32],
        entries: Range<usize>,
    ) {
        let hits = &self.part.task.hits;
        let (positions, from) = (self.systems.positions, self.systems.positions[point]);
        let source = |tag| begin + tags.source(tag);
        let image = |tag| hits.images[tags.image(tag)];
        let d = |tag| displacement(from, positions[source(tag)], hits.shifts[tags.image(tag)]);
        (self.to).write_found(self.wanted, entries, list, source, image, d);
    }

    /// The pairs of a point of a system that was searched by cells.
    #[inline(always)]
    fn by_cells(&mut self, pairs: &Pairs, begin: usize, number: usize, entries: Range<usize>) {
        if self.wanted.sources {
            let to = &mut self.to.sources[entries.clone()];
            for (to, &source) in to.iter_mut().zip(pairs.lists().of(number)) {
                *to = I::of(begin + source as usize);
            }
        }
        let geometry = match pairs {
            Pairs::Lists(_) => return,
            Pairs::OneImage(found) => return self.one_image(found, begin, number, entries),
            Pairs::Geometry(geometry) => geometry,
        };
        let start = geometry.lists().starts()[number] as usize;
        let list = start..start + entries.len();
        let (displacements, squares) = T::arrays(geometry.arrays());
        if self.wanted.images {
            self.to.images[entries.clone()].copy_from_slice(&geometry.images()[list.clone()]);
        }
        if self.wanted.displacements {
            let to = &mut self.to.displacements[entries.clone()];
            to.copy_from_slice(&displacements[list.clone()]);
        }
        if self.wanted.distances {
            let to = &mut self.to.distances[entries];
            for (to, &square) in to.iter_mut().zip(&squares[list]) {
                *to = square.root();
            }
        }
    }

    /// The geometry of the pairs of a point whose images follow from the coordinates.
    #[inline(always)]
    fn one_image(&mut self, found: &OneImage, begin: usize, number: usize, entries: Range<usize>) {
        let positions = &self.systems.positions[begin..];
        let fractions = |[x, y, z]: [T; 3]| {
            let at = [x.double(), y.double(), z.double()];
            found.reach.fractions(at)
        };
        let (from, wanted) = (positions[number], self.wanted);
        let target = fractions(from);
        for (entry, &source) in entries.zip(found.lists.of(number)) {
            let to = positions[source as usize];
            let source = fractions(to);
            let mut n = [0.0; 3];
            for axis in 0..3 {
                n[axis] = found.reach.only(axis, source[axis], target[axis]);
            }
            let (mut image, mut shift) = ([0; 3], [T::default(); 3]);
            if n != [0.0; 3] {
                let n = [n[0] as i64, n[1] as i64, n[2] as i64];
                let given = found.domain.given_image(n);
                image = [given[0] as i32, given[1] as i32, given[2] as i32];
                let [x, y, z] = found.domain.image_vector_f64(n);
                let of = <T as nearfield_pairs::Real>::of;
                shift = [of(x), of(y), of(z)];
            }
            let d = displacement(from, to, shift);
            if wanted.images {
                self.to.images[entry] = image;
            }
            if wanted.displacements {
                self.to.displacements[entry] = d;
            }
            if wanted.distances {
                self.to.distances[entry] = square(d).root();
            }
        }
    }
}

/// fl(fl(x_j − x_i) + S) per axis.
#[inline(always)]
pub(super) fn displacement<T: SystemReal>(from: [T; 3], to: [T; 3], shift: [T; 3]) -> [T; 3] {
    [
        (to[0] - from[0]) + shift[0],
        (to[1] - from[1]) + shift[1],
        (to[2] - from[2]) + shift[2],
    ]
}

/// The squared distance of the contract.
#[inline(always)]
pub(super) fn square<T: SystemReal>([x, y, z]: [T; 3]) -> T {
    z.fused(z, y.fused(y, x * x))
}
