//! The two precisions that the contract is defined in.

use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

/// `f32` or `f64`: the type of coordinates, radii and distances.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Mul<Output = Self>
    + Sub<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// Far above the rounding error of one subtraction and one addition, as a share of the numbers
    /// involved.
    const SLACK: f64;
    /// Beyond every difference that matters, but finite in f64.
    const FAR: f64;

    /// The number in double precision, exactly.
    fn to_f64(self) -> f64;
    /// The number, rounded once.
    fn round(value: f64) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// `self · by + plus`, rounded once.
    fn mul_add(self, by: Self, plus: Self) -> Self;
    /// A total order.
    fn total_cmp(&self, other: &Self) -> std::cmp::Ordering;
}

macro_rules! real {
    ($real:ident, slack: $slack:expr, far: $far:expr) => {
        impl Real for $real {
            const SLACK: f64 = $slack;
            const FAR: f64 = $far;

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn round(value: f64) -> Self {
                value as Self
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }

            fn mul_add(self, by: Self, plus: Self) -> Self {
                Self::mul_add(self, by, plus)
            }

            fn total_cmp(&self, other: &Self) -> std::cmp::Ordering {
                Self::total_cmp(self, other)
            }
        }
    };
}
real!(f32, slack: 1.0 / (1_u64 << 20) as f64, far: 2.0 * f32::MAX as f64);
real!(f64, slack: 1.0 / (1_u64 << 48) as f64, far: 0.25 * f64::MAX);

/// Images farther away than this are not considered: differences that overflowed have no image
/// within the radius, but their rounding errors alone would name more images than can be looked at.
const FARTHEST: f64 = (1_u64 << 32) as f64;

/// A number of boxes.
pub(super) fn whole(boxes: f64) -> i64 {
    boxes.clamp(-FARTHEST, FARTHEST) as i64
}
