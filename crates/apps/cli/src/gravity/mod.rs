//! `nearfield gravity`: bodies that attract each other.

mod past;
mod summary;

use crate::{
    failure::Failure,
    files::{GrowingTable, goes_on, open_growing, remove_leftovers, sum_of},
    input,
    options::{Precision, count, positive_count},
    output,
    progress::progress_bar,
};
use nearfield::{
    Device,
    all_pairs::{AllPairsReport, Arithmetic, Real},
};
use nearfield_files::{Plan, Run, RunFolder, is_frame};
use nearfield_grid::memory::{collected, copied, filled};
use nearfield_nbody::{
    Bodies, Energy, ErrorKind, Integrator, Moment, Options, Simulation, Story, Trails, draw,
    read_bodies_file, write_snapshot,
};
use past::Past;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use summary::{Summary, relative};

/// Names of columns that bodies could have instead of those that they need.
const USABLE: &[&str] = &["momenta", "momentum", "px", "py", "pz"];

/// Names of the files of a run.
const CHECKPOINT: &str = "gravity.checkpoint";
const ENERGIES: &str = "energy.csv";
const PICTURE: &str = "gravity.png";
/// Extensions of the files of a frame.
const FRAME: [&str; 2] = ["vtp", "npy"];

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
                ENERGIES | PICTURE => true,
                CHECKPOINT => checkpoints && !restart,
                _ => is_frame(name, &FRAME),
            });
        }
    }
}

impl Args {
    /// Number of snapshots, at most one per moment.
    fn frame_count(&self) -> usize {
        self.frames.min(self.steps.saturating_add(1))
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match args.precision {
        Precision::F32 => run_in::<f32>(args),
        Precision::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &Args) -> Result<(), Failure> {
    let summary = RunState::new(args, start::<T>(args)?)?.run_steps()?;
    output::print(args.json, &summary, || summary.lines())
}

/// The bodies of a run, their names, and its past if it goes on.
struct Start<T> {
    simulation: Simulation<T>,
    names: Vec<String>,
    past: Option<Past>,
}

/// Reads the bodies of the file, or resumes from the checkpoint with the past of its run.
fn start<T: Real>(args: &Args) -> Result<Start<T>, Failure> {
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
        let (simulation, notes) = Simulation::restore(&path, options)?;
        agree(args, simulation.options(), &path)?;
        let past = Past::parse(&notes, simulation.bodies().len());
        let past = past
            .map_err(|reason| Failure::Wrong(format!("checkpoint {}: {reason}", path.display())))?;
        return Ok(Start {
            simulation,
            names: past.names.clone(),
            past: Some(past),
        });
    };
    options.softening = args.softening.unwrap_or(0.0);
    options.time_step = args.dt.unwrap_or(options.time_step);
    options.integrator = args.integrator.unwrap_or_default();
    let found = read_bodies_file(file)?;
    input::notice_unused(file, found.unused.iter().map(String::as_str), &[], USABLE);
    let simulation = Simulation::new(found.bodies.rounded()?, options)?;
    Ok(Start {
        simulation,
        names: found.names,
        past: None,
    })
}

/// The settings and files that identify the run; a checkpoint adds its input.
fn run_of<T: Real>(
    args: &Args,
    simulation: &Simulation<T>,
    past: Option<&Past>,
) -> Result<Run, Failure> {
    let (options, bodies) = (simulation.options(), simulation.bodies());
    let run = Run::new("gravity")
        .set("precision", T::NAME)
        .set("exact", args.exact)
        .set("dt", options.time_step)
        .set("softening", options.softening)
        .set("integrator", options.integrator)
        .frames(args.frame_count(), &FRAME)
        .writes(&[ENERGIES, PICTURE]);
    if let Some(past) = past {
        return Ok(run.after(&past.run));
    }
    let vectors = bodies.positions.iter().chain(&bodies.velocities).flatten();
    let numbers = bodies.masses.iter().chain(vectors);
    Ok(run.set("bodies", sum_of(numbers.map(|number| number.double()))?))
}

/// A checkpoint goes on as it began: flags that say otherwise are refused.
fn agree(args: &Args, found: &Options, path: &Path) -> Result<(), Failure> {
    let differs = |flag: &str, given: &dyn std::fmt::Display, kept: &dyn std::fmt::Display| {
        let path = path.display();
        Err(Failure::Wrong(format!(
            "--{flag} {given} differs from the checkpoint {path}, which has {kept}: leave it out"
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
struct RunState<'a, T> {
    args: &'a Args,
    simulation: Simulation<T>,
    first_step: u64,
    first: Bodies<T>,
    energy: Energy,
    momentum: [f64; 3],
    moments: Vec<Moment>,
    trails: Trails,
    names: Vec<String>,
    solving: Duration,
    /// The energy that was computed last, and after which step.
    known: (u64, Energy),
    /// Where the last step ran: sums of the energy may run elsewhere.
    ran: AllPairsReport,
    run: Run,
    files: Option<Files>,
}

/// The files of a run.
struct Files {
    folder: PathBuf,
    /// Whose files are in the folder, until the first frame of this run is there.
    older: Option<RunFolder>,
    energies: GrowingTable,
}

impl Files {
    /// Opens the files of a new run, or of one that resumes from a checkpoint.
    fn open(folder: &Path, run: &Run, past: Option<(&Path, &Past)>) -> Result<Self, Failure> {
        let place = RunFolder::open(folder, run.clone()).map_err(Failure::of_run)?;
        remove_leftovers(folder.join(CHECKPOINT));
        let there = match past {
            Some((path, past)) => goes_on(folder, run, path, &past.run)?.then_some(&past.run),
            None => None,
        };
        if let Some((_, past)) = past {
            place.go_on(past.frames).map_err(Failure::of_run)?;
        }
        let file = open_growing(folder, ENERGIES, there)?;
        Ok(Self {
            folder: folder.to_owned(),
            older: past.is_none().then_some(place),
            energies: match there {
                Some(_) => GrowingTable::go_on(file),
                None => GrowingTable::create(file, "time,energy")?,
            },
        })
    }
}

impl<'a, T: Real> RunState<'a, T> {
    fn new(args: &'a Args, start: Start<T>) -> Result<Self, Failure> {
        let Start {
            mut simulation,
            names,
            past,
        } = start;
        let energy = simulation.energy()?;
        let run = run_of(args, &simulation, past.as_ref())?;
        let before = args.restart.as_deref().zip(past.as_ref());
        let files = args.output.as_ref();
        let files = files.map(|folder| Files::open(folder, &run, before));
        let mut first = simulation.bodies().rounded::<T>()?;
        let (mut moments, mut trails) = (Vec::new(), Trails::default());
        if let Some(past) = past {
            let before = Bodies {
                masses: filled(past.first.len(), 1.0, "positions at first")?,
                velocities: copied(&past.first, "positions at first")?,
                positions: past.first,
            };
            first.positions = before.rounded::<T>()?.positions;
            (moments, trails) = (past.moments, past.trails);
        }
        Ok(Self {
            args,
            first_step: simulation.steps(),
            first,
            energy,
            momentum: simulation.momentum(),
            moments,
            trails,
            names,
            solving: Duration::ZERO,
            known: (simulation.steps(), energy),
            ran: simulation.report(),
            simulation,
            run,
            files: files.transpose()?,
        })
    }

    /// Steps to the end, and sums up.
    fn run_steps(mut self) -> Result<Summary, Failure> {
        let frames = self.steps()?;
        self.finish(frames)
    }

    /// The current energy. A run that has blown up ends here with an error, before it writes more.
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
        let frames = self.args.frame_count();
        let step_of = |frame: usize| match frames {
            1 => 0,
            _ => (frame as u128 * u128::from(last) / (frames as u128 - 1)) as u64,
        };
        let mut frame = 0;
        if self.args.restart.is_some() {
            // A checkpoint is written after the frame of its step.
            let is_late = |&frame: &usize| step_of(frame) > self.first_step;
            frame = (0..frames).find(is_late).unwrap_or(frames);
        } else {
            self.moment(self.energy)?;
            self.note_trails()?;
            self.snapshot(0)?;
            frame += 1;
        }
        while self.simulation.steps() < last {
            let done = self.simulation.steps();
            let every = self.args.checkpoint.map_or(u64::MAX, |every| every as u64);
            let next_save = (done / every).saturating_add(1).saturating_mul(every);
            let next_frame = if frame < frames { step_of(frame) } else { last };
            // A few steps at a time, so that the bar moves.
            let mut until = last.min(next_save).min(next_frame).min(done + 16);
            if self.files.is_some() {
                until = until.min(self.trails.next(done));
            }
            let begin = Instant::now();
            self.simulation.run(until - done)?;
            self.solving += begin.elapsed();
            self.ran = self.simulation.report();
            bar.set_position(until);
            self.note_trails()?;
            if self.is_suspicious() {
                self.checked_energy()?;
            }
            if until == next_frame && frame < frames {
                if self.files.is_some() {
                    let energy = self.checked_energy()?;
                    if until != last {
                        self.moment(energy)?;
                    }
                }
                self.snapshot(frame)?;
                frame += 1;
            }
            if until == next_save && self.files.is_some() {
                self.checked_energy()?;
                self.save(frame)?;
            }
        }
        bar.finish_and_clear();
        let energy = self.checked_energy()?;
        self.moment(energy)?;
        Ok(frames)
    }

    /// Writes a checkpoint of a run with this many frames. The rows of the table are on the disk
    /// before.
    fn save(&mut self, frames: usize) -> Result<(), Failure> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        let double = |at: &[T; 3]| at.map(|x| x.double());
        let past = Past {
            run: self.run.clone().grown([files.energies.grown()?]),
            frames,
            moments: copied(&self.moments, "a checkpoint")?,
            first: collected(self.first.positions.iter().map(double), "a checkpoint")?,
            trails: Trails {
                every: self.trails.every,
                places: copied(&self.trails.places, "a checkpoint")?,
            },
            names: self.names.clone(),
        };
        Ok(self
            .simulation
            .save(files.folder.join(CHECKPOINT), &past.bytes()?)?)
    }

    /// Notes where bodies are, if there is to be a picture.
    fn note_trails(&mut self) -> Result<(), Failure> {
        if self.files.is_some() {
            self.trails.note(&self.simulation)?;
        }
        Ok(())
    }

    fn moment(&mut self, energy: Energy) -> Result<(), Failure> {
        let (time, energy) = (self.simulation.time(), energy.total());
        self.moments.push(Moment { time, energy });
        match &mut self.files {
            Some(files) => files.energies.line(&format!("{time},{energy}")),
            None => Ok(()),
        }
    }

    fn snapshot(&mut self, frame: usize) -> Result<(), Failure> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        let stem = format!("frame_{frame:04}");
        write_snapshot(files.folder.join(&stem), &self.simulation)?;
        if let Some(folder) = files.older.take() {
            let own = |name: &str| {
                name == ENERGIES || FRAME.iter().any(|kind| name == format!("{stem}.{kind}"))
            };
            folder.begin(own).map_err(Failure::of_run)?;
        }
        Ok(())
    }

    /// Draws the picture, and sums up.
    fn finish(self, frames: usize) -> Result<Summary, Failure> {
        let energy = self.known.1;
        let (simulation, options) = (&self.simulation, self.simulation.options());
        if let Some(folder) = &self.args.output {
            let story = Story {
                first: &self.first,
                last: simulation.bodies(),
                moments: &self.moments,
                trails: &self.trails,
                names: &self.names,
            };
            draw(folder.join(PICTURE), &story)?;
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
