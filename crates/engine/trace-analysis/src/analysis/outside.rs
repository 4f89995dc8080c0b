//! Work of the engine outside of all marked steps.
//!
//! A search before the first step or after the last one belongs to no step, so its figures are
//! reported separately.

use super::{intervals::DisjointIntervals, run::Run, statistics::ms, summary::Outside};
use nearfield_trace::{Trace, model::Phase};
use std::{collections::BTreeMap, fmt};

/// The figures of a run; none where nothing was done outside of steps.
pub(crate) fn outside(trace: &Trace, run: &Run) -> Option<Outside> {
    let subregions = || {
        run.outside_subregions
            .iter()
            .map(|at| &trace.subregions[*at])
    };
    let outermost = run.outside.iter().map(|at| &trace.spans[*at]);
    let mut stages: BTreeMap<String, f64> = BTreeMap::new();
    for span in outermost.filter(|span| span.parent == 0 && !span.is_device_timed()) {
        *stages.entry(span.name.to_string()).or_default() += ms(span.time.length());
    }
    if stages.is_empty() && run.outside_subregions.is_empty() {
        return None;
    }
    let computing = |backend: usize| {
        let own = run.outside_activities.iter();
        let own = own.filter(|one| one.backend == Some(backend) && one.phase == Phase::Compute);
        ms(DisjointIntervals::of(own.filter(|one| run.counts(one)).map(|one| one.time)).length())
    };
    let backends = run.backends.iter().enumerate();
    let backends = backends.map(|(at, name)| (name.to_string(), computing(at)));
    Some(Outside {
        subregions: run.outside_subregions.len(),
        stages,
        backends: backends.filter(|(_, ms)| *ms > 0.0).collect(),
        work: subregions().fold(0, |sum, one| sum.saturating_add(one.work)),
    })
}

/// The names with their milliseconds, as part of a sentence.
fn listed(times: &BTreeMap<String, f64>) -> String {
    let times = times.iter().map(|(name, ms)| format!("{name} {ms:.2} ms"));
    times.collect::<Vec<_>>().join(", ")
}

/// Stages, and the computing of backends within them.
impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [listed(&self.stages), listed(&self.backends)];
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let texts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&texts.join("; computing: "))
    }
}
