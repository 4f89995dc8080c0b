//! The two precisions that the contract is defined in.

use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

/// `f32` or `f64`: coordinates, radii, and what distances are computed in.
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

impl Real for f32 {
    const SLACK: f64 = 1.0 / (1_u64 << 20) as f64;
    const FAR: f64 = 2.0 * f32::MAX as f64;

    fn to_f64(self) -> f64 {
        f64::from(self)
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

impl Real for f64 {
    const SLACK: f64 = 1.0 / (1_u64 << 48) as f64;
    const FAR: f64 = 0.25 * f64::MAX;

    fn to_f64(self) -> f64 {
        self
    }

    fn round(value: f64) -> Self {
        value
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

/// Images farther away than this are not considered: differences that overflowed have no image
/// within the radius, but their rounding errors alone would name more images than can be looked at.
const FARTHEST: f64 = (1_u64 << 32) as f64;

/// A number of boxes.
pub(super) fn whole(boxes: f64) -> i64 {
    boxes.clamp(-FARTHEST, FARTHEST) as i64
}
