//! The hardware that does an engine's jobs: the CPU pool, a GPU, and both at once.
//!
//! A backend never sees an engine. It gets a [step's input](StepInput): the point sets, the
//! lattice, the options that concern a backend and the CPU pool, and a [job](Job): lists, counts or
//! a pair kernel for one pair of sets. [`support`] alone decides which backend can do which job,
//! and it is asked once, before anything runs. A failure while a job runs is a [`DeviceError`]:
//! either a [fault](Fault) of the device, after which the engine finishes the job on the CPU and
//! reports it, or an error of the host, which the caller gets.
//!
//! | file | contents |
//! | --- | --- |
//! | `input`, `job`, `sums`, `kernel` | jobs and their input |
//! | `support` | the features of each backend |
//! | `accelerator` | the trait of a device with memory of its own |
//! | `gpu`, `emulated` | its two implementations |
//! | `split` | both backends on one step |
//! | `transfer`, `memory`, `lazy` | copies, memory that a device reads, sorting on demand |
//! | `fault`, `turn` | failures of a device, and who may use it |
//!
//! The cargo feature `gpu` decides here, and only here, whether there is a GPU backend: without it
//! [`no_gpu`] stands in the place of [`gpu`], with the few names that the other modules use.

pub(crate) mod accelerator;
pub(crate) mod emulated;
mod fault;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
pub(crate) mod gpu_report;
mod input;
mod job;
pub(crate) mod kernel;
pub(crate) mod lazy;
mod memory;
#[cfg(not(feature = "gpu"))]
pub(crate) mod no_gpu;
pub(crate) mod split;
pub(crate) mod sums;
pub(crate) mod support;
pub(crate) mod transfer;
mod turn;

pub(crate) use fault::{DeviceError, Fault};
pub(crate) use input::{SetInput, StepInput, StepOptions};
pub(crate) use job::{Job, JobKind};
pub(crate) use memory::HostMemory;
#[cfg(not(feature = "gpu"))]
pub(crate) use no_gpu as gpu;
