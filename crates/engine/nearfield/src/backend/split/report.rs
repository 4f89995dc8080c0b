//! Reports of jobs: where each ran last and why, and how two backends shared it.
//!
//! A job of an engine that does not share its jobs has no [`SplitReport`]. Numbers are those of the
//! last step, but for the policy, the threshold and the reason, which are those of the step to
//! come.

use crate::Device;
use nearfield_balance::Policy;

/// A job, as it was done last.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobReport {
    /// `lists`, `counts`, the type of a pair kernel, or the call of a job that only the CPU does.
    pub job: String,
    /// Number of the target set.
    pub targets: usize,
    /// Number of the source set.
    pub sources: usize,
    /// The device that did it: [`Device::Cpu`] where the CPU backend did it instead of another one.
    pub device: Device,
    /// Why that one, such as a feature that a GPU lacks, or a fault.
    pub reason: String,
    /// How it is divided, where two backends share it.
    pub split: Option<SplitReport>,
}

/// How two backends shared the last step of a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SplitReport {
    /// Policy that decides the threshold.
    pub policy: Policy,
    /// Steps done.
    pub steps: u64,
    /// Occupancy threshold of the next step, the mean over subregions weighted by work: bricks with
    /// no more points go to the CPU backend.
    pub theta: f64,
    /// The CPU backend's share of the pairs tested, 0 to 1.
    pub share: f64,
    /// True for an exploration step: θ differs from the settled value for one step to sample
    /// another split.
    pub aside: bool,
    /// Both backends.
    pub backends: [BackendReport; 2],
    /// Milliseconds of the whole step, placing the positions included.
    pub milliseconds: f64,
    /// Milliseconds of these that planning took.
    pub planning: f64,
    /// Why the threshold is what it is, faults included.
    pub reason: String,
}

/// A backend in a step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BackendReport {
    /// `cpu` or `gpu`.
    pub name: &'static str,
    /// Targets that it searched for.
    pub points: usize,
    /// Milliseconds from the beginning of the step to its last result; 0 when it had nothing to do.
    /// On an emulated device as its virtual clock has it.
    pub milliseconds: f64,
}
