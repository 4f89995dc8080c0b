//! `nearfield neighbors`: the lists of a file's points.

use crate::{
    bench::Backend,
    domain::DomainOptions,
    failure::Failure,
    files,
    input::{self, FrameOption},
    near_radius,
    options::{EngineOptions, Precision, Radius, RadiusText, name},
    output::{self, milliseconds, milliseconds_of},
    precision::{self, Length},
};
use indicatif::HumanCount;
use nearfield::{Device, NeighborLists, Positions, report::Report};
use nearfield_files::Plan;
use nearfield_grid::memory::Shortage;
use nearfield_io::{PointCloud, PointData};
use nearfield_testkit::digest;
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

/// Flags of `nearfield neighbors`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Points: .npy, .npz, .csv, .txt, .pts, .xyz, .extxyz, .dump, .data, .gro, .pdb, .cif,
    /// .poscar, .vtk, .vtp, .vtu, .ply, .pcd or .las; .gz and .zst may follow
    file: PathBuf,
    /// Search radius in the unit of the coordinates; a point exactly at it is a neighbour
    #[arg(long, allow_negative_numbers = true)]
    radius: RadiusText,
    /// Precision of coordinates and of the pair test; f64 keeps all digits of files of
    /// doubles, as clouds far from the origin need [default: f64 where f32 would move a point by
    /// more than a thousandth of the radius, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    #[command(flatten)]
    frame: FrameOption,
    #[command(flatten)]
    domain: DomainOptions,
    #[command(flatten)]
    engine: EngineOptions,
    /// Write the lists to an .npz file: offsets (u64, one more than points) and indices (u32)
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Write a page that shows the points, coloured by their number of neighbours, in a browser:
    /// one .html file
    #[arg(long, value_name = "PATH")]
    view: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        plan.read(&self.file);
        if let Some(path) = &self.output {
            plan.write("--output", path);
        }
        if let Some(path) = &self.view {
            plan.write("--view", path);
        }
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    points: usize,
    radius: Radius,
    precision: Precision,
    pairs: u64,
    /// Pairs that a hair decides, `None` where they could not be counted.
    pairs_near_radius: Option<u64>,
    min: u32,
    mean: f64,
    max: u32,
    device: String,
    reason: String,
    backends: Vec<Backend>,
    milliseconds: Times,
    digest: String,
}

/// Both backends if they shared the search, else the one that did it.
fn backends(report: &Report) -> Vec<Backend> {
    let mut lists = report.jobs.iter().filter(|job| job.job == "lists");
    if let Some(split) = lists.find_map(|job| job.split.as_ref()) {
        return Backend::all(split);
    }
    let name = match report.device {
        Device::Gpu(_) => "gpu",
        _ => "cpu",
    };
    vec![Backend {
        name,
        points: report.points(),
        milliseconds: milliseconds_of(report.times.search),
    }]
}

#[derive(Debug, Serialize)]
struct Times {
    read: f64,
    build: f64,
    search: f64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::now();
    if let Some(path) = &args.output {
        files::check_extension(path, "lists", &["npz"])?;
    }
    if let Some(path) = &args.view {
        files::check_extension(path, "views", &["html"])?;
    }
    // A bad radius or device is refused before a large file is read.
    let asked = args.precision.unwrap_or(Precision::F32);
    args.engine.engine(args.radius.to(asked)).build()?;
    let cloud = args.frame.read(&args.file)?;
    input::notice_unused(&args.file, input::names(&cloud), &[], &[]);
    let length = Length {
        name: "radius",
        value: args.radius.double(),
    };
    let precision = precision::choose(args.precision, cloud.positions_f64.as_deref(), length);
    let radius = args.radius.to(precision);
    let mut builder = args.engine.engine(radius);
    let boundaries = args.domain.boundaries(&cloud)?;
    if let Some(boundaries) = boundaries {
        builder = boundaries.set(builder);
    }
    let mut engine = builder.build()?;
    let read = milliseconds(begin);
    let points = engine.add_point_set(match (precision, &cloud.positions_f64) {
        (Precision::F64, Some(positions)) => Positions::from(positions),
        _ => Positions::from(&cloud.positions),
    })?;
    engine.find_neighbors()?;
    let report = engine.report();
    let times = Times {
        read,
        build: milliseconds_of(report.times.build),
        search: milliseconds_of(report.times.search),
    };
    let lists = engine.neighbors(points, points)?;
    write_files(args, &cloud, lists)?;
    let mut summary = summarize(radius, precision, &report, times, lists)?;
    summary.pairs_near_radius =
        near_radius::report(engine, points, args.radius.double(), summary.pairs, || {
            let positions = cloud.positions_f64.as_ref()?;
            let mut exact = args
                .engine
                .engine(args.radius.to(Precision::F64))
                .device(Device::Cpu);
            if let Some(boundaries) = boundaries {
                exact = boundaries.set(exact);
            }
            Some((exact, positions))
        });
    output::print(args.json, &summary, || {
        [
            format!("points      {}", HumanCount(summary.points as u64)),
            format!(
                "pairs       {} (directed, self excluded)",
                HumanCount(summary.pairs)
            ),
            format!(
                "neighbours  {} to {} per point, {:.2} on average",
                summary.min, summary.max, summary.mean
            ),
            format!(
                "time        {:.1} ms read, {:.1} ms build, {:.1} ms search in {} on {}",
                summary.milliseconds.read,
                summary.milliseconds.build,
                summary.milliseconds.search,
                name(summary.precision),
                summary.device
            ),
            format!("digest      {}", summary.digest),
        ]
        .into_iter()
        .chain((args.output.iter().chain(&args.view)).map(|path| output::wrote(path)))
    })
}

/// Writes the lists and the page.
fn write_files(args: &Args, cloud: &PointCloud, lists: &NeighborLists) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        let mut csr = lists.to_csr().map_err(nearfield::Error::from)?;
        for row in 0..csr.rows() {
            let (begin, end) = (csr.offsets[row] as usize, csr.offsets[row + 1] as usize);
            csr.indices[begin..end].sort_unstable();
        }
        nearfield_io::write_csr_npz(path, &csr.offsets, &csr.indices)?;
    }
    if let Some(path) = &args.view {
        let name = args.file.file_name().unwrap_or_default();
        let title = format!(
            "{}, radius {}",
            name.to_string_lossy(),
            args.radius.double()
        );
        let counts = PointData::scalars("neighbours", lists.counts());
        nearfield_io::write_view(path, &title, &cloud.positions, &counts)?;
    }
    Ok(())
}

fn summarize(
    radius: Radius,
    precision: Precision,
    report: &Report,
    times: Times,
    lists: &NeighborLists,
) -> Result<Summary, Failure> {
    let counts = lists.counts();
    let max = counts.iter().copied().max().unwrap_or(0);
    let digest = digest::digest(lists.iter())
        .map_err(|_| Shortage::of::<u32>(max as usize, "a sorted list"))?;
    Ok(Summary {
        points: lists.len(),
        radius,
        precision,
        pairs: lists.pairs(),
        pairs_near_radius: None,
        min: counts.iter().copied().min().unwrap_or(0),
        mean: lists.pairs() as f64 / lists.len().max(1) as f64,
        max,
        device: report.device.to_string(),
        reason: report.reason.clone(),
        backends: backends(report),
        milliseconds: times,
        digest: digest.to_string(),
    })
}
