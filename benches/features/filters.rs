//! Filters of neighbours, as features that are timed.

use super::{Feature, PLAIN, Side, feature};
use nearfield::prelude::*;
use nearfield_testkit::random::Random;

/// Data of points that leave out pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Filter {
    None,
    /// Of four types, in turn.
    Types,
    /// The eight points before and after in the caller's order.
    Bonded,
    /// Points of the same three in a row.
    Molecules,
    /// One point in ten, anywhere.
    Chosen,
}

impl Filter {
    /// Gives a set of an engine its data.
    pub(super) fn give(self, engine: &mut Engine, id: PointSetId) -> Result<(), Error> {
        let points = engine.points(id)? as u32;
        match self {
            Self::None => Ok(()),
            Self::Types => {
                let types: Vec<u8> = (0..points).map(|i| (i % 4) as u8).collect();
                engine.set_types(id, &types)
            }
            Self::Bonded => {
                let (mut offsets, mut indices) = (vec![0], Vec::new());
                for i in 0..points {
                    let near = i.saturating_sub(4)..points.min(i + 5);
                    indices.extend(near.filter(|&j| j != i));
                    offsets.push(indices.len() as u64);
                }
                engine.set_exclusions(id, &offsets, &indices)
            }
            Self::Molecules => {
                let of_points: Vec<u32> = (0..points).map(|i| i / 3).collect();
                engine.set_molecules(id, &of_points)
            }
            Self::Chosen => {
                let mut random = Random::new(3);
                let mask: Vec<bool> = (0..points).map(|_| random.below(10) == 0).collect();
                engine.set_target_mask(id, &mask)
            }
        }
    }
}

/// Filters of neighbours. Cut-offs of three pairs of types in ten are shorter than the radius.
pub(super) fn all(plain: &Side, radius: f32) -> Vec<Feature> {
    let all = PLAIN.as_slice();
    let with = |filter| Side {
        filter,
        ..plain.clone()
    };
    let r = f64::from(radius);
    let [a, b, c] = [0.7 * r, 0.8 * r, 0.9 * r];
    let cutoffs = [[r, r, r, a], [r, r, b, r], [r, b, c, r], [a, r, r, r]];
    vec![
        feature(
            "cut-offs of four types",
            with(Filter::Types).with(|builder| builder.cutoffs(&cutoffs)),
            all,
        ),
        feature("exclusions, eight a point", with(Filter::Bonded), all),
        feature(
            "exclusions by molecule, three points",
            with(Filter::Molecules),
            all,
        ),
        feature("one target in ten", with(Filter::Chosen), all),
        feature(
            "the 16 nearest",
            plain.with(|builder| builder.nearest(16)),
            all,
        ),
    ]
}
