//! A view of the caller's radii of points, in either precision.
//!
//! **Invariant:** a view is as long as the slice that it was made from; nothing is copied.

use crate::{Precision, Value};

/// Borrowed radii of points, one `f32` or one `f64` each, in the unit of the coordinates.
///
/// Made from slices, arrays and vectors of either by `into()`. A search rounds radii to its own
/// precision, as it does with its one radius: those in `f64` once in a search in `f32`, those in
/// `f32` not at all in a search in `f64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Radii<'a> {
    /// In `f32`.
    Single(&'a [f32]),
    /// In `f64`.
    Double(&'a [f64]),
}

impl Radii<'_> {
    /// Number of radii.
    pub fn len(&self) -> usize {
        match self {
            Self::Single(radii) => radii.len(),
            Self::Double(radii) => radii.len(),
        }
    }

    /// Returns true if there are no radii.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The precision the radii are given in.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Single(_) => Precision::Single,
            Self::Double(_) => Precision::Double,
        }
    }

    /// The radius of point `index` as it was given, if there is such a point.
    pub fn get(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::Single(radii) => Value::Single(*radii.get(index)?),
            Self::Double(radii) => Value::Double(*radii.get(index)?),
        })
    }
}

impl<'a> From<&'a [f32]> for Radii<'a> {
    fn from(radii: &'a [f32]) -> Self {
        Self::Single(radii)
    }
}

impl<'a> From<&'a [f64]> for Radii<'a> {
    fn from(radii: &'a [f64]) -> Self {
        Self::Double(radii)
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Radii<'a>
where
    Radii<'a>: From<&'a [T]>,
{
    fn from(radii: &'a [T; N]) -> Self {
        radii.as_slice().into()
    }
}

impl<'a, T> From<&'a Vec<T>> for Radii<'a>
where
    Radii<'a>: From<&'a [T]>,
{
    fn from(radii: &'a Vec<T>) -> Self {
        radii.as_slice().into()
    }
}
