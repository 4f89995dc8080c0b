//! Counter-based random numbers, for kernels on the CPU and the GPU.
//!
//! A generator with a state gives other numbers when pairs come in another order. Here a number is
//! a function of its counter: the indices of the pair's points, the step, and the number of the
//! draw. So every backend, strategy and number of threads draws the same, and both points of a pair
//! draw the same, as the random force of dissipative particle dynamics must (P. Español, P. Warren,
//! Europhys. Lett. 30 (1995) 191, doi:10.1209/0295-5075/30/4/001).
//!
//! The function is Philox 4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, SC11 (2011),
//! doi:10.1145/2063384.2063405): ten rounds of two multiplications, which passes all tests of
//! BigCrush. It gives 128 bits at a time.
//!
//! **Invariant:** counters of points and of pairs never meet: the second word of a point's counter
//! is `u32::MAX`, which is never an index.

use crate::{mul_high, pair_fn};

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// Added to the key after every round: the fractions of the golden ratio and of the root of 3.
const STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Philox 4x32-10: 128 bits that look random, for a counter and a key.
#[pair_fn(crate = crate)]
#[inline(always)]
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut first, mut second] = key;
    for _ in 0..ROUNDS {
        let (high, low) = (mul_high(MULTIPLIERS[0], a), MULTIPLIERS[0].wrapping_mul(a));
        let (other_high, other_low) = (mul_high(MULTIPLIERS[1], c), MULTIPLIERS[1].wrapping_mul(c));
        a = other_high ^ b ^ first;
        b = other_low;
        c = high ^ d ^ second;
        d = low;
        first = first.wrapping_add(STEPS[0]);
        second = second.wrapping_add(STEPS[1]);
    }
    [a, b, c, d]
}

/// A number in [0, 1) from 32 random bits: a multiple of 2⁻²⁴.
#[pair_fn(crate = crate)]
#[inline(always)]
pub fn unit_interval(bits: u32) -> f32 {
    (bits >> 8) as f32 * 5.960_464_5e-8
}

/// A number of mean 0 and variance 1, even in (−√3, √3), from 32 random bits: what a random force
/// needs where only its first two moments matter (R. D. Groot, P. B. Warren, J. Chem. Phys. 107
/// (1997) 4423, doi:10.1063/1.474784).
#[pair_fn(crate = crate)]
#[inline(always)]
pub fn unit_variance(bits: u32) -> f32 {
    // The middles of 2²³ steps, so that no number is favoured over its negative.
    ((bits >> 9) as f32 + 0.5 - 4_194_304.0) * 4.129_531e-7
}

/// A normal number (mean 0, variance 1) from 64 random bits, by the transformation of Box and
/// Muller. The backends differ by units in the last place, as their `ln` and `cos` do.
#[pair_fn(crate = crate)]
#[inline(always)]
pub fn normal(radius: u32, angle: u32) -> f32 {
    // In (0, 1], so that the logarithm is finite.
    let radius = ((radius >> 8) as f32 + 1.0) * 5.960_464_5e-8;
    let angle = unit_interval(angle) * std::f32::consts::TAU;
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}

/// Random numbers of points and of pairs in a step, as a field of a kernel.
///
/// Kernels that read the indices of their points ([`Indices`](crate::Indices), or numbers of your
/// own that stay with the points) pass them on. A kernel that draws nothing pays nothing.
///
/// ```
/// use nearfield_pairs::{Pair, PairKernel, Random, pair_kernel, unit_variance};
///
/// /// The random force of dissipative particle dynamics.
/// struct RandomForce {
///     amplitude: f32, // σ/√Δt
///     radius: f32,
///     random: Random,
/// }
///
/// #[pair_kernel(crate = nearfield_pairs)] // elsewhere #[nearfield::pair_kernel]
/// impl PairKernel for RandomForce {
///     type Target = u32; // index
///     type Source = u32;
///     type Output = [f32; 3];
///
///     #[inline(always)]
///     fn pair(&self, pair: Pair, i: u32, j: u32) -> [f32; 3] {
///         let distance = pair.d2.sqrt().max(1e-6);
///         let weight = (1.0 - distance / self.radius).max(0.0);
///         let [bits, _, _, _] = self.random.of_pair(i, j, 0);
///         let force = self.amplitude * weight * unit_variance(bits) / distance;
///         pair.d.map(|d| -d * force)
///     }
/// }
///
/// let random = Random::new(2026, 1);
/// assert_eq!(random.of_pair(3, 8, 0), random.of_pair(8, 3, 0));
/// assert_ne!(random.of_pair(3, 8, 0), Random::new(2026, 2).of_pair(3, 8, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Random {
    seed: [u32; 2],
    step: u32,
}

impl Random {
    /// The numbers of a step. They come again after 2³² steps, so longer runs change the seed.
    pub fn new(seed: u64, step: u32) -> Self {
        Self {
            seed: [seed as u32, (seed >> 32) as u32],
            step,
        }
    }

    /// Four random numbers of point `index`; another `draw` gives four others.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    pub fn of_point(&self, index: u32, draw: u32) -> [u32; 4] {
        philox4x32([index, u32::MAX, self.step, draw], self.seed)
    }

    /// Four random numbers of the pair of points `i` and `j`, the same for `j` and `i`; another
    /// `draw` gives four others. All images of a pair have the same numbers, and so have pairs of
    /// the same indices in other sets: give those another `draw`.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    pub fn of_pair(&self, i: u32, j: u32, draw: u32) -> [u32; 4] {
        philox4x32([i.min(j), i.max(j), self.step, draw], self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the authors' library Random123, file `kat_vectors`.
    #[test]
    fn philox_gives_the_published_numbers() {
        let known = [
            (
                [0; 4],
                [0; 2],
                [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
            ),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ];
        for (counter, key, expected) in known {
            assert_eq!(philox4x32(counter, key), expected);
        }
    }

    #[test]
    fn a_pair_has_one_number_for_both_of_its_points() {
        let random = Random::new(0x0123_4567_89ab_cdef, 9);
        for (i, j) in [(0, 1), (7, 7), (5, 4_294_967_294)] {
            assert_eq!(random.of_pair(i, j, 2), random.of_pair(j, i, 2));
            assert_ne!(random.of_pair(i, j, 2), random.of_pair(i, j, 3));
            assert_ne!(random.of_pair(i, j, 2), random.of_point(i, 2));
        }
    }

    /// Mean, variance, skewness and kurtosis of a million numbers lie within five standard errors,
    /// and the ends are those that are promised.
    #[test]
    fn distributions_have_their_moments() {
        let ends = [0, u32::MAX].map(|bits| (unit_interval(bits), unit_variance(bits)));
        assert_eq!((ends[0].0, ends[1].0), (0.0, 1.0 - 0.5f32.powi(24)));
        assert_eq!(ends[0].1, -ends[1].1);
        assert!(ends[1].1 < 3f32.sqrt() && ends[1].1 > 1.732);
        assert!(normal(0, 0).is_finite() && normal(u32::MAX, 0) == 0.0);

        let random = Random::new(1, 0);
        let count = 1_000_000;
        let mut moments = [[0.0; 4]; 3];
        for index in 0..count {
            let [a, b, c, d] = random.of_point(index, 0);
            for (moments, x) in moments.iter_mut().zip([
                f64::from(unit_interval(a)) - 0.5,
                f64::from(unit_variance(b)),
                f64::from(normal(c, d)),
            ]) {
                for (power, moment) in (1..).zip(moments) {
                    *moment += x.powi(power) / f64::from(count);
                }
            }
        }
        let error = 5.0 / f64::from(count).sqrt();
        let expected = [
            [0.0, 1.0 / 12.0, 0.0, 1.0 / 80.0],
            [0.0, 1.0, 0.0, 9.0 / 5.0],
            [0.0, 1.0, 0.0, 3.0],
        ];
        // Deviations of the powers: of x⁴ of a normal number it is √96.
        let deviation = [
            [0.29, 0.075, 0.048, 0.02],
            [1.0, 0.9, 2.0, 2.4],
            [1.0, 1.5, 3.9, 9.8],
        ];
        for ((found, expected), deviation) in moments.iter().zip(expected).zip(deviation) {
            for k in 0..4 {
                let off = (found[k] - expected[k]).abs();
                assert!(
                    off < error * deviation[k],
                    "moment {k}: {found:?} for {expected:?}"
                );
            }
        }
    }
}
