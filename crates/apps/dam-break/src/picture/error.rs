//! What can go wrong while a picture is written.

use std::path::{Path, PathBuf};

/// Why a picture could not be made; every message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The file could not be created or written.
    #[error(
        "cannot write {path}: {source}; check that the folder exists, is writable and has space"
    )]
    Write {
        /// The file that was being written.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The animation's encoder refused a frame.
    #[error("cannot encode frame {frame} of {path}: {source}")]
    Encode {
        /// The animation that was being written.
        path: PathBuf,
        /// Index of the frame, from 0.
        frame: usize,
        /// What the encoder said.
        source: gif::EncodingError,
    },
    /// A frame's size differs from the first frame's or cannot be stored.
    #[error(
        "frame {frame} of {path} is {actual_width}×{actual_height} pixels, but the animation takes \
         {width}×{height}; render every frame at one size between 1 and 65535 pixels a side"
    )]
    Size {
        /// The animation that was being written.
        path: PathBuf,
        /// Index of the frame, from 0.
        frame: usize,
        /// Width of the refused frame, in pixels.
        actual_width: u32,
        /// Height of the refused frame, in pixels.
        actual_height: u32,
        /// Width of the animation, in pixels.
        width: u32,
        /// Height of the animation, in pixels.
        height: u32,
    },
    /// An animation was finished before anything was pushed.
    #[error("the animation {path} has no frames; push at least one")]
    NoFrames {
        /// The animation that was being written.
        path: PathBuf,
    },
    /// The plot could not be drawn or saved.
    #[error("cannot draw the plot {path}: {reason}")]
    Plot {
        /// The plot that was being written.
        path: PathBuf,
        /// What the drawing library said.
        reason: String,
    },
}

impl PictureError {
    /// Adds the path to an error of the operating system.
    pub(super) fn write(path: &Path, source: std::io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}

impl From<nearfield_plot::PlotError> for PictureError {
    fn from(error: nearfield_plot::PlotError) -> Self {
        Self::Plot {
            path: error.path,
            reason: error.reason,
        }
    }
}
