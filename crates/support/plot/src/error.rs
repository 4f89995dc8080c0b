//! Errors of drawing and saving plots.

use std::{io, path::PathBuf};

/// A plot could not be drawn or saved; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the path.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

/// The causes for which a plot could not be drawn or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The plot could not be drawn, or not encoded.
    #[error("cannot draw the plot {}: {reason}", path.display())]
    Draw {
        /// The file that was to be written.
        path: PathBuf,
        /// Message of the library that draws or encodes.
        reason: String,
    },
    /// The file could not be written.
    #[error("cannot draw the plot {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
