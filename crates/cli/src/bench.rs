//! `nearfield bench`: what a search or a traversal costs in the steady state of a simulation.
//!
//! Between repetitions every coordinate moves by up to 0.015 r, as particles do between two steps,
//! so nothing is timed on an answer that is already known; the first repetition, which pays for
//! fresh memory, is not counted.

use crate::{
    compare, domain::DomainOptions, failure::Failure, neighbors::milliseconds,
    options::EngineOptions, output,
};
use clap::ValueEnum;
use indicatif::{HumanBytes, HumanCount};
use nearfield::{Engine, PointSetId, SphDensity, SphForce, WendlandC2, prelude::*};
use nearfield_testkit::{
    cloud::{self, Cloud},
    digest,
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

/// Flags of `nearfield bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// lattice, pool-spray, clusters, plummer, uniform, or a file of points
    #[arg(long, default_value = "lattice")]
    cloud: String,
    /// Number of points of a named cloud
    #[arg(long, default_value_t = 1_000_000)]
    points: usize,
    /// Search radius [default: 2 for lattice, pool-spray and uniform, 1 for clusters]
    #[arg(long)]
    radius: Option<f32>,
    /// Order of the points in memory
    #[arg(long, value_enum, default_value_t = Order::Shuffled)]
    order: Order,
    /// What is computed
    #[arg(long, value_enum, default_value_t = Work::Lists)]
    work: Work,
    /// Timed repetitions; medians are reported
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    #[command(flatten)]
    domain: DomainOptions,
    #[command(flatten)]
    engine: EngineOptions,
    /// Write the cloud to an .npy file, in the order that is timed
    #[arg(long, value_name = "PATH")]
    save_cloud: Option<PathBuf>,
    /// Time the kd-tree crate kiddo beside ours in the same run (lists, open domain)
    #[arg(long)]
    compare: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Order of the points in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// As a random generator leaves them
    Shuffled,
    /// As a solver keeps them: by the engine's own permutation
    Sorted,
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Work {
    /// Neighbour lists
    Lists,
    /// SPH density, no lists stored
    Density,
    /// Number of neighbours, no lists stored
    Count,
    /// SPH pressure and viscosity force, no lists stored
    Force,
}

#[derive(Debug, Serialize)]
struct Summary {
    cloud: String,
    points: usize,
    radius: f32,
    order: Order,
    work: Work,
    device: String,
    threads: usize,
    simd: &'static str,
    repetitions: u32,
    milliseconds: Times,
    memory: Memory,
    pairs: u64,
    checksum: Checksum,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<compare::Comparison>,
}

/// What the engine holds, the caller's arrays not included.
#[derive(Debug, Serialize)]
struct Memory {
    bytes: usize,
    /// Bytes per point beside the entries of lists.
    per_point: f64,
}

/// Medians.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Times {
    pub(crate) build: f64,
    pub(crate) search: f64,
    pub(crate) total: f64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Checksum {
    /// Of lists: wrapping sum of hashed pairs, as hexadecimal digits.
    Pairs(String),
    /// Of sums: all results added up.
    Sum(f64),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut positions, file_box) = load(args)?;
    let radius = args
        .radius
        .unwrap_or_else(|| match args.cloud.parse::<Cloud>() {
            Ok(cloud) => cloud.default_radius(args.points),
            Err(_) => 1.0,
        });
    let builder = args.engine.engine(radius);
    let mut engine = match args.domain.boundaries(file_box.as_ref())? {
        Some(boundaries) => boundaries.set(builder).build()?,
        None => builder.build()?,
    };
    let set = engine.add_point_set(&positions)?;
    if args.order == Order::Sorted {
        positions = engine
            .z_sort(set)?
            .reordered(&positions)
            .map_err(nearfield::Error::Permutation)?;
    }
    if let Some(path) = &args.save_cloud {
        nearfield_io::write_npy(path, &positions)?;
    }
    let mut subject = Subject::new(args.work, positions.len(), radius);
    let mut comparison = args
        .compare
        .then(|| compare::Kiddo::new(radius, engine.report().threads));
    let mut samples = Vec::new();
    for repetition in 0..=args.repetitions {
        cloud::drift(&mut positions, 0.015 * radius, u64::from(repetition));
        let times = subject.run(&mut engine, set, &positions)?;
        if let Some(kiddo) = &mut comparison {
            kiddo.run(&positions)?;
        }
        if repetition > 0 {
            samples.push(times);
        }
    }
    let report = engine.report();
    let memory = Memory {
        bytes: report.memory.total(),
        per_point: report.bytes_per_point(),
    };
    let (pairs, checksum) = subject.result(&engine, set)?;
    let summary = Summary {
        cloud: args.cloud.clone(),
        points: positions.len(),
        radius,
        order: args.order,
        work: args.work,
        device: report.device.to_string(),
        threads: report.threads,
        simd: report.simd.name(),
        repetitions: args.repetitions,
        milliseconds: medians(&samples),
        memory,
        pairs,
        checksum,
        compare: comparison.map(|kiddo| kiddo.finish()),
    };
    print(args, &summary)
}

/// The cloud's points and the box its file states.
fn load(args: &Args) -> Result<(Vec<[f32; 3]>, Option<nearfield_io::SimulationBox>), Failure> {
    match Cloud::by_name(&args.cloud, args.points, 1) {
        Ok(positions) => Ok((positions, None)),
        Err(unknown) if !Path::new(&args.cloud).exists() => Err(unknown.into()),
        Err(_) => {
            let file = nearfield_io::read_points(Path::new(&args.cloud))?;
            Ok((file.positions, file.simulation_box))
        }
    }
}

/// Work to be timed, with its inputs and its last results.
struct Subject {
    work: Work,
    radius: f32,
    masses: Vec<f32>,
    velocities: Vec<[f32; 3]>,
    densities: Vec<f32>,
    pressures: Vec<f32>,
    sums: Vec<f32>,
    forces: Vec<[f32; 3]>,
    counts: Vec<u32>,
}

impl Subject {
    fn new(work: Work, points: usize, radius: f32) -> Self {
        let wave = |i: usize, period: usize| (i % period) as f32 / period as f32;
        // What the work does not need takes no memory: clouds may fill most of it.
        let needed_for = |works: &[Work]| if works.contains(&work) { points } else { 0 };
        let force = needed_for(&[Work::Force]);
        Self {
            work,
            radius,
            masses: vec![1.0; needed_for(&[Work::Density, Work::Force])],
            velocities: (0..force)
                .map(|i| [wave(i, 7) - 0.5, wave(i, 11) - 0.5, wave(i, 13) - 0.5])
                .collect(),
            densities: (0..force).map(|i| 1.0 + 0.01 * wave(i, 17)).collect(),
            pressures: (0..force).map(|i| wave(i, 19)).collect(),
            sums: vec![0.0; needed_for(&[Work::Density])],
            forces: vec![[0.0; 3]; force],
            counts: Vec::new(),
        }
    }

    /// One step: update and work.
    fn run(
        &mut self,
        engine: &mut Engine,
        set: PointSetId,
        positions: &[[f32; 3]],
    ) -> Result<Times, Failure> {
        let begin = Instant::now();
        engine.update(set, positions)?;
        let build = milliseconds(begin);
        self.work(engine, set)?;
        let total = milliseconds(begin);
        Ok(Times {
            build,
            search: total - build,
            total,
        })
    }

    fn work(&mut self, engine: &mut Engine, set: PointSetId) -> Result<(), Failure> {
        let kernel = WendlandC2::with_support(self.radius);
        match self.work {
            Work::Lists => engine.find_neighbors()?,
            Work::Count => self.counts = engine.count_neighbors(set, set)?,
            Work::Density => engine
                .traverse(&SphDensity { kernel }, set, set)
                .source_fields(&[Field::from(&self.masses)])
                .run_into(&mut self.sums)?,
            Work::Force => {
                let force = SphForce {
                    kernel,
                    h: 0.5 * self.radius,
                    alpha_c: 0.1,
                };
                let fields = [
                    Field::from(&self.velocities),
                    Field::from(&self.densities),
                    Field::from(&self.pressures),
                    Field::from(&self.masses),
                ];
                engine
                    .traverse(&force, set, set)
                    .target_fields(&fields[..3])
                    .source_fields(&fields)
                    .run_into(&mut self.forces)?;
            }
        }
        Ok(())
    }

    /// Pairs and checksum of the last repetition.
    fn result(&self, engine: &Engine, set: PointSetId) -> Result<(u64, Checksum), Failure> {
        if self.work == Work::Lists {
            let lists = engine.neighbors(set, set)?;
            let checksum = format!("{:016x}", digest::checksum(lists.iter()));
            return Ok((lists.pairs(), Checksum::Pairs(checksum)));
        }
        let counts = engine.count_neighbors(set, set)?;
        let pairs = counts.iter().map(|&count| u64::from(count)).sum();
        let sum = match self.work {
            Work::Count => self.counts.iter().map(|&count| f64::from(count)).sum(),
            Work::Density => self.sums.iter().map(|&sum| f64::from(sum)).sum(),
            _ => self
                .forces
                .as_flattened()
                .iter()
                .map(|&f| f64::from(f))
                .sum(),
        };
        Ok((pairs, Checksum::Sum(sum)))
    }
}

/// Medians of the timed repetitions, stage by stage.
pub(crate) fn medians(samples: &[Times]) -> Times {
    let median = |pick: fn(&Times) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Times {
        build: median(|times| times.build),
        search: median(|times| times.search),
        total: median(|times| times.total),
    }
}

fn print(args: &Args, summary: &Summary) -> Result<(), Failure> {
    if args.json {
        return output::print_json(summary);
    }
    let times = summary.milliseconds;
    let mut lines = vec![
        format!(
            "{} of {} points, radius {}, {:?}, {:?}",
            summary.cloud,
            HumanCount(summary.points as u64),
            summary.radius,
            summary.work,
            summary.order
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
    ];
    lines.push(format!(
        "memory      {}, {:.1} bytes per point beside the entries of lists",
        HumanBytes(summary.memory.bytes as u64),
        summary.memory.per_point
    ));
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
    output::print_lines(lines)
}
