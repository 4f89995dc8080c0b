//! What every feature costs beside the plain case: an open domain, one set, one radius, `f32`.
//!
//! ```sh
//! cargo bench -p nearfield --bench features -- [FEATURE…] [--device cpu|gpu] [--points 1e6]
//! ```
//!
//! A figure is the median of the ratios of two neighbouring steps, one of the plain case and one
//! with the feature, taken in turn, so that a busy machine changes both. A step places the points
//! and does the job. Beside it stands the number of pairs: points around a periodic box have
//! neighbours where those at the edge of an open cloud have none. The table is Markdown.
//!
//! `--small` times whole steps of small systems instead, which are bound by what a step costs
//! however few its points are; see the module `small`.
//!
//! `--only plain|odd` runs one side of every feature named without timing it, for `perf stat`.

#[path = "features/filters.rs"]
mod filters;
#[path = "features/kernel.rs"]
mod kernel;
#[path = "features/radii.rs"]
mod radii;
#[path = "features/small.rs"]
mod small;

use clap::Parser;
use filters::Filter;
use kernel::EachDirection;
use nearfield::{
    Builder, Engine, Error,
    kernels::SphDensity,
    lists::{PairGeometry, QueryScratch, VerletLists},
    prelude::*,
};
use nearfield_testkit::{Cloud, random::Random};
use radii::Radii;
use std::{ops::ControlFlow, process::ExitCode, time::Instant};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    Lists,
    Counts,
    Density,
    /// A kernel that is evaluated for every direction of a pair.
    Directed,
    Geometry,
    Query,
    Chunks,
    Batches,
    /// Lists with a skin, built in every step.
    Skin,
    /// A density over lists with a skin that are kept.
    SkinKept,
    /// Lists, and a density over them.
    OverLists,
}

use Job::{
    Batches, Chunks, Counts, Density, Directed, Geometry, Lists, OverLists, Query, Skin, SkinKept,
};

/// The columns of the table.
const PLAIN: [Job; 3] = [Lists, Counts, Density];

impl Job {
    /// The plain job that it is compared with.
    fn plain(self) -> Self {
        match self {
            Counts => Counts,
            Density | Directed | SkinKept => Density,
            _ => Lists,
        }
    }
}

#[derive(Debug, Clone)]
enum Points {
    Single(Vec<[f32; 3]>),
    Double(Vec<[f64; 3]>),
    /// Three coordinates of every eight numbers.
    Strided(Vec<[f32; 8]>),
}

impl Points {
    fn in_order(&self, order: &[u32]) -> Self {
        fn picked<T: Copy>(from: &[T], order: &[u32]) -> Vec<T> {
            order.iter().map(|&k| from[k as usize]).collect()
        }
        match self {
            Self::Single(points) => Self::Single(picked(points, order)),
            Self::Double(points) => Self::Double(picked(points, order)),
            Self::Strided(points) => Self::Strided(picked(points, order)),
        }
    }

    fn positions(&self) -> Positions<'_> {
        match self {
            Self::Single(points) => points.into(),
            Self::Double(points) => points.into(),
            Self::Strided(points) => {
                let bytes = bytemuck::cast_slice(points);
                Positions::strided(bytes, 0, size_of::<[f32; 8]>(), points.len())
                    .expect("three of eight numbers")
            }
        }
    }
}

/// Engine and points of a case, one entry of `sets` per set.
#[derive(Debug, Clone)]
struct Side {
    builder: Builder,
    sets: Vec<Points>,
    radii: Radii,
    filter: Filter,
}

type Step<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;

impl Side {
    fn with(&self, settings: impl FnOnce(Builder) -> Builder) -> Self {
        let builder = settings(self.builder.clone());
        let side = self.clone();
        Self { builder, ..side }
    }

    fn of(&self, sets: Vec<Points>) -> Self {
        let side = self.clone();
        Self { sets, ..side }
    }

    fn engine(&self) -> Result<(Engine, Vec<PointSetId>), Error> {
        let mut engine = self.builder.clone().build()?;
        self.radii.allow(&mut engine)?;
        let mut ids = Vec::new();
        for points in &self.sets {
            let positions = points.positions();
            let id = engine.add_point_set(positions)?;
            self.radii.give(&mut engine, id)?;
            self.filter.give(&mut engine, id)?;
            ids.push(id);
        }
        Ok((engine, ids))
    }

    /// The same points in the order of this engine's cells, which users sort by.
    fn sorted(mut self) -> Result<Self, Error> {
        let (engine, ids) = self.engine()?;
        for (set, id) in self.sets.iter_mut().zip(ids) {
            let order = engine.z_sort(id)?;
            *set = set.in_order(order.order());
        }
        Ok(self)
    }

    /// Neighbours of all points together.
    fn pairs(&self) -> Result<u64, Error> {
        let (engine, ids) = self.engine()?;
        let mut pairs = 0;
        for (targets, sources) in both(&ids) {
            let counts = engine.count_neighbors(targets, sources)?;
            pairs += counts.into_iter().map(u64::from).sum::<u64>();
        }
        Ok(pairs)
    }

    /// A step of a job.
    fn step(&self, job: Job, radius: f32) -> Result<Step<'_>, Error> {
        if matches!(job, Skin | SkinKept) {
            return self.step_with_skin(job, radius);
        }
        let (mut engine, ids) = self.engine()?;
        let len = |set: usize| self.sets[set].positions().len();
        let mass = vec![1.0f32; (0..ids.len()).map(len).max().unwrap_or(0)];
        let mut values = mass.clone();
        let kernel = SphDensity::with_support(radius);
        let directed = EachDirection(kernel);
        let (mut geometry, mut query) = (PairGeometry::default(), QueryScratch::default());
        Ok(Box::new(move || {
            for (&id, points) in ids.iter().zip(&self.sets) {
                engine.update(id, points.positions())?;
            }
            if job == Lists {
                return engine.find_neighbors();
            }
            for (targets, sources) in both(&ids) {
                let of =
                    |id: PointSetId| len(ids.iter().position(|&other| other == id).unwrap_or(0));
                let (mass, values) = (&mass[..of(sources)], &mut values[..of(targets)]);
                match job {
                    Counts => drop(engine.count_neighbors(targets, sources)?),
                    Density => (engine.traverse(&kernel, targets, sources))
                        .sources(mass)
                        .run_into(values)?,
                    Directed => (engine.traverse(&directed, targets, sources))
                        .sources(mass)
                        .run_into(values)?,
                    OverLists => {
                        engine.find_neighbors()?;
                        let density = engine.traverse(&kernel, targets, sources).over_lists();
                        density.sources(mass).run_into(values)?;
                    }
                    Geometry => engine.pair_geometry(targets, sources, &mut geometry)?,
                    Query => {
                        let positions = self.sets[0].positions();
                        engine.query_into(positions, None, sources, &mut query)?;
                    }
                    Chunks => {
                        let mut chunks = engine.list_chunks(targets, sources)?;
                        while chunks.next_chunk()?.is_some() {}
                    }
                    _ => {
                        let _ = engine.for_each_batch(targets, sources, |batch| {
                            std::hint::black_box(batch.d2);
                            ControlFlow::Continue(())
                        })?;
                    }
                }
            }
            Ok(())
        }))
    }

    fn step_with_skin(&self, job: Job, radius: f32) -> Result<Step<'_>, Error> {
        let skin = 0.1 * radius;
        let mut lists = VerletLists::new(self.builder.clone(), skin)?;
        let Points::Single(here) = &self.sets[0] else {
            unreachable!("lists with a skin are timed in `f32`");
        };
        // By so little that lists are kept, or too far for that.
        let step = if job == SkinKept { 0.125 * skin } else { skin };
        let there: Vec<[f32; 3]> = here.iter().map(|at| at.map(|x| x + step)).collect();
        let id = lists.add_point_set(here)?;
        let mass = vec![1.0f32; here.len()];
        let mut values = mass.clone();
        let kernel = SphDensity::with_support(radius);
        let mut moved = false;
        Ok(Box::new(move || {
            moved = !moved;
            lists.update(id, if moved { &there } else { here })?;
            lists.refresh()?;
            if job == SkinKept {
                (lists.traverse(&kernel, id, id))
                    .sources(&mass)
                    .run_into(&mut values)?;
            }
            Ok(())
        }))
    }
}

/// All pairs of sets.
fn both(ids: &[PointSetId]) -> Vec<(PointSetId, PointSetId)> {
    let pairs = ids.iter().flat_map(|&t| ids.iter().map(move |&s| (t, s)));
    pairs.collect()
}

/// Flags of the command line.
#[derive(Parser)]
struct Asked {
    /// Only features with one of these in their names
    features: Vec<String>,
    /// cpu, gpu or any other device that engines know
    #[arg(long, default_value = "cpu")]
    device: Device,
    #[arg(long, default_value = "lattice")]
    cloud: Cloud,
    #[arg(long, default_value_t = 1e5)]
    points: f64,
    /// Search radius [default: the cloud's]
    #[arg(long)]
    radius: Option<f32>,
    /// Worker threads; 0: one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Points in the order of the cells of each case, not shuffled
    #[arg(long)]
    sorted: bool,
    /// Steps per side
    #[arg(long, default_value_t = 21)]
    repeat: usize,
    /// Only these jobs: lists, counts, density
    #[arg(long, value_delimiter = ',')]
    jobs: Vec<String>,
    /// Time steps of small systems, kept engines and single calls
    #[arg(long)]
    small: bool,
    /// Run one side alone, plain or odd, without timing it
    #[arg(long)]
    only: Option<String>,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

struct Feature {
    name: &'static str,
    side: Side,
    jobs: &'static [Job],
}

/// The plain case, which everything is compared with.
struct Plain {
    side: Side,
    points: Vec<[f32; 3]>,
    /// The box that the points fill.
    lengths: [f64; 3],
    radius: f32,
}

fn feature(name: &'static str, side: Side, jobs: &'static [Job]) -> Feature {
    Feature { name, side, jobs }
}

/// Boxes, precisions and sets. Around a periodic box the cloud is that of the open domain.
fn domains(plain: &Plain) -> Vec<Feature> {
    let (points, lengths, plain) = (&plain.points, plain.lengths, &plain.side);
    let [lx, ly, lz] = lengths;
    // Whole numbers of spacings of the lattice, so that it goes on across the faces.
    let tilts = [0.3 * lx, 0.2 * lx, -0.3 * ly].map(f64::round);
    let [xy, xz, yz] = tilts;
    let vectors = [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]].map(Some);
    let boxed = |builder: Builder| builder.periodic(lengths.map(Some));
    let mut random = Random::new(7);
    let left = points.iter().map(|at| {
        let whole = |axis: usize, boxes: u64| (boxes as f64 - 1.0) * lengths[axis];
        std::array::from_fn(|axis| (f64::from(at[axis]) + whole(axis, random.below(3))) as f32)
    });
    let left = Points::Single(left.collect());
    let sheared = points.iter().map(|at| {
        let [x, y, z] = at.map(f64::from);
        let c = z / lz;
        let b = ((y - c * yz) / ly).rem_euclid(1.0);
        let a = ((x - b * xy - c * xz) / lx).rem_euclid(1.0);
        [a * lx + b * xy + c * xz, b * ly + c * yz, z].map(|x| x as f32)
    });
    let sheared = Points::Single(sheared.collect());
    let double = points.iter().map(|at| at.map(f64::from)).collect();
    let double = || vec![Points::Double(Vec::clone(&double))];
    let in_double = |builder: Builder| builder.precision(Precision::Double);
    let strided = points
        .iter()
        .map(|&[x, y, z]| [x, y, z, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let (first, second) = points.split_at(points.len() / 2);
    let halves = [first, second].map(|half| Points::Single(half.to_vec()));
    let all = PLAIN.as_slice();
    vec![
        feature("periodic box", plain.with(boxed), all),
        feature(
            "periodic along z alone",
            plain.with(|b| b.periodic([None, None, Some(lz)])),
            all,
        ),
        feature(
            "tilted box",
            plain.of(vec![sheared]).with(|b| b.box_vectors(vectors)),
            all,
        ),
        feature(
            "periodic, points up to a box outside",
            plain.of(vec![left]).with(boxed),
            all,
        ),
        feature("`f64`", plain.of(double()).with(in_double), all),
        feature(
            "`f64`, periodic",
            plain.of(double()).with(in_double).with(boxed),
            all,
        ),
        feature("two sets, all four pairs", plain.of(halves.to_vec()), all),
        feature(
            "positions with a stride of 32 bytes",
            plain.of(vec![Points::Strided(strided.collect())]),
            all,
        ),
    ]
}

/// Forms of results; the plain lists take `bytes`.
fn results(plain: &Side, bytes: u64) -> Vec<Feature> {
    vec![
        feature(
            "strictly within",
            plain.with(Builder::strictly_within),
            &PLAIN,
        ),
        feature(
            "ascending lists",
            plain.with(|b| b.list_order(ListOrder::Ascending)),
            &[Lists],
        ),
        feature(
            "half lists",
            plain.with(|b| b.lists(ListKind::Half)),
            &[Lists],
        ),
        feature(
            "memory limit that lists fit",
            plain.with(|b| b.memory_limit(2 * bytes)),
            &[Lists],
        ),
        feature(
            "lists in four chunks",
            plain.with(|b| b.memory_limit(bytes / 4)),
            &[Chunks],
        ),
        feature("lists with geometry", plain.clone(), &[Geometry]),
        feature("batches of pairs", plain.clone(), &[Batches]),
        feature("queries at all points", plain.clone(), &[Query]),
        feature("skin of r/10, lists built anew", plain.clone(), &[Skin]),
        feature("skin of r/10, lists kept", plain.clone(), &[SkinKept]),
        feature("kernel not symmetric", plain.clone(), &[Directed]),
        feature("kernel over the lists found", plain.clone(), &[OverLists]),
    ]
}

impl Asked {
    fn wants(&self, feature: &Feature) -> bool {
        self.features.is_empty()
            || (self.features.iter()).any(|asked| feature.name.contains(asked.as_str()))
    }

    fn wants_job(&self, job: Job) -> bool {
        let name = format!("{job:?}").to_lowercase();
        self.jobs.is_empty() || self.jobs.contains(&name)
    }

    /// The plain case, the points and the box that they fill.
    fn plain(&self) -> Result<Plain, Error> {
        let mut points = self.cloud.points(self.points as usize, 1);
        let radius = self.radius(points.len());
        let mut builder = Engine::builder(radius).device(self.device);
        if self.threads > 0 {
            builder = builder.threads(self.threads);
        }
        let end = |axis: usize, f: fn(f32, f32) -> f32| points.iter().map(|at| at[axis]).reduce(f);
        let low = [0, 1, 2].map(|axis| end(axis, f32::min).unwrap_or(0.0));
        // A lattice goes on across the faces.
        let lengths = std::array::from_fn(|axis| {
            let extent = f64::from(end(axis, f32::max).unwrap_or(0.0) - low[axis]);
            (if self.cloud == Cloud::Lattice {
                extent.round() + 1.0
            } else {
                extent.ceil() + 1.0
            })
            .max(f64::from(radius))
        });
        for at in &mut points {
            *at = std::array::from_fn(|axis| at[axis] - low[axis]);
        }
        let side = Side {
            builder,
            sets: vec![Points::Single(points)],
            radii: Radii::One,
            filter: Filter::None,
        };
        let side = if self.sorted { side.sorted()? } else { side };
        let [Points::Single(points)] = &side.sets[..] else {
            unreachable!("the plain case has one set in `f32`");
        };
        let points = points.clone();
        Ok(Plain {
            side,
            points,
            lengths,
            radius,
        })
    }

    fn radius(&self, points: usize) -> f32 {
        self.radius
            .unwrap_or_else(|| self.cloud.default_radius(points))
    }

    /// Runs both sides in turn and returns the median of the ratios of neighbouring steps.
    fn ratio(&self, plain: &mut Step<'_>, odd: &mut Step<'_>) -> Result<f64, Error> {
        let timed = |step: &mut Step<'_>| -> Result<f64, Error> {
            let begin = Instant::now();
            step()?;
            Ok(begin.elapsed().as_secs_f64())
        };
        let mut ratios = Vec::new();
        for repeat in 0..=self.repeat {
            let [a, b] = [timed(plain)?, timed(odd)?];
            // Memory is allocated in the first step.
            if repeat > 0 {
                ratios.push(b / a);
            }
        }
        ratios.sort_by(f64::total_cmp);
        Ok(ratios[ratios.len() / 2])
    }

    /// Figures of a feature by column, or why there are none.
    fn figures(&self, plain: &Side, feature: &Feature) -> Result<[Option<f64>; 3], Error> {
        let mut figures = [None; 3];
        for &job in feature
            .jobs
            .iter()
            .filter(|job| self.wants_job(job.plain()))
        {
            let radius = self.radius(plain.sets[0].positions().len());
            let mut odd = feature.side.step(job, radius)?;
            let mut usual = plain.step(job.plain(), radius)?;
            match self.only.as_deref() {
                None => {
                    let column = PLAIN.iter().position(|&column| column == job.plain());
                    figures[column.unwrap_or(0)] = Some(self.ratio(&mut usual, &mut odd)?);
                }
                Some(side) => {
                    let step = if side == "plain" {
                        &mut usual
                    } else {
                        &mut odd
                    };
                    (0..self.repeat).try_for_each(|_| step())?;
                }
            }
        }
        Ok(figures)
    }
}

fn main() -> ExitCode {
    match run(&Asked::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("features: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(asked: &Asked) -> Result<(), Error> {
    if asked.small {
        return small::run(asked);
    }
    let setup = asked.plain()?;
    let (plain, points) = (&setup.side, &setup.points);
    let pairs = plain.pairs()?;
    let bytes = 4 * pairs + 12 * points.len() as u64;
    let (engine, _) = plain.engine()?;
    let report = engine.report();
    println!(
        "nearfield {}, {}, {} threads, {}; {} of {} points, r = {}, {}\n",
        env!("CARGO_PKG_VERSION"),
        report.device,
        report.threads,
        report.simd.name(),
        asked.cloud.name(),
        points.len(),
        asked.radius(points.len()),
        if asked.sorted { "sorted" } else { "shuffled" },
    );
    println!("| feature | lists | counts | density | pairs |\n| --- | --- | --- | --- | --- |");
    let filters = filters::all(plain, asked.radius(points.len()));
    let radii = radii::features(&setup);
    let features = domains(&setup).into_iter().chain(results(plain, bytes));
    for mut feature in features.chain(radii).chain(filters) {
        if !asked.wants(&feature) {
            continue;
        }
        if asked.sorted {
            feature.side = feature.side.sorted()?;
        }
        let figures = asked.figures(plain, &feature);
        let row = match figures.and_then(|figures| Ok((figures, feature.side.pairs()?))) {
            Ok((figures, found)) => {
                let cell =
                    |figure: &Option<f64>| figure.map_or("–".into(), |x| format!("{x:.2}"));
                let cells = figures.each_ref().map(cell).join(" | ");
                format!("{cells} | {:.3}", found as f64 / pairs as f64)
            }
            Err(error) => format!("not supported: {error} | | |"),
        };
        println!("| {} | {row} |", feature.name);
    }
    Ok(())
}
