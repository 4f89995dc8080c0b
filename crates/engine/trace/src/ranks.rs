//! Ranks in traces: their names, and ranks that are threads of one program.
//!
//! A rank is a backend. Its work on the CPU is the computing of that backend, and waiting for
//! messages of the halo is its exchange. The GPU of a rank is another backend.
//!
//! Ranks that are threads write one trace, in which stages of several ranks overlap. Counted as
//! stages of one program they would count the same time several times. So reading a trace separates
//! them by the names of their threads, `rank 0` and so on.

use crate::model::{Interval, Phase, Span, Step, Subregion, Text};
use std::collections::{BTreeMap, HashMap};

/// The stage in which a rank waits for messages of the halo.
const HALO: &str = "ranks.wait";

/// The rank that a thread is named after.
pub fn named(thread: &str) -> Option<u32> {
    thread.strip_prefix("rank ")?.parse().ok()
}

/// Whether a backend is a GPU, of a rank or of a program without ranks.
pub fn is_gpu(backend: &str) -> bool {
    backend == "gpu"
        || backend
            .strip_prefix("rank ")
            .is_some_and(|rank| rank.ends_with(" gpu"))
}

/// The backend of a rank. A name that already includes a rank is kept.
fn backend(rank: u32, backend: &str) -> Text {
    let first = backend
        .strip_prefix("rank ")
        .and_then(|rest| rest.split(' ').next());
    match backend {
        _ if first.is_some_and(|number| number.parse::<u32>().is_ok()) => backend.to_owned().into(),
        "cpu" => format!("rank {rank}").into(),
        other => format!("rank {rank} {other}").into(),
    }
}

/// Gives a stage to a rank.
pub fn assign_span(span: &mut Span, rank: u32) {
    if span.name == HALO {
        (span.backend, span.phase) = (Some("cpu".into()), Phase::Exchange);
    }
    if let Some(of) = &mut span.backend {
        *of = backend(rank, of);
    }
}

/// Gives the figures of a subregion to a rank.
pub fn assign_subregion(one: &mut Subregion, rank: u32) {
    one.backend = backend(rank, &one.backend);
}

/// Ranks by the ids of stages: the rank of the thread, or else of an inner stage.
pub fn of_spans(spans: &[Span]) -> HashMap<u64, u32> {
    let by_thread = |span: &Span| Some((span.id, named(&span.thread)?));
    let mut ranks: HashMap<u64, u32> = spans.iter().filter_map(by_thread).collect();
    if ranks.is_empty() {
        return ranks;
    }
    // A stage is written when it ends, so after its inner stages.
    for span in spans.iter().rev() {
        if let Some(rank) = ranks.get(&span.parent).copied() {
            ranks.entry(span.id).or_insert(rank);
        }
    }
    ranks
}

/// Tells ranks apart that are threads of one program; a trace of another one stays as it is.
pub(crate) fn tell_apart(spans: &mut [Span], steps: &mut Vec<Step>, subregions: &mut [Subregion]) {
    let ranks = of_spans(spans);
    if ranks.is_empty() {
        return;
    }
    for span in spans {
        if let Some(rank) = ranks.get(&span.id) {
            assign_span(span, *rank);
        }
    }
    for one in subregions {
        if let Some(rank) = one.rank {
            assign_subregion(one, rank);
        }
    }
    *steps = joint_steps(steps.drain(..));
}

/// Steps that all ranks made together: from the first beginning to the last end, or to the
/// beginning of the next one, so that no moment counts twice.
pub fn joint_steps(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut whole: BTreeMap<u64, Step> = BTreeMap::new();
    for step in steps {
        let known = whole.entry(step.step).or_insert_with(|| step.clone());
        known.time = Interval::new(
            known.time.begin().min(step.time.begin()),
            known.time.end().max(step.time.end()),
        );
        known.points = known.points.max(step.points);
    }
    let mut steps: Vec<Step> = whole.into_values().collect();
    for at in 1..steps.len() {
        let next = steps[at].time.begin();
        let time = steps[at - 1].time;
        steps[at - 1].time = Interval::new(time.begin(), time.end().min(next));
    }
    steps
}
