//! Lennard-Jones forces: pairs evaluated once and twice, found anew and over lists; steps of a run.
//!
//! ```sh
//! cargo bench -p nearfield-md --bench md -- [--atoms 1e6] [--device cpu|gpu] [--threads N]
//! ```
//!
//! The fluid of the target: density 0.8442, cut-off 2.5, lists with a skin of 0.3, melted from a
//! lattice at temperature 0.72 by steps of 0.002. On a GPU forces without lists are timed too,
//! atoms being sorted: by one thread per atom, and with pairs computed once for both, with 1 to 3
//! cells to the cut-off.
#![allow(clippy::disallowed_methods, reason = "copies outside of what is timed")]

use clap::Parser;
use nearfield::{
    Device, Engine, ListKind, Pair, PairKernel,
    device::DeviceEngine,
    kernels::{Coefficients, Forces, LennardJones, Mixing, PlainLennardJones, Truncation},
    lists::VerletLists,
};
use nearfield_md::{Cell, Error, ForceField, Options, Simulation, System};
use std::{process::ExitCode, time::Instant};

const DENSITY: f64 = 0.8442;
const CUTOFF: f64 = 2.5;
const SKIN: f32 = 0.3;
const STEP: f64 = 0.002;

/// A kernel that is evaluated from both sides of every pair.
struct Twice<K>(K);

impl<K: PairKernel> PairKernel for Twice<K> {
    type Target = K::Target;
    type Source = K::Source;
    type Output = K::Output;
    const PACKED: bool = K::PACKED;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: K::Target, source: K::Source) -> K::Output {
        self.0.pair(pair, target, source)
    }
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
enum Backend {
    Cpu,
    Gpu,
}

#[derive(Parser)]
struct Settings {
    #[arg(long, default_value_t = 1e6)]
    atoms: f64,
    #[arg(long, value_enum, default_value = "cpu")]
    device: Backend,
    #[arg(long, default_value_t = 0)]
    threads: usize,
    #[arg(long, default_value_t = 0)]
    steps: usize,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A simple cubic crystal that is melting.
fn fluid(atoms: usize) -> Result<(System, ForceField), Error> {
    let side = (atoms as f64).cbrt().round() as usize;
    let length = ((side * side * side) as f64 / DENSITY).cbrt();
    let spacing = length / side as f64;
    let place = |k: usize| {
        let at = [k % side, k / side % side, k / side / side];
        at.map(|x| (x as f64 + 0.5) * spacing)
    };
    let positions = (0..side * side * side).map(place).collect();
    let mut system = System::new(positions, Cell::cube(length)?)?;
    system.heat(1.44, 1);
    Ok((system, field()?))
}

fn field() -> Result<ForceField, Error> {
    let argon = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let table = LennardJones::new(
        &[argon],
        Mixing::default(),
        &[],
        CUTOFF,
        Truncation::EnergyShift,
    )?;
    Ok(ForceField::from(table))
}

/// Median milliseconds of `work`, and what it gave.
fn timed<T>(times: usize, mut work: impl FnMut() -> Result<T, Error>) -> Result<f64, Error> {
    let mut all = Vec::new();
    work()?;
    for _ in 0..times {
        let begin = Instant::now();
        work()?;
        all.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

fn on_cpu(settings: &Settings) -> Result<(), Error> {
    let (mut system, field) = fluid(settings.atoms as usize)?;
    // Lists are worth their while where the search is the dear part, which is for the machine to
    // say.
    for skin in [SKIN, 0.0] {
        let options = Options {
            device: Device::Cpu,
            threads: settings.threads,
            skin,
            ..Options::default()
        };
        let mut run = Simulation::new(system, field.clone(), options)?;
        let steps = settings.steps.max(60);
        let begin = Instant::now();
        for _ in 0..steps {
            run.step(STEP)?;
        }
        let spent = begin.elapsed().as_secs_f64() * 1e3 / steps as f64;
        system = run.system()?.clone();
        println!(
            "lj/{}/step/skin={skin}        {spent:9.2} ms, {} searches in {steps} steps",
            system.len(),
            run.builds()
        );
    }
    traversals(&system, settings.threads)
}

/// Positions within the box.
fn wrapped(system: &System) -> Vec<[f32; 3]> {
    let wrapped = |&at: &[f64; 3]| system.cell().wrap(at).map(|x| x as f32);
    system.positions().iter().map(wrapped).collect()
}

fn plain_forces() -> Result<Forces<PlainLennardJones>, Error> {
    let of = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    Ok(Forces(PlainLennardJones::new(of, CUTOFF, true)?))
}

fn traversals(system: &System, threads: usize) -> Result<(), Error> {
    let positions = wrapped(system);
    let atoms = positions.len();
    let vectors = system.cell().vectors();
    let settings = || {
        Engine::builder(CUTOFF as f32)
            .box_vectors(vectors)
            .threads(threads)
    };
    let mut engine = settings().build()?;
    let set = engine.add_point_set(&positions)?;
    let kernel = plain_forces()?;
    let (mut once, mut twice) = (vec![[0.0f32; 3]; atoms], vec![[0.0f32; 3]; atoms]);
    let half = timed(9, || {
        Ok(engine.traverse(&kernel, set, set).run_into(&mut once)?)
    })?;
    let both = Twice(kernel);
    let full = timed(9, || {
        Ok(engine.traverse(&both, set, set).run_into(&mut twice)?)
    })?;
    println!("lj/{atoms}/forces/found/full    {full:9.2} ms");
    println!(
        "lj/{atoms}/forces/found/half    {half:9.2} ms, {:.2} times as fast",
        full / half
    );
    for kind in [ListKind::Full, ListKind::Half] {
        let mut lists = VerletLists::new(settings().lists(kind), SKIN)?;
        let set = lists.add_point_set(&positions)?;
        lists.refresh()?;
        let result = timed(9, || match kind {
            ListKind::Full => Ok(lists.traverse(&both, set, set).run_into(&mut twice)?),
            ListKind::Half => Ok(lists.traverse(&kernel, set, set).run_into(&mut once)?),
        })?;
        println!("lj/{atoms}/forces/lists/{kind:?}    {result:9.2} ms");
    }
    let apart =
        |(a, b): (&[f32; 3], &[f32; 3])| (0..3).map(|k| (a[k] - b[k]).abs()).fold(0.0, f32::max);
    let farthest = once.iter().zip(&twice).map(apart).fold(0.0, f32::max);
    let largest = twice
        .as_flattened()
        .iter()
        .fold(0.0f32, |most, f| most.max(f.abs()));
    println!("largest difference of a force {farthest:.1e}, largest force {largest:.1e}");
    Ok(())
}

/// Forces on the GPU that are found anew, by number of cells to the cut-off.
fn found_on_gpu(system: &System) -> Result<(), Box<dyn std::error::Error>> {
    const TIMES: u32 = 50;
    let positions = wrapped(system);
    let atoms = positions.len();
    let lengths = [Some((atoms as f64 / DENSITY).cbrt()); 3];
    let kernel = plain_forces()?;
    let mut first: Option<Vec<f32>> = None;
    for subdivision in 1..=3 {
        let mut engine = DeviceEngine::builder(CUTOFF as f32)
            .periodic(lengths)
            .subdivision(subdivision)
            .on_gpu(0)?;
        let stream = engine.stream().clone();
        let set = engine.add_point_set(&stream.clone_htod(positions.as_flattened())?.as_view())?;
        let mut forces = stream.alloc_zeros::<f32>(3 * atoms)?;
        let mut all = |times: u32| {
            for _ in 0..times {
                let traversal = engine.traverse(&kernel, set, set);
                traversal.run_into(&mut forces.as_view_mut())?;
            }
            stream.synchronize()?;
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        // Programs are compiled, memory reserved.
        all(2)?;
        let begin = Instant::now();
        all(TIMES)?;
        let spent = begin.elapsed().as_secs_f64() * 1e3 / f64::from(TIMES);
        let forces = stream.clone_dtoh(&forces)?;
        let first = first.get_or_insert_with(|| forces.clone());
        let pairs = first.iter().zip(&forces);
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!(
            "lj/{atoms}/forces/found/K={subdivision} {spent:9.4} ms, \
             {:.0} MB, largest difference of a force {apart:.1e}",
            engine.bytes() as f64 / 1e6
        );
    }
    Ok(())
}

fn on_gpu(settings: &Settings) -> Result<(), Box<dyn std::error::Error>> {
    let (system, field) = fluid(settings.atoms as usize)?;
    let atoms = system.len();
    let options = Options {
        device: Device::Gpu(0),
        skin: SKIN,
        ..Options::default()
    };
    let mut run = Simulation::new(system, field, options)?;
    let start = run.observe()?;
    for _ in 0..settings.steps.max(500) {
        run.step(STEP)?;
    }
    let seen = run.observe()?;
    let moved = (seen.total() - start.total()).abs() / seen.kinetic;
    println!(
        "{}: energy changed by {moved:.1e} of the kinetic, temperature {:.3}",
        run.device(),
        seen.temperature
    );
    let forces = timed(20, || run.time_forces(20))? / 20.0;
    println!("lj/{atoms}/forces/lists          {forces:9.4} ms");
    let (steps, builds, begin) = (1000, run.builds(), Instant::now());
    for _ in 0..steps {
        run.step(STEP)?;
    }
    run.observe()?;
    let spent = begin.elapsed().as_secs_f64() * 1e3 / f64::from(steps);
    println!(
        "lj/{atoms}/step/skin={SKIN}        {spent:9.4} ms, {} searches in {steps} steps",
        run.builds() - builds
    );
    found_on_gpu(run.system()?)
}

fn main() -> ExitCode {
    let settings = Settings::parse();
    println!(
        "nearfield-md {} on {} threads",
        env!("CARGO_PKG_VERSION"),
        match settings.threads {
            0 => std::thread::available_parallelism().map_or(0, usize::from),
            threads => threads,
        }
    );
    let done = if settings.device == Backend::Gpu {
        on_gpu(&settings)
    } else {
        on_cpu(&settings).map_err(Into::into)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("md: {error}");
            ExitCode::FAILURE
        }
    }
}
