//! Failures of a device while it does a job that it supports.
//!
//! They are not errors of the engine: the CPU backend does the job within the same call, and the
//! report says why. So a [`Fault`] is a reason in words and has no source to be matched.
//!
//! The faults differ in what follows. [`Fault::Busy`] says nothing about the device: the next job
//! may find it free, and no controller learns from the step. [`Fault::Behind`] lasts until the next
//! update of positions reaches the device. [`Fault::FarImages`] is a matter of the points: the CPU
//! backend names the first pair in its error. [`Fault::Reordered`] concerns lists that are handed
//! out a range at a time: the CPU backend finds the others. [`Fault::Failed`] makes the device rest
//! for a number of jobs, or for good (`gpu/faults.rs`); a controller that sees it in a step of both
//! backends gives the device less work, or none.
//!
//! Too little memory on the host, and a kernel whose text does not compile, are a
//! [`DeviceError::Host`]. It ends the job: doing the job again elsewhere would hide the cause.

use crate::Error;
use std::fmt;

/// Why a device did not do a job that it supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another job uses the device, and this thread must not wait for it.
    Busy,
    /// It lacks positions that were placed while it could not work.
    Behind,
    /// Images of pairs have numbers of more than 32 bits.
    FarImages,
    /// It has sorted the points anew since it counted their neighbours, and may have ordered them
    /// otherwise.
    Reordered,
    /// It failed in this job or an earlier one, and why.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another job of the engine was using the device"),
            Self::Behind => {
                f.write_str("the device lacks positions, which it gets with the next update")
            }
            Self::Reordered => {
                f.write_str("another job made the device sort the points in another order")
            }
            Self::FarImages => f.write_str("images of pairs have numbers of more than 32 bits"),
            Self::Failed(why) => write!(f, "the device has failed: {why}"),
        }
    }
}

/// Why a device did not finish a job.
#[derive(Debug)]
pub(crate) enum DeviceError {
    /// The CPU backend can do the job all the same.
    Fault(Fault),
    /// The host could not do its part, or the caller's input is wrong.
    Host(Error),
}

impl From<Fault> for DeviceError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for DeviceError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}
