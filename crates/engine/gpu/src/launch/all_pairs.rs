//! The kernels of all_pairs.cu.

use super::kernel::{Argument, Kernel, blocks};
use crate::{error::Error, memory::Queue, program::Module};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_kernels::constants::{ALL_PAIRS_THREADS, GRID_THREADS};

/// The kernels of one precision and arithmetic.
#[derive(Debug)]
pub(crate) struct AllPairsKernels {
    sources: Kernel,
    /// One target a thread, and several.
    pull: [Kernel; 2],
    potential: [Kernel; 2],
    /// By points of a thread: 1, 4, 8, and 8 with some guessed roots, if the arithmetic allows it.
    rows: [Kernel; 4],
}

/// Arguments of every sum. All numbers are of the kernels' precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summing {
    /// Sources as the kernels want them.
    pub(crate) sources: CUdeviceptr,
    /// Number of sources.
    pub(crate) count: u32,
    /// Squared softening.
    pub(crate) softening2: f64,
    pub(crate) results: CUdeviceptr,
    /// Whether numbers are `f64`, not `f32`.
    pub(crate) double: bool,
}

/// Rows of a grid, and how they are dealt out to threads.
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
    /// `guessed` says whether there is a kernel that guesses.
    pub(crate) fn load(module: &Module, guessed: bool) -> Result<Self, Error> {
        let kernel = |name| Kernel::of(module, name);
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
                kernel(match guessed {
                    true => "all_pairs_rows_8_mixed",
                    false => "all_pairs_rows_8",
                })?,
            ],
        })
    }

    /// Makes sources of `count` positions and weights.
    pub(crate) fn sources(
        &self,
        stream: &Queue,
        (at, weights): (CUdeviceptr, CUdeviceptr),
        count: u32,
        sources: CUdeviceptr,
    ) -> Result<(), Error> {
        let shape = (blocks(count as usize, GRID_THREADS), GRID_THREADS);
        // SAFETY: the module's promise.
        unsafe {
            self.sources
                .start(stream, shape, &[&at, &weights, &count, &sources])
        }
    }

    /// Sums for `targets` points, `per` of a thread: 1, or what the program was compiled for; of
    /// three components each with `pull`, of one else.
    pub(crate) fn points(
        &self,
        stream: &Queue,
        pull: bool,
        per: usize,
        (at, targets): (CUdeviceptr, u32),
        summing: &Summing,
    ) -> Result<(), Error> {
        let kernels = if pull { &self.pull } else { &self.potential };
        let shape = (
            blocks((targets as usize).div_ceil(per), ALL_PAIRS_THREADS),
            ALL_PAIRS_THREADS,
        );
        let Summing {
            sources,
            count,
            results,
            ..
        } = summing;
        with_softening(summing, |softening2| {
            let arguments: [&dyn Argument; 6] =
                [&at, &targets, sources, count, softening2, results];
            // SAFETY: the module's promise.
            unsafe { kernels[usize::from(per > 1)].start(stream, shape, &arguments) }
        })
    }

    /// Potentials on `rows` rows of a grid from `first_row` on.
    pub(crate) fn rows(
        &self,
        stream: &Queue,
        grid: RowsOfGrid,
        summing: &Summing,
    ) -> Result<(), Error> {
        let RowsOfGrid {
            variant,
            threads,
            segments,
            axes,
            dims,
            first_row,
            rows,
        } = grid;
        let shape = (rows * segments, threads);
        let [x, y, z] = dims;
        let Summing {
            sources,
            count,
            results,
            ..
        } = summing;
        with_softening(summing, |softening2| {
            let arguments: [&dyn Argument; 10] = [
                &axes, &x, &y, &z, &first_row, &segments, sources, count, softening2, results,
            ];
            // SAFETY: the module's promise.
            unsafe { self.rows[variant].start(stream, shape, &arguments) }
        })
    }
}

/// Calls `start` with the squared softening in the kernels' precision.
fn with_softening<R>(summing: &Summing, start: impl FnOnce(&dyn Argument) -> R) -> R {
    match summing.double {
        true => start(&summing.softening2),
        false => start(&(summing.softening2 as f32)),
    }
}
