//! The GPU backend's foundation: what devices there are, and programs compiled and loaded for them.
//!
//! # From text to a kernel
//!
//! A [`Program`] is CUDA C++ text. [`Modules::load`] gives it as a [`Module`] of one context, whose
//! kernels [`Module::function`] hands out. Underneath, a [`CodeStore`] takes machine code from the
//! [`Cache`] on disk, or has a [`Compiler`] make it: NVRTC compiles, and programs whose kernels
//! launch kernels are linked with CUDA's device runtime, by nvJitLink or by the driver. No toolkit
//! is needed to build this crate, and none to run where the cache was filled elsewhere.
//!
//! # What others rely on
//!
//! Everything here can be called on a machine without a driver: an [`Error`] says what is missing
//! and how to get it. cudarc, which panics there, is reached only through the driver module, after
//! the library was seen to load. Contexts come from [`open`].
//!
//! The libraries are looked for on Linux. Elsewhere, where only the driver is found, caches that
//! were filled on Linux serve.

#![deny(clippy::undocumented_unsafe_blocks)]

mod backend;
mod driver;
mod error;
mod launch;
mod memory;
mod program;
mod toolkit;
mod traversal;
mod version;

pub use backend::{
    AllPairsScratch, Deliver, Delivered, DeviceField, DeviceFields, DeviceLattice, DeviceLists,
    DeviceParts, DevicePoints, DeviceResults, DeviceShare, GpuBackend, HaloField, HaloResults,
    HaloScratch, MAX_PARTS, Measured, PairCall, PairFields, PairOfPoints, PairScratch,
    PointsPerThread, Settled, StagedField, StagedFields, StagedSides, programs,
};
pub use cudarc;
pub use driver::{DeviceInfo, find_driver, open};
pub use error::{Error, ErrorKind};
#[doc(hidden)]
pub use memory::poison_new_memory;
pub use memory::{Arrivals, Arriving, Destination, HostBuffer, HostCopy, Queue, Transfers};
pub use nearfield_grid::HostLists;
pub use program::{
    Cache, Code, CodeStore, Compiler, Entry, GpuInfo, Key, Linker, Missing, Module, Modules,
    Origin, Program, Tool, USER_HEADER, UnsafeFolder,
};
pub use toolkit::{Found, Libraries, Search};
pub use traversal::{PairProgram, Strategy};
pub use version::{Arch, NotAnArch, Version};
