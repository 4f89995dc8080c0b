//! The kernels of skin_pairs.cu: pairs of systems among those that were found before within a
//! larger radius.

use super::{
    kernel::{Kernel, LaunchShape},
    layout::{PairOutput, SystemArrays},
};
use crate::{
    constants::{SKIN_CANDIDATES, SKIN_THREADS},
    error::Error,
    memory::Queue,
    program::Module,
};
use cudarc::driver::DeviceRepr;

nearfield_shared::shared_structs! {
    /// `SkinStatus` of skin_pairs.cuh: what the host reads after a test of candidates. All zero
    /// before it.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct SkinStatus {
        /// Pairs within the radius.
        pub(crate) pairs: u64,
        /// Bits of the largest square of a displacement; infinite if one is not finite.
        pub(crate) moved: u64,
        /// Largest coordinates per axis, then and now, as integers that sort like them, and those
        /// of the negated ones.
        pub(crate) extremes: [u64; 6],
        /// 1 if anything but the points has changed.
        pub(crate) changed: u64,
    }

    /// `SkinCandidates` of skin_pairs.cuh: pairs that were found within a larger radius.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct SkinCandidates {
        /// The point of every candidate, in ascending order.
        pub(crate) targets: u64,
        /// Its neighbour.
        pub(crate) sources: u64,
        /// Three `i32` per candidate.
        pub(crate) images: u64,
        /// A number per block and one before them, all zero.
        pub(crate) sums: u64,
        /// A `SkinStatus`.
        pub(crate) status: u64,
        /// Candidates.
        pub(crate) count: u64,
    }
}

// SAFETY: `#[repr(C)]` numbers and device addresses without references to the host; programs assert
// that the CUDA source declares the same fields.
unsafe impl DeviceRepr for SkinStatus {}
// SAFETY: as of `SkinStatus`, numbers and addresses of the same fields.
unsafe impl DeviceRepr for SkinCandidates {}

/// Blocks that measure displacements at most, enough for every multiprocessor to have some.
const MAX_BLOCKS: u32 = 1024;

/// The kernels of one precision.
#[derive(Debug)]
pub(crate) struct SkinKernels {
    moved: Kernel,
    pairs: Kernel,
}

impl SkinKernels {
    /// Looks up the kernels of a module.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module) -> Result<Self, Error> {
        let kernel = |name| Kernel::of(module, name);
        Ok(Self {
            moved: kernel("skin_moved")?,
            pairs: kernel("skin_pairs")?,
        })
    }

    /// Numbers that `SkinCandidates::sums` needs for so many candidates.
    pub(crate) fn sums(candidates: usize) -> usize {
        candidates.div_ceil(SKIN_CANDIDATES as usize).max(1) + 1
    }

    /// Measures how far points have moved since `before`, and whether anything else has changed.
    pub(crate) fn measure(
        &self,
        queue: &Queue,
        [systems, before]: [&SystemArrays; 2],
        candidates: &SkinCandidates,
    ) -> Result<(), Error> {
        let most = systems.points.max(systems.count) as usize;
        let covering = LaunchShape::covering(most, SKIN_THREADS);
        let blocks = covering.blocks.min(MAX_BLOCKS);
        let shape = LaunchShape::of(blocks, SKIN_THREADS);
        // SAFETY: as skin_moved declares; arrays of `before` have the lengths of those of
        // `systems`, and the status is all zero.
        unsafe {
            let status = &candidates.status;
            self.moved
                .start(queue, shape, &[systems, before, status, &blocks])
        }
    }

    /// Counts the candidates that are pairs now, and writes those that have room.
    pub(crate) fn keep(
        &self,
        queue: &Queue,
        systems: &SystemArrays,
        candidates: &SkinCandidates,
        output: &PairOutput,
    ) -> Result<(), Error> {
        let blocks = Self::sums(candidates.count as usize) as u32 - 1;
        let shape = LaunchShape::of(blocks, SKIN_THREADS);
        // SAFETY: as skin_pairs declares; candidates are of points of these systems, `boxes` has
        // SYSTEM_BOX bytes per system, all of `sums` is zero, and arrays that are not 0 have room
        // for `output.capacity` pairs.
        unsafe {
            self.pairs
                .start(queue, shape, &[systems, candidates, output])
        }
    }
}
