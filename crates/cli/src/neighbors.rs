//! `nearfield neighbors`: the lists of a file's points.

use crate::{
    domain::DomainOptions,
    failure::Failure,
    options::{EngineOptions, Precision, Radius, RadiusText},
    output,
};
use indicatif::HumanCount;
use nearfield::{NeighborLists, Positions};
use nearfield_files::Plan;
use nearfield_testkit::digest;
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

/// Flags of `nearfield neighbors`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Points: .npy, .csv, .xyz, .extxyz, .vtk, .vtp, .vtu or .ply
    file: PathBuf,
    /// Search radius in the unit of the coordinates; a point exactly at it is a neighbour
    #[arg(long, allow_negative_numbers = true)]
    radius: RadiusText,
    /// What coordinates are read in and pairs are decided in; f64 keeps all digits of files of
    /// doubles, as clouds far from the origin need
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    #[command(flatten)]
    domain: DomainOptions,
    #[command(flatten)]
    engine: EngineOptions,
    /// Write the lists to an .npz file: offsets (u64, one more than points) and indices (u32)
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.read(&self.file);
        if let Some(path) = &self.output {
            plan.write("--output", path);
        }
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    points: usize,
    radius: Radius,
    pairs: u64,
    min: u32,
    mean: f64,
    max: u32,
    device: String,
    lanes: Vec<Lane>,
    milliseconds: Times,
    digest: String,
}

#[derive(Debug, Serialize)]
struct Lane {
    name: &'static str,
    points: usize,
    pairs: u64,
    milliseconds: f64,
}

#[derive(Debug, Serialize)]
struct Times {
    read: f64,
    build: f64,
    search: f64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::now();
    let radius = args.radius.to(args.precision);
    let mut engine = args.engine.engine(radius).build()?;
    let cloud = nearfield_io::read_points(&args.file)?;
    if let Some(boundaries) = args.domain.boundaries(cloud.simulation_box.as_ref())? {
        engine = boundaries.set(args.engine.engine(radius)).build()?;
    }
    let read = milliseconds(begin);
    let points = engine.add_point_set(match (args.precision, &cloud.positions_f64) {
        (Precision::F64, Some(positions)) => Positions::from(positions),
        _ => Positions::from(&cloud.positions),
    })?;
    engine.find_neighbors()?;
    let report = engine.report();
    let times = Times {
        read,
        build: report.times.build.as_secs_f64() * 1e3,
        search: report.times.search.as_secs_f64() * 1e3,
    };
    let lists = engine.neighbors(points, points)?;
    if let Some(path) = &args.output {
        let mut csr = lists.to_csr().map_err(nearfield::Error::from)?;
        for row in 0..csr.rows() {
            let (begin, end) = (csr.offsets[row] as usize, csr.offsets[row + 1] as usize);
            csr.indices[begin..end].sort_unstable();
        }
        nearfield_io::write_csr_npz(path, &csr.offsets, &csr.indices)?;
    }
    let summary = summarize(radius, report.device.to_string(), times, lists);
    if args.json {
        return output::print_json(&summary);
    }
    output::print_lines([
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
            "time        {:.1} ms read, {:.1} ms build, {:.1} ms search on {}",
            summary.milliseconds.read,
            summary.milliseconds.build,
            summary.milliseconds.search,
            summary.device
        ),
        format!("digest      {}", summary.digest),
    ])
}

fn summarize(radius: Radius, device: String, times: Times, lists: &NeighborLists) -> Summary {
    let counts = lists.counts();
    Summary {
        points: lists.len(),
        radius,
        pairs: lists.pairs(),
        min: counts.iter().copied().min().unwrap_or(0),
        mean: lists.pairs() as f64 / lists.len().max(1) as f64,
        max: counts.iter().copied().max().unwrap_or(0),
        device,
        lanes: vec![Lane {
            name: "cpu",
            points: lists.len(),
            pairs: lists.pairs(),
            milliseconds: times.search,
        }],
        milliseconds: times,
        digest: digest::digest(lists.iter()).to_string(),
    }
}

/// Milliseconds since `begin`.
pub(crate) fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}
