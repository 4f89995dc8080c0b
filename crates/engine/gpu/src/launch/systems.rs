//! The kernels of systems.cu: pairs of many small systems.
//!
//! Three kernels follow each other on the stream. The first makes the cells of all systems, one
//! thread each; the second counts the neighbours of every point; and the third writes the pairs
//! after a scan of the counts. Whatever the first two find wrong, the later ones read nothing by
//! it.
//!
//! # Blocks
//!
//! How many blocks there are must not depend on the offsets, which only the device knows. Block b
//! belongs to the last system s for which (points before s) / 64, rounded down, plus s is at most
//! b; these numbers ascend by at least as many as s has parts of 64 targets. So points / 64 +
//! systems blocks are enough, and those without targets end at once.
//!
//! **Invariant:** both passes have the same blocks, so a target meets its candidates in the same
//! order when it is counted and when it is written.

use super::{
    kernel::{Kernel, LaunchShape, one_each},
    layout::{PairOutput, SystemArrays},
};
use crate::constants::{SYSTEM_TARGETS, SYSTEM_THREADS};
use crate::{error::Error, memory::Queue, program::Module};

/// The kernels of one precision. A module is compiled for `float` or for `double`, and everything
/// else is the same: cells and the bound of images are computed in `double` by both.
#[derive(Debug)]
pub(crate) struct SystemsKernels {
    prepare: Kernel,
    count: Kernel,
    write: Kernel,
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
            count: kernel("systems_count")?,
            write: kernel("systems_write")?,
        })
    }

    /// Checks the numbers of all systems and makes their cells.
    pub(crate) fn prepare(&self, queue: &Queue, systems: &SystemArrays) -> Result<(), Error> {
        let shape = one_each(systems.count as usize);
        // SAFETY: as systems_prepare declares; `boxes` has SYSTEM_BOX bytes per system and `fault`
        // two numbers.
        unsafe { self.prepare.start(queue, shape, &[systems]) }
    }

    /// Counts the neighbours of every point. Nothing else is written, so output that is wanted need
    /// have no room yet.
    pub(crate) fn count(
        &self,
        queue: &Queue,
        systems: &SystemArrays,
        output: &PairOutput,
    ) -> Result<(), Error> {
        // SAFETY: as systems_count declares; `counts` has a number per point.
        unsafe { (self.count).start(queue, blocks(systems), &[systems, output]) }
    }

    /// Writes the pairs, if all have room: a search that does not fit leaves arrays as they are.
    pub(crate) fn write(
        &self,
        queue: &Queue,
        systems: &SystemArrays,
        output: &PairOutput,
    ) -> Result<(), Error> {
        // SAFETY: as systems_write declares; the arrays that are not 0 have room for `capacity`
        // pairs, and `starts` has a number per point and one behind them.
        unsafe { (self.write).start(queue, blocks(systems), &[systems, output]) }
    }
}

/// As many blocks as there can be units of targets, as `unit_of` of systems.cuh numbers them.
fn blocks(systems: &SystemArrays) -> LaunchShape {
    let blocks = systems.points / SYSTEM_TARGETS + systems.count;
    LaunchShape::of(blocks.max(1), SYSTEM_THREADS)
}
