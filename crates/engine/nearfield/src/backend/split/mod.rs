//! Two backends on one step: the CPU pool and a device share the targets of a job.
//!
//! Every job, the lists or counts of a pair of sets or one kernel over it, has a controller and a
//! [plan](Planned) of its own, because backends compare differently on each. The plan says which
//! bricks are whose; [`protocol`] says what happens in a step, whatever the job is. Each backend
//! sorts for itself. The CPU backend marks the targets that it takes, and the results of all others
//! are the device's.
//!
//! A plan is made from the points of some step and serves for many: every cell of space belongs to
//! some part, so points that move meanwhile are searched for by exactly one backend all the same.

mod done;
mod lists;
mod part;
mod plan;
mod planned;
mod protocol;
mod report;
mod settings;
mod shared;
mod sorted;
mod step;
mod times;
mod trace;
mod values;

pub(crate) use done::{GpuDone, Piece};
pub(crate) use lists::find;
pub(crate) use part::{PARTS_OF_CPU, is_taken, share};
pub(crate) use plan::JobState;
pub(crate) use planned::{OF_CPU, Planned};
pub(crate) use protocol::{
    Backends, Compute, Computed, Drive, Driven, Halves, Outcome, SplitJob, run,
};
pub use report::{BackendReport, JobReport, SplitReport};
pub(crate) use settings::{BRICK_EDGE, Settings, ties_for};
pub(crate) use shared::{Shared, Split, locked};
pub(crate) use step::{Clock, Device, Ran, Seen, Timed, learn};
pub(crate) use values::{Values, evaluate};
