//! `nearfield trace`: analyses and converts a recorded trace.

use crate::{failure::Failure, files, options::examples, output};
use clap::{Subcommand, ValueEnum};
use nearfield_files::Plan;
use nearfield_trace_analysis::{
    Analysis, Comparison, Compressor, Error, Markdown, Trace, is_compressed, write_activities_csv,
    write_chrome, write_merged, write_perfetto, write_report, write_steps_csv,
};
use serde::Serialize;
use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The commands of `nearfield trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Prints how busy the backends were, the reasons for idle time, and remedies
    #[command(after_help = examples!("nearfield trace summary t.jsonl"))]
    Summary {
        /// A file that --trace wrote
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Print Markdown, for a pull request
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Writes one HTML page with timeline, plots and tables
    #[command(after_help = examples!("nearfield trace report t.jsonl --output report.html"))]
    Report {
        /// A file that --trace wrote
        file: PathBuf,
        /// The page
        #[arg(long, value_name = "PATH", default_value = "report.html")]
        output: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Writes the trace in a format of other programs
    #[command(after_help = examples!("nearfield trace export t.jsonl --format perfetto --output t.pftrace"))]
    Export {
        /// A file that --trace wrote
        file: PathBuf,
        /// perfetto is for ui.perfetto.dev, chrome for it and chrome://tracing
        #[arg(long, value_enum, default_value_t = Format::Chrome)]
        format: Format,
        /// The file to write; standard output without
        #[arg(long, value_name = "PATH")]
        output: Option<PathBuf>,
    },
    /// Makes one trace of the traces of many ranks, with a row for each
    #[command(after_help = examples!("nearfield trace merge rank0.jsonl rank1.jsonl --output all.jsonl"))]
    Merge {
        /// The files that --trace wrote, one of each rank, or one of ranks as threads
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The merged trace, compressed if its name ends with .zst
        #[arg(long, value_name = "PATH")]
        output: PathBuf,
    },
    /// Lists what became faster or slower from one trace to another
    #[command(after_help = examples!("nearfield trace compare before.jsonl after.jsonl"))]
    Compare {
        /// The trace before
        before: PathBuf,
        /// The trace after
        after: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Formats of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Trace events as JSON
    Chrome,
    /// Perfetto's own format, a protocol buffer
    Perfetto,
    /// A table of steps
    Csv,
    /// A table of everything that backends did
    ActivitiesCsv,
}

/// The files written, by kind.
#[derive(Debug, Serialize)]
struct WrittenFile<'a> {
    output: &'a Path,
    steps: usize,
    bytes: u64,
}

impl Task {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        match self {
            Self::Summary { file, .. } => plan.read(file),
            Self::Report { file, output, json } => {
                plan.print_json(*json);
                plan.read(file);
                plan.write("--output", output);
            }
            Self::Export { file, output, .. } => {
                plan.read(file);
                if let Some(output) = output {
                    plan.write("--output", output);
                }
            }
            Self::Merge { files, output } => {
                files.iter().for_each(|file| plan.read(file));
                plan.write("--output", output);
            }
            Self::Compare { before, after, .. } => {
                plan.read(before);
                plan.read(after);
            }
        }
    }
}

pub(crate) fn run(task: &Task) -> Result<(), Failure> {
    match task {
        Task::Summary {
            file,
            json,
            markdown,
        } => summarize(file, *json, *markdown),
        Task::Report { file, output, json } => report(file, output, *json),
        Task::Export {
            file,
            format,
            output,
        } => export(file, *format, output.as_deref()),
        Task::Merge { files, output } => merge(files, output),
        Task::Compare {
            before,
            after,
            json,
        } => compare(before, after, *json),
    }
}

fn summarize(file: &Path, json: bool, markdown: bool) -> Result<(), Failure> {
    let trace = Trace::open(file)?;
    let summary = Analysis::of(&trace)?.summary;
    output::print(json, &summary, || {
        let text = if markdown {
            Markdown(&summary).to_string()
        } else {
            summary.to_string()
        };
        [text.trim_end().to_owned()]
    })
}

fn report(file: &Path, output: &Path, json: bool) -> Result<(), Failure> {
    files::check_extension(output, "reports", &["html", "htm"])?;
    let trace = open(file)?;
    let analysis = Analysis::of(&trace)?;
    write(output, |to| write_report(&analysis, to))?;
    let written = WrittenFile {
        output,
        steps: analysis.rows.len(),
        bytes: output.metadata().map_or(0, |file| file.len()),
    };
    output::print(json, &written, || {
        let (path, megabytes) = (output.display(), written.bytes as f64 / 1e6);
        let steps = written.steps;
        [format!(
            "Wrote {steps} steps to {path}, {megabytes:.1} MB: open it in a browser"
        )]
    })
}

fn export(file: &Path, format: Format, output: Option<&Path>) -> Result<(), Failure> {
    let trace = open(file)?;
    let analysis = Analysis::of(&trace)?;
    let export = |to: &mut dyn Write| match format {
        Format::Chrome => write_chrome(&analysis, to),
        Format::Perfetto => write_perfetto(&analysis, to),
        Format::Csv => write_steps_csv(&analysis, to),
        Format::ActivitiesCsv => write_activities_csv(&analysis, to),
    };
    match output {
        Some(path) => {
            write(path, export)?;
            output::print_lines([format!("Wrote {}", path.display())])
        }
        None => Ok(export(&mut BufWriter::new(io::stdout().lock()))?),
    }
}

fn merge(files: &[PathBuf], output: &Path) -> Result<(), Failure> {
    let traces: Result<Vec<Trace>, Failure> = files.iter().map(|file| open(file)).collect();
    let (traces, mut merged) = (traces?, Vec::new());
    write_merged(&traces, &mut merged)?;
    write(output, |to| {
        if !is_compressed(output) {
            return to.write_all(&merged);
        }
        let mut frames = Compressor::new(to);
        frames.write_all(&merged)?;
        frames.flush()
    })?;
    let (path, ranks) = (output.display(), traces.len());
    output::print_lines([format!("Wrote {ranks} merged traces to {path}")])
}

fn compare(before: &Path, after: &Path, json: bool) -> Result<(), Failure> {
    let (before, after) = (open(before)?, open(after)?);
    let comparison = Comparison::of(&Analysis::of(&before)?, &Analysis::of(&after)?)?;
    output::print(json, &comparison, || {
        [comparison.to_string().trim_end().to_owned()]
    })
}

/// A trace, with a warning on standard error when something is missing from it.
fn open(file: &Path) -> Result<Trace, Failure> {
    let trace = Trace::open(file)?;
    if !trace.damage.is_none() {
        output::notice(format_args!("{}: {}", file.display(), trace.damage));
    }
    Ok(trace)
}

fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let written = nearfield_files::write_with(path, |to| fill(to));
    Ok(written.map_err(|source| Error::write(path, source))?)
}
