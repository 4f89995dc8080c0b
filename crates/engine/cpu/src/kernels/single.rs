//! A target and its candidates in single precision, and the vectors of candidates that are worth
//! the kernel.
//!
//! The candidates of a group surround all of its targets, so for one target many are beyond the
//! radius, often all of a vector: a quarter of the vectors of sixteen candidates of a dam break. A
//! first loop over the distances marks the vectors that hold a neighbour, by a bit of a word, and
//! the kernel is evaluated for these. Neither loop has a branch per vector, which could not be
//! predicted.
//!
//! **Invariant:** a vector that is left out holds no neighbour, so its contributions would all be
//! the identity, and sums have the same bits as if it were not left out.

use crate::{
    candidates::{
        arrays::{Candidates, PairArrays},
        gather::{splat, squared as squared_lanes},
        mode::{EXACT, Mode, RADII, SHIFTED, carries},
    },
    contract::squared,
    simd::{LANES, vector::Compress},
};
use nearfield_pairs::Pair;
use std::marker::PhantomData;

/// A target and its candidates in single precision.
///
/// Arrays are pointers, made once per target: slices of all arrays would be checked each time.
pub(super) struct Single<'a> {
    /// Position of the target.
    target: [f32; 3],
    /// Its squared radius; for [`RADII`] the larger of this and the candidate's own counts.
    r2: f32,
    /// The arrays of the candidates, which they borrow.
    of: PairArrays,
    /// The candidates.
    candidates: PhantomData<&'a Candidates>,
}

impl<'a> Single<'a> {
    /// The target at `target` with the squared radius `r2`.
    #[inline(always)]
    pub(super) fn new(target: [f32; 3], r2: f32, candidates: &'a Candidates) -> Self {
        Self {
            target,
            r2,
            of: candidates.of_pairs(),
            candidates: PhantomData,
        }
    }

    /// Geometry of the pair with candidate `k`, and whether it is within the radius. Nothing is
    /// checked: that would stop the vectoriser.
    ///
    /// # Safety
    /// `k` is below the number of candidates rounded up to whole blocks, and `mode` says what
    /// candidates carry.
    #[inline(always)]
    pub(super) unsafe fn pair<const MODE: Mode>(&self, mode: Mode, k: usize) -> (Pair, bool) {
        let ([x, y, z], [sx, sy, sz]) = (self.of.position, self.of.shift);
        // SAFETY: guaranteed by the caller; arrays are padded by a block.
        unsafe {
            let mut d = [
                *x.add(k) - self.target[0],
                *y.add(k) - self.target[1],
                *z.add(k) - self.target[2],
            ];
            if carries::<MODE>(mode, SHIFTED) {
                d[0] += *sx.add(k);
                d[1] += *sy.add(k);
                d[2] += *sz.add(k);
            }
            let d2 = squared(d);
            let r2 = if carries::<MODE>(mode, RADII) {
                self.r2.max(*self.of.r2.add(k))
            } else {
                self.r2
            };
            (Pair { d, d2 }, d2 <= r2)
        }
    }

    /// The vectors of candidates from `first` to `end` that hold a candidate within the radius: a
    /// bit for each, the lowest for the first. In double precision all blocks.
    ///
    /// # Safety
    /// The processor has the vector's level, `first` is a multiple of its lanes, there are at most
    /// [`VECTORS`] vectors, and `mode` is the candidates' mode.
    #[inline(always)]
    pub(super) unsafe fn near_vectors<V: Compress, const MODE: Mode>(
        &self,
        mode: Mode,
        first: usize,
        end: usize,
    ) -> u64 {
        if carries::<MODE>(mode, EXACT) {
            return all_blocks(first, end);
        }
        let mut near = 0;
        // SAFETY: guaranteed by the caller; the arrays of the candidates are padded by a vector.
        unsafe {
            let (target, own_r2) = (splat::<V>(self.target), V::splat(self.r2));
            let (mut k, mut number) = (first, 0);
            while k < end {
                let mut d = target;
                for axis in 0..3 {
                    d[axis] = V::load(self.of.position[axis].add(k)).sub(target[axis]);
                    if carries::<MODE>(mode, SHIFTED) {
                        d[axis] = d[axis].add(V::load(self.of.shift[axis].add(k)));
                    }
                }
                let mut r2 = own_r2;
                if carries::<MODE>(mode, RADII) {
                    r2 = r2.max(V::load(self.of.r2.add(k)));
                }
                near |= u64::from(squared_lanes(d).le(r2) != 0) << number;
                (k, number) = (k + V::LANES, number + 1);
            }
        }
        near
    }
}

/// Vectors that are looked at before any of them is evaluated: the bits of a word.
pub(super) const VECTORS: usize = u64::BITS as usize;

/// As many bits as there are blocks of [`LANES`] candidates from `first` to `end`, at most
/// [`VECTORS`], and one at least.
#[inline(always)]
fn all_blocks(first: usize, end: usize) -> u64 {
    u64::MAX >> (VECTORS - (end - first).div_ceil(LANES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Simd, Task, level::SimdLevel, vector::Vector, with_level};

    /// Candidates that are hardly ever within the radius, at its border too, with image vectors and
    /// radii of their own.
    fn candidates(len: usize) -> Candidates {
        let mut candidates = Candidates::default();
        candidates.clear(true, len).unwrap();
        let to = candidates.arrays_mut();
        for k in 0..len {
            // On the radius exactly, a unit in the last place beyond it, far away, not a number.
            let x = match k * 7919 % 23 {
                0 => 1.0,
                1 => 1.0f32.next_up(),
                2 => 0.0,
                3 => f32::NAN,
                _ => 3.0,
            };
            // SAFETY: there is room for `len` candidates.
            unsafe {
                to.position[0].add(k).write(x);
                to.position[1].add(k).write(0.0);
                to.position[2].add(k).write(0.0);
                for axis in 0..3 {
                    let shift = if k % 29 == 5 { -x } else { 0.0 };
                    to.shift[axis].add(k).write(shift * f32::from(axis == 0));
                }
                to.r2.add(k).write(if k % 31 == 7 { 9.0 } else { 0.5 });
            }
        }
        // SAFETY: `len` candidates were written just now.
        unsafe { candidates.set_len(len) };
        candidates.seal(RADII);
        candidates
    }

    /// Compares the vectors that are found with the pairs, one by one.
    struct Check<'a, const MODE: Mode>(&'a Candidates);

    impl<const MODE: Mode> Task for Check<'_, MODE> {
        #[inline(always)]
        unsafe fn run<S: Simd>(self) {
            let (width, len) = (S::Single::LANES, self.0.len());
            let single = Single::new([0.0; 3], 1.0, self.0);
            for first in (0..len + LANES).step_by(width) {
                let end = len.min(first + VECTORS * width);
                // SAFETY: the caller guarantees the level; candidates carry all arrays, padded.
                let found = unsafe { single.near_vectors::<S::Single, MODE>(MODE, first, end) };
                let mut expected = 0;
                for (number, k) in (first..end).step_by(width).enumerate() {
                    // SAFETY: arrays are padded by a vector.
                    let near = (k..k + width).any(|k| unsafe { single.pair::<MODE>(MODE, k).1 });
                    expected |= u64::from(near) << number;
                }
                assert_eq!(found, expected, "{len} from {first} by {width}");
            }
        }
    }

    #[test]
    fn vectors_are_left_out_only_if_none_of_their_candidates_is_a_neighbour() {
        for len in [0, 1, 15, 16, 17, 100, 333] {
            let candidates = candidates(len);
            for &level in SimdLevel::available() {
                with_level(level, Check::<0>(&candidates));
                with_level(level, Check::<SHIFTED>(&candidates));
                with_level(level, Check::<RADII>(&candidates));
                with_level(level, Check::<{ SHIFTED | RADII }>(&candidates));
            }
        }
    }

    #[test]
    fn blocks_are_all_there() {
        assert_eq!(all_blocks(LANES, LANES + 1), 1);
        assert_eq!(all_blocks(LANES, 3 * LANES + 1), 0b111);
        assert_eq!(all_blocks(0, VECTORS * LANES), u64::MAX);
    }
}
