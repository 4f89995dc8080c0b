//! The trace event format of Chrome, which Perfetto opens.
//!
//! Reference: "Trace Event Format", the Chromium project. Stages are complete events (`X`) on a
//! track per thread, and subregions on a track per backend and stream. Work that a device timed is
//! on as many tracks as ran at once. Decisions and warnings are instant events (`i`), the threshold
//! and the CPU backend's share are counters (`C`). Times are microseconds.

use crate::analysis::{Analysis, Source, activity_name};
use nearfield_trace::model::{Interval, Phase, Span};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

/// The process of all events.
const PROCESS: u32 = 1;
/// The track of the steps.
const STEPS: u32 = 1;
/// Tracks of threads are numbered from here.
const THREADS: u32 = 10;
/// Tracks of backends, one per stream, are numbered from here.
const LANES: u32 = 1 << 20;
/// Tracks of work timed by a device are numbered from here.
const DEVICE: u32 = 1 << 21;

/// Writes one JSON object with all events.
///
/// # Errors
/// If `to` fails.
pub fn write_chrome(analysis: &Analysis<'_>, to: impl Write) -> io::Result<()> {
    let header = &analysis.trace.header;
    let mut events = Events { to, first: true };
    events
        .to
        .write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
    let other = json!({
        "program": header.program,
        "machine": header.machine,
        "start_unix_ms": header.start_unix_ms,
        "clock": analysis.summary.clock,
        "verdict": analysis.summary.verdict,
    });
    serde_json::to_writer(&mut events.to, &other)?;
    events.to.write_all(b",\"traceEvents\":[")?;
    events.name_tracks(analysis)?;
    events.write_steps(analysis)?;
    events.write_stages(analysis)?;
    events.write_subregions(analysis)?;
    events.write_moments(analysis)?;
    events.to.write_all(b"\n]}\n")?;
    events.to.flush()
}

struct Events<W> {
    to: W,
    first: bool,
}

/// Microseconds.
fn us(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Tracks of threads by name.
fn threads<'a>(analysis: &'a Analysis<'_>) -> BTreeMap<&'a str, u32> {
    let mut tracks = BTreeMap::new();
    for span in hosted(analysis) {
        let next = THREADS + tracks.len() as u32;
        tracks.entry(&*span.thread).or_insert(next);
    }
    tracks
}

/// The stages that have times on the clock of the analysis and were timed by the host.
fn hosted<'a>(analysis: &'a Analysis<'_>) -> impl Iterator<Item = &'a Span> {
    let spans = analysis.trace.spans.iter();
    spans.filter(|span| !analysis.run.is_virtual && !span.is_device_timed())
}

/// Spans that the device timed, each on the first track that is free then.
fn timed<'a>(analysis: &'a Analysis<'_>) -> Vec<(u32, &'a Span)> {
    let spans = analysis.trace.spans.iter();
    let mut timed: Vec<&Span> = spans.filter(|span| span.is_device_timed()).collect();
    timed.sort_by_key(|span| span.time);
    // By when they are free, and by track.
    let mut busy: BTreeSet<(u64, u32)> = BTreeSet::new();
    let mut placed = Vec::with_capacity(timed.len());
    for span in timed.into_iter().filter(|_| !analysis.run.is_virtual) {
        let free = busy
            .first()
            .filter(|(end, _)| *end <= span.time.begin())
            .copied();
        let track = match free {
            Some(first) => {
                busy.remove(&first);
                first.1
            }
            None => DEVICE + busy.len() as u32,
        };
        busy.insert((span.time.end(), track));
        placed.push((track, span));
    }
    placed
}

/// The track of a backend's stream.
fn stream(backend: usize, phase: Phase) -> u32 {
    LANES + 10 * backend as u32 + phase as u32
}

impl<W: Write> Events<W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.to.write_all(separator)?;
        Ok(serde_json::to_writer(&mut self.to, event)?)
    }

    fn complete(
        &mut self,
        name: &str,
        category: &str,
        track: u32,
        time: Interval,
        arguments: Value,
    ) -> io::Result<()> {
        self.put(&json!({
            "name": name, "cat": category, "ph": "X", "pid": PROCESS, "tid": track,
            "ts": us(time.begin()), "dur": us(time.length()), "args": arguments,
        }))
    }

    fn name_tracks(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let named = |what: &str, track: u32, name: &str| {
            json!({
                "name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name},
            })
        };
        self.put(&named(
            "process_name",
            STEPS,
            &analysis.trace.header.program.name,
        ))?;
        self.put(&named("thread_name", STEPS, "steps"))?;
        for (name, track) in threads(analysis) {
            self.put(&named("thread_name", track, name))?;
        }
        let tracks: BTreeSet<u32> = timed(analysis).iter().map(|(track, _)| *track).collect();
        for track in tracks {
            let name = format!("gpu kernels and copies {}", track - DEVICE + 1);
            self.put(&named("thread_name", track, &name))?;
        }
        for backend in &analysis.run.shared_by {
            for phase in Phase::ALL {
                let name = format!("{} {}", analysis.run.backends[*backend], phase.name());
                self.put(&named("thread_name", stream(*backend, phase), &name))?;
            }
        }
        Ok(())
    }

    fn write_steps(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        for (step, row) in analysis.run.steps.iter().zip(&analysis.rows) {
            let time = step.step.time;
            let name = format!("step {}", row.step);
            let mut arguments = Map::new();
            let counts = [("points", row.points), ("pairs", row.pairs)];
            for (name, count) in counts {
                arguments.extend(count.map(|count| (name.to_owned(), json!(count))));
            }
            arguments.insert("critical_path_ms".into(), json!(row.critical_path_ms));
            self.complete(&name, "step", STEPS, time, arguments.into())?;
            let counters = [
                ("theta", row.theta.map(|theta| theta.0)),
                ("cpu share", row.share),
            ];
            for (name, value) in counters {
                // Counters have no infinity.
                let Some(value) = value.filter(|value| value.is_finite()) else {
                    continue;
                };
                self.put(&json!({
                    "name": name, "ph": "C", "pid": PROCESS, "ts": us(time.begin()),
                    "args": {name: value},
                }))?;
            }
        }
        Ok(())
    }

    fn write_stages(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let threads = threads(analysis);
        for span in hosted(analysis) {
            let backend = analysis.run.backend_of(span);
            let category = backend.map_or("caller", |backend| &analysis.run.backends[backend]);
            let arguments = serde_json::to_value(&span.fields)?;
            let track = threads[&*span.thread];
            self.complete(&span.name, category, track, span.time, arguments)?;
        }
        for (track, span) in timed(analysis) {
            let name = span
                .text("kernel")
                .or(span.text("what"))
                .unwrap_or(&span.name);
            let arguments = serde_json::to_value(&span.fields)?;
            self.complete(name, "gpu", track, span.time, arguments)?;
        }
        Ok(())
    }

    fn write_subregions(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let run = &analysis.run;
        let in_steps = run.steps.iter().flat_map(|step| {
            let number = Some(step.step.step);
            step.activities.iter().map(move |one| (number, one))
        });
        let outside = run.outside_activities.iter().map(|one| (None, one));
        for (step, activity) in in_steps.chain(outside) {
            let (Source::Subregion { number, pass }, Some(backend)) =
                (activity.source, activity.backend)
            else {
                continue;
            };
            let name = activity_name(analysis.trace, run, activity);
            let track = stream(backend, activity.phase);
            // The step is null for a job outside of all of them.
            let arguments = json!({"step": step, "subregion": number, "pass": pass});
            self.complete(
                &name,
                &run.backends[backend],
                track,
                activity.time,
                arguments,
            )?;
        }
        Ok(())
    }

    fn write_moments(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let trace = analysis.trace;
        let decisions = trace.retunes.iter().map(|one| {
            let arguments = json!({
                "step": analysis.run.step_before(one), "subregion": one.subregion, "policy": one.policy,
                "theta_before": one.theta_before, "theta": one.theta, "reason": one.reason,
            });
            ("retune".to_owned(), analysis.run.moment(one.at), arguments)
        });
        let notes = trace.notes.iter().map(|note| {
            let arguments = json!({"level": note.level, "fields": note.fields});
            (
                note.message.to_string(),
                analysis.run.moment(note.at),
                arguments,
            )
        });
        for (name, at, arguments) in decisions.chain(notes) {
            self.put(&json!({
                "name": name, "ph": "i", "s": "p", "pid": PROCESS, "tid": STEPS, "ts": us(at),
                "args": arguments,
            }))?;
        }
        Ok(())
    }
}
