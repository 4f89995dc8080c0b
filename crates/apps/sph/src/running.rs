//! Where a simulation runs.

use nearfield::prelude::Device;

/// Where a simulation runs; on ranks, where this one does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Running {
    /// The device that does the work.
    pub device: Device,
    /// Why that one.
    pub reason: String,
    /// Worker threads of the host that take part, 0 when none does.
    pub threads: usize,
}

impl Running {
    /// A place of its own, for a [`Neighborhood`](crate::Neighborhood).
    #[must_use]
    pub fn new(device: Device, reason: String, threads: usize) -> Self {
        Self {
            device,
            reason,
            threads,
        }
    }
}
