//! Periodic images, for kernels that need to know them.
//!
//! A pair knows its displacement d = fl(fl(xj − xi) + S), S being the vector to the source's image.
//! A kernel that reads the positions of both points subtracts them again, and what is left is S but
//! for roundings. S is a sum of whole box vectors, so rounding its coordinates in the box to whole
//! numbers gives the image exactly. No traversal has to carry images for that, and kernels that do
//! not ask for them pay nothing.
//!
//! The roundings: d is off by half a unit in its last place, the difference by half a unit in that
//! of S. Both stay below a quarter of a box as long as the points are fewer than 2²⁰ boxes apart
//! and the radius is below 2²⁰ boxes.

use crate::{Pair, pair_fn};

/// Finds the image of a pair's source in a periodic box, as a field of a kernel.
///
/// ```
/// use nearfield_pairs::{Images, Pair, PairKernel, pair_kernel};
///
/// /// Counts the pairs that cross the face of the box along x, by their direction.
/// struct Crossings {
///     images: Images,
/// }
///
/// #[pair_kernel(crate = nearfield_pairs)] // #[nearfield::pair_kernel] elsewhere
/// impl PairKernel for Crossings {
///     type Target = [f32; 3]; // position
///     type Source = [f32; 3];
///     type Output = f32;
///
///     #[inline(always)]
///     fn pair(&self, pair: Pair, xi: [f32; 3], xj: [f32; 3]) -> f32 {
///         let [a, _, _] = self.images.of(pair, xi, xj);
///         a as f32
///     }
/// }
///
/// let crossings = Crossings { images: Images::straight([10.0, 0.0, 0.0]) };
/// let pair = Pair { d: [-0.5, 0.0, 0.0], d2: 0.25 };
/// assert_eq!(crossings.pair(pair, [0.25, 0.0, 0.0], [9.75, 0.0, 0.0]), -1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Images {
    /// Rows of the inverse of the box's matrix: they give coordinates in the box. Zero on an open
    /// axis.
    inverse: [[f32; 3]; 3],
}

impl Images {
    /// Of a box with these lengths, 0 along an open axis.
    pub fn straight(lengths: [f32; 3]) -> Self {
        let mut vectors = [[0.0; 3]; 3];
        for axis in 0..3 {
            vectors[axis][axis] = f64::from(lengths[axis]);
        }
        Self::of_vectors(vectors)
    }

    /// Of a box with these vectors, all zeros for an open axis: those that the engine was built
    /// with. A box whose vectors lie in a plane has no images, and every image is NaN, which gives
    /// 0.
    pub fn of_vectors(vectors: [[f64; 3]; 3]) -> Self {
        let open = vectors.map(|vector| vector == [0.0; 3]);
        let mut filled = vectors;
        for axis in 0..3 {
            if open[axis] {
                filled[axis][axis] = 1.0;
            }
        }
        let [a, b, c] = filled;
        let cross = |a: [f64; 3], b: [f64; 3]| {
            let part = |k: usize, l: usize| a[k] * b[l] - a[l] * b[k];
            [part(1, 2), part(2, 0), part(0, 1)]
        };
        let rows = [cross(b, c), cross(c, a), cross(a, b)];
        let volume = (0..3).map(|k| a[k] * rows[0][k]).sum::<f64>();
        let mut inverse = [[0.0; 3]; 3];
        for axis in 0..3 {
            if !open[axis] {
                inverse[axis] = rows[axis].map(|part| (part / volume) as f32);
            }
        }
        Self { inverse }
    }

    /// The image (a, b, c) that the source of a pair is seen in: the displacement of the pair is
    /// that of the positions and a, b and c box vectors. `target` and `source` are the positions as
    /// the engine has them; whole boxes between a point and the box count too.
    #[pair_fn(crate = crate)]
    #[inline(always)]
    pub fn of(&self, pair: Pair, target: [f32; 3], source: [f32; 3]) -> [i32; 3] {
        let shift = [
            pair.d[0] - (source[0] - target[0]),
            pair.d[1] - (source[1] - target[1]),
            pair.d[2] - (source[2] - target[2]),
        ];
        let inverse = self.inverse;
        inverse
            .map(|row| (row[0] * shift[0] + row[1] * shift[1] + row[2] * shift[2]).round() as i32)
    }
}
