//! `nearfield tune`: measures the gain from splitting a step between CPU and GPU, and where the
//! policies settle.
//!
//! Thresholds θ are swept from GPU only to CPU only, and every policy runs after the sweep. On an
//! emulated machine all times come from a virtual clock, so the same command gives the same numbers
//! everywhere.

mod emulated;
mod machines;
mod picture;
mod real;
mod report;
mod task;

use crate::{
    bench::{self, Work},
    domain::DomainOptions,
    failure::Failure,
    files,
    input::FrameOption,
    options::{self, CloudOption},
    output,
};
use nearfield::{
    Device,
    balance::{Equal, Policy, Strategy},
};
use nearfield_balance::Subdivision;
use nearfield_files::Plan;
use std::path::{Path, PathBuf};
use task::{Brief, Combination, Summary, Task};

/// Flags of `nearfield tune`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cloud: CloudOption,
    /// Number of points of a named cloud
    #[arg(long, default_value = "1e6", value_parser = options::positive_count)]
    points: usize,
    /// Search radius [default: that of `bench`]
    #[arg(long)]
    radius: Option<f32>,
    /// The two backends: emulated[:KEY=VALUE,…] or hybrid[:N]
    #[arg(long, default_value = "emulated", value_parser = two_backends)]
    device: Device,
    /// Quantity to compute
    #[arg(long, default_value = "lists", value_parser = divided)]
    work: Work,
    /// Policies to run: any of model, band[:ALPHA:BETA], fraction and fixed:THETA
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "POLICY,…",
        default_value = "model,band,fraction"
    )]
    policy: Vec<Policy>,
    /// Cells along an edge of a brick, 1 to 8; several are swept one after the other
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "B,…",
        default_value = "2",
        value_parser = clap::value_parser!(u32).range(1..=8)
    )]
    bricks: Vec<u32>,
    /// Subregions of a step, 1 to 64; several are swept one after the other
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        default_value = "32",
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    subregions: Vec<u32>,
    /// What subregions have about as much of: work or points
    #[arg(long, default_value_t = Equal::Work, value_name = "WHAT")]
    equal_subregions: Equal,
    /// Steps of the sweep from GPU only to CPU only
    #[arg(
        long,
        default_value_t = 200,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    rows: u32,
    /// Steps that every policy runs
    #[arg(
        long,
        default_value_t = 120,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=100_000)
    )]
    steps: u32,
    /// How the GPU of hybrid maps cells to threads: flat, child-per-cell or
    /// child-aggregated
    #[arg(long, default_value_t = Strategy::Flat)]
    strategy: Strategy,
    /// Worker threads of the CPU backend of hybrid; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    #[command(flatten)]
    frame: FrameOption,
    #[command(flatten)]
    domain: DomainOptions,
    /// Instead of one machine, check policy model on N random emulated ones (GPUs of 0.05 to 50
    /// times the CPU backend's speed behind 1 to 60 GB/s)
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["device", "output", "threads"],
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    sweep_machines: Option<u32>,
    /// Seed of the points of a named cloud; with --sweep-machines that of the first random machine,
    /// and the next one has the next seed [default: 1, with --sweep-machines 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for tune.json, tune.png and tune.svg; made when it is missing
    #[arg(long, value_name = "DIR", default_value = "tune")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        files::read_cloud(plan, self.cloud.name());
        if self.sweep_machines.is_none() {
            plan.write_into("--output", &self.output, |name| {
                ["tune.json", "tune.png", "tune.svg"].contains(&name)
            });
        }
    }
}

/// A work that two backends divide.
fn divided(text: &str) -> Result<Work, String> {
    match <Work as clap::ValueEnum>::from_str(text, false)? {
        Work::Geometry => Err("geometry is not divided between two backends".to_owned()),
        work => Ok(work),
    }
}

/// Parses a device that has two backends, between which a threshold divides the work.
fn two_backends(text: &str) -> Result<Device, String> {
    match text.parse::<Device>() {
        Ok(device @ (Device::Emulated(_) | Device::Hybrid(_))) => Ok(device),
        Ok(_) => Err(
            "it has one backend, but a threshold splits a step between two: use \
             emulated[:KEY=VALUE,…] or hybrid[:N]"
                .into(),
        ),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let cloud = args.cloud.name();
    let task = task(args, cloud)?;
    if let Some(count) = args.sweep_machines {
        return machines::run(&task, cloud, args.seed.unwrap_or(0), count, args.json);
    }
    let combinations = match args.device {
        Device::Emulated(spec) => emulated::run(&task, spec)?,
        Device::Hybrid(number) => real::run(&task, number)?,
        // Refused where flags are read.
        device => return Err(Failure::Usage(format!("{device} has one backend"))),
    };
    let shown = combinations
        .iter()
        .min_by(|a, b| a.best.total_ms.total_cmp(&b.best.total_ms))
        .ok_or_else(|| Failure::Wrong("nothing was swept".into()))?;
    let summary = Summary {
        cloud,
        points: task.positions.len(),
        radius: task.radius,
        device: args.device.to_string(),
        work: args.work,
        steps: task.steps,
        shown,
        combinations: combinations.iter().map(Brief::from).collect(),
    };
    save(&args.output, &summary, &combinations)?;
    output::print(args.json, &summary, || {
        report::lines(&summary, &args.output)
    })
}

/// Reads or makes the points.
fn task(args: &Args, cloud: &str) -> Result<Task, Failure> {
    let seed = match (args.seed, args.sweep_machines) {
        (Some(seed), None) => seed,
        _ => options::SEED,
    };
    let points = bench::load(cloud, args.points, seed, args.frame)?;
    if points.positions.is_empty() {
        return Err(Failure::Wrong(format!("{cloud} has no points")));
    }
    let radius = args.radius;
    let radius = radius.unwrap_or_else(|| bench::usual_radius(cloud, args.points));
    bench::warn_rounded(&points, radius);
    Ok(Task {
        radius,
        boundaries: args.domain.boundaries(&points)?,
        positions: points.positions,
        work: args.work,
        policies: options::distinct(&args.policy),
        edges: options::distinct(&args.bricks),
        subregions: options::distinct(&args.subregions)
            .into_iter()
            .map(|count| Subdivision {
                count: count as usize,
                equal: args.equal_subregions,
            })
            .collect(),
        rows: args.rows as usize,
        steps: args.steps as usize,
        strategy: args.strategy,
        threads: args.threads,
    })
}

/// Writes the three files.
fn save(folder: &Path, summary: &Summary<'_>, combinations: &[Combination]) -> Result<(), Failure> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::Wrong(format!("cannot write {}: {error}", path.display()))
    };
    nearfield_files::make_folder(folder).map_err(|error| failed(folder, &error))?;
    let path = folder.join("tune.json");
    let text = serde_json::to_string_pretty(summary).map_err(|error| failed(&path, &error))?;
    nearfield_files::write(&path, text + "\n").map_err(|error| failed(&path, &error))?;
    Ok(picture::save(
        folder,
        report::headings(summary),
        summary.shown,
        combinations,
    )?)
}
