//! NumPy `.npy` files (format versions 1 to 3; NEP 1).
//!
//! The header is read here rather than with the npyz crate, which (0.9) multiplies the shape
//! unchecked and allocates the header's declared length. **Invariant others rely on:** the data are
//! exactly as long as the shape says.

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::{Cursor, parse},
    error::{Fault, Parsed, Place, quoted},
    number::{Number, Numbers},
    raw::{Endian, RawArray, Scalar},
};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array of N×3 or N×2 real numbers.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let mut cursor = Cursor::new(bytes);
    let header = Header::parse(header_text(&mut cursor)?)?;
    let (points, dimensions) = header.points()?;
    let data = exactly(&mut cursor, points, dimensions, header.scalar)?;
    let array = RawArray {
        bytes: data,
        scalar: header.scalar,
        endian: header.endian,
    };
    let number = |point: usize, axis: usize| match (axis < dimensions.count(), header.fortran) {
        (false, _) => Number::ZERO,
        (true, false) => array.number(dimensions.count() * point + axis),
        (true, true) => array.number(points * axis + point),
    };
    let mut positions = Positions::with_capacity(points)?;
    for point in 0..points {
        positions.push([0, 1, 2].map(|axis| number(point, axis)))?;
    }
    Ok(PointCloud::new(positions, dimensions))
}

/// Whether a file that begins with these bytes is such an array, as far as its header tells.
pub(super) fn holds_points(begin: &[u8]) -> bool {
    let header = header_text(&mut Cursor::new(begin)).and_then(Header::parse);
    header.is_ok_and(|header| header.points().is_ok())
}

/// The rest of the file, which must be the array's data and nothing else.
fn exactly<'a>(
    cursor: &mut Cursor<'a>,
    points: usize,
    dimensions: Dimensions,
    scalar: Scalar,
) -> Parsed<&'a [u8]> {
    let row = dimensions.count() * scalar.size();
    let (place, present) = (Place::Byte(cursor.at()), cursor.remaining());
    let shape = format!("({points}, {})", dimensions.count());
    match points.checked_mul(row) {
        Some(needed) if needed == present => Ok(cursor.take(needed).unwrap_or_default()),
        Some(needed) if needed < present => Err(Fault::malformed(
            place,
            format!("shape {shape} needs {needed} bytes of data, but {present} follow"),
        )),
        needed => {
            let needed = needed.map_or("over 2^64".to_owned(), |needed| needed.to_string());
            let message =
                format!("shape {shape} needs {needed} bytes of data, but only {present} follow");
            Err(Fault::truncated(place, message))
        }
    }
}

/// The Python dictionary between the magic bytes and the data.
fn header_text<'a>(cursor: &mut Cursor<'a>) -> Parsed<&'a str> {
    if cursor.take(MAGIC.len()) != Some(MAGIC) {
        let message = "the file does not begin with the bytes \\x93NUMPY of a .npy file";
        return Err(Fault::malformed(Place::Byte(0), message));
    }
    let ends = || Fault::truncated(Place::Byte(MAGIC.len()), "the file ends inside its header");
    let length = match cursor.take(2).ok_or_else(ends)? {
        [1, _] => cursor
            .take(2)
            .map(|bytes| u32::from(bytes[0]) | u32::from(bytes[1]) << 8),
        [2 | 3, _] => {
            let bytes = cursor.take(4).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u32::from_le_bytes(*bytes))
        }
        version => {
            let message = format!(
                "version {}.{} is not read; 1 to 3 are",
                version[0], version[1]
            );
            return Err(Fault::unsupported(Place::Byte(MAGIC.len()), message));
        }
    };
    let at = Place::Byte(cursor.at());
    let text = length
        .and_then(|length| cursor.take(length as usize))
        .ok_or_else(ends)?;
    std::str::from_utf8(text).map_err(|_| Fault::malformed(at, "the header is not text"))
}

struct Header {
    scalar: Scalar,
    endian: Endian,
    fortran: bool,
    shape: String,
}

impl Header {
    fn parse(text: &str) -> Parsed<Self> {
        let (scalar, endian) = element_type(text)?;
        let fortran = match value(text, "fortran_order")? {
            order if order.starts_with("True") => true,
            order if order.starts_with("False") => false,
            _ => return Err(header_fault("fortran_order is neither True nor False")),
        };
        let shape = value(text, "shape")?;
        let shape = shape
            .split_inclusive(')')
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok(Self {
            scalar,
            endian,
            fortran,
            shape,
        })
    }

    /// The number of points and of coordinates per point.
    fn points(&self) -> Parsed<(usize, Dimensions)> {
        let refused = || {
            let shape = quoted(self.shape.as_bytes());
            let message = format!("the array's shape is {shape}; (N, 3) or (N, 2) is needed");
            Fault::unsupported(Place::Whole, message)
        };
        let inner = self
            .shape
            .strip_prefix('(')
            .and_then(|shape| shape.strip_suffix(')'));
        let (points, axes) = inner
            .and_then(|inner| inner.split_once(','))
            .ok_or_else(refused)?;
        let dimensions = match axes.trim().trim_end_matches(',') {
            "2" => Dimensions::Two,
            "3" => Dimensions::Three,
            _ => return Err(refused()),
        };
        Ok((
            parse(points.trim().as_bytes()).ok_or_else(refused)?,
            dimensions,
        ))
    }
}

/// The text behind `'key':` in the dictionary.
fn value<'a>(text: &'a str, key: &str) -> Parsed<&'a str> {
    ['\'', '"']
        .iter()
        .find_map(|quote| text.split_once(&format!("{quote}{key}{quote}")))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| header_fault(format!("the header has no '{key}'")))
}

/// Reads a type such as `<f8`: byte order, kind, bytes per element.
fn element_type(text: &str) -> Parsed<(Scalar, Endian)> {
    let descr = value(text, "descr")?;
    let name = descr.split(['\'', '"']).nth(1).unwrap_or_default();
    let plain = descr.starts_with(['\'', '"']);
    let (order, kind) = name.split_at_checked(1).unwrap_or_default();
    let endian = match order {
        "<" => Some(Endian::Little),
        ">" => Some(Endian::Big),
        "=" | "|" if cfg!(target_endian = "big") => Some(Endian::Big),
        "=" | "|" => Some(Endian::Little),
        _ => None,
    };
    scalar(kind).zip(endian).filter(|_| plain).ok_or_else(|| {
        let found = quoted(
            descr
                .split_inclusive([',', ']'])
                .next()
                .unwrap_or_default()
                .as_bytes(),
        );
        let message = format!(
            "the array's type is {found}; real numbers are needed (f2, f4, f8, i1 to i8, u1 to u8)"
        );
        Fault::unsupported(Place::Whole, message)
    })
}

fn scalar(kind: &str) -> Option<Scalar> {
    Some(match kind {
        "f2" => Scalar::F16,
        "f4" => Scalar::F32,
        "f8" => Scalar::F64,
        "i1" => Scalar::I8,
        "i2" => Scalar::I16,
        "i4" => Scalar::I32,
        "i8" => Scalar::I64,
        "u1" => Scalar::U8,
        "u2" => Scalar::U16,
        "u4" => Scalar::U32,
        "u8" => Scalar::U64,
        _ => return None,
    })
}

fn header_fault(message: impl Into<String>) -> Fault {
    Fault::malformed(Place::Byte(MAGIC.len() + 2), message)
}
