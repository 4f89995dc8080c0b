//! A run of `nearfield lj --steps`: its files and its summary.

use super::{forces, picture};
use crate::{
    failure::Failure,
    files::{self, GrowingTable, goes_on, open_growing, remove_leftovers},
    options,
    progress::progress_bar,
};
use nearfield::Device;
use nearfield_files::{Plan, Run};
use nearfield_grid::memory::copied;
use nearfield_md::{EnergyGuard, Observation, Simulation, Trajectory};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Flags of a run.
#[derive(Debug, clap::Args)]
// The command's flags have a group of the same name, which clap refuses in debug builds.
#[group(skip)]
pub(crate) struct Args {
    /// Move the atoms at constant energy for N steps
    #[arg(long, value_name = "N", value_parser = options::steps)]
    steps: Option<u64>,
    /// Length of a step
    #[arg(long, value_name = "H", default_value_t = 0.002, requires = "steps")]
    dt: f64,
    /// Distance beyond the cut-off up to which neighbour lists hold pairs, so that they last for
    /// several steps; 0 for no lists [default: 0.12 of the cut-off on a GPU, elsewhere 0: a CPU
    /// finds pairs faster than it reads them]
    #[arg(long, value_name = "S", requires = "steps")]
    skin: Option<f32>,
    /// Start with velocities of this temperature (k = 1) instead of those of the file
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub(super) temperature: Option<f64>,
    /// Seed of the random velocities
    #[arg(long, value_name = "N", default_value_t = 1, requires = "temperature")]
    pub(super) seed: u64,
    /// Steps between observations, and between frames of the trajectory
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = options::steps, requires = "steps")]
    every: u64,
    /// Steps between checkpoints, which go to run.checkpoint in the folder of the output
    #[arg(long, value_name = "N", value_parser = options::steps, requires_all = ["output", "steps"])]
    checkpoint: Option<u64>,
    /// Go on from a checkpoint, with the other flags as they were: where its files are, from its
    /// moment on; in a new folder, with files of their own
    #[arg(long, value_name = "FILE", requires = "steps", conflicts_with_all = ["file", "frame", "temperature"])]
    pub(super) restart: Option<PathBuf>,
    /// With --steps: folder for trajectory.extxyz (positions, velocities, forces),
    /// observations.csv, lj.png and run.checkpoint, made when missing. Without: file for positions
    /// and forces, .extxyz or .csv
    #[arg(long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
}

/// The settings of this run, and of the checkpoint from which it resumes.
pub(super) struct Runs {
    pub(super) here: Run,
    pub(super) before: Option<Run>,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    steps: u64,
    dt: f64,
    searches: u64,
    kinetic_energy: f64,
    total_energy: f64,
    temperature: f64,
    momentum: [f64; 3],
    /// Energy per time, by a straight line through the observations.
    energy_drift: f64,
    /// Farthest that an observation was from the first energy.
    energy_deviation: f64,
}

/// Files that a run writes.
struct Files {
    folder: PathBuf,
    run: Run,
    trajectory: Trajectory,
    observations: GrowingTable,
}

/// Share of the cut-off that lists on a GPU reach beyond it, when nothing is said.
const SKIN: f64 = 0.12;

/// Names of the files of a run.
const TRAJECTORY: &str = "trajectory.extxyz";
const OBSERVATIONS: &str = "observations.csv";
const CHECKPOINT: &str = "run.checkpoint";
const PICTURE: &str = "lj.png";

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>();
    let found = number.ok().filter(|t| t.is_finite() && *t >= 0.0);
    found.ok_or_else(|| "expected a finite number that is not negative".into())
}

impl Args {
    /// Adds the files that are read and written. A checkpoint that a run goes on from has been read
    /// in full when a later one replaces it.
    pub(super) fn files(&self, plan: &mut Plan) {
        if let Some(path) = &self.restart {
            plan.read(path);
        }
        let Some(folder) = &self.output else {
            return;
        };
        if !self.moves() {
            plan.write("--output", folder);
            return;
        }
        let checkpoints = self.checkpoint.is_some() && self.restart.is_none();
        plan.write_into("--output", folder, move |name| {
            [TRAJECTORY, OBSERVATIONS, PICTURE].contains(&name) || checkpoints && name == CHECKPOINT
        });
    }

    /// Refuses a format that forces are not written as, before anything is computed.
    pub(super) fn check_output(&self) -> Result<(), Failure> {
        match &self.output {
            Some(path) if !self.moves() => files::check_extension(
                path,
                "forces of one configuration (--output is a folder with --steps)",
                &["xyz", "extxyz", "csv"],
            ),
            _ => Ok(()),
        }
    }

    /// Whether atoms move.
    pub(super) fn moves(&self) -> bool {
        self.steps.is_some()
    }

    /// Distance beyond the cut-off up to which lists reach on this device.
    pub(super) fn skin(&self, cutoff: f64, device: Device) -> f32 {
        match (self.steps, self.skin, device) {
            (None, ..) => 0.0,
            (_, Some(skin), _) => skin,
            (.., Device::Gpu(_)) => (SKIN * cutoff) as f32,
            _ => 0.0,
        }
    }

    /// Adds the settings that decide how atoms move.
    pub(super) fn settings(&self, run: Run, skin: f32) -> Run {
        let run = run.set("dt", self.dt).set("every", self.every);
        let run = run.set("skin", skin);
        match self.temperature {
            Some(temperature) => run.set("temperature", temperature).set("seed", self.seed),
            None => run,
        }
    }

    /// Runs the steps of `--steps`; `None` without that flag.
    pub(super) fn run(
        &self,
        simulation: &mut Simulation,
        names: Vec<String>,
        depth: f64,
        of: Runs,
    ) -> Result<Option<Summary>, Failure> {
        let Some(steps) = self.steps else {
            if let Some(path) = &self.output {
                forces::write(path, simulation, names)?;
            }
            return Ok(None);
        };
        // A moment that has blown up is not written, so the existing files stay good.
        let guard = EnergyGuard::new(&simulation.look()?, simulation.atoms(), depth);
        let before = self.restart.as_deref().zip(of.before.as_ref());
        let begins = before.is_none();
        let mut files = match &self.output {
            Some(folder) => Some(Files::open(folder, names, of.here, before)?),
            None => None,
        };
        if let Some(files) = files.as_mut().filter(|_| begins) {
            files.observe(simulation, &guard)?;
        }
        let bar = progress_bar(steps);
        for step in 1..=steps {
            simulation.step(self.dt)?;
            if let Some(potential) = simulation.potential() {
                guard.check_potential(simulation.steps(), potential)?;
            }
            bar.inc(1);
            if simulation.steps().is_multiple_of(self.every) {
                match &mut files {
                    Some(files) => files.observe(simulation, &guard)?,
                    None => guard.check(&simulation.observe()?)?,
                }
            }
            // Before the last checkpoint: from there nothing is left to do.
            if let Some(files) = files.as_mut().filter(|_| step == steps) {
                files.draw()?;
            }
            let due = self
                .checkpoint
                .is_some_and(|every| simulation.steps().is_multiple_of(every));
            if let Some(files) = files.as_mut().filter(|_| due) {
                guard.check(&simulation.look()?)?;
                files.save(simulation)?;
            }
        }
        bar.finish_and_clear();
        let (seen, drift) = (simulation.observe()?, simulation.energy_drift());
        guard.check(&seen)?;
        Ok(Some(Summary {
            steps: simulation.steps(),
            dt: self.dt,
            searches: simulation.builds(),
            kinetic_energy: seen.kinetic,
            total_energy: seen.total(),
            temperature: seen.temperature,
            momentum: seen.momentum,
            energy_drift: drift.slope(),
            energy_deviation: drift.most(),
        }))
    }
}

impl Files {
    /// Opens the files of a new run, or of one that resumes from a checkpoint of the run `before`.
    fn open(
        folder: &Path,
        names: Vec<String>,
        run: Run,
        before: Option<(&Path, &Run)>,
    ) -> Result<Self, Failure> {
        nearfield_files::make_folder(folder).map_err(Failure::atoms(folder))?;
        remove_leftovers(folder.join(CHECKPOINT));
        let there = match before {
            Some((path, before)) => goes_on(folder, &run, path, before)?.then_some(before),
            None => None,
        };
        let trajectory = open_growing(folder, TRAJECTORY, there)?;
        let table = open_growing(folder, OBSERVATIONS, there)?;
        let header = "step,time,potential,kinetic,total,temperature,virial,px,py,pz";
        Ok(Self {
            trajectory: Trajectory::over(trajectory, names).with_masses(),
            folder: folder.to_owned(),
            run,
            observations: match there {
                Some(_) => GrowingTable::go_on(table),
                None => GrowingTable::create(table, header)?,
            },
        })
    }

    /// Writes a checkpoint. All frames and observations are on the disk before.
    fn save(&mut self, simulation: &mut Simulation) -> Result<(), Failure> {
        let grown = [self.trajectory.grown()?, self.observations.grown()?];
        let notes = self.run.clone().grown(grown).to_text();
        let checkpoint = simulation.checkpoint()?.with_notes(notes.into_bytes());
        Ok(checkpoint.write(self.folder.join(CHECKPOINT))?)
    }

    /// Draws the picture of the observations so far.
    fn draw(&mut self) -> Result<(), Failure> {
        self.observations.grown()?;
        let at = |name| self.folder.join(name);
        picture::draw(&at(PICTURE), &at(OBSERVATIONS))
    }

    fn observe(&mut self, simulation: &mut Simulation, guard: &EnergyGuard) -> Result<(), Failure> {
        let seen = simulation.observe()?;
        guard.check(&seen)?;
        let forces = copied(simulation.forces()?, "forces on atoms")?;
        self.trajectory
            .frame_with_forces(simulation.system()?, seen.time, &forces)?;
        let Observation {
            step,
            time,
            potential,
            kinetic,
            virial,
            temperature,
            momentum: [px, py, pz],
        } = seen;
        let total = seen.total();
        let line = format!(
            "{step},{time},{potential},{kinetic},{total},{temperature},{virial},{px},{py},{pz}"
        );
        self.observations.line(&line)
    }
}

impl Summary {
    pub(super) fn lines(&self) -> Vec<String> {
        let [x, y, z] = self.momentum;
        vec![
            format!(
                "run         {} steps of {}, {} neighbour searches",
                self.steps, self.dt, self.searches
            ),
            format!(
                "total       {:.6e}, kinetic {:.6e}, temperature {:.4}",
                self.total_energy, self.kinetic_energy, self.temperature
            ),
            format!(
                "drift       {:.2e} per time, {:.2e} at most; momentum {x:.1e} {y:.1e} {z:.1e}",
                self.energy_drift, self.energy_deviation
            ),
        ]
    }
}
