//! From CUDA text to a loaded kernel: compiling, linking, the cache of machine code, and modules.
//!
//! [`Modules::load`] asks the [`CodeStore`] for machine code of a [`Program`]. The store asks the
//! [`Cache`] and then a [`Compiler`]. Machine code is cached, not PTX, so the driver never
//! compiles.

mod cache;
mod compile;
mod info;
mod modules;
mod nvjitlink;
mod nvrtc;
mod store;
mod text;
mod trust;

pub use cache::{Cache, Entry};
pub use compile::{Compiler, Linker};
pub use info::{GpuInfo, Missing, Tool};
pub use modules::{Module, Modules};
pub use store::{Code, CodeStore, Origin};
pub use text::{Key, Program, USER_HEADER};
pub use trust::UnsafeFolder;
