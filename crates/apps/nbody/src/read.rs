//! Reads bodies from files.

use crate::{Bodies, Error, ErrorKind};
use nearfield_grid::memory::{Shortage, collected, copied};
use nearfield_io::{Column, Format, PointData, Table, read_points, read_table};
use std::path::Path;

const BODIES: &str = "bodies of a file";

/// Maximum number of bodies whose names are read: a picture with more would not be legible.
pub const MAX_NAMED: usize = 64;

/// Names of a column or quantity of masses.
const MASS: [&str; 3] = ["mass", "m", "masses"];
/// Name of the column of names, and the letters of one that are kept.
const NAME: &str = "name";
const MAX_LETTERS: usize = 24;
/// Names of the columns of positions and velocities.
const VECTORS: [&str; 6] = ["x", "y", "z", "vx", "vy", "vz"];

/// Reads bodies in double precision.
///
/// `.vtk`, `.vtp` and `.vtu` files have the quantities `mass` and `velocity` of the points.
/// Everything else is read as a table of numbers ([`read_table`]): with names it has the columns
/// mass (or m), x, y, z, vx, vy and vz, in any order; without, it has those seven in this order, or
/// eight, whose first, an identifier, is left out (the files of nbabel.org).
///
/// # Errors
/// [`ErrorKind::File`] and [`ErrorKind::Missing`], which name the file, the place and the mistake,
/// such as a number that is not finite or a negative mass.
pub fn read_bodies(path: impl AsRef<Path>) -> Result<Bodies<f64>, Error> {
    Ok(read_bodies_file(path)?.bodies)
}

/// Bodies, and the names of unused columns of their file.
#[derive(Debug, Clone)]
pub struct BodiesFile {
    /// The bodies.
    pub bodies: Bodies<f64>,
    /// Names of the bodies, from the column `name` of a table; none if it has no such column, or
    /// more than [`MAX_NAMED`] bodies.
    pub names: Vec<String>,
    /// Names of the columns or quantities that say nothing of them.
    pub unused: Vec<String>,
}

/// Reads bodies as [`read_bodies`] does, and names the columns that are not used.
///
/// # Errors
/// As [`read_bodies`].
pub fn read_bodies_file(path: impl AsRef<Path>) -> Result<BodiesFile, Error> {
    let path = path.as_ref();
    let vtk = matches!(
        Format::from_path(path),
        Ok(Format::LegacyVtk | Format::XmlVtk)
    );
    let (found, table) = if vtk {
        (of_points(path)?, None)
    } else {
        let table = read_table(path)?;
        (of_table(path, &table)?, Some(table))
    };
    found.bodies.check().map_err(|error| {
        let line = table.and_then(|table| Some(table.line(error.body()?)));
        let line = line.map_or(String::new(), |line| format!("line {line}: "));
        missing(path, format!("{line}{error}"))
    })?;
    Ok(found)
}

fn missing(path: &Path, message: impl Into<String>) -> Error {
    let (path, message) = (path.to_owned(), message.into());
    ErrorKind::Missing { path, message }.into()
}

fn of_points(path: &Path) -> Result<BodiesFile, Error> {
    let cloud = read_points(path)?;
    let wanted = |name: &str, components: usize| {
        let found = cloud
            .quantity(name)
            .filter(|data| data.components() == components);
        found.ok_or_else(|| {
            missing(
                path,
                format!("bodies need the quantity {name} with {components} numbers a point"),
            )
        })
    };
    let (masses, velocities) = (wanted("mass", 1)?, wanted("velocity", 3)?);
    let others = cloud.data.iter().map(PointData::name);
    let others = others.filter(|name| !["mass", "velocity", "position"].contains(name));
    let unused = others.map(str::to_owned).collect();
    let bodies = Bodies {
        masses: collected(masses.doubles(), BODIES)?,
        velocities: triples(velocities)?,
        // Columns of an f64 snapshot with full digits.
        positions: match (wanted("position", 3), &cloud.positions_f64) {
            (Ok(positions), _) => triples(positions)?,
            (Err(_), Some(positions)) => copied(positions, BODIES)?,
            (Err(_), None) => {
                let single = cloud.positions.iter();
                collected(single.map(|x| x.map(f64::from)), BODIES)?
            }
        },
    };
    Ok(BodiesFile {
        bodies,
        names: Vec::new(),
        unused,
    })
}

fn triples(data: &PointData<'_>) -> Result<Vec<[f64; 3]>, Shortage> {
    let mut numbers = data.doubles();
    let mut next = || numbers.next().unwrap_or_default();
    let triples = (0..data.points()).map(|_| [(); 3].map(|()| next()));
    collected(triples, BODIES)
}

fn of_table(path: &Path, table: &Table) -> Result<BodiesFile, Error> {
    let mass = MASS.iter().find_map(|name| table.place(name));
    let places: Vec<usize> = match (table.names().is_empty(), table.columns().len()) {
        (true, width @ (7 | 8)) => (width - 7..width).collect(),
        (true, width) => {
            let message = format!(
                "{width} columns without names: 7 are needed (mass, x, y, z, vx, vy, vz), or 8 with \
                 an identifier before them, or a first line that names them"
            );
            return Err(missing(path, message));
        }
        (false, _) => {
            let named = |name: &&str| {
                table
                    .place(name)
                    .ok_or_else(|| missing(path, format!("there is no column {name}")))
            };
            let mass = mass.ok_or_else(|| missing(path, "there is no column mass"))?;
            let others = VECTORS.iter().map(named).collect::<Result<Vec<_>, _>>()?;
            [mass].into_iter().chain(others).collect()
        }
    };
    let columns = places.iter().map(|&place| match &table.columns()[place] {
        Column::Numbers(numbers) => Ok(numbers),
        Column::Text { line, text, .. } => Err(missing(
            path,
            format!("line {line}, column {}: {text} is not a number", place + 1),
        )),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let vectors = |first: usize| {
        let row = |n: usize| {
            [
                columns[first][n],
                columns[first + 1][n],
                columns[first + 2][n],
            ]
        };
        collected((0..columns[0].len()).map(row), BODIES)
    };
    let bodies = Bodies {
        masses: copied(columns[0], BODIES)?,
        positions: vectors(1)?,
        velocities: vectors(4)?,
    };
    let names = names_of(table, bodies.len());
    let named = if names.is_empty() {
        None
    } else {
        table.place(NAME)
    };
    let others = table.names().iter().enumerate();
    let others = others.filter(|(place, name)| {
        !places.contains(place) && named != Some(*place) && !name.is_empty()
    });
    let unused = others.map(|(_, name)| name.clone()).collect();
    Ok(BodiesFile {
        bodies,
        names,
        unused,
    })
}

/// The names of a few bodies, if a column has them.
fn names_of(table: &Table, bodies: usize) -> Vec<String> {
    let column = table.place(NAME).map(|place| &table.columns()[place]);
    match column {
        Some(Column::Text { rows, .. })
            if bodies <= MAX_NAMED && rows.lines().count() == bodies =>
        {
            let short = |name: &str| name.chars().take(MAX_LETTERS).collect();
            rows.lines().map(short).collect()
        }
        _ => Vec::new(),
    }
}
