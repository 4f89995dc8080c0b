//! What both backends did, for the report.

use nearfield_balance::Policy;

/// A work that both backends share, as its last step was.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkReport {
    /// `lists`, `counts`, or the type of the pair kernel.
    pub work: String,
    /// Number of the target set.
    pub targets: usize,
    /// Number of the source set.
    pub sources: usize,
    /// What decides the threshold.
    pub policy: Policy,
    /// Steps done.
    pub steps: u64,
    /// Occupancy threshold of the next step, the mean over subregions weighted by work: bricks of at
    /// most so many points go to the CPU backend.
    pub theta: f64,
    /// The CPU backend's share of the pairs tested, 0 to 1.
    pub share: f64,
    /// Whether the step was one aside: divided otherwise for once, to learn something, and taken back by the
    /// next decision.
    pub aside: bool,
    /// Both backends.
    pub backends: [BackendReport; 2],
    /// Milliseconds of the whole step, placing the positions included.
    pub milliseconds: f64,
    /// Of these, what the scheduler itself took.
    pub planning: f64,
    /// Why the threshold is what it is, faults included.
    pub reason: String,
}

/// A backend in a step of a work.
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
