//! Where a simulation runs.

use nearfield::{
    balance::{Policy, Strategy},
    prelude::Device,
    report::Report,
};

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
    /// How the GPU maps cells to threads; `None` without a GPU.
    pub strategy: Option<Strategy>,
    /// The policy that divides the work of two backends; `None` where one does it all.
    pub policy: Option<Policy>,
}

impl Running {
    /// The place of an engine, for a [`Neighborhood`](crate::Neighborhood).
    #[must_use]
    pub fn of(report: Report) -> Self {
        let split = report.jobs.iter().find_map(|job| job.split.as_ref());
        Self {
            device: report.device,
            reason: report.reason,
            threads: report.threads,
            strategy: report.gpu.map(|gpu| gpu.strategy),
            policy: split.map(|split| split.policy),
        }
    }
}
