//! What stages cost.

use super::{
    intervals::{Merged, increase},
    run::{Activity, Run, RunStep, Source},
    statistics::Spread,
};
use crate::{
    Trace,
    model::{Interval, Phase, Span, Value},
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// What a stage cost over all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The lane that it kept busy; none for the caller's thread.
    pub lane: Option<String>,
    /// How often it ran.
    pub count: u64,
    /// Milliseconds together.
    pub total_ms: f64,
    /// Of that, outside of the stages within it.
    pub self_ms: f64,
    /// Milliseconds per step, over the steps in which it ran.
    pub per_step_ms: Spread,
    /// Pairs found or evaluated, where the stage says.
    pub pairs: Option<u64>,
    /// Milliseconds per million of those.
    pub ms_per_million_pairs: Option<f64>,
    /// Pairs that were expected to be tested, where the stage says.
    pub work: Option<u64>,
    /// Milliseconds per million of those.
    pub ms_per_million_tests: Option<f64>,
}

/// Time of a stage in one step, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StageTime {
    pub(crate) total: u64,
    pub(crate) own: u64,
    count: u64,
    pairs: Option<u64>,
    work: Option<u64>,
}

/// Stages of a step by name.
pub(crate) type StageTimes = BTreeMap<String, StageTime>;

/// A stage's name, with the kernel's where there is one: `engine.traverse (Forces)`.
pub(crate) fn stage_name(span: &Span) -> String {
    match span.fields.get("kernel") {
        Some(Value::Text(kernel)) => {
            let plain = kernel.split('<').next().unwrap_or(kernel);
            let short = plain.rsplit("::").next().unwrap_or(plain);
            format!("{} ({short})", span.name)
        }
        _ => span.name.to_string(),
    }
}

/// The name under which a lane's subregions are summed up: `gpu.upload (subregions)`.
fn subregion_name(lane: &str, phase: Phase) -> String {
    format!("{lane}.{} (subregions)", phase.name())
}

/// What every stage cost in every step.
pub(crate) fn by_step(trace: &Trace, run: &Run) -> Vec<StageTimes> {
    let inside = inside(trace);
    let stage_times = |step: &RunStep| {
        let mut times = StageTimes::new();
        let shared = Merged::of(step.activities.iter().filter_map(of_subregion));
        for span in step.spans.iter().map(|at| &trace.spans[*at]) {
            let length = span.time.length();
            let parts = inside.get(&span.id).cloned().unwrap_or_default();
            let own = match &span.lane {
                Some(_) => Merged::of(parts),
                // What the caller's thread does around subregions is to wait for the lanes.
                None => Merged::of(parts.into_iter().chain(shared.within(span.time))),
            };
            let own = length - own.covers(span.time);
            let count = |name: &str| span.fields.get(name).and_then(Value::count);
            let (pairs, work) = (count("pairs"), count("work"));
            times.entry(stage_name(span)).or_default().add(&StageTime {
                total: length,
                own,
                count: 1,
                pairs,
                work,
            });
        }
        for one in step.subregions.iter().map(|at| &trace.subregions[*at]) {
            for phase in Phase::ALL {
                let Some(time) = one.phase(phase) else {
                    continue;
                };
                let computes = phase == Phase::Compute;
                let name = subregion_name(&one.lane, phase);
                times.entry(name).or_default().add(&StageTime {
                    total: time.length(),
                    own: time.length(),
                    count: 1,
                    pairs: one.pairs.filter(|_| computes),
                    work: computes.then_some(one.work),
                });
            }
        }
        times
    };
    run.steps.iter().map(stage_times).collect()
}

/// The stages directly within each.
fn inside(trace: &Trace) -> HashMap<u64, Vec<Interval>> {
    let mut inside: HashMap<u64, Vec<Interval>> = HashMap::new();
    for span in trace.spans.iter().filter(|span| span.parent != 0) {
        inside.entry(span.parent).or_default().push(span.time);
    }
    inside
}

fn of_subregion(activity: &Activity) -> Option<Interval> {
    match activity.source {
        Source::Subregion { .. } => Some(activity.time),
        Source::Stage { .. } => None,
    }
}

impl StageTime {
    fn add(&mut self, other: &Self) {
        increase(&mut self.total, other.total);
        increase(&mut self.own, other.own);
        self.count += other.count;
        self.pairs = add(self.pairs, other.pairs);
        self.work = add(self.work, other.work);
    }
}

/// The sum of what is known.
pub(crate) fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

/// Stages over all steps.
pub(crate) fn summarize(trace: &Trace, steps: &[StageTimes]) -> BTreeMap<String, Stage> {
    let mut lanes: HashMap<String, Option<String>> = HashMap::new();
    for span in &trace.spans {
        let lane = span.lane.as_ref().map(|lane| lane.to_string());
        lanes.entry(stage_name(span)).or_insert(lane);
    }
    let mut all: BTreeMap<&str, (StageTime, Vec<f64>)> = BTreeMap::new();
    for (name, time) in steps.iter().flatten() {
        let (sum, each) = all.entry(name).or_default();
        sum.add(time);
        each.push(time.total as f64 / 1e6);
    }
    all.into_iter()
        .map(|(name, (sum, each))| {
            let of_subregions = name.split_once(".").map(|(lane, _)| lane.to_owned());
            let total_ms = sum.total as f64 / 1e6;
            let per_million = |count: Option<u64>| {
                let count = count.filter(|count| *count > 0)?;
                Some(total_ms / (count as f64 / 1e6))
            };
            let stage = Stage {
                lane: lanes.get(name).cloned().unwrap_or(of_subregions),
                count: sum.count,
                total_ms,
                self_ms: sum.own as f64 / 1e6,
                per_step_ms: Spread::of(each).unwrap_or_default(),
                pairs: sum.pairs,
                ms_per_million_pairs: per_million(sum.pairs),
                work: sum.work,
                ms_per_million_tests: per_million(sum.work),
            };
            (name.to_owned(), stage)
        })
        .collect()
}
