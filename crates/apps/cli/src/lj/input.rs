//! What `nearfield lj` is given: atoms, and how they act on each other.

use super::{args::Args, columns::Columns};
use crate::{domain::Boundaries, failure::Failure, files::extension, input::CHARGE};
use nearfield::kernels::{Coefficients, CutoffCoulomb, LennardJones};
use nearfield_io::{Dimensions, Frame, PointCloud};
use nearfield_md::{Cell, FieldFile, ForceField, System, read_nist};
use std::path::Path;

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
        "--charges: {} has no column or quantity {}, and no kind of its atoms has a charge by \
         --coefficients: give either, or leave out --charges",
        path.display(),
        CHARGE.join(", ")
    ))
}

fn of_nist(args: &Args, path: &Path) -> Result<System, Failure> {
    if let Some(Frame::Number(2..)) = args.frame.frame {
        let message = format!("{}: a .txt of the NIST form has one frame", path.display());
        return Err(Failure::Wrong(message));
    }
    let system = read_nist(path)?;
    match args.domain.of(None, Dimensions::Three)? {
        None => Ok(system),
        Some(boundaries) => Ok(System::new(system.positions().to_vec(), cell(boundaries)?)?),
    }
}

fn of_cloud(args: &Args, path: &Path, coefficients: &FieldFile) -> Result<System, Failure> {
    let cloud = args.frame.read(path)?;
    let boundaries = args.domain.boundaries(&cloud)?;
    let cell = boundaries.map_or(Ok(Cell::OPEN), cell)?;
    let positions = match &cloud.positions_f64 {
        Some(positions) => positions.clone(),
        None => cloud.positions.iter().map(|at| at.map(f64::from)).collect(),
    };
    let types = types(&cloud, coefficients)?;
    let mut columns = Columns::new(path, &cloud)?;
    let masses = columns.masses(coefficients, &types)?;
    // Checks the masses, by which momenta are divided.
    let mut system = System::new(positions, cell)?.with_types(types, masses.clone())?;
    if let Some(velocities) = columns.velocities(&masses, system.types())? {
        system = system.with_velocities(velocities)?;
    }
    if args.charges
        && let Some(charges) = columns.charges()?
    {
        system = system.with_charges(charges)?;
    }
    columns.tell(args.charges);
    Ok(system)
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
