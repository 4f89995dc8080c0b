//! What sums over all pairs refuse.
//!
//! Every check looks at all of its input before anything is summed, in one pass over the array on
//! the calling thread. That is negligible compared with sums over all pairs, which pass over it
//! once per target. Errors of coordinates and weights name the first that is wrong.

use crate::{
    Error, ErrorKind,
    all_pairs::{Real, SampleGrid, Sources},
};
use std::ops::Range;

/// Refuses coordinates that are NaN or infinite. `what` is the role of the points in the message.
pub(super) fn points<T: Real>(what: &'static str, points: &[[T; 3]]) -> Result<(), Error> {
    let bad = |point: &[T; 3]| point.iter().position(|x| !x.is_finite());
    let mut found = points
        .iter()
        .enumerate()
        .filter_map(|(n, point)| Some((n, bad(point)?)));
    let Some((index, axis)) = found.next() else {
        return Ok(());
    };
    Err(ErrorKind::Coordinate {
        what,
        index,
        axis: ['x', 'y', 'z'][axis],
        value: points[index][axis].double(),
        count: 1 + found.count(),
        points: points.len(),
    }
    .into())
}

/// Refuses points whose squared distances, with the softening, would overflow.
///
/// The square of the diagonal of the box around all points bounds every squared distance. It is
/// computed in `f64` and tested in the precision of the sum.
pub(super) fn extent<T: Real>(
    targets: &[[T; 3]],
    sources: &[[T; 3]],
    softening: T,
) -> Result<(), Error> {
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
        false => Err(ErrorKind::TooFarApart {
            distance: wide(0).max(wide(1)).max(wide(2)),
            precision: T::NAME,
        }
        .into()),
    }
}

/// Refuses sources without one weight each, and weights that are NaN or infinite. Negative weights
/// are charges.
pub(super) fn sources<T: Real>(sources: Sources<'_, T>) -> Result<(), Error> {
    let (found, expected) = (sources.weights.len(), sources.points.len());
    if found != expected {
        return Err(ErrorKind::WeightsLength { found, expected }.into());
    }
    points("source", sources.points)?;
    match sources
        .weights
        .iter()
        .position(|weight| !weight.is_finite())
    {
        None => Ok(()),
        Some(index) => Err(ErrorKind::Weight {
            index,
            value: sources.weights[index].double(),
        }
        .into()),
    }
}

/// Refuses a softening that is negative, NaN or infinite.
pub(super) fn softening<T: Real>(softening: T) -> Result<(), Error> {
    match softening.is_finite() && softening.double() >= 0.0 {
        true => Ok(()),
        false => Err(ErrorKind::Softening(softening.double()).into()),
    }
}

/// Both are numbers, not targets: three per target for accelerations and fields.
pub(super) fn results(found: usize, expected: usize) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(ErrorKind::ResultsLength { found, expected }.into()),
    }
}

/// Refuses grids that are none and rows behind the last. An empty range of rows is allowed.
pub(super) fn rows(grid: &SampleGrid, asked: &Range<usize>) -> Result<(), Error> {
    grid.check()?;
    match asked.start <= asked.end && asked.end <= grid.rows() {
        true => Ok(()),
        false => Err(ErrorKind::GridRows {
            asked: asked.clone(),
            rows: grid.rows(),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Device, Engine,
        all_pairs::{SampleGrid, Sources},
    };

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
        let atoms = Sources {
            points: &[[0.5f32; 3]],
            weights: &[1.0],
        };
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
