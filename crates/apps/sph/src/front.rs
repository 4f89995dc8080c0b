//! The rule by which the leading edge of a fluid is found.
//!
//! The front of a dam break is the largest x of fluid within two spacings of
//! the floor that still has at least half as many fluid neighbours as water
//! inside has. Drops that run ahead have fewer and do not count.

use glam::Vec3;

use crate::{Config, Dimensions};

/// Which particles the front of a fluid is sought among; see
/// [`Simulation::front`](crate::Simulation::front).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontRule {
    /// The direction the floor faces.
    pub up: Vec3,
    /// Fluid higher than this does not count, metres.
    pub ceiling: f32,
    /// Fluid with fewer neighbours does not count.
    pub min_neighbors: u32,
}

impl FrontRule {
    /// The rule for fluid of these numerics, whose floor is at zero.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let inside = lattice_neighbors(config.dimensions, 2.0 * config.smoothing);
        Self {
            up: config.dimensions.up(),
            ceiling: 2.0 * config.spacing,
            min_neighbors: inside.div_ceil(2),
        }
    }

    /// Largest x that counts, metres, or `None` when no fluid does.
    /// `neighbors` holds the number of fluid neighbours of each position.
    #[must_use]
    pub fn front(&self, positions: &[Vec3], neighbors: &[u32]) -> Option<f32> {
        positions
            .iter()
            .zip(neighbors)
            .filter(|(x, count)| x.dot(self.up) <= self.ceiling && **count >= self.min_neighbors)
            .map(|(x, _)| x.x)
            .max_by(f32::total_cmp)
    }
}

/// Points of the unit lattice within `radius` of one of them, itself left out.
fn lattice_neighbors(dimensions: Dimensions, radius: f32) -> u32 {
    let reach = radius.floor() as i32;
    let depth = match dimensions {
        Dimensions::Two => 0,
        Dimensions::Three => reach,
    };
    let within = |x: i32, y: i32, z: i32| (x * x + y * y + z * z) as f32 <= radius * radius;
    let count = (-depth..=depth)
        .flat_map(|z| (-reach..=reach).map(move |y| (y, z)))
        .map(|(y, z)| (-reach..=reach).filter(|&x| within(x, y, z)).count() as u32)
        .sum::<u32>();
    count - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FrontRule = FrontRule {
        up: Vec3::Z,
        ceiling: 0.2,
        min_neighbors: 10,
    };

    #[test]
    fn the_front_is_the_foremost_fluid_that_counts() {
        let positions = [
            Vec3::new(1.0, 0.0, 0.1),
            Vec3::new(1.3, 0.0, 0.2),
            Vec3::new(2.0, 0.0, 0.3),
            Vec3::new(1.9, 0.0, 0.1),
        ];
        let neighbors = [20, 10, 20, 9];
        assert_eq!(RULE.front(&positions, &neighbors), Some(1.3));
    }

    #[test]
    fn spray_alone_has_no_front() {
        assert_eq!(RULE.front(&[Vec3::ZERO], &[3]), None);
        assert_eq!(RULE.front(&[], &[]), None);
    }

    #[test]
    fn the_inside_of_water_has_as_many_neighbors_as_its_lattice() {
        assert_eq!(lattice_neighbors(Dimensions::Two, 2.5), 20);
        assert_eq!(lattice_neighbors(Dimensions::Three, 2.5), 80);
        assert_eq!(lattice_neighbors(Dimensions::Three, 2.0), 32);
    }
}
