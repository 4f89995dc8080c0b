//! Errors in reading, moving or writing bodies.

use nearfield_grid::Value;
use std::path::PathBuf;

/// Why bodies could not be read, moved or written; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The body that has an impossible number.
    pub(crate) fn body(&self) -> Option<usize> {
        match self.0 {
            ErrorKind::NotFinite { index, .. } | ErrorKind::NegativeMass { index, .. } => {
                Some(index)
            }
            _ => None,
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

/// The causes for which bodies could not be read, moved or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] nearfield::Error),
    /// A file of bodies could not be read or written.
    #[error(transparent)]
    File(#[from] nearfield_io::Error),
    /// A file has no such quantity, or an impossible value of it.
    #[error("{}: {message}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The missing part or the place, and the remedy.
        message: String,
    },
    /// Arrays of bodies are not equally long.
    #[error("there are {found} {what} for {bodies} positions: every body needs one")]
    Lengths {
        /// Which array.
        what: &'static str,
        /// Its length.
        found: usize,
        /// Number of positions.
        bodies: usize,
    },
    /// A number of a body is NaN or infinite.
    #[error("the {what} of body {index} holds {value}: it must be finite")]
    NotFinite {
        /// `mass`, `position` or `velocity`.
        what: &'static str,
        /// The body.
        index: usize,
        /// The number.
        value: f64,
    },
    /// A mass is negative.
    #[error("the mass of body {index} is {}: it must be 0 or more", Value::from(*.value))]
    NegativeMass {
        /// The body.
        index: usize,
        /// The mass.
        value: f64,
    },
    /// The time step is none.
    #[error("the time step is {}: it must be finite and not 0", Value::from(*.0))]
    TimeStep(f64),
    /// The state of a body has left the range of the precision.
    #[error(
        "after step {step} the {what} of body {index} is no longer finite: bodies came too close for \
         the time step {}; take a smaller one, or a softening",
        Value::from(*.time_step)
    )]
    Blown {
        /// Steps done.
        step: u64,
        /// `position` or `velocity`.
        what: &'static str,
        /// The body.
        index: usize,
        /// The time step.
        time_step: f64,
    },
    /// The energy is NaN or has diverged.
    #[error(
        "at step {step} the energy is {energy:.6e}, after {first:.6e} at the start: the run has blown up, \
         because bodies came too close for the time step {}; take a smaller one, or a softening",
        Value::from(*.time_step)
    )]
    Diverged {
        /// Steps done.
        step: u64,
        /// The energy now.
        energy: f64,
        /// The energy at the start.
        first: f64,
        /// The time step.
        time_step: f64,
    },
    /// A checkpoint cannot be read or written.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A picture could not be drawn.
    #[error(transparent)]
    Plot(#[from] nearfield_plot::Error),
}

impl From<nearfield_grid::memory::Shortage> for ErrorKind {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::Engine(shortage.into())
    }
}
