//! The bytes of an array in a VTK XML file, out of raw or base64 text and compressed blocks.
//!
//! An uncompressed array is its length and its bytes. A compressed one is the number of blocks, the
//! size of a block, the size of the last one (0 when it is full), the compressed size of each, and
//! the blocks. **Invariant others rely on:** [`Layout::read`] delivers exactly the bytes asked for
//! and takes no memory that the file's own bytes cannot justify.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use base64::{Engine, decoded_len_estimate, engine::general_purpose::STANDARD};
use nearfield_grid::memory::{Shortage, make_room, with_room};

use crate::{
    error::{Fault, Parsed, Place},
    raw::Endian,
};

const ARRAY: &str = "an array of a file";

/// Maximum size of a block that is unpacked only as a check, bytes.
const LARGEST_CHECKED: usize = 1 << 25;

/// Bytes that are stored directly or as base64 text.
pub(super) enum EncodedBytes<'a> {
    Raw(&'a [u8]),
    /// `text` is still to be decoded; `spare` holds bytes that were decoded ahead.
    Base64 {
        text: Cow<'a, [u8]>,
        at: usize,
        spare: Vec<u8>,
    },
}

/// Why bytes are missing.
enum Missing {
    Ended,
    NotBase64,
    NoMemory(Shortage),
}

impl<'a> EncodedBytes<'a> {
    /// Base64 text, in which blanks count for nothing.
    ///
    /// # Errors
    /// [`Shortage`], where blanks have to be taken out.
    pub(super) fn base64(text: &'a [u8]) -> Result<Self, Shortage> {
        let text = text.trim_ascii();
        let text = if text.iter().any(u8::is_ascii_whitespace) {
            let mut dense = with_room(text.len(), ARRAY)?;
            dense.extend(text.iter().filter(|byte| !byte.is_ascii_whitespace()));
            Cow::Owned(dense)
        } else {
            Cow::Borrowed(text)
        };
        Ok(Self::Base64 {
            text,
            at: 0,
            spare: Vec::new(),
        })
    }

    /// Base64 text without blanks; only its beginning may be needed.
    pub(super) fn base64_beginning(text: &'a [u8]) -> Self {
        Self::Base64 {
            text: Cow::Borrowed(text),
            at: 0,
            spare: Vec::new(),
        }
    }

    /// Bytes of the file that are still to be decoded.
    pub(super) fn remaining(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.len(),
            Self::Base64 { text, at, .. } => text.len().saturating_sub(*at),
        }
    }

    /// Maximum number of bytes that the rest can decode to.
    fn max_left(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.len(),
            Self::Base64 { text, at, spare } => {
                spare.len() + text.len().saturating_sub(*at) / 4 * 3
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<Cow<'a, [u8]>, Missing> {
        match self {
            Self::Raw(bytes) => {
                let (taken, rest) = bytes.split_at_checked(count).ok_or(Missing::Ended)?;
                *bytes = rest;
                Ok(Cow::Borrowed(taken))
            }
            Self::Base64 { text, at, spare } => {
                while spare.len() < count {
                    let rest = text.get(*at..).unwrap_or_default();
                    let run = run(rest, count - spare.len());
                    if run.is_empty() {
                        return Err(Missing::Ended);
                    }
                    let most = spare.len() + decoded_len_estimate(run.len());
                    make_room(spare, most, ARRAY).map_err(Missing::NoMemory)?;
                    STANDARD
                        .decode_vec(run, spare)
                        .map_err(|_| Missing::NotBase64)?;
                    *at += run.len();
                }
                let rest = spare.split_off(count);
                Ok(Cow::Owned(std::mem::replace(spare, rest)))
            }
        }
    }
}

/// The beginning of the text that decodes to `count` bytes, at most up to padding: parts that were
/// encoded separately are padded separately.
fn run(text: &[u8], count: usize) -> &[u8] {
    let length = count.div_ceil(3).saturating_mul(4).min(text.len() / 4 * 4);
    let run = &text[..length];
    match run.iter().position(|&byte| byte == b'=') {
        Some(padding) => &run[..padding / 4 * 4 + 4],
        None => run,
    }
}

/// How a file stores its binary arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) endian: Endian,
    /// Whether lengths take 64 bits instead of 32.
    pub(super) wide: bool,
    pub(super) compressor: Option<Compressor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressor {
    Zlib,
    Lz4,
}

impl Layout {
    /// Reads an array of exactly `length` bytes; `place` is for messages.
    pub(super) fn read<'a>(
        &self,
        source: &mut EncodedBytes<'a>,
        length: usize,
        place: Place,
    ) -> Parsed<Cow<'a, [u8]>> {
        let mut input = Input {
            layout: *self,
            source,
            place,
        };
        if self.compressor.is_none() {
            let [stored] = input.words()?;
            check_length(stored, length, place)?;
            return input.take(length);
        }
        let mut bytes = Vec::new();
        self.unpack_blocks(&mut input, length, Sink::Keep(&mut bytes))?;
        Ok(Cow::Owned(bytes))
    }

    /// Reads an array like [`read`](Self::read) but keeps nothing, so faults are found before
    /// memory is allocated. Skips blocks that cannot be unpacked piece by piece and are larger than
    /// [`LARGEST_CHECKED`].
    pub(super) fn check(
        &self,
        source: &mut EncodedBytes<'_>,
        length: usize,
        place: Place,
    ) -> Parsed<()> {
        let mut input = Input {
            layout: *self,
            source,
            place,
        };
        if self.compressor.is_none() {
            let [stored] = input.words()?;
            check_length(stored, length, place)?;
            if length > input.source.max_left() {
                return Err(input.ended(length));
            }
            return input.take(length).map(drop);
        }
        self.unpack_blocks(&mut input, length, Sink::Drop)
    }

    /// Unpacks the blocks of an array of `length` bytes.
    fn unpack_blocks(
        &self,
        input: &mut Input<'_, '_>,
        length: usize,
        mut sink: Sink<'_>,
    ) -> Parsed<()> {
        let place = input.place;
        let Some(compressor) = self.compressor else {
            return Ok(());
        };
        let [blocks, full, last] = input.words()?;
        let last = if last == 0 { full } else { last };
        let total = blocks
            .saturating_sub(1)
            .saturating_mul(full)
            .saturating_add(last);
        check_length(if blocks == 0 { 0 } else { total }, length, place)?;
        let sizes = input.take(blocks.saturating_mul(self.word_size()))?;
        let sizes = || sizes.chunks(self.word_size()).map(|word| self.word(word));
        let packed = sizes().fold(0, usize::saturating_add);
        if packed > input.source.max_left() || !Compressor::can_hold(packed, length) {
            return Err(input.ended(packed));
        }
        if let Sink::Keep(bytes) = &mut sink {
            // At most as many bytes as the blocks can hold.
            make_room(bytes, length, ARRAY)?;
        }
        for (index, size) in sizes().enumerate() {
            let block = input.take(size)?;
            let unpacked = if index + 1 == blocks { last } else { full };
            let done = match &mut sink {
                Sink::Keep(bytes) => compressor.unpack(&block, unpacked, bytes),
                Sink::Drop => compressor.check(&block, unpacked)?,
            };
            done.ok_or_else(|| {
                let message =
                    format!("block {index} is not {unpacked} bytes of {compressor:?} data");
                Fault::malformed(place, message)
            })?;
        }
        Ok(())
    }

    fn word_size(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    fn word(&self, bytes: &[u8]) -> usize {
        let digit = |word: usize, &byte: &u8| word << 8 | usize::from(byte);
        match self.endian {
            Endian::Little => bytes.iter().rev().fold(0, digit),
            Endian::Big => bytes.iter().fold(0, digit),
        }
    }
}

fn check_length(stored: usize, expected: usize, place: Place) -> Parsed<()> {
    if stored == expected {
        return Ok(());
    }
    let message = format!("the array holds {stored} bytes where {expected} are announced");
    Err(Fault::malformed(place, message))
}

/// Use of unpacked bytes.
enum Sink<'b> {
    Keep(&'b mut Vec<u8>),
    Drop,
}

/// An array's source with the place for messages.
struct Input<'s, 'a> {
    layout: Layout,
    source: &'s mut EncodedBytes<'a>,
    place: Place,
}

impl<'a> Input<'_, 'a> {
    fn take(&mut self, count: usize) -> Parsed<Cow<'a, [u8]>> {
        self.source.take(count).map_err(|shortage| match shortage {
            Missing::Ended => self.ended(count),
            Missing::NoMemory(shortage) => shortage.into(),
            Missing::NotBase64 => Fault::malformed(self.place, "the data are not base64 text"),
        })
    }

    fn ended(&self, count: usize) -> Fault {
        let message = format!("the data end before {count} bytes of this array");
        Fault::truncated(self.place, message)
    }

    fn words<const N: usize>(&mut self) -> Parsed<[usize; N]> {
        let size = self.layout.word_size();
        let bytes = self.take(N * size)?;
        Ok(std::array::from_fn(|index| {
            self.layout.word(&bytes[index * size..][..size])
        }))
    }
}

impl Compressor {
    /// The most that one compressed byte can stand for: 1032 in zlib (two bits can repeat 258
    /// bytes), 255 in LZ4.
    const LARGEST_RATIO: usize = 1032;

    /// Whether `packed` bytes can stand for `unpacked` ones.
    pub(super) fn can_hold(packed: usize, unpacked: usize) -> bool {
        unpacked <= packed.saturating_mul(Self::LARGEST_RATIO)
    }

    /// Whether `block` unpacks to exactly `size` bytes, which are not kept.
    ///
    /// # Errors
    /// [`Shortage`] of the room that LZ4 unpacks into.
    fn check(self, block: &[u8], size: usize) -> Result<Option<()>, Shortage> {
        if !Self::can_hold(block.len(), size) {
            return Ok(None);
        }
        match self {
            Self::Zlib => {
                let limit = (size as u64).saturating_add(1);
                let mut decoder = flate2::bufread::ZlibDecoder::new(block).take(limit);
                let read = io::copy(&mut decoder, &mut io::sink());
                Ok(read.is_ok_and(|read| read == size as u64).then_some(()))
            }
            Self::Lz4 if size > LARGEST_CHECKED => Ok(Some(())),
            Self::Lz4 => Ok(self.unpack(block, size, &mut with_room(size, ARRAY)?)),
        }
    }

    /// Unpacks `block`, which must give exactly `size` bytes, and appends them; there is room for
    /// them.
    fn unpack(self, block: &[u8], size: usize, bytes: &mut Vec<u8>) -> Option<()> {
        if !Self::can_hold(block.len(), size) {
            return None;
        }
        let start = bytes.len();
        match self {
            Self::Zlib => {
                bytes.resize(start.checked_add(size)?, 0);
                let mut decoder = flate2::bufread::ZlibDecoder::new(block);
                decoder.read_exact(&mut bytes[start..]).ok()?;
                // Nothing may follow.
                (decoder.read(&mut [0]).ok()? == 0).then_some(())
            }
            Self::Lz4 => {
                bytes.resize(start.checked_add(size)?, 0);
                let read = lz4_flex::block::decompress_into(block, &mut bytes[start..]).ok()?;
                (read == size).then_some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(source: &mut EncodedBytes<'_>, count: usize) -> Option<Vec<u8>> {
        source.take(count).ok().map(Cow::into_owned)
    }

    #[test]
    fn base64_parts_encoded_together_or_apart_read_the_same() {
        let together = STANDARD.encode([1, 2, 3, 4, 5, 6, 7]);
        let apart = format!(
            " {}\n{} ",
            STANDARD.encode([1, 2, 3, 4]),
            STANDARD.encode([5, 6, 7])
        );
        for text in [together, apart] {
            let mut source = EncodedBytes::base64(text.as_bytes()).unwrap();
            assert_eq!(taken(&mut source, 4), Some(vec![1, 2, 3, 4]));
            assert_eq!(taken(&mut source, 0), Some(vec![]));
            assert_eq!(taken(&mut source, 3), Some(vec![5, 6, 7]));
            assert_eq!(taken(&mut source, 1), None);
        }
    }

    #[test]
    fn a_block_that_could_not_unpack_to_its_size_takes_no_memory() {
        for compressor in [Compressor::Zlib, Compressor::Lz4] {
            assert_eq!(
                compressor.unpack(&[0; 8], usize::MAX, &mut Vec::new()),
                None
            );
        }
    }

    #[test]
    fn an_absurd_number_of_blocks_is_refused() {
        let layout = Layout {
            endian: Endian::Little,
            wide: true,
            compressor: Some(Compressor::Zlib),
        };
        let mut bytes = Vec::new();
        for word in [u64::MAX / 8, 0, 0, 1] {
            bytes.extend(word.to_le_bytes());
        }
        assert!(
            layout
                .read(&mut EncodedBytes::Raw(&bytes), 0, Place::Whole)
                .is_err()
        );
    }
}
