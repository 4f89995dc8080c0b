//! Starting an engine on a GPU.
//!
//! An engine does all its work on one stream. If that is the caller's, the engine's work is ordered
//! with the caller's without any synchronisation; otherwise the engine has a stream of its own.
//! Settings are checked before the GPU is touched.

use super::{builder::DeviceEngineBuilder, engine::DeviceEngine, lists::NamedLists};
use crate::{Device, Error, ErrorKind, slots::Slots};
use nearfield_gpu::{GpuBackend, Stream};
use nearfield_grid::OfProcess;
use std::{collections::BTreeMap, ffi::c_void, sync::Mutex};

impl DeviceEngineBuilder {
    /// Starts an engine that does everything on `stream`.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] for a radius or box that cannot be used, and [`ErrorKind::Gpu`] when
    /// programs cannot be compiled or loaded.
    pub fn on(self, stream: &Stream) -> Result<DeviceEngine, Error> {
        self.start(|| GpuBackend::on(stream).map_err(Error::from))
    }

    /// Starts an engine on a stream of its own of this GPU, counted from 0; see
    /// [`DeviceEngine::stream`].
    ///
    /// # Errors
    /// As [`on`](Self::on), and [`ErrorKind::DeviceUnavailable`].
    pub fn on_gpu(self, number: u32) -> Result<DeviceEngine, Error> {
        self.start(|| {
            GpuBackend::new(number).map_err(|error| {
                Error::from(ErrorKind::DeviceUnavailable {
                    device: Device::Gpu(number),
                    missing: error.to_string(),
                })
            })
        })
    }

    /// Starts an engine on a stream that another library owns, such as one made by the CUDA
    /// runtime; null is the default stream.
    ///
    /// # Errors
    /// As [`on_gpu`](Self::on_gpu).
    ///
    /// # Safety
    /// `stream` is null or a stream of that GPU's primary context, and stays there for as long as
    /// the engine.
    pub unsafe fn on_borrowed(
        self,
        number: u32,
        stream: *mut c_void,
    ) -> Result<DeviceEngine, Error> {
        self.start(|| {
            // SAFETY: as the caller promises.
            let backend = unsafe { GpuBackend::on_borrowed(number, stream) };
            backend.map_err(|error| {
                Error::from(ErrorKind::DeviceUnavailable {
                    device: Device::Gpu(number),
                    missing: error.to_string(),
                })
            })
        })
    }

    /// Checks the settings, and then asks for the backend.
    fn start(
        self,
        backend: impl FnOnce() -> Result<GpuBackend, Error>,
    ) -> Result<DeviceEngine, Error> {
        let radius = self.checked_radius().map_err(ErrorKind::Setup)?;
        self.domain.clone().map_err(ErrorKind::Setup)?;
        let backend = backend()?;
        let filters =
            self.filters
                .start(&backend, (radius, self.strict), self.lists, self.order)?;
        Ok(DeviceEngine {
            settings: self,
            filters: OfProcess::new(filters),
            backend: OfProcess::new(backend),
            lattice: OfProcess::new(None),
            slots: Slots::new(),
            sets: OfProcess::new(Vec::new()),
            lists: OfProcess::new(BTreeMap::new()),
            named: OfProcess::new(NamedLists::default()),
            scratch: OfProcess::new(Mutex::default()),
            sorted_anew: false,
            queries: None,
            refused: None,
        })
    }
}
