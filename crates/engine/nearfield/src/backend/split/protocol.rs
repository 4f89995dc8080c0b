//! One job by two backends: the protocol that every such job follows.
//!
//! ```text
//!  plan ──▶ one backend has everything ──▶ it does the job, as it does without the other ──┐
//!    │                                                                                     │
//!    └────▶ both have a part:                                                              │
//!             calling thread    prepare ─▶ divide ─▶ drives the device ──┐                 │
//!             CPU pool                        └────▶ computes its part ──┴▶ join ─────────▶ learn
//!                                             ◀── hand-over ──┘           or recover
//! ```
//!
//! The calling thread drives the device, which overlaps its own copies and kernels, so no other
//! thread has to be woken for it: that takes a twentieth of a millisecond on some machines. When
//! the device has a [fault](super::super::Fault), none of its results count, and the CPU backend
//! does its part too ([`SplitJob::recover`]). An error of the host ends the job and is the
//! caller's.
//!
//! Jobs differ in their input, plan and result. Lists, counts and pair kernels of an engine,
//! traversals of data on a device and sums over all pairs implement [`SplitJob`]. Whether a device
//! exists or is emulated makes no difference here.
//!
//! # Order and overlap
//!
//! | phase | calling thread | workers of the pool |
//! | --- | --- | --- |
//! | plan | asks for staleness, may sort and cut | sort, where a plan is made |
//! | divide | takes memory, sends fields | copy |
//! | parts | launches, copies back, waits for the device | traverse their targets |
//! | join | starts the join | put results where they belong |
//! | learn | controller and trace events | are free |
//!
//! Both parts begin after `divide`, and `join` begins when both have ended. So a part may borrow
//! anything that the other does not write, and the borrow checker holds a job to that: [`Halves`]
//! are two closures that borrow at the same time.
//!
//! The CPU part may wait for the device once, at the hand-over of starts and lengths. Its wait is
//! taken off its time, or a fast CPU backend would look as slow as the device it waits for. The
//! device's part of lists never waits for the CPU backend, so the two cannot wait for each other.
//!
//! # After a fault
//!
//! | fault seen in | CPU backend then does | time counted as |
//! | --- | --- | --- |
//! | the device alone | the whole job | recovery |
//! | divide | the whole job | recovery |
//! | the device's part | [`SplitJob::recover`], after its own part has ended | recovery |
//! | too little room | [`SplitJob::recover`] | recovery, and no fault |
//!
//! The step still ends with [`SplitJob::learn`], which gets the fault and what it cost.
//! **Invariant:** `Ok` means that the result is complete, whichever backend has computed it.

use super::super::{DeviceError, Fault};
use crate::Error;
use nearfield_cpu::CpuBackend;
use std::time::{Duration, Instant};

/// The backends that have work in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backends {
    Cpu,
    Device,
    Both,
}

/// A job that two backends share. Its methods are called in the order of the module's drawing.
pub(crate) trait SplitJob {
    /// Decides who has work in this step.
    ///
    /// A device that cannot take part makes this [`Backends::Cpu`]; the job keeps the reason.
    fn plan(&mut self) -> Result<Backends, Error>;

    /// Does everything on the CPU backend.
    fn by_cpu(&mut self) -> Result<(), Error>;

    /// Does everything on the device.
    fn by_device(&mut self) -> Result<(), DeviceError>;

    /// Both parts, to be done at the same time. The calling thread drives the device, and is told
    /// when both began; the CPU pool computes the other part.
    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError>;

    /// Puts the results of both parts together.
    ///
    /// Called if the device has done its part. Results of either backend may be in the caller's
    /// arrays before; afterwards all are.
    fn join(&mut self) -> Result<(), Error>;

    /// Does the device's part on the CPU backend, which has done its own.
    ///
    /// Never called after [`join`](Self::join). A job whose values are combined leaves those of the
    /// CPU backend's own part alone.
    fn recover(&mut self) -> Result<(), Error>;

    /// Learns from the step for the next one.
    ///
    /// Also returns memory that was lent for the step. Not called after an error of the host.
    fn learn(&mut self, outcome: &Outcome) -> Result<(), Error>;
}

/// Both parts of a job.
pub(crate) struct Halves<D, C> {
    pub(crate) drive: D,
    pub(crate) compute: C,
}

/// Drives the device through its part; both began then.
pub(crate) trait Drive: FnOnce(Instant) -> Result<DriveEnd, DeviceError> {}

impl<F: FnOnce(Instant) -> Result<DriveEnd, DeviceError>> Drive for F {}

/// Computes the CPU backend's part.
pub(crate) trait Compute: FnOnce() -> Result<ComputeEnd, Error> + Send {}

impl<F: FnOnce() -> Result<ComputeEnd, Error> + Send> Compute for F {}

/// How the device's part went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveEnd {
    Done,
    /// There was too little room for its results, which is not a fault of the device.
    NoRoom,
}

/// How the CPU backend's part went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ComputeEnd {
    /// How long it waited for the device. A backend that waits could have done more.
    pub(crate) waited: Duration,
}

/// A step that was done.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The backends that were planned to have work.
    pub(crate) backends: Backends,
    /// When both began.
    pub(crate) began: Instant,
    /// Time of each backend, milliseconds; 0 for a backend without work.
    /// The CPU backend's excludes its wait for the hand-over.
    pub(crate) cpu_ms: f64,
    pub(crate) device_ms: f64,
    /// Time of the CPU backend for the device's part, milliseconds.
    pub(crate) recovery_ms: f64,
    /// Why none of the device's results count.
    pub(crate) fault: Option<Fault>,
    /// Whether they had too little room.
    pub(crate) no_room: bool,
}

impl Outcome {
    /// A step of these backends that begins now.
    pub(crate) fn new(backends: Backends) -> Self {
        Self {
            backends,
            began: Instant::now(),
            cpu_ms: 0.0,
            device_ms: 0.0,
            recovery_ms: 0.0,
            fault: None,
            no_room: false,
        }
    }

    /// Milliseconds since both backends began.
    fn ms(&self) -> f64 {
        milliseconds(self.began.elapsed())
    }

    /// Whether the device's results count.
    pub(crate) fn failed(&self) -> bool {
        self.fault.is_some()
    }
}

/// As a number of milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Does a job by the protocol.
///
/// # Errors
/// Those of the host; the caller's results are then invalid.
pub(crate) fn run(cpu: &CpuBackend, job: &mut impl SplitJob) -> Result<Outcome, Error> {
    let mut outcome = Outcome::new(job.plan()?);
    match outcome.backends {
        Backends::Cpu => {
            job.by_cpu()?;
            outcome.cpu_ms = outcome.ms();
        }
        Backends::Device => match job.by_device() {
            Ok(()) => outcome.device_ms = outcome.ms(),
            Err(DeviceError::Fault(fault)) => {
                outcome.device_ms = outcome.ms();
                outcome.fault = Some(fault);
                job.by_cpu()?;
                outcome.recovery_ms = outcome.ms() - outcome.device_ms;
            }
            Err(DeviceError::Host(error)) => return Err(error),
        },
        Backends::Both => run_both(cpu, job, &mut outcome)?,
    }
    job.learn(&outcome)?;
    Ok(outcome)
}

fn run_both(cpu: &CpuBackend, job: &mut impl SplitJob, outcome: &mut Outcome) -> Result<(), Error> {
    let driven = match job.divide() {
        Ok(Halves { drive, compute }) => {
            let began = Instant::now();
            outcome.began = began;
            let ms = || milliseconds(began.elapsed());
            let ((driven, device_ms), (computed, cpu_ms)) =
                cpu.beside(|| (drive(began), ms()), || (compute(), ms()));
            outcome.cpu_ms = cpu_ms - milliseconds(computed?.waited);
            outcome.device_ms = device_ms;
            Ok(driven)
        }
        Err(error) => Err(error),
    };
    let driven = match driven {
        Ok(driven) => driven,
        // The device cannot even begin.
        Err(DeviceError::Fault(fault)) => {
            outcome.fault = Some(fault);
            job.by_cpu()?;
            outcome.recovery_ms = outcome.ms();
            return Ok(());
        }
        Err(DeviceError::Host(error)) => return Err(error),
    };
    match driven {
        Ok(DriveEnd::Done) => return job.join(),
        Ok(DriveEnd::NoRoom) => outcome.no_room = true,
        Err(DeviceError::Fault(fault)) => outcome.fault = Some(fault),
        Err(DeviceError::Host(error)) => return Err(error),
    }
    let begin = outcome.ms();
    job.recover()?;
    outcome.recovery_ms = outcome.ms() - begin;
    Ok(())
}
