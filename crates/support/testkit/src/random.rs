//! A seeded stream of random numbers that is the same on every platform.
//!
//! The bits come from xoshiro256++ (Blackman and Vigna 2021,
//! DOI 10.1145/3460772), whose values the crate `rand_xoshiro` keeps fixed.
//! They become floats by the explicit mappings below, and logarithms come
//! from a portable library instead of the system's, so no cloud depends on
//! which machine drew it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded source of uniform, normal and exponential numbers.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, 1): a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * STEP
    }

    /// Uniform in [low, high), up to the rounding of the bounds.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number in [0, bound), and 0 when `bound` is 0. Taken as the
    /// high half of a product, so the bias is below bound · 2⁻⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Standard normal, by the polar method (Marsaglia and Bray 1964,
    /// DOI 10.1137/1006063).
    pub fn normal(&mut self) -> f64 {
        loop {
            let [a, b] = [self.between(-1.0, 1.0), self.between(-1.0, 1.0)];
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                return a * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// A direction uniform on the unit sphere (Marsaglia 1972,
    /// DOI 10.1214/aoms/1177692644).
    pub fn direction(&mut self) -> [f64; 3] {
        loop {
            let [a, b] = [self.between(-1.0, 1.0), self.between(-1.0, 1.0)];
            let square = a * a + b * b;
            if square < 1.0 {
                let root = 2.0 * (1.0 - square).sqrt();
                return [a * root, b * root, 1.0 - 2.0 * square];
            }
        }
    }

    /// Puts `items` into a uniformly random order (Durstenfeld 1964,
    /// DOI 10.1145/364520.364540).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draws: usize, mut draw: impl FnMut() -> f64) -> f64 {
        (0..draws).map(|_| draw()).sum::<f64>() / draws as f64
    }

    // Expected values from an independent implementation of xoshiro256++ seeded
    // by SplitMix64.
    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1_000_000)).collect();
        assert_eq!(drawn, [811_612, 747_104, 100_150, 746_216]);
    }

    #[test]
    fn the_moments_are_those_of_the_distributions() {
        let mut random = Random::new(7);
        assert!((mean(20_000, || random.unit()) - 0.5).abs() < 0.01);
        assert!(mean(20_000, || random.normal()).abs() < 0.03);
        assert!((mean(20_000, || random.normal().powi(2)) - 1.0).abs() < 0.05);
        assert!((mean(20_000, || random.exponential()) - 1.0).abs() < 0.03);
        assert!(mean(20_000, || random.direction()[2]).abs() < 0.02);
        assert!((mean(20_000, || random.direction()[0].powi(2)) - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn numbers_below_a_bound_reach_every_value_and_none_beyond() {
        let mut random = Random::new(3);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|&count| count > 150), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_moves_most() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        let in_place = items
            .iter()
            .enumerate()
            .filter(|&(at, &item)| at as u32 == item)
            .count();
        assert!(in_place < 10, "{in_place} stayed");
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
