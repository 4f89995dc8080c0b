//! What stages cost.

use super::{run::Run, statistics::Spread};
use crate::{
    Trace,
    model::{Phase, Span, Value},
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
}

/// Time of a stage in one step, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StageTime {
    pub(crate) total: u64,
    pub(crate) own: u64,
    count: u64,
    pairs: Option<u64>,
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
    let stage_times = |step: &super::run::RunStep| {
        let mut times = StageTimes::new();
        for span in step.spans.iter().map(|at| &trace.spans[*at]) {
            let length = span.time.length();
            let own = length.saturating_sub(inside.get(&span.id).copied().unwrap_or(0));
            let pairs = span.fields.get("pairs").and_then(Value::count);
            times
                .entry(stage_name(span))
                .or_default()
                .add(length, own, pairs);
        }
        for one in step.subregions.iter().map(|at| &trace.subregions[*at]) {
            for phase in Phase::ALL {
                let Some(time) = one.phase(phase) else {
                    continue;
                };
                let pairs = one.pairs.filter(|_| phase == Phase::Compute);
                let name = subregion_name(&one.lane, phase);
                times
                    .entry(name)
                    .or_default()
                    .add(time.length(), time.length(), pairs);
            }
        }
        times
    };
    run.steps.iter().map(stage_times).collect()
}

/// Time of the stages directly within each.
fn inside(trace: &Trace) -> HashMap<u64, u64> {
    let mut inside = HashMap::new();
    for span in trace.spans.iter().filter(|span| span.parent != 0) {
        *inside.entry(span.parent).or_default() += span.time.length();
    }
    inside
}

impl StageTime {
    fn add(&mut self, total: u64, own: u64, pairs: Option<u64>) {
        self.total += total;
        self.own += own;
        self.count += 1;
        self.pairs = add(self.pairs, pairs);
    }
}

pub(crate) fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0) + other.unwrap_or(0)),
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
        sum.total += time.total;
        sum.own += time.own;
        sum.count += time.count;
        sum.pairs = add(sum.pairs, time.pairs);
        each.push(time.total as f64 / 1e6);
    }
    all.into_iter()
        .map(|(name, (sum, each))| {
            let of_subregions = name.split_once(".").map(|(lane, _)| lane.to_owned());
            let total_ms = sum.total as f64 / 1e6;
            let millions = sum.pairs.filter(|pairs| *pairs > 0);
            let stage = Stage {
                lane: lanes.get(name).cloned().unwrap_or(of_subregions),
                count: sum.count,
                total_ms,
                self_ms: sum.own as f64 / 1e6,
                per_step_ms: Spread::of(each).unwrap_or_default(),
                pairs: sum.pairs,
                ms_per_million_pairs: millions.map(|pairs| total_ms / (pairs as f64 / 1e6)),
            };
            (name.to_owned(), stage)
        })
        .collect()
}
