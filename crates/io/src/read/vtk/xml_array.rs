//! From a `DataArray` tag to its numbers.
//!
//! **Invariant others rely on:** an array has as many numbers as its tag and its piece announce,
//! and all arrays together are no larger than the file could hold when compressed to the utmost,
//! so a small file cannot ask for unbounded memory by pointing at the same data many times.

use crate::{
    cursor::Cursor,
    error::{Fault, Parsed, Place, quoted},
};

use super::{
    Array,
    encoded::{Compressor, Encoded},
    xml_document::{Appended, DataArray, Document, Payload},
};

/// Reads the arrays of one file.
pub(super) struct Decoder<'d, 'a> {
    file: &'a [u8],
    document: &'d Document<'a>,
    /// Bytes decoded so far.
    decoded: usize,
}

impl<'d, 'a> Decoder<'d, 'a> {
    pub(super) fn new(file: &'a [u8], document: &'d Document<'a>) -> Self {
        Self {
            file,
            document,
            decoded: 0,
        }
    }

    /// Reads `tuples` tuples.
    pub(super) fn read(&mut self, array: &DataArray, tuples: usize) -> Parsed<Array<'a>> {
        let Some(scalar) = array.scalar else {
            let message = format!(
                "the array {} is not of numbers",
                quoted(array.name.as_bytes())
            );
            return Err(Fault::unsupported(array.place, message));
        };
        let count = tuples.saturating_mul(array.components);
        let length = count.saturating_mul(scalar.size());
        self.decoded = self.decoded.saturating_add(length);
        if !Compressor::can_hold(self.file.len(), self.decoded) {
            let message = format!(
                "the array {} is announced with {count} numbers, more than a file of {} bytes \
                 can hold",
                quoted(array.name.as_bytes()),
                self.file.len()
            );
            return Err(Fault::truncated(array.place, message));
        }
        let (mut source, place) = match array.payload {
            Payload::Text(start, end) => {
                return read_text(Cursor::over(self.file, start, end), array, count);
            }
            Payload::Base64(start, end) => {
                (Encoded::base64(&self.file[start..end]), Place::Byte(start))
            }
            Payload::Appended(offset) => self.appended(offset, array)?,
        };
        let bytes = self.document.layout.read(&mut source, length, place)?;
        Ok(Array::Binary {
            bytes,
            scalar,
            endian: self.document.layout.endian,
        })
    }

    fn appended(&self, offset: usize, array: &DataArray) -> Parsed<(Encoded<'a>, Place)> {
        let Some(Appended { bytes, is_base64 }) = self.document.appended else {
            let message = "the array's data should be appended, but the file has no AppendedData";
            return Err(Fault::malformed(array.place, message));
        };
        let data = bytes.get(offset..).ok_or_else(|| {
            let message = format!(
                "offset {offset} lies beyond the {} bytes of appended data",
                bytes.len()
            );
            Fault::malformed(array.place, message)
        })?;
        let place = Place::Byte(self.file.len() - data.len());
        match is_base64 {
            true => Ok((Encoded::base64_beginning(data), place)),
            false => Ok((Encoded::Raw(data), place)),
        }
    }
}

fn read_text<'a>(mut cursor: Cursor<'a>, array: &DataArray, count: usize) -> Parsed<Array<'a>> {
    let what = format!("the array {}", quoted(array.name.as_bytes()));
    let Some(scalar) = array.scalar else {
        return Err(Fault::unsupported(
            array.place,
            format!("{what} is not of numbers"),
        ));
    };
    let values = cursor.expect_values(scalar, count, &what)?;
    match cursor.next_word() {
        None => Ok(Array::Text(values)),
        Some(word) => {
            let message = format!("{what} has more than the {count} numbers announced");
            Err(Fault::malformed(cursor.line_of(word.at), message))
        }
    }
}
