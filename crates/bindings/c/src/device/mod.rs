//! Data that live on a GPU: device pointers in and out, on the caller's stream.
//!
//! Calls have the names of those for data on the host, with `nf_device_engine_` in the place of
//! `nf_`, and mean the same. An address on the device says nothing about what is there, so
//! coordinates are in the precision of the engine, and integers come with their type.

mod chunks;
mod columns;
mod engine;
mod kernels;
mod lend;
mod lists;
mod options;
mod point_data;
mod query;
mod systems;
mod verlet;

pub use chunks::*;
pub use columns::*;
pub use engine::*;
pub use kernels::*;
pub use lend::*;
pub use lists::*;
pub use options::*;
pub use point_data::*;
pub use query::*;
pub use systems::*;
pub use verlet::*;
