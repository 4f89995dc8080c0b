//! Two backends on one step: the CPU pool and a device share the targets of a job.
//!
//! Every job, the lists or counts of a pair of sets or one kernel over it, has a controller and a
//! [plan](BrickPlan) of its own, because backends compare differently on each. The plan says which
//! bricks are whose; [`protocol`] says what happens in a step, whatever the job is. Each backend
//! sorts for itself. The CPU backend marks the targets that it takes, and the results of all others
//! are the device's.
//!
//! A plan is made from the points of some step and serves for many: every cell of space belongs to
//! some part, so points that move meanwhile are searched for by exactly one backend all the same.
//!
//! # A step
//!
//! The [protocol](protocol) is the same for all jobs. The plan names the backends with work. If it
//! names one, the step is what it would be without the other backend, and nothing is divided,
//! marked or joined. If it names both, the calling thread drives the device while the pool's
//! workers compute the CPU backend's targets. Then results are joined by target, and the times of
//! both are handed to the controller.
//!
//! # Plans, and when they change
//!
//! | | made from |
//! | --- | --- |
//! | layout: bricks and subregions | positions, on the host |
//! | cuts: threshold per subregion | times of past steps |
//! | parts: one byte per brick | layout and cuts |
//!
//! The layout is made at the first step, after a change of the lattice, when a tenth of the points
//! have come or gone, and when making it costs little compared with the steps since the last time.
//! Cuts are decided anew after most steps at first, and after every sixteenth once nothing changes.
//! The parts follow either.
//!
//! A change of the cuts takes no sort, so a controller may move bricks at every step. A change of
//! the layout takes a sort of both sets on the host. Where the device does all of the work nothing
//! else needs that sort, so the plan is kept until the number of points has changed.
//!
//! Any plan gives the same neighbours: it chooses the backend of a target, and every backend finds
//! the same set. The last bits of a sum may depend on the backend that computes it. Sums under cuts
//! that follow from times are therefore not reproducible to the last bit, which
//! [`Settings::deterministic`] is for: it fixes the threshold by a model of a usual machine.
//!
//! # Faults
//!
//! A fault of the device during a step of both backends leaves the CPU backend's part valid. Lists
//! are found anew as a whole, since the device's half of the storage is of no use. Values of the
//! device's targets alone are computed, so values that are combined with the caller's are touched
//! once. The controller learns that the device failed, and gives it less work, or none.

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
pub(crate) use planned::{BrickPlan, OF_CPU};
pub(crate) use protocol::{
    Backends, Compute, ComputeEnd, Drive, DriveEnd, Halves, Outcome, SplitJob, run,
};
pub use report::{BackendReport, JobReport, SplitReport};
pub(crate) use settings::{BRICK_EDGE, Settings, ties_for};
pub(crate) use shared::{Shared, Split, locked};
pub(crate) use step::{StepClock, StepObservations, StepTiming, learn};
pub(crate) use values::evaluate;
