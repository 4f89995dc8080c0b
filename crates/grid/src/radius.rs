//! A search radius that is known to be usable.

use crate::Error;

/// A finite, positive search radius whose square is a normal `f32`.
///
/// A pair is within the radius when its squared distance, computed in `f32` as the engine's
/// contract says, is at most [`squared`](Self::squared).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Radius {
    value: f32,
    squared: f32,
}

impl Radius {
    /// Smallest radius accepted, 2⁻⁵⁰.
    pub const MIN: f32 = f32::from_bits((127 - 50) << 23);
    /// Largest radius accepted, 2⁶³.
    pub const MAX: f32 = f32::from_bits((127 + 63) << 23);

    /// Checks `value`.
    ///
    /// # Errors
    /// [`Error::Radius`] when it is NaN, infinite, zero, negative or outside
    /// [`MIN`](Self::MIN)…[`MAX`](Self::MAX).
    pub fn new(value: f32) -> Result<Self, Error> {
        if (Self::MIN..=Self::MAX).contains(&value) {
            Ok(Self {
                value,
                squared: value * value,
            })
        } else {
            Err(Error::Radius(value))
        }
    }

    /// The radius as given.
    pub fn value(self) -> f32 {
        self.value
    }

    /// `fl(r·r)`, what squared distances are compared with.
    pub fn squared(self) -> f32 {
        self.squared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_finite_radii_with_normal_squares_are_accepted() {
        for bad in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30, 1e30] {
            let error = Radius::new(bad).unwrap_err().to_string();
            assert!(error.contains("radius"), "{error}");
        }
        for good in [Radius::MIN, 1e-6, 1.0, 2.5e7, Radius::MAX] {
            let radius = Radius::new(good).unwrap();
            assert!(radius.squared().is_normal());
            assert_eq!(radius.squared(), good * good);
        }
    }
}
