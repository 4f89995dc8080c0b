//! Costs that a run has once or now and then: cold first steps, settling, exploration, stalls and
//! a GPU that failed. They are given per step of the whole run.

use super::{
    facts::Facts,
    phrases::milliseconds,
    settled::Part,
    statistics::median,
    summary::{CauseKind, Finding},
};
use nearfield_trace::model::{GPU_FAILED, GPU_LOST, Value};

/// All of them.
pub(crate) fn find(facts: Facts<'_>) -> impl Iterator<Item = Finding> {
    let found = [
        cold(facts),
        settling(facts),
        exploration(facts),
        stalls(facts),
        lost(facts),
    ];
    found.into_iter().flatten()
}

/// Number of the steps of a part, their mean, and the milliseconds that they add to every step of
/// the run.
fn excess(facts: Facts<'_>, part: Part) -> Option<(usize, f64, f64)> {
    let times: Vec<f64> = (facts.settled.places(part))
        .map(|at| facts.rows[at].ms)
        .collect();
    let sum: f64 = times.iter().sum();
    let count = times.len();
    let over = (sum - facts.settled.ms * count as f64).max(0.0);
    (count > 0).then(|| (count, sum / count as f64, over / facts.rows.len() as f64))
}

/// `12 ms instead of 5.0 ms`.
fn instead(facts: Facts<'_>, mean: f64) -> String {
    let usual = milliseconds(facts.settled.ms);
    format!("{} instead of {usual}", milliseconds(mean))
}

fn cold(facts: Facts<'_>) -> Option<Finding> {
    let (count, mean, ms_per_step) = excess(facts, Part::Cold)?;
    let first = if count == 1 {
        "the first step takes".to_owned()
    } else {
        format!("the first {count} steps take")
    };
    let end = facts.run.steps[count - 1].on_host.end();
    let compiled = (facts.trace.notes.iter())
        .filter(|note| note.at <= end && matches!(&*note.message, "gpu.compile" | "gpu.link"))
        .filter_map(|note| note.fields.get("milliseconds")?.number());
    let compiled: f64 = compiled.sum();
    let of_it = if compiled > 0.0 {
        format!(", {} of it to compile kernels", milliseconds(compiled))
    } else {
        String::new()
    };
    Some(Finding {
        cause: CauseKind::ColdStart,
        ms_per_step,
        what: format!(
            "{first} {}, because memory, threads and programs are new{of_it}",
            instead(facts, mean)
        ),
        remedy: "a step before those that matter".into(),
        is_gap: false,
    })
}

fn settling(facts: Facts<'_>) -> Option<Finding> {
    let (count, mean, ms_per_step) = excess(facts, Part::Settling)?;
    Some(Finding {
        cause: CauseKind::Settling,
        ms_per_step,
        what: format!(
            "until the policy settles, {count} of {} steps take {} on average",
            facts.rows.len(),
            instead(facts, mean)
        ),
        remedy: "a longer run, in which they count less".into(),
        is_gap: false,
    })
}

fn exploration(facts: Facts<'_>) -> Option<Finding> {
    let (count, mean, ms_per_step) = excess(facts, Part::Exploration)?;
    Some(Finding {
        cause: CauseKind::Exploration,
        ms_per_step,
        what: format!(
            "exploration takes {} in {count} of {} steps",
            instead(facts, mean),
            facts.rows.len()
        ),
        remedy: "a longer run, in which they count less".into(),
        is_gap: false,
    })
}

fn stalls(facts: Facts<'_>) -> Option<Finding> {
    let (count, mean, ms_per_step) = excess(facts, Part::Stall)?;
    let slowest = facts.summary.slowest.iter().find(|slow| {
        let mut stalls = facts.settled.places(Part::Stall);
        stalls.any(|at| facts.rows[at].step == slow.step)
    });
    let step = slowest.map_or(0, |slow| slow.step);
    let cause = slowest.map_or(String::new(), |slow| format!(": {}", slow.cause));
    Some(Finding {
        cause: CauseKind::Stalls,
        ms_per_step,
        what: format!(
            "{count} of {} steps {} {}{cause}",
            facts.rows.len(),
            if count == 1 { "takes" } else { "take" },
            instead(facts, mean)
        ),
        remedy: format!("to look at step {step} in the report"),
        is_gap: false,
    })
}

/// The GPU failed, and the CPU backend has done its work since.
fn lost(facts: Facts<'_>) -> Option<Finding> {
    let told = facts.trace.notes.iter().find(|note| {
        let lost = note.fields.get("lost") == Some(&Value::Bool(true));
        lost && note.message == GPU_FAILED
    });
    let decided = (facts.trace.retunes.iter()).find(|one| one.reason.starts_with(GPU_LOST));
    let moments = [told.map(|note| note.at), decided.map(|one| one.at)];
    let at = moments.into_iter().flatten().min()?;
    let (before, after): (Vec<usize>, Vec<usize>) =
        (0..facts.rows.len()).partition(|step| facts.run.steps[*step].on_host.end() < at);
    let usual = |steps: &[usize]| median(steps.iter().map(|step| facts.rows[*step].ms));
    // Without a step before it, nothing but the CPU's own time is known; without one after it, no
    // cost is.
    let after = usual(after.get(1..).unwrap_or_default()).unwrap_or(0.0);
    let before = usual(&before).unwrap_or(0.0);
    let text = told.and_then(|note| note.fields.get("error"));
    let error = text.map_or(String::new(), |error| format!(" ({error})"));
    Some(Finding {
        cause: CauseKind::GpuLost,
        ms_per_step: (after - before).max(0.0),
        what: format!("the GPU failed{error}, and the CPU has done everything since"),
        remedy: "another device, or a restart of the program".into(),
        is_gap: false,
    })
}
