//! The results of an analysis, in the form of `nearfield trace summary --json`.

use super::{course::Course, gaps::Reason, stages::Stage, statistics::Spread};
use nearfield_trace::model::{Machine, Program, Theta};
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures of a whole trace. Times are milliseconds summed over all steps, unless they say
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The result in one sentence: which backend waits, for what, and a remedy.
    pub verdict: String,
    /// The clock of all times.
    pub clock: Clock,
    /// Where it came from.
    pub file: String,
    /// The program that was traced.
    pub program: Program,
    /// Where it ran.
    pub machine: Machine,
    /// When it began, milliseconds since 1970-01-01 UTC.
    pub start_unix_ms: u64,
    /// Parts missing from the trace, in words; empty when none is.
    pub damage: String,
    /// Number of steps.
    pub steps: usize,
    /// Time of all steps.
    pub total_ms: f64,
    /// From the first step's beginning to the last one's end.
    pub run_ms: f64,
    /// Milliseconds per step.
    pub step_ms: Spread,
    /// Every backend by name.
    pub backends: BTreeMap<String, Backend>,
    /// Time in which no backend computed and nothing was moved.
    pub no_backend_ms: f64,
    /// Time in which no backend computed, transfers or not.
    pub no_compute_ms: f64,
    /// Stages that ran instead, in steps and between them, longest first.
    pub no_compute_reasons: Vec<Reason>,
    /// Steps in which backends shared a pass; in the others one of them did everything.
    pub shared_steps: usize,
    /// (t_slow − t_fast) / t_slow between the backends that share subregions, mean over the steps.
    pub imbalance: Option<f64>,
    /// The same, mean over all subregions.
    pub subregion_imbalance: Option<f64>,
    /// Share of the time of transfers that passed while the backend computed.
    pub overlap: Option<f64>,
    /// Length of the longest chains of activities that waited for each other.
    pub critical_path_ms: f64,
    /// Parts of those chains, longest first.
    pub critical_path: Vec<PathPart>,
    /// Every stage by name.
    pub stages: BTreeMap<String, Stage>,
    /// Milliseconds of stages on other threads than that of the steps, such as drawing, summed.
    pub beside: BTreeMap<String, f64>,
    /// Jobs and other calls outside of all steps. They count only in the shares of the run. None
    /// without them, or if the program marked no steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// The occupancy threshold over the steps.
    pub theta: Option<Course>,
    /// The CPU backend's share of the work over the steps.
    pub share: Option<Course>,
    /// Steps before the share (or else the threshold) stayed near its end; none when it did not, or
    /// when there is none.
    pub settle_steps: Option<usize>,
    /// The device that the engine ran on and why, where the trace says.
    pub device: Option<String>,
    /// Decisions of the policy.
    pub retunes: usize,
    /// Steps that were much slower than most, slowest first.
    pub slowest: Vec<SlowStep>,
    /// Remedies, where the numbers tell.
    pub advice: Vec<String>,
}

/// Calls and jobs outside of all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outside {
    /// Subregions of the jobs that backends shared there, one per backend and pass.
    pub subregions: usize,
    /// Milliseconds of the outermost stages there, by name; on a virtual clock they have none.
    pub stages: BTreeMap<String, f64>,
    /// Milliseconds in which each backend computed there.
    pub backends: BTreeMap<String, f64>,
    /// Pairs that were expected to be tested for the subregions of these jobs.
    pub work: u64,
}

/// The clock of a trace's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The host's.
    Host,
    /// The clock of an emulated device; stages of the host have no times on it.
    Virtual,
}

/// The clock that timed the computing of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimedBy {
    /// The host, by stages around the calls of a backend.
    Host,
    /// The device, by its kernels and copies.
    Device,
}

/// A backend's time over all steps; busy, waiting and idle make up the whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backend {
    /// Computing.
    pub busy: f64,
    /// Before its first activity in a step and after its last.
    pub idle: f64,
    /// Not computing between them.
    pub waiting: f64,
    /// Share of the time in which it computed.
    pub utilisation: f64,
    /// Moving data.
    pub transfers: f64,
    /// Share of that in which it also computed; none without transfers.
    pub overlap: Option<f64>,
    /// Clock that says when it computed.
    pub timed_by: TimedBy,
    /// Share of the steps' time in which it did not compute.
    pub idle_share: f64,
    /// Share of the time from the first step's beginning to the last one's end in which it did not
    /// compute.
    pub idle_share_of_run: f64,
    /// Stages that ran instead, in steps and between them, longest first.
    pub reasons: Vec<Reason>,
}

/// A part of the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathPart {
    /// Name of a stage, or of a backend and its phase.
    pub what: String,
    /// Milliseconds on the path.
    pub ms: f64,
    /// Share of the path.
    pub share: f64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRow {
    /// Its number, as the program counts.
    pub step: u64,
    /// When it began, milliseconds since the start of the trace.
    pub begin_ms: f64,
    /// How long it took.
    pub ms: f64,
    /// Points in it.
    pub points: Option<u64>,
    /// Pairs found or evaluated in it.
    pub pairs: Option<u64>,
    /// Pairs that were expected to be tested in it.
    pub work: Option<u64>,
    /// The median threshold of its subregions; infinity is written `inf`.
    pub theta: Option<Theta>,
    /// The CPU backend's share of the work.
    pub share: Option<f64>,
    /// Imbalance of the backends that share subregions.
    pub imbalance: Option<f64>,
    /// Share of the time of transfers that passed while the backend computed.
    pub overlap: Option<f64>,
    /// Length of the critical path.
    pub critical_path_ms: f64,
    /// Whether the policy changed something after it.
    pub retuned: bool,
    /// True for an exploration step: θ differs from the settled value for one step, to sample
    /// another split. The course of θ and share is judged without such steps.
    pub exploration: bool,
    /// Busy, waiting and idle milliseconds of every backend, in the order of
    /// [`Analysis::backends`](super::Analysis::backends).
    pub backends: Vec<[f64; 3]>,
}

/// A step that was much slower than most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowStep {
    /// Its number, as the program counts.
    pub step: u64,
    /// How long it took.
    pub ms: f64,
    /// The stage that took longer than usual.
    pub cause: String,
}
