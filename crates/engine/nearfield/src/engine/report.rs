//! The report of an engine: where it ran and why, how long each stage took, how much it holds.
//!
//! A report is a copy of what the engine knows and costs no pass over points. Times are those of
//! the last run of each stage; a program that wants sums adds them up itself, or records a trace.
//!
//! **Invariant:** no memory is counted twice among the parts of a [`MemoryReport`], and none of it
//! is memory of the device, which [`GpuReport`] has.

use crate::{
    Device, Precision,
    report::{GpuReport, JobReport, SimdLevel, TableKind},
};
use std::time::Duration;

/// Summary of the last update, search and traversal; made by
/// [`Engine::report`](crate::Engine::report).
///
/// [`device`](Self::device) and [`reason`](Self::reason) are about the engine as a whole;
/// [`jobs`](Self::jobs) has both for every job, which is where to look if one of them runs
/// elsewhere than expected.
///
/// It does not follow the engine: ask for a new one after the next step.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Device asked for.
    pub requested: Device,
    /// Device that did the last job; before the first one, the device that will.
    pub device: Device,
    /// Why the engine works there.
    ///
    /// For [`Device::Auto`] that is why there is a GPU or none; otherwise that it was asked for.
    /// Reasons of single jobs are in [`jobs`](Self::jobs).
    pub reason: String,
    /// The GPU, in an engine that was asked to use one.
    pub gpu: Option<GpuReport>,
    /// Every job as it was done last: where, why there, and how two backends shared it.
    ///
    /// One entry per kind of job and pair of sets. Those of removed sets stay, as they were done.
    pub jobs: Vec<JobReport>,
    /// Worker threads of the CPU backend.
    pub threads: usize,
    /// Instruction set of the CPU backend's inner loops.
    pub simd: SimdLevel,
    /// Precision in which positions are taken and pairs are decided.
    pub precision: Precision,
    /// Every point set in the order added.
    pub sets: Vec<SetReport>,
    /// Times of the last run of each stage.
    pub times: StageTimes,
    /// Directed pairs in all current lists.
    ///
    /// Half lists count a pair once, full lists of one set twice.
    pub pairs: u64,
    /// Bytes of all lists, room kept for the next search included.
    pub list_bytes: usize,
    /// Bytes of everything, by structure.
    pub memory: MemoryReport,
}

impl Report {
    /// Points of all sets.
    pub fn points(&self) -> usize {
        self.sets.iter().map(|set| set.points).sum()
    }

    /// Bytes held per point, the entries of lists left out; 0 without points.
    ///
    /// Start and count of lists are among them: 12 bytes per target and pair of sets.
    pub fn bytes_per_point(&self) -> f64 {
        let beside_entries = self.memory.total() - self.memory.list_entries;
        beside_entries as f64 / self.points().max(1) as f64
    }
}

/// Bytes an engine holds by structure, room kept for the next step included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Coordinates (in `f64` engines of both precisions), indices and image counts of the sorted
    /// points.
    pub sorted_points: usize,
    /// Cell tables.
    pub tables: usize,
    /// Scratch for sorting at the next update.
    pub sort_scratch: usize,
    /// Sorted place of every point, kept once [`Engine::for_each_neighbor`] has been called.
    ///
    /// [`Engine::for_each_neighbor`]: crate::Engine::for_each_neighbor
    pub places: usize,
    /// Radii of single points, in the caller's order and sorted.
    pub radii: usize,
    /// Types, exclusions and chosen targets.
    pub filters: usize,
    /// Positions in the caller's order, kept by [`VerletLists`](crate::lists::VerletLists) and by
    /// engines that work on a GPU.
    pub positions: usize,
    /// What queries keep: copies of sets on wider cells, which [`SetReport::bytes`] has too, and
    /// the pairs of the last point that was visited on a GPU.
    pub queries: usize,
    /// Scratch of the CPU backend's workers: candidates and their fields.
    pub backend_scratch: usize,
    /// Entries of lists.
    pub list_entries: usize,
    /// Start and count of every list.
    pub list_bookkeeping: usize,
}

impl MemoryReport {
    /// All structures together.
    pub fn total(&self) -> usize {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Every structure by name, as the fields are called.
    ///
    /// The order is that of the fields, and does not change from call to call.
    pub fn parts(&self) -> [(&'static str, usize); 11] {
        let Self {
            sorted_points,
            tables,
            sort_scratch,
            places,
            radii,
            filters,
            positions,
            queries,
            backend_scratch,
            list_entries,
            list_bookkeeping,
        } = *self;
        [
            ("sorted_points", sorted_points),
            ("tables", tables),
            ("sort_scratch", sort_scratch),
            ("places", places),
            ("radii", radii),
            ("filters", filters),
            ("positions", positions),
            ("queries", queries),
            ("backend_scratch", backend_scratch),
            ("list_entries", list_entries),
            ("list_bookkeeping", list_bookkeeping),
        ]
    }
}

/// One point set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SetReport {
    /// Number of points.
    pub points: usize,
    /// Cells its table covers; 0 while only a GPU has sorted the set.
    pub cells: usize,
    /// How cells are looked up.
    pub table: TableKind,
    /// Bytes of the sorted points, their places and radii, the table and the scratch for the next
    /// update.
    pub bytes: usize,
}

/// Wall-clock times of the last run of each stage.
///
/// A stage that has not run yet has the time 0. Times are those of the calling thread, waiting for
/// workers and devices included.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StageTimes {
    /// Checking and sorting the positions of the last update.
    ///
    /// Where a device sorts, this is copying and checking only; sorting is then part of the first
    /// job that needs it.
    pub build: Duration,
    /// Writing all lists.
    ///
    /// Nearly 0 when all lists were current.
    pub search: Duration,
    /// The last traversal.
    ///
    /// Counts of neighbours are recorded here too.
    pub traverse: Duration,
}
