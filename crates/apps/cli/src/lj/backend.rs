//! A run wherever its atoms live: on the host, or on a GPU from step to step.

use crate::failure::Failure;
use nearfield::{Device, LongRange};
use nearfield_md::{
    Checkpoint, DeviceSimulation, Drift, Error, Evaluator, ForceField, Observation, Options,
    Simulation, System,
};
use std::borrow::Cow;

/// A run; boxed, because either is large.
pub(super) enum Run {
    Host(Box<Simulation>),
    Device(Box<DeviceSimulation>),
}

impl Run {
    /// A run from the start; atoms stay on a GPU that is asked for by number if they are to move and
    /// that is possible.
    pub(super) fn new(
        system: System,
        field: ForceField,
        options: Options,
        moves: bool,
    ) -> Result<Self, Error> {
        match options.device {
            Device::Gpu(number) if moves && DeviceSimulation::takes(&system, &field, &options) => {
                let run = DeviceSimulation::new(system, field, &options, number)?;
                Ok(Self::Device(Box::new(run)))
            }
            _ => Ok(Self::Host(Box::new(Simulation::new(
                system, field, options,
            )?))),
        }
    }

    /// A run that goes on.
    pub(super) fn resume(
        checkpoint: Checkpoint,
        field: ForceField,
        options: Options,
    ) -> Result<Self, Error> {
        match options.device {
            Device::Gpu(number)
                if DeviceSimulation::takes(checkpoint.system(), &field, &options) =>
            {
                let run = DeviceSimulation::resume(checkpoint, field, &options, number)?;
                Ok(Self::Device(Box::new(run)))
            }
            _ => {
                let run = Simulation::resume(checkpoint, field, options)?;
                Ok(Self::Host(Box::new(run)))
            }
        }
    }

    pub(super) fn step(&mut self, dt: f64) -> Result<(), Error> {
        match self {
            Self::Host(run) => run.step(dt),
            Self::Device(run) => run.step(dt),
        }
    }

    pub(super) fn observe(&mut self) -> Result<Observation, Error> {
        match self {
            Self::Host(run) => Ok(run.observe()),
            Self::Device(run) => run.observe(),
        }
    }

    /// What was observed last, or is now.
    pub(super) fn look(&mut self) -> Result<Observation, Error> {
        match self {
            Self::Host(run) => Ok(run.look()),
            Self::Device(run) => run.observe(),
        }
    }

    pub(super) fn system(&mut self) -> Result<Cow<'_, System>, Error> {
        match self {
            Self::Host(run) => Ok(Cow::Borrowed(run.system())),
            Self::Device(run) => Ok(Cow::Owned(run.system()?)),
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<Checkpoint, Error> {
        match self {
            Self::Host(run) => run.checkpoint(),
            Self::Device(run) => run.checkpoint(),
        }
    }

    /// Forces on the atoms, in the order of the system.
    pub(super) fn forces(&self) -> Result<Vec<[f64; 3]>, Error> {
        match self {
            Self::Host(run) => Ok(run.forces().to_vec()),
            Self::Device(run) => {
                let forces = run.forces_now()?;
                Ok(forces.into_iter().map(|f| f.map(f64::from)).collect())
            }
        }
    }

    /// Energy of all pairs, where it is known without asking a GPU.
    pub(super) fn potential(&self) -> Option<f64> {
        match self {
            Self::Host(run) => Some(run.potential()),
            Self::Device(_) => None,
        }
    }

    pub(super) fn energy_drift(&self) -> Drift {
        match self {
            Self::Host(run) => run.energy_drift(),
            Self::Device(run) => run.energy_drift(),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        match self {
            Self::Host(run) => run.steps(),
            Self::Device(run) => run.steps(),
        }
    }

    pub(super) fn builds(&self) -> u64 {
        match self {
            Self::Host(run) => run.builds(),
            Self::Device(run) => run.builds(),
        }
    }

    pub(super) fn device(&self) -> String {
        match self {
            Self::Host(run) => run.device(),
            Self::Device(run) => run.device(),
        }
    }

    pub(super) fn atoms(&mut self) -> Result<usize, Error> {
        Ok(self.system()?.len())
    }

    fn field(&self) -> ForceField {
        match self {
            Self::Host(run) => run.field().clone(),
            Self::Device(run) => run.field().clone(),
        }
    }

    pub(super) fn long_range(&mut self) -> Result<LongRange, Error> {
        let field = self.field();
        let system = self.system()?;
        Ok(field.long_range(&system))
    }

    /// Number of pairs within the cut-off, each counted once.
    pub(super) fn pairs(&mut self) -> Result<u64, Failure> {
        if let Self::Host(run) = self {
            return Ok(run.pairs()?);
        }
        let field = self.field();
        let system = self.system()?;
        // On the host: the device counts lists that reach farther.
        Ok(Evaluator::new(&system, &field, &Options::default())?.pairs()?)
    }
}
