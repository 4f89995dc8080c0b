//! Sums for the points around those of one task, and how the tasks' sums are put together.
//!
//! Where pairs are evaluated once for both points, a task adds to points of other tasks. It does so in
//! a [`Window`] of its own, which covers its points (the *own* part), as many behind the last of them
//! as it reaches (the *spill*), and as many before the first (the *backlog*). Where the domain is
//! periodic, points are taken in a circle, so that those across the last face lie near.
//!
//! When all tasks are done, spills and backlogs are added to the own parts they overlap with, in the
//! order of the tasks: no races, no atomics, and the same sums whatever the number of threads.

use crate::{CpuLane, simd::LANES};
use nearfield_pairs::{Channels, PairKernel, Reduce};
use rayon::prelude::*;
use std::ops::Range;

/// The sums of one task while it works; the channels of a point lie next to each other.
pub(crate) struct Window<'a> {
    around: Around,
    own: Range<usize>,
    identity: f32,
    /// From the first own point on.
    forward: &'a mut Vec<f32>,
    /// Before it, the nearest first.
    backward: Vec<f32>,
}

/// The points, and whether the last is followed by the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circle {
    pub(crate) points: usize,
    pub(crate) closed: bool,
}

/// What a task has summed.
pub(crate) struct Share {
    slots: Range<usize>,
    own: Vec<f32>,
    spill: Vec<f32>,
    backlog: Vec<f32>,
}

/// Where points lie as seen from some of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around {
    start: isize,
    /// From here on a point is nearer the other way, that is by so many points.
    turn: [isize; 2],
    points: isize,
}

impl Circle {
    /// As seen from the points `own`.
    pub(crate) fn around(self, own: &Range<usize>) -> Around {
        let points = self.points as isize;
        let turn = own.len().max(self.points / 2) as isize;
        Around {
            start: own.start as isize,
            turn: match self.closed {
                true => [turn - points, turn],
                false => [isize::MIN, isize::MAX],
            },
            points,
        }
    }
}

impl Around {
    /// How far a point lies behind the first of those it is seen from; negative where it lies before,
    /// which in a circle is decided by what is nearer. No branches: whole vectors of points are placed.
    #[inline(always)]
    pub(crate) fn place(self, slot: usize) -> isize {
        let place = slot as isize - self.start;
        let behind = if place >= self.turn[1] {
            self.points
        } else {
            0
        };
        let before = if place < self.turn[0] { self.points } else { 0 };
        place - behind + before
    }
}

impl<'a> Window<'a> {
    /// A window for the points `own`; `buffer` is scratch.
    pub(crate) fn new<K: PairKernel>(
        circle: Circle,
        own: Range<usize>,
        buffer: &'a mut Vec<f32>,
    ) -> Self {
        let (channels, identity) = (K::Output::COUNT, K::REDUCE.identity());
        buffer.clear();
        buffer.resize(own.len() * channels, identity);
        Self {
            around: circle.around(&own),
            own,
            identity,
            forward: buffer,
            backward: Vec::new(),
        }
    }

    /// Makes room for the sums of `points`.
    #[inline(always)]
    pub(crate) fn reach<K: PairKernel>(&mut self, points: &[u32]) {
        let (mut first, mut last) = (0, -1);
        for &point in points {
            let place = self.around.place(point as usize);
            first = if place < first { place } else { first };
            last = if place > last { place } else { last };
        }
        let (forward, backward) = ((last + 1) as usize, -first as usize);
        if forward * K::Output::COUNT > self.forward.len() {
            self.forward
                .resize(forward * K::Output::COUNT, self.identity);
        }
        if backward * K::Output::COUNT > self.backward.len() {
            self.backward
                .resize(backward * K::Output::COUNT, self.identity);
        }
    }

    /// Where the sums of up to [`LANES`] points that were reached for are; they may be the same.
    #[inline(always)]
    pub(crate) fn places<K: PairKernel>(&mut self, points: &[u32]) -> [*mut f32; LANES] {
        let parts = [
            (self.forward.as_mut_ptr(), self.forward.len()),
            (self.backward.as_mut_ptr(), self.backward.len()),
        ];
        let (mut first, mut last) = (0, -1);
        let mut at = [0; LANES];
        for (at, &point) in at.iter_mut().zip(points) {
            let place = self.around.place(point as usize);
            first = if place < first { place } else { first };
            last = if place > last { place } else { last };
            *at = place;
        }
        let [ahead, back] = [(last + 1) as usize, -first as usize];
        let there = ahead * K::Output::COUNT <= parts[0].1 && back * K::Output::COUNT <= parts[1].1;
        assert!(there, "the points were reached for");
        let mut places = [std::ptr::null_mut(); LANES];
        for (to, at) in places.iter_mut().zip(at).take(points.len()) {
            let (part, at) = match at >= 0 {
                true => (parts[0].0, at as usize),
                false => (parts[1].0, (-1 - at) as usize),
            };
            // SAFETY: checked above.
            *to = unsafe { part.add(at * K::Output::COUNT) };
        }
        places
    }

    /// The sums of a point that was reached for.
    #[inline(always)]
    pub(crate) fn sums<K: PairKernel>(&mut self, point: usize) -> &mut [f32] {
        let place = self.around.place(point);
        let (part, at) = match place >= 0 {
            true => (&mut *self.forward, place as usize),
            false => (&mut self.backward, (-1 - place) as usize),
        };
        &mut part[at * K::Output::COUNT..][..K::Output::COUNT]
    }

    /// What was summed.
    pub(crate) fn close<K: PairKernel>(self) -> Share {
        let (own, spill) = self.forward.split_at(self.own.len() * K::Output::COUNT);
        Share {
            slots: self.own,
            own: own.to_vec(),
            spill: spill.to_vec(),
            backlog: self.backward,
        }
    }
}

/// What hands the sums of a range of points on.
type Put<'a> = dyn Fn(Range<usize>, &[f32]) + Sync + 'a;

/// Puts the shares of tasks of `size` points together and hands the sums of every point to `put`.
pub(crate) fn put_together<K: PairKernel>(
    lane: &CpuLane,
    circle: Circle,
    shares: (Vec<Share>, usize),
    put: &Put<'_>,
) {
    put_shares_together(lane, circle, shares, (K::Output::COUNT, K::REDUCE), put);
}

/// [`put_together`] for any kernel with so many outputs, combined in such a way.
fn put_shares_together(
    lane: &CpuLane,
    circle: Circle,
    (shares, size): (Vec<Share>, usize),
    (channels, reduce): (usize, Reduce),
    put: &Put<'_>,
) {
    let channels = channels.max(1);
    let (own, parts): (Vec<_>, Vec<_>) = shares
        .into_iter()
        .map(|share| (share.own, (share.slots, share.spill, share.backlog)))
        .unzip();
    let longest = (parts.iter())
        .map(|(_, spill, backlog)| spill.len().max(backlog.len()))
        .max()
        .unwrap_or(0);
    let (reach, tasks) = (longest.div_ceil(size * channels) + 1, parts.len());
    let near = |a: usize, b: usize| {
        let apart = a.abs_diff(b);
        apart <= reach || circle.closed && tasks - apart <= reach
    };
    lane.install(|| {
        let own = own.into_par_iter().with_max_len(1).enumerate();
        own.for_each(|(number, mut sums)| {
            let slots = &parts[number].0;
            for (other, (of, spill, backlog)) in parts.iter().enumerate() {
                if !near(number, other) {
                    continue;
                }
                let turns = if circle.closed { -1..=1 } else { 0..=0 };
                for turn in turns {
                    let turn = turn * circle.points as isize;
                    let start = of.end as isize + turn;
                    let points = start..start + (spill.len() / channels) as isize;
                    add(&mut sums, slots, points, (channels, reduce), |point| {
                        &spill[(point - start) as usize * channels..]
                    });
                    let end = of.start as isize + turn;
                    let points = end - (backlog.len() / channels) as isize..end;
                    add(&mut sums, slots, points, (channels, reduce), |point| {
                        &backlog[(end - 1 - point) as usize * channels..]
                    });
                }
            }
            put(slots.clone(), &sums);
        });
    });
}

/// Adds `values(point)` to the sums of those of `points` that are among `slots`.
fn add<'v>(
    sums: &mut [f32],
    slots: &Range<usize>,
    points: Range<isize>,
    (channels, reduce): (usize, Reduce),
    values: impl Fn(isize) -> &'v [f32],
) {
    let (first, last) = (slots.start as isize, slots.end as isize);
    for point in points.start.max(first)..points.end.min(last) {
        let sums = &mut sums[(point - first) as usize * channels..][..channels];
        for (sum, value) in sums.iter_mut().zip(values(point)) {
            *sum = reduce.combine(*sum, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_circle_every_point_has_one_place_near_the_own_ones() {
        let points = 100;
        for own in [0..10, 45..60, 93..100, 0..100, 0..70] {
            let circle = Circle {
                points,
                closed: true,
            };
            let mut places: Vec<_> = (0..points)
                .map(|slot| circle.around(&own).place(slot))
                .collect();
            for slot in own.clone() {
                assert_eq!(places[slot], (slot - own.start) as isize);
            }
            places.sort();
            let first = places[0];
            assert!(
                places.into_iter().eq(first..first + points as isize),
                "{own:?}"
            );
        }
        let open = Circle {
            points,
            closed: false,
        };
        assert_eq!(open.around(&(93..100)).place(2), -91);
    }
}
