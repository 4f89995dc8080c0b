//! The readers: one module per format, each from a file's bytes to a [`PointCloud`].
//!
//! **Invariant others rely on:** whatever the bytes, a reader returns; it does not panic, and it
//! allocates no more than a small multiple of them and of what it hands over
//! (`tests/memory.rs`).

mod csv;
mod npy;
mod open;
mod ply;
mod ply_header;
mod table;
mod vtk;
mod xyz;
mod xyz_comment;

pub use table::{Column, Table, parse_table, read_table};

use std::path::Path;

use crate::{
    Format, PointCloud,
    error::{Error, ErrorKind, Fault, Parsed, Place},
};

/// Reads the points of a file in the format that its extension stands for.
///
/// The whole file is held in memory while it is read.
///
/// # Errors
/// When memory is short ([`ErrorKind::OutOfMemory`], with the bytes), the extension is unknown, the
/// file cannot be read, or its contents are truncated, wrong or of an unsupported kind. The
/// message is one line that names the file and the place.
pub fn read_points(path: impl AsRef<Path>) -> Result<PointCloud, Error> {
    let path = path.as_ref();
    let format = match Format::from_path(path) {
        // A folder has no extension to be wrong.
        Err(_) if path.is_dir() => Format::Csv,
        format => format?,
    };
    let bytes = open::contents(path)?;
    read(&bytes, format).map_err(|fault| fault.in_file(path))
}

/// Reads points from the contents of a file, for bytes that come from elsewhere.
///
/// # Errors
/// As [`read_points`], with the format named in place of the file.
///
/// ```
/// use nearfield_io::{Format, parse_points};
///
/// let cloud = parse_points(b"x,y,z\n0,0,0\n1,0.5,0\n", Format::Csv)?;
/// assert_eq!(cloud.positions[1], [1.0, 0.5, 0.0]);
///
/// let error = parse_points(b"x,y,z\n0,zero,0\n", Format::Csv).unwrap_err();
/// assert_eq!(error.to_string(), "CSV data, line 2, column 2: 'zero' is not a number");
/// # Ok::<(), nearfield_io::Error>(())
/// ```
pub fn parse_points(bytes: &[u8], format: Format) -> Result<PointCloud, Error> {
    read(bytes, format).map_err(|fault| fault.in_memory(format))
}

fn read(bytes: &[u8], format: Format) -> Parsed<PointCloud> {
    if bytes.is_empty() {
        return Err(Fault::new(
            ErrorKind::Empty,
            Place::Whole,
            "the file is empty",
        ));
    }
    match format {
        Format::Npy => npy::read(bytes),
        Format::Csv => csv::read(bytes),
        Format::Xyz => xyz::read(bytes),
        Format::LegacyVtk => vtk::legacy::read(bytes),
        Format::XmlVtk => vtk::xml::read(bytes),
        Format::Ply => ply::read(bytes),
    }
}
