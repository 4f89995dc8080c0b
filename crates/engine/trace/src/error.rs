//! Errors in writing, reading and showing traces.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a trace cannot be written, read or shown; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// For `map_err` of reading a file.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let path = path.clone();
            ErrorKind::Read { path, source }.into()
        }
    }

    /// The error of writing a file.
    pub fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        ErrorKind::Write { path, source }.into()
    }
}

/// The causes for which a trace cannot be written, read or shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The file cannot be made or written to.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{name} is not a trace: {reason}")]
    Foreign {
        /// The file.
        name: String,
        /// The mistake in its first line.
        reason: String,
    },
    /// The file ends within its first line.
    #[error(
        "{name} ends after {bytes} bytes, before its first line is complete: nothing was recorded"
    )]
    Truncated {
        /// The file.
        name: String,
        /// Bytes of the first line that are there.
        bytes: usize,
    },
    /// The file is of a later version.
    #[error(
        "{name} is a trace of version {found}, and this program reads up to {known}: update it"
    )]
    Newer {
        /// The file.
        name: String,
        /// Its version.
        found: u64,
        /// The newest that is read.
        known: u32,
    },
    /// The trace holds nothing that can be analysed.
    #[error("{name} holds no stages and no steps: was anything run while it was recorded?")]
    Empty {
        /// The file.
        name: String,
    },
    /// Two of the traces to merge belong to the same rank.
    #[error("{} and {} are both traces of rank {rank}: give one of each rank", names[0], names[1])]
    SameRank {
        /// The rank.
        rank: u32,
        /// The files.
        names: [String; 2],
    },
    /// Two traces to compare have times of different clocks.
    #[error(
        "{emulated} has times of an emulated device's virtual clock and {real} those of a real \
         clock, which say nothing about each other: compare traces of the same kind of device"
    )]
    Clocks {
        /// The file with virtual times.
        emulated: String,
        /// The other file.
        real: String,
    },
    /// A merged trace cannot be written.
    #[error("cannot write the merged trace: {0}")]
    Merged(io::Error),
    /// The writer's thread cannot be started.
    #[error("cannot start the thread that writes the trace: {0}")]
    Thread(io::Error),
    /// Another subscriber is installed.
    #[error(
        "another tracing subscriber is installed already: add the layer of `record` to that one"
    )]
    Installed,
}
