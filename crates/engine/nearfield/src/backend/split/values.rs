//! One value per target by the device and the CPU backend: counts, and sums of pair kernels.
//!
//! The CPU backend writes its values where the caller wants them and marks their targets. The
//! device gives the numbers of all targets, in the caller's order, in memory of its own; those of
//! targets without a mark are put beside the others at the end. So neither waits for the other.
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
        accelerator::{KernelWork, Numbers, Part, ValueWork},
        transfer::ScatterResults,
    },
    done::GpuDone,
    part::{PARTS_OF_CPU, PARTS_OF_DEVICE, share},
    protocol::{Backends, Compute, Computed, Drive, Driven, Halves, Outcome, SplitJob, run},
    sorted::sets_of_share,
    step::{Device, Divided, EngineStep, Ran},
};
use crate::Error;
use nearfield_cpu::{CpuBackend, PairOfSets};
use nearfield_grid::parallel::PoolLoops;
use rayon::prelude::*;
use std::time::Instant;

/// Results that one thread merges at a time.
const MIN_LEN: usize = 1 << 13;

/// A quantity that is evaluated for every target.
pub(crate) trait Values: Numbers {
    /// Of a target.
    type Value: Copy + Send + Sync;

    /// Numbers of a value.
    fn width(&self) -> usize;

    /// The pair kernel; None for counts.
    fn kernel(&self) -> Option<&KernelWork<'_>>;

    /// Whether values are combined with what is there, which cannot be done twice.
    ///
    /// If true, `place` in [`put`](Self::put) holds a value of the caller's that the new one is
    /// combined with.
    fn combines(&self) -> bool;

    /// Evaluates on the CPU backend, into the caller's values.
    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        values: &mut [Self::Value],
    ) -> Result<(), Error>;

    /// Puts the numbers of a device's value where the caller wants it.
    ///
    /// `numbers` has [`width`](Self::width) elements. Called once per target, from any worker.
    fn put(&self, place: &mut Self::Value, numbers: &[f32]);
}

/// Evaluates with a device, or with both backends where they share the job.
///
/// # Errors
/// Those of the host. A fault of the device is none: the CPU backend then does the job.
pub(crate) fn evaluate<V: Values>(
    device: Device<'_>,
    input: &StepInput<'_>,
    job: Job,
    of: &V,
    values: &mut [V::Value],
) -> Result<Ran, Error> {
    device.run(input, job, |on| {
        let mut step = ValuesStep {
            on,
            of,
            values,
            numbers: None,
            done: GpuDone::default(),
        };
        let outcome = run(input.cpu, &mut step)?;
        Ok(step.on.ran(outcome))
    })
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

/// The job as a device takes it.
fn work<V: Values>(of: &V) -> ValueWork<'_> {
    ValueWork {
        kernel: of.kernel(),
        width: of.width(),
        by_cpu_code: of,
    }
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
        let (of, width) = (self.of, self.of.width());
        let scatter = ScatterResults::new(self.values, width);
        let put = |numbers: &[f32], values: &mut [V::Value]| {
            let numbers = numbers.chunks_exact(width);
            for (value, numbers) in values.iter_mut().zip(numbers) {
                of.put(value, numbers);
            }
        };
        device.values(input, job, &work(of), &mut |arrivals| {
            scatter.hand_over(input.cpu, arrivals, of.combines(), put)
        })
    }

    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError> {
        let EngineStep {
            input, device, job, ..
        } = self.on;
        let Divided {
            planned,
            taken,
            spent,
            sorted,
            ..
        } = self.on.divide(self.values.len())?;
        let (of, values, numbers, done) = (
            self.of,
            &mut *self.values,
            &mut self.numbers,
            &mut self.done,
        );
        let work = work(of);
        let prepared = device.prepare_part(input, &work);
        let drive = move |began: Instant| {
            let part = Part {
                job,
                planned,
                began,
            };
            let (found, of_device) = device.values_part(input, part, &work, prepared)?;
            (*numbers, *done) = (Some(found), of_device);
            Ok(Driven::Done)
        };
        let compute = move || {
            let pair = PairOfSets {
                share: Some(share(planned, taken, spent, PARTS_OF_CPU)),
                ..sets_of_share(input, sorted, planned, job)?
            };
            of.evaluate(input.cpu, pair, values)?;
            Ok(Computed::default())
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
