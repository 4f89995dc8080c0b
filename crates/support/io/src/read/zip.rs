//! ZIP archives in memory (PKWARE's APPNOTE.TXT 6.3.10): their files, stored or deflated.
//!
//! The directory at the end is read as it goes, so nothing is kept for its entries. **Invariant
//! others rely on:** [`Entry::check`] has unpacked a file to its end and compared its checksum
//! before anything of it is kept.

use super::open::{max_unpacked, too_large};
use crate::error::{Fault, Parsed, Place};
use flate2::{Crc, read::DeflateDecoder};
use std::io::{self, Read};

/// A file of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    /// Where its header is, for messages.
    at: usize,
    method: u16,
    encrypted: bool,
    checksum: u32,
    packed: &'a [u8],
    size: u64,
}

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

impl<'a> Entry<'a> {
    /// The contents.
    pub(super) fn contents(&self) -> Box<dyn Read + 'a> {
        if self.method == DEFLATED {
            Box::new(DeflateDecoder::new(self.packed))
        } else {
            Box::new(self.packed)
        }
    }

    /// Bytes of the contents, once they are checked.
    pub(super) fn size(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    /// Refuses what cannot be unpacked or is too large, and contents that are not those of the
    /// directory.
    pub(super) fn check(&self) -> Parsed<()> {
        let place = Place::Byte(self.at);
        if self.encrypted || ![STORED, DEFLATED].contains(&self.method) {
            let message = if self.encrypted {
                "the archive is encrypted".to_owned()
            } else {
                let method = self.method;
                format!(
                    "files packed by method {method} are not read; stored and deflated ones are"
                )
            };
            return Err(Fault::unsupported(place, message));
        }
        let max = max_unpacked(self.packed.len());
        if self.size() > max {
            return Err(too_large(max, place, "unzip"));
        }
        let mut sum = Crc::new();
        let mut contents = self.contents();
        let mut part = [0; 1 << 13];
        let mut size: u64 = 0;
        while size <= self.size {
            let read = match contents.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("a file of the archive cannot be unpacked: {error}");
                    return Err(Fault::malformed(place, message));
                }
            };
            sum.update(&part[..read]);
            size += read as u64;
        }
        if size != self.size || sum.sum() != self.checksum {
            let message = "a file of the archive differs from its length or checksum";
            return Err(Fault::malformed(place, message));
        }
        Ok(())
    }
}

/// The files of an archive in the order of its directory.
pub(super) struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Entries<'a> {
    /// Finds the directory.
    pub(super) fn of(bytes: &'a [u8]) -> Parsed<Self> {
        const RECORD: usize = 22;
        const LONGEST_COMMENT: usize = 0xffff;
        if !bytes.starts_with(b"PK") {
            let message = "the file does not begin with the letters PK of a ZIP archive";
            return Err(Fault::malformed(Place::Byte(0), message));
        }
        let first = bytes.len().saturating_sub(RECORD + LONGEST_COMMENT);
        let last = (first..bytes.len().saturating_sub(RECORD - 1))
            .rev()
            .find(|&at| bytes[at..].starts_with(b"PK\x05\x06"));
        let end = last.ok_or_else(|| {
            let message = "the archive has no directory: it is not complete";
            Fault::truncated(Place::Byte(bytes.len()), message)
        })?;
        let (mut length, mut begin) = (
            u64::from(four(bytes, end + 12)?),
            u64::from(four(bytes, end + 16)?),
        );
        if length == u64::from(u32::MAX) || begin == u64::from(u32::MAX) {
            let locator = end.checked_sub(20);
            let locator = locator.filter(|&at| bytes[at..].starts_with(b"PK\x06\x07"));
            let locator = locator.ok_or_else(|| broken(end))?;
            let record = usize::try_from(eight(bytes, locator + 8)?).unwrap_or(usize::MAX);
            if !bytes
                .get(record..)
                .unwrap_or_default()
                .starts_with(b"PK\x06\x06")
            {
                return Err(broken(locator));
            }
            (length, begin) = (eight(bytes, record + 40)?, eight(bytes, record + 48)?);
        }
        let begin = usize::try_from(begin).map_err(|_| broken(end))?;
        let length = usize::try_from(length).map_err(|_| broken(end))?;
        let stop = begin.checked_add(length).filter(|&stop| stop <= end);
        Ok(Self {
            bytes,
            at: begin,
            end: stop.ok_or_else(|| broken(end))?,
        })
    }

    /// The next file; `None` at the end of the directory.
    pub(super) fn next(&mut self) -> Parsed<Option<Entry<'a>>> {
        const HEADER: usize = 46;
        const LOCAL: usize = 30;
        if self.at >= self.end {
            return Ok(None);
        }
        let (bytes, at) = (self.bytes, self.at);
        if !bytes[at..self.end].starts_with(b"PK\x01\x02") {
            return Err(broken(at));
        }
        let number = |offset| two(bytes, at + offset);
        let [name, extra, comment] = [number(28)?, number(30)?, number(32)?].map(usize::from);
        let extra_at = at + HEADER + name;
        let text = bytes.get(at + HEADER..extra_at).ok_or_else(|| broken(at))?;
        let extra_bytes = bytes.get(extra_at..extra_at + extra);
        let mut long = Zip64::of(extra_bytes.ok_or_else(|| broken(at))?);
        let mut wide = |offset| long.number(four(bytes, at + offset)?, at);
        let size = wide(24)?;
        let packed = wide(20)?;
        let local = usize::try_from(wide(42)?).map_err(|_| broken(at))?;
        if !bytes
            .get(local..)
            .unwrap_or_default()
            .starts_with(b"PK\x03\x04")
        {
            return Err(broken(at));
        }
        let skipped = usize::from(two(bytes, local + 26)?) + usize::from(two(bytes, local + 28)?);
        let begin = local + LOCAL + skipped;
        let end = usize::try_from(packed)
            .ok()
            .and_then(|length| begin.checked_add(length));
        let packed = end.and_then(|end| bytes.get(begin..end));
        self.at = extra_at + extra + comment;
        Ok(Some(Entry {
            name: text,
            at: local,
            method: number(10)?,
            encrypted: number(8)? & 1 == 1,
            checksum: four(bytes, at + 16)?,
            packed: packed.ok_or_else(|| broken(local))?,
            size,
        }))
    }
}

/// The numbers of 64 bits in a header's extra field.
struct Zip64<'a>(&'a [u8]);

impl<'a> Zip64<'a> {
    fn of(mut extra: &'a [u8]) -> Self {
        while let (Ok(kind), Ok(length)) = (two(extra, 0), two(extra, 2)) {
            let end = (4 + usize::from(length)).min(extra.len());
            if kind == 1 {
                return Self(&extra[4..end]);
            }
            extra = &extra[end..];
        }
        Self(&[])
    }

    /// A number of a header, or the next one here if the header says that it is here.
    fn number(&mut self, short: u32, at: usize) -> Parsed<u64> {
        if short != u32::MAX {
            return Ok(short.into());
        }
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(|| broken(at))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }
}

fn broken(at: usize) -> Fault {
    let message = "the directory of the archive is damaged";
    Fault::malformed(Place::Byte(at), message)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Parsed<[u8; N]> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().ok_or_else(|| broken(at))
}

fn two(bytes: &[u8], at: usize) -> Parsed<u16> {
    number(bytes, at).map(u16::from_le_bytes)
}

fn four(bytes: &[u8], at: usize) -> Parsed<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn eight(bytes: &[u8], at: usize) -> Parsed<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}
