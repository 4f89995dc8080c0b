//! Converts events to records by their names. Events without a record of their own become notes.
//!
//! The name of an event is `name:` in the macro, or its message. Times of `balance.subregion` are
//! nanoseconds since the start of the step, so the sender needs no access to the trace's clock and
//! may use a virtual one. Times of `gpu.kernel`, `gpu.copy` and `gpu.exchange` are nanoseconds
//! before the event, because a device reports afterwards.

use crate::{
    model::{
        Fields, Interval, Note, Occupancy, Phase, Record, Retune, Span, Subregion, Text, Theta,
        VIRTUAL, Value,
    },
    ranks,
};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tracing::Metadata;

/// Where in the trace an event belongs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// None outside of all steps.
    pub(super) step: Option<u64>,
    /// The moment that its times count from.
    pub(super) origin: u64,
    pub(super) at: u64,
    /// The number of the next span.
    pub(super) spans: &'a AtomicU64,
    /// Origins of the last jobs.
    pub(super) origins: &'a Origins,
    /// The thread.
    pub(super) thread: &'a str,
}

/// The record of an event.
pub(super) fn event(metadata: &Metadata<'static>, mut fields: Fields, place: Place<'_>) -> Record {
    let message = fields.remove("message").map(|message| message.to_string());
    // What the macro makes up says where in the source the event is, which is not a name.
    let named = (!metadata.name().starts_with("event ")).then(|| metadata.name());
    let name = named.or(message.as_deref()).unwrap_or_default();
    let made = match name {
        "balance.subregion" => subregion(&fields, place).map(Record::of_subregion),
        "balance.retune" => retune(&fields, place).map(Record::of_retune),
        "grid.occupancy" | "balance.occupancy" => occupancy(&fields, place).map(Record::Occupancy),
        "gpu.kernel" | "gpu.copy" | "gpu.exchange" => {
            on_device(name, &mut fields, place).map(Record::Span)
        }
        _ => None,
    };
    made.unwrap_or_else(|| {
        Record::Note(Note {
            at: place.at,
            level: metadata.level().as_str().to_ascii_lowercase().into(),
            message: match (named, message) {
                (_, Some(message)) => message.into(),
                (Some(name), None) => name.into(),
                (None, None) => metadata.target().into(),
            },
            fields,
        })
    })
}

/// Jobs that may end at the same time, on as many threads.
const JOBS: usize = 32;

/// Origins of the last jobs. The lines of a job come one after the other, each with its own reading
/// of the clock; the first of them gives the origin of all.
#[derive(Debug, Default)]
pub(super) struct Origins(Mutex<[(u64, u64); JOBS]>);

impl Origins {
    /// The origin of a job, which is `first` unless it has one; jobs without a number have none.
    fn of(&self, job: u64, first: u64) -> u64 {
        if job == 0 {
            return first;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = &mut known[(job % JOBS as u64) as usize];
        if entry.0 != job {
            *entry = (job, first);
        }
        entry.1
    }
}

fn count(fields: &Fields, name: &str) -> Option<u64> {
    fields.get(name).and_then(Value::count)
}

fn number(fields: &Fields, name: &str) -> Option<f64> {
    fields.get(name).and_then(Value::number)
}

fn theta(fields: &Fields, name: &str) -> Option<Theta> {
    number(fields, name)
        .filter(|theta| *theta >= 0.0)
        .map(Theta)
}

fn text(fields: &Fields, name: &str) -> Option<Text> {
    match fields.get(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// A kernel, a copy or an exchange as the device timed it.
fn on_device(name: &str, fields: &mut Fields, place: Place<'_>) -> Option<Span> {
    let ago = |name| Some(place.at.saturating_sub(count(fields, name)?));
    let time = Interval::new(ago("begin_ago")?, ago("end_ago")?);
    let phase = match text(fields, "direction").as_deref() {
        _ if name == "gpu.exchange" => Phase::Exchange,
        Some("to_device") => Phase::Upload,
        Some("to_host") => Phase::Download,
        _ => Phase::Compute,
    };
    fields.retain(|name, _| !matches!(&**name, "begin_ago" | "end_ago"));
    Some(Span {
        name: name.to_owned().into(),
        backend: Some("gpu".into()),
        phase,
        id: place.spans.fetch_add(1, Ordering::Relaxed),
        parent: 0,
        // Of ranks that are threads of one program each has a GPU, its own or a share of one.
        thread: match ranks::named(place.thread) {
            Some(_) => place.thread.to_owned().into(),
            None => "gpu".into(),
        },
        time,
        fields: std::mem::take(fields),
    })
}

fn subregion(fields: &Fields, place: Place<'_>) -> Option<Subregion> {
    let ago = count(fields, "origin_ago");
    let origin = ago.map_or(place.origin, |ago| place.at.saturating_sub(ago));
    let job = count(fields, "job").unwrap_or(0);
    let origin = place.origins.of(job, origin);
    let interval = |begin: &str, end: &str| {
        let from_origin = |name| Some(origin.saturating_add(count(fields, name)?));
        Some(Interval::new(from_origin(begin)?, from_origin(end)?))
    };
    let clock = text(fields, "clock");
    Some(Subregion {
        step: place.step,
        subregion: count(fields, "subregion")?,
        backend: text(fields, "backend")?,
        rank: ranks::named(place.thread),
        pass: count(fields, "pass").unwrap_or(0),
        points: count(fields, "points").unwrap_or(0),
        cells: count(fields, "cells").unwrap_or(0),
        work: count(fields, "work").unwrap_or(0),
        pairs: count(fields, "pairs"),
        bytes_up: count(fields, "bytes_up").unwrap_or(0),
        bytes_down: count(fields, "bytes_down").unwrap_or(0),
        upload: interval("upload_start", "upload_end"),
        compute: interval("compute_start", "compute_end"),
        download: interval("download_start", "download_end"),
        exchange: interval("exchange_start", "exchange_end"),
        clock_error: count(fields, "clock_error").unwrap_or(0),
        origin: (job > 0 || clock.as_deref() == Some(VIRTUAL)).then_some(origin),
        clock,
        job,
        theta: theta(fields, "theta"),
        theta_ties: count(fields, "theta_ties"),
    })
}

fn retune(fields: &Fields, place: Place<'_>) -> Option<Retune> {
    Some(Retune {
        step: place.step,
        at: place.at,
        kernel: text(fields, "kernel"),
        targets: count(fields, "targets"),
        sources: count(fields, "sources"),
        subregion: count(fields, "subregion"),
        policy: text(fields, "policy").unwrap_or_default(),
        theta_before: theta(fields, "theta_before"),
        theta: theta(fields, "theta"),
        share_before: number(fields, "share_before"),
        share: number(fields, "share"),
        exploration: fields.get("exploration") == Some(&Value::Bool(true)),
        reason: text(fields, "reason")?,
    })
}

fn occupancy(fields: &Fields, place: Place<'_>) -> Option<Occupancy> {
    let counts = text(fields, "counts")?
        .split_ascii_whitespace()
        .map(|entry| {
            let (points, cells) = entry.split_once(':')?;
            Some([points.parse().ok()?, cells.parse().ok()?])
        })
        .collect::<Option<Vec<[u64; 2]>>>()?;
    Some(Occupancy {
        at: place.at,
        of: text(fields, "of").unwrap_or_else(|| "cells".into()),
        one_in: count(fields, "one_in").unwrap_or(1).max(1),
        counts,
    })
}
