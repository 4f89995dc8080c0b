//! A GPU that sums over all pairs.
//!
//! It holds nothing between sums but memory, so it needs none of an engine's sets, and a sum that
//! fails is done by the CPU backend as a whole.

use super::faults::{FaultRecord, GPU_FAILED};
use crate::{
    Error, ErrorKind,
    all_pairs::Real,
    backend::{
        DeviceError, Fault,
        sums::{SumWork, Targets},
    },
};
use nearfield_gpu::{self as gpu, AllPairsScratch, GpuBackend};
use nearfield_grid::OfProcess;

/// The GPU of an [`AllPairs`](crate::all_pairs::AllPairs).
#[derive(Debug)]
pub(crate) struct PairSums {
    number: u32,
    /// Neither used nor dropped in a forked child.
    scratch: OfProcess<AllPairsScratch>,
    backend: OfProcess<GpuBackend>,
    faults: FaultRecord,
}

impl PairSums {
    /// Starts the GPU with this number.
    ///
    /// # Errors
    /// The missing part, and how to get it.
    pub(crate) fn start(number: u32) -> Result<Self, String> {
        let backend = GpuBackend::new(number).map_err(|error| error.to_string())?;
        Ok(Self {
            number,
            backend: OfProcess::new(backend),
            scratch: OfProcess::new(AllPairsScratch::default()),
            faults: FaultRecord::default(),
        })
    }

    /// Its number, as in [`Device::Gpu`](crate::Device::Gpu).
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// As its maker calls it.
    pub(crate) fn name(&self) -> &str {
        &self.backend.device().name
    }

    /// Refuses to be used in a forked child of the process that has started it.
    pub(crate) fn usable(&self) -> Result<(), Error> {
        if self.backend.is_inherited() {
            return Err(ErrorKind::Gpu(gpu::ErrorKind::Forked.into()).into());
        }
        Ok(())
    }

    /// Whether the next sum may use it; asked once per sum, it counts those that may not.
    pub(crate) fn may_try(&mut self) -> bool {
        self.faults.may_try()
    }

    /// Why it does nothing at present, if it has failed.
    pub(crate) fn failed(&self) -> Option<String> {
        self.faults.reason()
    }

    /// Sums; a fault is kept for later sums.
    ///
    /// `results` has one number per target and component, and is complete after `Ok` alone.
    ///
    /// # Errors
    /// Always a [`Fault`]: input was checked before, so an error is the GPU's.
    pub(crate) fn run<T: Real>(
        &mut self,
        work: SumWork<'_, T>,
        results: &mut [T],
    ) -> Result<(), DeviceError> {
        let SumWork {
            settings,
            targets,
            sources,
        } = work;
        let (backend, scratch) = (&self.backend, &mut self.scratch);
        let done = match targets {
            Targets::Points(points) => {
                backend.sum_pairs(settings, points, sources, results, scratch)
            }
            Targets::Rows(grid, rows) => {
                backend.sum_pairs_on_grid(settings, grid, rows, sources, results, scratch)
            }
        };
        done.map_err(|error| {
            // After the fault of a kernel every call fails.
            let lost = self.backend.wait().is_err();
            tracing::warn!(%error, lost, "{GPU_FAILED}");
            self.faults.note(error.to_string(), lost);
            *self.scratch = AllPairsScratch::default();
            Fault::Failed(error.to_string()).into()
        })
    }
}
