//! The trace event format of Chrome, which Perfetto opens.
//!
//! Reference: "Trace Event Format", the Chromium project. Stages are complete events (`X`) on a
//! track per thread, subregions on a track per lane and stream, decisions and warnings instant events
//! (`i`), the threshold and the CPU lane's share counters (`C`). Times are microseconds.

use crate::{
    analysis::{Analysis, Source, activity_name},
    model::{Interval, Phase},
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    io::{self, Write},
};

/// The one process that events belong to.
const PROCESS: u32 = 1;
/// The track of the steps.
const STEPS: u32 = 1;
/// Tracks of threads are numbered from here.
const THREADS: u32 = 10;
/// Tracks of lanes are numbered from here, a stream each.
const LANES: u32 = 1 << 20;

/// Writes one JSON object with all events.
///
/// # Errors
/// What `to` says.
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
    for span in &analysis.trace.spans {
        let next = THREADS + tracks.len() as u32;
        tracks.entry(&*span.thread).or_insert(next);
    }
    tracks
}

/// The track of a lane's stream.
fn stream(lane: usize, phase: Phase) -> u32 {
    LANES + 10 * lane as u32 + phase as u32
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
        (name, category): (&str, &str),
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
        for lane in &analysis.run.shared_by {
            for phase in Phase::ALL {
                let name = format!("{} {}", analysis.run.lanes[*lane], phase.name());
                self.put(&named("thread_name", stream(*lane, phase), &name))?;
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
            self.complete((&name, "step"), STEPS, time, arguments.into())?;
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
        for span in &analysis.trace.spans {
            let category = span.lane.as_deref().unwrap_or("caller");
            let arguments = serde_json::to_value(&span.fields)?;
            let track = threads[&*span.thread];
            self.complete((&span.name, category), track, span.time, arguments)?;
        }
        Ok(())
    }

    fn write_subregions(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let run = &analysis.run;
        for step in &run.steps {
            for activity in &step.activities {
                let (Source::Subregion { number, pass }, Some(lane)) =
                    (activity.source, activity.lane)
                else {
                    continue;
                };
                let name = activity_name(analysis.trace, run, activity);
                let track = stream(lane, activity.phase);
                let arguments = json!({
                    "step": step.step.step, "subregion": number, "pass": pass,
                });
                self.complete((&name, &run.lanes[lane]), track, activity.time, arguments)?;
            }
        }
        Ok(())
    }

    fn write_moments(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        let trace = analysis.trace;
        let decisions = trace.retunes.iter().map(|one| {
            let arguments = json!({
                "step": one.step, "subregion": one.subregion, "policy": one.policy,
                "theta_before": one.theta_before, "theta": one.theta, "reason": one.reason,
            });
            ("retune".to_owned(), one.at, arguments)
        });
        let notes = trace.notes.iter().map(|note| {
            let arguments = json!({"level": note.level, "fields": note.fields});
            (note.message.to_string(), note.at, arguments)
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
