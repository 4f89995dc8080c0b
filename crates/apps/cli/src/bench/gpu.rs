//! The strategy that a GPU used, and the trials of the strategy `auto`.

use nearfield::report::{GpuReport, trials::Trial as Measured};
use serde::Serialize;

/// The GPU's part of a summary.
#[derive(Debug, Serialize)]
pub(super) struct GpuSummary {
    name: String,
    strategy: &'static str,
    subdivision: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trials: Vec<Trial>,
}

#[derive(Debug, Serialize)]
struct Trial {
    /// Minimum mean number of points in a cell whose edge is the radius; the maximum is twice that.
    points_per_cell: f64,
    strategy: &'static str,
    subdivision: u32,
    milliseconds: Option<f32>,
    chosen: bool,
}

impl GpuSummary {
    pub(super) fn of(report: &GpuReport) -> Self {
        Self {
            name: report.name.clone(),
            strategy: report.strategy.name(),
            subdivision: report.subdivision,
            trials: report.trials.iter().map(Trial::of).collect(),
        }
    }

    /// Lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        let cells = |subdivision| match subdivision {
            1 => "1 cell per radius".to_owned(),
            cells => format!("{cells} cells per radius"),
        };
        let first = format!(
            "gpu         {}: {}, {}",
            self.name,
            self.strategy,
            cells(self.subdivision)
        );
        let trials = self.trials.iter().map(|trial| {
            let time = match trial.milliseconds {
                Some(time) => format!("{time:.3} ms"),
                None => "not timed yet".to_owned(),
            };
            let mark = if trial.chosen { ", chosen" } else { "" };
            let configuration = format!("{}, {}", trial.strategy, cells(trial.subdivision));
            format!("  tried     {configuration}: {time} on the device{mark}")
        });
        [first].into_iter().chain(trials).collect()
    }
}

impl Trial {
    fn of(trial: &Measured) -> Self {
        Self {
            points_per_cell: trial.class.least(),
            strategy: trial.configuration.strategy.name(),
            subdivision: trial.configuration.subdivision,
            milliseconds: trial.milliseconds,
            chosen: trial.chosen,
        }
    }
}
