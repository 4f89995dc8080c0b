//! What evaluating stored pairs asks of `f32` and `f64`.

use crate::{
    image::Image,
    simd::{squared, squared_f64},
};
use nearfield_grid::{Domain, Positions, Radius, SortedPoints};
use std::{
    fmt::Debug,
    ops::{Add, Mul, Sub},
};

/// A coordinate of either precision, with the operations of the contract in that precision.
/// Implemented for `f32` and `f64`, and sealed.
pub trait Coordinate:
    Copy
    + Debug
    + Default
    + PartialOrd
    + From<f32>
    + Into<f64>
    + Add<Output = Self>
    + Mul<Output = Self>
    + Sub<Output = Self>
    + Send
    + Sync
    + sealed::Sealed
    + 'static
{
    /// Far above the rounding of a difference and of an image vector, as a share of the numbers
    /// involved, and above what the inverse of a slender box is off by, at most 2⁻²⁷: images are
    /// only left out where neither could bring them within the radius.
    #[doc(hidden)]
    const SLACK: f64;

    /// Position of a point; rounded if this is `f32` and it was given in `f64`.
    #[doc(hidden)]
    fn given(positions: &Positions<'_>, index: usize) -> Option<[Self; 3]>;

    /// Position of a sorted point, as it was given for a search in this precision.
    #[doc(hidden)]
    fn sorted(points: &SortedPoints, slot: usize) -> [Self; 3];

    /// The image vector S.
    #[doc(hidden)]
    fn image_vector(domain: &Domain, image: Image) -> [Self; 3];

    /// Rounded once where this is `f32`.
    #[doc(hidden)]
    fn of(value: f64) -> Self;

    /// r2 = fl(r·r).
    #[doc(hidden)]
    fn squared_radius(radius: Radius) -> Self;

    /// d².
    #[doc(hidden)]
    fn squared(d: [Self; 3]) -> Self;

    /// What a kernel is given of it.
    #[doc(hidden)]
    fn rounded(self) -> f32;
}

pub(crate) mod sealed {
    use crate::{SimdLevel, listed::LayOut};

    /// Implemented in [`crate::listed`], beside what it calls, so that no other crate compiles it.
    #[expect(private_interfaces, reason = "nobody outside can call it")]
    pub trait Sealed: Sized {
        /// Lays out the pairs of a target's list.
        fn lay_out(level: SimdLevel, work: LayOut<'_, Self>);
    }
}

impl Coordinate for f32 {
    /// Differences and image vectors are rounded by at most 2⁻²² together.
    const SLACK: f64 = 1.0 / (1u64 << 20) as f64;

    #[inline(always)]
    fn given(positions: &Positions<'_>, index: usize) -> Option<[f32; 3]> {
        positions.get(index)
    }

    #[inline(always)]
    fn sorted(points: &SortedPoints, slot: usize) -> [f32; 3] {
        points.position(slot)
    }

    #[inline(always)]
    fn image_vector(domain: &Domain, image: Image) -> [f32; 3] {
        domain.image_vector(image)
    }

    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn squared_radius(radius: Radius) -> f32 {
        radius.squared()
    }

    #[inline(always)]
    fn squared(d: [f32; 3]) -> f32 {
        squared(d)
    }

    #[inline(always)]
    fn rounded(self) -> f32 {
        self
    }
}

impl Coordinate for f64 {
    const SLACK: f64 = 1.0 / (1u64 << 26) as f64;

    #[inline(always)]
    fn given(positions: &Positions<'_>, index: usize) -> Option<[f64; 3]> {
        positions.get_f64(index)
    }

    #[inline(always)]
    fn sorted(points: &SortedPoints, slot: usize) -> [f64; 3] {
        points.position_f64(slot)
    }

    #[inline(always)]
    fn image_vector(domain: &Domain, image: Image) -> [f64; 3] {
        domain.image_vector_f64(image)
    }

    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn squared_radius(radius: Radius) -> f64 {
        radius.squared_f64()
    }

    #[inline(always)]
    fn squared(d: [f64; 3]) -> f64 {
        squared_f64(d)
    }

    #[inline(always)]
    fn rounded(self) -> f32 {
        self as f32
    }
}
