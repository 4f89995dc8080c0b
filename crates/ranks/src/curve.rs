//! The Hilbert curve through a cube of bricks.
//!
//! Consecutive bricks along the curve share a face, so a range of the curve is a connected body
//! with a small surface, and the surface is what ranks exchange. The transform is that of J.
//! Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 381 (2004),
//! <https://doi.org/10.1063/1.1751381>.
//!
//! **Invariant:** every brick has one place, and different bricks have different places.

/// Bits of a brick's number along an axis.
pub(crate) const BITS: u32 = 20;

/// One more than the largest place of a brick.
pub(crate) const END: u64 = 1 << (3 * BITS);

/// The place along the curve of a brick, whose numbers are below 2²⁰.
pub(crate) fn place(brick: [u32; 3]) -> u64 {
    let mut x = brick;
    // From the highest bit down: undo the exchanges and inversions of the cubes around.
    let mut bit = 1 << (BITS - 1);
    while bit > 1 {
        let low = bit - 1;
        for axis in 0..3 {
            if x[axis] & bit != 0 {
                x[0] ^= low;
            } else {
                let swapped = (x[0] ^ x[axis]) & low;
                x[0] ^= swapped;
                x[axis] ^= swapped;
            }
        }
        bit >>= 1;
    }
    // Gray code.
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut turned = 0;
    let mut bit = 1 << (BITS - 1);
    while bit > 1 {
        if x[2] & bit != 0 {
            turned ^= bit - 1;
        }
        bit >>= 1;
    }
    let mut place = 0;
    for bit in (0..BITS).rev() {
        for axis in x {
            place = place << 1 | u64::from((axis ^ turned) >> bit & 1);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_curve_visits_every_brick_of_a_cube_and_steps_across_faces_only() {
        let side = 16u32;
        let mut bricks = BTreeMap::new();
        for z in 0..side {
            for y in 0..side {
                for x in 0..side {
                    bricks.insert(place([x, y, z]), [x, y, z]);
                }
            }
        }
        // A cube at the corner whose side is a power of two is the beginning of the curve.
        let places: Vec<u64> = bricks.keys().copied().collect();
        assert_eq!(places, (0..u64::from(side).pow(3)).collect::<Vec<_>>());
        let path: Vec<_> = bricks.values().collect();
        for step in path.windows(2) {
            let apart: u32 = (0..3).map(|k| step[0][k].abs_diff(step[1][k])).sum();
            assert_eq!(apart, 1, "from {:?} to {:?}", step[0], step[1]);
        }
    }

    #[test]
    fn the_farthest_brick_is_on_the_curve() {
        let last = (1 << BITS) - 1;
        for brick in [[last; 3], [last, 0, 0], [0, last, 0], [0, 0, last]] {
            assert!(place(brick) < END);
        }
    }
}
