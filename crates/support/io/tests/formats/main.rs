//! Readers and writers seen from outside, on files and on bytes.

mod atoms;
mod clouds;
mod csv;
mod frames;
mod gsd;
mod hostile;
mod made;
mod npy;
mod packed;
mod ply;
mod python;
mod view;
mod vtk;
mod writers;
mod xyz;

use std::path::PathBuf;

use nearfield_io::{Error, Format, PointCloud, parse_points};

/// A file of the test data.
fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// Reads contents that must be good.
fn good(contents: impl AsRef<[u8]>, format: Format) -> PointCloud {
    parse_points(contents.as_ref(), format).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads contents that must be refused.
fn refused(contents: impl AsRef<[u8]>, format: Format) -> Error {
    match parse_points(contents.as_ref(), format) {
        Err(error) => error,
        Ok(cloud) => panic!("accepted with {} points", cloud.len()),
    }
}
