//! The run: steps the scene, and writes frames, tables and checkpoints.

use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use nearfield::Device;
use nearfield_files::{Plan, RunFolder};
use nearfield_sph::{Checkpoint, Simulation, SimulationBuilder};
use nearfield_trace::Recording;

use crate::Error;
use crate::args::Args;
use crate::frames::Frames;
use crate::journal::Journal;
use crate::names::is_of_run;
use crate::notes::{self, Flags};
use crate::output::Output;
use crate::page;
use crate::picture::front_plot;
use crate::pieces::Pieces;
use crate::probes::Readings;
use crate::reference::{Comparison, Point, experiments};
use crate::scene::{MAX_PARTICLES, Scene};
use crate::summary::{EnergySummary, FrontSummary, ProbesSummary, SpreadSummary, Summary};
use crate::units::Units;

/// T at which a run ends when nothing else is asked for: the water has met the
/// far wall and shoots up.
const LAST_T: f64 = 5.0;

/// Adds the files that a run with these flags reads and writes.
pub fn files(args: &Args, plan: &mut Plan) {
    plan.print_json(args.json);
    if let Some(scene) = &args.scene {
        plan.read(scene);
    }
    if let Some(restart) = &args.restart {
        plan.read(restart);
    }
    if args.checkpoint.is_some() {
        // The checkpoint of --restart has been read when the next one replaces it.
        let path = args.checkpoint_path();
        plan.write_after("--checkpoint", path, args.restart.as_deref());
    }
    if let Some(trace) = &args.trace {
        plan.write("--trace", trace);
    }
    plan.write_into("--output", &args.output, is_of_run);
}

/// Simulates the dam break that `args` describe and writes all files.
///
/// Progress goes to standard error when that is a terminal; nothing is printed
/// on standard output.
///
/// # Errors
/// When the scene or a flag cannot be simulated, the device is not there, a file cannot be
/// written, or a particle is lost ([`nearfield_sph::ErrorKind::Lost`];
/// `lost_particle.vtp` in the output directory shows it).
pub fn run(args: &Args) -> Result<Summary, Error> {
    Setup::new(args, 0, 1)?.run(|builder| {
        let builder = builder.device(args.device.device).threads(args.threads);
        let builder = builder.strategy(args.strategy).policy(args.policy);
        builder.equal_subregions(args.equal_subregions).build()
    })
}

/// A run that is about to begin, on one rank of any number: flags that make sense, the scene, and
/// a place for the output, which rank 0 alone writes.
pub struct Setup<'a> {
    args: &'a Args,
    begin: Instant,
    /// Ends the recording when it is dropped.
    _trace: Option<Recording>,
    scene: Scene,
    /// Distance of particles, metres.
    spacing: f64,
    /// Simulated time of the end, seconds.
    end: f64,
    journal: Journal,
    /// `None` where the scene has no probes.
    readings: Option<Readings>,
    /// The state to go on from, and the first frame that is not there yet.
    resumed: Option<(Checkpoint, usize)>,
    /// Of rank 0: whose files are in the directory of the output.
    folder: Option<RunFolder>,
    rank: usize,
    ranks: usize,
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, ranks) = (self.rank, self.ranks);
        write!(f, "Setup({} on rank {rank} of {ranks})", self.scene.title)
    }
}

impl<'a> Setup<'a> {
    /// Checks the flags. Not collective: ranks agree on the outcome before they go on.
    ///
    /// # Errors
    /// If the scene or a flag cannot be simulated, the checkpoint belongs to another run, or the
    /// directory of the output cannot be made.
    pub fn new(args: &'a Args, rank: usize, ranks: usize) -> Result<Self, Error> {
        let begin = Instant::now();
        let mut plan = Plan::default();
        files(args, &mut plan);
        plan.check()
            .map_err(|clash| Error::output(&args.output, clash))?;
        let of_rank = (ranks > 1).then_some(rank as u32);
        let trace = args.trace.as_deref();
        let trace = trace.map(|path| record(path, of_rank)).transpose()?;
        let scene = args.scene()?;
        let spacing = args.spacing(&scene);
        let particles = match args.particles {
            Some(particles) => particles as f64,
            None => scene.particles_at(spacing),
        };
        if !(1.0..=MAX_PARTICLES * ranks as f64).contains(&particles) {
            let wanted = "between 1 and 50 million on each rank";
            return Err(Error::setting("particles", particles, wanted));
        }
        if ranks as f64 > particles {
            let wanted = "at most one for each particle";
            return Err(Error::setting("ranks", ranks as f64, wanted));
        }
        let end = args.seconds.or(scene.seconds);
        let end = end.unwrap_or_else(|| Units::of(&scene).seconds(LAST_T));
        if !(end.is_finite() && end > 0.0) {
            return Err(Error::setting("seconds", end, "finite and positive"));
        }
        let flags = Flags::of(&scene, args.frame_count(), end);
        let mut journal = Journal::new(&scene, end);
        let mut readings = Readings::of(&scene, spacing);
        let mut resumed = None;
        if let Some(path) = &args.restart {
            let checkpoint = Checkpoint::read(path, rank, ranks)?;
            let next = notes::restore(path, &checkpoint, flags, &mut journal, &mut readings)?;
            resumed = Some((checkpoint, next));
        }
        let mut folder = None;
        if rank == 0 {
            plan.remove_leftovers();
            let run = flags.run(spacing, args.pieces);
            folder = Some(RunFolder::open(&args.output, run)?);
        }
        Ok(Self {
            args,
            begin,
            _trace: trace,
            scene,
            spacing,
            end,
            journal,
            readings,
            resumed,
            folder,
            rank,
            ranks,
        })
    }

    /// Search radius of the engine, metres.
    #[must_use]
    pub fn radius(&self) -> f32 {
        self.scene.config(self.spacing).kernel().support()
    }

    /// Simulates the scene, which `build` makes from its description. Collective; every rank
    /// returns the summary.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(
        self,
        build: impl FnOnce(SimulationBuilder) -> Result<Simulation, nearfield_sph::Error>,
    ) -> Result<Summary, Error> {
        let (args, scene) = (self.args, self.scene);
        let mut builder = scene.builder_on(self.spacing, self.rank, self.ranks)?;
        let mut first = None;
        if let Some((checkpoint, next)) = self.resumed {
            first = Some(next);
            builder = builder.resume(checkpoint);
        }
        let mut folder = self.folder;
        let evidence = args.output.join("lost_particle.vtp");
        let mut simulation = build(builder.evidence(evidence))?;
        let course = || {
            let (directory, from) = (&args.output, first.unwrap_or(0));
            let frames = if args.pieces {
                let place = [self.rank, self.ranks];
                let pieces = Pieces::create(directory, folder.take(), place, from)?;
                Output::Pieces(Box::new(pieces))
            } else {
                let writers = writers(args.threads, simulation.running().device);
                let numbers = from..args.frame_count();
                let create = |folder| Frames::create(directory, folder, &scene, writers, numbers);
                Output::Whole(folder.take().map(create).transpose()?)
            };
            frames.write_walls(&simulation, directory, first.is_some())?;
            Ok(RunState {
                flags: Flags::of(&scene, args.frame_count(), self.end),
                journal: self.journal,
                readings: self.readings,
                frames,
                first,
                scene,
                bar: progress_bar(self.rank),
                solving: Duration::ZERO,
                output: Duration::ZERO,
                end: self.end,
            })
        };
        let course: Result<RunState, Error> = course();
        let done = course.and_then(|course| course.run(&mut simulation, args, self.begin));
        done.inspect_err(|error| simulation.give_up(&error.to_string()))
    }
}

/// Number of threads that write frames while the solver runs. A thread that drives a GPU must not
/// wait for a core, so one is left to it. Threads that solve on the host have serial stages, which
/// writers fill.
fn writers(threads: usize, device: Device) -> usize {
    let all = match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    };
    match device {
        Device::Gpu(_) => (all - 1).max(1),
        _ => all,
    }
}

/// Starts to record the run, which ends when this is dropped.
fn record(path: &Path, rank: Option<u32>) -> Result<Recording, Error> {
    let options = nearfield_trace::Options::default();
    let options = match rank {
        Some(rank) => options.rank(rank),
        None => options,
    };
    let program = options.program("dam_break", env!("CARGO_PKG_VERSION"));
    program.start(path).map_err(|error| match error.kind() {
        nearfield_trace::ErrorKind::Write { source, .. } => Error::output(path, source),
        other => Error::output(path, other),
    })
}

/// A run under way.
struct RunState {
    scene: Scene,
    flags: Flags,
    journal: Journal,
    /// `None` where the scene has no probes.
    readings: Option<Readings>,
    frames: Output,
    /// The first frame that is not there yet, where the run goes on from a checkpoint.
    first: Option<usize>,
    bar: ProgressBar,
    /// Time spent in the solver.
    solving: Duration,
    /// Time spent with frames, instead of with the solver.
    output: Duration,
    /// Simulated time at which the run ends, seconds.
    end: f64,
}

impl RunState {
    /// Runs to the end. If that fails, keeps the results so far.
    fn run(
        mut self,
        simulation: &mut Simulation,
        args: &Args,
        begin: Instant,
    ) -> Result<Summary, Error> {
        match self.run_steps(simulation, args) {
            Ok(()) => self.finish(simulation, args, begin),
            Err(error) => {
                self.keep(args, simulation.rank());
                Err(error)
            }
        }
    }

    /// Steps to the end, writing frames at even intervals.
    fn run_steps(&mut self, simulation: &mut Simulation, args: &Args) -> Result<(), Error> {
        let frames = args.frame_count();
        if self.first.is_none() {
            self.note(simulation)?;
            if frames > 0 {
                self.hand_in(simulation)?;
                self.save(simulation, args, 1)?;
            } else {
                self.frames.begin_without_frames()?;
            }
        }
        for frame in self.first.unwrap_or(1)..frames {
            let time = self.end * frame as f64 / (frames - 1) as f64;
            self.advance(simulation, time)?;
            self.hand_in(simulation)?;
            self.save(simulation, args, frame + 1)?;
        }
        self.advance(simulation, self.end)
    }

    /// Writes the records that are due.
    fn note(&mut self, simulation: &Simulation) -> Result<(), Error> {
        if let Some(readings) = &mut self.readings {
            readings.follow(simulation)?;
        }
        self.journal.follow(simulation)
    }

    /// The tables of the notes, by the names of their files.
    fn tables(&self) -> Vec<(&'static str, String)> {
        let mut tables = vec![("energy.csv", self.journal.energy_csv())];
        if self.scene.front.is_some() {
            tables.push(("front.csv", self.journal.front_csv()));
        }
        if let Some(readings) = &self.readings {
            tables.push(("probes.csv", readings.csv()));
        }
        tables
    }

    /// Hands the present moment in as the next frame.
    fn hand_in(&mut self, simulation: &Simulation) -> Result<(), Error> {
        let begin = Instant::now();
        let pushed = self.frames.push(simulation);
        self.output += begin.elapsed();
        pushed
    }

    /// Writes a checkpoint, if it is time for one, of a run whose next frame is `next`. The frames
    /// before are complete then.
    fn save(&mut self, simulation: &Simulation, args: &Args, next: usize) -> Result<(), Error> {
        if !(args.checkpoint).is_some_and(|every| next.is_multiple_of(every)) {
            return Ok(());
        }
        let begin = Instant::now();
        self.frames.complete(simulation)?;
        let notes = notes::of(next, self.flags, &self.journal, self.readings.as_ref());
        simulation.write_checkpoint(&args.checkpoint_path(), &notes)?;
        self.output += begin.elapsed();
        Ok(())
    }

    /// Steps until the time is `until`, seconds.
    fn advance(&mut self, simulation: &mut Simulation, until: f64) -> Result<(), Error> {
        // A rest of the size of rounding is not a step.
        while until - simulation.time() > 1e-9 * self.end {
            let begin = Instant::now();
            simulation.step_at_most(until - simulation.time())?;
            self.solving += begin.elapsed();
            self.note(simulation)?;
            self.journal.refuse_blow_up(simulation.steps())?;
            let done = simulation.time() / self.end;
            self.bar.set_position((1000.0 * done) as u64);
        }
        Ok(())
    }

    /// Writes the tables of a run that failed. A further failure here is not reported: it would
    /// hide the first.
    fn keep(self, args: &Args, rank: usize) {
        if rank == 0 {
            for (name, table) in self.tables() {
                let _ = nearfield_files::write(args.output.join(name), table);
            }
        }
        let charts = page::charts(&self.scene, &self.journal, self.readings.as_ref());
        self.frames.keep(&charts);
    }

    /// Writes tables, plot and summary.
    fn finish(
        self,
        simulation: &Simulation,
        args: &Args,
        begin: Instant,
    ) -> Result<Summary, Error> {
        let writes = simulation.rank() == 0;
        let write = |name: &str, text: String| {
            let path = args.output.join(name);
            if !writes {
                return Ok(());
            }
            nearfield_files::write(&path, text).map_err(|error| Error::output(&path, error))
        };
        for (name, table) in self.tables() {
            write(name, table)?;
        }
        let compare = || compare_front(&self.journal, &self.scene, simulation, args);
        let front = self.scene.front.is_some().then(compare);
        let waiting = Instant::now();
        let charts = page::charts(&self.scene, &self.journal, self.readings.as_ref());
        let frames = self.frames.finish(simulation, &charts)?;
        let output = self.output + waiting.elapsed();
        // The frames have given back the memory that they were drawn in, which may have been short.
        let front = front.map(|drawn| drawn.or_else(|_| compare()));
        let front = front.transpose()?;
        self.bar.finish_and_clear();
        let running = simulation.running();
        let momentum = simulation.momentum()?;
        let solver_seconds = self.solving.as_secs_f64();
        let summary = Summary {
            scene: self.scene.title.clone(),
            particles: simulation.len(),
            wall_particles: simulation.walls_len(),
            dim: simulation.config().dimensions.count(),
            spacing_m: f64::from(simulation.config().spacing),
            rounding_m: (self.scene).rounding(f64::from(simulation.config().spacing)),
            steps: simulation.steps(),
            steps_per_second: simulation.steps() as f64 / solver_seconds,
            simulated_seconds: simulation.time(),
            scaled_time: Units::of(&self.scene).scaled_time(simulation.time()),
            wall_seconds: begin.elapsed().as_secs_f64(),
            solver_seconds,
            output_seconds: output.as_secs_f64(),
            device: running.device.to_string(),
            device_reason: running.reason,
            strategy: running.strategy.map(|strategy| strategy.to_string()),
            policy: running.policy.map(|policy| policy.to_string()),
            threads: running.threads,
            mass_kg: simulation.mass(),
            energy: energy_summary(&self.journal),
            momentum_residual: momentum.residual().length() / momentum.gravity.length(),
            front,
            probes: self.readings.as_ref().map(|readings| ProbesSummary {
                samples: readings.len(),
                interval_s: self.scene.probes.interval,
                seconds: readings.spent().as_secs_f64(),
            }),
            frames,
            output: args.output.clone(),
            spread: simulation.spread()?.map(SpreadSummary::from),
        };
        write("summary.json", to_json(&summary)?)?;
        Ok(summary)
    }
}

/// Plots the front and compares it with the experiments.
fn compare_front(
    journal: &Journal,
    scene: &Scene,
    simulation: &Simulation,
    args: &Args,
) -> Result<FrontSummary, Error> {
    let front = journal.front();
    let path = args.output.join("front.png");
    if simulation.rank() == 0 {
        plot_front(&path, scene, simulation, &front)?;
    }
    let compared: Vec<Comparison> = experiments()
        .iter()
        .filter_map(|one| one.compare(&front))
        .collect();
    Ok(FrontSummary::new(
        front.last().map(|point| point.1),
        compared,
    ))
}

/// The summary as one JSON object.
///
/// # Errors
/// When it cannot be serialised.
pub fn to_json(summary: &Summary) -> Result<String, Error> {
    serde_json::to_string_pretty(summary)
        .map_err(|error| Error::output(Path::new("summary.json"), error))
}

fn energy_summary(journal: &Journal) -> EnergySummary {
    let (first, last) = journal.energies().unwrap_or_default();
    EnergySummary {
        initial_j: first.mechanical(),
        final_j: last.mechanical(),
        kinetic_j: last.kinetic,
        potential_j: last.potential,
        internal_j: last.internal,
        viscous_loss_j: last.viscous_loss,
        friction_loss_j: last.friction_loss,
        diffusion_loss_j: last.diffusion_loss,
        wall_work_j: last.wall_work,
        drift: (last.total() - first.total()) / first.mechanical(),
    }
}

/// Plots the front up to where it meets the far wall, with the experiments.
fn plot_front(
    path: &Path,
    scene: &Scene,
    simulation: &Simulation,
    front: &[Point],
) -> Result<(), Error> {
    let config = simulation.config();
    let units = Units::of(scene);
    let wall = units.scaled_length(scene.tank.x - 2.0 * f64::from(config.spacing));
    let met = front.iter().position(|point| point.1 >= wall);
    let free = met.unwrap_or(front.len());
    let count = HumanCount(simulation.len() as u64);
    let dimensions = config.dimensions.count();
    let name = format!("Nearfield, {count} particles in {dimensions}D");
    front_plot(path, &name, &front[..free], &experiments())
}

/// A progress bar in thousandths, of rank 0; silent unless standard error is a terminal.
fn progress_bar(rank: usize) -> ProgressBar {
    if rank != 0 {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left");
    ProgressBar::new(1000).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use nearfield_sph::scene::{self, Top};
    use nearfield_sph::{Config, Dimensions};

    use super::*;

    #[test]
    fn a_gpu_keeps_one_thread_and_one_thread_stays_one() {
        assert_eq!(writers(16, Device::Cpu), 16);
        assert_eq!(writers(16, Device::Gpu(0)), 15);
        assert_eq!(writers(1, Device::Cpu), 1);
        assert_eq!(writers(1, Device::Gpu(0)), 1);
        assert!(writers(0, Device::Gpu(0)) >= 1);
    }

    /// No flag is hostile enough: densities spread faster than any step can follow.
    #[test]
    fn a_run_that_blows_up_names_the_step_and_keeps_its_tables() {
        let directory = tempfile::tempdir().unwrap();
        let args = Args {
            frames: Some(0),
            threads: 1,
            output: directory.path().to_owned(),
            ..Args::default()
        };
        let plane = Dimensions::Two;
        let column = Scene::column(plane);
        let spacing = column.spacing_for(200);
        let config = Config {
            courant: 1e4,
            diffusion: 1e4,
            ..column.config(spacing)
        };
        let cells = (1.0 / spacing).round() as i32;
        let inside = [4 * cells, 3 * cells, 0];
        let fluid = scene::block(plane, [0; 3], [cells, 2 * cells, 0], config.spacing).unwrap();
        let walls = scene::tank(plane, inside, Top::Closed, 4, config.spacing).unwrap();
        let scene = Simulation::builder(config).fluid(&fluid).walls(&walls);
        let mut simulation = scene.threads(1).build().unwrap();
        let flags = Flags::of(&column, 0, 1.0);
        let folder = RunFolder::open(&args.output, flags.run(1.0, false)).unwrap();
        let frames = Frames::create(&args.output, folder, &column, 1, 0..0).unwrap();
        let course = RunState {
            journal: Journal::new(&column, 1.0),
            readings: None,
            frames: Output::Whole(Some(frames)),
            flags,
            first: None,
            scene: column,
            bar: progress_bar(0),
            solving: Duration::ZERO,
            output: Duration::ZERO,
            end: 1.0,
        };
        let error = course.run(&mut simulation, &args, Instant::now());
        let text = error.unwrap_err().to_string();
        let step = "at step ";
        assert!(text.contains(step), "{text}");
        for name in ["front.csv", "energy.csv"] {
            let table = std::fs::read_to_string(args.output.join(name)).unwrap();
            assert!(table.lines().count() > 1, "{name}: {table}");
        }
        assert!(!args.output.join("summary.json").exists());
    }
}
