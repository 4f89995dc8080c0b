//! The experiment that Nearfield grew out of: the same sums by every way of using a GPU, by the CPU
//! alone and by both together, from sparse to dense.
//!
//! `cargo bench -p nearfield --bench backends -- [--quick] [--output DIR] [--points N]`. Clouds are
//! jittered lattices of 8 to 512 points in a cell of the radius' edge, a pool with spray, clusters,
//! a Plummer sphere and a frame of a dam break. Positions come from the host and sums go back to
//! it; a step is update and traversal together, its points move by up to 0.015 r, and medians are
//! shown. Backends together are given steps to settle first. Without a GPU the hybrid ways run on
//! an emulated device, whose own clock says what they take, and the GPU's ways are left out.
//!
//! It prints a table, and leaves backends.json and backends.png in DIR (./backends). `--from
//! backends.json` draws such results again. `--by-turns` times either backend alone and both
//! together instead, step by step in turns (a second engine on the GPU alone shows how far the same
//! thing differs from itself) and `--device-engine` points and sums that stay on the GPU, by the
//! GPU alone and with the CPU backend's help. `--cold` times new engines from their first step on,
//! ten runs of every way, and shows the slowest, then each way in processes of its own. `--table`
//! does the same for lists, counts and density from a thousand to eight million points, as the
//! table of the documentation wants it. `--cloud`, `--way` and `--work` name what is timed,
//! `--threads` limits the CPU backend, `--steps` tells of every step of both backends.
#![allow(clippy::disallowed_methods, reason = "copies outside of what is timed")]

#[path = "backends/by_turns.rs"]
mod by_turns;
#[path = "backends/cold.rs"]
mod cold;
#[path = "backends/fresh.rs"]
mod fresh;
#[path = "backends/picture.rs"]
mod picture;
#[path = "backends/table.rs"]
mod table;

use clap::Parser;
use nearfield::{
    balance::{Policy, Strategy},
    device::{CpuHelper, DeviceEngine, DeviceField, Progress},
    kernels::{SphDensity, SphForce, WendlandC2},
    prelude::*,
    report::SplitReport,
};
use nearfield_plot::{COOL, INK, WARM};
use nearfield_testkit::cloud::{Cloud, drift};
use plotters::style::RGBColor;
use serde::{Deserialize, Serialize};
use std::{error::Error as StdError, path::PathBuf, time::Instant};

/// A step may take this long before its way is timed with few repetitions.
const SLOW_MS: f64 = 60.0;
/// The name of the last cloud.
const DAM_BREAK: &str = "dam-break";
/// Steps before those that are timed, taken or not.
const BEFORE: usize = 40;

/// Flags of the command line.
#[derive(clap::Parser)]
struct Options {
    /// Fewer points, clouds and repetitions
    #[arg(long)]
    quick: bool,
    /// Time points that stay on the GPU
    #[arg(long)]
    device_engine: bool,
    /// Time either backend alone and both together in turns
    #[arg(long)]
    by_turns: bool,
    /// Time every way from a cold start, ten runs of it
    #[arg(long)]
    cold: bool,
    /// Print the table of the documentation
    #[arg(long)]
    table: bool,
    /// Print the times of one way in this process, as JSON; for the program itself
    #[arg(long, hide = true)]
    fresh: bool,
    /// Threads of the CPU backend [default: one per core]
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Only jobs with this in their names
    #[arg(long, default_value = "")]
    work: String,
    /// Tell of every step of both backends
    #[arg(long)]
    steps: bool,
    /// Only clouds with this in their names
    #[arg(long, default_value = "")]
    cloud: String,
    /// Only ways with this in their names; by turns, only strategies
    #[arg(long, default_value = "")]
    way: String,
    /// Results to be drawn again instead of timing anything
    #[arg(long)]
    from: Option<PathBuf>,
    #[arg(long, default_value = "backends")]
    output: PathBuf,
    /// Points of a cloud [default: 1000000, with --quick 20000]
    #[arg(long)]
    points: Option<usize>,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn points(&self) -> usize {
        let usual = if self.quick { 20_000 } else { 1_000_000 };
        self.points.unwrap_or(usual)
    }

    /// Those of some jobs that were asked for.
    fn works(&self, all: &[Work]) -> Vec<Work> {
        let asked = |work: &&Work| work.name().contains(&self.work);
        all.iter().filter(asked).copied().collect()
    }
}

/// A cloud and the radius to search it with.
struct Scene {
    name: String,
    /// Points in a cell of the radius' edge, of a lattice.
    occupancy: Option<f64>,
    points: Vec<[f32; 3]>,
    radius: f32,
}

/// The clouds that were asked for; others are not drawn.
fn scenes(options: &Options) -> Vec<Scene> {
    let wanted = |name: &str| name.contains(&options.cloud);
    let radii: &[f32] = if options.quick {
        &[2.0, 4.0]
    } else {
        &[2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    };
    let lattices = radii.iter().filter_map(|&radius| {
        let name = format!("lattice, {} points a cell", radius.powi(3));
        wanted(&name).then(|| Scene {
            name,
            occupancy: Some(f64::from(radius.powi(3))),
            points: Cloud::Lattice.points(options.points(), 1),
            radius,
        })
    });
    let mut scenes: Vec<Scene> = lattices.collect();
    for cloud in [Cloud::PoolSpray, Cloud::Clusters, Cloud::Plummer] {
        let points = match cloud {
            Cloud::Clusters => options.points() * 45 / 100,
            _ => options.points(),
        };
        if wanted(cloud.name()) {
            scenes.push(Scene {
                name: cloud.name().to_owned(),
                occupancy: None,
                points: cloud.points(points, 1),
                radius: cloud.default_radius(points),
            });
        }
    }
    if wanted(DAM_BREAK) {
        scenes.push(dam_break(options.points()));
    }
    scenes
}

/// Water half-way through a dam break: a column that has sunk and run out along the floor, with a
/// surface that slopes, and drops above it.
fn dam_break(points: usize) -> Scene {
    let side = (points as f64 / 2.2).cbrt();
    let mut found = Vec::with_capacity(points);
    let drops = points / 100;
    let spray = Cloud::Uniform.points(drops, 3);
    let edge = (drops as f32).cbrt();
    let slot = |i: usize, wide: usize| (i % wide, i / wide);
    let (length, depth) = ((3.2 * side) as usize, side as usize);
    let mut column = 0;
    while found.len() + drops < points {
        let (x, y) = slot(column, length);
        // Higher where the column stood, a bore at the far wall.
        let along = x as f32 / length as f32;
        let height = side as f32 * (0.25 + 0.9 * (1.0 - along).powi(2) + 0.35 * along.powi(8));
        let next = (0..height as usize).map(|z| [x as f32, (y % depth.max(1)) as f32, z as f32]);
        found.extend(next.take(points - drops - found.len()));
        column += 1;
    }
    found.extend(spray.iter().map(|at| {
        let part = |axis: usize, scale: f64| at[axis] / edge * scale as f32;
        [part(0, 3.2 * side), part(1, side), part(2, 2.0 * side)]
    }));
    drift(&mut found, 0.1, 7);
    Scene {
        name: DAM_BREAK.to_owned(),
        occupancy: None,
        points: found,
        radius: 2.0,
    }
}

/// A way of doing the work.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    device: Device,
    strategy: Strategy,
    policy: Policy,
    color: RGBColor,
}

fn ways(gpu: bool, named: &str) -> Vec<Way> {
    let way = |name, device, strategy, policy, color| Way {
        name,
        device,
        strategy,
        policy,
        color,
    };
    let alone = |name, strategy, color| way(name, Device::Gpu(0), strategy, Policy::Model, color);
    let both = if gpu {
        Device::Hybrid(0)
    } else {
        Device::Emulated(nearfield::balance::emulated::EmulatedSpec::default())
    };
    let band = Policy::Band {
        alpha: 0.75,
        beta: 0.95,
    };
    let band = "band".parse().unwrap_or(band);
    let (flat, child) = (Strategy::Flat, Strategy::ChildPerCell);
    let mut ways = vec![way("CPU", Device::Cpu, flat, Policy::Model, INK)];
    if gpu {
        ways.extend([
            alone("GPU, flat", flat, COOL[0]),
            alone("GPU, child per cell", child, COOL[1]),
            alone("GPU, child aggregated", Strategy::ChildAggregated, COOL[2]),
            alone("GPU, auto", Strategy::Auto, COOL[3]),
        ]);
    }
    ways.extend([
        way("hybrid, flat, model", both, flat, Policy::Model, WARM[0]),
        way("hybrid, flat, band", both, flat, band, WARM[2]),
        way(
            "hybrid, flat, fraction",
            both,
            flat,
            Policy::Fraction,
            WARM[3],
        ),
    ]);
    if gpu {
        ways.push(way(
            "hybrid, child per cell, model",
            both,
            child,
            Policy::Model,
            WARM[1],
        ));
    }
    ways.retain(|way| way.name.contains(named));
    ways
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Work {
    Lists,
    Counts,
    Density,
    Force,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Lists => "lists",
            Self::Counts => "counts",
            Self::Density => "density",
            Self::Force => "force",
        }
    }
}

/// A result.
#[derive(Serialize, Deserialize)]
struct Found {
    cloud: String,
    points: usize,
    radius: f32,
    occupancy: Option<f64>,
    work: Work,
    way: String,
    milliseconds: f64,
    /// The CPU backend's share of the pairs tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theta: Option<f64>,
}

/// An engine, its points, and what is computed of them.
struct Subject<'a> {
    way: Way,
    work: Work,
    scene: &'a Scene,
    engine: Engine,
    set: PointSetId,
    points: Vec<[f32; 3]>,
    mass: Vec<f32>,
    velocity: Vec<[f32; 3]>,
    density: Vec<f32>,
    pressure: Vec<f32>,
    sums: Vec<f32>,
    vectors: Vec<[f32; 3]>,
    steps: u64,
}

impl<'a> Subject<'a> {
    fn new(
        scene: &'a Scene,
        work: Work,
        way: Way,
        options: &Options,
    ) -> Result<Self, nearfield::Error> {
        let mut engine = Engine::builder(scene.radius)
            .device(way.device)
            .threads(options.threads)
            .strategy(way.strategy)
            .policy(way.policy)
            .build()?;
        let (points, count) = (scene.points.clone(), scene.points.len());
        let wave = |i: usize, period: usize| (i % period) as f32 / period as f32;
        Ok(Self {
            way,
            work,
            scene,
            set: engine.add_point_set(&points)?,
            engine,
            points,
            mass: vec![1.0; count],
            velocity: (0..count)
                .map(|i| [wave(i, 7) - 0.5, wave(i, 11) - 0.5, wave(i, 13) - 0.5])
                .collect(),
            density: (0..count).map(|i| 1.0 + 0.01 * wave(i, 17)).collect(),
            pressure: (0..count).map(|i| wave(i, 19)).collect(),
            sums: vec![0.0; count],
            vectors: vec![[0.0; 3]; count],
            steps: 0,
        })
    }

    /// Prints the time of step `number` of both backends, and the reason of its split.
    fn tell(&self, number: usize, took: f64) {
        for job in self.engine.report().jobs {
            let Some(split) = job.split else { continue };
            let share = 100.0 * split.share;
            println!("  {number}: {took:.3} ms, {share:.2} %: {}", split.reason);
        }
    }

    fn drift(&mut self) {
        drift(&mut self.points, 0.015 * self.scene.radius, self.steps);
        self.steps += 1;
    }

    /// Moves the points and does the work; milliseconds of that.
    fn step(&mut self) -> Result<f64, nearfield::Error> {
        self.drift();
        let radius = self.scene.radius;
        let kernel = WendlandC2::with_support(radius);
        let begin = Instant::now();
        self.engine.update(self.set, &self.points)?;
        let set = self.set;
        match self.work {
            Work::Lists => self.engine.find_neighbors()?,
            Work::Counts => self.engine.count_neighbors(set, set).map(drop)?,
            Work::Density => self
                .engine
                .traverse(&SphDensity { kernel }, set, set)
                .sources(&self.mass)
                .run_into(&mut self.sums)?,
            Work::Force => {
                let force = SphForce {
                    kernel,
                    h: 0.5 * radius,
                    alpha_c: 0.1,
                };
                let state = (&self.velocity, &self.density, &self.pressure);
                self.engine
                    .traverse(&force, set, set)
                    .targets(state)
                    .sources((state.0, state.1, state.2, &self.mass))
                    .run_into(&mut self.vectors)?;
            }
        }
        let took = begin.elapsed().as_secs_f64() * 1e3;
        Ok(match (self.way.device, split_of(&self.engine)) {
            // The clock of a device that does not exist.
            (Device::Emulated(_), Some(split)) => (split.backends.iter())
                .map(|backend| backend.milliseconds)
                .fold(0.0, f64::max),
            _ => took,
        })
    }
}

/// How both backends shared the only job.
fn split_of(engine: &Engine) -> Option<SplitReport> {
    engine.report().jobs.into_iter().find_map(|job| job.split)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn time(scene: &Scene, work: Work, way: Way, options: &Options) -> Result<Found, nearfield::Error> {
    let mut subject = Subject::new(scene, work, way, options)?;
    subject.step()?;
    let slow = subject.step()? > SLOW_MS;
    let learns = matches!(way.device, Device::Hybrid(_) | Device::Emulated(_))
        || way.strategy == Strategy::Auto;
    let (before, timed) = match (options.quick, learns, slow) {
        (true, ..) => (12, 3),
        (_, true, _) => (BEFORE, 15),
        (_, false, true) => (0, 3),
        (_, false, false) => (4, 11),
    };
    // All are timed at the same points: a lattice that melts is more and more work.
    for _ in before..BEFORE {
        subject.drift();
    }
    let mut times = Vec::new();
    for number in 0..before + timed {
        let took = subject.step()?;
        if options.steps {
            subject.tell(number, took);
        }
        if number >= before {
            times.push(took);
        }
        // Steps that are still slow by now do not scatter much.
        if number >= before + 5 && median(times.clone()) > SLOW_MS {
            break;
        }
    }
    let milliseconds = median(times);
    let backends = split_of(&subject.engine);
    Ok(Found {
        cloud: scene.name.clone(),
        points: scene.points.len(),
        radius: scene.radius,
        occupancy: scene.occupancy,
        work,
        way: way.name.to_owned(),
        milliseconds,
        share: backends.as_ref().map(|backends| backends.share),
        theta: backends.map(|backends| backends.theta),
    })
}

fn main() -> Result<(), Box<dyn StdError>> {
    let options = Options::parse();
    if let Some(from) = &options.from {
        let all: Vec<Found> = serde_json::from_str(&std::fs::read_to_string(from)?)?;
        std::fs::create_dir_all(&options.output)?;
        return picture::draw(
            &options.output.join("backends.png"),
            &ways(true, &options.way),
            &all,
        );
    }
    if options.device_engine {
        return device_engine(&options);
    }
    if options.by_turns {
        return by_turns::run(&options);
    }
    if options.fresh {
        // Before anything touches a GPU.
        return fresh::print(&options);
    }
    let gpu = match Engine::builder(1.0).device(Device::Gpu(0)).build() {
        Ok(_) => true,
        Err(error) => {
            println!("without a GPU: {error}\n");
            false
        }
    };
    if options.cold {
        return cold::run(&options, gpu);
    }
    if options.table {
        return table::print(&options, gpu);
    }
    // A folder that cannot be made is refused before anything is timed.
    std::fs::create_dir_all(&options.output)?;
    let (ways, mut all) = (ways(gpu, &options.way), Vec::new());
    for scene in scenes(&options) {
        for work in options.works(&[Work::Density, Work::Force]) {
            let what = work.name();
            println!("{} ({}), {what}", scene.name, scene.points.len());
            for &way in &ways {
                let found = time(&scene, work, way, &options)?;
                let share = found.share.map_or(String::new(), |share| {
                    format!("   {:.1} % on the CPU", 100.0 * share)
                });
                println!("  {:30} {:9.3} ms{share}", way.name, found.milliseconds);
                all.push(found);
            }
        }
    }
    let json = serde_json::to_string_pretty(&all)?;
    std::fs::write(options.output.join("backends.json"), json + "\n")?;
    picture::draw(&options.output.join("backends.png"), &ways, &all)?;
    Ok(())
}

/// Density of points that stay on the GPU, where they are moved between steps: a step is update and
/// traversal, waited for.
fn device_engine(options: &Options) -> Result<(), Box<dyn StdError>> {
    let all = scenes(options).into_iter();
    for scene in all.filter(|scene| scene.occupancy.is_none_or(|points| points < 100.0)) {
        for strategy in [Strategy::Flat, Strategy::ChildPerCell] {
            print!("{} ({}), {strategy}:", scene.name, scene.points.len());
            let alone = time_device_engine(&scene, strategy, None)?;
            let mut cpu = CpuHelper::new(Policy::Model, 0)?;
            let shared = time_device_engine(&scene, strategy, Some(&mut cpu))?;
            let report = cpu.report();
            let share = report.first().map_or(0.0, |(_, split)| 100.0 * split.share);
            println!(
                " alone {alone:.3} ms, with the CPU's help {shared:.3} ms, {:.2} times as fast, \
                 {share:.1} % on the CPU",
                alone / shared
            );
        }
    }
    Ok(())
}

fn time_device_engine(
    scene: &Scene,
    strategy: Strategy,
    mut cpu: Option<&mut CpuHelper>,
) -> Result<f64, Box<dyn StdError>> {
    let builder = DeviceEngine::builder(scene.radius).strategy(strategy);
    let mut engine = builder.on_gpu(0)?;
    let stream = engine.stream().clone();
    let mut points = scene.points.clone();
    let kernel = WendlandC2::with_support(scene.radius);
    let density = SphDensity { kernel };
    let mass = stream.clone_htod(&vec![1.0f32; points.len()])?;
    let mut sums = stream.alloc_zeros::<f32>(points.len())?;
    let set = engine.add_point_set(&stream.clone_htod(points.as_flattened())?.as_view())?;
    let mut times = Vec::new();
    let (before, timed) = (40, 15);
    for number in 0..before + timed {
        drift(&mut points, 0.015 * scene.radius, number);
        let moved = stream.clone_htod(points.as_flattened())?;
        stream.synchronize()?;
        let begin = Instant::now();
        engine.update(set, &moved.as_view())?;
        loop {
            let field = DeviceField::new(mass.as_view(), 1);
            let mut results = sums.as_view_mut();
            match &mut cpu {
                None => (engine.traverse(&density, set, set))
                    .sources(field)
                    .run_into(&mut results)?,
                Some(cpu) => (engine.with_cpu(cpu).traverse(&density, set, set))
                    .sources(field)
                    .run_into(&mut results)?,
            }
            if engine.finish()? == Progress::Valid {
                break;
            }
        }
        let took = begin.elapsed().as_secs_f64() * 1e3;
        // One slow way is enough to be sure of.
        if took > 10.0 * SLOW_MS && number > 2 {
            return Ok(took);
        }
        if number >= before {
            times.push(took);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
