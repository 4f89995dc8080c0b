//! Failures of a device while it does a job that it supports.
//!
//! They are no errors of the engine: the CPU backend does the job within the same call, and the
//! report says why. So a [`Fault`] is a reason in words and has no source to be matched.

use crate::Error;
use std::fmt;

/// Why a device did not do a job that it supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another job uses the device, and this thread must not wait for it.
    Busy,
    /// It lacks positions that were placed while it could not work.
    Behind,
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
