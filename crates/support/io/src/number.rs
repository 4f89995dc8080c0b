//! Numbers of files, rounded once.
//!
//! **Invariant others rely on:** [`Number::single`] is the file's value rounded once to `f32`,
//! whatever its type; going through `f64` first could round twice.

use std::str::FromStr;

/// One number of a file in both precisions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    /// The file's value rounded once.
    pub(crate) single: f32,
    /// The file's value, rounded once where `f64` cannot hold it either.
    pub(crate) double: f64,
}

impl Number {
    pub(crate) const ZERO: Self = Self {
        single: 0.0,
        double: 0.0,
    };

    /// Whether `f32` holds the value without loss.
    pub(crate) fn is_single(self) -> bool {
        self.double.is_nan() || f64::from(self.single) == self.double
    }

    /// Reads a decimal number; `nan` and `inf` are numbers too.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let double: f64 = parse_number(text)?;
        let single = if rounding_twice_may_differ(double) {
            parse_number(text)?
        } else {
            double as f32
        };
        Some(Self { single, double })
    }
}

/// Reads a number, also one whose exponent has a D instead of an E, as Fortran writes numbers in
/// double precision.
///
/// ```
/// assert_eq!(nearfield_io::parse_number("-1.25D+01"), Some(-12.5));
/// assert_eq!(nearfield_io::parse_number::<f64>("1D"), None);
/// ```
pub fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().or_else(|| {
        let at = text.find(['d', 'D'])?;
        let exponent = text[at + 1..].strip_prefix(['+', '-']);
        let digits = exponent.unwrap_or(&text[at + 1..]);
        // Only words that are numbers apart from this are copied.
        let is_number = text[..at].parse::<f64>().is_ok_and(f64::is_finite)
            && !text[..at].contains(['e', 'E'])
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            .then(|| format!("{}e{}", &text[..at], &text[at + 1..]))?
            .parse()
            .ok()
    })
}

/// Returns true if `f64` → `f32` could meet a tie that the decimal number is not: if the `f64` lies
/// exactly between two `f32` values, or among the subnormal ones.
fn rounding_twice_may_differ(double: f64) -> bool {
    const DROPPED: u64 = (1 << 29) - 1;
    const TIE: u64 = 1 << 28;
    double.to_bits() & DROPPED == TIE || double.abs() < f64::from(f32::MIN_POSITIVE)
}

macro_rules! number_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Number {
            fn from(value: $type) -> Self {
                Self { single: value as f32, double: value as f64 }
            }
        }
    )*};
}
number_from!(f32, f64, i32, u32, i64, u64);

/// Numbers that can be looked up by position.
pub(crate) trait Numbers {
    /// The number at `index`; zero beyond the end, which callers exclude by checking lengths.
    fn number(&self, index: usize) -> Number;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exponents_may_have_a_d() {
        for (text, value) in [
            ("1.0D+00", 1.0),
            ("-2d-1", -0.2),
            (".5D1", 5.0),
            ("8.6D-02", 0.086),
        ] {
            let number = Number::parse(text.as_bytes()).unwrap();
            assert_eq!(
                (number.double, number.single),
                (value, value as f32),
                "{text}"
            );
        }
        for text in [
            "d", "1d", "1dd1", "1e1d1", "1d1.5", "infd1", "0x1d1", "1d+", "d1", "1d1e1",
        ] {
            assert_eq!(Number::parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_is_rounded_once_to_single_precision(digits in "[0-9]{1,12}", scale in -60i32..40) {
            let text = format!("{digits}e{scale}");
            let number = Number::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(number.single, text.parse::<f32>().unwrap());
            prop_assert_eq!(number.double, text.parse::<f64>().unwrap());
        }

        #[test]
        fn near_ties_are_rounded_once(bits in 0u32..0x7f7f_ffff, above in any::<bool>()) {
            // The decimal is a hair off the tie, closer than f64 can tell.
            let (low, high) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            let tie = (f64::from(low) + f64::from(high)) / 2.0;
            let exact = format!("{tie:.200}");
            let text = if above { format!("{exact}1") } else { exact };
            let number = Number::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(number.single, text.parse::<f32>().unwrap());
        }
    }

    #[test]
    fn wide_integers_are_rounded_once() {
        // 2^60 + 2^36 + 1 lies above the tie; through f64 it would become the tie itself.
        let value = (1_i64 << 60) + (1 << 36) + 1;
        assert_eq!(value as f64 as f32, (1_i64 << 60) as f32);
        assert_eq!(
            Number::from(value).single,
            ((1_i64 << 60) + (1 << 37)) as f32
        );
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "1,5", "0x10", "1e", "--1", "1.0.0", "é"] {
            assert_eq!(Number::parse(text.as_bytes()), None, "{text}");
        }
        assert!(Number::parse(b"-NaN").unwrap().single.is_nan());
        assert_eq!(Number::parse(b"-inf").unwrap().single, f32::NEG_INFINITY);
    }
}
