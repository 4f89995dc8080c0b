//! Quantities of atoms other than positions: velocities or momenta, masses and charges.
//!
//! Particle files have quantities, tables (.csv) columns. Momenta become velocities by the masses
//! that the atoms have in the run. **Invariant others rely on:** a column that is there and cannot
//! be used is an error or is named on standard error.

use crate::{
    failure::Failure,
    files::extension,
    input::{
        self, CHARGE, MASS, MOMENTUM, MOMENTUM_COLUMNS, VELOCITY, VELOCITY_COLUMNS, notice_unused,
    },
    output::notice,
};
use nearfield_grid::memory::{collected, copied, filled};
use nearfield_io::{Column, PointCloud, Table, read_table};
use nearfield_md::FieldFile;
use std::path::Path;

const COLUMNS: &str = "the columns of a file";

/// The columns of a file, and which of them were used.
pub(super) struct Columns<'a> {
    path: &'a Path,
    cloud: &'a PointCloud,
    table: Option<Table>,
    used: Vec<String>,
}

impl<'a> Columns<'a> {
    /// The columns of `cloud`, which was read from this file, other than coordinates.
    pub(super) fn new(path: &'a Path, cloud: &'a PointCloud) -> Result<Self, Failure> {
        let is_table = extension(path) == "csv" && input::find_name(cloud, &wanted()).is_some();
        let table = if is_table {
            Some(read_table(path)?)
        } else {
            None
        };
        Ok(Self {
            path,
            cloud,
            table,
            used: Vec::new(),
        })
    }

    /// Velocities, or momenta divided by the masses of the atoms; `None` if the file has neither.
    pub(super) fn velocities(
        &mut self,
        masses: &[f64],
        kinds: &[u32],
    ) -> Result<Option<Vec<[f64; 3]>>, Failure> {
        if let Some(velocities) = self.vectors(VELOCITY, VELOCITY_COLUMNS)? {
            return Ok(Some(velocities));
        }
        let Some(mut momenta) = self.vectors(MOMENTUM, MOMENTUM_COLUMNS)? else {
            return Ok(None);
        };
        for (momentum, &kind) in momenta.iter_mut().zip(kinds) {
            for p in momentum {
                *p /= masses[kind as usize];
            }
        }
        let all_one = masses.iter().all(|&mass| mass == 1.0);
        let unknown = if all_one && input::find_name(self.cloud, MASS).is_none() {
            " 1, as the file has no masses"
        } else {
            ""
        };
        notice(format_args!(
            "{}: velocities are momenta / mass{unknown}. Numbers are taken as they are: in the units of ASE \
             (eV, Å, u) --epsilon is in eV, and the unit of time is 10.1805 fs",
            self.path.display()
        ));
        Ok(Some(momenta))
    }

    /// The mass of every kind of atom, from the file or else from the coefficients.
    pub(super) fn masses(
        &mut self,
        coefficients: &FieldFile,
        kinds: &[u32],
    ) -> Result<Vec<f64>, Failure> {
        let mut masses = coefficients.masses.clone();
        let Some(of_atoms) = self.scalars(MASS)? else {
            return Ok(masses);
        };
        let mut first = vec![None; masses.len()];
        for (atom, (&mass, &kind)) in of_atoms.iter().zip(kinds).enumerate() {
            let kind = kind as usize;
            let known: (usize, f64) = *first[kind].get_or_insert((atom, mass));
            if known.1 != mass && !(mass.is_nan() && known.1.is_nan()) {
                return Err(self.refuse(format!(
                    "atom {atom} has mass {mass} and atom {} has mass {}, but both are of kind {}: \
                     give each mass a kind of its own by --coefficients",
                    known.0, known.1, coefficients.names[kind]
                )));
            }
        }
        for (kind, found) in first.into_iter().enumerate() {
            let Some((_, mass)) = found else {
                continue;
            };
            if masses[kind] != 1.0 && masses[kind] != mass {
                notice(format_args!(
                    "{}: using its mass {mass} for atoms of kind {}, not {} of --coefficients",
                    self.path.display(),
                    coefficients.names[kind],
                    masses[kind]
                ));
            }
            masses[kind] = mass;
        }
        Ok(masses)
    }

    /// Charges; `None` if the file has none.
    pub(super) fn charges(&mut self) -> Result<Option<Vec<f32>>, Failure> {
        let Some(charges) = self.scalars(CHARGE)? else {
            return Ok(None);
        };
        let single = charges.iter().map(|&charge| charge as f32);
        Ok(Some(collected(single, COLUMNS)?))
    }

    /// Lists the unused columns on standard error.
    pub(super) fn report_unused(self, charges: bool) {
        let mut used: Vec<&str> = self.used.iter().map(String::as_str).collect();
        let column = input::find_name(self.cloud, CHARGE).filter(|_| !charges);
        if let Some(column) = column {
            let path = self.path.display();
            notice(format_args!(
                "{path}: '{column}' is not used: add --charges for Coulomb forces"
            ));
            used.extend(CHARGE);
        }
        notice_unused(self.path, input::names(self.cloud), &used, &wanted());
    }

    fn refuse(&self, message: String) -> Failure {
        Failure::Wrong(format!("{}: {message}", self.path.display()))
    }

    /// One number per atom.
    fn scalars(&mut self, names: &[&str]) -> Result<Option<Vec<f64>>, Failure> {
        let columns = names.iter().map(std::slice::from_ref);
        self.find(names, columns, 1)
    }

    fn vectors(
        &mut self,
        names: &[&str],
        columns: [&str; 3],
    ) -> Result<Option<Vec<[f64; 3]>>, Failure> {
        let found = self.find(names, [&columns[..]], 3)?;
        let vectors = found.map(|flat| copied(flat.as_chunks().0, COLUMNS));
        Ok(vectors.transpose()?)
    }

    /// The numbers of the quantity of one of these `names`, or of the first of these `columns` that
    /// a table has, atom after atom.
    fn find<'n>(
        &mut self,
        names: &[&str],
        columns: impl IntoIterator<Item = &'n [&'n str]>,
        components: usize,
    ) -> Result<Option<Vec<f64>>, Failure> {
        if let Some(data) = input::quantity(self.cloud, names) {
            let name = data.name().to_owned();
            if data.components() != components {
                let needed = if components == 1 {
                    "one number"
                } else {
                    "three numbers"
                };
                return Err(self.refuse(format!(
                    "'{name}' needs {needed} per point, but has {}",
                    data.components()
                )));
            }
            self.used.push(name);
            return Ok(Some(collected(data.doubles(), COLUMNS)?));
        }
        let Some(table) = &self.table else {
            return Ok(None);
        };
        for names in columns {
            let places: Vec<usize> = names.iter().filter_map(|name| table.place(name)).collect();
            if places.len() < names.len() {
                continue;
            }
            let mut flat = filled(components * self.cloud.len(), 0.0, COLUMNS)?;
            for (component, &place) in places.iter().enumerate() {
                let to = flat.iter_mut().skip(component).step_by(components);
                of_column(self.path, table, place)?
                    .iter()
                    .zip(to)
                    .for_each(|(x, to)| *to = *x);
            }
            self.used.extend(names.iter().map(|&name| name.to_owned()));
            return Ok(Some(flat));
        }
        Ok(None)
    }
}

/// Every name that could be used.
fn wanted() -> Vec<&'static str> {
    let vectors = [VELOCITY_COLUMNS, MOMENTUM_COLUMNS].concat();
    [VELOCITY, MOMENTUM, MASS, CHARGE, &vectors].concat()
}

/// A column of a table, whose points are read without its other columns.
fn of_column<'t>(path: &Path, table: &'t Table, place: usize) -> Result<&'t [f64], Failure> {
    match &table.columns()[place] {
        Column::Numbers(numbers) => Ok(numbers),
        Column::Text { line, text, .. } => Err(Failure::Wrong(format!(
            "{}, line {line}, column {}: {text} is not a number",
            path.display(),
            place + 1
        ))),
    }
}
