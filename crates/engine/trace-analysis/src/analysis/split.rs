//! What a division of the work between two backends costs.
//!
//! The times are those from a backend's first upload to its last result, because a step ends with
//! the later of both. Where a policy has measured both backends and found no move worth it, nothing
//! is said: the analysis knows less than the policy.

use super::{
    backends::times_to_the_end,
    facts::{Facts, Focus},
    phrases::{milliseconds, title},
    settled::Part,
    statistics::Spread,
    summary::{CauseKind, Finding},
};
use nearfield_trace::model::{POLICY_FIXED, POLICY_MODEL, Retune};

/// Fewest steps after which a policy may be said not to have settled.
const FEWEST: usize = 8;

/// Findings about the split.
pub(crate) fn find(facts: Facts<'_>, focus: &Focus) -> Vec<Finding> {
    let policy = facts.trace.retunes.last().map(|one| &*one.policy);
    let fixed = policy.filter(|policy| is(policy, POLICY_FIXED));
    let mut found = Vec::new();
    if let (Some(policy), Focus::Alone(backend)) = (fixed, focus) {
        found.extend(idle_backend(facts, policy, *backend));
    }
    let adapts = policy.is_some() && fixed.is_none();
    let restless = restless(facts).filter(|_| fixed.is_none());
    let told = restless.is_some() || adapts && is_decided(facts);
    found.extend(restless);
    if *focus == Focus::Shared && !told {
        found.extend(uneven(facts, policy));
    }
    found
}

/// Whether a policy, written with its numbers, has this name.
fn is(policy: &str, name: &str) -> bool {
    policy.split(':').next() == Some(name)
}

/// Whether most of the later decisions left the split as it was.
fn is_decided(facts: Facts<'_>) -> bool {
    let all = &facts.trace.retunes;
    let later = &all[all.len() / 2..];
    let keeps = |one: &&Retune| one.theta == one.theta_before && one.share == one.share_before;
    2 * later.iter().filter(keeps).count() >= later.len()
}

/// A fixed threshold leaves one backend without work.
fn idle_backend(facts: Facts<'_>, policy: &str, works: usize) -> Option<Finding> {
    let share = |at: usize| facts.rows[at].share;
    let all = |value: f64| {
        let mut settled = facts.settled.places(Part::Settled);
        settled.all(|at| share(at) == Some(value))
    };
    let idle = if all(1.0) {
        "gpu"
    } else if all(0.0) {
        "cpu"
    } else {
        return None;
    };
    Some(Finding {
        cause: CauseKind::IdleBackend,
        ms_per_step: facts.busy(works),
        what: format!(
            "{} has no work in any step because `{policy}` gives everything to {}",
            title(idle),
            title(&facts.run.backends[works])
        ),
        remedy: "the policy model, which measures both backends".into(),
        is_gap: false,
    })
}

/// The split goes to and fro, or never settles.
fn restless(facts: Facts<'_>) -> Option<Finding> {
    let course = facts.summary.share.or(facts.summary.theta)?;
    let unsettled = course.settle_steps.is_none() && facts.rows.len() >= FEWEST;
    if !unsettled && !course.oscillates {
        return None;
    }
    let steps = facts.settled.places(Part::Settled);
    let spread = Spread::of(steps.map(|at| facts.rows[at].ms))?;
    let (what, remedy) = if course.oscillates {
        let what = "the split between the backends goes to and fro".to_owned();
        (what, "the policy model, or a wider band")
    } else {
        let steps = facts.rows.len();
        let what = format!("the split between the backends has not settled after {steps} steps");
        (what, "a longer run")
    };
    Some(Finding {
        cause: CauseKind::Unsettled,
        ms_per_step: facts.settled.ms - spread.lower_quartile,
        what,
        remedy: remedy.into(),
        is_gap: false,
    })
}

/// The time that a step would take less if both backends were ready at once, milliseconds: each
/// does its work at the speed that was measured.
fn gain(times: [f64; 2], work: [f64; 2]) -> f64 {
    let slow = times[0].max(times[1]);
    if times.iter().chain(&work).any(|value| *value <= 0.0) {
        return slow - times[0].min(times[1]);
    }
    let both = work[0] / times[0] + work[1] / times[1];
    slow - (work[0] + work[1]) / both
}

/// One backend is ready long before the other, in every step or in turn.
fn uneven(facts: Facts<'_>, policy: Option<&str>) -> Option<Finding> {
    let run = facts.run;
    let [one, other] = run.shared_by[..] else {
        return None;
    };
    let times = |at: usize, backend| times_to_the_end(run, &run.steps[at])[backend];
    let work = |at: usize, backend: usize| {
        let of = run.steps[at].subregions.iter();
        let own = of.map(|at| &facts.trace.subregions[*at]);
        let own = own.filter(|own| own.backend == run.backends[backend]);
        own.map(|own| own.work as f64).sum::<f64>()
    };
    let settled = facts.settled;
    let both = [one, other];
    let mean_times = both.map(|backend| settled.mean(|at| times(at, backend)));
    let mean_work = both.map(|backend| settled.mean(|at| work(at, backend)));
    let in_step = |at| gain(both.map(|of| times(at, of)), both.map(|of| work(at, of)));
    let (steady, each) = (gain(mean_times, mean_work), settled.mean(in_step));
    let (fast, slow) = if mean_times[0] < mean_times[1] {
        (0, 1)
    } else {
        (1, 0)
    };
    if steady < 0.5 * each {
        return Some(Finding {
            cause: CauseKind::Unsettled,
            ms_per_step: each,
            what: "the backends wait for each other in turn".into(),
            remedy: "a longer run, or the policy model".into(),
            is_gap: false,
        });
    }
    let fixed = policy.filter(|policy| is(policy, POLICY_FIXED));
    let under = fixed.map_or(String::new(), |policy| format!(" under `{policy}`"));
    let [fast_name, slow_name] = [fast, slow].map(|at| title(&run.backends[both[at]]));
    Some(Finding {
        cause: CauseKind::Split,
        ms_per_step: steady,
        what: format!(
            "{slow_name} is the bottleneck{under}: it is ready after {}, {fast_name} after {}",
            milliseconds(mean_times[slow]),
            milliseconds(mean_times[fast])
        ),
        remedy: match policy {
            Some(policy) if is(policy, POLICY_MODEL) => "a longer run".into(),
            Some(_) => "the policy model, which divides by measured times".into(),
            None => format!("to give {fast_name} more work"),
        },
        is_gap: false,
    })
}
