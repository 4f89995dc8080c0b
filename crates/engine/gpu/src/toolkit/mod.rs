//! CUDA's compiler, linker and device runtime: the folders they are looked for in, the choice among
//! several versions, and opening them.
//!
//! The three must be of one major version and no newer than the driver. Libraries are opened by
//! full path and stay open for the life of the process.

mod folders;
mod library;
mod search;

pub use folders::{Found, Libraries};
pub(crate) use library::{Part, function, open};
pub use search::Search;
