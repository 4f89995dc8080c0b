//! Output files that never destroy what the user has, and clear errors of input files.
//!
//! [`NewFile`] is written beside its place, under a temporary name in the same folder, and takes
//! the place when it is complete: a failed run leaves the old file as it was. [`Plan`] knows the
//! inputs and outputs of a run before the first of them is opened, and refuses an output that is an
//! input or that is named twice.
//!
//! **Invariant others rely on:** only regular files are replaced. Devices, pipes and standard
//! output (`/dev/stdout`) are written directly, because renaming over them would destroy them.

mod error;
mod frames;
mod input;
mod new_file;
mod place;
mod plan;

pub use error::{Error, ErrorKind};
pub use frames::is_frame;
pub use input::{make_folder, not_text, of_a_file, read, read_text};
pub use new_file::{NewFile, write, write_with};
pub use plan::Plan;
