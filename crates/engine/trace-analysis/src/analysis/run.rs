//! Divides a trace into steps, each with the activities of its backends and of the caller's thread.
//!
//! Steps are those that the program marked. Without any, a step begins at the first update of
//! positions after a search or a traversal. Where steps are marked, jobs outside of all of them
//! count in none.
//!
//! Two kinds of traces are not taken as they stand:
//! * Where a device timed kernels itself, these and its copies say when the GPU worked. Other spans
//!   named `gpu.*` cover the same work from the host's side, queueing and waiting included, and
//!   count as stages of the host.
//! * Times of an emulated device are virtual. Only they count then: the jobs of a step follow each
//!   other without a break, and the steps too.

use super::intervals::{DisjointIntervals, clip};
use nearfield_trace::{
    Trace,
    model::{Interval, Phase, Retune, Span, Step, Subregion, Text},
    ranks::is_gpu,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A trace by steps.
#[derive(Debug)]
pub(crate) struct Run {
    /// Names of the backends, the CPU first.
    pub(crate) backends: Vec<Text>,
    /// Backends that subregions were given to.
    pub(crate) shared_by: Vec<usize>,
    pub(crate) steps: Vec<RunStep>,
    /// Indices of the stages that began in no step.
    pub(crate) outside: Vec<usize>,
    /// Indices of the subregions of jobs outside of all steps.
    pub(crate) outside_subregions: Vec<usize>,
    /// Activities there; on a virtual clock behind the last step.
    pub(crate) outside_activities: Vec<Activity>,
    /// Whether steps follow from the calls of the engine, because the program marked none.
    is_implied: bool,
    /// When each backend computed.
    pub(crate) computing: Vec<DisjointIntervals>,
    /// When each backend computed or moved data.
    pub(crate) active: Vec<DisjointIntervals>,
    /// Whether the device timed its kernels itself.
    pub(crate) device_timed: bool,
    /// True if all times come from the virtual clock of an emulated device.
    pub(crate) is_virtual: bool,
    /// Number of steps that are left out because they have no virtual times.
    pub(crate) left_out: usize,
}

/// A step with its activities and spans.
#[derive(Debug)]
pub(crate) struct RunStep {
    pub(crate) step: Step,
    /// When it was on the host's clock.
    pub(crate) on_host: Interval,
    /// Indices of the stages that began in it, in the order of their beginning.
    pub(crate) spans: Vec<usize>,
    /// Indices of its subregions.
    pub(crate) subregions: Vec<usize>,
    /// Activities, in the order of their beginning.
    pub(crate) activities: Vec<Activity>,
}

/// An interval of time in which a backend or the caller's thread did one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Activity {
    /// Which of the backends; none for the caller's thread.
    pub(crate) backend: Option<usize>,
    pub(crate) phase: Phase,
    pub(crate) time: Interval,
    pub(crate) source: Source,
}

/// Record that an activity was made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source {
    /// A stage with none inside: the caller waits for it.
    Stage { span: usize },
    /// A kernel or a copy that the device timed.
    Device { span: usize },
    /// A phase of a subregion, by number and pass.
    Subregion { number: u64, pass: u64 },
}

impl Run {
    pub(crate) fn of(trace: &Trace) -> Self {
        let backends = backends(trace);
        let mut steps: Vec<RunStep> = steps(trace).into_iter().map(RunStep::empty).collect();
        steps.sort_by_key(|step| step.step.time);
        let mut run = Self {
            shared_by: (0..backends.len())
                .filter(|backend| {
                    trace
                        .subregions
                        .iter()
                        .any(|one| one.backend == backends[*backend])
                })
                .collect(),
            steps,
            outside: Vec::new(),
            outside_subregions: Vec::new(),
            outside_activities: Vec::new(),
            is_implied: trace.steps.is_empty(),
            computing: Vec::new(),
            active: Vec::new(),
            device_timed: trace.spans.iter().any(|span| span.name == "gpu.kernel"),
            is_virtual: trace.subregions.iter().any(Subregion::is_virtual),
            left_out: 0,
            backends,
        };
        run.place_subregions(trace);
        if run.is_virtual {
            run.go_virtual(trace);
        } else {
            run.place_spans(trace);
            run.find_activities(trace);
        }
        run.find_times(trace);
        run
    }

    /// From the first step's beginning to the last one's end.
    pub(crate) fn extent(&self) -> Interval {
        let begin = self.steps.first().map_or(0, |step| step.step.time.begin());
        let ends = self.steps.iter().map(|step| step.step.time.end());
        Interval::new(begin, ends.max().unwrap_or(begin))
    }

    /// The backend that a stage kept busy; none for work of the host itself.
    pub(crate) fn backend_of(&self, span: &Span) -> Option<usize> {
        let backend = lane_index(&self.backends, span.backend.as_ref()?)?;
        let by_host = self.device_timed && !span.is_device_timed();
        (!by_host || !is_gpu(&self.backends[backend])).then_some(backend)
    }

    /// Whether an activity says when its backend was busy.
    pub(crate) fn counts(&self, activity: &Activity) -> bool {
        match (activity.backend, activity.source) {
            (None, _) => false,
            (_, Source::Device { .. }) => true,
            (Some(backend), _) => !self.device_timed || !is_gpu(&self.backends[backend]),
        }
    }

    /// A moment of the host's clock on the clock of the analysis.
    pub(crate) fn moment(&self, at: u64) -> u64 {
        let begun = |step: &RunStep| step.on_host.begin() <= at;
        match self.steps[..self.steps.partition_point(begun)].last() {
            Some(step) if self.is_virtual => {
                let time = step.step.time;
                let since = at - step.on_host.begin();
                time.begin().saturating_add(since).min(time.end())
            }
            _ => at,
        }
    }

    fn place_spans(&mut self, trace: &Trace) {
        for (at, span) in trace.spans.iter().enumerate() {
            if span.is_beside() {
                continue;
            }
            let step = if span.is_device_timed() {
                self.step_of_most(span.time)
            } else {
                self.step_at(span.time.begin())
            };
            match step {
                Some(step) => self.steps[step].spans.push(at),
                None => self.outside.push(at),
            }
        }
        for step in &mut self.steps {
            step.spans.sort_by_key(|at| trace.spans[*at].time.begin());
        }
    }

    /// The step that contains most of an interval, which may reach into the next step: a device's
    /// clock may be slightly off, and its work may still run when the host begins the next step.
    fn step_of_most(&self, time: Interval) -> Option<usize> {
        let begun = |step: &RunStep| step.step.time.begin() <= time.begin();
        let next = self.steps.partition_point(begun);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten();
        let common = |step: &usize| clip(time, self.steps[*step].step.time).length();
        near.filter(|step| *step < self.steps.len() && common(step) > 0)
            .max_by_key(common)
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
            let begin = subregion.origin.or(begin);
            let Some(number) = subregion.step else {
                match begin.and_then(|begin| self.implied_step(begin)) {
                    Some(step) => self.steps[step].subregions.push(at),
                    None => self.outside_subregions.push(at),
                }
                continue;
            };
            // A virtual clock may place it after the step that it belongs to.
            let by_time = begin
                .and_then(|begin| self.step_at(begin))
                .filter(|step| self.steps[*step].step.step == number);
            if let Some(step) = by_time.or_else(|| by_number.get(&number).copied()) {
                self.steps[step].subregions.push(at);
            }
        }
    }

    /// Where steps follow from the engine's calls, the last one that had begun at a moment.
    fn implied_step(&self, at: u64) -> Option<usize> {
        let begun = |step: &RunStep| step.on_host.begin() <= at;
        let last = self.steps.partition_point(begun).checked_sub(1);
        last.filter(|_| self.is_implied)
    }

    /// Number of the step that a decision of the policy was made after; none after a job outside
    /// of all steps.
    pub(crate) fn step_before(&self, retune: &Retune) -> Option<u64> {
        let implied = || Some(self.steps[self.implied_step(retune.at)?].step.step);
        retune.step.or_else(implied)
    }

    /// The step that goes on at a moment.
    fn step_at(&self, at: u64) -> Option<usize> {
        let after = self
            .steps
            .partition_point(|step| step.step.time.begin() <= at);
        let step = after.checked_sub(1)?;
        let time = self.steps[step].step.time;
        (at < time.end() || at == time.begin()).then_some(step)
    }

    /// Replaces the times of steps by those of the virtual clock.
    fn go_virtual(&mut self, trace: &Trace) {
        let mut now = self.extent().begin();
        for step in &mut self.steps {
            let begin = now;
            (step.activities, now) = virtual_jobs(trace, &self.backends, &step.subregions, begin);
            step.sort();
            step.step.time = Interval::new(begin, now);
        }
        let outside = virtual_jobs(trace, &self.backends, &self.outside_subregions, now);
        self.outside_activities = outside.0;
        let all = self.steps.len();
        self.steps.retain(|step| step.step.time.length() > 0);
        self.left_out = all - self.steps.len();
    }

    fn find_activities(&mut self, trace: &Trace) {
        let parents = parents(trace);
        let mut steps = std::mem::take(&mut self.steps);
        for step in &mut steps {
            let of = step.subregions.iter().map(|at| &trace.subregions[*at]);
            let shared: Vec<Activity> = of
                .flat_map(|one| phases_of(one, one.pass, &self.backends))
                .collect();
            let busy = DisjointIntervals::of(shared.iter().map(|activity| activity.time));
            // A stage around subregions is represented by them.
            let leaves = step.spans.iter().copied().filter(|at| {
                let span = &trace.spans[*at];
                span.is_device_timed()
                    || (!parents.contains(&span.id) && busy.covers(span.time) == 0)
            });
            step.activities = leaves
                .map(|span| self.stage_activity(&trace.spans[span], span))
                .chain(shared.iter().copied())
                .collect();
            step.sort();
            step.extend();
        }
        self.steps = steps;
    }

    fn stage_activity(&self, span: &Span, at: usize) -> Activity {
        Activity {
            backend: self.backend_of(span),
            phase: span.phase,
            time: span.time,
            source: if span.is_device_timed() {
                Source::Device { span: at }
            } else {
                Source::Stage { span: at }
            },
        }
    }

    /// Finds when backends computed and moved data, in steps and between them.
    fn find_times(&mut self, trace: &Trace) {
        let parents = parents(trace);
        if !self.is_virtual {
            let subregions = self.outside_subregions.iter();
            let shared: Vec<Activity> = subregions
                .map(|at| &trace.subregions[*at])
                .flat_map(|one| phases_of(one, one.pass, &self.backends))
                .collect();
            let busy = DisjointIntervals::of(shared.iter().map(|activity| activity.time));
            let stages = self.outside.iter().map(|at| (*at, &trace.spans[*at]));
            let outside = stages
                .filter(|(_, span)| !parents.contains(&span.id) && busy.covers(span.time) == 0)
                .map(|(at, span)| self.stage_activity(span, at));
            self.outside_activities = outside.chain(shared.iter().copied()).collect();
        }
        let in_steps = self.steps.iter().flat_map(|step| &step.activities);
        let counted: Vec<&Activity> = in_steps
            .chain(&self.outside_activities)
            .filter(|activity| self.counts(activity))
            .collect();
        let of_backend = |backend: usize, any: bool| {
            let own = counted
                .iter()
                .filter(move |one| one.backend == Some(backend));
            let own = own.filter(move |one| any || one.phase == Phase::Compute);
            DisjointIntervals::of(own.map(|one| one.time))
        };
        let backends = 0..self.backends.len();
        let (computing, active) = backends
            .map(|backend| (of_backend(backend, false), of_backend(backend, true)))
            .unzip();
        (self.computing, self.active) = (computing, active);
    }
}

/// Activities of backends for subregions on the virtual clock, jobs one after the other from
/// `begin` on, and the end of the last one.
fn virtual_jobs(
    trace: &Trace,
    backends: &[Text],
    subregions: &[usize],
    begin: u64,
) -> (Vec<Activity>, u64) {
    let jobs = Jobs::of(trace, subregions);
    let mut now = begin;
    let starts: HashMap<u64, u64> = (jobs.lengths.iter())
        .map(|(job, length)| {
            let start = now;
            now = now.saturating_add(*length);
            (*job, start)
        })
        .collect();
    let mut all = Vec::new();
    let subregions = subregions.iter().map(|at| &trace.subregions[*at]);
    for one in subregions.filter(|one| one.is_virtual()) {
        let (start, origin) = (starts.get(&one.job).copied(), origin_of(one));
        let start = start.unwrap_or(begin);
        let moved = |at: u64| start.saturating_add(at.saturating_sub(origin));
        let activities = phases_of(one, jobs.pass(one), backends);
        all.extend(activities.map(|activity| Activity {
            time: Interval::new(moved(activity.time.begin()), moved(activity.time.end())),
            ..activity
        }));
    }
    (all, now)
}

/// The spans that others are part of.
pub(crate) fn parents(trace: &Trace) -> HashSet<u64> {
    trace.spans.iter().map(|span| span.parent).collect()
}

/// The jobs of a step on a virtual clock.
struct Jobs {
    /// How long each took.
    lengths: BTreeMap<u64, u64>,
    /// Their passes, in turn.
    passes: Vec<(u64, u64)>,
}

impl Jobs {
    fn of(trace: &Trace, subregions: &[usize]) -> Self {
        let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
        let mut passes = BTreeSet::new();
        let subregions = subregions.iter().map(|at| &trace.subregions[*at]);
        for one in subregions.filter(|one| one.is_virtual()) {
            let origin = origin_of(one);
            let phases = Phase::ALL.iter().filter_map(|phase| one.phase(*phase));
            let end = phases.map(Interval::end).fold(origin, u64::max);
            let length = lengths.entry(one.job).or_default();
            *length = (*length).max(end - origin);
            passes.insert((one.job, one.pass));
        }
        Self {
            lengths,
            passes: passes.into_iter().collect(),
        }
    }

    /// Number of a subregion's pass within the step.
    fn pass(&self, one: &Subregion) -> u64 {
        let key = (one.job, one.pass);
        self.passes.partition_point(|pass| *pass < key) as u64
    }
}

/// The moment that the times of a subregion count from.
fn origin_of(one: &Subregion) -> u64 {
    let phases = Phase::ALL.iter().filter_map(|phase| one.phase(*phase));
    let first = phases.map(Interval::begin).min().unwrap_or(0);
    one.origin.map_or(first, |origin| origin.min(first))
}

impl RunStep {
    fn empty(step: Step) -> Self {
        Self {
            on_host: step.time,
            step,
            spans: Vec::new(),
            subregions: Vec::new(),
            activities: Vec::new(),
        }
    }

    fn sort(&mut self) {
        self.activities
            .sort_by_key(|activity| (activity.time, activity.phase));
    }

    /// Extends the step until everything in it has ended, except for later work of a device.
    fn extend(&mut self) {
        let waited = self
            .activities
            .iter()
            .filter(|activity| !matches!(activity.source, Source::Device { .. }));
        let ends = waited.map(|activity| activity.time.end());
        let time = self.step.time;
        self.step.time = Interval::new(time.begin(), ends.fold(time.end(), u64::max));
    }
}

/// The backends of a trace, the CPU first and the others by name.
fn backends(trace: &Trace) -> Vec<Text> {
    let of_spans = trace.spans.iter().filter_map(|span| span.backend.clone());
    let of_subregions = trace.subregions.iter().map(|one| one.backend.clone());
    let names: BTreeSet<Text> = of_spans.chain(of_subregions).collect();
    let (mut first, others): (Vec<Text>, Vec<Text>) =
        names.into_iter().partition(|name| name == "cpu");
    first.extend(others);
    first
}

fn lane_index(backends: &[Text], name: &str) -> Option<usize> {
    backends.iter().position(|backend| backend == name)
}

/// Activities of a backend for a subregion.
fn phases_of(one: &Subregion, pass: u64, backends: &[Text]) -> impl Iterator<Item = Activity> {
    let backend = lane_index(backends, &one.backend);
    let source = Source::Subregion {
        number: one.subregion,
        pass,
    };
    Phase::ALL.into_iter().filter_map(move |phase| {
        Some(Activity {
            backend,
            phase,
            time: one.phase(phase)?,
            source,
        })
    })
}

/// The steps that the program marked, or those that its calls of the engine make.
fn steps(trace: &Trace) -> Vec<Step> {
    if trace.steps.is_empty() {
        implied_steps(&trace.spans)
    } else {
        trace.steps.clone()
    }
}

fn implied_steps(spans: &[Span]) -> Vec<Step> {
    let mut calls: Vec<&Span> = spans
        .iter()
        .filter(|span| span.parent == 0 && !span.is_device_timed())
        .collect();
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
