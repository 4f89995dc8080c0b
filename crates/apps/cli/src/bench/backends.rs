//! How both backends shared the work, for people and programs.

use nearfield::report::JobReport;
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

#[derive(Debug, Serialize)]
struct Backend {
    name: &'static str,
    points: usize,
    milliseconds: f64,
}

impl Backends {
    /// None of a job that one backend does alone.
    pub(crate) fn of(job: &JobReport) -> Option<Self> {
        let split = job.split.as_ref()?;
        let backends = split.backends.iter().map(|backend| Backend {
            name: backend.name,
            points: backend.points,
            milliseconds: backend.milliseconds,
        });
        Some(Self {
            work: job.job.clone(),
            policy: split.policy.to_string(),
            theta: split.theta,
            share: split.share,
            backends: backends.collect(),
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
