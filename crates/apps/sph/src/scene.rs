//! Blocks of fluid and tanks of wall particles on one lattice.
//!
//! Both sit at the centres of the lattice cells, so fluid that touches a wall
//! starts half a spacing away from its surface, and the first wall layer lies
//! half a spacing behind it.

use glam::{IVec3, Vec3};
use nearfield_grid::memory::collected;

use crate::{Dimensions, Error, ErrorKind};

/// Particles that can be told apart by the indices of an engine.
const MAX_PARTICLES: f64 = u32::MAX as f64;

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

/// Number of cells of a box with these sides.
fn count(dimensions: Dimensions, sides: [i64; 3]) -> f64 {
    let sides = sides.map(|side| side.max(0) as f64);
    sides[..dimensions.count() as usize].iter().product()
}

/// Refuses more particles than there can be, before any is made.
fn refuse_excess(name: &'static str, count: f64) -> Result<(), Error> {
    if count <= MAX_PARTICLES {
        return Ok(());
    }
    let excess = ErrorKind::Setting {
        name,
        value: count,
        wanted: "below 2^32: take a larger spacing or a smaller scene",
    };
    Err(excess.into())
}

/// A block of fluid: the particles of the cells `low ≤ cell < high`.
///
/// In the plane the z components of both corners are ignored.
///
/// # Errors
/// When there is no memory for the particles, or they are 2³² or more.
pub fn block(
    dimensions: Dimensions,
    low: [i32; 3],
    high: [i32; 3],
    spacing: f32,
) -> Result<Vec<Vec3>, Error> {
    let sides = [0, 1, 2].map(|axis| i64::from(high[axis]) - i64::from(low[axis]));
    refuse_excess("number of particles of a block", count(dimensions, sides))?;
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
/// When there is no memory for the particles, or they are 2³² or more.
pub fn tank(
    dimensions: Dimensions,
    inside: [i32; 3],
    top: Top,
    layers: i32,
    spacing: f32,
) -> Result<Vec<Vec3>, Error> {
    let sides = inside.map(i64::from);
    let around = sides.map(|side| side + 2 * i64::from(layers));
    let walls = count(dimensions, around) - count(dimensions, sides);
    refuse_excess("number of particles of the walls", walls)?;
    if layers <= 0 {
        return Ok(Vec::new());
    }
    let inside = IVec3::from(inside);
    let missing = match top {
        Top::Open => layers * dimensions.up().as_ivec3(),
        Top::Closed => IVec3::ZERO,
    };
    let (low, high) = (IVec3::splat(-layers), inside + layers - missing);
    // Row by row, so that the inside of a large tank is not visited.
    let rows = cells(dimensions, low.with_x(0), high.with_x(1));
    let walls = rows.flat_map(move |row| {
        let outside = row.cmplt(IVec3::ZERO) | row.cmpge(inside);
        let in_wall = match dimensions {
            Dimensions::Two => outside.y,
            Dimensions::Three => outside.y || outside.z,
        };
        let before = if in_wall { high.x } else { 0 };
        let behind = if in_wall { high.x } else { inside.x };
        let along = (low.x..before).chain(behind..high.x);
        along.map(move |x| center(dimensions, row.with_x(x), spacing))
    });
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
    fn scenes_beyond_all_memory_are_refused_before_they_are_made() {
        let endless = [i32::MAX; 3];
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            for (inside, layers) in [(endless, 3), ([4; 3], i32::MAX), ([i32::MAX, 1, 1], 1)] {
                let refused = tank(dimensions, inside, Top::Closed, layers, 1.0).unwrap_err();
                let text = refused.to_string();
                assert!(text.contains("of the walls is"), "{text}");
            }
            let refused = block(dimensions, [i32::MIN; 3], endless, 1.0).unwrap_err();
            assert!(refused.to_string().contains("of a block is"), "{refused}");
        }
        // A long, thin tank has few walls.
        let channel = tank(Dimensions::Two, [100_000, 2, 0], Top::Open, 1, 1.0).unwrap();
        assert_eq!(channel.len(), 100_002 + 2 * 2);
    }

    #[test]
    fn no_wall_particle_is_inside() {
        let inside =
            |p: &Vec3| p.cmpgt(Vec3::ZERO).all() && p.cmplt(Vec3::new(8.0, 5.0, 4.0)).all();
        let walls = tank(Dimensions::Three, [8, 5, 4], Top::Closed, 3, 1.0).unwrap();
        assert!(!walls.iter().any(inside));
    }
}
