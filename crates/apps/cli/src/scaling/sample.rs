//! Results of a series: timings at each number of points, and the cases that were skipped.

use crate::bench::{Times, Work};
use serde::Serialize;

/// One work at one number of points.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    pub(super) points: usize,
    pub(super) work: Work,
    pub(super) radius: f32,
    /// The device that ran it in the end.
    pub(super) device: String,
    pub(super) milliseconds: Times,
    /// Of the total.
    pub(super) nanoseconds_per_point: f64,
    /// Memory that the engine holds, without the entries of lists.
    pub(super) bytes_per_point: f64,
    pub(super) pairs: u64,
}

/// Work that was left out because it would not have fit in memory.
#[derive(Debug, Serialize)]
pub(super) struct SkippedWork {
    pub(super) points: usize,
    pub(super) work: Work,
    pub(super) bytes_needed: u64,
    pub(super) bytes_allowed: u64,
}
