//! Reads the numbers of a `DataArray` tag.
//!
//! **Invariants others rely on:** an array has as many numbers as its tag and its piece announce.
//! All arrays together are no larger than the file could hold at the highest compression, and
//! together they are decoded from at most [`SHARED`] times its bytes. So a small file cannot cause
//! unbounded allocation by referring to the same data many times.

use crate::{
    cursor::Cursor,
    error::{Fault, Parsed, Place, quoted},
    raw::Scalar,
};

use super::{
    Array,
    encoded::{Compressor, EncodedBytes, Layout},
    xml_document::{AppendedSection, DataArray, Document, Payload},
};

/// How often the bytes of a file may be decoded: writers may let equal arrays share their data.
const SHARED: usize = 4;

/// Reads the arrays of one file.
pub(super) struct Decoder<'d, 'a> {
    file: &'a [u8],
    document: &'d Document<'a>,
    /// Bytes decoded so far.
    decoded: usize,
    /// Bytes of the file they were decoded from.
    consumed: usize,
}

impl<'d, 'a> Decoder<'d, 'a> {
    pub(super) fn new(file: &'a [u8], document: &'d Document<'a>) -> Self {
        Self {
            file,
            document,
            decoded: 0,
            consumed: 0,
        }
    }

    /// Refuses a file with unreadable arrays, before memory is allocated for any of them. This
    /// unpacks the file once more, so only files that unpack to several times their size are
    /// checked, which files of solvers do not.
    pub(super) fn check(&self) -> Parsed<()> {
        let arrays = || {
            self.document.pieces.iter().flat_map(|piece| {
                let arrays = piece.positions.iter().chain(&piece.data);
                arrays.map(move |array| (array, piece.points))
            })
        };
        let sizes = arrays().map(|(array, tuples)| {
            let size = array.scalar.map_or(0, Scalar::size);
            tuples.saturating_mul(array.components).saturating_mul(size)
        });
        let announced = sizes.fold(0, usize::saturating_add);
        if announced <= self.file.len().saturating_mul(SHARED) {
            return Ok(());
        }
        let mut dry = Self::new(self.file, self.document);
        arrays().try_for_each(|(array, tuples)| match array.payload {
            Payload::Text(..) => Ok(()),
            _ => dry.decode(array, tuples, |layout, source, length, place| {
                layout.check(source, length, place)
            }),
        })
    }

    /// Reads `tuples` tuples.
    pub(super) fn read(&mut self, array: &DataArray, tuples: usize) -> Parsed<Array<'a>> {
        let (Payload::Text(start, end), Some(scalar)) = (array.payload, array.scalar) else {
            return self.read_binary(array, tuples);
        };
        self.announce(array, scalar, tuples)?;
        let count = tuples.saturating_mul(array.components);
        read_text(Cursor::over(self.file, start, end), array, count)
    }

    fn read_binary(&mut self, array: &DataArray, tuples: usize) -> Parsed<Array<'a>> {
        let endian = self.document.layout.endian;
        let bytes = self.decode(array, tuples, |layout, source, length, place| {
            layout.read(source, length, place)
        })?;
        // Where there is none, that was refused.
        let scalar = array.scalar.unwrap_or(Scalar::U8);
        Ok(Array::Binary {
            bytes,
            scalar,
            endian,
        })
    }

    /// Counts an array that is about to be read; returns its length in bytes.
    fn announce(&mut self, array: &DataArray, scalar: Scalar, tuples: usize) -> Parsed<usize> {
        let count = tuples.saturating_mul(array.components);
        let length = count.saturating_mul(scalar.size());
        self.decoded = self.decoded.saturating_add(length);
        if Compressor::can_hold(self.file.len(), self.decoded) {
            return Ok(length);
        }
        let message = format!(
            "the array {} is announced with {count} numbers, more than a file of {} bytes can hold",
            quoted(array.name.as_bytes()),
            self.file.len()
        );
        Err(Fault::truncated(array.place, message))
    }

    /// Has `decode` take an array from its source.
    fn decode<T>(
        &mut self,
        array: &DataArray,
        tuples: usize,
        decode: impl FnOnce(&Layout, &mut EncodedBytes<'a>, usize, Place) -> Parsed<T>,
    ) -> Parsed<T> {
        let Some(scalar) = array.scalar else {
            let message = format!(
                "the array {} is not of numbers",
                quoted(array.name.as_bytes())
            );
            return Err(Fault::unsupported(array.place, message));
        };
        if let Some(name) = &self.document.unknown_compressor {
            let name = quoted(name.as_bytes());
            let message = format!("the compressor {name} is not read; save with ZLib, LZ4 or none");
            return Err(Fault::unsupported(array.place, message));
        }
        let length = self.announce(array, scalar, tuples)?;
        let (mut source, place) = match array.payload {
            Payload::Text(..) => {
                let message = "expected binary data, found text";
                return Err(Fault::malformed(array.place, message));
            }
            Payload::Base64(start, end) => (
                EncodedBytes::base64(&self.file[start..end])?,
                Place::Byte(start),
            ),
            Payload::Appended(offset) => self.appended(offset, array)?,
        };
        let before = source.remaining();
        let layout = self.document.layout;
        // Text is at least as long as the unpacked array, which bounds the memory before it is
        // taken.
        let least = if layout.compressor.is_none() {
            length
        } else {
            0
        };
        let most = self.file.len().saturating_mul(SHARED);
        let shares = |consumed: usize| (consumed > most).then(|| self.shares(array));
        if let Some(fault) = shares(self.consumed.saturating_add(least)) {
            return Err(fault);
        }
        let decoded = decode(&layout, &mut source, length, place)?;
        let consumed = self.consumed + (before - source.remaining().min(before));
        if let Some(fault) = shares(consumed) {
            return Err(fault);
        }
        self.consumed = consumed;
        Ok(decoded)
    }

    fn shares(&self, array: &DataArray) -> Fault {
        let message = format!(
            "up to the array {} the arrays have more than {SHARED} times the {} bytes of the file: \
             they share their data",
            quoted(array.name.as_bytes()),
            self.file.len()
        );
        Fault::malformed(array.place, message)
    }

    fn appended(&self, offset: usize, array: &DataArray) -> Parsed<(EncodedBytes<'a>, Place)> {
        let Some(AppendedSection { bytes, is_base64 }) = self.document.appended else {
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
        if is_base64 {
            Ok((EncodedBytes::base64_beginning(data), place))
        } else {
            Ok((EncodedBytes::Raw(data), place))
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
