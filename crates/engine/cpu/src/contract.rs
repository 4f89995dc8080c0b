//! The pair test of the contract in scalar arithmetic, and images of the periodic box.
//!
//! d = fl(fl(x_j − x_i) + S) per axis and d² = fma(dz, dz, fma(dy, dy, dx·dx)); a pair is within
//! the radius when d² ≤ fl(r·r). Code that runs outside of a [`Task`](crate::simd::Task) calls
//! these functions; vector loops repeat the same operations on vectors.
//!
//! `mul_add` is correctly rounded on every target, by an instruction or by a library call, and
//! Rust never contracts a multiplication and an addition on its own. So scalar and vector code
//! agree bit for bit, and a list is the same set whichever of them found it.
//!
//! # Sixty-four bits for images
//!
//! Coordinates may lie 2³⁰ boxes from the origin on either side, which [`nearfield_grid::Bounds`]
//! allows; two such points are 2³¹ boxes apart. Image vectors are products in `f64`, exact up to
//! 2⁵³ boxes.

use nearfield_pairs::Pair;

/// By how many boxes a source is moved along each axis; zero on open axes. Boxes are those that the
/// domain is enumerated by, and are counted in its given vectors where pairs are handed out
/// ([`Domain::given_image`](nearfield_grid::Domain::given_image)). 64 bits, because two
/// points that are 2³⁰ boxes away from the origin on either side are 2³¹ boxes apart, and a few
/// more where the box is smaller than the radius.
///
/// Images are compared lexicographically. (i, image) and (j, −image) are the two views of one
/// pair, so "positive image" picks one of two.
pub type Image = [i64; 3];

/// The image of a pair, counted from the unwrapped coordinates. Their cells met through the image
/// `of_cells`; the target lies `target` boxes outside the box, the source `source`.
#[inline(always)]
pub(crate) fn image_of(of_cells: [i32; 3], target: [i32; 3], source: [i32; 3]) -> Image {
    let mut image = [0; 3];
    // Spelt out: closures are not always inlined into code that is compiled for a level.
    for axis in 0..3 {
        image[axis] = i64::from(of_cells[axis]) + i64::from(target[axis]) - i64::from(source[axis]);
    }
    image
}

/// d² in single precision: one rounding per operation, fused multiply-add.
#[inline(always)]
pub(crate) fn squared(d: [f32; 3]) -> f32 {
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

/// d² in double precision.
#[inline(always)]
pub(crate) fn squared_f64(d: [f64; 3]) -> f64 {
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

/// fl(fl(x_j − x_i) + S) per axis, in double precision.
#[inline(always)]
pub(crate) fn difference_f64(from: [f64; 3], to: [f64; 3], image_vector: [f64; 3]) -> [f64; 3] {
    [
        (to[0] - from[0]) + image_vector[0],
        (to[1] - from[1]) + image_vector[1],
        (to[2] - from[2]) + image_vector[2],
    ]
}

/// A pair of double precision as kernels see it: displacement and square, each rounded once to
/// `f32`.
///
/// Rounding happens after the decision, so it changes no list.
#[inline(always)]
pub(crate) fn rounded(d: [f64; 3], d2: f64) -> Pair {
    Pair {
        d: [d[0] as f32, d[1] as f32, d[2] as f32],
        d2: d2 as f32,
    }
}
