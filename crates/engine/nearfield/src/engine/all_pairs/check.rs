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
    /// Points are so far apart that the squares of distances overflow.
    #[error(
        "points lie {distance:e} apart, whose square {precision} does not hold: take other units, or f64"
    )]
    TooFar {
        /// Largest side of the box around all points.
        distance: f64,
        /// `f32` or `f64`.
        precision: &'static str,
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

/// Refuses points whose squared distances, with the softening, would overflow.
pub(super) fn extent<T: Real>(
    targets: &[[T; 3]],
    sources: &[[T; 3]],
    softening: T,
) -> Result<(), AllPairsError> {
    // Bodies are both; they are looked at once.
    let targets = if std::ptr::eq(targets, sources) {
        &[]
    } else {
        targets
    };
    let mut ends = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
    for point in targets.iter().chain(sources) {
        for axis in 0..3 {
            ends[0][axis] = ends[0][axis].min(point[axis].double());
            ends[1][axis] = ends[1][axis].max(point[axis].double());
        }
    }
    let wide = |axis: usize| (ends[1][axis] - ends[0][axis]).max(0.0);
    let square = (0..3).map(|axis| wide(axis).powi(2)).sum::<f64>() + softening.double().powi(2);
    match T::of(square).is_finite() {
        true => Ok(()),
        false => Err(AllPairsError::TooFar {
            distance: wide(0).max(wide(1)).max(wide(2)),
            precision: T::NAME,
        }),
    }
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

#[cfg(test)]
mod tests {
    use crate::{Device, Engine, SampleGrid};

    #[test]
    fn squares_that_overflow_are_refused_and_f64_holds_them() {
        let far = [[0.0, 0.0, 0.0], [3e20, 0.0, 0.0]];
        let mut sums = Engine::all_pairs().device(Device::Cpu).build().unwrap();
        let pull: Vec<[f64; 3]> = sums.gravity(&far, &[1e41, 9e40], 0.0).unwrap();
        assert!((pull[0][0] - 1.0).abs() < 1e-12, "{pull:?}");
        let single = far.map(|x| x.map(|x: f64| x as f32));
        let error = sums
            .gravity(&single, &[1.0, 1.0], 0.0)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("e20 apart") && error.contains("f32"),
            "{error}"
        );
        let grid = SampleGrid {
            dims: [2, 2, 2],
            spacing: 1e20,
            origin: [0.0; 3],
        };
        let error = sums
            .coulomb(&grid, &single, &[1.0, 1.0], 0.0)
            .unwrap_err()
            .to_string();
        assert!(error.contains("apart"), "{error}");
    }

    #[test]
    fn rows_that_a_grid_does_not_have_are_refused() {
        let mut sums = Engine::all_pairs().device(Device::Cpu).build().unwrap();
        let grid = SampleGrid {
            dims: [2, 3, 4],
            spacing: 1.0,
            origin: [0.0; 3],
        };
        let atoms = (&[[0.5f32; 3]][..], &[1.0][..]);
        let backwards = std::ops::Range { start: 5, end: 4 };
        for rows in [11..13, 13..13, 0..usize::MAX, backwards] {
            let mut results = [7.0; 48];
            let count = 2 * rows.len().min(24);
            let results = &mut results[..count];
            let error = sums.coulomb_rows(&grid, rows.clone(), atoms, 0.0, results);
            let text = error.unwrap_err().to_string();
            let named = format!("rows {} to {} were asked for", rows.start, rows.end);
            assert!(text.contains(&named) && text.contains("has 12"), "{text}");
            assert!(
                results.iter().all(|&one| one == 7.0),
                "something was written"
            );
        }
        let mut last = [7.0; 2];
        sums.coulomb_rows(&grid, 11..12, atoms, 0.0, &mut last)
            .unwrap();
        assert!(last.iter().all(|&one| one < 1.0));
    }

    #[test]
    fn what_cannot_be_summed_is_refused_by_index() {
        let mut sums = Engine::all_pairs().device(Device::Cpu).build().unwrap();
        let mut refused = |at: &[[f32; 3]], masses: &[f32], softening: f32| {
            sums.gravity(at, masses, softening).unwrap_err().to_string()
        };
        let bad = [[0.0; 3], [1.0, f32::NAN, 0.0], [f32::INFINITY; 3]];
        let text = refused(&bad, &[1.0; 3], 0.0);
        assert!(text.contains("1 has y = NaN (2 of 3"), "{text}");
        let text = refused(&[[0.0; 3]; 2], &[1.0, f32::INFINITY], 0.0);
        assert!(text.contains("source 1 has the weight inf"), "{text}");
        assert!(refused(&[[0.0; 3]; 2], &[1.0], 0.0).contains("1 masses or charges for 2"));
        assert!(refused(&[[0.0; 3]], &[1.0], -0.5).contains("softening is -0.5"));
    }
}
