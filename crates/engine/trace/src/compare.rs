//! Two traces side by side: what became faster or slower.

use crate::analysis::{Analysis, Spread};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Whether something changed by more than it varies from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Three quarters of the steps after took less than three quarters of those before.
    Faster,
    /// The other way round.
    Slower,
    /// The middle halves overlap.
    Same,
}

/// Something in both traces, milliseconds per step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// In the first trace.
    pub before: Spread,
    /// In the second.
    pub after: Spread,
    /// Median after over median before; none when that is 0.
    pub ratio: Option<f64>,
    /// Whether the change is larger than the spread.
    pub verdict: Verdict,
}

/// A lane in both traces.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LaneChange {
    /// Computing.
    pub busy: Change,
    /// Waiting between its first activity in a step and its last.
    pub waiting: Change,
    /// Idle before and after.
    pub idle: Change,
}

/// Two traces side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first trace.
    pub before: Side,
    /// The second trace.
    pub after: Side,
    /// Whole steps.
    pub step: Change,
    /// Lanes that both have.
    pub lanes: BTreeMap<String, LaneChange>,
    /// Stages that both have.
    pub stages: BTreeMap<String, Change>,
    /// Stages and lanes of the first alone.
    pub only_before: Vec<String>,
    /// Stages and lanes of the second alone.
    pub only_after: Vec<String>,
}

/// One of the traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Where it came from.
    pub file: String,
    /// Number of steps.
    pub steps: usize,
    /// The machine's processor.
    pub processor: String,
}

impl Change {
    fn of(before: Spread, after: Spread) -> Self {
        let verdict = if after.upper_quartile < before.lower_quartile {
            Verdict::Faster
        } else if after.lower_quartile > before.upper_quartile {
            Verdict::Slower
        } else {
            Verdict::Same
        };
        Self {
            before,
            after,
            ratio: (before.median > 0.0).then(|| after.median / before.median),
            verdict,
        }
    }
}

impl Comparison {
    /// Compares two traces.
    pub fn of(before: &Analysis<'_>, after: &Analysis<'_>) -> Self {
        let (one, other) = (&before.summary, &after.summary);
        let stages = one.stages.iter().filter_map(|(name, stage)| {
            let other = other.stages.get(name)?;
            let change = Change::of(stage.per_step_ms, other.per_step_ms);
            Some((name.clone(), change))
        });
        let lanes = before.lanes().filter_map(|name| {
            let change = LaneChange::of(&lane(before, name)?, &lane(after, name)?);
            Some((name.to_owned(), change))
        });
        Self {
            before: Side::of(before),
            after: Side::of(after),
            step: Change::of(one.step_ms, other.step_ms),
            lanes: lanes.collect(),
            stages: stages.collect(),
            only_before: only(before, after),
            only_after: only(after, before),
        }
    }
}

impl Side {
    fn of(analysis: &Analysis<'_>) -> Self {
        Self {
            file: analysis.summary.file.clone(),
            steps: analysis.summary.steps,
            processor: analysis.summary.machine.processor.clone(),
        }
    }
}

impl LaneChange {
    fn of(before: &[Spread; 3], after: &[Spread; 3]) -> Self {
        let change = |at: usize| Change::of(before[at], after[at]);
        Self {
            busy: change(0),
            waiting: change(1),
            idle: change(2),
        }
    }
}

/// Busy, waiting and idle time of a lane per step.
fn lane(analysis: &Analysis<'_>, name: &str) -> Option<[Spread; 3]> {
    let lane = analysis.lanes().position(|lane| lane == name)?;
    let spread = |what: usize| Spread::of(analysis.rows.iter().map(|row| row.lanes[lane][what]));
    Some([spread(0)?, spread(1)?, spread(2)?])
}

/// Names of stages and lanes that `one` has and the other has not.
fn only(one: &Analysis<'_>, other: &Analysis<'_>) -> Vec<String> {
    let lanes = one
        .lanes()
        .filter(|lane| !other.lanes().any(|name| name == *lane));
    let lanes = lanes.map(|lane| format!("lane {lane}"));
    let stages = one.summary.stages.keys();
    let stages = stages.filter(|name| !other.summary.stages.contains_key(*name));
    lanes.chain(stages.cloned()).collect()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, side) in [("before", &self.before), ("after", &self.after)] {
            writeln!(
                f,
                "{what:<9} {}: {} steps on {}",
                side.file, side.steps, side.processor
            )?;
        }
        writeln!(
            f,
            "\n{:<34} {:>10} {:>19} {:>10} {:>19} {:>8}",
            "median ms per step", "before", "middle half", "after", "middle half", "ratio"
        )?;
        write_change(f, "step", &self.step)?;
        for (name, lane) in &self.lanes {
            write_change(f, &format!("{name} busy"), &lane.busy)?;
            write_change(f, &format!("{name} waiting"), &lane.waiting)?;
            write_change(f, &format!("{name} idle"), &lane.idle)?;
        }
        for (name, change) in &self.stages {
            write_change(f, name, change)?;
        }
        for (what, names) in [("before", &self.only_before), ("after", &self.only_after)] {
            if !names.is_empty() {
                writeln!(f, "only {what}: {}", names.join(", "))?;
            }
        }
        Ok(())
    }
}

fn write_change(f: &mut fmt::Formatter<'_>, name: &str, change: &Change) -> fmt::Result {
    let half = |spread: &Spread| {
        format!(
            "{:.3} … {:.3}",
            spread.lower_quartile, spread.upper_quartile
        )
    };
    let ratio = change
        .ratio
        .map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
    let verdict = match change.verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same within the spread",
    };
    writeln!(
        f,
        "{name:<34} {:>10.3} {:>19} {:>10.3} {:>19} {ratio:>8} {verdict}",
        change.before.median,
        half(&change.before),
        change.after.median,
        half(&change.after),
    )
}
