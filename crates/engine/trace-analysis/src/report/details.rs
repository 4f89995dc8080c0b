//! Data that the page sums up again for selected steps, and the gaps of the timeline.

use super::bars::microseconds;
use crate::analysis::{Analysis, Cause, CauseShare, Detail};
use serde::Serialize;
use std::collections::HashMap;

/// Maximum number of gaps of a page; of more the longest are shown.
const MAX_GAPS: usize = 20_000;

/// The parts of every step. Lists of numbers are flat to keep the page small.
#[derive(Serialize)]
pub(super) struct Details {
    /// Names of stages and of parts of the critical path.
    labels: Vec<String>,
    /// Reasons for a backend not to compute.
    causes: Vec<String>,
    steps: Vec<StepDetail>,
    /// Reasons between the steps, as in a step.
    between: Vec<Vec<f64>>,
    /// Gaps of the timeline, seven numbers each: step, whether it is between steps, begin and
    /// length in microseconds, and up to three causes, or -1.
    gaps: Vec<f64>,
}

/// A step; times are microseconds.
#[derive(Serialize)]
struct StepDetail {
    /// Transfer times of every backend, and the part hidden behind computing.
    moved: Vec<[f64; 2]>,
    /// Six numbers a stage: label, count, total, own, pairs and work, or -1.
    stages: Vec<f64>,
    /// Two numbers a part of the critical path: label and time.
    path: Vec<f64>,
    /// Of every backend, and at last of all of them, three numbers a reason not to compute: cause,
    /// time and bytes.
    idle: Vec<Vec<f64>>,
}

/// Details of the first `steps` steps.
pub(super) fn collect(analysis: &Analysis<'_>, steps: usize) -> Details {
    let mut labels = Labels::default();
    let of_steps = analysis.details[..steps].iter().zip(&analysis.gaps.steps);
    let of_steps = of_steps.map(|(detail, idle)| step(detail, idle, &mut labels));
    let steps_shown = of_steps.collect();
    let mut gaps: Vec<_> = analysis
        .gaps
        .common
        .iter()
        .filter(|gap| gap.step < steps)
        .collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.time.length()));
    gaps.truncate(MAX_GAPS);
    gaps.sort_by_key(|gap| gap.time);
    let cause =
        |gap: &crate::analysis::Gap, at: usize| gap.causes.get(at).map_or(-1.0, |one| *one as f64);
    Details {
        causes: analysis.gaps.causes.iter().map(Cause::to_string).collect(),
        steps: steps_shown,
        between: analysis
            .gaps
            .between
            .iter()
            .map(|parts| flat(parts))
            .collect(),
        gaps: gaps
            .into_iter()
            .flat_map(|gap| {
                [
                    gap.step as f64,
                    f64::from(u8::from(gap.between_steps)),
                    microseconds(gap.time.begin() as f64),
                    microseconds(gap.time.length() as f64),
                    cause(gap, 0),
                    cause(gap, 1),
                    cause(gap, 2),
                ]
            })
            .collect(),
        labels: labels.names,
    }
}

fn step(detail: &Detail, idle: &[Vec<CauseShare>], labels: &mut Labels) -> StepDetail {
    let optional = |count: Option<u64>| count.map_or(-1.0, |count| count as f64);
    let us = |nanoseconds: u64| microseconds(nanoseconds as f64);
    StepDetail {
        moved: (detail.backends.iter())
            .map(|backend| [us(backend.transfers), us(backend.hidden)])
            .collect(),
        stages: (detail.stages.iter())
            .flat_map(|(name, time)| {
                [
                    labels.number(name),
                    time.count as f64,
                    us(time.total),
                    us(time.own),
                    optional(time.pairs),
                    optional(time.work),
                ]
            })
            .collect(),
        path: (detail.path.iter())
            .flat_map(|(name, time)| [labels.number(name), us(*time)])
            .collect(),
        idle: idle.iter().map(|parts| flat(parts)).collect(),
    }
}

fn flat(parts: &[CauseShare]) -> Vec<f64> {
    let numbers = |part: &CauseShare| {
        [
            part.cause as f64,
            microseconds(part.time),
            part.bytes as f64,
        ]
    };
    parts.iter().flat_map(numbers).collect()
}

/// Names that many steps have, by number.
#[derive(Default)]
struct Labels {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Labels {
    fn number(&mut self, name: &str) -> f64 {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                self.numbers.insert(name.to_owned(), self.names.len());
                self.names.push(name.to_owned());
                self.names.len() - 1
            }
        };
        number as f64
    }
}
