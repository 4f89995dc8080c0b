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
mod xyz_plain;

pub use table::{Column, Table, parse_table, read_table};

use std::path::Path;

use crate::{
    Format, Frame, PointCloud,
    error::{Error, ErrorKind, Fault, Parsed, Place},
};

/// Reads the points of a file in the format given by its extension.
///
/// The whole file is held in memory while it is read. Of several frames the first is read;
/// [`PointCloud::frames`] has their number.
///
/// # Errors
/// When memory is short ([`ErrorKind::OutOfMemory`], with the bytes), the extension is unknown, the
/// file cannot be read, or its contents are truncated, wrong or of an unsupported kind. The
/// message is one line that names the file and the place.
pub fn read_points(path: impl AsRef<Path>) -> Result<PointCloud, Error> {
    read_frame(path, Frame::FIRST)
}

/// Reads one frame of a file that may hold several, as XYZ files of trajectories do; files of other
/// formats hold one.
///
/// # Errors
/// As [`read_points`], and [`ErrorKind::InvalidArgument`] if the file has no frame of that number.
pub fn read_frame(path: impl AsRef<Path>, frame: Frame) -> Result<PointCloud, Error> {
    let path = path.as_ref();
    let format = match Format::from_path(path) {
        // A folder has no extension to be wrong.
        Err(_) if path.is_dir() => Format::Csv,
        format => format?,
    };
    let bytes = open::contents(path)?;
    read(&bytes, format, frame).map_err(|fault| fault.in_file(path))
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
    parse_frame(bytes, format, Frame::FIRST)
}

/// Reads one frame from the contents of a file.
///
/// # Errors
/// As [`read_frame`], with the format named in place of the file.
pub fn parse_frame(bytes: &[u8], format: Format, frame: Frame) -> Result<PointCloud, Error> {
    read(bytes, format, frame).map_err(|fault| fault.in_memory(format))
}

fn read(bytes: &[u8], format: Format, frame: Frame) -> Parsed<PointCloud> {
    let bytes = open::without_mark(bytes);
    if bytes.is_empty() {
        return Err(Fault::new(
            ErrorKind::Empty,
            Place::Whole,
            "the file is empty",
        ));
    }
    match frame {
        Frame::Number(number) if number != 1 && format != Format::Xyz => {
            return Err(open::no_frame(number, 1));
        }
        _ => {}
    }
    match format {
        Format::Npy => npy::read(bytes),
        Format::Csv => csv::read(bytes),
        Format::Xyz => xyz::read(bytes, frame),
        Format::LegacyVtk => vtk::legacy::read(bytes),
        Format::XmlVtk => vtk::xml::read(bytes),
        Format::Ply => ply::read(bytes),
    }
}
