//! What an engine did last: where it ran and why, how long each stage took, what it holds.

use crate::{Device, SimdLevel, TableKind};
use std::time::Duration;

/// Summary of the last update, search and traversal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Device asked for.
    pub requested: Device,
    /// Device that ran.
    pub device: Device,
    /// Why that one.
    pub reason: &'static str,
    /// Worker threads of the CPU lane.
    pub threads: usize,
    /// Instruction set of the CPU lane's inner loops.
    pub simd: SimdLevel,
    /// Every point set in the order added.
    pub sets: Vec<SetReport>,
    /// Times of the last run of each stage.
    pub times: StageTimes,
    /// Directed pairs in all current lists.
    pub pairs: u64,
    /// Bytes of all lists, room kept for the next search included.
    pub list_bytes: usize,
}

/// One point set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SetReport {
    /// Number of points.
    pub points: usize,
    /// Cells its table covers.
    pub cells: usize,
    /// How cells are looked up.
    pub table: TableKind,
    /// Bytes of the sorted points, the table and the scratch for the next update.
    pub bytes: usize,
}

/// Wall-clock times of the last run of each stage.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StageTimes {
    /// Checking and sorting the positions of the last update.
    pub build: Duration,
    /// Writing all lists.
    pub search: Duration,
    /// The last traversal.
    pub traverse: Duration,
}
