//! Atoms in the host's memory. An [`Evaluator`] computes their forces on any device.
//!
//! Kicks and drifts run on threads of their own. The order of the atoms changes every [`REORDER`]
//! steps, so that atoms near each other in space stay near each other in memory.

use crate::{
    Checkpoint, Error, ErrorKind, Evaluation, Evaluator, ForceField, Options, System,
    observe::AtomSums, system::lost,
};
use nearfield_grid::{
    PerProcess,
    memory::{collected, make_room},
    parallel::{self, PoolLoops},
};
use rayon::{ThreadPool, prelude::*};

/// Name of the threads that move atoms.
const THREAD: &str = "nearfield-md";

/// Atoms that one thread moves at a time.
const MIN_LEN: usize = 1 << 12;

/// Steps after which atoms are brought into an order that makes memory local.
const REORDER: u64 = 1000;

/// Atoms, the forces on them, and the evaluator of the forces.
#[derive(Debug)]
pub(crate) struct HostBody {
    pub(crate) system: System,
    evaluator: Evaluator,
    /// Threads that move atoms; started again in a forked child, which has none of its parent's.
    pool: PerProcess<Option<ThreadPool>>,
    pub(crate) forces: Vec<[f64; 3]>,
    now: Evaluation,
    /// Number of list builds by earlier evaluators.
    builds: u64,
}

impl HostBody {
    /// Sorts the atoms and evaluates their forces.
    pub(crate) fn new(
        system: System,
        field: &ForceField,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut made = Self::prepare(system, field, options)?;
        made.sort(field, options)?;
        made.evaluate(field, 0)?;
        Ok(made)
    }

    /// Takes over the atoms and forces of a checkpoint.
    pub(crate) fn resume(
        checkpoint: Checkpoint,
        field: &ForceField,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut made = Self::prepare(checkpoint.system, field, options)?;
        made.now = checkpoint.now;
        match options.precision {
            nearfield::Precision::Single => {
                let forces = checkpoint.forces.iter().map(|force| force.map(f64::from));
                made.forces = collected(forces, "forces")?;
            }
            // A checkpoint has them rounded; the same positions give the same forces.
            nearfield::Precision::Double => made.evaluate(field, checkpoint.step)?,
        }
        Ok(made)
    }

    fn prepare(system: System, field: &ForceField, options: &Options) -> Result<Self, Error> {
        let pool = parallel::start(options.threads, THREAD);
        let pool = pool.map_err(|_| ErrorKind::Setting {
            name: "the number of threads",
            value: options.threads as f64,
            wanted: "one that the system can start",
        })?;
        Ok(Self {
            evaluator: Evaluator::new(&system, field, options)?,
            system,
            pool: PerProcess::new(pool),
            forces: Vec::new(),
            now: Evaluation::default(),
            builds: 0,
        })
    }

    /// Step number `step` of length `dt`: half a kick, a drift, forces, half a kick.
    pub(crate) fn advance(
        &mut self,
        field: &ForceField,
        options: &Options,
        step: u64,
        dt: f64,
    ) -> Result<(), Error> {
        if step > 1 && (step - 1).is_multiple_of(REORDER) {
            self.sort(field, options)?;
        }
        self.kick(options, 0.5 * dt);
        self.drift(options, dt);
        let moved = self.evaluate(field, step);
        moved.map_err(|error| {
            let System { positions, ids, .. } = &self.system;
            lost(positions, ids, step, dt).unwrap_or(error)
        })?;
        self.kick(options, 0.5 * dt);
        Ok(())
    }

    /// Energies, virial and momentum now.
    pub(crate) fn measure(&self) -> AtomSums {
        AtomSums {
            pairs: self.now,
            kinetic: self.system.kinetic(),
            momentum: self.system.momentum(),
        }
    }

    /// Energy of all pairs now.
    pub(crate) fn potential(&self) -> f64 {
        self.now.energy
    }

    /// Number of neighbour searches.
    pub(crate) fn builds(&self) -> u64 {
        self.builds + self.evaluator.builds()
    }

    /// The device that the forces are evaluated on.
    pub(crate) fn device(&self) -> String {
        self.evaluator.device()
    }

    /// Number of pairs within the cut-off, each counted once.
    pub(crate) fn pairs(&mut self) -> Result<u64, Error> {
        self.evaluator.pairs()
    }

    /// Atoms and rounded forces. Pairs are searched again at the next step, as they are in the run
    /// that goes on from the checkpoint.
    pub(crate) fn save(
        &mut self,
        field: &ForceField,
        options: &Options,
    ) -> Result<(System, Vec<[f32; 3]>), Error> {
        self.search_anew(field, options)?;
        let forces = self.forces.iter().map(|force| force.map(|x| x as f32));
        let forces = collected(forces, "forces of a checkpoint")?;
        Ok((self.system.copied()?, forces))
    }

    fn search_anew(&mut self, field: &ForceField, options: &Options) -> Result<(), Error> {
        self.builds += self.evaluator.builds();
        self.evaluator = Evaluator::new(&self.system, field, options)?;
        Ok(())
    }

    /// Brings the atoms into the order in which they are found.
    fn sort(&mut self, field: &ForceField, options: &Options) -> Result<(), Error> {
        let order = self.evaluator.order()?;
        self.system.reorder(&order)?;
        if !self.forces.is_empty() {
            let forces = order.iter().map(|&k| self.forces[k as usize]);
            self.forces = collected(forces, "forces")?;
        }
        self.search_anew(field, options)
    }

    /// Evaluates the forces at the positions of step `step`.
    pub(crate) fn evaluate(&mut self, field: &ForceField, step: u64) -> Result<(), Error> {
        let _span = tracing::debug_span!("md.forces", step).entered();
        let evaluated = self.evaluator.evaluate(&self.system, field);
        self.now = evaluated.map_err(|error| match *error.kind() {
            ErrorKind::Overlap {
                atom,
                force,
                nearest,
                ..
            } => ErrorKind::Overlap {
                step,
                atom,
                force,
                nearest,
            }
            .into(),
            _ => error,
        })?;
        self.forces.clear();
        make_room(&mut self.forces, self.system.len(), "forces")?;
        self.forces.extend(self.evaluator.forces());
        Ok(())
    }

    fn kick(&mut self, options: &Options, dt: f64) {
        let System {
            velocities,
            types,
            masses,
            ..
        } = &mut self.system;
        let forces = &self.forces;
        parallel::within(pool(&self.pool, options), || {
            let atoms = velocities.par_iter_mut().with_min_len(MIN_LEN).enumerate();
            atoms.run(|(atom, velocity)| {
                let over_mass = dt / masses[types[atom] as usize];
                for (v, force) in velocity.iter_mut().zip(forces[atom]) {
                    *v += over_mass * force;
                }
            });
        });
    }

    fn drift(&mut self, options: &Options, dt: f64) {
        let System {
            positions,
            velocities,
            ..
        } = &mut self.system;
        parallel::within(pool(&self.pool, options), || {
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
