//! Blocks of fluid and tanks of wall particles on one lattice.
//!
//! Both sit at the centres of the lattice cells, so fluid that touches a wall
//! starts half a spacing away from its surface, and the first wall layer lies
//! half a spacing behind it.

use glam::{IVec3, Vec3};
use nearfield_grid::memory::collected;

use crate::{Dimensions, Error};

/// Centre of the lattice cell `cell`, with the origin at a corner of cell 0.
fn center(dimensions: Dimensions, cell: IVec3, spacing: f32) -> Vec3 {
    let middle = (cell.as_vec3() + 0.5) * spacing;
    match dimensions {
        Dimensions::Two => middle.with_z(0.0),
        Dimensions::Three => middle,
    }
}

/// Visits the cells low ≤ cell < high, x fastest; in the plane only z = 0.
fn cells(dimensions: Dimensions, low: IVec3, high: IVec3) -> impl Iterator<Item = IVec3> {
    let layers = match dimensions {
        Dimensions::Two => 0..1,
        Dimensions::Three => low.z..high.z,
    };
    layers.flat_map(move |z| {
        (low.y..high.y).flat_map(move |y| (low.x..high.x).map(move |x| IVec3::new(x, y, z)))
    })
}

/// A block of fluid: the particles of the cells `low ≤ cell < high`.
///
/// In the plane the z components of both corners are ignored.
///
/// # Errors
/// When there is no memory for the particles.
pub fn block(
    dimensions: Dimensions,
    low: [i32; 3],
    high: [i32; 3],
    spacing: f32,
) -> Result<Vec<Vec3>, Error> {
    let cells = cells(dimensions, low.into(), high.into());
    let positions = cells.map(|cell| center(dimensions, cell, spacing));
    Ok(collected(positions, "positions of a block")?)
}

/// Whether a tank has a lid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// No wall above (at the end of y in the plane, of z in space).
    Open,
    /// A wall above as on the other sides.
    Closed,
}

/// The walls of a tank whose inside is the cells `0 ≤ cell < inside`, `layers`
/// particles thick, `spacing` metres apart.
///
/// Two smoothing lengths over the spacing, rounded up, is thick enough that a
/// particle at the wall sees no end of it.
///
/// # Errors
/// When there is no memory for the particles.
pub fn tank(
    dimensions: Dimensions,
    inside: [i32; 3],
    top: Top,
    layers: i32,
    spacing: f32,
) -> Result<Vec<Vec3>, Error> {
    let inside = IVec3::from(inside);
    let missing = match top {
        Top::Open => layers * dimensions.up().as_ivec3(),
        Top::Closed => IVec3::ZERO,
    };
    let walls = cells(dimensions, IVec3::splat(-layers), inside + layers - missing)
        .filter(|cell| {
            let outside = cell.cmplt(IVec3::ZERO) | cell.cmpge(inside);
            match dimensions {
                Dimensions::Two => outside.x || outside.y,
                Dimensions::Three => outside.any(),
            }
        })
        .map(|cell| center(dimensions, cell, spacing));
    Ok(collected(walls, "positions of a tank")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fills_its_cells() {
        let plane = block(Dimensions::Two, [0; 3], [4, 3, 9], 0.5).unwrap();
        assert_eq!(plane.len(), 12);
        assert_eq!(plane[0], Vec3::new(0.25, 0.25, 0.0));
        assert_eq!(
            block(Dimensions::Three, [1, 0, 0], [4, 3, 2], 0.5)
                .unwrap()
                .len(),
            18
        );
    }

    #[test]
    fn a_tank_has_walls_everywhere_but_above() {
        let plane = tank(Dimensions::Two, [8, 5, 0], Top::Open, 2, 1.0).unwrap();
        assert_eq!(plane.len(), (8 + 4) * (5 + 2) - 8 * 5);
        assert!(plane.iter().all(|p| p.y < 5.0 && p.z == 0.0));
        let space = tank(Dimensions::Three, [8, 5, 4], Top::Open, 2, 1.0).unwrap();
        assert_eq!(space.len(), 12 * 9 * 6 - 8 * 5 * 4);
        assert!(space.iter().all(|p| p.z < 4.0));
    }

    #[test]
    fn a_lid_closes_the_tank() {
        let closed = tank(Dimensions::Three, [8, 5, 4], Top::Closed, 2, 1.0).unwrap();
        assert_eq!(closed.len(), 12 * 9 * 8 - 8 * 5 * 4);
        assert!(closed.iter().any(|p| p.z > 4.0));
    }

    #[test]
    fn no_wall_particle_is_inside() {
        let inside =
            |p: &Vec3| p.cmpgt(Vec3::ZERO).all() && p.cmplt(Vec3::new(8.0, 5.0, 4.0)).all();
        let walls = tank(Dimensions::Three, [8, 5, 4], Top::Closed, 3, 1.0).unwrap();
        assert!(!walls.iter().any(inside));
    }
}
