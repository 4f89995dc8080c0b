//! How a GPU did the work, and what the strategy `auto` has tried.

use nearfield::report::{GpuReport, trials::Trial as Measured};
use serde::Serialize;

/// The GPU's part of a summary.
#[derive(Debug, Serialize)]
pub(super) struct Ways {
    name: String,
    strategy: &'static str,
    subdivision: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trials: Vec<Trial>,
}

#[derive(Debug, Serialize)]
struct Trial {
    /// Least mean number of points in a cell of the radius' edge; the most is twice that.
    points_per_cell: f64,
    strategy: &'static str,
    subdivision: u32,
    milliseconds: Option<f32>,
    chosen: bool,
}

impl Ways {
    pub(super) fn of(report: &GpuReport) -> Self {
        Self {
            name: report.name.clone(),
            strategy: report.strategy.name(),
            subdivision: report.subdivision,
            trials: report.trials.iter().map(Trial::of).collect(),
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let cells = |subdivision| match subdivision {
            1 => "1 cell to a radius".to_owned(),
            cells => format!("{cells} cells to a radius"),
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
            let way = format!("{}, {}", trial.strategy, cells(trial.subdivision));
            format!("  tried     {way}: {time} on the device{mark}")
        });
        [first].into_iter().chain(trials).collect()
    }
}

impl Trial {
    fn of(tried: &Measured) -> Self {
        Self {
            points_per_cell: tried.class.least(),
            strategy: tried.configuration.strategy.name(),
            subdivision: tried.configuration.subdivision,
            milliseconds: tried.milliseconds,
            chosen: tried.chosen,
        }
    }
}
