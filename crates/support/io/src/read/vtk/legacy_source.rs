//! The low level of legacy VTK files: header lines, element types and arrays in text or binary.
//!
//! Binary data begin right after the line that announces them and are big-endian. **Invariant
//! others rely on:** an array is either delivered or passed over completely.

use std::borrow::Cow;

use crate::{
    cursor::{Cursor, parse},
    error::{Fault, Parsed, Place, quoted},
    raw::{Endian, Scalar},
};

use super::Array;

/// A legacy file being read.
pub(super) struct Source<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) encoding: Encoding,
    /// Since version 5 cells are stored as offsets and connectivity.
    cells_have_offsets: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Text,
    Binary,
}

/// Elements of an array.
#[derive(Clone, Copy)]
pub(super) enum Element {
    Number(Scalar),
    /// Packed eight to a byte in binary files; not kept.
    Bit,
    /// Not kept.
    Text,
}

impl<'a> Source<'a> {
    /// Reads the three header lines.
    pub(super) fn open(bytes: &'a [u8]) -> Parsed<Self> {
        let mut cursor = Cursor::new(bytes);
        let first = cursor.next_line().unwrap_or_default().trim_ascii();
        let version = version(first)?;
        if version > 5 {
            let message = format!("version {version} is not read; 1 to 5.1 are");
            return Err(Fault::unsupported(Place::Line(1), message));
        }
        cursor.next_line();
        let third = cursor
            .next_line()
            .ok_or_else(|| Fault::truncated(cursor.line(), "the file ends in its header"))?;
        let encoding = match third.trim_ascii() {
            text if text.eq_ignore_ascii_case(b"ASCII") => Encoding::Text,
            text if text.eq_ignore_ascii_case(b"BINARY") => Encoding::Binary,
            text => {
                let message = format!("{} is neither ASCII nor BINARY", quoted(text));
                return Err(Fault::malformed(Place::Line(3), message));
            }
        };
        Ok(Self {
            cursor,
            encoding,
            cells_have_offsets: version == 5,
        })
    }

    /// Reads the name of an element type.
    pub(super) fn element(&mut self) -> Parsed<Element> {
        let word = self.cursor.expect_word("an element type")?;
        element(word.text).ok_or_else(|| {
            let message = format!("{} is not an element type that is read", quoted(word.text));
            Fault::unsupported(self.cursor.line_of(word.at), message)
        })
    }

    /// Reads the rest of a line after `SCALARS name`: the type, the number of components if given,
    /// and the name of a lookup table.
    pub(super) fn scalars(&mut self) -> Parsed<(Element, usize)> {
        let element = self.element()?;
        let components = if self.cursor.is_at_line_end() {
            1
        } else {
            self.cursor.expect_count("the number of components")?
        };
        if self
            .cursor
            .peek_word()
            .is_some_and(|w| w.text.eq_ignore_ascii_case(b"LOOKUP_TABLE"))
        {
            self.cursor.next_word();
            self.cursor.expect_word("the name of a lookup table")?;
        }
        Ok((element, components))
    }

    /// Reads `count` elements that begin after the current line; `None` for types that are not
    /// kept.
    pub(super) fn array(
        &mut self,
        element: Element,
        count: usize,
        what: &str,
    ) -> Parsed<Option<Array<'a>>> {
        match (self.encoding, element) {
            (Encoding::Text, Element::Number(scalar)) => {
                let values = self.cursor.expect_values(scalar, count, what)?;
                Ok(Some(Array::Text(values)))
            }
            (Encoding::Text, Element::Bit) => self
                .cursor
                .expect_values(Scalar::U8, count, what)
                .map(|_| None),
            (Encoding::Binary, Element::Number(scalar)) => {
                let bytes = self.block(count.saturating_mul(scalar.size()), what)?;
                let bytes = Cow::Borrowed(bytes);
                Ok(Some(Array::Binary {
                    bytes,
                    scalar,
                    endian: Endian::Big,
                }))
            }
            (Encoding::Binary, Element::Bit) => self.block(count.div_ceil(8), what).map(|_| None),
            (_, Element::Text) => self.skip_texts(count, what).map(|()| None),
        }
    }

    /// The bytes of an array, which begin after the current line.
    fn block(&mut self, length: usize, what: &str) -> Parsed<&'a [u8]> {
        self.cursor.next_line();
        let (at, present) = (self.cursor.at(), self.cursor.remaining());
        self.cursor.take(length).ok_or_else(|| {
            let message = format!("{what} needs {length} bytes, but only {present} follow");
            Fault::truncated(Place::Byte(at), message)
        })
    }

    /// Passes over strings: one per line in text files, preceded by their length in binary ones.
    fn skip_texts(&mut self, count: usize, what: &str) -> Parsed<()> {
        self.cursor.next_line();
        for index in 0..count {
            let found = match self.encoding {
                Encoding::Text => self.cursor.next_line(),
                Encoding::Binary => take_string(&mut self.cursor),
            };
            found.ok_or_else(|| {
                let message = format!("the file ends after {index} of {count} strings of {what}");
                Fault::truncated(Place::Byte(self.cursor.at()), message)
            })?;
        }
        Ok(())
    }

    /// Passes over a section of cells, in the layout of this file's version.
    pub(super) fn skip_cells(&mut self) -> Parsed<()> {
        let first = self.cursor.expect_count("the number of cells or offsets")?;
        let second = self.cursor.expect_count("the size of the cell list")?;
        if !self.cells_have_offsets {
            let list = self.array(Element::Number(Scalar::I32), second, "the cells");
            return list.map(drop);
        }
        for count in [first, second] {
            self.cursor.expect_word("OFFSETS or CONNECTIVITY")?;
            let element = self.element()?;
            self.array(element, count, "the cells")?;
        }
        Ok(())
    }

    /// Passes over colours: bytes in binary files, numbers between 0 and 1 in text files.
    pub(super) fn skip_colors(&mut self, count: usize) -> Parsed<()> {
        let scalar = match self.encoding {
            Encoding::Text => Scalar::F32,
            Encoding::Binary => Scalar::U8,
        };
        self.array(Element::Number(scalar), count, "the colours")
            .map(drop)
    }

    /// Passes over metadata, which end with an empty line.
    pub(super) fn skip_metadata(&mut self) {
        self.cursor.next_line();
        while self
            .cursor
            .next_line()
            .is_some_and(|line| !line.trim_ascii().is_empty())
        {}
    }
}

/// The major version in `# vtk DataFile Version 4.1`.
fn version(line: &[u8]) -> Parsed<u32> {
    let version = line
        .strip_prefix(b"# vtk DataFile Version")
        .and_then(|rest| rest.trim_ascii().split(|&byte| byte == b'.').next())
        .and_then(parse);
    version.ok_or_else(|| {
        let remedy = match line.first() {
            Some(b'<') => "; an XML file should be called .vtp or .vtu",
            _ => "",
        };
        let message = format!("the file does not begin with '# vtk DataFile Version'{remedy}");
        Fault::malformed(Place::Line(1), message)
    })
}

fn element(name: &[u8]) -> Option<Element> {
    let scalar = match name.to_ascii_lowercase().as_slice() {
        b"bit" => return Some(Element::Bit),
        b"string" | b"utf8_string" => return Some(Element::Text),
        b"char" | b"signed_char" => Scalar::I8,
        b"unsigned_char" => Scalar::U8,
        b"short" => Scalar::I16,
        b"unsigned_short" => Scalar::U16,
        // Identifiers are written with 32 bits, whatever they have in memory.
        b"int" | b"vtkidtype" => Scalar::I32,
        b"unsigned_int" => Scalar::U32,
        b"long" | b"vtktypeint64" | b"long_long" => Scalar::I64,
        b"unsigned_long" | b"vtktypeuint64" | b"unsigned_long_long" => Scalar::U64,
        b"float" => Scalar::F32,
        b"double" => Scalar::F64,
        _ => return None,
    };
    Some(Element::Number(scalar))
}

/// A string after its length, whose two highest bits say how many bytes the length takes.
fn take_string<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let first = usize::from(*cursor.take(1)?.first()?);
    let more = match first >> 6 {
        3 => 0,
        2 => 1,
        1 => 3,
        _ => 7,
    };
    let length = cursor
        .take(more)?
        .iter()
        .try_fold(first & 0x3f, |length, &byte| {
            length.checked_mul(256)?.checked_add(usize::from(byte))
        })?;
    cursor.take(length)
}

/// Array names are written with `%20` for a blank, and other signs likewise.
pub(super) fn decoded_name(name: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if byte == b'%' => {
                decoded.push(code);
                rest = &after[2..];
            }
            _ => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded_name(b"a%20name%2"), "a name%2");
        assert_eq!(decoded_name(b"100%"), "100%");
    }
}
