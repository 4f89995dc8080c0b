//! The events of a trace for viewers: what lasts, on tracks on which it nests, moments and
//! counters.
//!
//! Viewers draw a track as a stack, so two intervals of it must lie apart or within each other.
//! Steps of ranks and streams of a device overlap otherwise, and get as many tracks as they need.

use super::fit::Tracks;
use crate::analysis::{Analysis, Source, activity_name};
use nearfield_trace::model::{Interval, Phase, Span};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeMap};

/// An interval with its name.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) category: &'a str,
    pub(super) time: Interval,
    about: About<'a>,
}

/// What more there is to say about a slice.
#[derive(Debug)]
enum About<'a> {
    Step(&'a crate::analysis::StepRow),
    Span(&'a Span),
    /// The step is none for a job outside of all of them.
    Subregion {
        step: Option<u64>,
        number: u64,
        pass: u64,
    },
}

/// Slices that nest, in the order of their beginning, outer ones first.
#[derive(Debug)]
pub(super) struct Track<'a> {
    pub(super) name: String,
    pub(super) slices: Vec<Slice<'a>>,
}

/// An event without a length.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) name: &'a str,
    pub(super) at: u64,
    pub(super) arguments: Value,
}

/// The value of a counter from a moment on.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) name: &'static str,
    pub(super) at: u64,
    pub(super) value: f64,
}

impl Slice<'_> {
    /// Values by name.
    pub(super) fn arguments(&self) -> Value {
        match self.about {
            About::Step(row) => {
                let counts = [("points", row.points), ("pairs", row.pairs)];
                let known = counts
                    .into_iter()
                    .filter_map(|(name, count)| Some((name.to_owned(), json!(count?))));
                let mut arguments: Map<String, Value> = known.collect();
                arguments.insert("critical_path_ms".into(), json!(row.critical_path_ms));
                arguments.into()
            }
            About::Span(span) => serde_json::to_value(&span.fields).unwrap_or_default(),
            About::Subregion { step, number, pass } => {
                json!({"step": step, "subregion": number, "pass": pass})
            }
        }
    }
}

/// All tracks, the steps first.
pub(super) fn tracks<'a>(analysis: &'a Analysis<'_>) -> Vec<Track<'a>> {
    let mut all = nested("steps", steps(analysis));
    let mut threads: BTreeMap<&str, Vec<Slice<'_>>> = BTreeMap::new();
    let mut device = Vec::new();
    // Stages have no times on a virtual clock.
    let spans = analysis.trace.spans.iter();
    for span in spans.filter(|_| !analysis.run.is_virtual) {
        if span.is_device_timed() {
            device.push(on_device(span));
        } else {
            threads
                .entry(&span.thread)
                .or_default()
                .push(stage(analysis, span));
        }
    }
    for (name, slices) in threads {
        all.extend(nested(name, slices));
    }
    all.extend(apart("gpu kernels and copies", device));
    for ((backend, phase), slices) in subregions(analysis) {
        let name = format!("{} {}", analysis.run.backends[backend], phase.name());
        all.extend(apart(&name, slices));
    }
    all
}

fn steps<'a>(analysis: &'a Analysis<'_>) -> Vec<Slice<'a>> {
    let steps = analysis.run.steps.iter().zip(&analysis.rows);
    let slice = |(step, row): (&'a crate::analysis::RunStep, &'a crate::analysis::StepRow)| Slice {
        name: format!("step {}", row.step).into(),
        category: "step",
        time: step.step.time,
        about: About::Step(row),
    };
    steps.map(slice).collect()
}

fn stage<'a>(analysis: &'a Analysis<'_>, span: &'a Span) -> Slice<'a> {
    let backend = analysis.run.backend_of(span);
    Slice {
        name: (&*span.name).into(),
        category: backend.map_or("caller", |backend| &analysis.run.backends[backend]),
        time: span.time,
        about: About::Span(span),
    }
}

fn on_device(span: &Span) -> Slice<'_> {
    let name = span.text("kernel").or(span.text("what"));
    Slice {
        name: name.unwrap_or(&span.name).into(),
        category: "gpu",
        time: span.time,
        about: About::Span(span),
    }
}

/// Phases of subregions by backend and stream.
fn subregions<'a>(analysis: &'a Analysis<'_>) -> BTreeMap<(usize, Phase), Vec<Slice<'a>>> {
    let run = &analysis.run;
    let in_steps = run.steps.iter().flat_map(|step| {
        let number = Some(step.step.step);
        step.activities.iter().map(move |one| (number, one))
    });
    let outside = run.outside_activities.iter().map(|one| (None, one));
    let mut streams: BTreeMap<_, Vec<Slice<'_>>> = BTreeMap::new();
    for (step, activity) in in_steps.chain(outside) {
        let (Source::Subregion { number, pass }, Some(backend)) =
            (activity.source, activity.backend)
        else {
            continue;
        };
        let slice = Slice {
            name: activity_name(analysis.trace, run, activity).into(),
            category: &run.backends[backend],
            time: activity.time,
            about: About::Subregion { step, number, pass },
        };
        streams
            .entry((backend, activity.phase))
            .or_default()
            .push(slice);
    }
    streams
}

/// Tracks on which slices lie within each other or apart.
fn nested<'a>(name: &str, slices: Vec<Slice<'a>>) -> Vec<Track<'a>> {
    divided(name, slices, true)
}

/// Tracks on which slices lie apart, because one within another is not part of it.
fn apart<'a>(name: &str, slices: Vec<Slice<'a>>) -> Vec<Track<'a>> {
    divided(name, slices, false)
}

fn divided<'a>(name: &str, mut slices: Vec<Slice<'a>>, nest: bool) -> Vec<Track<'a>> {
    slices.sort_by_key(|slice| (slice.time.begin(), std::cmp::Reverse(slice.time.end())));
    let mut tracks: Vec<Track<'a>> = Vec::new();
    let mut places = Tracks::new(nest);
    for slice in slices {
        let at = places.place(slice.time);
        if at == tracks.len() {
            let name = match at {
                0 => name.to_owned(),
                _ => format!("{name} {}", at + 1),
            };
            let slices = Vec::new();
            tracks.push(Track { name, slices });
        }
        tracks[at].slices.push(slice);
    }
    tracks
}

/// The threshold and the CPU backend's share at every step; counters have no infinity.
pub(super) fn counts<'a>(analysis: &'a Analysis<'_>) -> impl Iterator<Item = Count> + use<'a> {
    let steps = analysis.run.steps.iter().zip(&analysis.rows);
    steps.flat_map(|(step, row)| {
        let at = step.step.time.begin();
        let theta = row.theta.map(|theta| theta.0);
        let values = [("theta", theta), ("cpu share", row.share)];
        values.into_iter().filter_map(move |(name, value)| {
            let value = value.filter(|value| value.is_finite())?;
            Some(Count { name, at, value })
        })
    })
}

/// Decisions and notes.
pub(super) fn moments<'a>(
    analysis: &'a Analysis<'_>,
) -> impl Iterator<Item = Moment<'a>> + use<'a> {
    let decisions = analysis.trace.retunes.iter().map(|one| Moment {
        name: "retune",
        at: analysis.run.moment(one.at),
        arguments: json!({
            "step": analysis.run.step_before(one), "kernel": one.kernel,
            "targets": one.targets, "sources": one.sources, "subregion": one.subregion,
            "policy": one.policy, "theta_before": one.theta_before, "theta": one.theta,
            "reason": one.reason,
        }),
    });
    let notes = analysis.trace.notes.iter().map(|note| Moment {
        name: &note.message,
        at: analysis.run.moment(note.at),
        arguments: json!({"level": note.level, "fields": note.fields}),
    });
    decisions.chain(notes)
}
