//! The load of a backend: work by class of occupancy, and bytes.
//!
//! Time per pair depends on how full a brick is, much more on a GPU than on a CPU, so work is kept
//! by class: octaves of occupancy. Sixteen classes reach to bricks of 32,768 points, and are few
//! enough to be fitted.
//!
//! # Saturation
//!
//! Work is a product of counts and may exceed 64 bits for absurd input. Sums saturate instead of
//! wrapping, so the order of loads stays right and no test of an engine panics in a debug build.
//!
//! **Invariant:** the load of a union of disjoint parts is the sum of their loads.

use super::bricks::Brick;
use std::ops::AddAssign;

/// Classes of occupancy: octaves, the last one open.
pub const CLASSES: usize = 16;

/// The class of a brick that holds `targets` points: 1, 2–3, 4–7, …
///
/// Octaves, because the time per pair of a GPU falls with the logarithm of the occupancy rather
/// than with the occupancy.
pub fn class_of(targets: u32) -> usize {
    (targets.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// The load of a backend in a subregion, or in all.
///
/// Loads are added and never subtracted; differences are taken of the sums along a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Bricks that hold targets.
    pub bricks: u32,
    /// Targets in them.
    pub targets: u64,
    /// Pairs to test, by [class](class_of) of the brick's occupancy.
    pub by_class: [u64; CLASSES],
}

impl Load {
    /// Pairs to test.
    ///
    /// The sum over all classes.
    pub fn work(&self) -> u64 {
        self.by_class.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns true if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.bricks == 0
    }

    /// Adds the load of a brick.
    pub(crate) fn add(&mut self, brick: &Brick) {
        self.bricks += 1;
        self.targets += u64::from(brick.targets);
        let class = &mut self.by_class[class_of(brick.targets)];
        *class = class.saturating_add(brick.work);
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.bricks += other.bricks;
        self.targets += other.targets;
        for (mine, others) in self.by_class.iter_mut().zip(other.by_class) {
            *mine = mine.saturating_add(others);
        }
    }
}

/// Bytes of points on the way to the GPU and of results on the way back.
///
/// Bytes are real numbers, because entries of lists are estimated from pairs tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Sent per source: position and attributes.
    pub upload_per_source: f64,
    /// Sent per target besides; 0 where targets are among the sources.
    pub upload_per_target: f64,
    /// Fetched per target: sums, or start and count of a list.
    pub download_per_target: f64,
    /// Fetched per pair tested: the entries of lists, times the share of tests that hit.
    pub download_per_pair: f64,
}

impl Traffic {
    /// A sum per target: 16 bytes to the GPU (position and mass), 4 back.
    pub const SUMS: Self = Self {
        upload_per_source: 16.0,
        upload_per_target: 0.0,
        download_per_target: 4.0,
        download_per_pair: 0.0,
    };

    /// Neighbour lists: 12 bytes to the GPU, start, count and entries back. Of the pairs that
    /// uniform cells of edge r test, 4π/81 are neighbours.
    pub const LISTS: Self = Self {
        upload_per_source: 12.0,
        upload_per_target: 0.0,
        download_per_target: 12.0,
        download_per_pair: 4.0 * 4.0 * std::f64::consts::PI / 81.0,
    };

    /// Nothing crosses: the data are on the device.
    pub const NONE: Self = Self {
        upload_per_source: 0.0,
        upload_per_target: 0.0,
        download_per_target: 0.0,
        download_per_pair: 0.0,
    };

    /// Returns true if bricks cross to the GPU without a byte.
    pub(crate) fn sends_nothing(&self) -> bool {
        self.upload_per_source == 0.0 && self.upload_per_target == 0.0
    }

    /// Bytes sent for a brick.
    pub(crate) fn upload(&self, brick: &Brick) -> f64 {
        f64::from(brick.sources) * self.upload_per_source
            + f64::from(brick.targets) * self.upload_per_target
    }

    /// Bytes fetched for the results of the GPU.
    pub(crate) fn download(&self, targets: u64, work: u64) -> f64 {
        targets as f64 * self.download_per_target + work as f64 * self.download_per_pair
    }
}
