//! The results of an analysis, in the form of `nearfield trace summary --json`.

use super::{course::Course, gaps::Reason, stages::Stage, statistics::Spread};
use nearfield_trace::model::{Machine, Program, Theta};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Figures of a whole trace. Times are milliseconds summed over all steps, unless they say
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The result in one sentence: the cause that costs most, its milliseconds a step and a remedy;
    /// or how busy the backends are, if nothing costs a tenth of a step.
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
    /// The steps that the verdict is about.
    pub settled: SettledSteps,
    /// Causes that cost a tenth of a step or more, dearest first. The verdict names the first.
    pub findings: Vec<Finding>,
    /// The other findings in sentences.
    pub advice: Vec<String>,
}

/// Steps after the policy settled, without exploration steps, cold first steps and stalls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SettledSteps {
    /// Their number.
    pub steps: usize,
    /// Mean milliseconds of one.
    pub step_ms: f64,
}

/// A cause that costs time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The kind of the cause.
    pub cause: CauseKind,
    /// What it costs, milliseconds a step.
    pub ms_per_step: f64,
    /// The cause in words.
    pub what: String,
    /// One thing to do, after "try".
    pub remedy: String,
    /// Whether it explains time in which a backend does not compute.
    #[serde(skip)]
    pub(crate) is_gap: bool,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CauseKind {
    /// Host and device copy data, or copies are not hidden behind computing.
    Copy,
    /// The host waits for the device, which does not compute.
    Wait,
    /// The host is late to queue kernels.
    Queueing,
    /// A stage of the program.
    HostStage,
    /// The program, where no span says what it does.
    Unmarked,
    /// The library's own stages on the calling thread.
    Library,
    /// A stage of the CPU backend that another backend waits for.
    CpuStage,
    /// The program between the steps.
    BetweenSteps,
    /// Work on other threads, such as drawing, that slows the steps next to it.
    Beside,
    /// A fixed threshold gives everything to one backend.
    IdleBackend,
    /// One backend is ready long before the other.
    Split,
    /// The split goes to and fro, or has not settled.
    Unsettled,
    /// Steps before the policy settled.
    Settling,
    /// Exploration steps.
    Exploration,
    /// The first steps, while memory, threads and programs are new.
    ColdStart,
    /// Single steps that take several times the median.
    Stalls,
    /// The GPU failed.
    GpuLost,
    /// The engine has fewer threads than the machine.
    UnusedCores,
    /// Lists with a wide skin.
    Skin,
    /// Sorting.
    Sorting,
    /// Ranks with unequal work.
    UnevenRanks,
    /// Ranks that wait for each other though their work is equal.
    RankWaits,
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
    /// What a GPU waited for when it did not compute; none for other backends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_for: Option<IdleFor>,
    /// Stages that ran instead, in steps and between them, longest first.
    pub reasons: Vec<Reason>,
}

/// The time of the steps in which a GPU did not compute, by what it waited for, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct IdleFor {
    /// The host, or the CPU backend, was in a stage and had not queued the next kernel.
    pub host: f64,
    /// The host was blocked by a copy, or data of subregions were moved.
    pub copies: f64,
    /// The host waited for the device, so everything was queued: the time between kernels.
    pub kernels: f64,
    /// No stage was open.
    pub unknown: f64,
}

impl fmt::Display for IdleFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "for the host {:.1} ms, for copies {:.1} ms, between kernels {:.1} ms, unknown {:.1} ms",
            self.host, self.copies, self.kernels, self.unknown
        )
    }
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
