//! CUDA's compiler, linker and device runtime: where they are looked for, which are taken, and how they
//! are opened.

mod folders;
mod library;
mod search;

pub use folders::{Found, Libraries};
pub(crate) use library::{Part, function, open};
pub use search::Search;
