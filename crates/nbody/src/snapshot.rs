//! Moments of a run as files.

use crate::{Error, Simulation};
use nearfield::Real;
use nearfield_io::{PointData, Values, VtpWriter, write_array};
use std::path::Path;

/// Writes the bodies now as `path` with the extensions `.vtp` (mass, velocity and, in `f64`,
/// positions in full as the quantity `position`) and `.npy`: an array of N×7 numbers of the run's
/// precision, mass, x, y, z, vx, vy, vz.
///
/// # Errors
/// [`Error::File`].
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
    let rows = (0..bodies.len()).flat_map(|n| {
        let ([x, y, z], [u, v, w]) = (double.positions[n], double.velocities[n]);
        [double.masses[n], x, y, z, u, v, w]
    });
    let values = match size_of::<T>() == size_of::<f64>() {
        true => Values::from(rows.collect::<Vec<f64>>()),
        false => Values::from(rows.map(|x| x as f32).collect::<Vec<f32>>()),
    };
    write_array(path.with_extension("npy"), &[bodies.len(), 7], &values)?;
    Ok(())
}
