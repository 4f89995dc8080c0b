//! The header of a polygon file: its encoding, its elements and their properties.
//!
//! **Invariant others rely on:** the cursor is left at the first byte after `end_header`'s line.

use crate::{
    cursor::{Cursor, parse},
    error::{Fault, Parsed, Place, quoted},
    raw::{Endian, Scalar},
};

/// Content of the header.
pub(super) struct Header {
    pub(super) encoding: Encoding,
    pub(super) elements: Vec<Element>,
}

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Ascii,
    Binary(Endian),
}

/// An element type of the file, such as vertices or faces.
pub(super) struct Element {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) properties: Vec<Property>,
}

impl Element {
    /// As in "250 elements 'vertex'".
    pub(super) fn described(&self) -> String {
        format!("{} elements {}", self.count, quoted(self.name.as_bytes()))
    }
}

pub(super) struct Property {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Number of words that are split from a header line: one more than any line has.
const MAX_WORDS: usize = 6;

/// Maximum number of header lines, which bounds the memory for elements and properties.
const MAX_LINES: usize = 1 << 16;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Scalar(Scalar),
    List { length: Scalar, item: Scalar },
}

impl Kind {
    /// The least number of bytes it takes.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Scalar(scalar) | Self::List { length: scalar, .. } => scalar.size(),
        }
    }
}

/// Where the coordinates are: which element, and which of its properties.
pub(super) struct Axes {
    pub(super) element: usize,
    pub(super) properties: [Option<usize>; 3],
}

impl Header {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        if cursor.next_line().map(<[u8]>::trim_ascii) != Some(b"ply") {
            let message = "the file does not begin with the line 'ply'";
            return Err(Fault::malformed(Place::Line(1), message));
        }
        let mut encoding = None;
        let mut elements = Vec::new();
        for line in 2.. {
            let Some(text) = cursor.next_line() else {
                let message = "the file ends before the line 'end_header'";
                return Err(Fault::truncated(Place::Line(line), message));
            };
            if line > MAX_LINES {
                let message = format!("the header has more than {MAX_LINES} lines");
                return Err(Fault::unsupported(Place::Line(line), message));
            }
            let words: Vec<_> = text
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .take(MAX_WORDS)
                .collect();
            match words.as_slice() {
                [b"end_header"] => break,
                [] | [b"comment" | b"obj_info", ..] => {}
                [b"format", name, b"1.0"] => encoding = Some(read_encoding(name, line)?),
                _ => read_definition(&words, &mut elements).ok_or_else(|| {
                    let message = format!("{} is not understood", quoted(text));
                    Fault::malformed(Place::Line(line), message)
                })?,
            }
        }
        let encoding = encoding.ok_or_else(|| {
            Fault::malformed(Place::Line(2), "the header has no line 'format … 1.0'")
        })?;
        Ok(Self { encoding, elements })
    }

    /// Finds x, y and perhaps z among the properties of `vertex`.
    pub(super) fn axes(&self) -> Parsed<Axes> {
        let fault = |message| Err(Fault::malformed(Place::Whole, message));
        let Some(element) = self
            .elements
            .iter()
            .position(|element| element.name == "vertex")
        else {
            return fault("the header announces no element 'vertex'".to_owned());
        };
        let found = &self.elements[element].properties;
        let axis = |name: &str| {
            found.iter().position(|property| {
                property.name.eq_ignore_ascii_case(name) && matches!(property.kind, Kind::Scalar(_))
            })
        };
        let properties = ["x", "y", "z"].map(axis);
        for (name, property) in ["x", "y"].iter().zip(properties) {
            if property.is_none() {
                return fault(format!("the element 'vertex' has no property '{name}'"));
            }
        }
        Ok(Axes {
            element,
            properties,
        })
    }
}

fn read_encoding(name: &[u8], line: usize) -> Parsed<Encoding> {
    match name {
        b"ascii" => Ok(Encoding::Ascii),
        b"binary_little_endian" => Ok(Encoding::Binary(Endian::Little)),
        b"binary_big_endian" => Ok(Encoding::Binary(Endian::Big)),
        _ => {
            let message = format!(
                "the format {} is not read; ascii, binary_little_endian and \
                 binary_big_endian are",
                quoted(name)
            );
            Err(Fault::unsupported(Place::Line(line), message))
        }
    }
}

/// Reads an `element` or `property` line; `None` when it is neither.
fn read_definition(words: &[&[u8]], elements: &mut Vec<Element>) -> Option<()> {
    match words {
        [b"element", name, count] => elements.push(Element {
            name: text(name),
            count: parse(count)?,
            properties: Vec::new(),
        }),
        [b"property", b"list", length, item, name] => {
            let kind = Kind::List {
                length: list_length(length)?,
                item: scalar(item)?,
            };
            elements.last_mut()?.properties.push(Property {
                name: text(name),
                kind,
            });
        }
        [b"property", kind, name] => {
            let kind = Kind::Scalar(scalar(kind)?);
            elements.last_mut()?.properties.push(Property {
                name: text(name),
                kind,
            });
        }
        _ => return None,
    }
    Some(())
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// The lengths of lists are integers.
fn list_length(name: &[u8]) -> Option<Scalar> {
    scalar(name).filter(|scalar| !matches!(scalar, Scalar::F32 | Scalar::F64))
}

fn scalar(name: &[u8]) -> Option<Scalar> {
    Some(match name {
        b"char" | b"int8" => Scalar::I8,
        b"uchar" | b"uint8" => Scalar::U8,
        b"short" | b"int16" => Scalar::I16,
        b"ushort" | b"uint16" => Scalar::U16,
        b"int" | b"int32" => Scalar::I32,
        b"uint" | b"uint32" => Scalar::U32,
        b"int64" => Scalar::I64,
        b"uint64" => Scalar::U64,
        b"float" | b"float32" => Scalar::F32,
        b"double" | b"float64" => Scalar::F64,
        _ => return None,
    })
}
