//! From CUDA text to a loaded kernel: compiling, linking, the cache of machine code, and modules.
//!
//! # The course of a program
//!
//! ```text
//!   Program ──► Modules ──► CodeStore ──► Cache      a file per program and architecture
//!   (text)      (loaded        │
//!                once)         └────────► Compiler   NVRTC, then nvJitLink or the driver
//! ```
//!
//! [`Modules::load`] asks the [`CodeStore`] for machine code of a [`Program`]. The store asks the
//! [`Cache`] and then a [`Compiler`], and keeps new code in the cache. Machine code is cached, not
//! PTX, so the driver never compiles.
//!
//! # Costs
//!
//! A program that is loaded is found by the hash of its key. From the cache it takes one read of a
//! file and a call of the driver; compiling takes far longer. Therefore programs are told apart by
//! everything that goes into them, and by nothing else: two engines, or two runs, with the same
//! kernel share the code.
//!
//! # Invariants
//!
//! - A key covers text, headers, macros, options, architecture and the version of this crate
//!   ([`Program::key`]), so code in the cache never belongs to another text.
//! - Code from the cache is run only if no other user can have written it (`trust`).
//! - A failure to write the cache, or to trust it, costs time and no result.

mod cache;
mod compile;
mod info;
mod modules;
mod note;
mod nvjitlink;
mod nvrtc;
mod store;
mod text;
mod trust;

pub use cache::{Cache, Entry};
pub use compile::{Compiler, Linker};
pub use info::{GpuInfo, Missing, Tool};
pub use modules::{Module, Modules};
pub use note::Note;
pub use store::{Code, CodeStore, Origin};
pub use text::{Key, Program, USER_HEADER};
