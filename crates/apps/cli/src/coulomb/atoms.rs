//! Atoms and their charges from files.

use crate::{
    failure::Failure,
    input::{self, CHARGE, FrameOption},
    output::notice,
};
use nearfield_grid::memory::{collected, copied};
use nearfield_io::{Column, Format, Frame, Table, read_table};
use std::path::Path;

const POSITIONS: &str = "positions of atoms";
const CHARGES: &str = "charges of atoms";

/// Positions and charges.
pub(super) struct Atoms {
    pub(super) positions: Vec<[f64; 3]>,
    pub(super) charges: Vec<f64>,
}

/// Reads atoms. Charges are the quantity (particle files) or the column (text files) named
/// `charges`. Without that name it is the first with a usual name of charges, and in text files
/// without column names the fourth column.
pub(super) fn read(
    path: &Path,
    charges: Option<&str>,
    frame: FrameOption,
) -> Result<Atoms, Failure> {
    let given: Vec<&str> = charges.into_iter().collect();
    let charges = if given.is_empty() { CHARGE } else { &given };
    let format = Format::from_path(path).ok();
    if format.is_some_and(|format| !matches!(format, Format::Csv | Format::Cloud)) {
        return of_points(path, charges, frame);
    }
    if let Some(Frame::Number(2..)) = frame.frame {
        return Err(refused(path, "a table has one frame"));
    }
    of_table(path, &read_table(path)?, charges)
}

fn refused(path: &Path, message: impl std::fmt::Display) -> Failure {
    Failure::Wrong(format!("{}: {message}", path.display()))
}

fn of_points(path: &Path, names: &[&str], frame: FrameOption) -> Result<Atoms, Failure> {
    let cloud = frame.read(path)?;
    let found = input::quantity(&cloud, names).filter(|data| data.components() == 1);
    let Some(found) = found else {
        let names = names.join(", ");
        let message = format!(
            "the points have no quantity {names}: name the quantity of charges by --charges"
        );
        return Err(refused(path, message));
    };
    let charges = collected(found.doubles(), CHARGES)?;
    input::notice_unused(path, input::names(&cloud), &[found.name()], CHARGE);
    let axes = cloud.simulation_box.map(|cell| cell.periodic);
    if axes
        .or(cloud.periodic_without_box)
        .is_some_and(|axes| axes != [false; 3])
    {
        let path = path.display();
        notice(format_args!(
            "{path}: its periodic box is not used: atoms have no images here"
        ));
    }
    let positions = match cloud.positions_f64 {
        Some(positions) => positions,
        None => collected(cloud.positions.iter().map(|x| x.map(f64::from)), POSITIONS)?,
    };
    Ok(Atoms { positions, charges })
}

fn of_table(path: &Path, table: &Table, charges: &[&str]) -> Result<Atoms, Failure> {
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
        (false, _) => {
            let charge = charges.iter().find_map(|name| table.place(name));
            let missing = || refused(path, format!("there is no column {}", charges.join(", ")));
            [
                place("x")?,
                place("y")?,
                place("z")?,
                charge.ok_or_else(missing)?,
            ]
        }
    };
    let used = places.map(|place| table.names().get(place).map_or("", String::as_str));
    input::notice_unused(
        path,
        table.names().iter().map(String::as_str),
        &used,
        CHARGE,
    );
    let numbers = |place: usize| match &table.columns()[place] {
        Column::Numbers(numbers) => Ok(numbers),
        Column::Text { line, text, .. } => Err(refused(
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
