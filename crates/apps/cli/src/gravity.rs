//! `nearfield gravity`: bodies that attract each other.

use crate::{
    failure::Failure,
    options::{Precision, count, positive_count},
    output,
    progress::progress_bar,
};
use nearfield::{
    Device,
    all_pairs::{AllPairsReport, Arithmetic, Real},
};
use nearfield_files::Plan;
use nearfield_grid::Value;
use nearfield_nbody::{
    Bodies, Energy, ErrorKind, Integrator, Moment, Options, Simulation, draw, read_bodies,
    write_snapshot,
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Name of the checkpoint in the output folder.
const CHECKPOINT: &str = "gravity.checkpoint";

/// Flags of `nearfield gravity`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bodies: a table (.csv, .txt, ...) with mass, x, y, z, vx, vy, vz, or a .vtk, .vtp or .vtu
    /// file with mass and velocity
    #[arg(required_unless_present = "restart", conflicts_with = "restart")]
    file: Option<PathBuf>,
    /// Softening length of the attraction; 0, the default, for none
    #[arg(long, value_name = "E")]
    softening: Option<f64>,
    /// Steps in all, those before a checkpoint included
    #[arg(long, value_name = "N", value_parser = count)]
    steps: usize,
    /// Length of a step
    #[arg(
        long,
        value_name = "H",
        allow_negative_numbers = true,
        required_unless_present = "restart"
    )]
    dt: Option<f64>,
    /// leapfrog, the default, or symplectic-euler
    #[arg(long, value_name = "NAME")]
    integrator: Option<Integrator>,
    /// Precision of bodies and attractions
    #[arg(long, value_enum, default_value_t = Precision::F64)]
    precision: Precision,
    /// Correctly rounded roots: the same bits on every device
    #[arg(long)]
    exact: bool,
    /// Where to run: auto, cpu, gpu[:N] or hybrid[:N]
    #[arg(long, default_value_t = Device::Auto)]
    device: Device,
    /// Worker threads on the CPU; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Directory for snapshots, energies and the picture; made when missing
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Snapshots to write, the first and the last moment among them
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive_count)]
    frames: usize,
    /// Write a checkpoint into the output folder every N steps
    #[arg(long, value_name = "N", value_parser = positive_count, requires = "output")]
    checkpoint: Option<usize>,
    /// Go on from a checkpoint instead of reading bodies
    #[arg(long, value_name = "FILE")]
    restart: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Adds the files that are read and written. A checkpoint that a run goes on from has been read
    /// in full when a later one replaces it.
    pub(crate) fn files(&self, plan: &mut Plan) {
        plan.print_json(self.json);
        let checkpoints = self.checkpoint.is_some();
        for input in self.file.iter().chain(&self.restart) {
            plan.read(input);
        }
        if let Some(folder) = &self.output {
            let restart = self.restart.is_some();
            plan.write_into("--output", folder, move |name| match name {
                "energy.csv" | "gravity.png" => true,
                CHECKPOINT => checkpoints && !restart,
                _ => nearfield_files::is_frame(name, &["vtp", "npy"]),
            });
        }
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    bodies: usize,
    steps: u64,
    first_step: u64,
    time: f64,
    dt: f64,
    softening: f64,
    integrator: String,
    precision: &'static str,
    exact: bool,
    device: String,
    reason: String,
    energy_before: Energies,
    energy_after: Energies,
    energy_change: f64,
    momentum_before: [f64; 3],
    momentum_after: [f64; 3],
    seconds: f64,
    interactions_per_second: f64,
    frames: usize,
    output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Energies {
    kinetic: f64,
    potential: f64,
    total: f64,
}

impl From<Energy> for Energies {
    fn from(energy: Energy) -> Self {
        Self {
            kinetic: energy.kinetic,
            potential: energy.potential,
            total: energy.total(),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match args.precision {
        Precision::F32 => run_in::<f32>(args),
        Precision::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &Args) -> Result<(), Failure> {
    let simulation = start::<T>(args)?;
    if let Some(folder) = &args.output {
        nearfield_files::make_folder(folder).map_err(|error| refused(folder, &error))?;
    }
    let summary = Course::new(args, simulation)?.travel()?;
    output::print(args.json, &summary, || {
        [
            format!("bodies      {}, in {}", summary.bodies, summary.precision),
            format!(
                "steps       {} of {}, to t = {} ({})",
                summary.steps,
                Value::from(summary.dt),
                Value::from(summary.time),
                summary.integrator
            ),
            format!(
                "energy      {} before, {} after: a change of {:.2e}",
                digits(summary.energy_before.total),
                digits(summary.energy_after.total),
                summary.energy_change
            ),
            format!(
                "time        {:.3} s, {:.3e} interactions a second on {} ({})",
                summary.seconds, summary.interactions_per_second, summary.device, summary.reason
            ),
        ]
    })
}

/// Nine digits behind the point, or behind the first where the number is very small or large.
fn digits(number: f64) -> String {
    if number == 0.0 || (1e-4..1e9).contains(&number.abs()) {
        format!("{number:.9}")
    } else {
        format!("{number:.9e}")
    }
}

/// The change of an energy as a share of it; none is none, also of an energy of 0.
fn relative(change: f64, of: f64) -> f64 {
    if change == 0.0 {
        0.0
    } else {
        change / of.abs()
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Wrong(format!("{}: cannot write: {error}", path.display()))
}

/// The bodies of the file, or those of the checkpoint.
fn start<T: Real>(args: &Args) -> Result<Simulation<T>, Failure> {
    let mut options = Options {
        device: args.device,
        threads: args.threads,
        arithmetic: if args.exact {
            Arithmetic::Exact
        } else {
            Arithmetic::Fast
        },
        ..Options::default()
    };
    let Some(file) = &args.file else {
        let path = args.restart.clone().unwrap_or_default();
        let simulation = Simulation::restore(&path, options)?;
        agree(args, simulation.options(), &path)?;
        return Ok(simulation);
    };
    options.softening = args.softening.unwrap_or(0.0);
    options.time_step = args.dt.unwrap_or(options.time_step);
    options.integrator = args.integrator.unwrap_or_default();
    Ok(Simulation::new(read_bodies(file)?.rounded()?, options)?)
}

/// A checkpoint goes on as it began: flags that say otherwise are refused.
fn agree(args: &Args, found: &Options, path: &Path) -> Result<(), Failure> {
    let differs = |flag: &str, given: &dyn std::fmt::Display, kept: &dyn std::fmt::Display| {
        let path = path.display();
        Err(Failure::Wrong(format!(
            "--{flag} {given} differs from the checkpoint {path}, which goes on with {kept}: leave it out"
        )))
    };
    match (args.dt, args.softening, args.integrator) {
        (Some(dt), _, _) if dt != found.time_step => differs("dt", &dt, &found.time_step),
        (_, Some(softening), _) if softening != found.softening => {
            differs("softening", &softening, &found.softening)
        }
        (_, _, Some(one)) if one != found.integrator => {
            differs("integrator", &one, &found.integrator)
        }
        _ => Ok(()),
    }
}

/// A run under way.
struct Course<'a, T> {
    args: &'a Args,
    simulation: Simulation<T>,
    first_step: u64,
    first: Bodies<T>,
    energy: Energy,
    momentum: [f64; 3],
    moments: Vec<Moment>,
    solving: Duration,
    /// The energy that was computed last, and after which step.
    known: (u64, Energy),
    /// Where the last step ran: sums of the energy may run elsewhere.
    ran: AllPairsReport,
}

impl<'a, T: Real> Course<'a, T> {
    fn new(args: &'a Args, mut simulation: Simulation<T>) -> Result<Self, Failure> {
        let energy = simulation.energy()?;
        Ok(Self {
            args,
            first_step: simulation.steps(),
            first: simulation.bodies().rounded()?,
            energy,
            momentum: simulation.momentum(),
            moments: Vec::new(),
            solving: Duration::ZERO,
            known: (simulation.steps(), energy),
            ran: simulation.report(),
            simulation,
        })
    }

    /// Steps to the end. When that fails, the energies up to then are written all the same.
    fn travel(mut self) -> Result<Summary, Failure> {
        match self.steps() {
            Ok(frames) => self.arrive(frames),
            Err(failure) => {
                // Which is what went wrong; that this fails too would hide it.
                let _ = self.write_energies();
                Err(failure)
            }
        }
    }

    /// The energy now. A run that has blown up ends here, before anything of it is written.
    fn checked_energy(&mut self) -> Result<Energy, Failure> {
        let step = self.simulation.steps();
        if self.known.0 != step {
            self.known = (step, self.simulation.energy()?);
        }
        let energy = self.known.1;
        if self.energy.has_blown_up(energy) {
            let diverged = ErrorKind::Diverged {
                step,
                energy: energy.total(),
                first: self.energy.total(),
                time_step: self.simulation.options().time_step,
            };
            return Err(nearfield_nbody::Error::from(diverged).into());
        }
        Ok(energy)
    }

    /// Whether bodies are so fast that the energy should be looked at.
    fn is_suspicious(&self) -> bool {
        let usual = self.energy.kinetic + self.energy.potential.abs();
        let kinetic = self.simulation.kinetic();
        !kinetic.is_finite() || kinetic > 10.0 * usual
    }

    /// Steps to the end; returns the number of snapshots. Snapshots and checkpoints come at steps
    /// that a restart does not move.
    fn steps(&mut self) -> Result<usize, Failure> {
        let last = self.args.steps as u64;
        let bar = progress_bar(last);
        let frames = self.args.frames.min(self.args.steps + 1);
        let step_of = |frame: usize| match frames {
            1 => 0,
            _ => (frame as u128 * u128::from(last) / (frames as u128 - 1)) as u64,
        };
        let mut frame = (0..frames)
            .find(|&frame| step_of(frame) >= self.first_step)
            .unwrap_or(frames);
        self.moment(self.energy);
        if frame < frames && step_of(frame) == self.first_step {
            self.snapshot(frame)?;
            frame += 1;
        }
        while self.simulation.steps() < last {
            let done = self.simulation.steps();
            let every = self.args.checkpoint.map_or(u64::MAX, |every| every as u64);
            let next_save = (done / every).saturating_add(1).saturating_mul(every);
            let next_frame = if frame < frames { step_of(frame) } else { last };
            // A few steps at a time, so that the bar moves.
            let until = last.min(next_save).min(next_frame).min(done + 16);
            let begin = Instant::now();
            self.simulation.run(until - done)?;
            self.solving += begin.elapsed();
            self.ran = self.simulation.report();
            bar.set_position(until);
            if self.is_suspicious() {
                self.checked_energy()?;
            }
            if until == next_frame && frame < frames {
                if self.args.output.is_some() {
                    let energy = self.checked_energy()?;
                    if until != last {
                        self.moment(energy);
                    }
                }
                self.snapshot(frame)?;
                frame += 1;
            }
            if let Some(folder) = self.args.output.as_ref().filter(|_| until == next_save) {
                self.checked_energy()?;
                self.simulation.save(folder.join(CHECKPOINT))?;
            }
        }
        bar.finish_and_clear();
        let energy = self.checked_energy()?;
        self.moment(energy);
        Ok(frames)
    }

    /// The energies as a table. Those of the run that this one goes on from stay.
    fn write_energies(&self) -> Result<(), Failure> {
        let Some(folder) = &self.args.output else {
            return Ok(());
        };
        let path = folder.join("energy.csv");
        let mut text = "time,energy\n".to_owned();
        let first = self.moments.first().map_or(0.0, |moment| moment.time);
        if self.args.restart.is_some() {
            let old = std::fs::read_to_string(&path).unwrap_or_default();
            let is_before = |line: &&str| {
                let time = line.split(',').next().and_then(|time| time.parse().ok());
                time.is_some_and(|time: f64| time.abs() < first.abs())
            };
            old.lines()
                .filter(is_before)
                .for_each(|line| text += &format!("{line}\n"));
        }
        for moment in &self.moments {
            text += &format!("{},{}\n", moment.time, moment.energy);
        }
        nearfield_files::write(&path, text).map_err(|error| refused(&path, &error))
    }

    fn moment(&mut self, energy: Energy) {
        self.moments.push(Moment {
            time: self.simulation.time(),
            energy: energy.total(),
        });
    }

    fn snapshot(&self, frame: usize) -> Result<(), Failure> {
        if let Some(folder) = &self.args.output {
            write_snapshot(folder.join(format!("frame_{frame:04}")), &self.simulation)?;
        }
        Ok(())
    }

    /// Writes energies and the picture, and sums up.
    fn arrive(self, frames: usize) -> Result<Summary, Failure> {
        let energy = self.known.1;
        self.write_energies()?;
        let (simulation, options) = (&self.simulation, self.simulation.options());
        if let Some(folder) = &self.args.output {
            draw(
                folder.join("gravity.png"),
                &self.first,
                simulation.bodies(),
                &self.moments,
            )?;
        }
        let (bodies, report) = (simulation.bodies().len(), self.ran);
        let steps = simulation.steps() - self.first_step;
        let seconds = self.solving.as_secs_f64();
        let interactions = (bodies as f64).powi(2) * steps as f64;
        Ok(Summary {
            bodies,
            steps: simulation.steps(),
            first_step: self.first_step,
            time: simulation.time(),
            dt: options.time_step,
            softening: options.softening,
            integrator: options.integrator.to_string(),
            precision: T::NAME,
            exact: self.args.exact,
            device: report.device.to_string(),
            reason: report.reason,
            energy_change: relative(energy.total() - self.energy.total(), self.energy.total()),
            energy_before: self.energy.into(),
            energy_after: energy.into(),
            momentum_before: self.momentum,
            momentum_after: simulation.momentum(),
            seconds,
            interactions_per_second: interactions / seconds.max(1e-9),
            frames: if self.args.output.is_some() {
                frames
            } else {
                0
            },
            output: self.args.output.clone(),
        })
    }
}
