//! Compares two traces: what became faster or slower.

use crate::analysis::{Analysis, Clock, Spread};
use nearfield_trace::{Error, ErrorKind};
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

/// A backend in both traces.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BackendChange {
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
    /// Backends that both have.
    pub backends: BTreeMap<String, BackendChange>,
    /// Stages that both have.
    pub stages: BTreeMap<String, Change>,
    /// Stages and backends of the first alone.
    pub only_before: Vec<String>,
    /// Stages and backends of the second alone.
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
    ///
    /// # Errors
    /// [`ErrorKind::Clocks`] if one of them has times of a virtual clock and the other does not.
    pub fn of(before: &Analysis<'_>, after: &Analysis<'_>) -> Result<Self, Error> {
        let (one, other) = (&before.summary, &after.summary);
        if one.clock != other.clock {
            let is_first = one.clock == Clock::Virtual;
            let (emulated, real) = if is_first { (one, other) } else { (other, one) };
            return Err(ErrorKind::Clocks {
                emulated: emulated.file.clone(),
                real: real.file.clone(),
            }
            .into());
        }
        let stages = one.stages.iter().filter_map(|(name, stage)| {
            let other = other.stages.get(name)?;
            let change = Change::of(stage.per_step_ms, other.per_step_ms);
            Some((name.clone(), change))
        });
        let backends = before.backends().filter_map(|name| {
            let change = BackendChange::of(&backend(before, name)?, &backend(after, name)?);
            Some((name.to_owned(), change))
        });
        Ok(Self {
            before: Side::of(before),
            after: Side::of(after),
            step: Change::of(one.step_ms, other.step_ms),
            backends: backends.collect(),
            stages: stages.collect(),
            only_before: only(before, after),
            only_after: only(after, before),
        })
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

impl BackendChange {
    fn of(before: &[Spread; 3], after: &[Spread; 3]) -> Self {
        let change = |at: usize| Change::of(before[at], after[at]);
        Self {
            busy: change(0),
            waiting: change(1),
            idle: change(2),
        }
    }
}

/// Busy, waiting and idle time of a backend per step.
fn backend(analysis: &Analysis<'_>, name: &str) -> Option<[Spread; 3]> {
    let backend = analysis.backends().position(|backend| backend == name)?;
    let spread =
        |what: usize| Spread::of(analysis.rows.iter().map(|row| row.backends[backend][what]));
    Some([spread(0)?, spread(1)?, spread(2)?])
}

/// Names of stages and backends that `one` has and the other has not.
fn only(one: &Analysis<'_>, other: &Analysis<'_>) -> Vec<String> {
    let backends = one
        .backends()
        .filter(|backend| !other.backends().any(|name| name == *backend));
    let backends = backends.map(|backend| format!("backend {backend}"));
    let stages = one.summary.stages.keys();
    let stages = stages.filter(|name| !other.summary.stages.contains_key(*name));
    backends.chain(stages.cloned()).collect()
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
        for (name, backend) in &self.backends {
            write_change(f, &format!("{name} busy"), &backend.busy)?;
            write_change(f, &format!("{name} waiting"), &backend.waiting)?;
            write_change(f, &format!("{name} idle"), &backend.idle)?;
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
