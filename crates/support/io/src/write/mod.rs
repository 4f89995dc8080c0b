//! The writers. Each file appears complete or not at all.

mod archive;
mod cloud;
mod csv;
mod npy;
mod output;
mod view;
mod vti;
mod vtp;

use std::path::Path;

pub use cloud::{FrameWriter, write_cloud, write_frames};
pub use csv::write_csv;
pub use npy::{write_array, write_csr_npz, write_npy};
pub use view::{Chart, ChartLine, Detail, Scale, View, ViewFrame, ViewWriter, write_view};
pub use vti::write_vti;
pub use vtp::{VtpWriter, write_vtp};

use crate::{
    Format,
    error::{Error, Fault, Place},
};

/// Writes positions in the format given by the extension: `.npy`, `.csv` or `.vtp`.
///
/// # Errors
/// If the extension is another one, or the file cannot be written; an existing file is then
/// unchanged.
pub fn write_points(path: impl AsRef<Path>, positions: &[[f32; 3]]) -> Result<(), Error> {
    let path = path.as_ref();
    match Format::from_path(path)? {
        Format::Npy => write_npy(path, positions),
        Format::Csv => write_csv(path, positions),
        Format::XmlVtk
            if path
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("vtp")) =>
        {
            write_vtp(path, positions, &[])
        }
        _ => {
            let message = "this format is not written; .npy, .csv and .vtp are";
            Err(Fault::unsupported(Place::Whole, message).in_file(path))
        }
    }
}
