//! Vectors of images that kernels look up where points lie outside a periodic box.

use crate::constants;
use nearfield_grid::{self as grid, Precision};

/// Vectors of near images for `Walk::steps`, as pair_seen.cuh has them; none where they are not
/// looked up.
pub(crate) fn image_steps(lattice: &grid::Lattice) -> Vec<f32> {
    let domain = lattice.effective_domain();
    if lattice.radius().precision() == Precision::Double {
        return Vec::new();
    }
    if domain.is_tilted() {
        let far = i64::from(constants::TILTED_STEPS);
        let along = || -far..=far;
        let images = along().flat_map(|c| along().map(move |b| (b, c)));
        let images = images.flat_map(|(b, c)| along().map(move |a| [a, b, c]));
        let vectors: Vec<_> = images.map(|image| domain.image_vector(image)).collect();
        let numbers = |axis: usize| vectors.iter().map(move |vector| vector[axis]);
        return (0..3).flat_map(numbers).collect();
    }
    let far = i64::from(constants::IMAGE_STEPS);
    let along = |axis: usize| {
        (-far..=far).map(move |n| {
            let mut image = [0; 3];
            image[axis] = n;
            domain.image_vector(image)[axis]
        })
    };
    (0..3).flat_map(along).collect()
}
