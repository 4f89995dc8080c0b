//! Whole boxes between sorted points and their images inside a periodic box.
//!
//! Coordinates are searched as they are given, so a search must know by how many boxes a point lies
//! outside. Three things keep that cheap where points of one cell lie in different boxes, as
//! molecules do that have diffused: counts lie one behind the other per axis, so a vector of them
//! can be loaded; a bit per point says where they change, so a run of equal counts is found by
//! words of 64; and the farthest coordinate and count bound what rounding can do to coordinates
//! that are moved into the box.
//!
//! # Cost
//!
//! Points that are all inside keep nothing. Otherwise 12 bytes and a bit per point, counted in two
//! passes over the sorted points, in memory that is kept from build to build.
//!
//! **Invariant:** there is a bit per point exactly where there are counts, and the bit of the first
//! point is never looked at.

use crate::{Error, Lattice, PADDING, memory::make_room, parallel::PoolLoops};
use rayon::prelude::*;
use std::ops::Range;

/// Points of a word of [`Wraps::changes`]. A run of a dense cell row spans one or two words.
const WORD: usize = u64::BITS as usize;

/// Points that a task counts at least.
const LEAST: usize = 1 << 12;

/// The name of the memory in messages.
const WHAT: &str = "the boxes that points lie in";

/// Boxes between sorted points and their images inside, counted along each axis of the box, or
/// along its vectors where it is tilted. Empty when all points are inside.
///
/// An image of a pair is that of its cells, more the target's boxes, less the source's.
#[derive(Debug, Clone, Default)]
pub struct Wraps {
    /// Counts along each axis, padded by [`PADDING`].
    axes: [Vec<i32>; 3],
    /// A bit per point: set where its counts differ from those of the point before it.
    changes: Vec<u64>,
    /// Largest magnitude of a count along each axis.
    most: [u32; 3],
    /// Largest magnitude of a coordinate along each axis.
    farthest: [f32; 3],
}

impl Wraps {
    /// Returns true if all points are inside the box; there is then nothing to be looked at.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Counts of a sorted point: whole boxes, or whole box vectors, that lead to it from its image
    /// inside. Zeros where no point has counts.
    #[inline(always)]
    pub fn of(&self, slot: usize) -> [i32; 3] {
        let [x, y, z] = &self.axes;
        match (x.get(slot), y.get(slot), z.get(slot)) {
            (Some(&x), Some(&y), Some(&z)) => [x, y, z],
            _ => [0; 3],
        }
    }

    /// Counts along each axis with [`PADDING`] zeros behind them; empty when all points are inside.
    ///
    /// One value per sorted point, so that a vector of them can be loaded with the coordinates.
    #[inline(always)]
    pub fn axes(&self) -> [&[i32]; 3] {
        [&self.axes[0], &self.axes[1], &self.axes[2]]
    }

    /// Largest magnitude of a count along each axis. Up to 2³⁰, which the check of bounds allows.
    pub fn most(&self) -> [u32; 3] {
        self.most
    }

    /// Largest magnitude of a coordinate of the sorted points along each axis; 0 when all points
    /// are inside. In double precision of their proxies.
    ///
    /// It bounds the rounding of coordinates that are moved into the box.
    pub fn farthest(&self) -> [f32; 3] {
        self.farthest
    }

    /// The end of the points from `slots.start` on that share its counts, at most `slots.end`.
    ///
    /// Cost: a look at every 64th point up to there.
    #[inline(always)]
    pub fn same_until(&self, slots: Range<usize>) -> usize {
        let from = slots.start + 1;
        if self.is_empty() || from >= slots.end {
            return slots.end;
        }
        let last = (slots.end - 1) / WORD;
        for word in from / WORD..=last {
            let first = word * WORD;
            let bits = self.changes[word] & (u64::MAX << from.saturating_sub(first));
            if bits != 0 {
                return slots.end.min(first + bits.trailing_zeros() as usize);
            }
        }
        slots.end
    }

    /// Returns true if all of the points have these counts; of no points, true.
    ///
    /// Cost: a look at every 64th point.
    #[inline(always)]
    pub fn all_are(&self, slots: Range<usize>, counts: [i32; 3]) -> bool {
        slots.is_empty()
            || (self.of(slots.start) == counts && self.same_until(slots.clone()) == slots.end)
    }

    /// How often counts change from a point of `slots` to the next: one less than the pieces that
    /// they would be cut into.
    ///
    /// Cost: a look at every 64th point.
    #[inline(always)]
    pub fn changes(&self, slots: Range<usize>) -> usize {
        let from = slots.start + 1;
        if self.is_empty() || from >= slots.end {
            return 0;
        }
        let (first, last) = (from / WORD, (slots.end - 1) / WORD);
        let mut changes = 0;
        for word in first..=last {
            let mut bits = self.changes[word];
            if word == first {
                bits &= u64::MAX << (from % WORD);
            }
            if word == last {
                bits &= u64::MAX >> (WORD - 1 - (slots.end - 1) % WORD);
            }
            changes += bits.count_ones() as usize;
        }
        changes
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let axes: usize = self.axes.iter().map(Vec::capacity).sum();
        size_of::<i32>() * axes + size_of::<u64>() * self.changes.capacity()
    }

    /// Forgets all counts: all points are inside. Memory is given back, because a simulation that
    /// wraps its coordinates once does so in every step.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Counts the boxes of `len` points at `place`, whose sorted coordinates are `sorted`, in the
    /// memory of earlier counts. Afterwards there are none if all points are inside.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); there are no counts then.
    pub(super) fn count(
        &mut self,
        len: usize,
        lattice: &Lattice,
        sorted: [&[f32]; 3],
        place: impl Fn(usize) -> [f64; 3] + Sync,
    ) -> Result<(), Error> {
        let Self {
            mut axes,
            mut changes,
            ..
        } = std::mem::take(self);
        for axis in &mut axes {
            axis.clear();
            make_room(axis, len + PADDING, WHAT)?;
            axis.resize(len + PADDING, 0);
        }
        changes.clear();
        make_room(&mut changes, len.div_ceil(WORD), WHAT)?;
        changes.resize(len.div_ceil(WORD), 0);
        let [x, y, z] = &mut axes;
        (&mut x[..len], &mut y[..len], &mut z[..len])
            .into_par_iter()
            .enumerate()
            .with_min_len(LEAST)
            .run(|(slot, (x, y, z))| [*x, *y, *z] = lattice.wraps_at(place(slot)));
        let most = [0, 1, 2].map(|axis| {
            let largest =
                |counts: &[i32]| counts.iter().fold(0, |max, n| n.unsigned_abs().max(max));
            let chunks = axes[axis].par_chunks(LEAST).map(largest);
            chunks.combined(|| 0, u32::max)
        });
        if most == [0; 3] {
            return Ok(());
        }
        // Tasks own whole words, so no two of them write the same one.
        let differ = |slot: usize| axes.iter().any(|axis| axis[slot] != axis[slot - 1]);
        let words = changes.par_iter_mut().enumerate();
        words.with_min_len(LEAST / WORD).run(|(word, bits)| {
            for slot in (word * WORD).max(1)..((word + 1) * WORD).min(len) {
                *bits |= u64::from(differ(slot)) << (slot % WORD);
            }
        });
        let farthest = sorted.map(|axis| {
            let largest = |axis: &[f32]| axis.iter().fold(0f32, |max, x| x.abs().max(max));
            let chunks = axis[..len].par_chunks(LEAST).map(largest);
            chunks.combined(|| 0.0, f32::max)
        });
        *self = Self {
            axes,
            changes,
            most,
            farthest,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Domain, Radius};

    #[test]
    fn changes_are_found_across_words() {
        let bounds = Bounds {
            min: [-40.0; 3],
            max: [40.0; 3],
        };
        let domain = Domain::new([Some(2.0), None, None]).unwrap();
        let lattice = Lattice::new(Radius::new(0.5).unwrap(), domain, 1, &bounds).unwrap();
        let boxes = |slot: usize| -> i32 { [0, 3, -2][(slot / 50 + slot / 67) % 3] };
        let at = |slot: usize| f64::from(2 * boxes(slot)) + 0.5;
        let len = 400;
        let x: Vec<f32> = (0..len).map(|slot| at(slot) as f32).collect();
        let y = vec![-7.0; len];
        let mut wraps = Wraps::default();
        let place = |slot: usize| [at(slot), -7.0, -7.0];
        wraps.count(len, &lattice, [&x, &y, &y], place).unwrap();
        assert_eq!(wraps.most(), [3, 0, 0]);
        assert_eq!(wraps.farthest(), [6.5, 7.0, 7.0]);
        for begin in 0..len {
            assert_eq!(wraps.of(begin), [boxes(begin), 0, 0]);
            for end in (begin + 1..len).step_by(7) {
                let same = (begin..end).find(|&slot| boxes(slot) != boxes(begin));
                let same = same.unwrap_or(end);
                let changes = (begin + 1..end)
                    .filter(|&k| boxes(k) != boxes(k - 1))
                    .count();
                assert_eq!(wraps.same_until(begin..end), same, "{begin}..{end}");
                assert_eq!(wraps.changes(begin..end), changes, "{begin}..{end}");
                let all = wraps.all_are(begin..end, [boxes(begin), 0, 0]);
                assert_eq!(all, same == end, "{begin}..{end}");
            }
        }
    }

    #[test]
    fn points_inside_have_no_counts() {
        let domain = Domain::new([Some(2.0); 3]).unwrap();
        let lattice = Lattice::new(Radius::new(0.5).unwrap(), domain, 1, &Bounds::EMPTY).unwrap();
        let mut wraps = Wraps::default();
        for x in [[0.5, 2.5], [0.5, 1.5]] {
            let place = |slot: usize| [f64::from(x[slot]); 3];
            wraps.count(2, &lattice, [&x; 3], place).unwrap();
            assert_eq!(wraps.is_empty(), x[1] < 2.0);
        }
        assert!(wraps.all_are(0..2, [0; 3]));
        assert_eq!(
            (wraps.of(1), wraps.same_until(0..2), wraps.changes(0..2)),
            ([0; 3], 2, 0)
        );
    }
}
