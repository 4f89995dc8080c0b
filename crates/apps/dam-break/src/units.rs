//! The units of dam-break experiments: T = t·√(2g/a) and Z = x/a.

use crate::scene::Scene;

/// Converts between seconds and metres and the experiments' units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Units {
    /// √(2g/a), 1/s.
    rate: f64,
    /// a, metres.
    width: f64,
}

impl Units {
    /// The units of a scene: a is the length of its first box of water.
    pub(crate) fn of(scene: &Scene) -> Self {
        let width = scene.width();
        Self {
            rate: (2.0 * scene.gravity / width).sqrt(),
            width,
        }
    }

    /// T at time `seconds`.
    pub(crate) fn scaled_time(self, seconds: f64) -> f64 {
        self.rate * seconds
    }

    /// The time, seconds, at which T is `scaled`.
    pub(crate) fn seconds(self, scaled: f64) -> f64 {
        scaled / self.rate
    }

    /// Z at `metres` from the wall.
    pub(crate) fn scaled_length(self, metres: f64) -> f64 {
        metres / self.width
    }
}
