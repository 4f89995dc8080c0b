//! Times of backends in a step: busy, waiting, idle.

use super::{
    intervals::{DisjointIntervals, clip, increase},
    run::{Activity, Run, RunStep, Source},
    statistics::ms,
};
use nearfield_trace::model::{Interval, Phase};
use std::collections::BTreeMap;

/// A backend's time in a step or in all steps, nanoseconds; busy, waiting and idle make up the
/// whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BackendTimes {
    /// Computing.
    pub(crate) busy: u64,
    /// Not computing between its first activity and its last.
    pub(crate) waiting: u64,
    /// Before its first activity and after its last.
    pub(crate) idle: u64,
    /// Moving data, each transfer counted.
    pub(crate) transfers: u64,
    /// Of that, while the backend computed.
    pub(crate) hidden: u64,
}

impl BackendTimes {
    pub(crate) fn add(&mut self, other: &Self) {
        increase(&mut self.busy, other.busy);
        increase(&mut self.waiting, other.waiting);
        increase(&mut self.idle, other.idle);
        increase(&mut self.transfers, other.transfers);
        increase(&mut self.hidden, other.hidden);
    }
}

/// Every backend's times in a step.
pub(crate) fn backend_times(run: &Run, step: &RunStep) -> Vec<BackendTimes> {
    (0..run.backends.len())
        .map(|backend| times_of(run, step, backend))
        .collect()
}

fn times_of(run: &Run, step: &RunStep, backend: usize) -> BackendTimes {
    let whole = step.step.time;
    let (computing, active) = (&run.computing[backend], &run.active[backend]);
    let busy = computing.covers(whole);
    let mut present = active.within(whole);
    let first = present.next();
    let present = first.map_or(0, |first| {
        let last = present.last().unwrap_or(first);
        clip(Interval::new(first.begin(), last.end()), whole).length()
    });
    let mut times = BackendTimes {
        busy,
        waiting: present - busy,
        idle: whole.length() - present,
        ..BackendTimes::default()
    };
    let own = |one: &&Activity| one.backend == Some(backend) && run.counts(one);
    for activity in step.activities.iter().filter(own) {
        if activity.phase.is_transfer() {
            let time = clip(activity.time, whole);
            increase(&mut times.transfers, time.length());
            increase(&mut times.hidden, computing.covers(time));
        }
    }
    times
}

/// Time of a step in which no backend did anything.
pub(crate) fn without_backends(step: &RunStep) -> u64 {
    let whole = step.step.time;
    let of_backends = step.activities.iter().filter(|one| one.backend.is_some());
    whole.length() - DisjointIntervals::of(of_backends.map(|one| clip(one.time, whole))).length()
}

/// Imbalance (t_slow − t_fast) / t_slow of a step between the backends that share subregions, over
/// all its passes; none without two of them. t is from a backend's first upload to its last
/// result.
pub(crate) fn step_imbalance(run: &Run, step: &RunStep) -> Option<f64> {
    let passes = extents(step, |_, pass| pass);
    imbalance(run, passes.values())
}

/// Milliseconds of each backend from its first upload to its last result, over all passes of a
/// step.
pub(crate) fn times_to_the_end(run: &Run, step: &RunStep) -> Vec<f64> {
    let mut times = vec![0.0; run.backends.len()];
    for pass in extents(step, |_, pass| pass).values() {
        for (backend, extent) in pass {
            times[*backend] += ms(extent.length());
        }
    }
    times
}

/// Imbalance of every subregion in every pass of a step.
pub(crate) fn subregion_imbalances(run: &Run, step: &RunStep) -> Vec<f64> {
    extents(step, |number, pass| (number, pass))
        .values()
        .filter_map(|backends| imbalance(run, [backends]))
        .collect()
}

/// From first upload to last result, by backend.
type ByBackend = BTreeMap<usize, Interval>;

fn extents<K: Ord>(step: &RunStep, key: impl Fn(u64, u64) -> K) -> BTreeMap<K, ByBackend> {
    let mut extents: BTreeMap<K, ByBackend> = BTreeMap::new();
    for activity in &step.activities {
        let (Some(backend), Source::Subregion { number, pass }) =
            (activity.backend, activity.source)
        else {
            continue;
        };
        // Handing results over comes after the last of them.
        if activity.phase == Phase::Exchange {
            continue;
        }
        let time = activity.time;
        let backends = extents.entry(key(number, pass)).or_default();
        let extent = backends.entry(backend).or_insert(time);
        let begin = extent.begin().min(time.begin());
        *extent = Interval::new(begin, extent.end().max(time.end()));
    }
    extents
}

fn imbalance<'a>(run: &Run, groups: impl IntoIterator<Item = &'a ByBackend>) -> Option<f64> {
    let backends = run.shared_by.len();
    if backends < 2 {
        return None;
    }
    let (mut slow, mut apart) = (0, 0);
    for group in groups {
        let times = || group.values().map(|extent| extent.length());
        let slowest = times().max().unwrap_or(0);
        // A backend that had nothing to do was ready at once.
        let fastest = if group.len() < backends {
            0
        } else {
            times().min().unwrap_or(0)
        };
        increase(&mut slow, slowest);
        increase(&mut apart, slowest - fastest);
    }
    (slow > 0).then(|| apart as f64 / slow as f64)
}
