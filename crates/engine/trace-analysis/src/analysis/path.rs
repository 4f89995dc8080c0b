//! The critical path of a step: the longest chain of activities that had to wait for each other.
//!
//! These activities wait for each other:
//! * a phase of a subregion waits for its earlier phases (upload, compute, download, exchange);
//! * work on a backend's stream (uploads, computing, downloads or exchanges) waits for earlier work
//!   on that stream;
//! * computing after the first pass waits for what other backends exchanged in the pass before;
//! * a kernel or copy timed by the device waits for earlier ones of that device;
//! * everything waits for stages that ended before it began, and a stage waits for everything,
//!   because the caller's thread waits for stages.
//!
//! An activity waits only for activities that had ended when it began, so inconsistent times in a
//! trace shorten the path but never make it wrong.

use super::run::{Activity, Source};
use nearfield_trace::model::Phase;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// The longest chain up to the end of an activity.
#[derive(Debug, Clone, Copy)]
struct Chain {
    length: u64,
    last: usize,
}

/// Ends that activities wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Gate {
    /// Anything.
    All,
    /// A stage.
    Stages,
    /// A stream of a backend.
    Stream(Option<usize>, Phase),
    /// A backend's subregion in a pass, up to a phase.
    Subregion(Option<usize>, u64, u64, Phase),
    /// Exchanges of a backend in a pass.
    Exchange(Option<usize>, u64),
}

/// Indices of the activities on the critical path, first to last; `activities` are in the order of
/// their beginning. Of equally long paths one is taken.
pub(crate) fn critical_path(activities: &[Activity], backends: usize) -> Vec<usize> {
    let mut ended: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut gates: HashMap<Gate, Chain> = HashMap::new();
    let mut chains: Vec<Chain> = Vec::with_capacity(activities.len());
    let mut before: Vec<Option<usize>> = Vec::with_capacity(activities.len());
    for (at, activity) in activities.iter().enumerate() {
        while let Some(&Reverse((end, done))) = ended.peek() {
            if end > activity.time.begin() {
                break;
            }
            ended.pop();
            for gate in opened_by(&activities[done]) {
                let chain = gates.entry(gate).or_insert(chains[done]);
                if chains[done].length > chain.length {
                    *chain = chains[done];
                }
            }
        }
        let longest = waits_for(activity, backends)
            .into_iter()
            .filter_map(|gate| gates.get(&gate))
            .max_by_key(|chain| chain.length);
        before.push(longest.map(|chain| chain.last));
        chains.push(Chain {
            length: longest
                .map_or(0, |chain| chain.length)
                .saturating_add(activity.time.length()),
            last: at,
        });
        ended.push(Reverse((activity.time.end(), at)));
    }
    let last = chains.iter().max_by_key(|chain| chain.length);
    let mut path: Vec<usize> =
        std::iter::successors(last.map(|chain| chain.last), |at| before[*at]).collect();
    path.reverse();
    path
}

fn opened_by(activity: &Activity) -> Vec<Gate> {
    let (backend, phase) = (activity.backend, activity.phase);
    match activity.source {
        Source::Stage { .. } => vec![Gate::All, Gate::Stages],
        Source::Device { .. } => vec![Gate::All, Gate::Stream(backend, phase)],
        Source::Subregion { number, pass } => {
            let mut gates = vec![
                Gate::All,
                Gate::Stream(backend, phase),
                Gate::Subregion(backend, number, pass, phase),
            ];
            if phase == Phase::Exchange {
                gates.push(Gate::Exchange(backend, pass));
            }
            gates
        }
    }
}

fn waits_for(activity: &Activity, backends: usize) -> Vec<Gate> {
    let (backend, phase) = (activity.backend, activity.phase);
    let (number, pass) = match activity.source {
        Source::Subregion { number, pass } => (number, pass),
        Source::Stage { .. } => return vec![Gate::All],
        Source::Device { .. } => {
            let streams = Phase::ALL.map(|phase| Gate::Stream(backend, phase));
            return streams.into_iter().chain([Gate::Stages]).collect();
        }
    };
    let mut gates = vec![Gate::Stages, Gate::Stream(backend, phase)];
    let earlier = Phase::ALL.into_iter().filter(|other| *other < phase);
    gates.extend(earlier.map(|other| Gate::Subregion(backend, number, pass, other)));
    if let (Phase::Compute, Some(last)) = (phase, pass.checked_sub(1)) {
        let others = (0..backends).map(Some).filter(|other| *other != backend);
        gates.extend(others.map(|other| Gate::Exchange(other, last)));
    }
    gates
}
