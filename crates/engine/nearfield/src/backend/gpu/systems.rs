//! A GPU that searches many systems whose arrays are on the host.
//!
//! It holds nothing between searches but memory, so a search that fails is done by the CPU backend
//! as a whole. Only the device looks at what the systems hold. It names the first one that it
//! cannot search; the host's checks then say why.

use super::faults::{FaultRecord, GPU_FAILED};
use crate::{
    Error, ErrorKind, ListKind,
    backend::{DeviceError, Fault},
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, Systems},
};
use nearfield_gpu::{
    self as gpu, DevicePairs, GpuBackend, HostSystems, PairArray, PairQuantities, SystemsOutcome,
};
use nearfield_grid::OfProcess;

/// The GPU of a [`SystemSearch`](crate::systems::SystemSearch).
#[derive(Debug)]
pub(crate) struct GpuSystems {
    /// Neither used nor dropped in a forked child.
    pairs: OfProcess<DevicePairs>,
    backend: OfProcess<GpuBackend>,
    faults: FaultRecord,
}

/// Why results were not read.
enum Unread {
    /// A fault of the device.
    Device(gpu::Error),
    /// Memory of the host was short.
    Host(Error),
}

impl From<gpu::Error> for Unread {
    fn from(error: gpu::Error) -> Self {
        Self::Device(error)
    }
}

impl From<nearfield_cpu::Error> for Unread {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Host(error.into())
    }
}

/// Quantities as the GPU backend takes them; indices of `index_bytes` bytes.
pub(crate) fn of_quantities(
    kind: ListKind,
    wanted: Quantities,
    index_bytes: usize,
) -> PairQuantities {
    let Quantities {
        targets,
        sources,
        images,
        displacements,
        distances,
    } = wanted;
    PairQuantities {
        kind,
        targets,
        sources,
        images,
        displacements,
        distances,
        wide: index_bytes == size_of::<i64>(),
    }
}

impl GpuSystems {
    /// Starts the GPU with this number.
    ///
    /// # Errors
    /// The missing part, and how to get it.
    pub(crate) fn start(number: u32) -> Result<Self, String> {
        let backend = GpuBackend::new(number).map_err(|error| error.to_string())?;
        Ok(Self {
            pairs: OfProcess::new(DevicePairs::default()),
            backend: OfProcess::new(backend),
            faults: FaultRecord::default(),
        })
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

    /// Whether the next search may use it; asked once per search, it counts those that may not.
    pub(crate) fn may_try(&mut self) -> bool {
        self.faults.may_try()
    }

    /// Why it does nothing at present, if it has failed.
    pub(crate) fn failed(&self) -> Option<String> {
        self.faults.reason()
    }

    /// Finds the pairs of systems whose shapes were checked; a fault is kept for later searches.
    ///
    /// # Errors
    /// [`DeviceError::Host`] for systems that cannot be searched, and a [`Fault`] of the GPU.
    pub(crate) fn run<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        kind: ListKind,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), DeviceError> {
        let found = self.find::<T>(systems, of_quantities(kind, quantities, size_of::<I>()));
        let outcome = found.map_err(|error| self.fault(error))?;
        let count = match outcome {
            SystemsOutcome::Valid(count) => count,
            SystemsOutcome::Fault(system) => {
                return Err(DeviceError::Host(refusal(systems, system)));
            }
            SystemsOutcome::Repeat => {
                let changed = "the pairs did not fit where they had room".to_owned();
                self.faults.note(changed.clone(), false);
                return Err(Fault::Failed(changed).into());
            }
        };
        let (backend, on_device) = (&self.backend, &self.pairs);
        let received = pairs.receive(systems.positions.len(), count, quantities, |to| {
            backend.read_pairs(on_device, PairArray::Offsets, to.offsets)?;
            backend.read_pairs(on_device, PairArray::Targets, to.targets)?;
            backend.read_pairs(on_device, PairArray::Sources, to.sources)?;
            backend.read_pairs(on_device, PairArray::Images, to.images)?;
            backend.read_pairs(on_device, PairArray::Displacements, to.displacements)?;
            backend.read_pairs(on_device, PairArray::Distances, to.distances)?;
            Ok(())
        });
        received.map_err(|error| match error {
            Unread::Device(error) => self.fault(error),
            Unread::Host(error) => DeviceError::Host(error),
        })
    }

    fn find<T: SystemReal>(
        &mut self,
        systems: &Systems<'_, T>,
        wanted: PairQuantities,
    ) -> Result<SystemsOutcome, gpu::Error> {
        let on_host = HostSystems {
            positions: systems.positions,
            offsets: systems.offsets,
            radii: systems.radii,
            cells: systems.cells,
            periodic: systems.periodic,
            strict: systems.strict,
        };
        (self.backend).search_host_systems(&on_host, wanted, &mut self.pairs)
    }

    /// Notes a fault.
    fn fault(&mut self, error: gpu::Error) -> DeviceError {
        // After the fault of a kernel every call fails.
        let lost = self.backend.wait().is_err();
        tracing::warn!(%error, lost, "{GPU_FAILED}");
        self.faults.note(error.to_string(), lost);
        *self.pairs = DevicePairs::default();
        Fault::Failed(error.to_string()).into()
    }
}

/// Why a system cannot be searched: what the host finds wrong with it, or that it is too large.
pub(crate) fn refusal<T: SystemReal>(systems: &Systems<'_, T>, system: usize) -> Error {
    match systems.check_system(system) {
        Err(error) => ErrorKind::Cpu(error).into(),
        Ok(()) => ErrorKind::Gpu(gpu::ErrorKind::LargeSystem { system }.into()).into(),
    }
}
