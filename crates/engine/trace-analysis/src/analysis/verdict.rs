//! The verdict on a trace in one sentence: which backend waits, for what, and a remedy.

use super::{
    gaps::Reason,
    summary::{Backend, Clock, Summary, TimedBy},
};
use nearfield_trace::ranks::named;

/// A backend computes nearly all the time from this share on.
const BUSY: f64 = 0.9;

/// Backends do not share well above this imbalance.
const UNEVEN: f64 = 0.2;

/// Remedy where the host is late to queue kernels.
const LARGER_KERNELS: &str = "fewer and larger kernels, which the host queues faster";

/// The verdict of a summary that has everything else.
pub(crate) fn verdict(summary: &Summary) -> String {
    let clock = match summary.clock {
        Clock::Virtual => "on the emulated device's virtual clock, ",
        Clock::Host => "",
    };
    format!("{clock}{}", on_any_clock(summary))
}

fn on_any_clock(summary: &Summary) -> String {
    let by_use = |a: &(&String, &Backend), b: &(&String, &Backend)| {
        a.1.utilisation.total_cmp(&b.1.utilisation)
    };
    let backends = || summary.backends.iter();
    let Some((busiest, most)) = backends().max_by(by_use) else {
        return "no backend computes: the trace has no stages of any".into();
    };
    if summary.shared_steps > 0 && 2 * summary.shared_steps >= summary.steps {
        return shared(summary, busiest, most);
    }
    let ranks: Vec<_> = backends()
        .filter(|(name, _)| named(name).is_some())
        .collect();
    if ranks.len() > 1 {
        return of_ranks(summary, &ranks);
    }
    // Where backends divide no work, the GPU is the one to keep busy; a policy that leaves the
    // work to the CPU has found the GPU slower.
    let decided = summary.shared_steps > 0 || summary.share.is_some();
    let (name, backend) = match backends().find(|(name, _)| *name != "cpu") {
        Some(device) if !decided => device,
        _ => (busiest, most),
    };
    alone(summary, name, backend)
}

/// Both backends have parts of the work.
fn shared(summary: &Summary, busiest: &str, most: &Backend) -> String {
    let others: Vec<String> = summary
        .backends
        .iter()
        .filter(|(name, _)| *name != busiest)
        .map(|(name, backend)| format!("{} {}", title(name), percent(backend.utilisation)))
        .collect();
    let least = summary
        .backends
        .iter()
        .min_by(|a, b| a.1.utilisation.total_cmp(&b.1.utilisation));
    let idle = summary.no_compute_ms / summary.total_ms;
    if let Some(reason) = summary
        .no_compute_reasons
        .iter()
        .find(|one| !one.between_steps)
        && idle > 1.0 - most.utilisation - 0.1
        && idle > 0.2
    {
        return format!(
            "no backend computes for {} of the wall time because {}",
            percent(idle),
            because(reason, summary)
        );
    }
    let split = format!(
        "{} computes {} of the wall time, {}",
        title(busiest),
        percent(most.utilisation),
        others.join(", ")
    );
    match least {
        Some((name, least)) if most.utilisation - least.utilisation > 0.1 => {
            let threshold = if name == "cpu" { "higher" } else { "lower" };
            let (busiest, name) = (title(busiest), title(name));
            format!(
                "{busiest} is the bottleneck: {split}; try to give {name} more work, by a \
                 {threshold} threshold"
            )
        }
        _ => match summary.imbalance.filter(|imbalance| *imbalance > UNEVEN) {
            Some(imbalance) => format!(
                "the backends wait for each other in turn: {split}, and one is ready {} of a step \
                 before the other; try a longer run, or the policy model",
                percent(imbalance)
            ),
            None => format!("the backends share the work well: {split}"),
        },
    }
}

/// Ranks divide the work by space.
fn of_ranks(summary: &Summary, ranks: &[(&String, &Backend)]) -> String {
    let uses = || ranks.iter().map(|(_, rank)| rank.utilisation);
    let mean = uses().sum::<f64>() / ranks.len() as f64;
    let most = uses().fold(0.0, f64::max);
    let Some((busiest, rank)) = ranks.iter().find(|(_, rank)| rank.utilisation == most) else {
        return String::new();
    };
    let split = format!(
        "{busiest} computes {} of the wall time, the mean of {} ranks is {}",
        percent(most),
        ranks.len(),
        percent(mean)
    );
    let reason = rank.reasons.iter().find(|one| !one.between_steps);
    match reason {
        _ if most > (1.0 + UNEVEN) * mean => format!(
            "{split}: the work is uneven; try RankedEngine::balance, which moves domains by times"
        ),
        Some(reason) if most < BUSY => {
            format!("{split}; for the rest {}", because(reason, summary))
        }
        _ => split,
    }
}

/// One backend does the work.
fn alone(summary: &Summary, name: &str, backend: &Backend) -> String {
    let by_host = match (name, backend.timed_by) {
        ("gpu", TimedBy::Host) if summary.clock == Clock::Host => {
            " (by the host's stages, waiting included: the trace has no times of kernels)"
        }
        _ => "",
    };
    let reason = backend.reasons.iter().find(|one| !one.between_steps);
    let sentence = match reason {
        Some(reason) if backend.utilisation < BUSY => format!(
            "{} idles {} of the wall time because {}{by_host}",
            title(name),
            percent(1.0 - backend.utilisation),
            because(reason, summary)
        ),
        _ => format!(
            "{} computes {} of the wall time{}{by_host}",
            title(name),
            percent(backend.utilisation),
            longest(summary, name)
        ),
    };
    sentence + &between_steps(summary, backend)
}

/// Words to add where the time between steps costs most.
fn between_steps(summary: &Summary, backend: &Backend) -> String {
    let reason = backend.reasons.iter().find(|one| one.between_steps);
    match reason {
        Some(reason) if backend.idle_share_of_run > backend.idle_share + 0.1 => format!(
            "; in the whole run it idles {}, between steps because {} ({} a step)",
            percent(backend.idle_share_of_run),
            describe(reason, summary.steps),
            milliseconds(reason.ms_per_step)
        ),
        _ => String::new(),
    }
}

/// The stage that most of a backend's time goes to.
fn longest(summary: &Summary, name: &str) -> String {
    let of_backend = summary
        .stages
        .iter()
        .filter(|(_, stage)| stage.backend.as_deref() == Some(name));
    match of_backend.max_by(|a, b| a.1.self_ms.total_cmp(&b.1.self_ms)) {
        Some((stage, times)) => {
            format!(
                ", {} of it in `{stage}`",
                percent(times.self_ms / summary.total_ms)
            )
        }
        None => String::new(),
    }
}

fn because(reason: &Reason, summary: &Summary) -> String {
    let ms = milliseconds(reason.ms_per_step);
    let (what, advice) = (describe(reason, summary.steps), advice(reason));
    format!("{what} ({ms} a step); try {advice}")
}

/// A reason as a clause.
pub(crate) fn describe(reason: &Reason, steps: usize) -> String {
    let Some(stage) = &reason.stage else {
        return "the program is outside of all stages".into();
    };
    let what = reason.what.as_deref().unwrap_or("something");
    match (&**stage, reason.direction.as_deref()) {
        ("host.copy", direction) => {
            let size = bytes(reason.bytes as f64 / steps.max(1) as f64);
            let to = match direction {
                Some("to_host") => " to the host",
                Some("to_device") => " to the device",
                _ => "",
            };
            format!("the host copies {size}{to} in `{what}`")
        }
        ("host.wait", _) => format!("the host waits for `{what}`"),
        _ if reason.outside_parts => format!("the host is in `{stage}`, outside of its stages"),
        _ => match stage.split_once([' ', '.']) {
            Some((_, "upload" | "download" | "exchange")) => {
                format!("data are moved in `{stage}`")
            }
            Some(("ranks", _)) => format!("ranks wait for each other in `{stage}`"),
            Some(("cpu" | "grid", _)) => format!("the CPU computes in `{stage}`"),
            Some(("gpu", _)) if stage.contains(' ') => "the GPU computes".into(),
            _ => format!("the host is in `{stage}`"),
        },
    }
}

/// The remedy against a reason, after "try".
fn advice(reason: &Reason) -> String {
    let Some(stage) = &reason.stage else {
        return "to mark what the program does there by spans".into();
    };
    let what = reason.what.as_deref().unwrap_or("the data");
    match (&**stage, reason.direction.as_deref()) {
        ("host.copy", Some("to_device")) => {
            format!("to keep `{what}` on the device, or to copy it while the GPU computes")
        }
        ("host.copy", _) => format!(
            "to reduce `{what}` on the device and copy the result, or to copy it less often"
        ),
        ("host.wait", _) => "to queue the next kernels before waiting".into(),
        _ if stage.ends_with(".device_step") => LARGER_KERNELS.into(),
        _ if reason.outside_parts => format!("to mark what `{stage}` does there by spans"),
        _ => match stage.split_once([' ', '.']) {
            Some((_, "upload" | "download" | "exchange")) => {
                "more subregions, which hide more of it behind computing".into()
            }
            Some(("cpu" | "grid", _)) => format!("to do `{stage}` on the GPU, or beside it"),
            Some(("gpu", _)) => LARGER_KERNELS.into(),
            Some(("ranks", _)) => "fewer ranks, or more points for each".into(),
            _ => format!("to take `{stage}` out of the step, or to do it in parallel"),
        },
    }
}

/// A backend's name in sentences.
fn title(name: &str) -> String {
    match name {
        "cpu" => "the CPU".into(),
        "gpu" => "the GPU".into(),
        _ if name.starts_with("rank ") => name.into(),
        _ => format!("backend {name}"),
    }
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// Milliseconds with about three digits.
pub(crate) fn milliseconds(ms: f64) -> String {
    match ms {
        _ if ms >= 9.95 => format!("{ms:.0} ms"),
        _ if ms >= 0.995 => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

/// Bytes with a unit.
fn bytes(bytes: f64) -> String {
    let (size, unit) = match bytes {
        _ if bytes >= 1e9 => (bytes / 1e9, "GB"),
        _ if bytes >= 1e6 => (bytes / 1e6, "MB"),
        _ if bytes >= 1e3 => (bytes / 1e3, "kB"),
        _ => (bytes, "bytes"),
    };
    match size {
        _ if size >= 9.95 || unit == "bytes" => format!("{size:.0} {unit}"),
        _ => format!("{size:.1} {unit}"),
    }
}
