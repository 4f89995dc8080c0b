//! Causes that cost time, each with its milliseconds a step and one remedy, dearest first.
//!
//! Only causes that cost a tenth of a settled step are named, because smaller ones are within what
//! runs differ by. A GPU that failed is always named, whatever it costs. The verdict is about the
//! first of them, and the advice repeats the others, so both always say the same.

use super::{
    backends::{BackendTimes, backend_times},
    facts::{Facts, Focus},
    intervals::DisjointIntervals,
    once,
    phrases::{describe, digits, gap, milliseconds, percent, title},
    settled::Part,
    split,
    statistics::ms,
    summary::{CauseKind, Finding},
};
use nearfield_trace::{model::Value, ranks::is_gpu};
use std::collections::BTreeMap;

/// Least part of a settled step that a cause costs to be named.
const LEAST: f64 = 0.1;
/// The longest of many reasons is named from this part on, if together they are long enough.
const LEAST_OF_MANY: f64 = 0.05;
/// Ranks do not share well if the busiest has this many times the mean.
const UNEVEN: f64 = 1.2;
/// An engine with more than this part of the machine's threads uses the machine.
const MOST_CORES: f64 = 0.75;
/// A skin is wide if lists hold more than this many times the pairs that count.
const WIDE: f64 = 3.0;
/// Most findings.
const MOST: usize = 6;

/// All findings, dearest first.
pub(crate) fn find(facts: Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let focus = facts.focus();
    idle_times(facts, &focus, &mut found);
    if let Focus::Ranks(ranks) = &focus {
        found.extend(uneven_ranks(facts, ranks));
    } else {
        found.extend(split::find(facts, &focus));
        found.extend(unused_cores(facts));
    }
    if focus == Focus::Shared && !found.iter().any(|one| one.cause == CauseKind::Copy) {
        found.extend(transfers(facts));
    }
    found.extend(wide_skin(facts));
    found.extend(sorting(facts));
    found.extend(beside(facts));
    found.extend(once::find(facts));
    let failed = |one: &Finding| one.cause == CauseKind::GpuLost;
    found.retain(|one| one.is_gap || failed(one) || facts.share_of_step(one.ms_per_step) >= LEAST);
    found.sort_by(|a, b| b.ms_per_step.total_cmp(&a.ms_per_step));
    if let Some(at) = found.iter().position(failed).filter(|at| *at >= MOST) {
        found.swap(MOST - 1, at);
    }
    found.truncate(MOST);
    found
}

/// Reasons for which the backends in focus do not compute, in steps and between them.
fn idle_times(facts: Facts<'_>, focus: &Focus, found: &mut Vec<Finding>) {
    let of = match focus {
        Focus::Shared => facts.run.backends.len(),
        Focus::Alone(backend) => *backend,
        Focus::Ranks(ranks) => match facts.busiest(ranks.iter().copied()) {
            Some(rank) => rank,
            None => return,
        },
        Focus::None => return,
    };
    let ranks = matches!(focus, Focus::Ranks(_));
    let (settled, gaps) = (facts.settled, facts.gaps);
    let reasons = gaps.reasons_in(of, settled.places(Part::Settled), false);
    let idle: f64 = reasons.iter().map(|reason| reason.ms_per_step).sum();
    let steps = settled.steps;
    for (at, reason) in reasons.iter().enumerate() {
        let part = facts.share_of_step(reason.ms_per_step);
        let longest = at == 0 && part >= LEAST_OF_MANY && facts.share_of_step(idle) >= LEAST;
        let finding = gap(reason, steps, ranks);
        // A rank waits for others that compute where the work is uneven.
        let of_others = ranks && finding.cause == CauseKind::CpuStage;
        if (part >= LEAST || longest) && !of_others {
            found.push(finding);
        }
    }
    let all = gaps.reasons(of);
    let between: f64 = (all.iter().filter(|one| one.between_steps))
        .map(|one| one.ms)
        .sum();
    let longest = all.iter().find(|one| one.between_steps);
    found.extend(longest.map(|reason| {
        let name = facts.run.backends.get(of).map_or_else(
            || "no backend computes for".to_owned(),
            |name| format!("{} idles", title(name)),
        );
        Finding {
            what: format!(
                "{name} {} of the run between steps because {}",
                percent(between / facts.summary.run_ms.max(f64::MIN_POSITIVE)),
                describe(reason, facts.rows.len())
            ),
            is_gap: false,
            ..gap(reason, facts.rows.len(), ranks)
        }
    }));
}

/// The work of ranks differs.
fn uneven_ranks(facts: Facts<'_>, ranks: &[usize]) -> Option<Finding> {
    let most = facts.busiest(ranks.iter().copied())?;
    let mean = ranks.iter().map(|rank| facts.busy(*rank)).sum::<f64>() / ranks.len() as f64;
    (facts.busy(most) > UNEVEN * mean).then(|| Finding {
        cause: CauseKind::UnevenRanks,
        ms_per_step: facts.busy(most) - mean,
        what: format!("{}: the work is uneven", ranks_in_words(facts, ranks)),
        remedy: "RankedEngine::balance, which moves domains by times".into(),
        is_gap: false,
    })
}

/// The busiest rank and the mean.
pub(crate) fn ranks_in_words(facts: Facts<'_>, ranks: &[usize]) -> String {
    let mean = ranks
        .iter()
        .map(|rank| facts.utilisation(*rank))
        .sum::<f64>();
    let busiest = facts.busiest(ranks.iter().copied()).unwrap_or(0);
    format!(
        "{} computes {} of the wall time, the mean of {} ranks is {}",
        title(&facts.run.backends[busiest]),
        percent(facts.utilisation(busiest)),
        ranks.len(),
        percent(mean / ranks.len().max(1) as f64)
    )
}

/// An engine with fewer threads than the machine has.
fn unused_cores(facts: Facts<'_>) -> Option<Finding> {
    let note = (facts.trace.notes.iter().rev()).find(|note| note.message == "engine.device")?;
    let threads = note.fields.get("threads").and_then(Value::count)? as f64;
    let cores = f64::from(facts.trace.header.machine.cores);
    if threads < 1.0 || threads > MOST_CORES * cores {
        return None;
    }
    let cpu = facts.run.backends.iter().position(|name| name == "cpu")?;
    Some(Finding {
        cause: CauseKind::UnusedCores,
        ms_per_step: facts.busy(cpu) * (1.0 - threads / cores),
        what: format!("the CPU backend has {threads} of the machine's {cores} threads"),
        remedy: "more threads for the engine (`--threads 0`, `Builder::threads`)".into(),
        is_gap: false,
    })
}

/// Copies of subregions that the later backend waits for.
fn transfers(facts: Facts<'_>) -> Option<Finding> {
    // A backend that is ready before the other one loses nothing by its copies.
    let backend = facts.busiest(0..facts.run.backends.len())?;
    let name = &facts.run.backends[backend];
    // Copies that a device timed have no subregions to hide behind; gaps name them.
    let by_device = facts.run.device_timed && is_gpu(name);
    let mut sum = BackendTimes::default();
    for at in facts.settled.places(Part::Settled) {
        sum.add(&backend_times(facts.run, &facts.run.steps[at])[backend]);
    }
    if by_device || sum.transfers == 0 {
        return None;
    }
    let overlap = sum.hidden as f64 / sum.transfers as f64;
    (overlap < 0.5).then(|| Finding {
        cause: CauseKind::Copy,
        ms_per_step: ms(sum.transfers - sum.hidden) / facts.settled.steps.max(1) as f64,
        what: format!(
            "{} of the transfers of {} are hidden behind computing",
            percent(overlap),
            title(name)
        ),
        remedy: "more subregions, which hide more of them".into(),
        is_gap: false,
    })
}

/// Lists so much longer than the pairs that count that most of a traversal goes to the others.
fn wide_skin(facts: Facts<'_>) -> Option<Finding> {
    // Milliseconds beyond the cut-off, by the bits of cut-off and list radius: a step may traverse
    // several lists.
    let mut sums: BTreeMap<[u64; 2], f64> = BTreeMap::new();
    for at in facts.settled.places(Part::Settled) {
        for span in facts.run.steps[at]
            .spans
            .iter()
            .map(|at| &facts.trace.spans[*at])
        {
            let number = |name: &str| span.fields.get(name).and_then(Value::number);
            let (Some(cutoff), Some(list)) = (number("cutoff"), number("list_radius")) else {
                continue;
            };
            let took = ms(span.time.length());
            // The space around a point, in which points are taken to lie evenly.
            let within = (cutoff / list).powi(3);
            // A skin of a fifth of the radius makes lists 1.7 times as long, which pays.
            if within > 0.0 && within * WIDE < 1.0 {
                let lists = [cutoff.to_bits(), list.to_bits()];
                *sums.entry(lists).or_default() += took * (1.0 - within);
            }
        }
    }
    let (lists, beyond) = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let [cutoff, list] = lists.map(f64::from_bits);
    let times = (list / cutoff).powi(3);
    Some(Finding {
        cause: CauseKind::Skin,
        ms_per_step: beyond / facts.settled.steps.max(1) as f64,
        what: format!(
            "lists reach {} where the cut-off is {}, and so hold about {times:.0} times the pairs \
             that count",
            digits(list),
            digits(cutoff)
        ),
        remedy: format!("a smaller skin, such as {}", digits(0.2 * cutoff)),
        is_gap: false,
    })
}

/// Sorting takes a large part of the steps.
fn sorting(facts: Facts<'_>) -> Option<Finding> {
    let own = |name: &str| {
        let of_step = |at: usize| facts.stages[at].get(name).map_or(0.0, |one| ms(one.own));
        facts.settled.mean(of_step)
    };
    let sort = own("grid.sort");
    (facts.share_of_step(sort) > 0.3).then(|| Finding {
        cause: CauseKind::Sorting,
        ms_per_step: sort,
        what: format!(
            "sorting takes {} of the wall time",
            percent(facts.share_of_step(sort))
        ),
        remedy: "to bring the points into the order of Engine::z_sort every few dozen steps".into(),
        is_gap: false,
    })
}

/// Steps next to other threads' work, such as drawing, are slower than those without it.
fn beside(facts: Facts<'_>) -> Option<Finding> {
    const FEWEST: usize = 3;
    let others = facts.trace.spans.iter().filter(|span| span.is_beside());
    let busy = DisjointIntervals::of(others.map(|span| span.time));
    let next_to = |at: &usize| {
        let time = facts.run.steps[*at].on_host;
        2 * busy.covers(time) > time.length()
    };
    let (with, without): (Vec<usize>, Vec<usize>) =
        facts.settled.places(Part::Settled).partition(next_to);
    if with.len() < FEWEST || without.len() < FEWEST {
        return None;
    }
    let mean = |of: &[usize]| of.iter().map(|at| facts.rows[*at].ms).sum::<f64>() / of.len() as f64;
    let (slow, usual) = (mean(&with), mean(&without));
    let longest = (facts.summary.beside.iter()).max_by(|a, b| a.1.total_cmp(b.1))?;
    Some(Finding {
        cause: CauseKind::Beside,
        ms_per_step: (slow - usual) * with.len() as f64 / facts.settled.steps as f64,
        what: format!(
            "steps next to `{}` on other threads take {} instead of {}",
            longest.0,
            milliseconds(slow),
            milliseconds(usual)
        ),
        remedy: "to leave a core to it, by fewer threads for the engine".into(),
        is_gap: false,
    })
}
