//! Pairs whose distance is the radius but for a hair: rounding decides whether they are neighbours,
//! and codes with `<` instead of `≤` leave them out.
//!
//! They are those within the radius and a millionth more, without those within a millionth less:
//! two counts, which cost less than the search that the lists took. Of points without order some
//! pairs lie there by chance, which is not worth a word.

use crate::output::tell as say;
use nearfield::{Builder, Engine, Error, PointSetId, Precision};

/// How near to the radius, as a share of it.
const NEAR: f64 = 1e-6;

/// Counts pairs near the radius, directed as those of lists are, and says on standard error when
/// they are more than chance puts there. Positions in double precision, where `exact` has them, are
/// counted in it: in single precision rounding alone can move a pair farther than a millionth.
pub(crate) fn tell<'a>(
    engine: Engine,
    points: PointSetId,
    radius: f64,
    all: u64,
    exact: impl FnOnce() -> Option<(Builder, &'a Vec<[f64; 3]>)>,
) -> Option<u64> {
    // The share of a ball's volume that lies within its shell.
    let share_by_chance = 3.0 * 2.0 * NEAR;
    let counted = match exact() {
        Some((builder, positions)) if engine.precision() == Precision::Single => {
            // Its memory is needed.
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
            say(format_args!(
                "{pairs} pairs within {NEAR:e} of the radius {radius} (as a share of it; directed): \
                 rounding decides which of them are neighbours"
            ));
            Some(pairs)
        }
        Err(error) => {
            say(format_args!(
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
