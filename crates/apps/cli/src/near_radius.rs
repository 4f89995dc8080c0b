//! Counts pairs whose distance is almost exactly the radius. Rounding decides whether they are
//! neighbours, and codes with `<` instead of `≤` leave them out.
//!
//! The number is the difference of two counts, with radii a millionth larger and smaller. They cost
//! less than the search for lists. Among disordered points a few pairs lie there by chance; they
//! are not reported.

use crate::output::notice;
use nearfield::{Builder, Engine, Error, PointSetId, Precision};

/// Half the width of the shell, as a share of the radius.
const NEAR: f64 = 1e-6;

/// Counts directed pairs near the radius, and reports them on standard error if there are more than
/// chance explains. If `exact` returns positions in double precision, they are counted in it,
/// because in single precision rounding alone can move a pair farther than a millionth.
pub(crate) fn report<'a>(
    engine: Engine,
    points: PointSetId,
    radius: f64,
    all: u64,
    exact: impl FnOnce() -> Option<(Builder, &'a Vec<[f64; 3]>)>,
) -> Option<u64> {
    // The volume of the shell as a share of the ball's.
    let share_by_chance = 3.0 * 2.0 * NEAR;
    let counted = match exact() {
        Some((builder, positions)) if engine.precision() == Precision::Single => {
            // Frees its memory for the next engine.
            drop(engine);
            builder.build().and_then(|mut engine| {
                let points = engine.add_point_set(positions)?;
                count(engine, points)
            })
        }
        _ => count(engine, points),
    };
    match counted {
        Ok(pairs) if pairs as f64 <= 4.0 * share_by_chance * all as f64 => Some(pairs),
        Ok(pairs) => {
            notice(format_args!(
                "{pairs} pairs within {NEAR:e} of the radius {radius} (as a share of it; directed): \
                 rounding decides which of them are neighbours"
            ));
            Some(pairs)
        }
        Err(error) => {
            notice(format_args!(
                "pairs near the radius are not counted: {error}"
            ));
            None
        }
    }
}

fn count(mut engine: Engine, points: PointSetId) -> Result<u64, Error> {
    let radius = engine.radius();
    let mut within = |share: f64| {
        engine.set_radius(radius * share)?;
        let counts = engine.count_neighbors(points, points)?;
        Ok::<u64, Error>(counts.iter().map(|&count| u64::from(count)).sum())
    };
    let (less, more) = (within(1.0 - NEAR)?, within(1.0 + NEAR)?);
    Ok(more.saturating_sub(less))
}
