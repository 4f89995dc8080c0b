//! Tables for spreadsheets and data frames.

use crate::analysis::{Analysis, Source, activity_name, ms};
use csv::Writer;
use nearfield_trace::model::Phase;
use std::io::{self, Write};

/// Writes a row per step.
///
/// # Errors
/// If `to` fails.
pub fn write_steps_csv(analysis: &Analysis<'_>, to: impl Write) -> io::Result<()> {
    let mut table = Writer::from_writer(to);
    let columns =
        "step,begin_ms,ms,points,pairs,theta,share,imbalance,overlap,critical_path_ms,retuned";
    let mut head: Vec<String> = columns.split(',').map(str::to_owned).collect();
    for backend in analysis.backends() {
        head.extend(["busy", "waiting", "idle"].map(|what| format!("{backend}_{what}_ms")));
    }
    table.write_record(&head)?;
    for row in &analysis.rows {
        let mut cells = vec![
            row.step.to_string(),
            row.begin_ms.to_string(),
            row.ms.to_string(),
            optional(row.points),
            optional(row.pairs),
            optional(row.theta.map(|theta| theta.0)),
            optional(row.share),
            optional(row.imbalance),
            optional(row.overlap),
            row.critical_path_ms.to_string(),
            row.retuned.to_string(),
        ];
        cells.extend(row.backends.iter().flatten().map(f64::to_string));
        table.write_record(&cells)?;
    }
    table.flush()
}

/// Writes a row per activity, which is uninterrupted work of a backend or of the caller's thread.
///
/// # Errors
/// If `to` fails.
pub fn write_activities_csv(analysis: &Analysis<'_>, to: impl Write) -> io::Result<()> {
    let mut table = Writer::from_writer(to);
    table.write_record([
        "step",
        "backend",
        "phase",
        "name",
        "subregion",
        "pass",
        "begin_ms",
        "end_ms",
    ])?;
    let run = &analysis.run;
    for step in &run.steps {
        for activity in &step.activities {
            let (number, pass) = match activity.source {
                Source::Subregion { number, pass } => (Some(number), Some(pass)),
                Source::Stage { .. } | Source::Device { .. } => (None, None),
            };
            let backend = activity
                .backend
                .map(|backend| run.backends[backend].to_string());
            table.write_record([
                step.step.step.to_string(),
                backend.unwrap_or_else(|| "caller".into()),
                Phase::name(activity.phase).to_owned(),
                activity_name(analysis.trace, run, activity),
                optional(number),
                optional(pass),
                ms(activity.time.begin()).to_string(),
                ms(activity.time.end()).to_string(),
            ])?;
        }
    }
    table.flush()
}

/// A number, or nothing.
fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
