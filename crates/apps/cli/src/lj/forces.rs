//! Positions and forces of one configuration as a file.

use crate::{failure::Failure, files::extension};
use nearfield_grid::memory::{collected, copied};
use nearfield_md::{Simulation, Trajectory};
use std::{io::Write, path::Path};

const FORCES: &str = "forces on atoms";

/// Writes the atoms and the forces on them, in the order of the input: extended XYZ with the column
/// `forces`, or a table with the columns id, species, x, y, z, fx, fy and fz.
pub(super) fn write(path: &Path, run: &mut Simulation, names: Vec<String>) -> Result<(), Failure> {
    match extension(path).as_str() {
        "extxyz" | "xyz" => {
            let forces = copied(run.forces()?, FORCES)?;
            let mut file = Trajectory::create(path, names)?;
            Ok(file.frame_with_forces(run.system()?, 0.0, &forces)?)
        }
        "csv" => write_table(path, run, &names),
        _ => Err(Failure::Usage(format!(
            "{}: forces of one configuration are written as .extxyz or .csv; with --steps, --output \
             is a folder",
            path.display()
        ))),
    }
}

fn write_table(path: &Path, run: &mut Simulation, names: &[String]) -> Result<(), Failure> {
    let forces = copied(run.forces()?, FORCES)?;
    let system = run.system()?;
    let mut order = collected(0..system.len(), "the order of atoms")?;
    order.sort_unstable_by_key(|&atom| system.ids()[atom]);
    let written = nearfield_files::write_with(path, |file| {
        writeln!(file, "id,species,x,y,z,fx,fy,fz")?;
        order.iter().try_for_each(|&atom| {
            let ([x, y, z], [u, v, w]) = (system.positions()[atom], forces[atom]);
            let kind = system.types()[atom] as usize;
            let name = names.get(kind).map_or("", String::as_str);
            let id = system.ids()[atom];
            writeln!(file, "{id},{name},{x},{y},{z},{u},{v},{w}")
        })
    });
    written.map_err(Failure::atoms(path))
}
