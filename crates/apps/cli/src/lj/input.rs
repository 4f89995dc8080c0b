//! What `nearfield lj` is given: atoms, and how they act on each other.

use super::args::Args;
use crate::{domain::Boundaries, failure::Failure, files::extension};
use nearfield::kernels::{Coefficients, CutoffCoulomb, LennardJones};
use nearfield_io::{Column, Dimensions, PointCloud, Table};
use nearfield_md::{Cell, FieldFile, ForceField, System, read_nist};
use std::path::Path;

/// Names under which files have charges.
const CHARGES: [&str; 3] = ["charge", "charges", "q"];
/// Names under which files have velocities.
const VELOCITIES: [&str; 4] = ["velo", "vel", "velocity", "velocities"];

/// The coefficients of the file or of the command line.
pub(super) fn coefficients(args: &Args) -> Result<FieldFile, Failure> {
    match &args.coefficients {
        Some(path) => Ok(FieldFile::read(path)?),
        None => Ok(FieldFile {
            names: vec!["LJ".into()],
            types: vec![Coefficients {
                epsilon: args.epsilon,
                sigma: args.sigma,
            }],
            charges: vec![0.0],
            masses: vec![1.0],
            pairs: Vec::new(),
        }),
    }
}

/// The potential of these coefficients.
pub(super) fn field(args: &Args, file: &FieldFile) -> Result<ForceField, Failure> {
    let (mixing, truncation) = (args.mixing.into(), args.shift.into());
    let table = LennardJones::new(&file.types, mixing, &file.pairs, args.cutoff, truncation);
    let field = ForceField::from(table.map_err(nearfield_md::Error::from)?);
    if !args.charges {
        return Ok(field);
    }
    let (constant, cutoff) = (args.coulomb_constant, args.cutoff);
    Ok(field.with_coulomb(CutoffCoulomb::new(constant, cutoff, args.coulomb)))
}

/// The atoms of the file and the potential.
pub(super) fn read(args: &Args, coefficients: &FieldFile) -> Result<(System, ForceField), Failure> {
    let field = field(args, coefficients)?;
    // Given, unless a run goes on.
    let path = args.file.as_deref().unwrap_or(Path::new(""));
    let mut system = if extension(path) == "txt" {
        of_nist(args, path)?
    } else {
        of_cloud(args, path, coefficients)?
    };
    if args.charges && system.charges().is_empty() {
        let charge = |kind: &u32| coefficients.charges[*kind as usize];
        let charges: Vec<f32> = system.types().iter().map(charge).collect();
        if !charges.is_empty() && charges.iter().all(|&charge| charge == 0.0) {
            return Err(no_charges(path));
        }
        system = system.with_charges(charges)?;
    }
    if let Some(temperature) = args.run.temperature {
        system.heat(temperature, args.run.seed);
    }
    Ok((system, field))
}

fn no_charges(path: &Path) -> Failure {
    Failure::Wrong(format!(
        "--charges: {} has no column or quantity charge, charges or q, and no kind of its atoms has \
         a charge by --coefficients: give either, or leave out --charges",
        path.display()
    ))
}

fn of_nist(args: &Args, path: &Path) -> Result<System, Failure> {
    let system = read_nist(path)?;
    match args.domain.of(None, Dimensions::Three)? {
        None => Ok(system),
        Some(boundaries) => Ok(System::new(system.positions().to_vec(), cell(boundaries)?)?),
    }
}

fn of_cloud(args: &Args, path: &Path, coefficients: &FieldFile) -> Result<System, Failure> {
    let cloud = nearfield_io::read_points(path)?;
    let boundaries = args.domain.boundaries(&cloud)?;
    let cell = boundaries.map_or(Ok(Cell::OPEN), cell)?;
    let positions = match &cloud.positions_f64 {
        Some(positions) => positions.clone(),
        None => cloud.positions.iter().map(|at| at.map(f64::from)).collect(),
    };
    let types = types(&cloud, coefficients)?;
    let system = System::new(positions, cell)?;
    let mut system = system.with_types(types, coefficients.masses.clone())?;
    if args.charges && extension(path) == "csv" {
        let table = nearfield_io::read_table(path)?;
        let place = CHARGES.iter().find_map(|name| table.place(name));
        if let Some(place) = place {
            system = system.with_charges(of_column(path, &table, place)?)?;
        }
    }
    if let Some(charges) = find(&cloud, &CHARGES).filter(|_| args.charges) {
        let charges: Option<Vec<f32>> = charges.to_scalars();
        let charges = charges.ok_or_else(|| {
            let path = path.display();
            Failure::Wrong(format!(
                "--charges: {path} has not one number a point as charge, charges or q"
            ))
        })?;
        system = system.with_charges(charges)?;
    }
    if let Some(velocities) = find(&cloud, &VELOCITIES).and_then(|data| data.to_vectors()) {
        let velocities = velocities.into_iter().map(|v: [f32; 3]| v.map(f64::from));
        system = system.with_velocities(velocities.collect())?;
    }
    Ok(system)
}

/// Charges of a table, whose points are read without its other columns.
fn of_column(path: &Path, table: &Table, place: usize) -> Result<Vec<f32>, Failure> {
    match &table.columns()[place] {
        Column::Numbers(charges) => Ok(charges.iter().map(|&charge| charge as f32).collect()),
        Column::Text { line, text } => Err(Failure::Wrong(format!(
            "{}, line {line}, column {}: the charge {text} is not a number",
            path.display(),
            place + 1
        ))),
    }
}

fn find<'a>(cloud: &'a PointCloud, names: &[&str]) -> Option<&'a nearfield_io::PointData<'static>> {
    names.iter().find_map(|name| cloud.quantity(name))
}

/// The kind of every atom by its name.
fn types(cloud: &PointCloud, coefficients: &FieldFile) -> Result<Vec<u32>, Failure> {
    let of_name = |name: &String| match coefficients.kind(name) {
        Some(kind) => Ok(kind as u32),
        // A single kind needs no name.
        None if coefficients.names.len() == 1 => Ok(0),
        None => Err(Failure::Wrong(format!(
            "there are no coefficients of '{name}'; known are {}",
            coefficients.names.join(", ")
        ))),
    };
    match &cloud.species {
        Some(species) => {
            let kinds = species
                .names
                .iter()
                .map(of_name)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(species
                .of_point
                .iter()
                .map(|&name| kinds[name as usize])
                .collect())
        }
        None if coefficients.names.len() == 1 => Ok(vec![0; cloud.len()]),
        None => Err(Failure::Wrong(format!(
            "the file names no kinds of atoms, but there are coefficients of {}: use .xyz or .extxyz",
            coefficients.names.len()
        ))),
    }
}

fn cell(boundaries: Boundaries) -> Result<Cell, Failure> {
    let vectors = boundaries.domain()?.vectors();
    Ok(Cell::new(vectors)?)
}
