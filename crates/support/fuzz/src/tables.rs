//! Tables of numbers as text: tables as such, bodies, the configurations and coefficients of
//! molecular dynamics. All of them read the same bytes.

use crate::{files::with_file, message::check_line};
use nearfield_io::{Column, Table, parse_table};
use nearfield_md::{FieldFile, System, read_nist};
use nearfield_nbody::{Bodies, read_bodies};

/// Reads `bytes` as each kind of table and checks what comes out.
///
/// # Panics
/// When a reader breaks a promise.
pub fn read(bytes: &[u8]) {
    match parse_table(bytes) {
        Ok(table) => check_table(&table),
        Err(error) => check_line(&error.to_string()),
    }
    with_file("table.csv", bytes, |path| {
        match read_bodies(path) {
            Ok(bodies) => check_bodies(&bodies),
            Err(error) => check_line(&error.to_string()),
        }
        match read_nist(path) {
            Ok(system) => check_system(&system),
            Err(error) => check_line(&error.to_string()),
        }
        match FieldFile::read(path) {
            Ok(file) => check_coefficients(&file),
            Err(error) => check_line(&error.to_string()),
        }
    });
}

fn check_table(table: &Table) {
    let columns = table.columns().len();
    assert!(table.names().is_empty() || table.names().len() == columns);
    let numbers = table.columns().iter().filter_map(|column| match column {
        Column::Numbers(numbers) => Some(numbers.len()),
        Column::Text { line, .. } => {
            assert!(*line > 0);
            None
        }
    });
    let mut lengths: Vec<_> = numbers.collect();
    lengths.dedup();
    assert!(lengths.len() < 2, "columns of {lengths:?} numbers");
}

/// Checks that everything returned is finite, one of each for each body.
fn check_bodies(bodies: &Bodies<f64>) {
    assert_eq!(bodies.positions.len(), bodies.masses.len());
    assert_eq!(bodies.velocities.len(), bodies.masses.len());
    let vectors = bodies.positions.iter().chain(&bodies.velocities);
    let mut numbers = vectors.flatten().chain(&bodies.masses);
    assert!(numbers.all(|number| number.is_finite()));
}

/// The same for atoms, and the box has a volume.
pub(crate) fn check_system(system: &System) {
    let positions = system.positions();
    assert!(positions.iter().flatten().all(|x| x.is_finite()));
    assert_eq!(system.types().len(), positions.len());
    let counted: usize = system.type_counts().iter().sum();
    assert_eq!(counted, positions.len());
    assert!(system.cell().volume().is_none_or(|volume| volume > 0.0));
}

fn check_coefficients(file: &FieldFile) {
    let kinds = file.names.len();
    assert!(kinds > 0);
    assert_eq!(file.types.len(), kinds);
    assert_eq!(file.charges.len(), kinds);
    assert_eq!(file.masses.len(), kinds);
    for (kind, name) in file.names.iter().enumerate() {
        assert_eq!(file.kind(name), Some(kind), "a name given twice");
    }
    assert!(file.pairs.iter().all(|(a, b, _)| a.max(b) < &kinds));
}
