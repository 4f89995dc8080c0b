//! Machines that exist on a virtual clock only.
//!
//! An [`EmulatedSpec`] says what the GPU is like compared with the CPU backend, a [`Machine`] says
//! how long both backends take for a plan. No thread, no device and no real clock is involved, so
//! the same spec, seed and plans give the same times everywhere.

mod machine;
mod spec;

pub use machine::Machine;
pub use spec::{EmulatedSpec, FaultAt};
