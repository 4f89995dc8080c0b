//! Moving points into the periodic box, in `f32`, and how far off that may be.
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
        let mut slack = [0.0; 3];
        for axis in 0..3 {
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
            slack,
        })
    }
}
