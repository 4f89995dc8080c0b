//! The readers: one module per format, each from a file's bytes to a [`PointCloud`].
//!
//! **Invariant others rely on:** whatever the bytes, a reader returns; it does not panic, and it
//! allocates no more than a small multiple of them and of what it hands over
//! (`tests/memory.rs`).

mod cell;
mod cif;
mod cloud_text;
mod csv;
mod frames;
mod gro;
mod gsd;
mod lammps_data;
mod lammps_dump;
mod las;
mod lines;
mod lzf;
mod names;
mod npy;
mod npz;
mod open;
mod pcd;
mod pdb;
mod ply;
mod ply_header;
mod poscar;
mod table;
mod vtk;
mod xyz;
mod xyz_comment;
mod xyz_plain;
mod zip;

pub use table::{Column, Table, parse_table, read_table};

use std::path::Path;

use frames::FrameFormat;

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

/// Reads one frame of a file that may hold several, as trajectories do (XYZ, LAMMPS dump, GRO,
/// PDB, GSD); files of other formats hold one.
///
/// # Errors
/// As [`read_points`], and [`ErrorKind::InvalidArgument`] if the file has no frame of that number.
pub fn read_frame(path: impl AsRef<Path>, frame: Frame) -> Result<PointCloud, Error> {
    let path = path.as_ref();
    let (bytes, format) = opened(path)?;
    read(&bytes, format, frame).map_err(|fault| fault.in_file(path))
}

/// Reads all frames of a file and hands each to `each`, until that fails. A last frame that is cut
/// off is left out, as [`Frames::cut_off`](crate::Frames::cut_off) says. One frame is in memory at
/// a time, in addition to the file.
///
/// # Errors
/// As [`read_points`], and what `each` returns.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("run.xyz");
/// std::fs::write(&path, "1\nfirst\nAr 0 0 0\n1\nsecond\nAr 0.5 0 0\n")?;
/// let mut x = Vec::new();
/// nearfield_io::for_each_frame(&path, |cloud| {
///     x.push(cloud.positions[0][0]);
///     Ok::<(), nearfield_io::Error>(())
/// })?;
/// assert_eq!(x, [0.0, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn for_each_frame<E: From<Error>>(
    path: impl AsRef<Path>,
    mut each: impl FnMut(PointCloud) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.as_ref();
    let (bytes, format) = opened(path)?;
    let text = open::without_mark(&bytes);
    match Reader::of(text, format) {
        Reader::Frames(frames) => {
            let wrap = |fault: Fault| E::from(fault.in_file(path));
            frames.read_all(text, wrap, each)
        }
        Reader::Gsd => {
            let wrap = |fault: Fault| E::from(fault.in_file(path));
            let file = gsd::Trajectory::open(text).map_err(wrap)?;
            // The error of a file without frames.
            (1..=file.frames().max(1))
                .try_for_each(|number| each(file.frame(number).map_err(wrap)?))
        }
        Reader::One(_) => {
            let cloud = read(&bytes, format, Frame::FIRST).map_err(|fault| fault.in_file(path))?;
            each(cloud)
        }
    }
}

/// The contents of a file, and its format.
fn opened(path: &Path) -> Result<(Vec<u8>, Format), Error> {
    let format = match Format::from_path(path) {
        // A folder has no extension to be wrong.
        Err(_) if path.is_dir() => Format::Csv,
        format => format?,
    };
    Ok((open::contents(path)?, format))
}

/// How a format is read.
enum Reader {
    /// Files may hold several frames.
    Frames(FrameFormat),
    /// Files have an index of frames.
    Gsd,
    /// Files hold one.
    One(fn(&[u8]) -> Parsed<PointCloud>),
}

impl Reader {
    /// A file called `.xyz` may be a point cloud.
    fn of(bytes: &[u8], format: Format) -> Self {
        match format {
            Format::Npy => Self::One(npy::read),
            Format::Npz => Self::One(npz::read),
            Format::Csv => Self::One(csv::read),
            Format::Xyz if !cloud_text::is_cloud(bytes) => Self::Frames(xyz::FRAMES),
            Format::Cloud | Format::Xyz => Self::One(cloud_text::read),
            Format::LammpsDump => Self::Frames(lammps_dump::FRAMES),
            Format::LammpsData => Self::One(lammps_data::read),
            Format::Gro => Self::Frames(gro::FRAMES),
            Format::Pdb => Self::Frames(pdb::FRAMES),
            Format::Cif => Self::One(cif::read),
            Format::Poscar => Self::One(poscar::read),
            Format::LegacyVtk => Self::One(vtk::legacy::read),
            Format::XmlVtk => Self::One(vtk::xml::read),
            Format::Ply => Self::One(ply::read),
            Format::Pcd => Self::One(pcd::read),
            Format::Las => Self::One(las::read),
            Format::Gsd => Self::Gsd,
        }
    }
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
    match (Reader::of(bytes, format), frame) {
        (Reader::Frames(frames), _) => frames.read(bytes, frame),
        (Reader::Gsd, _) => gsd::read(bytes, frame),
        (Reader::One(_), Frame::Number(number)) if number != 1 => Err(open::no_frame(number, 1)),
        (Reader::One(read), _) => read(bytes),
    }
}
