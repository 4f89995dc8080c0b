//! The verdict on a trace in one sentence: what costs most and a remedy, or that nothing does.

use super::{
    facts::{Facts, Focus},
    findings::ranks_in_words,
    phrases::{milliseconds, percent, title},
    settled::Part,
    statistics::ms,
    summary::{Clock, Finding, TimedBy},
};

/// The sentence about a finding.
pub(crate) fn sentence(finding: &Finding) -> String {
    format!(
        "{} ({} a step); try {}",
        finding.what,
        milliseconds(finding.ms_per_step),
        finding.remedy
    )
}

/// The verdict: the dearest finding, or how busy the backends are.
pub(crate) fn verdict(facts: Facts<'_>, findings: &[Finding]) -> String {
    let clock = match facts.summary.clock {
        Clock::Virtual => "on the emulated device's virtual clock, ",
        Clock::Host => "",
    };
    let focus = facts.focus();
    let about_use = findings.first().is_none_or(|first| first.is_gap);
    let by_host = match &focus {
        Focus::Alone(backend) if about_use => by_host(facts, *backend),
        _ => "",
    };
    let said = match findings.first() {
        Some(first) if first.is_gap => {
            format!("{} because {}", idle(facts, &focus), sentence(first))
        }
        Some(first) => sentence(first),
        None => busy(facts, &focus),
    };
    format!("{clock}{said}{by_host}")
}

/// Words to add where the host timed a GPU.
fn by_host(facts: Facts<'_>, backend: usize) -> &'static str {
    let name = &*facts.run.backends[backend];
    let timed_by = facts.summary.backends[name].timed_by;
    match (name, timed_by) {
        ("gpu", TimedBy::Host) if facts.summary.clock == Clock::Host => {
            " (by the host's stages, waiting included: the trace has no times of kernels)"
        }
        _ => "",
    }
}

/// The idle time that gaps explain.
fn idle(facts: Facts<'_>, focus: &Focus) -> String {
    match focus {
        Focus::Alone(backend) => format!(
            "{} idles {} of the wall time",
            title(&facts.run.backends[*backend]),
            percent(1.0 - facts.utilisation(*backend))
        ),
        Focus::Ranks(ranks) => format!("{}; the rest passes", ranks_in_words(facts, ranks)),
        Focus::Shared | Focus::None => {
            let steps = facts.settled.places(Part::Settled);
            let gaps = (facts.gaps).reasons_in(facts.run.backends.len(), steps, false);
            let idle: f64 = gaps.iter().map(|one| one.ms_per_step).sum();
            let part = percent(facts.share_of_step(idle));
            format!("no backend computes for {part} of the wall time")
        }
    }
}

/// How busy the backends are, where nothing stands out.
fn busy(facts: Facts<'_>, focus: &Focus) -> String {
    let computes = |backend: usize| {
        format!(
            "{} computes {} of the wall time",
            title(&facts.run.backends[backend]),
            percent(facts.utilisation(backend))
        )
    };
    match focus {
        Focus::None => "no backend computes: the trace has no stages of any".into(),
        Focus::Ranks(ranks) => ranks_in_words(facts, ranks),
        Focus::Alone(backend) => computes(*backend) + &longest(facts, *backend),
        Focus::Shared => {
            let all = 0..facts.run.backends.len();
            let busiest = facts.busiest(all.clone()).unwrap_or(0);
            let others = all.filter(|at| *at != busiest).map(|at| {
                let name = title(&facts.run.backends[at]);
                format!("{name} {}", percent(facts.utilisation(at)))
            });
            let others: Vec<String> = others.collect();
            let (busiest, others) = (computes(busiest), others.join(", "));
            format!("the backends share the work well: {busiest}, {others}")
        }
    }
}

/// The stage that most of a backend's time goes to.
fn longest(facts: Facts<'_>, backend: usize) -> String {
    let name = &*facts.run.backends[backend];
    let stages = facts.summary.stages.iter();
    let own = stages.filter(|(_, stage)| stage.backend.as_deref() == Some(name));
    let of_step = |stage: &String| {
        let own = |at: usize| facts.stages[at].get(stage).map_or(0.0, |one| ms(one.own));
        facts.settled.mean(own)
    };
    let times = own.map(|(stage, _)| (stage, of_step(stage)));
    match times.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((stage, own)) => {
            let part = percent(facts.share_of_step(own));
            format!(", {part} of it in `{stage}`")
        }
        None => String::new(),
    }
}
