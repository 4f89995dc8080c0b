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

mod auto;
mod backend;
mod cache;
mod compile;
mod driver;
mod error;
mod library;
mod modules;
mod nvjitlink;
mod nvrtc;
mod probe;
mod program;
mod search;
mod store;
mod toolkit;
mod trust;
mod version;

pub use auto::{Chooser, Class, Trial, Way};
#[doc(hidden)]
pub use backend::poison_new_memory;
pub use backend::{
    AllPairsScratch, Arrivals, Arriving, Deliver, Delivered, Destination, DeviceField,
    DeviceFields, DeviceLattice, DeviceLists, DeviceParts, DevicePoints, DeviceShare, GpuBackend,
    HaloScratch, HostBuffer, HostCopy, HostLists, ListKind, MAX_PARTS, Measured, PairFields,
    PairOfPoints, PairProgram, PairScratch, ParseStrategyError, Queue, RowWay, Settled,
    StagedField, StagedFields, StagedSides, Strategy, Transfers, copy_for_gpu,
};
pub use cache::{Cache, Entry};
pub use compile::{Compiler, Linker};
pub use cudarc;
pub use driver::DeviceInfo;
pub use error::Error;
pub use modules::{Module, Modules};
pub use probe::{GpuInfo, Missing, Tool, find_driver, open};
pub use program::{Key, Program, USER_HEADER, programs};
pub use search::{Found, Libraries, Search};
pub use store::{Code, CodeStore, Origin};
pub use trust::UnsafeFolder;
pub use version::{Arch, NotAnArch, Version};
