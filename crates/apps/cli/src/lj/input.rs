//! Input of `nearfield lj`: atoms, and the potential between them.

use super::{args::Args, columns::Columns};
use crate::{domain::Boundaries, failure::Failure, files::extension, input::CHARGE};
use nearfield::kernels::{Coefficients, CutoffCoulomb, LennardJones};
use nearfield_grid::memory::{collected, copied, filled};
use nearfield_io::{Dimensions, Frame, PointCloud};
use nearfield_md::{Cell, FieldFile, ForceField, System, read_nist};
use std::path::Path;

const ATOMS: &str = "the atoms of a file";

/// The coefficients of the file or of the command line.
pub(super) fn coefficients(args: &Args) -> Result<FieldFile, Failure> {
    match &args.coefficients {
        Some(path) => Ok(FieldFile::read(path)?),
        None => Ok(FieldFile {
            names: vec!["LJ".into()],
            types: vec![Coefficients {
                epsilon: args.epsilon.unwrap_or(1.0),
                sigma: args.sigma.unwrap_or(1.0),
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
        let charges = collected(system.types().iter().map(charge), ATOMS)?;
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
        Some(boundaries) => {
            let positions = copied(system.positions(), ATOMS)?;
            Ok(System::new(positions, cell(boundaries)?)?)
        }
    }
}

fn of_cloud(args: &Args, path: &Path, coefficients: &FieldFile) -> Result<System, Failure> {
    let cloud = args.frame.read(path)?;
    let boundaries = args.domain.boundaries(&cloud)?;
    let cell = boundaries.map_or(Ok(Cell::OPEN), cell)?;
    let positions = match &cloud.positions_f64 {
        Some(positions) => copied(positions, ATOMS)?,
        None => collected(cloud.positions.iter().map(|at| at.map(f64::from)), ATOMS)?,
    };
    let types = types(args, path, &cloud, coefficients)?;
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
    columns.report_unused(args.charges);
    Ok(system)
}

/// The kind of every atom by its name.
fn types(
    args: &Args,
    path: &Path,
    cloud: &PointCloud,
    coefficients: &FieldFile,
) -> Result<Vec<u32>, Failure> {
    if args.coefficients.is_none() {
        check_one_kind(args, path, cloud)?;
    }
    let of_name = |name: &String| match coefficients.kind(name) {
        Some(kind) => Ok(kind as u32),
        // Coefficients of the command line are for all atoms.
        None if args.coefficients.is_none() => Ok(0),
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
            let of_atoms = species.of_point.iter().map(|&name| kinds[name as usize]);
            Ok(collected(of_atoms, ATOMS)?)
        }
        None if coefficients.names.len() == 1 => Ok(filled(cloud.len(), 0, ATOMS)?),
        None => Err(Failure::Wrong(format!(
            "the file names no kinds of atoms, but there are coefficients of {}: use .xyz or .extxyz",
            coefficients.names.len()
        ))),
    }
}

/// Without a file of coefficients all atoms get the same ones. Atoms of several kinds are refused
/// unless both coefficients were given: a mixture must not be taken for one kind by accident.
fn check_one_kind(args: &Args, path: &Path, cloud: &PointCloud) -> Result<(), Failure> {
    const SHOWN: usize = 8;
    let names = cloud.species.as_ref().map_or(&[][..], |kinds| &kinds.names);
    if names.len() < 2 || args.epsilon.is_some() && args.sigma.is_some() {
        return Ok(());
    }
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let more = if names.len() > SHOWN { ", …" } else { "" };
    Err(Failure::Wrong(format!(
        "{} has atoms of {} kinds ({shown}{more}), but there are no coefficients of them: give \
         --coefficients FILE with a line NAME EPSILON SIGMA for each, or both --epsilon and --sigma \
         to take them for one kind",
        path.display(),
        names.len()
    )))
}

fn cell(boundaries: Boundaries) -> Result<Cell, Failure> {
    let vectors = boundaries.domain()?.vectors();
    Ok(Cell::new(vectors)?)
}
