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
//! **Invariant:** parts cover every point once, in order, and a part writes to its own slices
//! alone, so the pass needs no unsafe code.

use super::{
    SystemPairs,
    cells::Pairs,
    direct::Tags,
    input::{SystemReal, Systems},
    place::{Place, displacement},
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
            Pairs::OneImage(found) => {
                let positions = &self.systems.positions[begin..];
                found.write(positions, number, self.wanted, &mut self.to, entries);
                return;
            }
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
}
