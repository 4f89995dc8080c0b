//! The space the points live in: open or periodic along each axis.

use crate::{Error, error::axis_name};

/// Open or periodic along each axis; a periodic axis has a box length.
///
/// Coordinates need not lie inside the box: they are used unwrapped, and the image vector of a
/// pair is `n·length` computed in `f64` and rounded once to `f32`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    lengths: [Option<f64>; 3],
}

impl Domain {
    /// All of space: any finite coordinate, no images.
    pub const OPEN: Self = Self { lengths: [None; 3] };

    /// A domain that is periodic with the given length where there is one, open elsewhere.
    ///
    /// # Errors
    /// [`Error::BoxLength`] when a length is NaN, infinite, zero or negative.
    pub fn new(lengths: [Option<f64>; 3]) -> Result<Self, Error> {
        for (axis, length) in lengths.iter().enumerate() {
            if let Some(length) = *length
                && !(length.is_finite() && length > 0.0)
            {
                return Err(Error::BoxLength {
                    axis: axis_name(axis),
                    length,
                });
            }
        }
        Ok(Self { lengths })
    }

    /// Box length per axis, `None` where the axis is open.
    pub fn lengths(&self) -> [Option<f64>; 3] {
        self.lengths
    }

    /// Whether any axis is periodic.
    pub fn is_periodic(&self) -> bool {
        self.lengths.iter().any(Option::is_some)
    }

    /// The image vector of image `n`: `n·length` per axis in `f64`, rounded once; zero where open.
    #[inline]
    pub fn image_vector(&self, n: [i32; 3]) -> [f32; 3] {
        std::array::from_fn(|axis| match self.lengths[axis] {
            Some(length) => (f64::from(n[axis]) * length) as f32,
            None => 0.0,
        })
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::OPEN
    }
}
