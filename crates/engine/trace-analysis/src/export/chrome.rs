//! The trace event format of Chrome, which Perfetto opens.
//!
//! Reference: "Trace Event Format", the Chromium project. Slices are complete events (`X`) on
//! tracks that are threads of one process. Decisions and warnings are instant events (`i`), the
//! threshold and the CPU backend's share are counters (`C`). Times are microseconds.

use super::events::{counts, moments, tracks};
use crate::analysis::Analysis;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The process of all events.
const PROCESS: u32 = 1;

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
    events.write(analysis)?;
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

impl<W: Write> Events<W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.to.write_all(separator)?;
        Ok(serde_json::to_writer(&mut self.to, event)?)
    }

    fn name(&mut self, what: &str, track: usize, name: &str) -> io::Result<()> {
        self.put(&json!({
            "name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name},
        }))
    }

    fn write(&mut self, analysis: &Analysis<'_>) -> io::Result<()> {
        self.name("process_name", 1, &analysis.trace.header.program.name)?;
        for (track, of) in (1..).zip(tracks(analysis)) {
            self.name("thread_name", track, &of.name)?;
            for slice in of.slices {
                self.put(&json!({
                    "name": slice.name, "cat": slice.category, "ph": "X", "pid": PROCESS,
                    "tid": track, "ts": us(slice.time.begin()), "dur": us(slice.time.length()),
                    "args": slice.arguments(),
                }))?;
            }
        }
        for count in counts(analysis) {
            self.put(&json!({
                "name": count.name, "ph": "C", "pid": PROCESS, "ts": us(count.at),
                "args": {count.name: count.value},
            }))?;
        }
        for moment in moments(analysis) {
            self.put(&json!({
                "name": moment.name, "ph": "i", "s": "p", "pid": PROCESS, "tid": 1,
                "ts": us(moment.at), "args": moment.arguments,
            }))?;
        }
        Ok(())
    }
}
