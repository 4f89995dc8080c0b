//! The GPU lane: points sorted on the device, and traversals over them.
//!
//! A [`GpuLane`] owns one stream of one GPU; everything it starts runs in the order it was asked
//! for, so buffers need no further synchronisation. [`DevicePoints`] is one point set,
//! [`DeviceLattice`] the cells that all sets of an engine share.
//!
//! Raw pointers and launches live in `launch`; the modules above it are safe code, and keep the
//! promise that `launch` relies on: buffers are as long as the counts handed over with them.

mod buffer;
mod grid;
mod launch;
mod layout;
mod lists;
mod pairs;
mod programs;
mod strategy;
mod walk;

pub use grid::{DeviceLattice, DevicePoints, Measured};
pub use lists::{DeviceLists, ListKind};
pub use pairs::{PairFields, PairProgram, PairScratch};
pub(crate) use programs::traversal_programs;
pub use strategy::{ParseStrategyError, Strategy};
pub use walk::PairOfPoints;

use crate::{CodeStore, DeviceInfo, Error, GpuInfo, Modules, open};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys::CUevent_flags};
use launch::GridKernels;
use programs::Traversals;
use std::sync::Arc;

/// One GPU, ready to work.
#[derive(Debug)]
pub struct GpuLane {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Modules,
    grid: GridKernels,
    traversals: Traversals,
    device: DeviceInfo,
}

impl GpuLane {
    /// Starts GPU `device`, numbered from 0, and loads what every step needs.
    ///
    /// # Errors
    /// Those of [`open`], and those of compiling and loading programs.
    pub fn new(device: u32) -> Result<Self, Error> {
        let context = open(device)?;
        Self::in_context(context, device, CodeStore::from_env())
    }

    fn in_context(context: Arc<CudaContext>, device: u32, store: CodeStore) -> Result<Self, Error> {
        // SAFETY: all of the lane's work is on one stream, which orders it; results are read after
        // that stream was synchronised.
        unsafe { context.disable_event_tracking() };
        let stream = context
            .new_stream()
            .map_err(|error| Error::driver("cuStreamCreate", error))?;
        let modules = Modules::with_store(&context, store)?;
        let grid = GridKernels::load(&modules)?;
        let device = (GpuInfo::probe().devices)
            .into_iter()
            .find(|info| info.index == device)
            .ok_or(Error::NoDevice { device, count: 0 })?;
        Ok(Self {
            context,
            stream,
            modules,
            grid,
            traversals: Traversals::default(),
            device,
        })
    }

    /// The GPU.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Waits for everything that was started.
    ///
    /// # Errors
    /// [`Error::Driver`] when any of it failed.
    pub fn wait(&self) -> Result<(), Error> {
        self.stream
            .synchronize()
            .map_err(|error| Error::driver("waiting for the GPU", error))
    }

    /// Milliseconds that `work` takes on the device, from the start of its first kernel to the end
    /// of its last, and what it gives.
    ///
    /// # Errors
    /// Those of `work`, and [`Error::Driver`].
    pub fn timed<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<(T, f32), Error> {
        let begin = self.mark()?;
        let result = work()?;
        let end = self.mark()?;
        let milliseconds = begin
            .elapsed_ms(&end)
            .map_err(|error| Error::driver("cuEventElapsedTime", error))?;
        Ok((result, milliseconds))
    }

    fn mark(&self) -> Result<CudaEvent, Error> {
        self.stream
            .record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
            .map_err(|error| Error::driver("cuEventRecord", error))
    }
}
