//! Words for numbers, backends, and the reasons for which a backend does not compute.

use super::{
    gaps::Reason,
    summary::{CauseKind, Finding, IdleFor},
};

/// Remedy where the host is late to queue kernels.
const LARGER_KERNELS: &str = "fewer and larger kernels, which the host queues faster";

/// Stages of the library itself, which a program cannot mark by spans.
const LIBRARY: [&str; 4] = ["engine.", "balance.", "gpu.", "ranks."];

/// The finding that a reason is.
pub(crate) fn gap(reason: &Reason, steps: usize, is_rank: bool) -> Finding {
    Finding {
        cause: kind(reason),
        ms_per_step: reason.ms_per_step,
        what: describe(reason, steps),
        remedy: remedy(reason, is_rank),
        is_gap: true,
    }
}

fn kind(reason: &Reason) -> CauseKind {
    if reason.between_steps {
        return CauseKind::BetweenSteps;
    }
    let Some(stage) = reason.stage.as_deref() else {
        return CauseKind::Unmarked;
    };
    match stage {
        "host.copy" => CauseKind::Copy,
        "host.wait" => CauseKind::Wait,
        _ if stage.starts_with("ranks.") => CauseKind::RankWaits,
        _ if stage.ends_with(".device_step") => CauseKind::Queueing,
        _ if reason.outside_parts && is_library(stage) => CauseKind::Library,
        _ if reason.outside_parts => CauseKind::Unmarked,
        _ => match stage.split_once([' ', '.']) {
            Some((_, "upload" | "download" | "exchange")) => CauseKind::Copy,
            Some(("cpu" | "grid", _)) => CauseKind::CpuStage,
            Some(("gpu", _)) => CauseKind::Queueing,
            _ if is_library(stage) => CauseKind::Library,
            _ => CauseKind::HostStage,
        },
    }
}

/// What a GPU waited for, from the reasons for which it did not compute.
pub(crate) fn idle_for(reasons: &[Reason]) -> IdleFor {
    let mut sum = IdleFor::default();
    for reason in reasons.iter().filter(|one| !one.between_steps) {
        let part = match kind(reason) {
            _ if reason.stage.is_none() => &mut sum.unknown,
            CauseKind::Wait => &mut sum.kernels,
            CauseKind::Copy => &mut sum.copies,
            _ => &mut sum.host,
        };
        *part += reason.ms;
    }
    sum
}

fn is_library(stage: &str) -> bool {
    LIBRARY.iter().any(|start| stage.starts_with(start))
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
        _ if stage.starts_with("ranks.") => format!("ranks wait for each other in `{stage}`"),
        _ if reason.outside_parts => format!("the host is in `{stage}`, outside of its stages"),
        _ => match stage.split_once([' ', '.']) {
            Some((_, "upload" | "download" | "exchange")) => {
                format!("data are moved in `{stage}`")
            }
            Some(("cpu", _)) if stage.contains(' ') => "the CPU computes".into(),
            Some(("cpu" | "grid", _)) => format!("the CPU computes in `{stage}`"),
            Some(("gpu", _)) if stage.contains(' ') => "the GPU computes".into(),
            _ => format!("the host is in `{stage}`"),
        },
    }
}

/// The remedy against a reason, after "try".
fn remedy(reason: &Reason, is_rank: bool) -> String {
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
        _ if reason.between_steps => {
            format!("to do `{stage}` on another thread, or less often")
        }
        _ if stage.starts_with("ranks.") => "fewer ranks, or more points for each".into(),
        _ if stage.ends_with(".device_step") => LARGER_KERNELS.into(),
        _ if reason.outside_parts && is_library(stage) => {
            format!("to fill existing arrays in `{stage}`, which needs no new memory")
        }
        _ if reason.outside_parts => format!("to mark what `{stage}` does there by spans"),
        _ => match stage.split_once([' ', '.']) {
            Some((_, "upload" | "download" | "exchange")) if is_rank => {
                "more points for each rank, which hide more of it behind computing".into()
            }
            Some((_, "upload" | "download" | "exchange")) => {
                "more subregions, which hide more of it behind computing".into()
            }
            Some(("cpu" | "grid", _)) => format!("to do `{stage}` on the GPU, or beside it"),
            Some(("gpu", _)) => LARGER_KERNELS.into(),
            _ => format!("to take `{stage}` out of the step, or to do it in parallel"),
        },
    }
}

/// A backend's name in sentences.
pub(crate) fn title(name: &str) -> String {
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

/// A number with four digits, without zeros at the end; ∞ for infinity.
pub(crate) fn digits(value: f64) -> String {
    if value.is_infinite() {
        return "∞".into();
    }
    let short = format!("{value:.3e}").parse::<f64>();
    short.map_or_else(|_| value.to_string(), |short| short.to_string())
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
