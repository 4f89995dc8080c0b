//! A run: velocity Verlet over the forces of an evaluator.

use crate::{
    Cell, Checkpoint, Drift, Error, Evaluation, Evaluator, ForceField, Observation, System,
};
use nearfield::{Builder, Device, Engine, Policy, Precision, Strategy};
use nearfield_grid::{
    PerProcess,
    memory::{collected, make_room},
    parallel::{self, PoolLoops},
};
use rayon::{ThreadPool, prelude::*};

/// What threads that move atoms are called.
const THREAD: &str = "nearfield-md";

/// Atoms that one thread moves at a time.
const MIN_LEN: usize = 1 << 12;

/// Steps after which atoms are brought into an order that makes memory local.
const REORDER: u64 = 1000;

/// How a run is computed; what it computes does not depend on it, but for rounding.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where pairs are found and evaluated; [`Device::Auto`] by default.
    pub device: Device,
    /// Worker threads; 0, the default, for one per core.
    pub threads: usize,
    /// How a GPU maps cells to threads.
    pub strategy: Strategy,
    /// What divides the work of hybrid devices.
    pub policy: Policy,
    /// Whether sums are to be the same bits on devices that choose by timings; false by default.
    pub deterministic: bool,
    /// How much farther than the cut-off lists reach, so that they need not be found every step; 0,
    /// the default, for no lists, which was twice as fast in a Lennard-Jones liquid on a CPU: there pairs
    /// are found faster than they are read. A run that [stays on a GPU](crate::DeviceSimulation) needs them.
    pub skin: f32,
    /// What positions are rounded to before pairs are found, and what pairs are summed in;
    /// [`Precision::Single`] by default. Double sums are the host's.
    pub precision: Precision,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: Device::Auto,
            threads: 0,
            strategy: Strategy::Flat,
            policy: Policy::Model,
            deterministic: false,
            skin: 0.0,
            precision: Precision::Single,
        }
    }
}

impl Options {
    /// An engine's settings.
    pub(crate) fn builder(&self, cell: &Cell, cutoff: f64) -> Builder {
        let builder = match self.precision {
            Precision::Single => Engine::builder(cutoff as f32),
            Precision::Double => Engine::builder_f64(cutoff),
        };
        cell.set(builder)
            .device(self.device)
            .threads(self.threads)
            .strategy(self.strategy)
            .policy(self.policy)
            .deterministic(self.deterministic)
    }
}

/// Atoms that move by Newton's equations at constant energy.
#[derive(Debug)]
pub struct Simulation {
    system: System,
    field: ForceField,
    options: Options,
    evaluator: Evaluator,
    /// Threads that move atoms; made anew in a forked child, which has none of its parent's.
    pool: PerProcess<Option<ThreadPool>>,
    forces: Vec<[f64; 3]>,
    now: Evaluation,
    step: u64,
    time: f64,
    drift: Drift,
    /// Builds of evaluators before this one.
    builds: u64,
}

impl Simulation {
    /// A run that starts from a system, whose forces are evaluated.
    ///
    /// # Errors
    /// Those of [`Evaluator::new`] and [`Evaluator::evaluate`], and [`Error::Setting`] for a skin that
    /// is negative or not finite, or threads that cannot be started.
    pub fn new(system: System, field: ForceField, options: Options) -> Result<Self, Error> {
        let mut made = Self::prepare(system, field, options)?;
        made.sort()?;
        made.evaluate()?;
        made.observe_drift();
        Ok(made)
    }

    /// A run that goes on where a checkpoint was written. On the CPU, and with the same force field, skin
    /// and precision, it gives the same bits as the run that wrote it.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn resume(
        checkpoint: Checkpoint,
        field: ForceField,
        options: Options,
    ) -> Result<Self, Error> {
        let Checkpoint {
            system,
            forces,
            now,
            step,
            time,
        } = checkpoint;
        let mut made = Self::prepare(system, field, options)?;
        (made.now, made.step, made.time) = (now, step, time);
        match made.options.precision {
            Precision::Single => {
                let forces = forces.iter().map(|force| force.map(f64::from));
                made.forces = collected(forces, "forces")?;
            }
            // A checkpoint has them rounded; the same positions give the same forces.
            Precision::Double => made.evaluate()?,
        }
        made.observe_drift();
        Ok(made)
    }

    fn prepare(system: System, field: ForceField, options: Options) -> Result<Self, Error> {
        if !(options.skin.is_finite() && options.skin >= 0.0) {
            return Err(Error::Setting {
                name: "the skin",
                value: f64::from(options.skin),
                wanted: "a distance, or 0 for none",
            });
        }
        let pool = parallel::start(options.threads, THREAD);
        let pool = pool.map_err(|_| Error::Setting {
            name: "the number of threads",
            value: options.threads as f64,
            wanted: "one that the system can start",
        })?;
        let evaluator = Evaluator::new(&system, &field, &options)?;
        Ok(Self {
            system,
            field,
            options,
            evaluator,
            pool: PerProcess::new(pool),
            forces: Vec::new(),
            now: Evaluation::default(),
            step: 0,
            time: 0.0,
            drift: Drift::default(),
            builds: 0,
        })
    }

    /// A step of length `dt`: half a kick, a drift, forces, half a kick (velocity Verlet: Swope et al.
    /// 1982, DOI 10.1063/1.442716).
    ///
    /// # Errors
    /// [`Error::Setting`] for a step that is no positive number, and those of
    /// [`Evaluator::evaluate`]; the run is then over.
    pub fn step(&mut self, dt: f64) -> Result<(), Error> {
        if !(dt.is_finite() && dt > 0.0) {
            return Err(Error::Setting {
                name: "the time step",
                value: dt,
                wanted: "a positive number",
            });
        }
        let points = self.system.len();
        let _span = tracing::debug_span!("md.step", step = self.step + 1, points).entered();
        if self.step > 0 && self.step.is_multiple_of(REORDER) {
            self.sort()?;
        }
        self.kick(0.5 * dt);
        self.drift(dt);
        self.step += 1;
        self.time += dt;
        self.evaluate()?;
        self.kick(0.5 * dt);
        Ok(())
    }

    /// What the system is like now; counts for the [drift](Self::energy_drift).
    pub fn observe(&mut self) -> Observation {
        let seen = self.look();
        self.drift.take(&seen);
        seen
    }

    /// How the total energy went from observation to observation.
    pub fn energy_drift(&self) -> Drift {
        self.drift
    }

    /// Energy of all pairs now.
    pub fn potential(&self) -> f64 {
        self.now.energy
    }

    /// What the system is like now.
    pub fn look(&self) -> Observation {
        Observation {
            step: self.step,
            time: self.time,
            potential: self.now.energy,
            kinetic: self.system.kinetic(),
            virial: self.now.virial,
            temperature: self.system.temperature(),
            momentum: self.system.momentum(),
        }
    }

    /// The atoms.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Forces on the atoms, in the order of the [system](Self::system).
    pub fn forces(&self) -> &[[f64; 3]] {
        &self.forces
    }

    /// How atoms act on each other.
    pub fn field(&self) -> &ForceField {
        &self.field
    }

    /// Steps since the start.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// How often neighbours were looked for in this run.
    pub fn builds(&self) -> u64 {
        self.builds + self.evaluator.builds()
    }

    /// What the forces are evaluated on.
    pub fn device(&self) -> String {
        self.evaluator.device()
    }

    /// Number of pairs within the cut-off, each counted once.
    ///
    /// # Errors
    /// What the engine says.
    pub fn pairs(&mut self) -> Result<u64, Error> {
        self.evaluator.pairs()
    }

    /// The run as it is, to be written. Pairs are looked for anew at the next step, as they are where
    /// a run goes on from it.
    ///
    /// # Errors
    /// Those of [`Evaluator::new`].
    pub fn checkpoint(&mut self) -> Result<Checkpoint, Error> {
        self.search_anew()?;
        let forces = self.forces.iter().map(|force| force.map(|x| x as f32));
        Ok(Checkpoint {
            system: self.system.copied()?,
            forces: collected(forces, "forces of a checkpoint")?,
            now: self.now,
            step: self.step,
            time: self.time,
        })
    }

    fn search_anew(&mut self) -> Result<(), Error> {
        self.builds += self.evaluator.builds();
        self.evaluator = Evaluator::new(&self.system, &self.field, &self.options)?;
        Ok(())
    }

    /// Brings the atoms into the order in which they are found.
    fn sort(&mut self) -> Result<(), Error> {
        let order = self.evaluator.order()?;
        self.system.reorder(&order)?;
        if !self.forces.is_empty() {
            let mut forces = Vec::new();
            make_room(&mut forces, order.len(), "forces")?;
            forces.extend(order.iter().map(|&k| self.forces[k as usize]));
            self.forces = forces;
        }
        self.search_anew()
    }

    fn evaluate(&mut self) -> Result<(), Error> {
        let begun = tracing::debug_span!("md.forces", step = self.step).entered();
        let step = self.step;
        self.now =
            self.evaluator
                .evaluate(&self.system, &self.field)
                .map_err(|error| match error {
                    Error::Overlap { atom, force, .. } => Error::Overlap { step, atom, force },
                    other => other,
                })?;
        self.forces.clear();
        let forces = self.evaluator.forces();
        make_room(&mut self.forces, self.system.len(), "forces")?;
        self.forces.extend(forces);
        drop(begun);
        Ok(())
    }

    fn observe_drift(&mut self) {
        let seen = self.look();
        self.drift.take(&seen);
    }

    fn kick(&mut self, dt: f64) {
        let System {
            velocities,
            types,
            masses,
            ..
        } = &mut self.system;
        let forces = &self.forces;
        parallel::within(pool(&self.pool, &self.options), || {
            let atoms = velocities.par_iter_mut().with_min_len(MIN_LEN).enumerate();
            atoms.run(|(atom, velocity)| {
                let over_mass = dt / masses[types[atom] as usize];
                for (v, force) in velocity.iter_mut().zip(forces[atom]) {
                    *v += over_mass * force;
                }
            });
        });
    }

    fn drift(&mut self, dt: f64) {
        let System {
            positions,
            velocities,
            ..
        } = &mut self.system;
        parallel::within(pool(&self.pool, &self.options), || {
            let atoms = positions.par_iter_mut().with_min_len(MIN_LEN);
            atoms
                .zip(velocities.par_iter())
                .run(|(position, velocity)| {
                    for (x, v) in position.iter_mut().zip(velocity) {
                        *x += dt * v;
                    }
                });
        });
    }
}

/// The threads that move atoms; none in a forked child that cannot start any, where the calling
/// thread does.
fn pool<'a>(pool: &'a PerProcess<Option<ThreadPool>>, options: &Options) -> Option<&'a ThreadPool> {
    let start = || parallel::start(options.threads, THREAD).unwrap_or_default();
    pool.get_or_make(start).as_ref()
}
