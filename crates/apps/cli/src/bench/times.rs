//! Milliseconds of a step by stage, and how often steps are timed.

use serde::Serialize;

/// How often a step is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repetitions {
    /// Before those that are timed: they pay for fresh memory, or let a policy settle.
    pub(crate) uncounted: u32,
    pub(crate) timed: u32,
}

/// Milliseconds by stage.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Times {
    pub(crate) build: f64,
    pub(crate) search: f64,
    pub(crate) total: f64,
}

/// Medians of the timed repetitions, stage by stage.
pub(crate) fn medians(samples: &[Times]) -> Times {
    Times {
        build: median(samples.iter().map(|times| times.build)),
        search: median(samples.iter().map(|times| times.search)),
        total: median(samples.iter().map(|times| times.total)),
    }
}

/// The middle value, the upper one of two; 0 without any.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
