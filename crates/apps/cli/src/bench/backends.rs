//! How both backends shared the work, for people and programs.

use nearfield::report::{JobReport, SplitReport};
use serde::Serialize;

/// A job that both backends share, as its last step was.
#[derive(Debug, Serialize)]
pub(crate) struct Backends {
    work: String,
    policy: String,
    theta: f64,
    share: f64,
    backends: Vec<Backend>,
    planning: f64,
    reason: String,
}

/// Times of a backend, as the engine measured them.
#[derive(Debug, Serialize)]
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    /// Points that it worked on.
    pub(crate) points: usize,
    pub(crate) milliseconds: f64,
}

impl Backend {
    /// Both backends of a job that they share.
    pub(crate) fn all(split: &SplitReport) -> Vec<Self> {
        let backends = split.backends.iter().map(|backend| Self {
            name: backend.name,
            points: backend.points,
            milliseconds: backend.milliseconds,
        });
        backends.collect()
    }
}

impl Backends {
    /// None of a job that one backend does alone.
    pub(crate) fn of(job: &JobReport) -> Option<Self> {
        let split = job.split.as_ref()?;
        Some(Self {
            work: job.job.clone(),
            policy: split.policy.to_string(),
            theta: split.theta,
            share: split.share,
            backends: Backend::all(split),
            planning: split.planning,
            reason: split.reason.clone(),
        })
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let backends = self.backends.iter().map(|backend| {
            format!(
                "{} {} points in {:.2} ms",
                backend.name, backend.points, backend.milliseconds
            )
        });
        vec![
            format!(
                "backends       {}, planning {:.3} ms",
                backends.collect::<Vec<_>>().join(", "),
                self.planning
            ),
            format!(
                "threshold   {:.2} by {}: {:.1} % of the pairs tested go to the CPU",
                self.theta,
                self.policy,
                100.0 * self.share
            ),
            format!("because     {}", self.reason),
        ]
    }
}
