//! VTK image data (`.vti`): quantities at the points of a regular grid, as ParaView opens them.
//!
//! Arrays are written as in `.vtp` files. **Invariant others rely on:** every array has one tuple
//! per point of the grid.

use std::{io, path::Path};

use crate::{
    error::{Error, Fault, quoted},
    point_data::PointData,
};

use super::{
    output::write_file,
    vtp::{AppendedData, check_names, section, write_document},
};

/// Writes quantities at the points of a regular grid, x fastest, as a VTK image file.
///
/// # Errors
/// When a quantity has not one tuple per point, a name is empty, occurs twice or has control
/// characters, or the file cannot be written; an existing file is then unchanged.
///
/// ```
/// use nearfield_io::{PointData, write_vti};
///
/// # let directory = tempfile::tempdir()?;
/// let potential = [0.5f32, 0.25, 0.125, 0.0625];
/// let data = [PointData::scalars("potential", &potential)];
/// write_vti(directory.path().join("potential.vti"), [2, 2, 1], [0.0; 3], 0.1, &data)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_vti(
    path: impl AsRef<Path>,
    dims: [usize; 3],
    origin: [f64; 3],
    spacing: f64,
    data: &[PointData<'_>],
) -> Result<(), Error> {
    let path = path.as_ref();
    let points = dims.iter().try_fold(1usize, |all, n| all.checked_mul(*n));
    let fits = |data: &&PointData<'_>| Some(data.points()) != points;
    let checked = check_names(data).and_then(|()| match data.iter().find(fits) {
        None => Ok(()),
        Some(data) => Err(Fault::argument(format!(
            "the quantity {} has values for {} points, but the grid has {} x {} x {}",
            quoted(data.name().as_bytes()),
            data.points(),
            dims[0],
            dims[1],
            dims[2]
        ))),
    });
    checked.map_err(|fault| fault.in_file(path))?;
    write_file(path, |output| {
        let mut appended = AppendedData::default();
        let body = body(dims, origin, spacing, data, &mut appended)?;
        write_document(output, "ImageData", &body, &appended)
    })
}

fn body(
    dims: [usize; 3],
    [x, y, z]: [f64; 3],
    spacing: f64,
    data: &[PointData<'_>],
    appended: &mut AppendedData,
) -> io::Result<String> {
    let last = dims.map(|n| n.saturating_sub(1));
    let extent = format!("0 {} 0 {} 0 {}", last[0], last[1], last[2]);
    let data = section("PointData", "", data, appended)?;
    Ok(format!(
        "<ImageData WholeExtent=\"{extent}\" Origin=\"{x} {y} {z}\" \
         Spacing=\"{spacing} {spacing} {spacing}\">\n\
         <Piece Extent=\"{extent}\">\n{data}</Piece>\n</ImageData>\n"
    ))
}
