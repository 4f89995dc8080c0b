//! The GPUs that a process may use, before an engine is asked for one of them.

use super::gpu;
use crate::{Device, Error, ErrorKind};

impl Device {
    /// Where on the PCI bus the GPUs are that this process may use, as `0000:1b:00.0`, by the
    /// number of [`Gpu`](Self::Gpu): those of the machine, less those that `CUDA_VISIBLE_DEVICES`
    /// hides. Empty if there is a driver and no GPU. The first call of a process starts the driver,
    /// which takes long.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] without a driver or without the cargo feature `gpu`.
    pub fn visible_gpus() -> Result<Vec<String>, Error> {
        let device = Self::Gpu(0);
        gpu::visible().map_err(|missing| ErrorKind::DeviceUnavailable { device, missing }.into())
    }
}
