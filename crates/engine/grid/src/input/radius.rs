//! A search radius that is known to be usable, and the precision it is searched in.
//!
//! # Strict radii
//!
//! Some programs count a pair at exactly the cut-off, others do not. The contract counts it (d² ≤
//! r²). [`Radius::strict`] compares with the next number below instead, which leaves out exactly
//! the pairs at distance r and no others.
//!
//! # Precision
//!
//! The radius decides the precision of a search: it is rounded to `f32` for a search in single
//! precision, and its square is rounded once more. Both squares are kept, so that loops do not
//! compute them.

use crate::{Error, ErrorKind, Value};
use std::fmt;

/// The precision that coordinates are taken in and pairs are decided in.
///
/// It decides the type of every operation of the pair test, not only the storage of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// `f32`, four bytes per coordinate.
    #[default]
    Single,
    /// `f64`, eight bytes per coordinate.
    Double,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "f32",
            Self::Double => "f64",
        })
    }
}

/// A finite, positive search radius whose square is a normal `f32`.
///
/// A pair is within the radius when its squared distance, computed in the radius's precision as
/// the engine's contract says, is at most the [`squared`](Self::squared) one (in double precision
/// [`squared_f64`](Self::squared_f64)).
///
/// Radii from 2⁻⁵⁰ to 2⁶³ are accepted. Below, r·r would be subnormal, and its relative error
/// could let pairs in or out; above, squared distances of candidates could overflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Radius {
    /// r, rounded to `f32` in double precision.
    value: f32,
    /// fl(r·r) in `f32`.
    squared: f32,
    /// r as given.
    value_f64: f64,
    /// fl(r·r) in the precision of the search.
    squared_f64: f64,
    /// The precision of the search.
    precision: Precision,
}

impl Radius {
    /// Smallest radius accepted, 2⁻⁵⁰.
    pub const MIN: f32 = f32::from_bits((127 - 50) << 23);
    /// Largest radius accepted, 2⁶³.
    pub const MAX: f32 = f32::from_bits((127 + 63) << 23);

    /// Checks a radius for searching in single precision.
    ///
    /// # Errors
    /// [`ErrorKind::Radius`] when it is NaN, infinite, zero, negative or outside
    /// [`MIN`](Self::MIN)…[`MAX`](Self::MAX).
    pub fn new(value: f32) -> Result<Self, Error> {
        let squared = value * value;
        if (Self::MIN..=Self::MAX).contains(&value) {
            Ok(Self {
                value,
                squared,
                value_f64: f64::from(value),
                squared_f64: f64::from(squared),
                precision: Precision::Single,
            })
        } else {
            Err(ErrorKind::Radius(value.into()).into())
        }
    }

    /// Rounds a radius for searching in single precision, and checks it. Interfaces that take every
    /// radius as `f64` use it.
    ///
    /// # Errors
    /// As [`new`](Self::new), which names the value as it was before it was rounded.
    pub fn rounded(value: f64) -> Result<Self, Error> {
        let single = value as f32;
        if single == 0.0 || !single.is_finite() {
            return Err(ErrorKind::Radius(value.into()).into());
        }
        Self::new(single)
    }

    /// Checks a radius for searching in double precision.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn new_f64(value: f64) -> Result<Self, Error> {
        if (f64::from(Self::MIN)..=f64::from(Self::MAX)).contains(&value) {
            Ok(Self {
                value: value as f32,
                squared: (value * value) as f32,
                value_f64: value,
                squared_f64: value * value,
                precision: Precision::Double,
            })
        } else {
            Err(ErrorKind::Radius(value.into()).into())
        }
    }

    /// Checks a radius for searching in this precision, to which it is rounded.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_precision(value: f64, precision: Precision) -> Result<Self, Error> {
        match precision {
            Precision::Single => Self::rounded(value),
            Precision::Double => Self::new_f64(value),
        }
    }

    /// Checks a radius for searching in the precision it was given in.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(value: Value) -> Result<Self, Error> {
        match value {
            Value::Single(value) => Self::new(value),
            Value::Double(value) => Self::new_f64(value),
        }
    }

    /// The same radius for a search that leaves out pairs exactly as far apart as it: squared
    /// distances are compared with the next smaller number below `fl(r·r)`.
    ///
    /// Squared distances are numbers of the precision, so there is none between the squared radius
    /// and the next below.
    pub fn strict(self) -> Self {
        Self {
            squared: self.squared.next_down(),
            squared_f64: match self.precision {
                Precision::Single => f64::from(self.squared.next_down()),
                Precision::Double => self.squared_f64.next_down(),
            },
            ..self
        }
    }

    /// The precision to search in.
    pub fn precision(self) -> Precision {
        self.precision
    }

    /// The radius as given, in double precision rounded to `f32`.
    pub fn value(self) -> f32 {
        self.value
    }

    /// The radius as given.
    pub fn value_f64(self) -> f64 {
        self.value_f64
    }

    /// `fl(r·r)` in `f32`, the bound on squared distances in single precision; of a
    /// [`strict`](Self::strict) radius the number below it.
    pub fn squared(self) -> f32 {
        self.squared
    }

    /// `fl(r·r)` in `f64`, the bound on squared distances in double precision; in single
    /// precision the same as [`squared`](Self::squared).
    pub fn squared_f64(self) -> f64 {
        self.squared_f64
    }

    /// Returns true if a point may have the radius `own` in a search with this largest radius: in
    /// the precision of the search it is at least [`MIN`](Self::MIN) and at most this one.
    pub fn bounds(self, own: Value) -> bool {
        match self.precision {
            Precision::Single => (Self::MIN..=self.value).contains(&(own.get() as f32)),
            Precision::Double => (f64::from(Self::MIN)..=self.value_f64).contains(&own.get()),
        }
    }

    /// The radius `own` of a point that is not [within bounds](Self::bounds), for messages. In a
    /// search in double precision it has the digits of an `f64`: those of an `f32` may be the
    /// digits of this radius, which is another number.
    pub fn as_refused(self, own: Value) -> Value {
        match self.precision {
            Precision::Single => own,
            Precision::Double => Value::Double(own.get()),
        }
    }

    /// The radius in its precision, for messages.
    pub fn as_given(self) -> Value {
        match self.precision {
            Precision::Single => Value::Single(self.value),
            Precision::Double => Value::Double(self.value_f64),
        }
    }
}
