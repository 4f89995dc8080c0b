//! One value per target by the device and the CPU backend: counts, and sums of pair kernels.
//!
//! The CPU backend writes its values where the caller wants them and marks their targets. The
//! device gives the numbers of all targets, in the caller's order, in memory of its own; those of
//! targets without a mark are put among the others at the end. So neither waits for the other.
//!
//! **Invariant:** values that are combined with what is there are touched once per target; those of
//! a device only when all of its numbers have arrived.
//!
//! After a fault only the device's targets are computed anew ([`PARTS_OF_DEVICE`]). The CPU
//! backend's values stay, which is faster and is needed for values that are combined: they could
//! not be combined a second time. Where the device does a job alone and fails, its pieces have been
//! held back until all had arrived if values are combined, so nothing has been touched.

use super::{
    super::{
        DeviceError, HostMemory, Job, StepInput,
        accelerator::{Accelerator, DevicePart},
        values::{self, Values},
    },
    done::GpuDone,
    part::{PARTS_OF_CPU, PARTS_OF_DEVICE, share},
    protocol::{Backends, Compute, ComputeEnd, Drive, DriveEnd, Halves, Outcome, SplitJob, run},
    shared::Split,
    sorted::sets_of_share,
    step::{DividedStep, EngineStep},
};
use crate::Error;
use nearfield_cpu::PairOfSets;
use nearfield_grid::parallel::PoolLoops;
use rayon::prelude::*;
use std::time::Instant;

/// Results that one thread merges at a time.
const MIN_LEN: usize = 1 << 13;

/// Evaluates with both backends, or with the one that the plan names. Returns why the CPU backend
/// did it alone against the plan, if it did.
///
/// # Errors
/// Those of the host. A fault of the device is not an error: the CPU backend then does the job.
pub(crate) fn evaluate<V: Values>(
    device: &dyn Accelerator,
    split: &Split,
    input: &StepInput<'_>,
    job: Job,
    of: &V,
    values: &mut [V::Value],
) -> Result<Option<String>, Error> {
    let mut step = ValuesStep {
        on: EngineStep::begin(device, split, input, job),
        of,
        values,
        numbers: None,
        done: GpuDone::default(),
    };
    let outcome = run(input.cpu, &mut step)?;
    Ok(step.on.instead(&outcome))
}

/// Values of all targets, as a job of two backends.
struct ValuesStep<'s, V: Values> {
    on: EngineStep<'s>,
    of: &'s V,
    /// The caller's.
    values: &'s mut [V::Value],
    /// The device's, until they are merged and given back.
    numbers: Option<HostMemory>,
    done: GpuDone,
}

impl<V: Values> SplitJob for ValuesStep<'_, V> {
    fn plan(&mut self) -> Result<Backends, Error> {
        self.on.plan()
    }

    fn by_cpu(&mut self) -> Result<(), Error> {
        let pair = self.on.input.pair(self.on.job)?;
        self.of.evaluate(self.on.input.cpu, pair, self.values)
    }

    fn by_device(&mut self) -> Result<(), DeviceError> {
        let EngineStep {
            input, device, job, ..
        } = self.on;
        values::on_device(device, input, job, self.of, self.values)
    }

    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError> {
        let EngineStep {
            input, device, job, ..
        } = self.on;
        let DividedStep {
            planned,
            taken,
            spent,
            sorted,
            ..
        } = self.on.divide(self.values.len())?;
        let (of, results) = (self.of, &mut *self.values);
        let (numbers, done) = (&mut self.numbers, &mut self.done);
        let work = values::work(of);
        let prepared = device.prepare_part(input, &work);
        let drive = move |began: Instant| {
            let part = DevicePart {
                job,
                planned,
                began,
            };
            let (found, of_device) = device.values_part(input, part, &work, prepared)?;
            (*numbers, *done) = (Some(found), of_device);
            Ok(DriveEnd::Done)
        };
        let compute = move || {
            let pair = PairOfSets {
                filter: Default::default(),
                share: Some(share(planned, taken, spent, PARTS_OF_CPU)),
                ..sets_of_share(input, sorted, planned, job)?
            };
            of.evaluate(input.cpu, pair, results)?;
            Ok(ComputeEnd::default())
        };
        Ok(Halves { drive, compute })
    }

    fn join(&mut self) -> Result<(), Error> {
        let (Some(numbers), Some(shared)) = (&self.numbers, self.on.shared.as_deref_mut()) else {
            return Ok(());
        };
        let (of, width, values) = (self.of, self.of.width(), &mut *self.values);
        let _span = tracing::debug_span!("engine.deliver").entered();
        self.on.input.cpu.install(|| {
            let places = values.par_iter_mut().zip(&mut shared.taken[..]).enumerate();
            places
                .with_min_len(MIN_LEN)
                .run(|(target, (place, taken))| {
                    if !std::mem::take(taken.get_mut()) {
                        of.put(place, &numbers[target * width..(target + 1) * width]);
                    }
                });
        });
        shared.unmarked = true;
        Ok(())
    }

    fn recover(&mut self) -> Result<(), Error> {
        let EngineStep { input, job, .. } = self.on;
        let Some(begun) = self.on.begun() else {
            return Ok(());
        };
        let of_device = share(begun.planned, begun.taken, begun.spent, PARTS_OF_DEVICE);
        let pair = PairOfSets {
            filter: Default::default(),
            share: Some(of_device),
            ..input.pair(job)?
        };
        self.of.evaluate(input.cpu, pair, self.values)
    }

    fn learn(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if let Some(numbers) = self.numbers.take() {
            self.on.device.give_back(numbers);
        }
        self.on.learn(outcome, &self.done)
    }
}
