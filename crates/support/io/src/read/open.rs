//! Reads the bytes of files, and refuses binary data and missing frames.

use crate::error::{Error, Fault, Parsed, Place};
use std::path::Path;

/// The bytes of a file.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    nearfield_files::read(path).map_err(|error| Fault::io("cannot read", &error).in_file(path))
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
