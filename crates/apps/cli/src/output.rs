//! Prints results to standard output, as one JSON object or as text, and notes to standard error.

use crate::failure::Failure;
use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

/// Prints `result` as one JSON object.
fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(result).map_err(io::Error::from)?;
    print_lines([text])
}

/// Prints `result` as one JSON object with `--json`, else these lines.
pub(crate) fn print<L: IntoIterator<Item: Display>>(
    json: bool,
    result: &impl Serialize,
    lines: impl FnOnce() -> L,
) -> Result<(), Failure> {
    if json {
        print_json(result)
    } else {
        print_lines(lines())
    }
}

/// Prints lines.
pub(crate) fn print_lines(lines: impl IntoIterator<Item: Display>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Writes one line to standard error. A standard error that is full or closed changes nothing: the
/// exit code still says how the run went.
pub(crate) fn notice(line: impl Display) {
    writeln!(io::stderr(), "nearfield: {line}").ok();
}

/// The line that names a file or a folder that a command wrote.
pub(crate) fn wrote(path: &Path) -> String {
    format!("wrote       {}", path.display())
}

/// The reason for a device without its remedy, which `nearfield info` has.
pub(crate) fn brief(reason: &str) -> &str {
    let reason = reason.strip_prefix("the CPU backend: ").unwrap_or(reason);
    reason.split(';').next().unwrap_or(reason)
}

/// Milliseconds since `begin`.
pub(crate) fn milliseconds(begin: Instant) -> f64 {
    milliseconds_of(begin.elapsed())
}

/// Milliseconds of a duration.
pub(crate) fn milliseconds_of(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
