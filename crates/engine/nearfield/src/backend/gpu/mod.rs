//! A real GPU as an engine uses it: its sets on the device, and the jobs it does there.
//!
//! The host keeps everything too, so nothing is lost when the GPU fails: the job is finished on the
//! CPU backend, as are those that follow until the GPU is [tried again](faults), and the report
//! says why. One thread at a time uses the GPU (see `turn.rs`).

mod faults;
mod fields;
mod host;
mod lists;
mod share;
mod side;
mod sort;
mod state;
mod times;
mod values;

pub(crate) use faults::Faults;
pub(crate) use side::GpuSide;
pub(crate) use sort::finer_cells;
pub(crate) use state::KEPT_PLANS;
