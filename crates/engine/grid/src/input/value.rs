//! Numbers of either precision, for messages that name them.
//!
//! A coordinate that is refused should be printed as the caller wrote it: 0.1 as `f32` and as
//! `f64` are different numbers, and printing one with the digits of the other would name a value
//! that the caller cannot find.
//!
//! A number with many zeros is printed with an exponent: `1e300`, not three hundred digits, and
//! `1e-300`, not `0.000…`. Digits are never cut, so reading the text gives the same number. Where
//! rounding to `f32` makes 0 of a number, the message has the number before it was rounded.

use std::fmt;

/// A number as the caller gave it, printed with the digits of its precision, and with an exponent
/// where it would be long without.
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

/// Names the value as `f32` has it.
impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::Single(value)
    }
}

/// Names the value as `f64` has it.
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(value) if is_long(self.get()) => fmt::LowerExp::fmt(value, f),
            Self::Single(value) => value.fmt(f),
            Self::Double(value) if is_long(self.get()) => fmt::LowerExp::fmt(value, f),
            Self::Double(value) => value.fmt(f),
        }
    }
}

/// Returns true for numbers that have more than five zeros when they are printed without an
/// exponent: below 1e-5 and from 1e16 on. Zero, infinities and NaN are short.
fn is_long(value: f64) -> bool {
    let size = value.abs();
    size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size)
}

/// The same text as `Display`, so that messages of either kind agree.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_have_an_exponent_and_all_are_the_number_that_was_given() {
        for (value, text) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e-5, "0.00001"),
            (9.5e-6, "9.5e-6"),
            (1e-300, "1e-300"),
            (123_456_789.0, "123456789"),
            (1e16, "1e16"),
            (-1e300, "-1e300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Value::from(value).to_string(), text);
            assert_eq!(format!("{:?}", Value::from(value)), text);
        }
        assert_eq!(Value::from(1e-30_f32).to_string(), "1e-30");
        assert_eq!(Value::from(0.1_f32).to_string(), "0.1");
    }
}
