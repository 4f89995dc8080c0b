//! Whole programs, from start to end: how long they take, and for how much of that the device
//! computes. Kernels can be as fast as can be in a program that keeps its GPU waiting.
//!
//! ```sh
//! cargo bench -p nearfield-cli --bench whole -- [--device cpu|gpu] [--size small|large|huge]
//! ```
//!
//! Three programs: the dam break with its pictures and tables, molecular dynamics with an
//! observation every hundred steps, and one that moves its points and asks for new lists in every
//! step. Each runs twice, as a process of its own: as users run it, which gives the times, and with
//! a trace, which tells what the device did. A step's share is the time in which the device
//! computes over the wall time of the steps; the run's share counts everything from the program's
//! start to its end, and so what it takes to load programs and to write files.

use clap::Parser;
use nearfield::{
    Device, Engine,
    device::{DeviceEngine, Progress},
    kernels::{Coefficients, LennardJones, Mixing, Truncation},
};
use nearfield_dam_break as dam_break;
use nearfield_md::{Cell, ForceField, Options, Simulation, System};
use nearfield_trace_analysis::{Analysis, Trace};
use serde::{Deserialize, Serialize};
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

type Failure = Box<dyn std::error::Error>;

/// Figures of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    points: usize,
    steps: u64,
    /// Seconds in steps.
    stepping: f64,
    /// Seconds in all.
    whole: f64,
}

/// Programs by name.
const PROGRAMS: [&str; 3] = ["dam-break", "molecules", "lists"];

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Backend {
    Cpu,
    Gpu,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Size {
    Small,
    Large,
    Huge,
}

#[derive(Parser)]
struct Settings {
    #[arg(long, value_enum, default_value = "cpu")]
    device: Backend,
    #[arg(long, value_enum, default_value = "small")]
    size: Size,
    /// The program to run in this process
    #[arg(long)]
    program: Option<String>,
    /// Where its trace goes
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Size {
    /// As on the command line.
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Points, steps of molecular dynamics and of lists, and frames of the dam break.
    fn numbers(self) -> (usize, u64, usize) {
        match self {
            Self::Small => (65_000, 2000, 48),
            Self::Large => (986_000, 2000, 12),
            Self::Huge => (8_000_000, 200, 2),
        }
    }
}

impl Settings {
    fn gpu(&self) -> bool {
        self.device == Backend::Gpu
    }

    fn device(&self) -> Device {
        if self.gpu() {
            Device::Gpu(0)
        } else {
            Device::Cpu
        }
    }

    fn run(&self, program: &str) -> Result<Outcome, Failure> {
        let (points, steps, frames) = self.size.numbers();
        // A few cores take minutes where a GPU takes seconds.
        let steps = if self.gpu() { steps } else { steps / 50 };
        match program {
            "dam-break" => self.dam_break(points, frames),
            "molecules" => self.molecules(points, steps),
            "lists" => self.lists(points, steps),
            _ => Err(format!("there is no program {program}").into()),
        }
    }

    fn dam_break(&self, points: usize, frames: usize) -> Result<Outcome, Failure> {
        let folder = tempfile::tempdir()?;
        let units_of_time = if self.gpu() && self.size != Size::Huge {
            None
        } else {
            Some(0.05)
        };
        let summary = dam_break::run(&dam_break::Args {
            particles: Some(points),
            frames: Some(frames),
            seconds: units_of_time,
            device: self.device().into(),
            output: folder.path().to_owned(),
            ..dam_break::Args::default()
        })?;
        Ok(Outcome {
            points: summary.particles,
            steps: summary.steps,
            stepping: summary.solver_seconds,
            whole: summary.wall_seconds,
        })
    }

    fn molecules(&self, points: usize, steps: u64) -> Result<Outcome, Failure> {
        const STEP: f64 = 0.002;
        let begin = Instant::now();
        let (system, field) = fluid(points)?;
        let points = system.len();
        let options = Options {
            skin: 0.3,
            device: self.device(),
            ..Options::default()
        };
        let mut run = Simulation::new(system, field, options)?;
        let stepping = Instant::now();
        for number in 1..=steps {
            run.step(STEP)?;
            if number.is_multiple_of(100) {
                run.observe()?;
            }
        }
        let stepping = stepping.elapsed().as_secs_f64();
        let whole = begin.elapsed().as_secs_f64();
        Ok(Outcome {
            points,
            steps,
            stepping,
            whole,
        })
    }

    /// Points that move a little in every step, on the device if there is one.
    fn lists(&self, points: usize, steps: u64) -> Result<Outcome, Failure> {
        let begin = Instant::now();
        let side = (points as f64).cbrt().round() as usize;
        let place = |k: usize, wobble: f32| {
            let at = [k % side, k / side % side, k / side / side];
            at.map(|x| x as f32 + 0.1 * (k as f32 + wobble).sin())
        };
        let moved = |wobble: f32| (0..side.pow(3)).map(|k| place(k, wobble)).collect();
        let clouds: [Vec<[f32; 3]>; 2] = [0.0, 1.0].map(moved);
        let stepping;
        if self.gpu() {
            let mut engine = DeviceEngine::builder(2.0).on_gpu(0)?;
            let queue = engine.queue().clone();
            let upload = |cloud: &Vec<[f32; 3]>| queue.array("points", cloud.as_flattened());
            let clouds = [upload(&clouds[0])?, upload(&clouds[1])?];
            let set = engine.add_point_set(&clouds[0].as_view())?;
            let begin = Instant::now();
            for step in 0..steps {
                let _step = tracing::debug_span!(
                    target: "nearfield::whole", "lists.step", step = step + 1, points
                )
                .entered();
                engine.update(set, &clouds[step as usize % 2].as_view())?;
                loop {
                    engine.find_neighbors(set, set)?;
                    if engine.finish()? == Progress::Valid {
                        break;
                    }
                }
            }
            stepping = begin.elapsed().as_secs_f64();
        } else {
            let mut engine = Engine::builder(2.0).device(Device::Cpu).build()?;
            let set = engine.add_point_set(&clouds[0])?;
            let begin = Instant::now();
            for step in 0..steps {
                let _step = tracing::debug_span!(
                    target: "nearfield::whole", "lists.step", step = step + 1, points
                )
                .entered();
                engine.update(set, &clouds[step as usize % 2])?;
                engine.find_neighbors()?;
            }
            stepping = begin.elapsed().as_secs_f64();
        }
        Ok(Outcome {
            points: side.pow(3),
            steps,
            stepping,
            whole: begin.elapsed().as_secs_f64(),
        })
    }

    /// A program in a process of its own.
    fn start(&self, program: &str, trace: Option<&Path>) -> Result<(Outcome, f64), Failure> {
        let begin = Instant::now();
        let mut command = Command::new(env::current_exe()?);
        command.args(["--program", program, "--size", &self.size.name()]);
        command.args(["--device", if self.gpu() { "gpu" } else { "cpu" }]);
        if let Some(trace) = trace {
            command.arg("--trace").arg(trace);
        }
        let done = command.output()?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
        }
        let outcome = serde_json::from_slice(&done.stdout)?;
        Ok((outcome, begin.elapsed().as_secs_f64()))
    }

    fn compare(&self) -> Result<(), Failure> {
        println!(
            "{:<10} {:>9} {:>6} {:>9} {:>10} {:>11} {:>9} {:>9}",
            "program",
            "points",
            "steps",
            "steps/s",
            "ms a step",
            "ms computed",
            "of steps",
            "of run"
        );
        let folder = tempfile::tempdir()?;
        for program in PROGRAMS {
            let (outcome, process) = self.start(program, None)?;
            let path = folder.path().join(program);
            self.start(program, Some(&path))?;
            let trace = Trace::open(&path)?;
            let summary = Analysis::of(&trace)?.summary;
            let backend = if self.gpu() { "gpu" } else { "cpu" };
            let busy = summary
                .backends
                .get(backend)
                .map_or(0.0, |backend| backend.busy);
            let computed = busy / summary.steps.max(1) as f64;
            let step = 1e3 * outcome.stepping / outcome.steps as f64;
            println!(
                "{program:<10} {:>9} {:>6} {:>9.1} {step:>10.3} {computed:>11.3} {:>7.1} % {:>7.1} %",
                outcome.points,
                outcome.steps,
                1e3 / step,
                100.0 * computed / step,
                100.0 * computed * outcome.steps as f64 / (1e3 * process),
            );
            println!(
                "{:<10} whole run {process:.2} s, {:.2} s of them in steps",
                "", outcome.stepping
            );
        }
        Ok(())
    }
}

/// A simple cubic crystal that is melting.
fn fluid(atoms: usize) -> Result<(System, ForceField), Failure> {
    let side = (atoms as f64).cbrt().round() as usize;
    let length = ((side * side * side) as f64 / 0.8442).cbrt();
    let spacing = length / side as f64;
    let place = |k: usize| {
        let at = [k % side, k / side % side, k / side / side];
        at.map(|x| (x as f64 + 0.5) * spacing)
    };
    let positions = (0..side * side * side).map(place).collect();
    let mut system = System::new(positions, Cell::cube(length)?)?;
    system.heat(1.44, 1);
    let argon = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let truncation = Truncation::EnergyShift;
    let table = LennardJones::new(&[argon], Mixing::default(), &[], 2.5, truncation)?;
    Ok((system, ForceField::from(table)))
}

fn act(settings: &Settings) -> Result<(), Failure> {
    let Some(program) = &settings.program else {
        println!(
            "nearfield {}, {}, {} threads, size {}",
            env!("CARGO_PKG_VERSION"),
            settings.device(),
            std::thread::available_parallelism().map_or(0, usize::from),
            settings.size.name()
        );
        return settings.compare();
    };
    let recording = settings.trace.as_ref().map(nearfield_trace_analysis::start);
    let recording = recording.transpose()?;
    let outcome = settings.run(program)?;
    drop(recording);
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

fn main() -> ExitCode {
    match act(&Settings::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("whole: {error}");
            ExitCode::FAILURE
        }
    }
}
