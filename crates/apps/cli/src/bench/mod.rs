//! `nearfield bench`: times a search or a traversal in the steady state of a simulation.
//!
//! Between repetitions every coordinate moves by up to 0.015 r, as particles do between two steps,
//! so no repetition can reuse the answer of the one before. The first repetitions, which allocate
//! memory, are not counted.

mod backends;
mod gpu;
mod steps;
mod subject;
mod times;

pub(crate) use backends::Backend;
pub(crate) use steps::{Order, Steps};
pub(crate) use subject::{Subject, Work};
pub(crate) use times::{Repetitions, Times, median, medians};

use crate::{
    compare,
    domain::DomainOptions,
    failure::Failure,
    files,
    input::{self, FrameOption},
    options::{self, CloudOption, EngineOptions, Precision, Radius},
    output,
    precision::{self, Length},
    progress::progress_bar,
};
use indicatif::{HumanBytes, HumanCount};
use nearfield_files::Plan;
use nearfield_io::PointCloud;
use nearfield_testkit::cloud::Cloud;
use serde::Serialize;
use std::path::{Path, PathBuf};
use subject::Checksum;

/// Flags of `nearfield bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cloud: CloudOption,
    /// Number of points of a named cloud
    #[arg(long, default_value_t = 1_000_000, value_parser = options::count)]
    points: usize,
    /// Seed of the points of a named cloud
    #[arg(long, default_value_t = options::SEED, value_name = "N")]
    seed: u64,
    /// Search radius [default: 2 for lattice, pool-spray and uniform, 1 for clusters]
    #[arg(long)]
    radius: Option<f32>,
    /// Order of the points in memory
    #[arg(long, value_enum, default_value_t = Order::Shuffled)]
    order: Order,
    /// Quantity to compute
    #[arg(long, value_enum, default_value_t = Work::Lists)]
    work: Work,
    /// Precision of the pair test; the points, which are f32 numbers, are handed over in it
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    /// Timed repetitions; medians are reported
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Untimed warm-up repetitions; policies that learn from times have settled after them
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    warmup: u32,
    #[command(flatten)]
    frame: FrameOption,
    #[command(flatten)]
    domain: DomainOptions,
    #[command(flatten)]
    engine: EngineOptions,
    /// Write the cloud to an .npy file, in the order that is timed
    #[arg(long, value_name = "PATH")]
    save_cloud: Option<PathBuf>,
    /// Also time the kd-tree crate kiddo in the same run (lists, open
    /// domain); needs a build with the feature kiddo
    #[arg(long)]
    compare: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        files::read_cloud(plan, self.cloud.name());
        if let Some(path) = &self.save_cloud {
            plan.write("--save-cloud", path);
        }
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    cloud: String,
    points: usize,
    radius: f32,
    order: Order,
    work: Work,
    precision: Precision,
    device: String,
    threads: usize,
    simd: &'static str,
    repetitions: u32,
    milliseconds: Times,
    memory: Memory,
    pairs: u64,
    checksum: Checksum,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<gpu::GpuSummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backends: Vec<backends::Backends>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<compare::Comparison>,
    /// The cloud, if it was saved.
    #[serde(skip)]
    saved: Option<PathBuf>,
}

/// Memory that the engine holds, without the caller's arrays.
#[derive(Debug, Serialize)]
struct Memory {
    bytes: usize,
    /// Bytes per point, without the entries of lists.
    per_point: f64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.cloud.name();
    let radius = args.radius;
    let radius = radius.unwrap_or_else(|| usual_radius(name, args.points));
    let comparing = |threads| compare::Kiddo::new(radius, threads);
    if let Some(path) = &args.save_cloud {
        files::check_extension(path, "clouds", &["npy"])?;
    }
    // A comparison that this build lacks is refused before anything takes time.
    args.compare.then(|| comparing(1)).transpose()?;
    let cloud = load(name, args.points, args.seed, args.frame)?;
    let mut builder = args.engine.engine(match args.precision {
        Precision::F32 => Radius::Single(radius),
        Precision::F64 => Radius::Double(f64::from(radius)),
    });
    if let Some(boundaries) = args.domain.boundaries(&cloud)? {
        builder = boundaries.set(builder);
    }
    warn_rounded(&cloud, radius);
    let mut steps = Steps::new(builder, radius, cloud.positions, args.order)?;
    if let Some(path) = &args.save_cloud {
        nearfield_io::write_npy(path, steps.positions())?;
    }
    let points = steps.positions().len();
    let mut subject = Subject::new(args.work, points, radius)?;
    let threads = steps.engine().report().threads;
    let mut comparison = args.compare.then(|| comparing(threads)).transpose()?;
    let repetitions = Repetitions {
        uncounted: args.warmup,
        timed: args.repetitions,
    };
    let bar = progress_bar(u64::from(args.warmup) + u64::from(args.repetitions));
    let times = steps.time(&mut subject, repetitions, |positions| {
        bar.inc(1);
        comparison
            .as_mut()
            .map_or(Ok(()), |kiddo| kiddo.run(positions))
    })?;
    bar.finish_and_clear();
    let report = steps.engine().report();
    let memory = Memory {
        bytes: report.memory.total(),
        per_point: report.bytes_per_point(),
    };
    let (pairs, checksum) = subject.result(steps.engine(), steps.set())?;
    let summary = Summary {
        cloud: name.to_owned(),
        points,
        radius,
        order: args.order,
        work: args.work,
        precision: args.precision,
        device: report.device.to_string(),
        threads: report.threads,
        simd: report.simd.name(),
        repetitions: args.repetitions,
        milliseconds: times,
        memory,
        pairs,
        checksum,
        gpu: report.gpu.as_ref().map(gpu::GpuSummary::of),
        backends: report
            .jobs
            .iter()
            .filter_map(backends::Backends::of)
            .collect(),
        compare: comparison.map(|kiddo| kiddo.finish()),
        saved: args.save_cloud.clone(),
    };
    output::print(args.json, &summary, || lines(&summary))
}

/// The points of a named cloud, or the points and the box of a file.
pub(crate) fn load(
    cloud: &str,
    points: usize,
    seed: u64,
    frame: FrameOption,
) -> Result<PointCloud, Failure> {
    match cloud.parse::<Cloud>() {
        Ok(_) if frame.frame.is_some() => Err(Failure::Usage(format!(
            "--frame is for files, and {cloud} is a named cloud"
        ))),
        Ok(named) => Ok(PointCloud {
            positions: draw(named, points, seed)?,
            ..PointCloud::default()
        }),
        Err(unknown) if !Path::new(cloud).exists() => Err(unknown.into()),
        Err(_) => {
            let path = Path::new(cloud);
            let found = frame.read(path)?;
            input::notice_unused(path, input::names(&found), &[], &[]);
            Ok(found)
        }
    }
}

/// The points of a named cloud. More than an engine can number are refused before they are drawn:
/// a system that overcommits would grant the memory and end the process when it is used.
pub(crate) fn draw(cloud: Cloud, points: usize, seed: u64) -> Result<Vec<[f32; 3]>, Failure> {
    const MAX: usize = u32::MAX as usize;
    if points > MAX {
        let bytes = points.saturating_mul(size_of::<[f32; 3]>());
        return Err(Failure::Wrong(format!(
            "{points} points are more than the {MAX} that an engine can number, and {bytes} bytes \
             are needed for their coordinates alone: take fewer points"
        )));
    }
    Ok(cloud.try_points(points, seed)?)
}

/// Warns where the points of a file lose digits that matter: all that is timed is so with f32
/// numbers.
pub(crate) fn warn_rounded(cloud: &PointCloud, radius: f32) {
    let length = Length {
        name: "radius",
        value: f64::from(radius),
    };
    precision::warn(cloud.positions_f64.as_deref(), length);
}

/// The radius that a named cloud is usually run with; 1 for files.
pub(crate) fn usual_radius(cloud: &str, points: usize) -> f32 {
    cloud
        .parse::<Cloud>()
        .map_or(1.0, |cloud| cloud.default_radius(points))
}

fn lines(summary: &Summary) -> Vec<String> {
    let times = summary.milliseconds;
    let mut lines = vec![
        format!(
            "{} of {} points, radius {}, {:?}, {:?}, {:?}",
            summary.cloud,
            HumanCount(summary.points as u64),
            summary.radius,
            summary.work,
            summary.order,
            summary.precision
        )
        .to_lowercase(),
        format!(
            "device      {} ({} threads, {})",
            summary.device, summary.threads, summary.simd
        ),
        format!("pairs       {}", HumanCount(summary.pairs)),
        format!(
            "build       {:.2} ms, search {:.2} ms, total {:.2} ms (medians of {})",
            times.build, times.search, times.total, summary.repetitions
        ),
        format!(
            "memory      {}, {:.1} bytes per point without the entries of lists",
            HumanBytes(summary.memory.bytes as u64),
            summary.memory.per_point
        ),
    ];
    lines.extend(summary.gpu.iter().flat_map(gpu::GpuSummary::lines));
    lines.extend(summary.backends.iter().flat_map(backends::Backends::lines));
    if let Some(kiddo) = &summary.compare {
        lines.push(format!(
            "kiddo       build {:.2} ms, search {:.2} ms, total {:.2} ms, {} pairs: {:.1} times as long",
            kiddo.milliseconds.build,
            kiddo.milliseconds.search,
            kiddo.milliseconds.total,
            HumanCount(kiddo.pairs),
            kiddo.milliseconds.total / times.total
        ));
    }
    lines.extend(summary.saved.iter().map(|path| output::wrote(path)));
    lines
}
