//! The kernels of point_data.cu: data of points from arrays of the device, checked there.

use super::{
    kernel::{Kernel, LaunchShape, one_each},
    layout::Points,
};
use crate::{
    constants::{GRID_THREADS, MAX_WIDE},
    error::Error,
    memory::Queue,
    program::{Modules, Program},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_grid::{Precision, Radius};

/// Words of wide points: their number and places, in order and as they were found.
pub(crate) const WIDE_WORDS: usize = 2 * (1 + MAX_WIDE as usize);

/// Blocks that count radii: enough to read them at full speed, and few that add up what they found.
const COUNTING_BLOCKS: u32 = 256;

/// The kernels, loaded when data of points first come from the device, or points are wide.
#[derive(Debug)]
pub(crate) struct PointDataKernels {
    retire: Kernel,
    radii: Kernel,
    numbers: Kernel,
    count_radii: Kernel,
    find_wide: Kernel,
    order_wide: Kernel,
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
            count_radii: Kernel::of(&module, "count_radii")?,
            find_wide: Kernel::of(&module, "find_wide")?,
            order_wide: Kernel::of(&module, "order_wide")?,
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

    /// Counts radii that were taken, none above `most`, by halvings of it: the number of each class
    /// and then the largest radius of each, which are zero before.
    pub(crate) fn count(
        &self,
        queue: &Queue,
        (radii, count): (CUdeviceptr, u32),
        most: f32,
        classes: CUdeviceptr,
    ) -> Result<(), Error> {
        let blocks = count.div_ceil(GRID_THREADS).clamp(1, COUNTING_BLOCKS);
        let shape = LaunchShape::of(blocks, GRID_THREADS);
        // SAFETY: as count_radii declares: a radius per point, and two words for every class.
        unsafe {
            self.count_radii
                .start(queue, shape, &[&radii, &count, &most, &classes])
        }
    }

    /// Finds the sorted points whose radii are above `bulk`, ascending, behind their number, for
    /// [`WIDE_WORDS`] words in all, which are zero before. If there are more than
    /// [`MAX_WIDE`](crate::constants::MAX_WIDE), these are some of them.
    pub(crate) fn wide(
        &self,
        queue: &Queue,
        points: &Points,
        radii: CUdeviceptr,
        bulk: f32,
        wide: CUdeviceptr,
    ) -> Result<(), Error> {
        let (at, count) = (points.at, points.count);
        let shape = one_each(count as usize);
        let each = one_each(MAX_WIDE as usize);
        // SAFETY: as find_wide and order_wide declare; sorted points name radii, and there is room
        // for `MAX_WIDE` places twice, each time behind a number.
        unsafe {
            (self.find_wide).start(queue, shape, &[&at, &radii, &count, &bulk, &wide])?;
            self.order_wide.start(queue, each, &[&wide])
        }
    }
}
