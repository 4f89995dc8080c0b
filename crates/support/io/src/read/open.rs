//! Bytes of files, and whether they can be text.

use crate::error::{Error, Fault, Parsed, Place};
use std::path::Path;

/// The bytes of a file.
pub(super) fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    nearfield_files::read(path).map_err(|error| Fault::io("cannot read", &error).in_file(path))
}

/// Refuses files of other kinds that were given as text, by what they are.
pub(super) fn check_text(bytes: &[u8]) -> Parsed<()> {
    nearfield_files::not_text(bytes).map_or(Ok(()), |what| {
        let message = format!("this is {what}, not text in UTF-8 or ASCII");
        Err(Fault::malformed(Place::Whole, message))
    })
}
