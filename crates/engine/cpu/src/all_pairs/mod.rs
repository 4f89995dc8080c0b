//! Sums over all pairs of targets and sources, without a radius.
//!
//! [`PairSum`] defines the sums and their order; here they are computed by vectors of targets. An
//! infinite radius is one cell: every target meets every source, tile by tile, and no list or mask
//! is needed.
//!
//! **Invariant:** in the exact form results depend on the input and the [`Arithmetic`] alone. In
//! the fast form they also depend on the level and the processor, whose estimates of 1/√x differ,
//! but never on the number of threads.
//!
//! # Parallelism
//!
//! Targets are divided into chunks of 64 to 512, so that all threads have several. No target's sum
//! depends on the others, so the division does not change results. Each chunk walks all sources; a
//! tile of 128 sources fits the first-level cache and is read by all vectors of the chunk.
//!
//! # Grids
//!
//! Points on a regular grid share coordinates: along a row only x differs. Rows of a potential are
//! summed with the parts of d² along y and z computed once per row and tile. A pull has no such
//! shortcut, so its points are targets like any others, made a slab at a time to bound memory.

mod loops;
mod sums;

use crate::{
    error::{Error, ErrorKind, check_outputs},
    pool::CpuBackend,
    simd::with_level,
};
use bytemuck::cast_slice;
pub(crate) use loops::Levels;
use loops::{CHUNK, ChunkTask, Targets};
use nearfield_grid::{memory::Shortage, parallel::PoolLoops};
use nearfield_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources};
use rayon::prelude::*;
use std::{marker::PhantomData, ops::Range};
use sums::{Potential, Pull, Sum};

/// Minimum number of targets of a task: a few of the widest vectors.
const MIN_CHUNK: usize = 64;
/// Minimum number of tasks per thread, where there are targets enough.
const SHARES: usize = 4;

/// Points of a grid whose pull is summed at a time; it bounds the memory for their positions.
const FIELD_POINTS: usize = 1 << 16;

impl CpuBackend {
    /// Sums over all `sources` for every target; [`PairSum::components`] numbers a target go to
    /// `results`.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when there is not one weight per source,
    /// [`ErrorKind::OutputLength`] when `results` is not as long as it has to be, and
    /// [`ErrorKind::Threads`] if the system does not start the threads that were asked for.
    pub fn sum_pairs<T: Real>(
        &self,
        settings: PairSumSettings<T>,
        targets: &[[T; 3]],
        sources: Sources<'_, T>,
        results: &mut [T],
    ) -> Result<(), Error> {
        check_sources(&sources)?;
        check_outputs(results.len(), settings.sum.components() * targets.len())?;
        let _span = tracing::debug_span!(
            "cpu.sum_pairs",
            targets = targets.len(),
            sources = sources.points.len()
        )
        .entered();
        self.start()?;
        // `Real` is f32 or f64, which differ in size; each is cast to itself.
        match size_of::<T>() {
            4 => {
                let e = settings.softening.double() as f32;
                let call = Call::new(self, settings.sum, settings.arithmetic, e, same(sources));
                call.points(cast_slice(targets), bytemuck::cast_slice_mut(results));
            }
            _ => {
                let e = settings.softening.double();
                let call = Call::new(self, settings.sum, settings.arithmetic, e, same(sources));
                call.points(cast_slice(targets), bytemuck::cast_slice_mut(results));
            }
        }
        Ok(())
    }

    /// The same for the points of the rows `rows` of a grid, in order.
    ///
    /// # Errors
    /// As [`sum_pairs`](Self::sum_pairs), and
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); `results` is for the points of
    /// those rows.
    pub fn sum_pairs_on_grid<T: Real>(
        &self,
        settings: PairSumSettings<T>,
        grid: &SampleGrid,
        rows: Range<usize>,
        sources: Sources<'_, T>,
        results: &mut [T],
    ) -> Result<(), Error> {
        check_sources(&sources)?;
        let components = settings.sum.components();
        let row = components.saturating_mul(grid.dims[0]);
        check_outputs(results.len(), row.saturating_mul(rows.len()))?;
        if results.is_empty() {
            return Ok(());
        }
        if settings.sum == PairSum::Pull {
            // The points of a row share no part of a pull, so they are targets like others.
            let step = (FIELD_POINTS / grid.dims[0]).max(1);
            let parts = results.chunks_mut(components * step * grid.dims[0]);
            for (first, results) in rows.clone().step_by(step).zip(parts) {
                let part = first..(first + step).min(rows.end);
                let points = part.len().saturating_mul(grid.dims[0]);
                let points = (grid.points(part))
                    .map_err(|_| Shortage::of::<[T; 3]>(points, "points of a grid"))?;
                self.sum_pairs(settings, &points, sources, results)?;
            }
            return Ok(());
        }
        let _span = tracing::debug_span!(
            "cpu.sum_pairs",
            targets = results.len(),
            sources = sources.points.len()
        )
        .entered();
        self.start()?;
        match size_of::<T>() {
            4 => {
                let e = settings.softening.double() as f32;
                let call = Call::new(self, settings.sum, settings.arithmetic, e, same(sources));
                call.rows(grid, rows.start, bytemuck::cast_slice_mut(results))?;
            }
            _ => {
                let e = settings.softening.double();
                let call = Call::new(self, settings.sum, settings.arithmetic, e, same(sources));
                call.rows(grid, rows.start, bytemuck::cast_slice_mut(results))?;
            }
        }
        Ok(())
    }
}

/// Casts sources of type `T` to the same type, named `U`.
fn same<T: Real, U: Real>(sources: Sources<'_, T>) -> Sources<'_, U> {
    Sources {
        points: cast_slice(sources.points),
        weights: cast_slice(sources.weights),
    }
}

fn check_sources<T>(sources: &Sources<'_, T>) -> Result<(), Error> {
    let (found, expected) = (sources.weights.len(), sources.points.len());
    if found != expected {
        return Err(ErrorKind::FieldLength {
            role: "source",
            field: 0,
            found,
            expected,
        }
        .into());
    }
    Ok(())
}

/// A sum of one precision.
struct Call<'a, T> {
    /// The workers and the level.
    backend: &'a CpuBackend,
    /// The kind of sum.
    sum: PairSum,
    /// Exact or fast.
    arithmetic: Arithmetic,
    /// Squared softening.
    softening2: T,
    /// All sources.
    sources: Sources<'a, T>,
}

impl<'a, T: Levels> Call<'a, T> {
    fn new(
        backend: &'a CpuBackend,
        sum: PairSum,
        arithmetic: Arithmetic,
        softening: T,
        sources: Sources<'a, T>,
    ) -> Self {
        Self {
            backend,
            sum,
            arithmetic,
            softening2: softening * softening,
            sources,
        }
    }

    /// Few targets are divided more finely, so that all threads have some.
    fn points(&self, targets: &[[T; 3]], results: &mut [T]) {
        // Few targets are divided more finely, so that all threads have some: no target's sum
        // depends on which others are summed with it.
        let each = targets.len().div_ceil(SHARES * self.backend.threads());
        let chunk = each.next_multiple_of(MIN_CHUNK).clamp(MIN_CHUNK, CHUNK);
        let size = chunk * self.sum.components();
        self.backend.install(|| {
            let chunks = targets.par_chunks(chunk).zip(results.par_chunks_mut(size));
            chunks.run(|(targets, results)| self.chunk(targets, results));
        });
    }

    /// Potentials on whole rows, the first one being row `first` of the grid.
    fn rows(&self, grid: &SampleGrid, first: usize, results: &mut [T]) -> Result<(), Error> {
        let axis = |axis: usize| {
            let short = |_| Shortage::of::<T>(grid.dims[axis], "coordinates of a grid");
            grid.axis::<T>(axis).map_err(short)
        };
        let (xs, ys, zs) = (axis(0)?, axis(1)?, axis(2)?);
        let rows = results.par_chunks_mut(grid.dims[0]).enumerate();
        self.backend.install(|| {
            rows.run(|(row, results)| {
                let (y, z) = (ys[(first + row) % ys.len()], zs[(first + row) / ys.len()]);
                let chunks = xs.par_chunks(CHUNK).zip(results.par_chunks_mut(CHUNK));
                chunks.run(|(xs, results)| self.row(xs, [y, z], results));
            });
        });
        Ok(())
    }

    /// Sums of at most [`CHUNK`] points.
    ///
    /// The four combinations are compiled separately, for each precision and level.
    fn chunk(&self, targets: &[[T; 3]], results: &mut [T]) {
        let targets = Targets::Points(targets);
        match (self.sum, self.arithmetic) {
            (PairSum::Potential, Arithmetic::Fast) => {
                self.task::<Potential, 1, false, false>(targets, results)
            }
            (PairSum::Potential, Arithmetic::Exact) => {
                self.task::<Potential, 1, true, false>(targets, results)
            }
            (PairSum::Pull, Arithmetic::Fast) => {
                self.task::<Pull, 3, false, false>(targets, results)
            }
            (PairSum::Pull, Arithmetic::Exact) => {
                self.task::<Pull, 3, true, false>(targets, results)
            }
        }
    }

    /// Potentials of at most [`CHUNK`] points of a row.
    fn row(&self, xs: &[T], yz: [T; 2], results: &mut [T]) {
        let targets = Targets::Row(xs, yz);
        match self.arithmetic {
            Arithmetic::Fast => self.task::<Potential, 1, false, true>(targets, results),
            Arithmetic::Exact => self.task::<Potential, 1, true, true>(targets, results),
        }
    }

    fn task<O: Sum<C>, const C: usize, const EXACT: bool, const ROW: bool>(
        &self,
        targets: Targets<'_, T>,
        results: &mut [T],
    ) {
        let task = ChunkTask::<'_, T, O, C, EXACT, ROW> {
            targets,
            sources: self.sources,
            softening2: self.softening2,
            results,
            sum: PhantomData,
        };
        with_level(self.backend.level(), task);
    }
}
