//! Radii of single points, as features that are timed.

use super::{Feature, PLAIN, Plain, Side, feature};
use nearfield::prelude::*;

/// Radii of the points of a case.
#[derive(Debug, Clone, Copy)]
pub(super) enum Radii {
    /// That of the engine.
    One,
    /// `small`, and `large` for one of `every` points.
    Own {
        small: f32,
        large: f32,
        every: usize,
    },
}

impl Radii {
    /// Makes the largest radius that of the engine.
    pub(super) fn allow(self, engine: &mut Engine) -> Result<(), Error> {
        match self {
            Self::One => Ok(()),
            Self::Own { large, .. } => engine.set_radius(large),
        }
    }

    /// Gives a set of an engine its radii.
    pub(super) fn give(self, engine: &mut Engine, id: PointSetId) -> Result<(), Error> {
        let Self::Own {
            small,
            large,
            every,
        } = self
        else {
            return Ok(());
        };
        let radius = |k: usize| if k % every == every / 2 { large } else { small };
        let radii: Vec<f32> = (0..engine.points(id)?).map(radius).collect();
        engine.set_radii(id, &radii)
    }
}

/// Equal radii, one far larger than all others, and some larger ones.
pub(super) fn features(plain: &Plain) -> Vec<Feature> {
    let (radius, points) = (plain.radius, plain.points.len());
    let with = |times: f32, every: usize, rule: RadiusRule| Side {
        radii: Radii::Own {
            small: radius,
            large: times * radius,
            every,
        },
        ..plain.side.with(|builder| builder.radii(rule))
    };
    let (gather, symmetric) = (RadiusRule::Gather, RadiusRule::Symmetric);
    vec![
        feature(
            "a radius per point (all equal)",
            with(1.0, 1, symmetric),
            &PLAIN,
        ),
        feature(
            "one radius a hundred times the others, gather",
            with(100.0, points, gather),
            &PLAIN,
        ),
        feature(
            "one radius a hundred times the others, symmetric",
            with(100.0, points, symmetric),
            &PLAIN,
        ),
        feature(
            "one radius in ten three times the others, gather",
            with(3.0, 10, gather),
            &PLAIN,
        ),
        feature(
            "one radius in ten three times the others, symmetric",
            with(3.0, 10, symmetric),
            &PLAIN,
        ),
    ]
}
