//! Numbers as files store them: element types, byte orders and single rounding.
//!
//! **Invariant others rely on:** [`Number::single`] is the file's value rounded once to `f32`,
//! whatever its type; going through `f64` first could round twice.

use crate::point_data::Values;

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
        let double: f64 = text.parse().ok()?;
        let single = if rounding_twice_may_differ(double) {
            text.parse().ok()?
        } else {
            double as f32
        };
        Some(Self { single, double })
    }
}

/// Whether `f64` → `f32` could hit a tie that the decimal number itself is not: the case when the
/// `f64` lies exactly between two `f32` values, or among the subnormal ones.
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

/// An element type that a binary file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// The order of a number's bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Scalar {
    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// Numbers that can be looked up by position.
pub(crate) trait Numbers {
    /// The number at `index`; zero beyond the end, which callers exclude by checking lengths.
    fn number(&self, index: usize) -> Number;
}

/// A binary array of a file, decoded on access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawArray<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) scalar: Scalar,
    pub(crate) endian: Endian,
}

macro_rules! element {
    ($type:ty, $endian:expr) => {
        |bytes: &[u8; size_of::<$type>()]| match $endian {
            Endian::Little => <$type>::from_le_bytes(*bytes),
            Endian::Big => <$type>::from_be_bytes(*bytes),
        }
    };
}

macro_rules! elements {
    ($type:ty, $array:expr) => {
        $array
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(element!($type, $array.endian))
    };
}

macro_rules! element_at {
    ($type:ty, $array:expr, $index:expr) => {
        $array
            .bytes
            .as_chunks()
            .0
            .get($index)
            .map(element!($type, $array.endian))
    };
}

impl Numbers for RawArray<'_> {
    fn number(&self, at: usize) -> Number {
        match self.scalar {
            Scalar::I8 => element_at!(i8, self, at).map(|value| i32::from(value).into()),
            Scalar::U8 => element_at!(u8, self, at).map(|value| u32::from(value).into()),
            Scalar::I16 => element_at!(i16, self, at).map(|value| i32::from(value).into()),
            Scalar::U16 => element_at!(u16, self, at).map(|value| u32::from(value).into()),
            Scalar::I32 => element_at!(i32, self, at).map(Number::from),
            Scalar::U32 => element_at!(u32, self, at).map(Number::from),
            Scalar::I64 => element_at!(i64, self, at).map(Number::from),
            Scalar::U64 => element_at!(u64, self, at).map(Number::from),
            Scalar::F16 => element_at!(half::f16, self, at).map(|value| value.to_f32().into()),
            Scalar::F32 => element_at!(f32, self, at).map(Number::from),
            Scalar::F64 => element_at!(f64, self, at).map(Number::from),
        }
        .unwrap_or(Number::ZERO)
    }
}

impl RawArray<'_> {
    /// Decodes every element; types narrower than 32 bits are widened, which loses nothing.
    pub(crate) fn to_values(self) -> Values<'static> {
        match self.scalar {
            Scalar::I8 => elements!(i8, self)
                .map(i32::from)
                .collect::<Vec<_>>()
                .into(),
            Scalar::U8 => elements!(u8, self)
                .map(u32::from)
                .collect::<Vec<_>>()
                .into(),
            Scalar::I16 => elements!(i16, self)
                .map(i32::from)
                .collect::<Vec<_>>()
                .into(),
            Scalar::U16 => elements!(u16, self)
                .map(u32::from)
                .collect::<Vec<_>>()
                .into(),
            Scalar::I32 => elements!(i32, self).collect::<Vec<_>>().into(),
            Scalar::U32 => elements!(u32, self).collect::<Vec<_>>().into(),
            Scalar::I64 => elements!(i64, self).collect::<Vec<_>>().into(),
            Scalar::U64 => elements!(u64, self).collect::<Vec<_>>().into(),
            Scalar::F16 => elements!(half::f16, self)
                .map(half::f16::to_f32)
                .collect::<Vec<_>>()
                .into(),
            Scalar::F32 => elements!(f32, self).collect::<Vec<_>>().into(),
            Scalar::F64 => elements!(f64, self).collect::<Vec<_>>().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
