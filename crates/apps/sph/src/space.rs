//! The space that particles move in: its dimensions and its bounds.

use glam::Vec3;

/// Whether particles move in the plane z = 0 or in space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimensions {
    /// Two dimensions; every z is zero.
    Two,
    /// Three dimensions.
    Three,
}

impl Dimensions {
    /// 2 or 3.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }

    /// The direction scenes of this crate call up: y in the plane, z in space.
    #[must_use]
    pub fn up(self) -> Vec3 {
        match self {
            Self::Two => Vec3::Y,
            Self::Three => Vec3::Z,
        }
    }
}

/// A box that no particle may leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    /// Lowest corner, metres.
    pub low: Vec3,
    /// Highest corner, metres.
    pub high: Vec3,
}

impl Domain {
    /// All of space.
    pub const UNBOUNDED: Self = Self {
        low: Vec3::NEG_INFINITY,
        high: Vec3::INFINITY,
    };

    /// Whether the box holds `point`; a NaN is nowhere.
    #[must_use]
    pub fn contains(&self, point: Vec3) -> bool {
        point.cmpge(self.low).all() && point.cmple(self.high).all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_holds_no_nan() {
        assert!(Domain::UNBOUNDED.contains(Vec3::splat(1e30)));
        assert!(!Domain::UNBOUNDED.contains(Vec3::new(0.0, f32::NAN, 0.0)));
    }
}
