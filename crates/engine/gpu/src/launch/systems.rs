//! The kernels of systems.cu: pairs of many small systems.
//!
//! Two kernels follow each other on the stream. The first makes the cells of all systems, one
//! thread each, and says which block searches which; the second finds the pairs, counts them, and
//! writes them. Whatever the first finds wrong, the second reads nothing by it.
//!
//! # Blocks
//!
//! How many blocks there are must not depend on the offsets, which only the device knows. The
//! blocks of system s begin with number (points before s) / 64, rounded down, plus s; these numbers
//! ascend by at least as many as s has parts of 64 targets. So points / 64 + systems blocks are
//! enough, and those without targets end at once.

use super::{
    kernel::{Kernel, LaunchShape},
    layout::{PairOutput, SystemArrays},
};
use crate::constants::{SYSTEM_TARGETS, SYSTEM_THREADS, SYSTEMS_A_BLOCK};
use crate::{error::Error, memory::Queue, program::Module};

/// The kernels of one precision. A module is compiled for `float` or for `double`, and everything
/// else is the same: cells and the bound of images are computed in `double` by both.
#[derive(Debug)]
pub(crate) struct SystemsKernels {
    prepare: Kernel,
    search: Kernel,
}

impl SystemsKernels {
    /// Looks up the kernels of a module.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module) -> Result<Self, Error> {
        let kernel = |name| Kernel::of(module, name);
        Ok(Self {
            prepare: kernel("systems_prepare")?,
            search: kernel("systems_search")?,
        })
    }

    /// Checks the numbers of all systems, makes their cells and divides them among blocks.
    pub(crate) fn prepare(&self, queue: &Queue, systems: &SystemArrays) -> Result<(), Error> {
        let shape = LaunchShape::covering(systems.count as usize, SYSTEMS_A_BLOCK);
        // SAFETY: as systems_prepare declares; `boxes` has SYSTEM_BOX bytes per system, `units` and
        // `sums` a number per block, and all bits of `status` are set.
        unsafe { self.prepare.start(queue, shape, &[systems]) }
    }

    /// Finds the pairs and writes those of the blocks whose pairs have room. The number of all
    /// pairs is found even if none have.
    pub(crate) fn search(
        &self,
        queue: &Queue,
        systems: &SystemArrays,
        output: &PairOutput,
    ) -> Result<(), Error> {
        let blocks = units(systems.points as usize, systems.count as usize) as u32;
        let shape = LaunchShape::of(blocks, SYSTEM_THREADS);
        // SAFETY: as systems_search declares; the arrays that are not 0 have room for `capacity`
        // pairs, and `starts` has a number per point and one behind them.
        unsafe { self.search.start(queue, shape, &[systems, output]) }
    }
}

/// As many blocks as there can be parts of systems.
pub(crate) fn units(points: usize, systems: usize) -> usize {
    points / SYSTEM_TARGETS as usize + systems
}
