//! Sums for the points around those of one task, and how the tasks' sums are put together.
//!
//! Where pairs are evaluated once for both points, a task adds to points of other tasks. It does so in
//! a [`Window`] of its own, which covers its points (the *own* part), as many behind the last of them
//! as it reaches (the *spill*), and as many before the first (the *backlog*). Where the domain is
//! periodic, points are taken in a circle, so that those across the last face lie near.
//!
//! When all tasks are done, spills and backlogs are added to the own parts they overlap with, in the
//! order of the tasks: no races, no atomics, and the same sums whatever the number of threads.

use crate::CpuLane;
use nearfield_pairs::{Channels, PairKernel};
use rayon::prelude::*;
use std::ops::Range;

/// The sums of one task while it works; the channels of a point lie next to each other.
pub(crate) struct Window<'a> {
    circle: Circle,
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

impl Circle {
    /// How far a point lies behind the first of `own`; negative where it lies before, which in a
    /// circle is decided by what is nearer.
    #[inline(always)]
    pub(crate) fn place(self, own: &Range<usize>, slot: usize) -> isize {
        let place = slot as isize - own.start as isize;
        if !self.closed {
            return place;
        }
        let (points, turn) = (
            self.points as isize,
            own.len().max(self.points / 2) as isize,
        );
        match place {
            _ if place >= turn => place - points,
            _ if place < turn - points => place + points,
            _ => place,
        }
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
            circle,
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
            let place = self.circle.place(&self.own, point as usize);
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

    /// The sums of a point that was reached for.
    #[inline(always)]
    pub(crate) fn sums<K: PairKernel>(&mut self, point: usize) -> &mut [f32] {
        let place = self.circle.place(&self.own, point);
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

/// Puts the shares of tasks of `size` points together and hands the sums of every point to `put`.
pub(crate) fn put_together<K: PairKernel>(
    lane: &CpuLane,
    circle: Circle,
    (shares, size): (Vec<Share>, usize),
    put: impl Fn(Range<usize>, &[f32]) + Sync + Send,
) {
    let channels = K::Output::COUNT.max(1);
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
                    add::<K>(&mut sums, slots, points, |point| {
                        &spill[(point - start) as usize * channels..]
                    });
                    let end = of.start as isize + turn;
                    let points = end - (backlog.len() / channels) as isize..end;
                    add::<K>(&mut sums, slots, points, |point| {
                        &backlog[(end - 1 - point) as usize * channels..]
                    });
                }
            }
            put(slots.clone(), &sums);
        });
    });
}

/// Adds `values(point)` to the sums of those of `points` that are among `slots`.
fn add<'v, K: PairKernel>(
    sums: &mut [f32],
    slots: &Range<usize>,
    points: Range<isize>,
    values: impl Fn(isize) -> &'v [f32],
) {
    let channels = K::Output::COUNT;
    let (first, last) = (slots.start as isize, slots.end as isize);
    for point in points.start.max(first)..points.end.min(last) {
        let sums = &mut sums[(point - first) as usize * channels..][..channels];
        for (sum, value) in sums.iter_mut().zip(values(point)) {
            *sum = K::REDUCE.combine(*sum, *value);
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
            let mut places: Vec<_> = (0..points).map(|slot| circle.place(&own, slot)).collect();
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
        assert_eq!(open.place(&(93..100), 2), -91);
    }
}
