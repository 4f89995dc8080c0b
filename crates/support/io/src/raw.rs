//! Binary arrays as files store them: element types and byte orders, decoded on access.

use nearfield_grid::memory::{Shortage, collected};

use crate::{
    number::{Number, Numbers},
    point_data::Values,
};

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
        elements!($type, $array, <$type>::from)
    };
    ($type:ty, $array:expr, $widen:expr) => {{
        let elements = $array.bytes.as_chunks().0.iter();
        let elements = elements.map(element!($type, $array.endian));
        collected(elements.map($widen), "an array of a file")?.into()
    }};
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
            Scalar::F16 => element_at!(u16, self, at).map(|bits| half_to_f32(bits).into()),
            Scalar::F32 => element_at!(f32, self, at).map(Number::from),
            Scalar::F64 => element_at!(f64, self, at).map(Number::from),
        }
        .unwrap_or(Number::ZERO)
    }
}

impl RawArray<'_> {
    /// Decodes every element; types narrower than 32 bits are widened, which loses nothing.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn to_values(self) -> Result<Values<'static>, Shortage> {
        Ok(match self.scalar {
            Scalar::I8 => elements!(i8, self, i32::from),
            Scalar::U8 => elements!(u8, self, u32::from),
            Scalar::I16 => elements!(i16, self, i32::from),
            Scalar::U16 => elements!(u16, self, u32::from),
            Scalar::I32 => elements!(i32, self),
            Scalar::U32 => elements!(u32, self),
            Scalar::I64 => elements!(i64, self),
            Scalar::U64 => elements!(u64, self),
            Scalar::F16 => elements!(u16, self, half_to_f32),
            Scalar::F32 => elements!(f32, self),
            Scalar::F64 => elements!(f64, self),
        })
    }
}

/// The number that these bits stand for in half precision (binary16 of IEEE 754), which `f32` holds
/// exactly.
fn half_to_f32(bits: u16) -> f32 {
    /// `f32` counts exponents from 127, half precision from 15: what is added to one of them.
    const SCALE: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let size = match bits & 0x7fff {
        0x7c00 => f32::INFINITY,
        0x7c01.. => f32::NAN,
        // Exponent and fraction in their places. The product is exact for subnormal numbers too.
        size => f32::from_bits(u32::from(size) << 13) * SCALE,
    };
    if bits >> 15 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read_exactly() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
            let size = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction > 0.0 => f64::NAN,
                31 => f64::INFINITY,
                _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            };
            let expected = if bits >> 15 == 0 { size } else { -size };
            let read = f64::from(half_to_f32(bits));
            let same = read.to_bits() == expected.to_bits() || (read.is_nan() && size.is_nan());
            assert!(same, "{bits:#x} is {expected}, read as {read}");
        }
    }
}
