//! Nearfield for C and C++: opaque handles, a status from every call, explicit sizes and strides.
//!
//! The header `include/nearfield.h` is generated from this crate and states the rules for callers;
//! `docs/embedding.md` explains how to build against it. The design rests on three facts:
//!
//! * Handles are names in a table (`handle`), never addresses, so that any value a caller passes
//!   can be looked up and refused.
//! * Every function runs through `call`, which catches panics, keeps the text of failures, and
//!   refuses changes to an engine that another thread is using.
//! * Pointers of the caller become slices in one place, `args`, which checks for null and
//!   alignment. The caller guarantees that they point to the stated number of elements and that
//!   nothing writes to them meanwhile: the `# Safety` of every function here.

mod args;
mod batches;
mod call;
mod chunks;
mod device;
mod engine;
mod filters;
mod handle;
mod kernels;
mod lists;
mod options;
mod pairs;
mod query;
mod status;
mod systems;
mod trace;
mod verlet;

pub use batches::*;
pub use chunks::*;
pub use device::*;
pub use engine::*;
pub use filters::*;
pub use kernels::*;
pub use lists::*;
pub use options::*;
pub use pairs::*;
pub use query::*;
pub use status::*;
pub use systems::*;
pub use trace::*;
pub use verlet::*;
