//! A real GPU as an engine uses it: its sets on the device, and the jobs it does there.
//!
//! The host keeps everything too, so nothing is lost when the GPU fails: the job is finished on the
//! CPU backend, as are those that follow until the GPU is [tried again](faults), and the report
//! says why. One thread at a time uses the GPU (see `turn.rs`).
//!
//! # A job on the GPU
//!
//! 1. Positions were sent at the last update, in the caller's order, and are still unsorted.
//! 2. The first job after it sorts all sets into the GPU's own [cells](sort). Fields of a pair
//!    kernel are sent meanwhile.
//! 3. Lists are counted, so that storage of the right size can be lent, and then written. Values
//!    are computed in one pass.
//! 4. Results come back through page-locked memory, in pieces, while later ones are still computed
//!    or copied.
//!
//! The sort is kept until positions or lattice change, so a second job on the same positions sends
//! its fields and begins at step 3.
//!
//! | file | contents |
//! | --- | --- |
//! | `side` | the [accelerator](super::accelerator): turns, faults, forks |
//! | `state` | the memory on the device |
//! | `sort`, `times` | cells, and what the strategy `auto` knows of them |
//! | `cells`, `bulk` | how fine cells are, and whether for all radii or for the bulk of them |
//! | `share` | the targets of a part |
//! | `lists`, `values`, `fields` | results, fields and the memory they go through |
//! | `kept`, `over_lists` | lists that stay on the device, and points that have moved since |
//! | `query`, `rows`, `buffers` | lists of free positions, lists a range at a time, and their memory |
//! | `faults` | when a GPU that has failed is tried again |
//! | `sums`, `systems` | sums over all pairs and pairs of many systems, which have no sets |
//! | `types` | names that a build without a GPU has too |
//!
//! **Invariant:** nothing outside of this folder calls the driver for an [`Engine`](crate::Engine),
//! so every error of it passes `attempt` in `side`, or `run` in `sums` and `systems`, which decide
//! between a fault and an error of the host.

mod buffers;
mod bulk;
mod cells;
mod faults;
mod fields;
mod kept;
mod lists;
mod over_lists;
mod query;
mod rows;
mod share;
mod side;
mod sort;
mod state;
mod sums;
mod systems;
mod times;
mod types;
mod values;

pub(crate) use bulk::{BulkModel, RadiusClasses};
pub(crate) use cells::{GpuCells, Occupancy};
pub(crate) use side::start;

pub(crate) use state::KEPT_PLANS;
pub(crate) use sums::PairSums;
pub(crate) use systems::{GpuSystems, of_quantities, refusal};
pub(crate) use types::{BUILT, Note, PageLocked, Program, find_driver, program_of, visible};
