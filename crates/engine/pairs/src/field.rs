//! Per-point arrays of the caller, borrowed as channels of `f32`.
//!
//! Nothing is copied: a [`Field`] is a slice and a number of channels. Backends that need another
//! order or layout copy what they need, once per traversal.

use glam::{Vec2, Vec3};
use std::fmt;

/// A per-point array in the caller's order: one channel for `&[f32]`, two or three for arrays of
/// vectors. Nothing is copied.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    values: &'a [f32],
    channels: usize,
}

/// Points and channels, not the values.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Field({} points, {} channels)",
            self.len(),
            self.channels
        )
    }
}

impl<'a> Field<'a> {
    /// Number of channels per point.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.values.len() / self.channels
    }

    /// Returns true if the array holds no points.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values, the channels of one point next to each other.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }
}

impl<'a> From<&'a [f32]> for Field<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self {
            values,
            channels: 1,
        }
    }
}

macro_rules! vector_field {
    ($($vector:ty: $channels:literal),*) => {$(
        impl<'a> From<&'a [$vector]> for Field<'a> {
            fn from(values: &'a [$vector]) -> Self {
                Self {
                    values: bytemuck::cast_slice(values),
                    channels: $channels,
                }
            }
        }
    )*};
}
vector_field!([f32; 2]: 2, [f32; 3]: 3, [f32; 4]: 4, Vec2: 2, Vec3: 3);

impl<'a, T, const N: usize> From<&'a [T; N]> for Field<'a>
where
    Field<'a>: From<&'a [T]>,
{
    fn from(values: &'a [T; N]) -> Self {
        values.as_slice().into()
    }
}

impl<'a, T> From<&'a Vec<T>> for Field<'a>
where
    Field<'a>: From<&'a [T]>,
{
    fn from(values: &'a Vec<T>) -> Self {
        values.as_slice().into()
    }
}
