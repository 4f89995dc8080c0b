//! Why a command failed: one line for standard error.

use std::{io, path::Path};

/// Any reason for exit code 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] nearfield::Error),
    /// A particle file could not be read or written.
    #[error(transparent)]
    File(#[from] nearfield_io::Error),
    /// The GPU, or what compiles for it, is missing or refused.
    #[error(transparent)]
    Gpu(#[from] nearfield_gpu::Error),
    /// The dam break stopped.
    #[error(transparent)]
    DamBreak(#[from] nearfield_dam_break::Error),
    /// A system of atoms cannot be made, or its run had to stop.
    #[error(transparent)]
    Md(#[from] nearfield_md::Error),
    /// Bodies could not be read, moved or written.
    #[error(transparent)]
    Bodies(#[from] nearfield_nbody::Error),
    /// A file, a flag or a result is not as it has to be, as the message says.
    #[error("{0}")]
    Wrong(String),
    /// Outputs would replace inputs, or each other.
    #[error(transparent)]
    Clash(#[from] nearfield_files::Error),
    /// The named cloud does not exist and is no file either.
    #[error("{0}; a path to a file works too")]
    Cloud(#[from] nearfield_testkit::cloud::UnknownCloud),
    /// The named cloud does not exist, and a file will not do.
    #[error(transparent)]
    NamedCloud(nearfield_testkit::cloud::UnknownCloud),
    /// The points or the box of a cloud to be divided cannot be used.
    #[error(transparent)]
    Cells(#[from] nearfield_grid::Error),
    /// A step cannot be divided between the backends.
    #[error(transparent)]
    Schedule(#[from] nearfield_balance::Error),
    /// A plot could not be drawn or saved.
    #[error(transparent)]
    Plot(#[from] nearfield_plot::Error),
    /// A trace cannot be recorded, read or shown.
    #[error(transparent)]
    Trace(#[from] nearfield_trace::Error),
    /// Standard output is gone.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl From<nearfield_grid::memory::Shortage> for Failure {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::Engine(shortage.into())
    }
}

impl Failure {
    /// For `map_err` of what was done with a file of atoms.
    pub(crate) fn atoms(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| nearfield_md::Error::from(nearfield_md::ErrorKind::Io { path, source }).into()
    }

    /// That of files that are not those of a run: no wrong usage, as a clash is.
    pub(crate) fn of_run(error: nearfield_files::Error) -> Self {
        Self::Wrong(error.to_string())
    }

    /// The exit code: 2 for flags that cannot be meant, 1 for runs that failed.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Clash(_) => 2,
            _ => 1,
        }
    }

    /// Whether the reader of our output has left, as `head` does; that is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
