//! The manifest of every kernel of the workspace.
//!
//! The CUDA C++ sources are texts in the folder `cuda`. The crate that launches a kernel embeds its
//! text and states its name: the engine (`nearfield-gpu`), the fluid solver (`nearfield-sph`),
//! molecular dynamics (`nearfield-md`), ranks (`nearfield-ranks`); pair kernels bring the texts of
//! `nearfield-pairs`. This package stands on these, so a change of a text rebuilds only the crate
//! that embeds it and what stands on that.
//!
//! The manifest is complete: a test compares it with the `__global__` functions of every `.cu` and
//! `.cuh` file of the workspace, and compile tests find every kernel in machine code for old and
//! new GPUs; `nearfield kernels check` compiles for all.

use nearfield_gpu::{Program, sources};
use nearfield_shared::Source;

/// The sources of the applications.
pub const APPLICATIONS: [&Source; 3] = [
    &nearfield_sph::FLUID,
    &nearfield_md::DYNAMICS,
    &nearfield_ranks::device::PLACES,
];

/// Every source: the manifest of all kernels.
pub fn manifest() -> impl Iterator<Item = &'static Source> {
    sources::manifest().chain(APPLICATIONS)
}

/// Every program of the engine and of the applications, for checks and for caches that are filled
/// in advance. Programs of kernels that a user writes are compiled when they first run.
///
/// # Errors
/// Those of the potentials of atoms; none of the ones here is refused.
pub fn programs() -> Result<Vec<Program>, nearfield_md::Error> {
    let mut programs = nearfield_gpu::programs();
    programs.extend(nearfield_sph::programs());
    programs.extend(nearfield_ranks::device::programs());
    programs.extend(nearfield_md::programs()?);
    Ok(programs)
}
