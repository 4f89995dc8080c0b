//! The GPU backend: points sorted on the device, and traversals over them.
//!
//! A [`GpuBackend`] owns one stream of one GPU; everything it starts runs in the order it was asked
//! for, so buffers need no further synchronisation. Only copies of lists (`delivery`) and of fields
//! (`fields`) run on streams beside it, which they are joined with. [`DevicePoints`] is one point
//! set, [`DeviceLattice`] the cells that all sets of an engine share.
//!
//! Raw pointers and launches live in the room `launch`; this room is safe code, and keeps the
//! promise that `launch` relies on: buffers are as long as the counts handed over with them.

mod all_pairs;
mod catalogue;
mod counts;
mod delivery;
mod fields;
mod gpu;
mod halo;
mod lattice;
mod lists;
#[cfg(test)]
mod on_host;
mod order;
mod pairs;
mod points;
mod share;
mod sort;
mod walk;

pub use all_pairs::{AllPairsScratch, PointsPerThread};
pub use catalogue::programs;
pub use delivery::Delivered;
pub use fields::{StagedField, StagedFields, StagedSides};
pub use gpu::GpuBackend;
pub use halo::HaloScratch;
pub use lattice::DeviceLattice;
pub use lists::DeviceLists;
pub use pairs::{Deliver, DeviceField, DeviceFields, PairFields, PairScratch};
pub use points::DevicePoints;
pub use share::{DeviceParts, DeviceShare, MAX_PARTS};
pub use sort::{Measured, Settled};
pub use walk::PairOfPoints;
