//! A self-contained page that shows a trace: styles, scripts and data are in one file.

mod bars;
mod details;
mod points;

use crate::analysis::{Analysis, StepRow, Summary, digits, ms};
use nearfield_trace::model::{Note, Retune, Theta};
use serde::Serialize;
use std::io::{self, Write};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// In order: each uses the ones before it.
const SCRIPTS: [&str; 5] = [
    include_str!("base.js"),
    include_str!("summary.js"),
    include_str!("charts.js"),
    include_str!("timeline.js"),
    include_str!("page.js"),
];

/// Bytes of memory for a step in the report: three copies of its text, of about a kilobyte.
const STEP_BYTES: usize = 4096;

/// Most steps that are shown one by one; the summary is of all.
const MAX_STEPS: usize = 50_000;
/// Most occupancies, evenly taken.
const MAX_OCCUPANCIES: usize = 40;
/// Most decisions and notes.
const MAX_LINES: usize = 300;

/// Data of the page's scripts.
#[derive(Serialize)]
struct Data<'a> {
    summary: &'a Summary,
    backends: Vec<&'a str>,
    rows: &'a [StepRow],
    tracks: Vec<bars::Track>,
    names: Vec<String>,
    /// Six numbers a bar: track, name, index of the step, subregion or −1, begin and length in
    /// microseconds.
    bars: Vec<f64>,
    /// Whether only some steps have all their bars.
    thinned: bool,
    details: details::Details,
    points: Vec<points::RatePoint>,
    occupancies: Vec<points::Occupancy<'a>>,
    lines: Vec<Line>,
}

/// A decision or a note.
#[derive(Serialize)]
struct Line {
    at_ms: f64,
    /// `decision`, or the note's level.
    kind: String,
    text: String,
}

/// Writes the page.
///
/// # Errors
/// If `to` fails, and [`io::ErrorKind::OutOfMemory`] with the bytes.
pub fn write_report(analysis: &Analysis<'_>, mut to: impl Write) -> io::Result<()> {
    let steps = analysis.rows.len().min(MAX_STEPS);
    nearfield_files::ask_for_memory((1 << 20) + STEP_BYTES * steps, "the report")?;
    let bars = bars::collect(analysis, steps);
    let data = Data {
        summary: &analysis.summary,
        backends: analysis.backends().collect(),
        rows: &analysis.rows[..steps],
        tracks: bars.tracks,
        names: bars.names,
        bars: bars.numbers,
        thinned: bars.thinned,
        details: details::collect(analysis, steps),
        points: points::rates(analysis),
        occupancies: points::occupancies(analysis, MAX_OCCUPANCIES),
        lines: lines(analysis),
    };
    // Nothing in it may end the element it stands in; outside of strings JSON has no such sign.
    let json = serde_json::to_string(&data)?.replace('<', "\\u003c");
    let mut rest = PAGE;
    for (mark, texts) in [
        ("/*STYLE*/", &[STYLE][..]),
        ("/*DATA*/", &[json.as_str()]),
        ("/*SCRIPT*/", &SCRIPTS),
    ] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        to.write_all(before.as_bytes())?;
        for text in texts {
            to.write_all(text.as_bytes())?;
        }
        rest = after;
    }
    to.write_all(rest.as_bytes())?;
    to.flush()
}

fn lines(analysis: &Analysis<'_>) -> Vec<Line> {
    let trace = analysis.trace;
    let changes = trace.retunes.iter().map(|one| Line {
        at_ms: ms(analysis.run.moment(one.at)),
        kind: "decision".into(),
        text: decision(one, analysis.run.step_before(one)),
    });
    let outside = analysis.summary.outside.iter().map(|outside| Line {
        at_ms: 0.0,
        kind: "outside".into(),
        text: format!("outside of all steps: {outside}"),
    });
    let notes = trace.notes.iter().map(|note| Line {
        at_ms: ms(analysis.run.moment(note.at)),
        kind: note.level.to_string(),
        text: described(note),
    });
    let mut lines: Vec<Line> = outside.chain(changes).chain(notes).collect();
    lines.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    lines.truncate(MAX_LINES);
    lines
}

fn decision(retune: &Retune, step: Option<u64>) -> String {
    let job = retune.kernel.as_deref().map_or(String::new(), |kernel| {
        // The last part of a type's path is its name.
        let plain = kernel.split('<').next().unwrap_or(kernel);
        let short = plain.rsplit("::").next().unwrap_or(plain);
        match (retune.targets, retune.sources) {
            (Some(targets), Some(sources)) => format!(", {short} of sets {targets} and {sources}"),
            _ => format!(", {short}"),
        }
    });
    let place = retune
        .subregion
        .map_or(String::new(), |one| format!(", subregion {one}"));
    let theta = |theta: Theta| digits(theta.0);
    let change = match (retune.theta_before.map(theta), retune.theta.map(theta)) {
        (Some(before), Some(after)) if before == after => format!(" θ {after}:"),
        (Some(before), Some(after)) => format!(" θ {before} → {after}:"),
        (None, Some(after)) => format!(" θ {after}:"),
        _ => String::new(),
    };
    let (policy, reason) = (&retune.policy, &retune.reason);
    let step = points::named_step(step);
    format!("{step}{job}{place}, {policy}:{change} {reason}")
}

fn described(note: &Note) -> String {
    let fields: Vec<String> = note
        .fields
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if fields.is_empty() {
        note.message.to_string()
    } else {
        format!("{} ({})", note.message, fields.join(", "))
    }
}
