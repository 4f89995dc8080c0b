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
mod sums;
mod times;
mod types;
mod values;

pub(crate) use side::start;
pub(crate) use sort::{GpuCells, finer_cells};
pub(crate) use state::KEPT_PLANS;
pub(crate) use sums::PairSums;
pub(crate) use types::{BUILT, PageLocked, Program, find_driver, program_of};
