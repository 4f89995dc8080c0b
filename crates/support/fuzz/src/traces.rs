//! Traces: whatever the bytes, the reader returns, and so does everything that is made of a trace.

use crate::message::check_line;
use nearfield_trace_analysis::{
    Analysis, Comparison, Markdown, Trace, write_activities_csv, write_chrome, write_perfetto,
    write_report, write_steps_csv,
};

/// Reads `bytes` as a trace, analyses it, exports it in every format and compares it with itself.
///
/// # Panics
/// When one of these breaks a promise.
pub fn read(bytes: &[u8]) {
    let trace = match Trace::read(bytes, "trace") {
        Ok(trace) => trace,
        Err(error) => return check_line(&error.to_string()),
    };
    if !trace.damage.is_none() {
        check_line(&trace.damage.to_string());
    }
    let analysis = match Analysis::of(&trace) {
        Ok(analysis) => analysis,
        Err(error) => return check_line(&error.to_string()),
    };
    assert!(!analysis.summary.to_string().is_empty());
    assert!(!Markdown(&analysis.summary).to_string().is_empty());
    let comparison = Comparison::of(&analysis, &analysis).expect("a trace has the clock of itself");
    assert!(!comparison.to_string().is_empty());
    let written = [
        write_chrome(&analysis, std::io::sink()),
        write_perfetto(&analysis, std::io::sink()),
        write_steps_csv(&analysis, std::io::sink()),
        write_activities_csv(&analysis, std::io::sink()),
        write_report(&analysis, std::io::sink()),
    ];
    for result in written {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}
