//! Atoms and their charges from files.

use crate::{failure::Failure, files::extension};
use nearfield_grid::memory::{collected, copied};
use nearfield_io::{Column, PointData, Table, read_points, read_table};
use std::path::Path;

const POSITIONS: &str = "positions of atoms";
const CHARGES: &str = "charges of atoms";

/// Positions and charges.
pub(super) struct Atoms {
    pub(super) positions: Vec<[f64; 3]>,
    pub(super) charges: Vec<f64>,
}

/// Reads atoms. Particle files have the charges as the quantity `charges`; text files as the column
/// of that name, or as the fourth column where columns have no names.
pub(super) fn read(path: &Path, charges: &str) -> Result<Atoms, Failure> {
    if ["xyz", "extxyz", "vtk", "vtp", "vtu"].contains(&extension(path).as_str()) {
        of_points(path, charges)
    } else {
        of_table(path, &read_table(path)?, charges)
    }
}

fn refused(path: &Path, message: impl std::fmt::Display) -> Failure {
    Failure::Wrong(format!("{}: {message}", path.display()))
}

fn of_points(path: &Path, name: &str) -> Result<Atoms, Failure> {
    let cloud = read_points(path)?;
    let found = cloud.quantity(name).filter(|data| data.components() == 1);
    let charges = found.map(PointData::doubles).ok_or_else(|| {
        refused(
            path,
            format!("the points have no quantity {name}: name that of the charges by --charges"),
        )
    })?;
    let charges = collected(charges, CHARGES)?;
    let positions = match cloud.positions_f64 {
        Some(positions) => positions,
        None => collected(cloud.positions.iter().map(|x| x.map(f64::from)), POSITIONS)?,
    };
    Ok(Atoms { positions, charges })
}

fn of_table(path: &Path, table: &Table, name: &str) -> Result<Atoms, Failure> {
    let place = |name: &str| {
        table
            .place(name)
            .ok_or_else(|| refused(path, format!("there is no column {name}")))
    };
    let places = match (table.names().is_empty(), table.columns().len()) {
        (true, 4) => [0, 1, 2, 3],
        (true, width) => {
            let message =
                format!("{width} columns without names: 4 are needed, x, y, z and the charge");
            return Err(refused(path, message));
        }
        (false, _) => [place("x")?, place("y")?, place("z")?, place(name)?],
    };
    let numbers = |place: usize| match &table.columns()[place] {
        Column::Numbers(numbers) => Ok(numbers),
        Column::Text { line, text } => Err(refused(
            path,
            format!("line {line}, column {}: {text} is not a number", place + 1),
        )),
    };
    let [x, y, z, charges] = places.map(numbers);
    let (x, y, z) = (x?, y?, z?);
    Ok(Atoms {
        positions: collected((0..x.len()).map(|n| [x[n], y[n], z[n]]), POSITIONS)?,
        charges: copied(charges?, CHARGES)?,
    })
}
