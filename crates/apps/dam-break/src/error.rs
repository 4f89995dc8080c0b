//! Errors of a dam break, with the numbers and the remedy.

use std::path::{Path, PathBuf};

use glam::DVec3;
use nearfield_grid::{Value, memory::Shortage};

/// Why a dam break could not start or had to stop; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The error of a setting that is out of range.
    pub(crate) fn setting(name: &'static str, value: f64, wanted: &'static str) -> Self {
        let kind = ErrorKind::Setting {
            name,
            value,
            wanted,
        };
        kind.into()
    }

    /// The error of a box that the lattice misses.
    pub(crate) fn too_coarse(what: &str, number: usize, sides: DVec3, spacing: f64) -> Self {
        let what = what.to_owned();
        let kind = ErrorKind::TooCoarse {
            what,
            number,
            sides,
            spacing,
        };
        kind.into()
    }

    /// The error of an output at `path` that failed for this reason.
    pub(crate) fn output(path: &Path, reason: impl std::fmt::Display) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_string());
        ErrorKind::Output { path, reason }.into()
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

impl From<Shortage> for ErrorKind {
    fn from(shortage: Shortage) -> Self {
        Self::Solver(nearfield_sph::Error::from(shortage))
    }
}

/// The causes for which a dam break could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The solver or its engine refused, or a particle is lost.
    #[error(transparent)]
    Solver(#[from] nearfield_sph::Error),
    /// The energy is NaN or has changed by more than its first value.
    #[error(
        "at step {step} (t = {time} s) the energy is {energy:.6e} J, after {first:.6e} J at the \
         start: the run has blown up"
    )]
    BlownUp {
        /// Steps done.
        step: u64,
        /// Simulated time, seconds.
        time: f64,
        /// Energy and losses now, joules.
        energy: f64,
        /// The energy at the start, joules.
        first: f64,
    },
    /// Memory is short for drawing.
    #[error(transparent)]
    Memory(std::io::Error),
    /// A flag is out of range.
    #[error("{name} is {}, but must be {wanted}", Value::from(*.value))]
    Setting {
        /// Name of the flag.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The values allowed.
        wanted: &'static str,
    },
    /// A scene file cannot be read or simulated.
    #[error("scene {}: {reason}", path.display())]
    Scene {
        /// The file.
        path: PathBuf,
        /// The line and the value.
        reason: String,
    },
    /// A box is thinner than half the spacing.
    #[error(
        "{what} {number} is {sides} m large, which leaves no particle at a spacing of {spacing} m: \
         take a smaller spacing or more particles"
    )]
    TooCoarse {
        /// "water" or "obstacle".
        what: String,
        /// Which of them, from 1 on.
        number: usize,
        /// Its sides, metres.
        sides: DVec3,
        /// The spacing, metres.
        spacing: f64,
    },
    /// The page could not be written, or a frame for it not be read.
    #[error(transparent)]
    Page(#[from] nearfield_io::Error),
    /// The plot of the front could not be drawn or saved.
    #[error(transparent)]
    Plot(#[from] nearfield_plot::Error),
    /// A file or directory of the output could not be written.
    #[error("cannot write {path}: {reason}; check that the directory is writable and has space")]
    Output {
        /// The file or directory.
        path: PathBuf,
        /// The message of the operating system.
        reason: String,
    },
    /// The output directory has files of another run.
    #[error(transparent)]
    Folder(#[from] nearfield_files::Error),
    /// A checkpoint belongs to another run.
    #[error("checkpoint {}: {reason}: give the flags of its run", path.display())]
    Restart {
        /// The file.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A frame of the run that is gone on with is not there.
    #[error(
        "{path}: {reason}; a run goes on in the output directory of its beginning, with its frames"
    )]
    Earlier {
        /// The file of the frame.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// Worker threads that draw or read probes could not be started.
    #[error("cannot start {threads} worker threads (0 is one per core): {reason}")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// The message of the operating system.
        reason: String,
    },
}
