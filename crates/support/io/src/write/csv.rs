//! Positions as text.

use std::{io::Write, path::Path};

use crate::error::Error;

use super::output::write_file;

/// Writes positions as a table with the header `x,y,z`, in the fewest digits that read back as the
/// same `f32`.
///
/// # Errors
/// If the file cannot be written; an existing file is then unchanged.
pub fn write_csv(path: impl AsRef<Path>, positions: &[[f32; 3]]) -> Result<(), Error> {
    write_file(path.as_ref(), |output| {
        writeln!(output, "x,y,z")?;
        positions
            .iter()
            .try_for_each(|[x, y, z]| writeln!(output, "{x:?},{y:?},{z:?}"))
    })
}
