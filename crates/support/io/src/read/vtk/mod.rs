//! VTK files: the legacy format and the XML formats of point-like data sets.
//!
//! Both are read here, not with the vtkio crate, which (0.7) refuses appended data in raw encoding
//! (what ParaView writes by default), panics on damaged files and allocates what they announce.

mod encoded;
pub(super) mod legacy;
mod legacy_source;
pub(super) mod xml;
mod xml_array;
mod xml_document;

use nearfield_grid::memory::Shortage;
use std::borrow::Cow;

use crate::{
    number::{Number, Numbers},
    point_data::Values,
    raw::{Endian, RawArray, Scalar},
};

/// An array of a file: bytes still to be decoded, or numbers read from text.
enum Array<'a> {
    Binary {
        bytes: Cow<'a, [u8]>,
        scalar: Scalar,
        endian: Endian,
    },
    Text(Values<'static>),
}

impl Array<'_> {
    fn into_values(self) -> Result<Values<'static>, Shortage> {
        match self {
            Self::Binary {
                bytes,
                scalar,
                endian,
            } => RawArray {
                bytes: &bytes,
                scalar,
                endian,
            }
            .to_values(),
            Self::Text(values) => Ok(values),
        }
    }
}

impl Numbers for Array<'_> {
    fn number(&self, index: usize) -> Number {
        match self {
            Self::Binary {
                bytes,
                scalar,
                endian,
            } => RawArray {
                bytes,
                scalar: *scalar,
                endian: *endian,
            }
            .number(index),
            Self::Text(values) => values.number(index),
        }
    }
}

/// Whether a field array of this name holds the time of the frame.
fn is_time(name: &str) -> bool {
    name.eq_ignore_ascii_case("TimeValue") || name.eq_ignore_ascii_case("TIME")
}
