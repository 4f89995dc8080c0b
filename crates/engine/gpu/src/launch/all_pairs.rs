//! The kernels of all_pairs.cu: sums over all pairs, without a radius.
//!
//! Every kernel goes through all sources tile by tile and keeps its targets in registers. They
//! differ in the number of targets per thread: several save loads of the sources, one keeps more
//! threads busy where targets are few. The caller chooses; results are the same bits in the exact
//! arithmetic.

use super::kernel::{Argument, Kernel, LaunchShape, one_each};
use crate::constants::ALL_PAIRS_THREADS;
use crate::{error::Error, memory::Queue, program::Module};
use cudarc::driver::sys::CUdeviceptr;

/// The kernels of one precision and arithmetic.
#[derive(Debug)]
pub(crate) struct AllPairsKernels {
    sources: Kernel,
    /// Three components per target: one target a thread, and several.
    pull: [Kernel; 2],
    /// One component per target: one target a thread, and several.
    potential: [Kernel; 2],
    /// By points of a thread: 1, 4, 8, and 8 with some guessed roots, if the arithmetic allows it.
    rows: [Kernel; 4],
}

/// Arguments of every sum. All numbers are of the kernels' precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summing {
    /// Sources as the kernels want them: x, y, z and weight side by side.
    pub(crate) sources: CUdeviceptr,
    /// Number of sources.
    pub(crate) count: u32,
    /// Squared softening.
    pub(crate) softening2: f64,
    /// The sums, one target after the other.
    pub(crate) results: CUdeviceptr,
    /// Numbers are `f64`, not `f32`.
    pub(crate) double: bool,
}

/// Rows of a grid along x, and how they are dealt out to threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsOfGrid {
    /// Index among the kernels for rows.
    pub(crate) variant: usize,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Blocks of a row.
    pub(crate) segments: u32,
    /// Coordinates along x, y and z, one axis after the other.
    pub(crate) axes: CUdeviceptr,
    /// Points along each axis.
    pub(crate) dims: [u32; 3],
    /// The first row; rows along x are numbered with y fastest.
    pub(crate) first_row: u32,
    /// Number of rows.
    pub(crate) rows: u32,
}

impl AllPairsKernels {
    /// Looks up the kernels of a module. `guessed` says whether it has a kernel that guesses roots.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(crate) fn load(module: &Module, guessed: bool) -> Result<Self, Error> {
        let kernel = |name| Kernel::of(module, name);
        let mixed = if guessed { "_mixed" } else { "" };
        Ok(Self {
            sources: kernel("all_pairs_sources")?,
            pull: [kernel("all_pairs_pull_1")?, kernel("all_pairs_pull_n")?],
            potential: [
                kernel("all_pairs_potential_1")?,
                kernel("all_pairs_potential_n")?,
            ],
            rows: [
                kernel("all_pairs_rows_1")?,
                kernel("all_pairs_rows_4")?,
                kernel("all_pairs_rows_8")?,
                kernel(&format!("all_pairs_rows_8{mixed}"))?,
            ],
        })
    }

    /// Puts `count` positions at `at` (x, y and z of each) and as many weights side by side.
    pub(crate) fn sources(
        &self,
        queue: &Queue,
        at: CUdeviceptr,
        weights: CUdeviceptr,
        count: u32,
        sources: CUdeviceptr,
    ) -> Result<(), Error> {
        let arguments: [&dyn Argument; 4] = [&at, &weights, &count, &sources];
        // SAFETY: as all_pairs_sources declares; `sources` has four numbers per source.
        unsafe {
            self.sources
                .start(queue, one_each(count as usize), &arguments)
        }
    }

    /// Sums for `targets` points at `at`, `per` of a thread: 1, or what the program was compiled
    /// for; of three components each with `pull`, of one else.
    pub(crate) fn points(
        &self,
        queue: &Queue,
        pull: bool,
        per: usize,
        at: CUdeviceptr,
        targets: u32,
        summing: &Summing,
    ) -> Result<(), Error> {
        let kernels = if pull { &self.pull } else { &self.potential };
        let threads = (targets as usize).div_ceil(per);
        let shape = LaunchShape::covering(threads, ALL_PAIRS_THREADS);
        let kernel = &kernels[usize::from(per > 1)];
        summing.start(queue, kernel, shape, &[&at, &targets])
    }

    /// Potentials on `rows` rows of a grid from `first_row` on.
    pub(crate) fn rows(
        &self,
        queue: &Queue,
        grid: RowsOfGrid,
        summing: &Summing,
    ) -> Result<(), Error> {
        let shape = LaunchShape::of(grid.rows * grid.segments, grid.threads);
        let [x, y, z] = &grid.dims;
        let of_grid: [&dyn Argument; 6] = [&grid.axes, x, y, z, &grid.first_row, &grid.segments];
        summing.start(queue, &self.rows[grid.variant], shape, &of_grid)
    }
}

impl Summing {
    /// Starts a kernel with arguments of its own and those of every sum behind them.
    fn start(
        &self,
        queue: &Queue,
        kernel: &Kernel,
        shape: LaunchShape,
        own: &[&dyn Argument],
    ) -> Result<(), Error> {
        let single = self.softening2 as f32;
        let softening2: &dyn Argument = if self.double {
            &self.softening2
        } else {
            &single
        };
        let of_sum: [&dyn Argument; 4] = [&self.sources, &self.count, softening2, &self.results];
        // SAFETY: as the kernels of all_pairs.cu declare, the softening in their precision. The
        // caller has reserved a result for every target or every point of the rows.
        unsafe { kernel.start(queue, shape, &[own, &of_sum].concat()) }
    }
}
