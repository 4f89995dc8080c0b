//! The report of an engine's GPU: settings in use, memory, trials and faults.
//!
//! It shows the decisions that a GPU's backend makes by itself: the strategy and the cells that
//! `auto` has settled on, jobs that went to the CPU backend, and why. A report is a copy, so it can
//! be kept and compared with a later one. Counters begin when the GPU is started and are never
//! reset.

use nearfield_balance::{Strategy, Trial};

/// The GPU of an engine, as of its last job. A report that is asked for while a job uses the GPU is
/// that of the job before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GpuReport {
    /// As its maker calls it.
    pub name: String,
    /// How cells and targets are mapped to threads.
    pub strategy: Strategy,
    /// Cells to a radius.
    pub subdivision: u32,
    /// Bytes held on the device: points, lists, scratch of kernels and fields. Other programs, and
    /// other engines, hold more.
    pub bytes: usize,
    /// With the strategy `auto`: what has been tried, how long it took, and what is chosen.
    pub trials: Vec<Trial>,
    /// Jobs that the CPU backend did because another job of the engine was using the GPU, and their
    /// thread, a worker of a rayon pool, must not wait for it.
    pub busy: u64,
    /// Why the CPU backend does the work instead, after the GPU failed. After a fault that may
    /// pass, such as too little memory, the GPU is tried again later.
    pub failed: Option<String>,
    /// How often it has failed.
    pub faults: u32,
    /// Text of its last fault, if any.
    pub last_fault: Option<String>,
    /// Why the cache of compiled kernels is not used: other users could have put code there. None
    /// where it is used, or where there is none.
    pub cache_refused: Option<String>,
}
