//! How both lanes shared the work, for people and programs.

use nearfield::WorkReport;
use serde::Serialize;

/// A work of an engine on both lanes, as its last step was.
#[derive(Debug, Serialize)]
pub(crate) struct Lanes {
    work: String,
    policy: String,
    theta: f64,
    share: f64,
    lanes: Vec<Lane>,
    planning: f64,
    reason: String,
}

#[derive(Debug, Serialize)]
struct Lane {
    name: &'static str,
    points: usize,
    milliseconds: f64,
}

impl Lanes {
    pub(crate) fn of(work: &WorkReport) -> Self {
        let lanes = work.lanes.iter().map(|lane| Lane {
            name: lane.name,
            points: lane.points,
            milliseconds: lane.milliseconds,
        });
        Self {
            work: work.work.clone(),
            policy: work.policy.to_string(),
            theta: work.theta,
            share: work.share,
            lanes: lanes.collect(),
            planning: work.planning,
            reason: work.reason.clone(),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let lanes = self.lanes.iter().map(|lane| {
            format!(
                "{} {} points in {:.2} ms",
                lane.name, lane.points, lane.milliseconds
            )
        });
        vec![
            format!(
                "lanes       {}, planning {:.3} ms",
                lanes.collect::<Vec<_>>().join(", "),
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
