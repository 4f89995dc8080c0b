//! Analysis of a trace: how busy the backends were, what they waited for, and the decisions of the
//! policy.
//!
//! `docs/trace-format.md` defines every number.

mod backends;
mod course;
mod facts;
mod findings;
mod gaps;
mod intervals;
mod markdown;
mod once;
mod outside;
mod path;
mod phrases;
mod pieces;
mod run;
mod settled;
mod split;
mod stages;
mod statistics;
mod summary;
mod text;
mod verdict;
mod words;

pub use course::Course;
pub use gaps::Reason;
pub use markdown::Markdown;
pub use stages::Stage;
pub use statistics::Spread;
pub(crate) use statistics::ms;
pub use summary::{
    Backend, CauseKind, Clock, Finding, IdleFor, Outside, PathPart, SettledSteps, SlowStep,
    StepRow, Summary, TimedBy,
};

pub(crate) use backends::BackendTimes;
pub(crate) use gaps::{Cause, CauseShare, Gap, Gaps};
pub(crate) use intervals::DisjointIntervals;
pub(crate) use phrases::{digits, idle_for};
pub(crate) use run::{Activity, Run, RunStep, Source};
pub(crate) use stages::{StageTimes, stage_name};
pub(crate) use statistics::median;

use facts::Facts;
use intervals::{increase, total};
use nearfield_trace::{
    Error, ErrorKind, Trace,
    model::{Machine, Retune, Theta},
    ranks::is_gpu,
};
use settled::Settled;
use std::collections::{BTreeMap, HashSet};

/// An analysed trace.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The whole.
    pub summary: Summary,
    /// Every step.
    pub rows: Vec<StepRow>,
    pub(crate) run: Run,
    pub(crate) gaps: Gaps,
    /// Parts that the page sums up again for selected steps.
    pub(crate) details: Vec<Detail>,
}

/// A step's parts, nanoseconds.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) backends: Vec<BackendTimes>,
    pub(crate) stages: StageTimes,
    pub(crate) path: BTreeMap<String, u64>,
}

impl<'a> Analysis<'a> {
    /// Analyses a trace.
    ///
    /// # Errors
    /// [`ErrorKind::Empty`] when it holds no step and no stage.
    pub fn of(trace: &'a Trace) -> Result<Self, Error> {
        let run = Run::of(trace);
        if run.steps.is_empty() {
            let name = trace.name.clone();
            return Err(ErrorKind::Empty { name }.into());
        }
        let stages = stages::by_step(trace, &run);
        let gaps = Gaps::of(trace, &run);
        let mut rows = Vec::with_capacity(run.steps.len());
        let mut parts = Vec::with_capacity(run.steps.len());
        let retuned = trace.retunes.iter().filter(|one| changes(one));
        let mut sums = Sums {
            backends: vec![BackendTimes::default(); run.backends.len()],
            retuned: retuned.filter_map(|one| run.step_before(one)).collect(),
            before_exploration: (trace.retunes.iter())
                .filter(|one| one.exploration)
                .filter_map(|one| run.step_before(one))
                .collect(),
            ..Sums::default()
        };
        for step in &run.steps {
            let (row, backends, path) = sums.take(trace, &run, step);
            rows.push(row);
            parts.push((backends, path));
        }
        let summary = sums.summary(trace, &run, &gaps, &rows, &stages);
        let details = parts.into_iter().zip(stages);
        Ok(Self {
            trace,
            summary,
            rows,
            run,
            gaps,
            details: details
                .map(|((backends, path), stages)| Detail {
                    backends,
                    stages,
                    path,
                })
                .collect(),
        })
    }

    /// Names of the backends.
    pub fn backends(&self) -> impl Iterator<Item = &str> {
        self.run.backends.iter().map(|backend| &**backend)
    }
}

/// Sums over the steps.
#[derive(Default)]
struct Sums {
    backends: Vec<BackendTimes>,
    subregion_imbalances: Vec<f64>,
    path: BTreeMap<String, u64>,
    total: u64,
    no_backend: u64,
    /// Numbers of the steps after which the policy changed something.
    retuned: HashSet<u64>,
    /// Numbers of the steps before exploration steps.
    before_exploration: HashSet<u64>,
    /// The step before.
    last: Option<u64>,
}

impl Sums {
    fn take(
        &mut self,
        trace: &Trace,
        run: &Run,
        step: &run::RunStep,
    ) -> (StepRow, Vec<BackendTimes>, BTreeMap<String, u64>) {
        let backends = backends::backend_times(run, step);
        for (sum, backend) in self.backends.iter_mut().zip(&backends) {
            sum.add(backend);
        }
        self.subregion_imbalances
            .extend(backends::subregion_imbalances(run, step));
        increase(&mut self.total, step.step.time.length());
        increase(&mut self.no_backend, backends::without_backends(step));
        let mut path: BTreeMap<String, u64> = BTreeMap::new();
        for at in path::critical_path(&step.activities, run.backends.len()) {
            let activity = &step.activities[at];
            let name = activity_name(trace, run, activity);
            increase(path.entry(name).or_default(), activity.time.length());
        }
        let path_length = total(path.values().copied());
        for (name, length) in &path {
            increase(self.path.entry(name.clone()).or_default(), *length);
        }
        let subregions = || step.subregions.iter().map(|at| &trace.subregions[*at]);
        let stages = || step.spans.iter().map(|at| &trace.spans[*at]);
        let of_stages = |name: &'static str| {
            let on_backends = stages().filter(|span| run.backend_of(span).is_some());
            on_backends.filter_map(move |span| span.fields.get(name)?.count())
        };
        let sum = |sum, count| stages::add(sum, Some(count));
        let pairs = subregions().filter_map(|one| one.pairs);
        let pairs = pairs.chain(of_stages("pairs")).fold(None, sum);
        let tested = if step.subregions.is_empty() {
            of_stages("work").fold(None, sum)
        } else {
            Some(total(subregions().map(|one| one.work)))
        };
        let theta = mean_theta(subregions().filter_map(|one| Some((one.theta?, one.work))));
        let work = |cpu: bool| -> u64 {
            let of_backend = subregions().filter(|one| !cpu || one.backend == "cpu");
            total(of_backend.map(|one| one.work))
        };
        let last = self.last.replace(step.step.step);
        let row = StepRow {
            step: step.step.step,
            begin_ms: ms(step.step.time.begin()),
            ms: ms(step.step.time.length()),
            points: step.step.points,
            pairs: step.step.pairs.or(pairs),
            work: tested,
            theta: step.step.theta.or(theta),
            share: step.step.share.or_else(|| part(work(true), work(false))),
            imbalance: backends::step_imbalance(run, step),
            overlap: overlap(&backends),
            critical_path_ms: ms(path_length),
            retuned: self.retuned.contains(&step.step.step),
            exploration: last.is_some_and(|last| self.before_exploration.contains(&last)),
            backends: backends
                .iter()
                .map(|backend| [ms(backend.busy), ms(backend.waiting), ms(backend.idle)])
                .collect(),
        };
        (row, backends, path)
    }

    fn summary(
        self,
        trace: &Trace,
        run: &Run,
        gaps: &Gaps,
        rows: &[StepRow],
        stages: &[StageTimes],
    ) -> Summary {
        let on_course = || rows.iter().filter(|row| !row.exploration);
        let known = |pick: fn(&StepRow) -> Option<f64>| on_course().filter_map(pick);
        let shares: Vec<f64> = known(|row| row.share).collect();
        let thetas: Vec<f64> = known(|row| Some(row.theta?.0)).collect();
        let share = course::course(&shares, |_| 0.02);
        let theta = course::course(&thetas, |at| (0.05 * at).max(0.5));
        let path = total(self.path.values().copied());
        let extent = run.extent();
        let common = gaps.common.iter().filter(|gap| !gap.between_steps);
        let named = run.backends.iter().map(|name| name.to_string());
        let mut summary = Summary {
            verdict: String::new(),
            clock: if run.is_virtual {
                Clock::Virtual
            } else {
                Clock::Host
            },
            file: trace.name.clone(),
            program: trace.header.program.clone(),
            machine: machine(trace),
            start_unix_ms: trace.header.start_unix_ms,
            damage: missing(trace, run),
            steps: rows.len(),
            total_ms: ms(self.total),
            run_ms: ms(extent.length()),
            step_ms: Spread::of(rows.iter().map(|row| row.ms)).unwrap_or_default(),
            backends: named
                .enumerate()
                .map(|(at, name)| (name, self.backend(run, gaps, at)))
                .collect(),
            no_backend_ms: ms(self.no_backend),
            no_compute_ms: ms(total(common.map(|gap| gap.time.length()))),
            no_compute_reasons: gaps.reasons(run.backends.len()),
            shared_steps: rows.iter().filter(|row| row.imbalance.is_some()).count(),
            imbalance: mean(known(|row| row.imbalance)),
            subregion_imbalance: mean(self.subregion_imbalances.iter().copied()),
            overlap: overlap(&self.backends),
            critical_path_ms: ms(path),
            critical_path: path_parts(&self.path, path),
            stages: stages::summarize(trace, run, stages),
            beside: other_threads(trace, run),
            outside: outside::outside(trace, run),
            settle_steps: share.or(theta).and_then(|course| course.settle_steps),
            theta,
            share,
            device: device(trace),
            retunes: trace.retunes.len(),
            slowest: words::slowest(trace, run, rows, stages),
            settled: SettledSteps::default(),
            findings: Vec::new(),
            advice: Vec::new(),
        };
        judge(&mut summary, trace, run, gaps, (rows, stages));
        summary
    }

    /// The times of a backend, and what it waited for.
    fn backend(&self, run: &Run, gaps: &Gaps, at: usize) -> Backend {
        let (times, extent) = (&self.backends[at], run.extent());
        let idle_of_run = extent.length() - run.computing[at].covers(extent);
        let (reasons, is_gpu) = (gaps.reasons(at), is_gpu(&run.backends[at]));
        Backend {
            busy: ms(times.busy),
            idle: ms(times.idle),
            waiting: ms(times.waiting),
            utilisation: part(times.busy, self.total).unwrap_or(0.0),
            transfers: ms(times.transfers),
            overlap: part(times.hidden, times.transfers),
            timed_by: if run.device_timed && is_gpu {
                TimedBy::Device
            } else {
                TimedBy::Host
            },
            idle_share: part(self.total.saturating_sub(times.busy), self.total).unwrap_or(0.0),
            idle_share_of_run: part(idle_of_run, extent.length()).unwrap_or(0.0),
            idle_for: is_gpu.then(|| idle_for(&reasons)),
            reasons,
        }
    }
}

/// Adds what the numbers mean: findings, the verdict and advice.
fn judge(
    summary: &mut Summary,
    trace: &Trace,
    run: &Run,
    gaps: &Gaps,
    (rows, stages): (&[StepRow], &[StageTimes]),
) {
    let settled = Settled::of(rows, summary.share.as_ref().or(summary.theta.as_ref()));
    summary.settled = SettledSteps {
        steps: settled.steps,
        step_ms: settled.ms,
    };
    let facts = Facts {
        trace,
        run,
        gaps,
        rows,
        stages,
        settled: &settled,
        summary,
    };
    let findings = findings::find(facts);
    let verdict = verdict::verdict(facts, &findings);
    summary.verdict = verdict;
    summary.advice = findings.iter().skip(1).map(verdict::sentence).collect();
    summary.findings = findings;
}

/// Describes the parts missing from a trace, or from its analysis.
fn missing(trace: &Trace, run: &Run) -> String {
    let mut missing = Vec::new();
    if !trace.damage.is_none() {
        missing.push(trace.damage.to_string());
    }
    if run.left_out > 0 {
        let steps = run.left_out;
        missing.push(format!(
            "{steps} steps are left out, which have no virtual times"
        ));
    }
    missing.join("; ")
}

/// The machine, with the GPUs that the engine has started.
fn machine(trace: &Trace) -> Machine {
    let mut machine = trace.header.machine.clone();
    for note in &trace.notes {
        let name = match &*note.message {
            "gpu.device" => note.fields.get("gpu").map(|name| name.to_string()),
            _ => None,
        };
        machine.gpus.extend(name);
    }
    machine.gpus.sort();
    machine.gpus.dedup();
    machine
}

/// Time of stages on other threads than that of the steps; none on a virtual clock, which stages
/// do not have.
fn other_threads(trace: &Trace, run: &Run) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    let spans = trace.spans.iter().filter(|span| span.is_beside());
    for span in spans.filter(|_| !run.is_virtual) {
        *sums.entry(span.name.to_string()).or_default() += ms(span.time.length());
    }
    sums
}

/// The last note of the engine about its device.
fn device(trace: &Trace) -> Option<String> {
    let note = trace
        .notes
        .iter()
        .rev()
        .find(|note| note.message == "engine.device")?;
    let field = |name: &str| note.fields.get(name).map(|value| value.to_string());
    Some(format!(
        "{} ({}), {} threads, {}",
        field("device")?,
        field("reason")?,
        field("threads")?,
        field("simd")?
    ))
}

/// Whether a decision is not to leave things as they are.
fn changes(retune: &Retune) -> bool {
    retune.theta != retune.theta_before || retune.share != retune.share_before
}

fn path_parts(parts: &BTreeMap<String, u64>, whole: u64) -> Vec<PathPart> {
    let mut sorted: Vec<(&String, &u64)> = parts.iter().filter(|part| *part.1 > 0).collect();
    sorted.sort_by_key(|part| std::cmp::Reverse(part.1));
    sorted
        .into_iter()
        .map(|(what, length)| PathPart {
            what: what.clone(),
            ms: ms(*length),
            share: part(*length, whole).unwrap_or(0.0),
        })
        .collect()
}

/// Name of an activity: its stage, or its backend and phase.
pub(crate) fn activity_name(trace: &Trace, run: &Run, activity: &Activity) -> String {
    match (activity.source, activity.backend) {
        (Source::Stage { span } | Source::Device { span }, _) => stage_name(&trace.spans[span]),
        (Source::Subregion { .. }, Some(backend)) => {
            format!("{} {}", run.backends[backend], activity.phase.name())
        }
        (Source::Subregion { .. }, None) => activity.phase.name().to_owned(),
    }
}

fn overlap(backends: &[BackendTimes]) -> Option<f64> {
    let sum = |pick: fn(&BackendTimes) -> u64| total(backends.iter().map(pick));
    part(
        sum(|backend| backend.hidden),
        sum(|backend| backend.transfers),
    )
}

/// How much `one` is of `all`; none of nothing.
fn part(one: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| one as f64 / all as f64)
}

/// The threshold of a step: the mean over its subregions, weighted by work, because while
/// subregions switch one after the other most of them are at either end. Infinite if most of the
/// work has an infinite threshold.
fn mean_theta(subregions: impl Iterator<Item = (Theta, u64)>) -> Option<Theta> {
    let (mut sum, mut finite, mut infinite) = (0.0, 0.0, 0.0);
    for (Theta(theta), work) in subregions {
        // Subregions without work count only where none has any.
        let weight = work as f64 + f64::MIN_POSITIVE;
        if theta.is_finite() {
            (sum, finite) = (sum + theta * weight, finite + weight)
        } else {
            infinite += weight
        }
    }
    if infinite > finite {
        Some(Theta(f64::INFINITY))
    } else {
        (finite > 0.0).then(|| Theta(sum / finite))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}
