//! A target and its candidates in single precision, and the vectors of candidates that are worth
//! the kernel.
//!
//! The candidates of a group surround all of its targets, so for one target many are beyond the
//! radius, often all of a vector: a quarter of the vectors of sixteen candidates of a dam break. A
//! first loop over the distances notes the vectors that hold a neighbour, and the kernel is
//! evaluated for these. Neither loop has a branch per vector, which could not be predicted.
//!
//! **Invariant:** a vector that is left out holds no neighbour, so its contributions would all be
//! the identity, and sums have the same bits as if it were not left out.

use crate::{
    candidates::{
        arrays::{Candidates, PairArrays},
        gather::{splat, squared as squared_lanes},
        mode::{Mode, RADII, SHIFTED, has},
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
    /// `k` is below the number of candidates rounded up to whole blocks, and `MODE` says what
    /// candidates carry.
    #[inline(always)]
    pub(super) unsafe fn pair<const MODE: Mode>(&self, k: usize) -> (Pair, bool) {
        let ([x, y, z], [sx, sy, sz]) = (self.of.position, self.of.shift);
        // SAFETY: guaranteed by the caller; arrays are padded by a block.
        unsafe {
            let mut d = [
                *x.add(k) - self.target[0],
                *y.add(k) - self.target[1],
                *z.add(k) - self.target[2],
            ];
            if has(MODE, SHIFTED) {
                d[0] += *sx.add(k);
                d[1] += *sy.add(k);
                d[2] += *sz.add(k);
            }
            let d2 = squared(d);
            let r2 = if has(MODE, RADII) {
                self.r2.max(*self.of.r2.add(k))
            } else {
                self.r2
            };
            (Pair { d, d2 }, d2 <= r2)
        }
    }

    /// Writes the number of the first candidate of every vector from `first` on that holds a
    /// candidate within the radius, in ascending order; returns how many they are.
    ///
    /// # Safety
    /// The processor has the vector's level, `first` is a multiple of its lanes, `MODE` says what
    /// candidates carry, and `to` has room for a number per vector and one more.
    #[inline(always)]
    pub(super) unsafe fn near_vectors<V: Compress, const MODE: Mode>(
        &self,
        first: usize,
        len: usize,
        to: *mut u32,
    ) -> usize {
        let mut count = 0;
        // SAFETY: guaranteed by the caller; the arrays of the candidates are padded by a vector.
        unsafe {
            let (target, own_r2) = (splat::<V>(self.target), V::splat(self.r2));
            let mut k = first;
            while k < len {
                let mut d = target;
                for axis in 0..3 {
                    d[axis] = V::load(self.of.position[axis].add(k)).sub(target[axis]);
                    if has(MODE, SHIFTED) {
                        d[axis] = d[axis].add(V::load(self.of.shift[axis].add(k)));
                    }
                }
                let mut r2 = own_r2;
                if has(MODE, RADII) {
                    r2 = r2.max(V::load(self.of.r2.add(k)));
                }
                to.add(count).write(k as u32);
                count += usize::from(squared_lanes(d).le(r2) != 0);
                k += V::LANES;
            }
        }
        count
    }
}

/// Writes the numbers of all blocks of [`LANES`] candidates from `first` to `len`; returns how many
/// they are.
///
/// # Safety
/// `to` has room for a number per block.
#[inline(always)]
pub(super) unsafe fn all_blocks(first: usize, len: usize, to: *mut u32) -> usize {
    let mut count = 0;
    let mut k = first;
    while k < len {
        // SAFETY: guaranteed by the caller.
        unsafe { to.add(count).write(k as u32) };
        count += 1;
        k += LANES;
    }
    count
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
                let mut found = vec![u32::MAX; len + LANES];
                // SAFETY: the caller guarantees the level; candidates carry all arrays, padded, and
                // there is room.
                let count = unsafe {
                    let to = found.as_mut_ptr();
                    single.near_vectors::<S::Single, MODE>(first, len, to)
                };
                let starts = (first..len).step_by(width);
                let expected: Vec<u32> = starts
                    // SAFETY: arrays are padded by a vector.
                    .filter(|&k| (k..k + width).any(|k| unsafe { single.pair::<MODE>(k).1 }))
                    .map(|k| k as u32)
                    .collect();
                assert_eq!(found[..count], expected, "{len} from {first} by {width}");
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
        let mut found = [u32::MAX; 4];
        // SAFETY: there is room for four blocks.
        let count = unsafe { all_blocks(LANES, 3 * LANES + 1, found.as_mut_ptr()) };
        let lanes = LANES as u32;
        assert_eq!(found[..count], [lanes, 2 * lanes, 3 * lanes]);
    }
}
