//! Nearfield for C and C++: opaque handles, a status from every call, explicit sizes and strides.
//!
//! The header `include/nearfield.h` is made from this crate and holds the rules for callers;
//! `docs/embedding.md` tells how to build against it. Inside, three facts carry everything:
//!
//! * Handles are names in a table (`handle`), never addresses, so that any value a caller passes
//!   can be looked up and refused.
//! * Every function runs through `call`, which catches panics, keeps the text of failures, and
//!   refuses changes to an engine that another thread is using.
//! * Pointers of the caller become slices in one place, `args`, which checks null and alignment.
//!   That they point to the stated number of elements, which are not written to meanwhile, is the
//!   guarantee of the caller: the `# Safety` of every function here.

mod args;
mod batches;
mod call;
mod device;
mod engine;
mod filters;
mod handle;
mod kernels;
mod lists;
mod options;
mod query;
mod status;
mod trace;

pub use batches::*;
pub use device::*;
pub use engine::*;
pub use filters::*;
pub use kernels::*;
pub use lists::*;
pub use options::*;
pub use query::*;
pub use status::*;
pub use trace::*;
