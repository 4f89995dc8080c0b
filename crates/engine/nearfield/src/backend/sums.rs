//! A sum over all pairs as a backend gets it: everything but memory for its results.
//!
//! Sums have no lists and no cells, so they need no [step's input](super::StepInput). The engine
//! has checked every number. Two backends share a sum by [cutting its targets](Targets::split), and
//! every result is that of a single backend.

use crate::{
    Error,
    all_pairs::{PairSumSettings, Real, SampleGrid, Sources},
};
use nearfield_cpu::CpuBackend;
use std::ops::Range;

/// The sum, its sources and its targets.
#[derive(Clone)]
pub(crate) struct SumWork<'a, T> {
    pub(crate) settings: PairSumSettings<T>,
    pub(crate) targets: Targets<'a, T>,
    pub(crate) sources: Sources<'a, T>,
}

/// The targets of a sum.
#[derive(Clone)]
pub(crate) enum Targets<'a, T> {
    Points(&'a [[T; 3]]),
    /// Rows of a grid: row y + ny·z holds the points at y and z.
    Rows(&'a SampleGrid, Range<usize>),
}

impl<T> Targets<'_, T> {
    /// Points there are.
    pub(crate) fn points(&self) -> usize {
        match self {
            Self::Points(points) => points.len(),
            Self::Rows(grid, rows) => grid.dims[0] * rows.len(),
        }
    }

    /// Number of units that are divided between the backends: points or rows.
    pub(crate) fn units(&self) -> usize {
        match self {
            Self::Points(points) => points.len(),
            Self::Rows(_, rows) => rows.len(),
        }
    }

    /// The first `units` and the others.
    fn split(self, units: usize) -> (Self, Self) {
        match self {
            Self::Points(points) => {
                let (first, others) = points.split_at(units);
                (Self::Points(first), Self::Points(others))
            }
            Self::Rows(grid, Range { start, end }) => {
                let border = start + units;
                (
                    Self::Rows(grid, start..border),
                    Self::Rows(grid, border..end),
                )
            }
        }
    }
}

impl<T: Real> SumWork<'_, T> {
    /// The sum for the first `units` of its targets, and for the others.
    ///
    /// `units` is at most [`Targets::units`]. Both halves borrow all sources: they are not divided.
    pub(crate) fn split(self, units: usize) -> (Self, Self) {
        let Self {
            settings,
            targets,
            sources,
        } = self;
        let (first, others) = targets.split(units);
        let of = |targets| Self {
            settings,
            targets,
            sources,
        };
        (of(first), of(others))
    }

    /// Sums on the CPU backend; `results` has [`PairSum::components`] numbers for every target.
    ///
    /// [`PairSum::components`]: crate::all_pairs::PairSum::components
    pub(crate) fn on_cpu(self, cpu: &CpuBackend, results: &mut [T]) -> Result<(), Error> {
        let Self {
            settings,
            targets,
            sources,
        } = self;
        match targets {
            Targets::Points(points) => cpu.sum_pairs(settings, points, sources, results)?,
            Targets::Rows(grid, rows) => {
                cpu.sum_pairs_on_grid(settings, grid, rows, sources, results)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_where_points_are() {
        let grid = SampleGrid {
            dims: [3, 4, 5],
            spacing: 1.0,
            origin: [0.0; 3],
        };
        let rows = Targets::<f32>::Rows(&grid, 2..12);
        assert_eq!((rows.units(), rows.points()), (10, 30));
        let (first, others) = rows.split(4);
        assert_eq!((first.points(), others.points()), (12, 18));
        let Targets::Rows(_, range) = others else {
            panic!("they are rows")
        };
        assert_eq!(range, 6..12);
    }
}
