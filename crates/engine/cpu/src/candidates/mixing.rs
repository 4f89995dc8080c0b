//! Moves points into the periodic box, in `f32`, with a bound of the error.
//!
//! Points keep the coordinates that they were given, and pairs are tested with these. Only to leave
//! out candidates that are far from all targets of a cell, both are moved into the box
//! ([`mixed`](super::mixed)). Moved coordinates are rounded, so the box around the targets is
//! enlarged by a slack.
//!
//! # The slack
//!
//! Let M bound coordinates and sums of box vectors along an axis: the farthest coordinate, and
//! (2W + I + 2) lengths of each vector along it, for counts up to W and images up to I. Moving
//! a point is 3 roundings of products and sums and one of each vector, 4u·M with u = 2⁻²⁴; the
//! contract's difference is off by 2u·M, its image vector and their sum by u·M each; enlarging the
//! box by u·M. With both points moved that is 13u·M. The slack is 64u·M. The distance from
//! the enlarged box and its square are rounded relative to themselves, which a radius enlarged by
//! 2⁻²⁰ covers, and below the smallest normal square nothing is dropped.
//!
//! # Image vectors
//!
//! The image vector of n boxes of a straight box is n·L, computed in `f64` and rounded once. If L
//! has the precision of `f32`, the product of n and L in `f64` is exact, for n has 22 bits; the
//! product in `f32` is rounded once from the same number. So both are the same, and loops multiply
//! in `f32`. Other lengths are tried with the few counts that occur: up to 2 they always agree.

use nearfield_grid::Grid;

/// Counts of boxes up to which sums of them are exact in `f32` with room to spare.
const MOST_BOXES: u32 = 1 << 20;

/// Sums of coordinates and image vectors beyond which products may leave the range of `f32`.
const FARTHEST: f32 = 1e30;

/// Where the points of two sets lie that are to be moved into the box.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mixing {
    /// Box vectors, zero along open axes.
    pub(super) vectors: [[f32; 3]; 3],
    /// Some component of a vector is not along its own axis.
    pub(super) tilted: bool,
    /// Lengths of a straight box whose whole multiples, as far as they occur, are the image vectors
    /// of the contract bit by bit, see the module's comment; zero along open axes.
    pub(super) lengths: Option<[f32; 3]>,
    /// Distances along each axis that rounding may take away, see the module's comment.
    pub(super) slack: [f32; 3],
}

impl Mixing {
    /// How points of the two sets are moved into the box; None in an open domain, where all sources
    /// are inside, and where boxes are too many or too large for `f32`.
    ///
    /// Cost: a few dozen operations; the farthest points were found when the grids were built.
    pub(crate) fn of(targets: &Grid, sources: &Grid) -> Option<Self> {
        let lattice = sources.lattice();
        let (targets, sources) = (targets.points().all_wraps(), sources.points().all_wraps());
        if sources.is_empty() {
            return None;
        }
        let domain = lattice.effective_domain();
        let most: [u32; 3] =
            std::array::from_fn(|axis| targets.most()[axis].max(sources.most()[axis]));
        if most.iter().any(|&most| most > MOST_BOXES) {
            return None;
        }
        let images = lattice.max_images_along();
        let given = domain.vectors().map(Option::unwrap_or_default);
        let vectors = given.map(|vector| lattice.image_shift(vector));
        let (mut slack, mut multiples) = ([0.0; 3], !domain.is_tilted());
        for axis in 0..3 {
            let boxes = f64::from(2 * most[axis]) + images[axis] as f64;
            multiples &= are_multiples(given[axis][axis], vectors[axis][axis], boxes);
            let farthest = targets.farthest()[axis].max(sources.farthest()[axis]);
            let mut largest = f64::from(farthest);
            for k in 0..3 {
                let boxes = 2.0 * f64::from(most[k]) + images[k] as f64 + 2.0;
                largest += boxes * given[k][axis].abs();
            }
            if largest > f64::from(FARTHEST) {
                return None;
            }
            if (0..3).any(|k| vectors[k][axis] != 0.0) {
                slack[axis] = (largest * 2f64.powi(-18)) as f32;
            }
        }
        Some(Self {
            vectors,
            tilted: domain.is_tilted(),
            lengths: multiples.then(|| [0, 1, 2].map(|axis| vectors[axis][axis])),
            slack,
        })
    }
}

/// Counts of boxes up to which products are compared one by one.
const FEW_BOXES: f64 = 8.0;

/// Returns true if n times `rounded`, in `f32`, is the image vector of n boxes of this length, for
/// all n up to `boxes`.
fn are_multiples(length: f64, rounded: f32, boxes: f64) -> bool {
    let is_same = |n: u8| (f64::from(n) * length) as f32 == f32::from(n) * rounded;
    f64::from(rounded) == length || boxes <= FEW_BOXES && (1..=boxes as u8).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_vectors_are_multiples_where_that_is_said() {
        for length in [46.0, 0.1f32, 1.0 / 3.0, 7.7e-30, 3e20] {
            let exact = f64::from(length);
            assert!(are_multiples(exact, length, f64::from(1 << 21)));
            for n in [1u32, 3, 5, 1001, (1 << 21) - 1] {
                let image_vector = (f64::from(n) * exact) as f32;
                assert_eq!(image_vector.to_bits(), (n as f32 * length).to_bits());
            }
        }
        let found = [0.1, 4.1, 3.3, 5.2].map(|length| {
            let rounded = length as f32;
            assert!(are_multiples(length, rounded, 2.0) && !are_multiples(length, rounded, 9.0));
            are_multiples(length, rounded, 3.0)
        });
        assert_eq!(found, [true, false, true, false]);
    }
}
