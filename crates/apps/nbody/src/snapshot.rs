//! Writes snapshots of a run.

use crate::{Bodies, Error, Simulation};
use nearfield::all_pairs::Real;
use nearfield_grid::memory::with_room;
use nearfield_io::{PointData, Values, VtpWriter, write_array};
use std::path::Path;

/// Writes the bodies now as `path` with the extensions `.vtp` (mass, velocity and, in `f64`,
/// positions in full as the quantity `position`) and `.npy`: an array of N×7 numbers of the run's
/// precision, mass, x, y, z, vx, vy, vz.
///
/// # Errors
/// [`ErrorKind::File`](crate::ErrorKind::File), and memory that is short.
pub fn write_snapshot<T: Real>(
    path: impl AsRef<Path>,
    simulation: &Simulation<T>,
) -> Result<(), Error> {
    let (path, bodies) = (path.as_ref(), simulation.bodies());
    let single = bodies.rounded::<f32>()?;
    let double = bodies.rounded::<f64>()?;
    let mut writer = VtpWriter::new(&single.positions)
        .time(simulation.time())
        .data(PointData::scalars("mass", &double.masses))
        .data(PointData::vectors("velocity", &single.velocities));
    if size_of::<T>() == size_of::<f64>() {
        let positions = PointData::tuples("position", 3, double.positions.as_flattened());
        writer = positions.into_iter().fold(writer, VtpWriter::data);
    }
    writer.write(path.with_extension("vtp"))?;
    let path = path.with_extension("npy");
    if size_of::<T>() == size_of::<f64>() {
        write_rows(&path, &double)
    } else {
        write_rows(&path, &single)
    }
}

/// Writes an array of N×7 numbers.
fn write_rows<T: Real>(path: &Path, bodies: &Bodies<T>) -> Result<(), Error>
where
    Values<'static>: From<Vec<T>>,
{
    let mut numbers = with_room(7 * bodies.len(), "rows of a snapshot")?;
    for (n, &mass) in bodies.masses.iter().enumerate() {
        let ([x, y, z], [u, v, w]) = (bodies.positions[n], bodies.velocities[n]);
        numbers.extend([mass, x, y, z, u, v, w]);
    }
    write_array(path, &[bodies.len(), 7], &Values::from(numbers))?;
    Ok(())
}
