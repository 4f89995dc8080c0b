//! The hardware that does an engine's jobs: the CPU pool, a GPU, and both at once.
//!
//! A backend never sees an engine. It gets a [step's input](StepInput): the point sets, the
//! lattice, the options that concern a backend and the CPU pool, and a [job](Job): lists, counts or
//! a pair kernel for one pair of sets. [`support`] alone decides which backend can do which job,
//! and it is asked once, before anything runs. A failure while a job runs is a [`DeviceError`]:
//! either a [fault](Fault) of the device, after which the engine finishes the job on the CPU and
//! reports it, or an error of the host, which the caller gets.
//!
//! # The way of a job
//!
//! 1. The engine asks [`support::choose`] with the device that its user asked for and the feature
//!    of the call. The answer is the device, the CPU backend with a reason for the report, or an
//!    error.
//! 2. The device is asked whether it is [ready](accelerator::Accelerator::ready). A device that
//!    rests after a fault is not, nor one that another job uses if this thread must not wait for
//!    it.
//! 3. A device that works [alone](attached) does the whole job, and steps 4 and 5 do not apply.
//! 4. If two backends share jobs, the job's [plan](split::BrickPlan) says whose the targets are.
//! 5. The [protocol](split::run) runs the parts, joins their results, and hands the times of the
//!    step to the job's controller.
//!
//! # Faults
//!
//! A fault costs the time of a step, never its result: the host has all positions, so the CPU
//! backend does the job again, or the device's part of it, before the call returns. The engine's
//! next jobs go to the CPU backend without trying the device, until it is due to be tried again.
//! Positions that are placed meanwhile go to the host's cells alone. A device that works again gets
//! them with the next update; jobs before that update see [`Fault::Behind`]. A fault after which
//! the driver refuses every call is final for the process.
//!
//! For data that live on the device none of this can hold, because the host has no copy: there a
//! fault is an error of the call (see `device/mod.rs`).
//!
//! | file | contents |
//! | --- | --- |
//! | `input`, `values`, `sums`, `kernel` | jobs and their input |
//! | `support` | the features of each backend |
//! | `accelerator` | the trait of a device with memory of its own |
//! | `gpu`, `emulated` | its two implementations |
//! | `attached` | the device of an engine, alone or with a share |
//! | `rows`, `limit` | lists a range at a time, and within a memory limit |
//! | `split` | both backends on one step |
//! | `rates` | what pairs took in earlier runs |
//! | `transfer`, `memory`, `lazy` | copies, memory that a device reads, sorting on demand |
//! | `fault`, `turn` | failures of a device, and who may use it |
//! | `visible` | the GPUs that there are |
//!
//! The cargo feature `gpu` decides here, and only here, whether there is a GPU backend: without it
//! [`no_gpu`] stands in the place of [`gpu`], with the few names that the other modules use.

pub(crate) mod accelerator;
mod attached;
pub(crate) mod chunk_plan;
pub(crate) mod emulated;
mod fault;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
pub(crate) mod gpu_report;
mod input;
pub(crate) mod kernel;
pub(crate) mod lazy;
pub(crate) mod limit;
mod memory;
#[cfg(not(feature = "gpu"))]
pub(crate) mod no_gpu;
pub(crate) mod rates;
pub(crate) mod rows;
pub(crate) mod split;
pub(crate) mod sums;
pub(crate) mod support;
pub(crate) mod transfer;
mod turn;
pub(crate) mod values;
mod visible;

pub(crate) use attached::AttachedDevice;
pub(crate) use fault::{DeviceError, Fault};
pub(crate) use input::{
    DataStamps, InputSets, Job, JobKind, PairRules, SetInput, StepInput, StepOptions, next_stamp,
};
pub(crate) use memory::HostMemory;
#[cfg(not(feature = "gpu"))]
pub(crate) use no_gpu as gpu;
