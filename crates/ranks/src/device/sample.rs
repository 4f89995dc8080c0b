//! A sample of a rank's points, by which space is divided.

use super::{
    engine::DeviceRankedEngine,
    places::Places,
    set::POSITION,
    staging::{download, zeros},
};
use crate::{cut::Work, domains::Domains, error::Refusal};
use nearfield::device::DeviceView;
use nearfield_grid::memory::{collected, with_room};

/// Maximum number of points in the sample of a rank. A cut is then wrong by about 1/500 of a rank's
/// points.
const SAMPLE: usize = 1 << 18;
/// The purpose of memory, for messages.
const SAMPLED: &str = "points by which space is divided";

/// Some points of a rank.
pub(super) struct Sample {
    /// Three numbers per point.
    numbers: Vec<f32>,
    /// Number of points that each stands for.
    each: f64,
}

impl Sample {
    /// The points, and the number of points that each stands for.
    pub(super) fn points(&self) -> impl Iterator<Item = ([f32; 3], f64)> {
        let points = self.numbers.as_chunks().0;
        points.iter().map(|at| (*at, self.each))
    }
}

impl DeviceRankedEngine {
    /// A sample of positions of this rank, spread over all of them.
    pub(super) fn sample(&self, positions: &DeviceView<'_, f32>) -> Result<Sample, Refusal> {
        let points = positions.len() / POSITION;
        let taken = points.min(SAMPLE);
        let mut sample = Sample {
            each: points as f64 / taken.max(1) as f64,
            numbers: Vec::new(),
        };
        if taken == points {
            sample.numbers = download(&self.engine, SAMPLED, positions)?;
            return Ok(sample);
        }
        // A constant step could hit the same column of a lattice each time.
        let first = |k: usize| (k as u128 * points as u128 / taken as u128) as usize;
        let any = |k: usize| {
            let mixed = (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let (first, end) = (first(k), first(k + 1));
            (first + ((mixed * (end - first) as u64) >> 32) as usize) as u32
        };
        let places = Places::of(&self.engine, &collected((0..taken).map(any), SAMPLED)?)?;
        let mut words = zeros(&self.engine, POSITION * taken)?;
        let kernels = &self.device.kernels;
        kernels.gather_whole(positions, POSITION, &places.view(), &mut words)?;
        let numbers = kernels.as_numbers(&words, POSITION * taken)?;
        sample.numbers = download(&self.engine, SAMPLED, &numbers)?;
        Ok(sample)
    }

    /// The work of the points of all sets, one unit each. `new` has a set and the new positions
    /// that it will get.
    pub(super) fn work_of_points(
        &self,
        domains: &Domains,
        new: (usize, &DeviceView<'_, f32>),
    ) -> Result<Work, Refusal> {
        self.engine.usable()?;
        let mut samples = with_room(self.device.sets.len(), SAMPLED)?;
        for (at, set) in self.device.sets.iter().enumerate() {
            samples.push(match new {
                (this, positions) if this == at => self.sample(positions)?,
                _ => self.sample(&set.view())?,
            });
        }
        let points = samples.iter().flat_map(Sample::points);
        Ok(Work::of_points(domains, points)?)
    }
}
