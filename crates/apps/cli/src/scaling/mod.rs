//! `nearfield scaling`: measures how the cost grows with the number of points.
//!
//! Every kind of work is timed on one named cloud at several sizes, by the method of
//! `nearfield bench`, each time in a new engine. Cases that do not fit in memory are skipped and
//! reported.

mod picture;
mod room;
mod sample;
mod sizes;

use crate::{
    bench::{self, Order, Repetitions, Steps, Subject, Work},
    failure::Failure,
    files,
    options::{self, CloudOption, EngineOptions, Radius},
    output,
};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use nearfield_files::Plan;
use nearfield_grid::memory::copied;
use nearfield_plot::{ErrorKind, rounded};
use nearfield_testkit::cloud::Cloud;
use room::Room;
use sample::{Sample, SkippedWork};
use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Flags of `nearfield scaling`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cloud: CloudOption,
    /// Seed of the points
    #[arg(long, default_value_t = options::SEED, value_name = "N")]
    seed: u64,
    /// Search radius [default: that of `bench`]
    #[arg(long)]
    radius: Option<f32>,
    /// Quantities to compute, one or several
    #[arg(
        long,
        visible_alias = "works",
        value_enum,
        value_delimiter = ',',
        value_name = "WORK,…",
        default_value = "lists,density"
    )]
    work: Vec<Work>,
    /// Smallest number of points, for example 20000 or 1e4
    #[arg(long, default_value = "1e4", value_name = "POINTS", value_parser = options::positive_count)]
    from: usize,
    /// Largest number of points
    #[arg(long, default_value = "1e6", value_name = "POINTS", value_parser = options::positive_count)]
    to: usize,
    /// Order of the points in memory
    #[arg(long, value_enum, default_value_t = Order::Sorted)]
    order: Order,
    /// Timed repetitions; medians are reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    #[command(flatten)]
    engine: EngineOptions,
    /// Memory limit in MiB; larger cases are skipped [default: half of the available memory]
    #[arg(long, value_name = "N")]
    memory_mib: Option<u64>,
    /// The picture, a PNG file
    #[arg(long, value_name = "PATH", default_value = "scaling.png")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the file that is written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        plan.write("--output", &self.output);
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    cloud: &'static str,
    /// `None` where the cloud's usual radius depends on the number of points.
    radius: Option<f32>,
    order: Order,
    device: String,
    processor: String,
    threads: usize,
    simd: &'static str,
    version: &'static str,
    repetitions: u32,
    points: Vec<Sample>,
    skipped: Vec<SkippedWork>,
}

/// Outcome of one job at one number of points.
enum Outcome {
    Timed(Sample),
    Skipped(SkippedWork),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let cloud: Cloud = args.cloud.name().parse().map_err(Failure::NamedCloud)?;
    let sizes = sizes::between(args.from, args.to).map_err(Failure::Usage)?;
    check_folder(&args.output)?;
    files::check_extension(&args.output, "pictures", &["png"])?;
    let radius = args.radius.or_else(|| sizes::common_radius(cloud, &sizes));
    let report = args
        .engine
        .engine(Radius::Single(radius.unwrap_or(1.0)))
        .build()?
        .report();
    let mut summary = Summary {
        cloud: cloud.name(),
        radius,
        order: args.order,
        device: report.device.to_string(),
        processor: nearfield_trace::processor(),
        threads: report.threads,
        simd: report.simd.name(),
        version: env!("CARGO_PKG_VERSION"),
        repetitions: args.repetitions,
        points: Vec::new(),
        skipped: Vec::new(),
    };
    measure(args, cloud, &sizes, &mut summary)?;
    if summary.points.is_empty() {
        return Err(Failure::Wrong(nothing_fits(&summary)));
    }
    picture::save(&args.output, &headings(&summary), &summary.points)?;
    output::print(args.json, &summary, || lines(&summary, &args.output))
}

/// Times all works at all sizes.
fn measure(
    args: &Args,
    cloud: Cloud,
    sizes: &[usize],
    summary: &mut Summary,
) -> Result<(), Failure> {
    let room = Room::of(args.memory_mib);
    let works = options::distinct(&args.work);
    let bar = progress_bar(sizes, works.len());
    let mut done = None;
    for &size in sizes {
        let any_fits = works.iter().any(|&work| room.fits_points(work, size));
        let positions = any_fits
            .then(|| bench::draw(cloud, size, args.seed))
            .transpose()?;
        // A lattice has only cube numbers of points, so two sizes may give the same one.
        let points = positions.as_ref().map_or(size, Vec::len);
        if done.replace(points) == Some(points) {
            continue;
        }
        for &work in &works {
            bar.set_message(format!(
                "{} of {} points",
                options::name(work),
                HumanCount(points as u64)
            ));
            let outcome = match &positions {
                Some(positions) if room.fits_points(work, points) => {
                    time(args, cloud, work, positions, room)?
                }
                _ => Outcome::Skipped(room.skip(points, work, Room::points(work, points))),
            };
            match outcome {
                Outcome::Timed(sample) => {
                    // An engine that has not worked yet reports neither.
                    summary.device.clone_from(&sample.device);
                    summary.points.push(sample);
                }
                Outcome::Skipped(skipped) => summary.skipped.push(skipped),
            }
            bar.inc(size as u64);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// One work on one cloud.
fn time(
    args: &Args,
    cloud: Cloud,
    work: Work,
    positions: &[[f32; 3]],
    room: Room,
) -> Result<Outcome, Failure> {
    let points = positions.len();
    let radius = args.radius.unwrap_or_else(|| cloud.default_radius(points));
    let builder = args.engine.engine(Radius::Single(radius));
    let mut steps = Steps::new(builder, radius, copied(positions, "points")?, args.order)?;
    if matches!(work, Work::Lists | Work::Geometry) {
        let counts = steps.engine().count_neighbors(steps.set(), steps.set())?;
        let pairs = counts.iter().map(|&count| u64::from(count)).sum();
        let needed = Room::lists(work, points, pairs);
        if !room.fits(needed) {
            return Ok(Outcome::Skipped(room.skip(points, work, needed)));
        }
    }
    let mut subject = Subject::new(work, points, radius)?;
    let repetitions = Repetitions {
        uncounted: 1,
        timed: args.repetitions,
    };
    let milliseconds = steps.time(&mut subject, repetitions, |_| Ok(()))?;
    let report = steps.engine().report();
    let bytes_per_point = report.bytes_per_point();
    let (pairs, _) = subject.result(steps.engine(), steps.set())?;
    Ok(Outcome::Timed(Sample {
        points,
        work,
        radius,
        device: report.device.to_string(),
        milliseconds,
        nanoseconds_per_point: milliseconds.total * 1e6 / points as f64,
        bytes_per_point,
        pairs,
    }))
}

/// Refuses a path that cannot become a file before minutes are spent on its content.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let reason = match path.parent() {
        _ if path.is_dir() => "it is a folder, but a file is needed",
        Some(folder) if folder.as_os_str().is_empty() || folder.is_dir() => return Ok(()),
        _ => "its folder does not exist",
    };
    let (path, source) = (path.to_owned(), io::Error::other(reason));
    Err(nearfield_plot::Error::from(ErrorKind::Write { path, source }).into())
}

/// A progress bar in points; silent unless standard error is a terminal.
fn progress_bar(sizes: &[usize], works: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {msg}");
    let all = sizes
        .iter()
        .fold(0, |sum: u64, &size| sum.saturating_add(size as u64));
    ProgressBar::new(all.saturating_mul(works as u64))
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn nothing_fits(summary: &Summary) -> String {
    let notes: Vec<String> = summary.skipped.iter().map(note).collect();
    format!(
        "nothing fits in memory: {}; take fewer points, a smaller radius or more --memory-mib",
        notes.join(", ")
    )
}

fn note(skipped: &SkippedWork) -> String {
    format!(
        "{} of {} points need {}, allowed are {}",
        options::name(skipped.work),
        HumanCount(skipped.points as u64),
        HumanBytes(skipped.bytes_needed),
        HumanBytes(skipped.bytes_allowed)
    )
}

/// The lines above the picture and the table: the subject and the machine.
fn headings(summary: &Summary) -> [String; 2] {
    let radius = summary.radius.map_or_else(
        || "usual radius".into(),
        |radius| format!("radius {}", rounded(radius.into(), 4)),
    );
    let threads = match summary.threads {
        1 => "1 thread".into(),
        threads => format!("{threads} threads"),
    };
    let order = options::name(summary.order);
    [
        format!("Cost of a step: {}, {radius}, {order}", summary.cloud),
        format!(
            "{} · {threads} · {} · nearfield {} · medians of {}",
            summary.processor, summary.simd, summary.version, summary.repetitions
        ),
    ]
}

fn lines(summary: &Summary, picture: &Path) -> Vec<String> {
    let mut lines = Vec::from(headings(summary));
    lines.push(format!(
        "{:>13}  {:<8}{:>10}{:>11}{:>10}{:>10}{:>13}",
        "points", "work", "build ms", "search ms", "total ms", "ns/point", "bytes/point"
    ));
    lines.extend(summary.points.iter().map(|sample| {
        format!(
            "{:>13}  {:<8}{:>10.3}{:>11.3}{:>10.3}{:>10.1}{:>13.1}",
            HumanCount(sample.points as u64).to_string(),
            options::name(sample.work),
            sample.milliseconds.build,
            sample.milliseconds.search,
            sample.milliseconds.total,
            sample.nanoseconds_per_point,
            sample.bytes_per_point
        )
    }));
    let notes = summary.skipped.iter();
    lines.extend(notes.map(|skipped| format!("left out: {}", note(skipped))));
    lines.push("bytes are those of a point without the entries of lists".to_owned());
    lines.push(output::wrote(picture));
    lines
}
