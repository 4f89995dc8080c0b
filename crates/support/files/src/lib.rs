//! Output files that never destroy what the user has, and clear errors of input files.
//!
//! [`NewFile`] is written under a temporary name in the same folder and renamed when it is
//! complete, so a failed run leaves the old file unchanged. [`Plan`] knows the inputs and outputs
//! of a run before the first of them is opened, and refuses an output that is an input or that is
//! named twice.
//!
//! Runs that resume after an interruption share one protocol. A checkpoint holds a [`Run`]: the
//! settings that identify it, and the length of every [`GrowingFile`], which is flushed to the disk
//! before the checkpoint is renamed. A run that resumes truncates each of these files to that
//! length, and refuses files of another run. A [`RunFolder`] knows the frames of a run: only frames
//! after the checkpoint and frames of an older run are removed.
//!
//! **Invariant others rely on:** only regular files are replaced. Devices, pipes and standard
//! output (`/dev/stdout`) are written directly, because renaming over them would destroy them.

mod content;
mod error;
mod frames;
mod growing;
mod input;
mod leftovers;
mod new_file;
mod place;
mod plan;
mod reserve;
mod run;
mod run_folder;
pub mod zstd;

pub use content::{checksum, not_this_format};
pub use error::{Error, ErrorKind};
pub use frames::is_frame;
pub use growing::{GrowingFile, Grown};
pub use input::{ask_for_memory, make_folder, not_text, of_a_file, read, read_text};
pub use new_file::{NewFile, write, write_with};
pub use plan::Plan;
pub use reserve::{Reserve, ReserveAllocator};
pub use run::Run;
pub use run_folder::{MARKER, RunFolder};
