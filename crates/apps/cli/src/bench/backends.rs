//! How both backends shared the work, for people and programs.

use nearfield::WorkReport;
use serde::Serialize;

/// A work of an engine on both backends, as its last step was.
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
    pub(crate) fn of(work: &WorkReport) -> Self {
        let backends = work.backends.iter().map(|backend| Backend {
            name: backend.name,
            points: backend.points,
            milliseconds: backend.milliseconds,
        });
        Self {
            work: work.work.clone(),
            policy: work.policy.to_string(),
            theta: work.theta,
            share: work.share,
            backends: backends.collect(),
            planning: work.planning,
            reason: work.reason.clone(),
        }
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
