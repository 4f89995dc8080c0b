//! Output files that never destroy what the user has, and clear errors of input files.
//!
//! [`NewFile`] is written beside its place, under a temporary name in the same folder, and takes
//! the place when it is complete: a failed run leaves the old file as it was. [`Plan`] knows the
//! inputs and outputs of a run before the first of them is opened, and refuses an output that is an
//! input or that is named twice.
//!
//! Runs that go on after a break share one protocol. A checkpoint holds a [`Run`]: the settings by
//! which it is told from others, and how far every [`GrowingFile`] had grown, which is on the disk
//! before the checkpoint takes its place. A run that goes on cuts each of these files there, and
//! refuses those of another run. A [`RunFolder`] knows which frames are those of a run: frames
//! behind the checkpoint, and those of an older run, are removed, and no others.
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
