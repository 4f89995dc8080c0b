//! State of a GPU for one engine, used by one job at a time.
//!
//! Memory is kept between jobs and given back after a fault. Positions are placed at every update
//! and sorted at the first job that needs them ([`Order`]), so updates that no search follows cost
//! a copy only.
//!
//! **Invariant:** after a fault no set counts as sorted, and the lattice is made anew.

use super::{
    buffers::{Queries, RowBuffers},
    faults::FaultRecord,
    fields::StagedFields,
    times::Times,
};
use crate::{
    Error,
    backend::{Fault, Job},
};
use nearfield_gpu::{
    self as gpu, DeviceLattice, DeviceLists, DeviceParts, DevicePoints, DeviceShare, Event,
    GpuBackend, HostBuffer, PairOfPoints, PairScratch,
};
use std::collections::HashMap;

/// Plans whose bricks the device keeps.
pub(crate) const KEPT_PLANS: usize = 16;

/// Buffers of shares, kept between steps.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Targets of the last part, gathered.
    pub(super) share: DeviceShare,
    /// By the version of the plan.
    pub(super) parts: HashMap<u64, DeviceParts>,
}

/// The GPU and its memory.
#[derive(Debug)]
pub(super) struct GpuState {
    pub(super) backend: GpuBackend,
    /// Positions on the device are current; sorting waits for the first search.
    pub(super) sets: Vec<GpuSet>,
    pub(super) times: Times,
    pub(super) lattice: Option<DeviceLattice>,
    pub(super) lists: DeviceLists,
    /// Free positions.
    pub(super) queries: Queries,
    /// Where ranges of pairs arrive.
    pub(super) rows: RowBuffers,
    pub(super) scratch: PairScratch,
    pub(super) shares: Shares,
    pub(super) staged: StagedFields,
    /// Where results arrive, made when first needed.
    pub(super) results: Option<HostBuffer<f32>>,
    /// By the name of a kernel's type, why it cannot run here; `None` where it can.
    pub(super) refused: HashMap<&'static str, Option<String>>,
    /// Before and after the sort that was begun, where it is timed.
    pub(super) sorting: Option<[Event; 2]>,
    /// Page-locked buffers there were when that was last asked.
    pub(super) host_buffers: u64,
    pub(super) faults: FaultRecord,
}

/// A point set of the engine on the GPU.
#[derive(Debug)]
pub(super) struct GpuSet {
    pub(super) points: DevicePoints,
    pub(super) order: Order,
}

/// How far a set has come since its positions were placed, or since the lattice changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Positions are there, in the caller's order.
    AsGiven,
    /// The device has been asked to sort it.
    Begun,
    /// Sorted into the cells of the lattice.
    Sorted,
}

/// Why a job ended before its results were there.
#[derive(Debug)]
pub(super) enum GpuJobError {
    Gpu(gpu::Error),
    Host(Error),
    /// The GPU works, but the CPU backend has to do the job.
    Fault(Fault),
}

impl From<gpu::Error> for GpuJobError {
    fn from(error: gpu::Error) -> Self {
        Self::Gpu(error)
    }
}

impl From<Fault> for GpuJobError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for GpuJobError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<nearfield_cpu::Error> for GpuJobError {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Host(error.into())
    }
}

impl GpuState {
    /// The GPU has failed: it gives back what memory it does not need to go on later.
    ///
    /// Positions stay on the device, so a GPU that is tried again needs no update for sets that
    /// have not changed. Whether it is lost is asked of the driver by waiting once: after a
    /// kernel's fault that fails too, after too little memory it does not.
    pub(super) fn step_aside(&mut self, error: &gpu::Error) {
        // After the fault of a kernel every call fails.
        let lost = self.backend.wait().is_err();
        tracing::warn!(%error, lost, "the CPU backend takes over from the GPU");
        self.faults.note(error.to_string(), lost);
        self.lattice = None;
        for set in &mut self.sets {
            set.order = Order::AsGiven;
        }
        self.lists = DeviceLists::default();
        self.queries = Queries::default();
        self.rows = RowBuffers::default();
        self.scratch = PairScratch::default();
        self.shares = Shares::default();
        self.staged = StagedFields::default();
        self.sorting = None;
    }

    /// The sets of a job, which the device has sorted.
    ///
    /// # Errors
    /// [`gpu::ErrorKind::Unsorted`] for a set that the device does not have, and before the first
    /// sort.
    pub(super) fn pair(&self, job: Job) -> Result<PairOfPoints<'_>, gpu::Error> {
        let set = |set: usize| self.sets.get(set).ok_or(gpu::ErrorKind::Unsorted);
        Ok(PairOfPoints {
            lattice: self.lattice.as_ref().ok_or(gpu::ErrorKind::Unsorted)?,
            targets: &set(job.targets)?.points,
            sources: &set(job.sources)?.points,
            same_set: job.targets == job.sources,
            share: None,
        })
    }
}
