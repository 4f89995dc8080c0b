//! CUDA's compiler, linker and device runtime: the folders they are looked for in, the choice among
//! several versions, and opening them.
//!
//! None of them is needed to build this crate or to start a program: they are looked for when
//! something has to be compiled. The three must be of one major version and no newer than the
//! driver, which loads no code of a later CUDA. So the search gathers everything that it finds,
//! grouped by what was installed together (`folders`), and chooses afterwards. Libraries are opened
//! by full path and stay open for the life of the process, so functions taken from them never
//! dangle.

mod folders;
mod library;
mod search;

pub use folders::{Libraries, LibraryFile};
pub(crate) use library::{
    Component, GetVersion, Handle, OutputCalls, function, open, version_told,
};
pub use search::Search;
