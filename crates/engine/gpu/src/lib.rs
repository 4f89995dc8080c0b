//! The GPU backend: devices, programs compiled and loaded for them, and neighbour searches there.
//!
//! # From text to a kernel
//!
//! A [`Program`] is CUDA C++ text. [`Modules::load`] loads it into a context as a [`Module`], and
//! [`UserKernel::of`] looks up its kernels. Underneath, a [`CodeStore`] takes machine code from the
//! [`Cache`] on disk, or has a [`Compiler`] make it: NVRTC compiles, and programs whose kernels
//! launch kernels are linked with CUDA's device runtime, by nvJitLink or by the driver. No toolkit
//! is needed to build this crate, and none to run where the cache was filled elsewhere.
//!
//! # From points to lists
//!
//! The facade `nearfield` is what programs use. Below it, a search takes these steps:
//!
//! ```no_run
//! use nearfield_gpu::{DeviceLists, GpuBackend, PositionBounds, PairOfPoints, Strategy};
//! use nearfield_grid::{Domain, Lattice, Radius};
//! use nearfield_pairs::ListKind;
//!
//! type Failure = Box<dyn std::error::Error>;
//!
//! fn pairs_within(radius: f32, positions: &[[f32; 3]]) -> Result<u64, Failure> {
//!     let backend = GpuBackend::new(0)?;
//!     let mut points = backend.points();
//!     let PositionBounds::Bounds(bounds) = backend.upload(&mut points, positions)? else {
//!         return Err("a coordinate is not finite".into());
//!     };
//!     let lattice = Lattice::new(Radius::new(radius)?, Domain::OPEN, 1, &bounds)?;
//!     let lattice = backend.lattice(&lattice, 1)?;
//!     backend.sort(&mut points, &lattice, &bounds)?;
//!     let of = PairOfPoints {
//!         lattice: &lattice,
//!         targets: &points,
//!         sources: &points,
//!         same_set: true,
//!         share: None,
//!         filter: Default::default(),
//!     };
//!     let mut lists = DeviceLists::default();
//!     backend.search(of, ListKind::Full, Strategy::Flat, &mut lists)?;
//!     Ok(lists.pairs())
//! }
//! ```
//!
//! # Rooms
//!
//! From the lowest to the highest; each stands on those before it:
//!
//! | room | holds |
//! | --- | --- |
//! | `constants`, `version`, `error` | numbers of kernels and of CUDA, causes of failure |
//! | `handles` | streams, events, arrays and kernels, as programs hold them |
//! | `driver` | calls of the driver that find devices and load code |
//! | `toolkit` | compiler, linker and device runtime on this machine |
//! | `program` | from CUDA text to loaded kernels, with a cache on disk |
//! | `memory` | arrays of the device, page-locked memory, the stream that orders copies |
//! | `launch` | one typed function per kernel |
//! | `traversal` | which program does a job, by which strategy |
//! | `backend` | points, lattices, shares, and the jobs over them |
//!
//! # What others rely on
//!
//! Everything here can be called on a machine without a driver: an [`Error`] says what is missing
//! and how to get it. cudarc, which panics there, is called only after the library was seen
//! to load. Contexts come from [`open`]. No type of cudarc stands in a public signature, so a new
//! version of it changes this crate alone.
//!
//! The libraries are looked for on Linux. Elsewhere, where only the driver is found, caches that
//! were filled on Linux serve.

#![deny(clippy::undocumented_unsafe_blocks)]

mod backend;
pub mod constants;
mod driver;
mod error;
mod handles;
mod launch;
mod memory;
mod program;
mod toolkit;
mod traversal;
mod version;

pub use backend::{
    AllPairsScratch, CheckedField, Deliver, Delivered, DeviceCandidates, DeviceColumns,
    DeviceCutoffs, DeviceField, DeviceFields, DeviceFilter, DeviceLattice, DeviceLists,
    DeviceNearest, DevicePairs, DeviceParts, DevicePointData, DevicePoints, DeviceResults,
    DeviceShare, DeviceSystems, DoublePairViews, FollowedPoints, GeometryQuantities, GpuBackend,
    HaloField, HaloResults, HaloScratch, HostExclusions, HostPairs, HostPointData, HostRows,
    HostSystems, Judgement, KeptPairs, LastPairs, ListPart, ListedPairs, MAX_PARTS,
    MAX_WIDE_POINTS, Moved, MovedPoints, NamedPoints, PairArray, PairCall, PairFields,
    PairOfPoints, PairQuantities, PairScratch, PairViews, PartViews, PartialLists, PointNumber,
    PointsPerThread, PositionBounds, RADIUS_CLASSES, RadiusCounts, RefusedPointData, RefusedValues,
    SideOfFields, Since, Skin, SlotsOfLists, SortOutcome, StagedField, StagedFields, StagedSides,
    Stamped, SystemsOutcome, programs,
};
pub use driver::{DeviceInfo, find_driver, open, visible};
pub use error::{Error, ErrorKind, UnsafeFolder};
pub use handles::{
    Context, CurrentContext, DeviceArray, DeviceArrayMut, DeviceBuffer, DeviceValue, DeviceView,
    DeviceViewMut, DriverError, Event, InUse, KernelArgument, KernelArguments, MemoryKind,
    PositionNumber, Stream, memory_at,
};
pub use launch::{KernelLattice, LaunchShape, UserKernel, sources};
#[doc(hidden)]
pub use memory::poison_new_memory;
pub use memory::{Arrivals, Arriving, Destination, HostBuffer, HostCopy, Moment, Queue, Transfers};
pub use nearfield_grid::HostLists;
pub use program::{
    Cache, Code, CodeStore, Compiler, Entry, GpuInfo, Key, Linker, Missing, Module, Modules, Note,
    Origin, Program, Tool, USER_HEADER,
};
pub use toolkit::{Libraries, LibraryFile, Search};
pub use traversal::{PairProgram, Strategy};
pub use version::{Arch, NotAnArch, Version};
