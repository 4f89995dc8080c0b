//! Arithmetic of stored pairs in `f32` and `f64`.
//!
//! Stored pairs are evaluated from positions in the caller's order, in the precision in which they
//! were given. The contract is the same in either precision; this trait is what differs.
//!
//! # Rounding
//!
//! In single precision d = fl(fl(x_j − x_i) + S) is computed in `f32`; S is computed in `f64` and
//! rounded once. In double precision everything is `f64`, and S is not rounded. Either way the
//! pair that a kernel sees is in `f32`.

use crate::contract::{Image, squared, squared_f64};
use nearfield_grid::{Domain, Positions, Radii, Radius, SortedPoints};
use std::{
    fmt::Debug,
    ops::{Add, Mul, Sub},
};

/// A coordinate of either precision, with the operations of the contract in that precision.
pub trait PairArithmetic:
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
    + 'static
{
    /// A relative margin: far above the rounding of a difference and of an image vector, and above
    /// the error of the inverse of a slender box, at most 2⁻²⁷. Images are only left out where
    /// neither could bring them within the radius.
    #[doc(hidden)]
    const SLACK: f64;

    /// Position of a point; rounded if this is `f32` and it was given in `f64`.
    #[doc(hidden)]
    fn given(positions: &Positions<'_>, index: usize) -> Option<[Self; 3]>;

    /// Position of a sorted point, as it was given for a search in this precision.
    #[doc(hidden)]
    fn sorted(points: &SortedPoints, slot: usize) -> [Self; 3];

    /// Radii of points in this precision; `None` of those in the other.
    #[doc(hidden)]
    fn radii(radii: Radii<'_>) -> Option<&[Self]>;

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

    /// The value that a kernel is given.
    #[doc(hidden)]
    fn rounded(self) -> f32;
}

macro_rules! arithmetic {
    ($real:ident, $radii:ident, $slack:expr, $get:ident, $position:ident, $vector:ident, $square:ident, $of:ident) => {
        impl PairArithmetic for $real {
            const SLACK: f64 = $slack;

            #[inline(always)]
            fn given(positions: &Positions<'_>, index: usize) -> Option<[$real; 3]> {
                positions.$get(index)
            }

            #[inline(always)]
            fn sorted(points: &SortedPoints, slot: usize) -> [$real; 3] {
                points.$position(slot)
            }

            fn radii(radii: Radii<'_>) -> Option<&[$real]> {
                match radii {
                    Radii::$radii(radii) => Some(radii),
                    _ => None,
                }
            }

            #[inline(always)]
            fn image_vector(domain: &Domain, image: Image) -> [$real; 3] {
                domain.$vector(image)
            }

            #[inline(always)]
            fn of(value: f64) -> $real {
                value as $real
            }

            #[inline(always)]
            fn squared_radius(radius: Radius) -> $real {
                radius.$square()
            }

            #[inline(always)]
            fn squared(d: [$real; 3]) -> $real {
                $of(d)
            }

            #[inline(always)]
            fn rounded(self) -> f32 {
                self as f32
            }
        }
    };
}
// In f32, differences and image vectors are rounded by at most 2⁻²² together.
arithmetic!(
    f32,
    Single,
    1.0 / (1u64 << 20) as f64,
    get,
    position,
    image_vector,
    squared,
    squared
);
arithmetic!(
    f64,
    Double,
    1.0 / (1u64 << 26) as f64,
    get_f64,
    position_f64,
    image_vector_f64,
    squared_f64,
    squared_f64
);
