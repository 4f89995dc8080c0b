//! Errors of systems and runs, with the numbers and the atom.

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

    /// For `map_err` after an operation on a file.
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
        /// Name of the quantity.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// Number of atoms.
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
        "at step {step} the force on atom {atom} is {force:?}: {}{}",
        near(*.atom, *.nearest),
        remedy(*.step)
    )]
    Overlap {
        /// The step; 0 before the first.
        step: u64,
        /// Number of the atom in the input.
        atom: u32,
        /// The value computed.
        force: [f64; 3],
        /// The atom nearest to it, by its number in the input, and their distance; the same atom if
        /// that is an image of itself.
        nearest: Option<(u32, f64)>,
    },
    /// A step has moved an atom out of the range of numbers.
    #[error(
        "at step {step} atom {atom} is at {position:?}, which is too far away for single precision: \
         a time step of {} is too long; take a shorter one, or another start",
        Value::from(*.time_step)
    )]
    Lost {
        /// The step.
        step: u64,
        /// Number of the atom in the input.
        atom: u32,
        /// The place.
        position: [f64; 3],
        /// Length of the step.
        time_step: f64,
    },
    /// The energy is not a number or has left all bounds: a step was too long, or atoms overlapped
    /// at the start.
    #[error("at step {step} the energy is {energy:.6e}{}", blown(*.step, *.first))]
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
    /// A file lacks required contents.
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

/// The nearest atom of an [`ErrorKind::Overlap`].
fn near(atom: u32, nearest: Option<(u32, f64)>) -> String {
    match nearest {
        None => "the potential is not finite there; ".to_owned(),
        Some((other, distance)) => {
            let who = if other == atom {
                "an image of itself".to_owned()
            } else {
                format!("atom {other}")
            };
            format!("the nearest, {who}, is {} away; ", Value::from(distance))
        }
    }
}

/// The remedy for an [`ErrorKind::Overlap`]: before the first step the positions are those given.
fn remedy(step: u64) -> &'static str {
    match step {
        0 => "move or remove one of both",
        _ => "take a shorter time step, or another start",
    }
}

/// The rest of the message of [`ErrorKind::Diverged`].
fn blown(step: u64, first: f64) -> String {
    match step {
        0 => ": give smaller velocities, charges or coefficients".to_owned(),
        _ => format!(
            ", after {first:.6e} at the start: the run has blown up; take a shorter time step, or \
             another start"
        ),
    }
}

impl From<nearfield_grid::memory::Shortage> for ErrorKind {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::Engine(shortage.into())
    }
}

impl From<nearfield::error::gpu::Error> for ErrorKind {
    fn from(error: nearfield::error::gpu::Error) -> Self {
        Self::Engine(nearfield::ErrorKind::Gpu(error).into())
    }
}
