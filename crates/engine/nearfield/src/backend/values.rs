//! One value per target: counts, and sums of pair kernels.
//!
//! A value has two forms. The caller's has a type of its own; the device's is a row of numbers,
//! which arrives in pieces and is put into the caller's array while later pieces are on their way.

use super::{
    DeviceError, Job, StepInput,
    accelerator::{Accelerator, KernelWork, Numbers, ValueWork},
    transfer::ScatterResults,
};
use crate::Error;
use nearfield_cpu::{CpuBackend, PairOfSets};

/// A quantity that is evaluated for every target.
pub(crate) trait Values: Numbers {
    /// The value of a target.
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

/// The job as a device takes it.
pub(super) fn work<V: Values>(of: &V) -> ValueWork<'_> {
    ValueWork {
        kernel: of.kernel(),
        width: of.width(),
        by_cpu_code: of,
    }
}

/// Evaluates all targets on a device.
///
/// # Errors
/// As [`Accelerator::values`]. Results that are combined with the caller's are then untouched: they
/// are held back until all have arrived.
pub(super) fn on_device<V: Values>(
    device: &dyn Accelerator,
    input: &StepInput<'_>,
    job: Job,
    of: &V,
    results: &mut [V::Value],
) -> Result<(), DeviceError> {
    let width = of.width();
    let scatter = ScatterResults::new(results, width);
    let chosen = input.rules(job)?.filter.chosen;
    let put = |first: usize, numbers: &[f32], values: &mut [V::Value]| {
        let numbers = numbers.chunks_exact(width);
        for (target, (value, numbers)) in (first..).zip(values.iter_mut().zip(numbers)) {
            // Those that are not searched for keep what they have.
            if chosen.is_none_or(|chosen| chosen.has(target)) {
                of.put(value, numbers);
            }
        }
    };
    device.values(input, job, &work(of), &mut |arrivals| {
        scatter.hand_over(input.cpu, arrivals, of.combines(), put)
    })
}
