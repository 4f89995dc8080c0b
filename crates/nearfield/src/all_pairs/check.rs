//! What sums over all pairs refuse.

use crate::{Real, SampleGrid, SampleGridError, Sources};
use std::ops::Range;

/// Why a sum over all pairs was refused. Nothing has been computed then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AllPairsError {
    /// A coordinate is NaN or infinite.
    #[error("{what} {index} has {axis} = {value} ({count} of {points} have such coordinates)")]
    Coordinate {
        /// `source` or `target`.
        what: &'static str,
        /// The first such point.
        index: usize,
        /// The first such axis of it.
        axis: char,
        /// Its coordinate.
        value: f64,
        /// Points with such coordinates.
        count: usize,
        /// Points there are.
        points: usize,
    },
    /// A mass or charge is NaN or infinite.
    #[error("source {index} has the weight {value}: masses and charges must be finite")]
    Weight {
        /// The first such source.
        index: usize,
        /// Its weight.
        value: f64,
    },
    /// There is not one mass or charge per point.
    #[error("{found} masses or charges for {expected} points: every source needs one")]
    Weights {
        /// Weights given.
        found: usize,
        /// Points given.
        expected: usize,
    },
    /// The array for the results has another length.
    #[error("there is room for {found} numbers, but the sums are {expected}")]
    Results {
        /// Numbers there is room for.
        found: usize,
        /// Numbers there will be.
        expected: usize,
    },
    /// The softening is no length.
    #[error("the softening is {0}: it must be finite and not negative")]
    Softening(f64),
    /// The grid cannot be used.
    #[error(transparent)]
    Grid(#[from] SampleGridError),
    /// The grid has no such rows.
    #[error("rows {} to {} were asked for, but the grid has {rows}", .asked.start, .asked.end)]
    Rows {
        /// Asked for.
        asked: Range<usize>,
        /// Rows there are.
        rows: usize,
    },
}

pub(super) fn points<T: Real>(what: &'static str, points: &[[T; 3]]) -> Result<(), AllPairsError> {
    let bad = |point: &[T; 3]| point.iter().position(|x| !x.is_finite());
    let mut found = points
        .iter()
        .enumerate()
        .filter_map(|(n, point)| Some((n, bad(point)?)));
    let Some((index, axis)) = found.next() else {
        return Ok(());
    };
    Err(AllPairsError::Coordinate {
        what,
        index,
        axis: ['x', 'y', 'z'][axis],
        value: points[index][axis].double(),
        count: 1 + found.count(),
        points: points.len(),
    })
}

pub(super) fn sources<T: Real>(sources: Sources<'_, T>) -> Result<(), AllPairsError> {
    let (found, expected) = (sources.weights.len(), sources.points.len());
    if found != expected {
        return Err(AllPairsError::Weights { found, expected });
    }
    points("source", sources.points)?;
    match sources
        .weights
        .iter()
        .position(|weight| !weight.is_finite())
    {
        None => Ok(()),
        Some(index) => Err(AllPairsError::Weight {
            index,
            value: sources.weights[index].double(),
        }),
    }
}

pub(super) fn softening<T: Real>(softening: T) -> Result<(), AllPairsError> {
    match softening.is_finite() && softening.double() >= 0.0 {
        true => Ok(()),
        false => Err(AllPairsError::Softening(softening.double())),
    }
}

pub(super) fn results(found: usize, expected: usize) -> Result<(), AllPairsError> {
    match found == expected {
        true => Ok(()),
        false => Err(AllPairsError::Results { found, expected }),
    }
}

pub(super) fn rows(grid: &SampleGrid, asked: &Range<usize>) -> Result<(), AllPairsError> {
    grid.check()?;
    match asked.start <= asked.end && asked.end <= grid.rows() {
        true => Ok(()),
        false => Err(AllPairsError::Rows {
            asked: asked.clone(),
            rows: grid.rows(),
        }),
    }
}
