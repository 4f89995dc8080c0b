//! Reads the bytes of files, unpacks them, and refuses binary data and missing frames.
//!
//! **Invariant others rely on:** a small packed file takes little memory: contents that are more
//! than 200 times as large as the file are refused from 64 MiB on.

use crate::{
    error::{Error, ErrorKind, Fault, Parsed, Place},
    extension::{Packing, packing},
};
use flate2::bufread::MultiGzDecoder;
use nearfield_files::zstd::Decompressor;
use nearfield_grid::memory::make_room;
use std::{
    io::{self, Read},
    path::Path,
};

/// The bytes of a file, unpacked if its name ends with `.gz` or `.zst`.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = nearfield_files::read(path)
        .map_err(|error| Fault::io("cannot read", &error).in_file(path))?;
    match packing(path).0 {
        None => Ok(bytes),
        Some(packing) => unpacked(&bytes, packing).map_err(|fault| fault.in_file(path)),
    }
}

/// Contents up to this size are unpacked, however small the file.
const MAX_UNASKED: usize = 64 << 20;
/// Larger contents are at most so many times as large as the file.
const MAX_RATIO: usize = 200;
/// Maximum memory for the window of Zstandard, which `zstd --long` may exceed.
const MAX_WINDOW: u64 = 64 << 20;

/// Bytes to which so many packed ones may unpack.
pub(super) fn max_unpacked(packed: usize) -> usize {
    packed.saturating_mul(MAX_RATIO).max(MAX_UNASKED)
}

/// The fault of contents that are larger, with a program that unpacks them.
pub(super) fn too_large(max: usize, place: Place, program: &str) -> Fault {
    let message = format!(
        "the file unpacks to more than {max} bytes, over {MAX_RATIO} times its size: if that is \
         right, unpack it by {program} first"
    );
    Fault::unsupported(place, message)
}

fn unpacked(bytes: &[u8], packing: Packing) -> Parsed<Vec<u8>> {
    let max = max_unpacked(bytes.len());
    match packing {
        Packing::Gzip => all_of(MultiGzDecoder::new(bytes), "gzip", max),
        Packing::Zstd => {
            let window =
                nearfield_files::ask_for_memory(MAX_WINDOW as usize, "the window of a file");
            window.map_err(|error| Fault::io("cannot unpack", &error))?;
            let from = Decompressor::new(bytes).max_window(MAX_WINDOW);
            all_of(from, "zstd", max)
        }
    }
}

/// All that `from` gives, at most `max` bytes.
fn all_of(mut from: impl Read, program: &str, max: usize) -> Parsed<Vec<u8>> {
    const STEP: usize = 1 << 20;
    let mut all = Vec::new();
    loop {
        let begin = all.len();
        let room = begin + STEP.max(begin / 2);
        make_room(&mut all, room, "the contents of a packed file")?;
        all.resize(room, 0);
        let read = fill(&mut from, &mut all[begin..]).map_err(|error| damaged(&error, program))?;
        all.truncate(begin + read);
        if all.len() > max {
            return Err(too_large(max, Place::Whole, &format!("{program} -d")));
        }
        if all.len() < room {
            return Ok(all);
        }
    }
}

/// Reads until `to` is full or nothing follows; returns the number of bytes.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn damaged(error: &io::Error, program: &str) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
        _ => ErrorKind::Malformed,
    };
    let message = format!("it cannot be unpacked as the output of {program}: {error}");
    Fault::new(kind, Place::Whole, message)
}

/// Refuses files that are not text, and names their kind.
pub(super) fn check_text(bytes: &[u8]) -> Parsed<()> {
    nearfield_files::not_text(bytes).map_or(Ok(()), |what| {
        let message = format!("this is {what}, not text in UTF-8 or ASCII");
        Err(Fault::malformed(Place::Whole, message))
    })
}

/// The bytes behind the mark that some editors put before text in UTF-8.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Refuses a frame that is not there.
pub(super) fn no_frame(number: usize, count: usize) -> Fault {
    let message = match count {
        1 => format!("there is no frame {number}: the file has one"),
        _ => format!("there is no frame {number}: the file has {count}, counted from 1"),
    };
    Fault::argument(message)
}
