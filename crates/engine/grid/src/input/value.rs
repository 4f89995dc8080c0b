//! Numbers of either precision, for messages that name them.
//!
//! A coordinate that is refused should be printed as the caller wrote it: 0.1 as `f32` and as
//! `f64` are different numbers, and printing one with the digits of the other would name a value
//! that the caller cannot find.

use std::fmt;

/// A number as the caller gave it, printed with the digits of its precision.
#[derive(Clone, Copy, PartialEq)]
pub enum Value {
    /// Given as `f32`.
    Single(f32),
    /// Given as `f64`.
    Double(f64),
}

impl Value {
    /// The number itself.
    pub fn get(self) -> f64 {
        match self {
            Self::Single(value) => f64::from(value),
            Self::Double(value) => value,
        }
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::Single(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
        }
    }
}

/// As the number itself.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
        }
    }
}
