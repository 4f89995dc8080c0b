//! Whether kernels find the nearest image of a source in `f32` (`kernels/cuda/nearest_image.cuh`).
//!
//! In a box more than twice as wide as the radius a neighbour is seen through one image alone, the
//! nearest. Kernels round the difference of two positions, in boxes, to whole numbers. That names
//! this image if the difference is rounded little enough, which depends on the box.
//!
//! **Invariant:** kernels that look at the nearest image alone run only where it is certain.

use nearfield_grid::{Domain, Radius};

/// Rounding of a difference in boxes, as a share of the products that it is the sum of: three
/// roundings of each factor and two of sums, and as much again.
const BOXES_SLACK: f64 = 1.0 / (1u64 << 20) as f64;
/// Error of a difference in boxes that does not change the nearest image of a neighbour;
/// nearest_image.cuh has the argument.
const MAX_BOXES_ERROR: f64 = 0.003;

/// Returns true if rounding to `f32` does not change the nearest image of a source within the
/// radius that is at most one box away.
pub(super) fn nearest_is_certain(domain: &Domain, radius: Radius) -> bool {
    let vectors = domain.vectors().map(Option::unwrap_or_default);
    let farthest = |k: usize| {
        let boxes: f64 = vectors.iter().map(|vector| vector[k].abs()).sum();
        radius.value_f64() + boxes
    };
    domain.inverse().into_iter().flatten().all(|row| {
        let products: f64 = (0..3).map(|k| row[k].abs() * farthest(k)).sum();
        let rounds = row.iter().all(|&x| {
            let rounded = x as f32;
            x == 0.0 || rounded.is_normal()
        });
        rounds && products * BOXES_SLACK <= MAX_BOXES_ERROR
    })
}

/// The inverse of the box' vectors as kernels find nearest images by it, 0 along open axes.
pub(super) fn rounded_inverse(domain: &Domain) -> [[f32; 3]; 3] {
    let rows = domain.inverse().map(Option::unwrap_or_default);
    rows.map(|row| row.map(|x| x as f32))
}
