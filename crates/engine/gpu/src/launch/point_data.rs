//! The kernels of point_data.cu: data of points from arrays of the device, checked there.

use super::kernel::{Kernel, one_each};
use crate::{
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::{Precision, Radius};

/// The kernels, loaded when data of points first come from the device.
#[derive(Debug)]
pub(crate) struct PointDataKernels {
    retire: Kernel,
    radii: Kernel,
    numbers: Kernel,
}

/// Values of points, and where they go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenValues {
    /// The caller's array, a value per point.
    pub(crate) from: CUdeviceptr,
    /// Number of points.
    pub(crate) count: u32,
    /// Room for a value per point.
    pub(crate) to: CUdeviceptr,
    /// Three words of 64 bits about the values that were refused.
    pub(crate) refused: CUdeviceptr,
}

impl PointDataKernels {
    /// Compiles point_data.cu, or takes it from the cache, and looks up its kernels.
    ///
    /// # Errors
    /// The errors of [`Modules::load`].
    pub(crate) fn load(modules: &Modules) -> Result<Self, Error> {
        let module = modules.load(&Program::from(&super::sources::POINT_DATA))?;
        Ok(Self {
            retire: Kernel::of(&module, "retire_refused")?,
            radii: Kernel::of(&module, "take_radii")?,
            numbers: Kernel::of(&module, "take_numbers")?,
        })
    }

    /// Notes that the values which three words are about are replaced.
    pub(crate) fn retire(&self, queue: &Queue, refused: CUdeviceptr) -> Result<(), Error> {
        // SAFETY: as retire_refused declares; one thread reads and writes the three words.
        unsafe { self.retire.start(queue, one_each(1), &[&refused]) }
    }

    /// Takes radii from the least usable one to `most`, of the first precision, in the second.
    pub(crate) fn radii(
        &self,
        queue: &Queue,
        values: TakenValues,
        precisions: [Precision; 2],
        most: f64,
    ) -> Result<(), Error> {
        let TakenValues {
            from,
            count,
            to,
            refused,
        } = values;
        let [wide, exact] = precisions.map(|precision| u32::from(precision == Precision::Double));
        let least = f64::from(Radius::MIN);
        let shape = one_each(count as usize);
        // SAFETY: as take_radii declares; both arrays have a value of their precision per point.
        unsafe {
            self.radii.start(
                queue,
                shape,
                &[&from, &wide, &exact, &count, &least, &most, &to, &refused],
            )
        }
    }

    /// Takes whole numbers up to `most`, of eight bytes where they are `wide` and else of four.
    pub(crate) fn numbers(
        &self,
        queue: &Queue,
        values: TakenValues,
        wide: bool,
        most: u32,
    ) -> Result<(), Error> {
        let TakenValues {
            from,
            count,
            to,
            refused,
        } = values;
        let (shape, wide) = (one_each(count as usize), u32::from(wide));
        // SAFETY: as take_numbers declares; `from` has a number of that width per point.
        unsafe {
            self.numbers
                .start(queue, shape, &[&from, &wide, &count, &most, &to, &refused])
        }
    }
}
