//! The tank around the fluid: its box, its outline and the grid on its floor.

use glam::Vec3;

/// Spaces of the floor grid along the tank.
const GRID_SPACES: usize = 8;

/// A box with one corner at the origin of the scene.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tank {
    /// Lengths along x, y (depth) and z (height); none is zero or infinite
    /// except the depth, which is zero in two dimensions.
    pub(super) size: Vec3,
}

/// Where a ray leaves the tank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Exit {
    /// The ray misses the tank.
    Missed,
    /// Through the floor.
    Floor,
    /// Through a wall or the open top, at this share of the height.
    Wall(f32),
}

impl Tank {
    /// A tank of the given lengths; a length that cannot be drawn becomes 1.
    pub(super) fn new(lengths: [f32; 3]) -> Self {
        let usable = |length: f32| {
            if length.is_finite() && length > 0.0 {
                length
            } else {
                1.0
            }
        };
        let depth = if lengths[1] == 0.0 {
            0.0
        } else {
            usable(lengths[1])
        };
        Self {
            size: Vec3::new(usable(lengths[0]), depth, usable(lengths[2])),
        }
    }

    /// The edges of a box between two corners, as [`edges`](Self::edges).
    pub(super) fn box_edges(&self, [low, high]: [Vec3; 2]) -> Vec<[Vec3; 2]> {
        let depth = if self.size.y == 0.0 { 0.0 } else { 1.0 };
        let low = low * Vec3::new(1.0, depth, 1.0);
        let block = Self {
            size: (high - low) * Vec3::new(1.0, depth, 1.0),
        };
        let moved = |ends: [Vec3; 2]| ends.map(|end| end + low);
        block.edges().into_iter().map(moved).collect()
    }

    /// The corner whose bits of `index` choose the far end along x, y and z.
    fn corner(&self, index: usize) -> Vec3 {
        let end = |axis: usize| (index >> axis & 1) as f32;
        self.size * Vec3::new(end(0), end(1), end(2))
    }

    /// The eight corners.
    pub(super) fn corners(&self) -> [Vec3; 8] {
        std::array::from_fn(|index| self.corner(index))
    }

    /// The twelve edges; without depth, the four of the front.
    pub(super) fn edges(&self) -> Vec<[Vec3; 2]> {
        let flat = self.size.y == 0.0;
        let edge_of = |corner: usize, axis: usize| [corner, corner | 1 << axis];
        (0..8)
            .flat_map(|corner| (0..3).map(move |axis| (corner, axis)))
            .filter(|&(corner, axis)| corner >> axis & 1 == 0)
            .filter(|&(corner, axis)| !flat || (axis != 1 && corner & 2 == 0))
            .map(|(corner, axis)| edge_of(corner, axis).map(|index| self.corner(index)))
            .collect()
    }

    /// Lines of a square grid on the floor, from the left wall on.
    pub(super) fn floor_grid(&self) -> Vec<[Vec3; 2]> {
        let step = self.size.x / GRID_SPACES as f32;
        let across = (1..GRID_SPACES)
            .map(|i| i as f32 * step)
            .map(|x| [Vec3::X * x, Vec3::new(x, self.size.y, 0.0)]);
        let rows = ((self.size.y / step * 0.999) as usize).min(4 * GRID_SPACES);
        let along = (1..=rows)
            .map(|i| i as f32 * step)
            .map(|y| [Vec3::Y * y, Vec3::new(self.size.x, y, 0.0)]);
        if self.size.y == 0.0 {
            Vec::new()
        } else {
            across.chain(along).collect()
        }
    }

    /// Returns true if the tank, seen along y, covers a point.
    pub(super) fn covers(&self, point: Vec3) -> bool {
        (0.0..=self.size.x).contains(&point.x) && (0.0..=self.size.z).contains(&point.z)
    }

    /// Where the line `origin + s·direction` leaves the tank for large `s`.
    #[inline]
    pub(super) fn exit(&self, origin: Vec3, direction: Vec3) -> Exit {
        let (at_low, at_high) = ((-origin) / direction, (self.size - origin) / direction);
        let enters = at_low.min(at_high).max_element();
        let leaves = at_low.max(at_high);
        let exit = leaves.min_element();
        if !(enters <= exit && exit.is_finite()) {
            Exit::Missed
        } else if leaves.z == exit && direction.z < 0.0 {
            Exit::Floor
        } else {
            Exit::Wall(((origin + direction * exit).z / self.size.z).clamp(0.0, 1.0))
        }
    }

    /// Distance of a point of the floor's plane from the tank's floor.
    #[inline]
    pub(super) fn distance_on_floor(&self, point: Vec3) -> f32 {
        (point - point.clamp(Vec3::ZERO, self.size))
            .truncate()
            .length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TANK: Tank = Tank {
        size: Vec3::new(4.0, 1.0, 2.0),
    };

    #[test]
    fn a_box_has_twelve_edges_and_a_flat_one_four() {
        assert_eq!(TANK.edges().len(), 12);
        let total: f32 = TANK
            .edges()
            .iter()
            .map(|[from, to]| from.distance(*to))
            .sum();
        assert_eq!(total, 4.0 * (4.0 + 1.0 + 2.0));
        let flat = Tank::new([4.0, 0.0, 2.0]);
        assert_eq!(flat.edges().len(), 4);
        assert!(flat.floor_grid().is_empty());
    }

    #[test]
    fn the_grid_is_square_and_inside() {
        let lines = TANK.floor_grid();
        assert_eq!(lines.len(), 7 + 1);
        assert!(
            lines
                .iter()
                .flatten()
                .all(|end| end.cmpge(Vec3::ZERO).all() && end.cmple(TANK.size).all())
        );
    }

    #[test]
    fn rays_leave_through_the_floor_a_wall_or_not_at_all() {
        let from = Vec3::new(2.0, -5.0, 3.0);
        let towards = |target: Vec3| TANK.exit(from, target - from);
        assert_eq!(towards(Vec3::new(1.0, 0.5, 0.0)), Exit::Floor);
        assert_eq!(towards(Vec3::new(1.0, 1.0, 1.0)), Exit::Wall(0.5));
        assert_eq!(towards(Vec3::new(2.0, 1.0, 9.0)), Exit::Missed);
        assert_eq!(TANK.exit(from, Vec3::ZERO), Exit::Missed);
    }

    #[test]
    fn lengths_that_cannot_be_drawn_become_one() {
        assert_eq!(
            Tank::new([f32::NAN, 0.0, -3.0]).size,
            Vec3::new(1.0, 0.0, 1.0)
        );
    }
}
