//! Texts about the slowest steps and their causes.

use super::{
    run::Run,
    stages::StageTimes,
    statistics::median,
    summary::{SlowStep, StepRow},
};
use nearfield_trace::Trace;
use std::collections::BTreeMap;

/// Most steps that are named.
const MOST: usize = 5;
/// Steps are slow from this many times the median.
const SLOW: f64 = 1.1;

/// Unusually slow steps, slowest first, each with its cause.
pub(crate) fn slowest(
    trace: &Trace,
    run: &Run,
    rows: &[StepRow],
    stages: &[StageTimes],
) -> Vec<SlowStep> {
    let Some(usual) = median(rows.iter().map(|row| row.ms)) else {
        return Vec::new();
    };
    let mut slow: Vec<usize> = (0..rows.len())
        .filter(|at| rows[*at].ms > SLOW * usual)
        .collect();
    slow.sort_by(|a, b| rows[*b].ms.total_cmp(&rows[*a].ms));
    slow.truncate(MOST);
    if slow.is_empty() {
        return Vec::new();
    }
    let habits = Habits::of(run, rows, stages);
    slow.into_iter()
        .map(|at| SlowStep {
            step: rows[at].step,
            ms: rows[at].ms,
            cause: cause(trace, run, at, &rows[at], &stages[at], &habits),
        })
        .collect()
}

/// Usual times, milliseconds per step.
struct Habits<'a> {
    stages: BTreeMap<&'a str, f64>,
    waiting: Vec<f64>,
}

impl<'a> Habits<'a> {
    fn of(run: &Run, rows: &[StepRow], stages: &'a [StageTimes]) -> Self {
        let mut each: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (name, time) in stages.iter().flatten() {
            each.entry(name).or_default().push(time.own as f64 / 1e6);
        }
        // In steps without it, a stage takes no time.
        let usual = |mut times: Vec<f64>| {
            times.resize(rows.len(), 0.0);
            median(times).unwrap_or(0.0)
        };
        let waiting = |backend: usize| median(rows.iter().map(|row| row.backends[backend][1]));
        Self {
            stages: each
                .into_iter()
                .map(|(name, times)| (name, usual(times)))
                .collect(),
            waiting: (0..run.backends.len())
                .map(|backend| waiting(backend).unwrap_or(0.0))
                .collect(),
        }
    }
}

/// The activity that exceeded its usual time most, and other facts about the step.
fn cause(
    trace: &Trace,
    run: &Run,
    at: usize,
    row: &StepRow,
    stages: &StageTimes,
    habits: &Habits<'_>,
) -> String {
    let step_name = step_span(trace, run, at);
    let mut excesses: Vec<(f64, String)> = stages
        .iter()
        .map(|(name, time)| {
            let (took, usual) = (time.own as f64 / 1e6, habits.stages[name.as_str()]);
            let what = if Some(name.as_str()) == step_name {
                format!("{took:.2} ms outside of all stages")
            } else {
                format!("{name} took {took:.2} ms")
            };
            (took - usual, format!("{what}, usually {usual:.2} ms"))
        })
        .collect();
    for backend in &run.shared_by {
        let (took, usual) = (row.backends[*backend][1], habits.waiting[*backend]);
        let name = &run.backends[*backend];
        let what = format!("the {name} backend waited {took:.2} ms, usually {usual:.2} ms");
        excesses.push((took - usual, what));
    }
    excesses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut cause = match excesses.into_iter().next() {
        Some((excess, what)) if excess > 0.0 => what,
        _ => "every stage took a little longer than usual".to_owned(),
    };
    if at == 0 {
        cause.push_str("; it is the first step, in which memory and threads are new");
    }
    let time = run.steps[at].on_host;
    let within = |moment: u64| (time.begin()..=time.end()).contains(&moment);
    if let Some(note) = trace.notes.iter().find(|note| within(note.at)) {
        cause.push_str(&format!("; {}: {}", note.level, note.message));
    }
    let before = at.checked_sub(1).map(|before| run.steps[before].step.step);
    if let Some(retune) =
        (trace.retunes.iter()).find(|one| before.is_some() && run.step_before(one) == before)
    {
        cause.push_str(&format!(
            "; it follows a decision of the policy: {}",
            retune.reason
        ));
    }
    cause
}

/// Name of the stage that is the step itself.
fn step_span<'a>(trace: &'a Trace, run: &Run, at: usize) -> Option<&'a str> {
    let step = &run.steps[at];
    let whole = step.spans.iter().map(|span| &trace.spans[*span]);
    whole
        .filter(|span| span.fields.contains_key("step"))
        .map(|span| &*span.name)
        .next()
}
