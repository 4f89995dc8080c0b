//! The error of a command, printed as one line on standard error.

use std::{io, path::Path};

/// Any reason for exit code 1 or 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] nearfield::Error),
    /// A particle file could not be read or written.
    #[error(transparent)]
    File(#[from] nearfield_io::Error),
    /// The GPU or its compiler is missing or was refused.
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
    /// A flag has a value that no run could use, as the message says.
    #[error("{0}")]
    Usage(String),
    /// Outputs would replace inputs, or each other.
    #[error(transparent)]
    Clash(#[from] nearfield_files::Error),
    /// The name is neither a named cloud nor a file.
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
    /// For `map_err` after reading or writing a file of atoms.
    pub(crate) fn atoms(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| nearfield_md::Error::from(nearfield_md::ErrorKind::Io { path, source }).into()
    }

    /// Files that do not belong to the run. Unlike a clash of flags this is not wrong usage.
    pub(crate) fn of_run(error: nearfield_files::Error) -> Self {
        Self::Wrong(error.to_string())
    }

    /// The exit code: 2 for wrong usage, 1 for runs that failed.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Clash(_) | Self::Usage(_) | Self::Cloud(_) | Self::NamedCloud(_) => 2,
            Self::File(error) => code_of_file(error),
            Self::Bodies(error) => match error.kind() {
                nearfield_nbody::ErrorKind::File(cause) => code_of_file(cause),
                _ => 1,
            },
            Self::DamBreak(error) => match error.kind() {
                nearfield_dam_break::ErrorKind::Setting { .. } => 2,
                _ => 1,
            },
            Self::Engine(error) => code_of_engine(error.kind()),
            Self::Cells(error) => code_of_cells(error),
            _ => 1,
        }
    }

    /// Returns true if the reader of our output has closed the pipe, as `head` does. The run has
    /// not failed then.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// 2 for an extension that is not known: names of files come from flags only.
fn code_of_file(error: &nearfield_io::Error) -> u8 {
    match error.kind() {
        nearfield_io::ErrorKind::UnknownFormat => 2,
        _ => 1,
    }
}

/// Maximum number of threads that a pool takes; fewer may still be more than the system gives.
const MAX_THREADS: usize = 4096;

/// 2 for settings that come from flags only; boxes and points come from files too.
fn code_of_engine(kind: &nearfield::ErrorKind) -> u8 {
    use nearfield::{ErrorKind, error::cpu};
    match kind {
        ErrorKind::Setup(cause) => code_of_cells(cause),
        ErrorKind::Cpu(cause) => match cause.kind() {
            cpu::ErrorKind::Threads { threads, .. } if *threads > MAX_THREADS => 2,
            _ => 1,
        },
        _ => 1,
    }
}

/// 2 for a radius, which comes from a flag only.
fn code_of_cells(error: &nearfield_grid::Error) -> u8 {
    match error.kind() {
        nearfield_grid::ErrorKind::Radius(_) => 2,
        _ => 1,
    }
}
