//! The rule by which the leading edge of a fluid is found.
//!
//! A fixed share of the fluid lies ahead of the front. A thin tongue runs ahead
//! of collapsing water, and particles show as much of it as is thicker than they are: a rule that
//! asks for some number of particles, such as the foremost one that has neighbours, finds another
//! place of the same flow at every spacing, further ahead the finer it is. A volume is the same at
//! every spacing, and drops do not count as long as they hold less than the share.
//!
//! Particles are counted in bins along x, in integers, so that the front does not depend on their
//! order; in the bin that holds the front they count as spread evenly.

use crate::constants::FRONT_BINS;
use glam::Vec3;
use nearfield_grid::memory::filled;

use crate::Error;

/// A definition of the front of a fluid; see [`Simulation::front`](crate::Simulation::front).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontRule {
    /// Share of the fluid that lies ahead of the front, between 0 and 1.
    pub share: f64,
    /// Fluid is told apart from `low` to `high` only, metres along x, in 4,096 bins; what lies
    /// beyond counts as in the first or the last of them.
    pub low: f32,
    /// The other end.
    pub high: f32,
}

impl FrontRule {
    /// Bins per metre.
    pub(crate) fn scale(&self) -> f32 {
        FRONT_BINS as f32 / (self.high - self.low)
    }

    /// The bin of a particle at `x`. A NaN is in the first.
    fn bin(&self, x: f32) -> usize {
        let last = (FRONT_BINS - 1) as f32;
        ((x - self.low) * self.scale()).max(0.0).min(last) as usize
    }

    /// The front of particles at these positions, metres along x; `None` without any.
    ///
    /// # Errors
    /// When there is no memory for the bins.
    pub fn front(&self, positions: &[Vec3]) -> Result<Option<f32>, Error> {
        Ok(self.front_of(&self.counts(positions)?))
    }

    /// Particles at these positions by bin.
    pub(crate) fn counts(&self, positions: &[Vec3]) -> Result<Vec<u64>, Error> {
        let mut counts = filled(FRONT_BINS as usize, 0u64, "bins of the front")?;
        for position in positions {
            counts[self.bin(position.x)] += 1;
        }
        Ok(counts)
    }

    /// The front of particles counted by bin.
    pub(crate) fn front_of(&self, counts: &[u64]) -> Option<f32> {
        let all: f64 = counts.iter().map(|&count| count as f64).sum();
        let ahead = self.share * all;
        let width = 1.0 / f64::from(self.scale());
        let mut passed = 0.0;
        for (bin, &count) in counts.iter().enumerate().rev() {
            let count = count as f64;
            if count > 0.0 && passed + count >= ahead {
                let into = (ahead - passed) / count;
                return Some((f64::from(self.low) + width * ((bin + 1) as f64 - into)) as f32);
            }
            passed += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FrontRule = FrontRule {
        share: 0.01,
        low: 0.0,
        high: 4.0,
    };

    /// A row of `count` particles from 0 to `length`.
    fn row(count: u32, length: f32) -> impl Iterator<Item = Vec3> {
        let place = move |i| (i as f32 + 0.5) * length / count as f32;
        (0..count).map(move |i| Vec3::X * place(i))
    }

    #[test]
    fn the_front_is_the_same_at_every_spacing() {
        for count in [300, 1000, 30_000] {
            let positions: Vec<Vec3> = row(count, 2.0).collect();
            let front = RULE.front(&positions).unwrap().unwrap();
            assert!((front - 1.98).abs() < 4e-3, "{count}: {front}");
        }
    }

    #[test]
    fn drops_ahead_do_not_count_and_their_order_neither() {
        let drops = (0..5).map(|i| Vec3::X * (3.0 + 0.1 * i as f32));
        let mut positions: Vec<Vec3> = row(1000, 2.0).chain(drops).collect();
        let front = RULE.front(&positions).unwrap();
        assert!((1.985..1.995).contains(&front.unwrap()), "{front:?}");
        positions.reverse();
        assert_eq!(RULE.front(&positions).unwrap(), front);
    }

    #[test]
    fn fluid_beyond_the_ends_counts_at_the_ends() {
        let positions = [-7.0, 9.0, f32::INFINITY].map(|x| Vec3::X * x);
        let front = RULE.front(&positions).unwrap().unwrap();
        assert!((3.999..=4.0).contains(&front), "{front}");
        assert_eq!(RULE.front(&[]).unwrap(), None);
    }
}
