//! Sums over all pairs of targets and sources, without a radius.
//!
//! What is computed, and in which order, stands with [`PairSum`]; here it is done by vectors of
//! targets. **What others rely on:** results depend on the input and the [`Arithmetic`] alone in the
//! exact form; in the fast form also on the level and the processor, whose estimates differ, but
//! never on the number of threads.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod loops;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod sums;
#[cfg(test)]
mod tests;
mod wide;

use crate::{CpuBackend, Error, simd::with_level};
use bytemuck::cast_slice;
use loops::{CHUNK, ChunkTask, Levels, Targets};
use nearfield_grid::{memory::Shortage, parallel::PoolLoops};
use nearfield_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources};
use rayon::prelude::*;
use std::{marker::PhantomData, ops::Range};
use sums::{Potential, Pull, Sum};
pub(crate) use wide::Wide;

/// Backends of the widest vector.
pub(crate) const MAX_LANES: usize = 16;

/// Targets that are worth a task: a few of the widest vectors.
const MIN_CHUNK: usize = 64;
/// Tasks a thread at least, where there are targets enough.
const SHARES: usize = 4;

/// Points whose sums are taken, of a grid of the field, at a time: what they take beside the result.
const FIELD_POINTS: usize = 1 << 16;

impl CpuBackend {
    /// Sums over all `sources` for every target; [`PairSum::components`] numbers a target go to
    /// `results`.
    ///
    /// # Errors
    /// [`Error::FieldLength`] when there is not one weight per source, [`Error::OutputLength`] when
    /// `results` is not as long as it has to be.
    pub fn sum_pairs<T: Real>(
        &self,
        settings: PairSumSettings<T>,
        targets: &[[T; 3]],
        sources: Sources<'_, T>,
        results: &mut [T],
    ) -> Result<(), Error> {
        check_sources(&sources)?;
        check_results(results.len(), settings.sum.components() * targets.len())?;
        let _span = tracing::debug_span!(
            "cpu.sum_pairs",
            targets = targets.len(),
            sources = sources.points.len()
        )
        .entered();
        // There are two such types, which differ in size; each is told to be what it is.
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
    /// As [`sum_pairs`](Self::sum_pairs), and [`Error::OutOfMemory`]; `results` is for the points of
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
        check_results(results.len(), row.saturating_mul(rows.len()))?;
        if results.is_empty() {
            return Ok(());
        }
        if settings.sum == PairSum::Pull {
            // Of a field there is nothing that a row shares: its points are targets like others.
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

/// Sources as the type that they are.
fn same<T: Real, U: Real>(sources: Sources<'_, T>) -> Sources<'_, U> {
    Sources {
        points: cast_slice(sources.points),
        weights: cast_slice(sources.weights),
    }
}

fn check_sources<T>(sources: &Sources<'_, T>) -> Result<(), Error> {
    match sources.points.len() == sources.weights.len() {
        true => Ok(()),
        false => Err(Error::FieldLength {
            role: "source",
            field: 0,
            found: sources.weights.len(),
            expected: sources.points.len(),
        }),
    }
}

fn check_results(found: usize, expected: usize) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::OutputLength { found, expected }),
    }
}

/// A sum of one precision.
struct Call<'a, T> {
    backend: &'a CpuBackend,
    sum: PairSum,
    arithmetic: Arithmetic,
    softening2: T,
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

    fn points(&self, targets: &[[T; 3]], results: &mut [T]) {
        // Few targets are divided more finely, so that all threads have some: no target's sum depends on
        // which others are summed with it.
        let each = targets.len().div_ceil(SHARES * self.backend.threads());
        let chunk = each.next_multiple_of(MIN_CHUNK).clamp(MIN_CHUNK, CHUNK);
        let size = chunk * self.sum.components();
        self.backend.install(|| {
            let chunks = targets.par_chunks(chunk).zip(results.par_chunks_mut(size));
            chunks.run(|(targets, results)| self.chunk(targets, results));
        });
    }

    /// Potentials on whole rows from `first` on.
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
