//! What can go wrong, with the numbers and the culprit.

use nearfield_grid::Value;
use std::{io, path::PathBuf};

/// Why a system could not be made, or a run had to stop; [`kind`](Self::kind) tells the causes
/// apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// For `map_err` of what was done with a file.
    pub(crate) fn io(path: &std::path::Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let path = path.clone();
            ErrorKind::Io { path, source }.into()
        }
    }
}

impl<T> From<T> for Error
where
    ErrorKind: From<T>,
{
    fn from(cause: T) -> Self {
        Self(cause.into())
    }
}

/// The causes for which a system could not be made, or a run had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is out of range.
    #[error("{name} is {}, but must be {wanted}", Value::from(*.value))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The values allowed.
        wanted: &'static str,
    },
    /// Arrays that belong together differ in length.
    #[error("{found} {what} for {atoms} atoms: give one for each")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// How many atoms there are.
        atoms: usize,
    },
    /// A number of an atom is NaN or infinite.
    #[error("{what} of atom {atom} is {value:?}: it must be finite")]
    NotFinite {
        /// Position, velocity or charge.
        what: &'static str,
        /// Index of the atom.
        atom: usize,
        /// The value given.
        value: Vec<f64>,
    },
    /// An atom of a kind that has no coefficients.
    #[error("atom {atom} is of type {found}, but there are coefficients of {types} types")]
    Type {
        /// Index of the atom.
        atom: usize,
        /// Its type.
        found: usize,
        /// How many there are.
        types: usize,
    },
    /// The box vectors span no volume.
    #[error("the box vectors {0:?} span no volume")]
    Flat([[f64; 3]; 3]),
    /// The force on an atom is not finite: atoms are in one place, or a step was too long.
    #[error(
        "at step {step} the force on atom {atom} is {force:?}: atoms overlap; take a shorter time step, or another start"
    )]
    Overlap {
        /// The step.
        step: u64,
        /// Number of the atom in the input.
        atom: u32,
        /// The value computed.
        force: [f64; 3],
    },
    /// The energy is no longer a number or has left all bounds: a step was too long, or atoms
    /// overlapped at the start.
    #[error(
        "at step {step} the energy is {energy:.6e}, after {first:.6e} at the start: the run has blown up; take a shorter time step, or another start"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// The quantity added up.
        energy: f64,
        /// The same at the start.
        first: f64,
    },
    /// The neighbour engine refused.
    #[error(transparent)]
    Engine(#[from] nearfield::Error),
    /// Coefficients that make no potential.
    #[error(transparent)]
    Coefficients(#[from] nearfield::error::kernels::Error),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file does not say what it should.
    #[error("{}, {place}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Line or part of it.
        place: String,
        /// The mistake.
        message: String,
    },
}

impl From<nearfield_grid::memory::Shortage> for ErrorKind {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::Engine(shortage.into())
    }
}
