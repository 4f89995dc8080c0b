//! The report of a sum over all pairs: where it ran, why there, and how long it took.
//!
//! It is of one sum, the last: a program that wants totals adds up [`pairs`](AllPairsReport::pairs)
//! and [`time`](AllPairsReport::time) itself.

use crate::{Device, report::SimdLevel};
use std::time::Duration;

/// Where the last sum over all pairs ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AllPairsReport {
    /// Device asked for.
    pub requested: Device,
    /// Device that ran.
    pub device: Device,
    /// Why that one.
    pub reason: String,
    /// The GPU's name, where there is one to run on.
    pub gpu: Option<String>,
    /// Why the CPU backend does the work instead, after the GPU failed.
    pub failed: Option<String>,
    /// Worker threads of the CPU backend.
    pub threads: usize,
    /// Instruction set of the CPU backend.
    pub simd: SimdLevel,
    /// Pairs of the last sum: targets times sources, those of a point with itself included.
    pub pairs: u64,
    /// Part of its targets that the CPU backend had, 0 to 1.
    ///
    /// 1 if the GPU failed and the CPU backend did its part too.
    pub cpu_share: f64,
    /// How long it took, transfers included.
    pub time: Duration,
}
