//! Polygon files (PLY 1.0, Turk 1994): the `vertex` element's x, y and z, in all three encodings.
//!
//! Read here rather than with the ply-rs-bw crate, which refuses `nan` in text files and believes
//! absurd counts. Other properties and elements are passed over, but passed over in full.
//! **Invariant others rely on:** a file that ends before its last element does is refused.

use nearfield_grid::memory::Shortage;

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::{Cursor, not_a_number, parse},
    error::{ErrorKind, Fault, Parsed, Place, quoted},
    number::{Number, Numbers},
    raw::{Endian, RawArray, Scalar},
};

use super::ply_header::{Element, Encoding, Header, Kind};

/// Reads the positions of the `vertex` element.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    let mut cursor = Cursor::new(bytes);
    let header = Header::read(&mut cursor)?;
    let axes = header.axes()?;
    let mut positions = Positions::default();
    for (index, element) in header.elements.iter().enumerate() {
        let vertices = (index == axes.element).then_some(&mut positions);
        let sink = Sink {
            axes: axes.properties,
            positions: vertices,
        };
        match header.encoding {
            Encoding::Ascii => read_text(&mut cursor, element, sink)?,
            Encoding::Binary(endian) => read_binary(&mut cursor, element, endian, sink)?,
        }
    }
    let dimensions = match axes.properties[2] {
        Some(_) => Dimensions::Three,
        None => Dimensions::Two,
    };
    let properties = header.elements[axes.element].properties.iter().enumerate();
    let others = properties.filter(|(place, _)| !axes.properties.contains(&Some(*place)));
    Ok(PointCloud {
        unread: others.map(|(_, property)| property.name.clone()).collect(),
        ..PointCloud::new(positions, dimensions)
    })
}

/// Where an element's values go: nowhere, or to the positions.
struct Sink<'a> {
    axes: [Option<usize>; 3],
    positions: Option<&'a mut Positions>,
}

impl Sink<'_> {
    /// Notes a property's value when it is a coordinate.
    fn note(&self, point: &mut [Number; 3], property: usize, value: Number) {
        if let Some(axis) = self.axes.iter().position(|&axis| axis == Some(property)) {
            point[axis] = value;
        }
    }

    fn finish(&mut self, point: [Number; 3]) -> Result<(), Shortage> {
        match &mut self.positions {
            Some(positions) => positions.push(point),
            None => Ok(()),
        }
    }
}

fn read_binary(
    cursor: &mut Cursor<'_>,
    element: &Element,
    endian: Endian,
    mut sink: Sink<'_>,
) -> Parsed<()> {
    let smallest: usize = element
        .properties
        .iter()
        .map(|property| property.kind.size())
        .sum();
    if element
        .count
        .checked_mul(smallest)
        .is_none_or(|bytes| bytes > cursor.remaining())
    {
        let message = format!(
            "{} of {smallest} bytes or more are announced, but only {} bytes follow",
            element.described(),
            cursor.remaining()
        );
        return Err(Fault::truncated(Place::Byte(cursor.at()), message));
    }
    if smallest == 0 {
        return Ok(());
    }
    for index in 0..element.count {
        let at = Place::Byte(cursor.at());
        let point = binary_instance(cursor, element, endian, &sink).map_err(|(kind, broken)| {
            let message = format!("number {index} of {} {broken}", element.described());
            Fault::new(kind, at, message)
        })?;
        sink.finish(point)?;
    }
    Ok(())
}

/// Reads one instance, or returns its fault.
fn binary_instance(
    cursor: &mut Cursor<'_>,
    element: &Element,
    endian: Endian,
    sink: &Sink<'_>,
) -> Result<[Number; 3], InstanceFault> {
    let mut point = [Number::ZERO; 3];
    for (index, property) in element.properties.iter().enumerate() {
        match property.kind {
            Kind::Scalar(scalar) => {
                sink.note(&mut point, index, take_number(cursor, scalar, endian)?);
            }
            Kind::List { length, item } => {
                let items = take_number(cursor, length, endian)?.double;
                if items < 0.0 {
                    return Err((ErrorKind::Malformed, "has a list of negative length"));
                }
                let bytes = (items as usize).saturating_mul(item.size());
                cursor.take(bytes).ok_or(ENDS)?;
            }
        }
    }
    Ok(point)
}

/// The mistake in an instance, in words that follow its name.
type InstanceFault = (ErrorKind, &'static str);

const ENDS: InstanceFault = (ErrorKind::Truncated, "lies beyond the end of the file");

fn take_number(
    cursor: &mut Cursor<'_>,
    scalar: Scalar,
    endian: Endian,
) -> Result<Number, InstanceFault> {
    let bytes = cursor.take(scalar.size()).ok_or(ENDS)?;
    Ok(RawArray {
        bytes,
        scalar,
        endian,
    }
    .number(0))
}

fn read_text(cursor: &mut Cursor<'_>, element: &Element, mut sink: Sink<'_>) -> Parsed<()> {
    let words = element.count.saturating_mul(element.properties.len());
    cursor.check_room_for_words(words, &element.described())?;
    if words == 0 {
        return Ok(());
    }
    let mut line = cursor.line_number();
    for index in 0..element.count {
        let text = loop {
            let text = cursor.next_line().ok_or_else(|| {
                let message = format!("the file ends after {index} of {}", element.described());
                Fault::truncated(Place::Line(line), message)
            })?;
            line += 1;
            if !text.trim_ascii().is_empty() {
                break text;
            }
        };
        sink.finish(text_instance(text, line - 1, element, &sink)?)?;
    }
    Ok(())
}

fn text_instance(
    text: &[u8],
    line: usize,
    element: &Element,
    sink: &Sink<'_>,
) -> Parsed<[Number; 3]> {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .zip(1..);
    let mut next = |name: &str| {
        words.next().ok_or_else(|| {
            let message = format!("the line ends before the property '{name}'");
            Fault::malformed(Place::Line(line), message)
        })
    };
    let mut point = [Number::ZERO; 3];
    for (index, property) in element.properties.iter().enumerate() {
        let (word, column) = next(&property.name)?;
        let fault = || Fault::malformed(Place::Column { line, column }, not_a_number(word));
        match property.kind {
            Kind::Scalar(scalar) => {
                sink.note(&mut point, index, number(word, scalar).ok_or_else(fault)?);
            }
            Kind::List { .. } => {
                let items: usize = parse(word).ok_or_else(fault)?;
                (0..items).try_for_each(|_| next(&property.name).map(drop))?;
            }
        }
    }
    match words.next() {
        None => Ok(point),
        Some((word, column)) => {
            let message = format!("{} is more than the properties announced", quoted(word));
            Err(Fault::malformed(Place::Column { line, column }, message))
        }
    }
}

/// Reads a word as the declared type, so that a `float` is rounded once, from the text.
fn number(word: &[u8], scalar: Scalar) -> Option<Number> {
    match scalar {
        Scalar::F16 | Scalar::F32 => parse::<f32>(word).map(Number::from),
        Scalar::F64 => parse::<f64>(word).map(Number::from),
        _ => parse::<i64>(word).map(Number::from),
    }
}
