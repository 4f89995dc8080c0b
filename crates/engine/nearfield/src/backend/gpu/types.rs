//! The names by which the rest of the crate knows the GPU backend.
//!
//! `backend/no_gpu.rs` has the same ones for a build without it.

use crate::PairKernel;
use nearfield_gpu::{HostBuffer, PairProgram};

pub(crate) use nearfield_gpu::Note;

/// Whether the crate was built with the GPU backend.
pub(crate) const BUILT: bool = true;

/// A pair kernel for the GPU: its CUDA text, and the values of its uniforms.
pub(crate) type Program = (PairProgram, Vec<f32>);

/// Numbers in memory of the host that the GPU reads and writes directly.
pub(crate) type PageLocked = HostBuffer<f32>;

/// The CUDA text of a kernel, which is not compiled yet.
///
/// # Errors
/// The reason why it has none.
pub(crate) fn program_of<K: PairKernel>(kernel: &K) -> Result<Program, String> {
    PairProgram::of(kernel).map_err(|error| error.to_string())
}

/// Looks for the driver, without starting anything.
///
/// # Errors
/// The reason why there is none, and how to get one.
pub(crate) fn find_driver() -> Result<(), String> {
    nearfield_gpu::find_driver().map_err(|error| error.to_string())
}

/// The places on the PCI bus of the GPUs that the driver shows, by number.
///
/// # Errors
/// The reason why the driver cannot be asked.
pub(crate) fn visible() -> Result<Vec<String>, String> {
    let found = nearfield_gpu::visible().map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|device| device.pci).collect())
}
