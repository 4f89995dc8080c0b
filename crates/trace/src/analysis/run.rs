//! A trace divided into steps, each with what its lanes and the caller's thread did.
//!
//! Steps are those that the program marked. Without any, a step begins at the first update of
//! positions after a search or a traversal.

use super::intervals::Merged;
use crate::{
    Trace,
    model::{Interval, Phase, Span, Step, Subregion, Text},
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A trace by steps.
#[derive(Debug)]
pub(crate) struct Run {
    /// Names of the lanes, the CPU first.
    pub(crate) lanes: Vec<Text>,
    /// Lanes that subregions were given to.
    pub(crate) shared_by: Vec<usize>,
    pub(crate) steps: Vec<RunStep>,
}

/// A step with what happened in it.
#[derive(Debug)]
pub(crate) struct RunStep {
    pub(crate) step: Step,
    /// Indices of the stages that began in it, in the order of their beginning.
    pub(crate) spans: Vec<usize>,
    /// Indices of its subregions.
    pub(crate) subregions: Vec<usize>,
    /// What was going on, in the order of the beginning.
    pub(crate) activities: Vec<Activity>,
}

/// A stretch of time in which a lane or the caller's thread did one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Activity {
    /// Which of the lanes; none for the caller's thread.
    pub(crate) lane: Option<usize>,
    pub(crate) phase: Phase,
    pub(crate) time: Interval,
    pub(crate) source: Source,
}

/// What an activity was made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source {
    /// A stage with none inside: the caller waits for it.
    Stage { span: usize },
    /// A phase of a subregion, by number and pass.
    Subregion { number: u64, pass: u64 },
}

impl Run {
    pub(crate) fn of(trace: &Trace) -> Self {
        let lanes = lanes(trace);
        let mut steps: Vec<RunStep> = steps(trace).into_iter().map(RunStep::empty).collect();
        steps.sort_by_key(|step| step.step.time);
        let mut run = Self {
            shared_by: (0..lanes.len())
                .filter(|lane| trace.subregions.iter().any(|one| one.lane == lanes[*lane]))
                .collect(),
            lanes,
            steps,
        };
        run.place_spans(trace);
        run.place_subregions(trace);
        run.find_activities(trace);
        run
    }

    fn place_spans(&mut self, trace: &Trace) {
        for (at, span) in trace.spans.iter().enumerate() {
            if let Some(step) = self.step_at(span.time.begin()) {
                self.steps[step].spans.push(at);
            }
        }
        for step in &mut self.steps {
            step.spans.sort_by_key(|at| trace.spans[*at].time.begin());
        }
    }

    fn place_subregions(&mut self, trace: &Trace) {
        let numbers = self.steps.iter().enumerate();
        let by_number: HashMap<u64, usize> =
            numbers.map(|(at, step)| (step.step.step, at)).collect();
        for (at, subregion) in trace.subregions.iter().enumerate() {
            let begin = Phase::ALL
                .iter()
                .filter_map(|phase| subregion.phase(*phase))
                .map(Interval::begin)
                .min();
            // A virtual clock may place it after the step that it belongs to.
            let by_time = begin
                .and_then(|begin| self.step_at(begin))
                .filter(|step| self.steps[*step].step.step == subregion.step);
            if let Some(step) = by_time.or_else(|| by_number.get(&subregion.step).copied()) {
                self.steps[step].subregions.push(at);
            }
        }
    }

    /// The step that goes on at a moment.
    fn step_at(&self, at: u64) -> Option<usize> {
        let after = self
            .steps
            .partition_point(|step| step.step.time.begin() <= at);
        let step = after.checked_sub(1)?;
        (at <= self.steps[step].step.time.end()).then_some(step)
    }

    fn find_activities(&mut self, trace: &Trace) {
        let parents: HashSet<u64> = trace.spans.iter().map(|span| span.parent).collect();
        for step in &mut self.steps {
            let shared = subregion_activities(trace, &self.lanes, &step.subregions);
            let busy = Merged::of(shared.iter().map(|activity| activity.time));
            // A stage around subregions is told by them.
            let leaves = step.spans.iter().copied().filter(|at| {
                let span = &trace.spans[*at];
                !parents.contains(&span.id) && busy.covers(span.time) == 0
            });
            step.activities = leaves
                .map(|span| stage_activity(&trace.spans[span], span, &self.lanes))
                .chain(shared.iter().copied())
                .collect();
            step.activities
                .sort_by_key(|activity| (activity.time, activity.phase));
            step.extend();
        }
    }
}

impl RunStep {
    fn empty(step: Step) -> Self {
        Self {
            step,
            spans: Vec::new(),
            subregions: Vec::new(),
            activities: Vec::new(),
        }
    }

    /// Lets the step last until everything in it has ended, which a virtual clock may place later.
    fn extend(&mut self) {
        let ends = self.activities.iter().map(|activity| activity.time.end());
        let time = self.step.time;
        self.step.time = Interval::new(time.begin(), ends.fold(time.end(), u64::max));
    }
}

/// The lanes of a trace, the CPU first and the others by name.
fn lanes(trace: &Trace) -> Vec<Text> {
    let of_spans = trace.spans.iter().filter_map(|span| span.lane.clone());
    let of_subregions = trace.subregions.iter().map(|one| one.lane.clone());
    let names: BTreeSet<Text> = of_spans.chain(of_subregions).collect();
    let (mut first, others): (Vec<Text>, Vec<Text>) =
        names.into_iter().partition(|name| name == "cpu");
    first.extend(others);
    first
}

fn lane_index(lanes: &[Text], name: &str) -> Option<usize> {
    lanes.iter().position(|lane| lane == name)
}

fn stage_activity(span: &Span, at: usize, lanes: &[Text]) -> Activity {
    Activity {
        lane: span.lane.as_ref().and_then(|lane| lane_index(lanes, lane)),
        phase: span.phase,
        time: span.time,
        source: Source::Stage { span: at },
    }
}

fn subregion_activities(trace: &Trace, lanes: &[Text], of: &[usize]) -> Vec<Activity> {
    let phases = |one: &Subregion| {
        let (number, pass) = (one.subregion, one.pass);
        let lane = lane_index(lanes, &one.lane);
        Phase::ALL.map(|phase| {
            Some(Activity {
                lane,
                phase,
                time: one.phase(phase)?,
                source: Source::Subregion { number, pass },
            })
        })
    };
    of.iter()
        .flat_map(|at| phases(&trace.subregions[*at]))
        .flatten()
        .collect()
}

/// The steps that the program marked, or those that its calls of the engine make.
fn steps(trace: &Trace) -> Vec<Step> {
    match trace.steps.is_empty() {
        false => trace.steps.clone(),
        true => implied_steps(&trace.spans),
    }
}

fn implied_steps(spans: &[Span]) -> Vec<Step> {
    let mut calls: Vec<&Span> = spans.iter().filter(|span| span.parent == 0).collect();
    calls.sort_by_key(|span| span.time);
    let mut steps: Vec<Step> = Vec::new();
    let mut worked = true;
    for call in calls {
        let updates = matches!(&*call.name, "engine.update" | "engine.add_point_set");
        match steps.last_mut() {
            Some(step) if !(updates && worked) => {
                let end = step.time.end().max(call.time.end());
                step.time = Interval::new(step.time.begin(), end);
            }
            _ => steps.push(Step {
                step: steps.len() as u64,
                time: call.time,
                ..Step::default()
            }),
        }
        worked = !updates;
    }
    steps
}
