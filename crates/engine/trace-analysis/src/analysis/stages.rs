//! The cost of stages.

use super::{
    intervals::{DisjointIntervals, increase},
    pieces::{own_times, pieces},
    run::{Run, RunStep, Source},
    statistics::Spread,
};
use nearfield_trace::{
    Trace,
    model::{Phase, Span, Value},
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Cost of a stage over all steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The backend that it kept busy; none for the caller's thread.
    pub backend: Option<String>,
    /// How often it ran.
    pub count: u64,
    /// Milliseconds together.
    pub total_ms: f64,
    /// Of that, outside of the stages within it, and shared among those that ran side by side.
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
    pub(crate) count: u64,
    pub(crate) pairs: Option<u64>,
    pub(crate) work: Option<u64>,
}

/// Stages of a step by name.
pub(crate) type StageTimes = BTreeMap<String, StageTime>;

/// The name of a stage, with that of its kernel, or with what it copies or waits for:
/// `engine.traverse (Forces)`, `host.copy (particles)`.
pub(crate) fn stage_name(span: &Span) -> String {
    if let Some(kernel) = span.text("kernel") {
        let plain = kernel.split('<').next().unwrap_or(kernel);
        let short = plain.rsplit("::").next().unwrap_or(plain);
        return format!("{} ({short})", span.name);
    }
    match (&*span.name, span.text("what")) {
        ("host.copy" | "host.wait" | "gpu.copy" | "gpu.exchange", Some(what)) => {
            format!("{} ({what})", span.name)
        }
        _ => span.name.to_string(),
    }
}

/// The name under which a backend's subregions are summed up: `gpu.upload (subregions)`.
fn subregion_name(backend: &str, phase: Phase) -> String {
    format!("{backend}.{} (subregions)", phase.name())
}

/// Cost of every stage in every step.
pub(crate) fn by_step(trace: &Trace, run: &Run) -> Vec<StageTimes> {
    let stage_times = |step: &RunStep| {
        let mut times = StageTimes::new();
        let own = own_of_spans(trace, run, step);
        for at in &step.spans {
            let span = &trace.spans[*at];
            let count = |name: &str| span.fields.get(name).and_then(Value::count);
            times.entry(stage_name(span)).or_default().add(&StageTime {
                total: span.time.length(),
                own: own.get(at).map_or(0, |own| *own as u64),
                count: 1,
                pairs: count("pairs"),
                work: count("work"),
            });
        }
        for (backend, phase) in streams(run) {
            let told = |at: &&usize| *trace.subregions[**at].backend == *run.backends[backend];
            let of_backend = step.subregions.iter().filter(told);
            let name = subregion_name(&run.backends[backend], phase);
            let mut sum = StageTime::default();
            for one in of_backend.map(|at| &trace.subregions[*at]) {
                let computes = phase == Phase::Compute;
                let Some(time) = one
                    .phase(phase)
                    .filter(|_| !run.is_virtual || one.is_virtual())
                else {
                    continue;
                };
                sum.add(&StageTime {
                    total: time.length(),
                    own: 0,
                    count: 1,
                    pairs: one.pairs.filter(|_| computes),
                    work: computes.then_some(one.work),
                });
            }
            if sum.count > 0 {
                sum.own = of_subregions(step, backend, phase).length();
                times.insert(name, sum);
            }
        }
        times
    };
    run.steps.iter().map(stage_times).collect()
}

/// Computing of backends side by side.
fn streams(run: &Run) -> impl Iterator<Item = (usize, Phase)> {
    (0..run.backends.len()).flat_map(|backend| Phase::ALL.map(|phase| (backend, phase)))
}

/// When a backend was in a phase of any of its subregions.
fn of_subregions(step: &RunStep, backend: usize, phase: Phase) -> DisjointIntervals {
    let of_backend = step.activities.iter().filter(|activity| {
        let is_subregion = matches!(activity.source, Source::Subregion { .. });
        is_subregion && (activity.backend, activity.phase) == (Some(backend), phase)
    });
    DisjointIntervals::of(of_backend.map(|activity| activity.time))
}

/// The own time of a step's stages, nanoseconds: of the host, of each backend and of each of a
/// device's streams at most the time that passed.
fn own_of_spans(trace: &Trace, run: &Run, step: &RunStep) -> HashMap<usize, f64> {
    let mut own = HashMap::new();
    let (timed, hosted): (Vec<usize>, Vec<usize>) =
        (step.spans.iter()).partition(|at| trace.spans[**at].is_device_timed());
    for phase in Phase::ALL {
        let stream = timed
            .iter()
            .copied()
            .filter(|at| trace.spans[*at].phase == phase);
        own_times(
            &pieces(trace, stream),
            &DisjointIntervals::default(),
            <[usize]>::to_vec,
            &mut own,
        );
    }
    let hosted = pieces(trace, hosted);
    let backend = |at: &usize| run.backend_of(&trace.spans[*at]);
    // A stage of the caller's thread around subregions, or during those of a backend with its own
    // thread, waits for the backends.
    let shared = |backends: &[usize]| {
        let of_backends = step.activities.iter().filter(|activity| {
            let is_subregion = matches!(activity.source, Source::Subregion { .. });
            is_subregion
                && activity
                    .backend
                    .is_some_and(|backend| backends.contains(&backend))
        });
        DisjointIntervals::of(of_backends.map(|activity| activity.time))
    };
    let apart = |at: &usize| backend(at).is_some() && trace.spans[*at].parent == 0;
    let of_host = |open: &[usize]| {
        let waits = open.iter().any(apart);
        open.iter()
            .copied()
            .filter(|at| !waits && backend(at).is_none())
            .collect()
    };
    let backends: Vec<usize> = (0..run.backends.len()).collect();
    own_times(&hosted, &shared(&backends), of_host, &mut own);
    for of in backends {
        let of_backend = |open: &[usize]| {
            open.iter()
                .copied()
                .filter(|at| backend(at) == Some(of))
                .collect()
        };
        own_times(&hosted, &shared(&[of]), of_backend, &mut own);
    }
    own
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

/// The sum of the known values.
pub(crate) fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

/// Stages over all steps.
pub(crate) fn summarize(trace: &Trace, run: &Run, steps: &[StageTimes]) -> BTreeMap<String, Stage> {
    let mut backends: HashMap<String, Option<String>> = HashMap::new();
    for span in &trace.spans {
        let backend = run
            .backend_of(span)
            .map(|backend| run.backends[backend].to_string());
        backends.entry(stage_name(span)).or_insert(backend);
    }
    let mut all: BTreeMap<&str, (StageTime, Vec<f64>)> = BTreeMap::new();
    for (name, time) in steps.iter().flatten() {
        let (sum, each) = all.entry(name).or_default();
        sum.add(time);
        each.push(time.total as f64 / 1e6);
    }
    all.into_iter()
        .map(|(name, (sum, each))| {
            let of_subregions = name.split_once(".").map(|(backend, _)| backend.to_owned());
            let total_ms = sum.total as f64 / 1e6;
            let per_million = |count: Option<u64>| {
                let count = count.filter(|count| *count > 0)?;
                Some(total_ms / (count as f64 / 1e6))
            };
            let stage = Stage {
                backend: backends.get(name).cloned().unwrap_or(of_subregions),
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
