//! The device of an engine, which does jobs alone or shares them with the CPU backend.
//!
//! A device that shares its jobs has plans and controllers, and its steps follow the
//! [protocol](super::split). A device that works alone, [`Device::Gpu`](crate::Device::Gpu), is
//! called from here. If it is not ready, lacks positions or fails, the CPU backend does the whole
//! job within the same call.
//!
//! **Invariant:** `Ok` means that the results are complete, whichever backend has computed them.

use super::{
    DeviceError, Fault, Job, StepInput,
    accelerator::{Accelerator, is_complete},
    split::{self, Split},
    values::{self, Values},
};
use crate::{Error, NeighborLists, lists::PairGeometry};

/// The device of an engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttachedDevice<'a> {
    pub(crate) accelerator: &'a dyn Accelerator,
    /// How it shares jobs with the CPU backend; `None` if it works alone.
    pub(crate) split: Option<&'a Split>,
}

impl AttachedDevice<'_> {
    /// Writes the lists of a pair of sets. Returns why the CPU backend did it instead of the
    /// device, if it did.
    ///
    /// # Errors
    /// Those of the host. A fault of the device is not an error.
    pub(crate) fn find(
        self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<Option<String>, Error> {
        if let Some(split) = self.split {
            return split::find(self.accelerator, split, input, job, lists);
        }
        let found = self
            .ready(input)
            .and_then(|()| self.accelerator.find(input, job, lists));
        let Some(fault) = fault_of(found)? else {
            return Ok(None);
        };
        input.search(job, lists)?;
        Ok(Some(fault.to_string()))
    }

    /// Writes the lists of a pair of sets and the geometry of their pairs, in any order, by the
    /// device alone. Returns why the CPU backend did it instead, if it did.
    ///
    /// # Errors
    /// Those of the host. A fault of the device is not an error.
    pub(crate) fn geometry(
        self,
        input: &StepInput<'_>,
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<Option<String>, Error> {
        let found = self
            .ready(input)
            .and_then(|()| self.accelerator.geometry(input, job, geometry));
        let Some(fault) = fault_of(found)? else {
            return Ok(None);
        };
        input.geometry(job, geometry)?;
        Ok(Some(fault.to_string()))
    }

    /// Asks the device alone for something that the CPU backend cannot do in its place without
    /// knowing more of the engine. Returns the fault after which the caller asks the CPU backend.
    ///
    /// # Errors
    /// Those of the host.
    pub(crate) fn alone<T>(
        self,
        input: &StepInput<'_>,
        ask: impl FnOnce(&dyn Accelerator) -> Result<T, DeviceError>,
    ) -> Result<Result<T, Fault>, Error> {
        match self.ready(input).and_then(|()| ask(self.accelerator)) {
            Ok(done) => Ok(Ok(done)),
            Err(DeviceError::Fault(fault)) => Ok(Err(fault)),
            Err(DeviceError::Host(error)) => Err(error),
        }
    }

    /// Evaluates a value of every target. Returns why the CPU backend did it instead of the device,
    /// if it did.
    ///
    /// # Errors
    /// Those of the host. A fault of the device is not an error.
    pub(crate) fn evaluate<V: Values>(
        self,
        input: &StepInput<'_>,
        job: Job,
        of: &V,
        results: &mut [V::Value],
    ) -> Result<Option<String>, Error> {
        if let Some(split) = self.split {
            return split::evaluate(self.accelerator, split, input, job, of, results);
        }
        let Err(fault) = self.evaluate_alone(input, job, of, results)? else {
            return Ok(None);
        };
        of.evaluate(input.cpu, input.pair(job)?, results)?;
        Ok(Some(fault.to_string()))
    }

    /// Evaluates a value of every target by the device alone. Returns the fault after which the
    /// CPU backend has to.
    ///
    /// # Errors
    /// Those of the host.
    pub(crate) fn evaluate_alone<V: Values>(
        self,
        input: &StepInput<'_>,
        job: Job,
        of: &V,
        results: &mut [V::Value],
    ) -> Result<Result<(), Fault>, Error> {
        self.alone(input, |device| {
            values::on_device(device, input, job, of, results)
        })
    }

    /// Returns a fault if the device cannot take a job now.
    fn ready(self, input: &StepInput<'_>) -> Result<(), DeviceError> {
        self.accelerator.ready()?;
        if !is_complete(self.accelerator, input) {
            return Err(Fault::Behind.into());
        }
        Ok(())
    }
}

/// The fault after which the CPU backend does a job again, if there was one.
fn fault_of(done: Result<(), DeviceError>) -> Result<Option<Fault>, Error> {
    match done {
        Ok(()) => Ok(None),
        Err(DeviceError::Fault(fault)) => Ok(Some(fault)),
        Err(DeviceError::Host(error)) => Err(error),
    }
}
