//! The GPU backend: points sorted on the device, and traversals over them.
//!
//! A [`GpuBackend`] owns one stream of one GPU; everything it starts runs in the order it was asked
//! for, so buffers need no further synchronisation. Only copies of lists (`delivery`) and of fields
//! (`fields`) run on streams beside it, which they are joined with. [`DevicePoints`] is one point
//! set, [`DeviceLattice`] the cells that all sets of an engine share.
//!
//! # The course of a step
//!
//! 1. Positions arrive: [`upload`](GpuBackend::upload) from the host, or
//!    [`place`](GpuBackend::place) from an array of the device.
//! 2. They are sorted into cells: [`sort`](GpuBackend::sort) into a table made for their bounds, or
//!    [`sort_again`](GpuBackend::sort_again) into the table that is there.
//! 3. A [`PairOfPoints`] names targets, sources, lattice and maybe a [`DeviceShare`] of the
//!    targets.
//! 4. A job runs over it: [`count`](GpuBackend::count), [`search`](GpuBackend::search),
//!    [`deliver_lists`](GpuBackend::deliver_lists), [`deliver_rows`](GpuBackend::deliver_rows),
//!    [`evaluate`](GpuBackend::evaluate), and their variants for arrays of the device.
//! 5. [`finish`](GpuBackend::finish) learns whether the sort was good, unless `sort` did.
//!
//! With data on the device only step 5 waits, and one wait can serve all sets of an engine.
//!
//! # Memory
//!
//! Every job takes a scratch of the caller's, whose buffers are kept between steps. A job reserves
//! what it needs by the counts of its sets, so a step of the same size allocates nothing.
//!
//! # Invariant
//!
//! Raw pointers and launches live in the room `launch`; this room is safe code, and keeps the
//! promise that `launch` relies on: buffers are as long as the counts handed over with them.

mod all_pairs;
mod asked;
mod catalogue;
mod chunks;
#[cfg(test)]
mod column_pairs_on_host;
mod columns;
mod counts;
mod delivery;
mod device_fields;
mod fields;
mod filter;
#[cfg(test)]
mod filters_on_host;
mod followed;
mod given_data;
mod given_systems;
mod gpu;
mod halo;
mod lattice;
mod list_order;
mod lists;
mod moved;
#[cfg(test)]
mod named_on_host;
mod nearest;
mod nearest_image;
#[cfg(test)]
mod on_host;
mod order;
mod pair_arrays;
mod pairs;
mod per_point;
mod points;
mod refused;
mod rows;
mod share;
#[cfg(test)]
mod skin_on_host;
mod skin_pairs;
#[cfg(test)]
mod skin_pairs_on_host;
mod sort;
#[cfg(test)]
mod sorted_on_host;
mod stored;
#[cfg(test)]
mod stored_on_host;
mod systems;
#[cfg(test)]
mod systems_on_host;
mod walk;
mod wide;
mod wide_data;
#[cfg(test)]
mod wide_on_host;

pub use all_pairs::{AllPairsScratch, PointsPerThread};
pub use asked::NamedPoints;
pub use catalogue::programs;
pub use chunks::{PartViews, PartialLists};
pub use columns::{DeviceColumns, PairQuantities};
pub use delivery::{Delivered, ListPart};
pub use device_fields::{CheckedField, DeviceField, DeviceFields, SideOfFields};
pub use fields::{StagedField, StagedFields, StagedSides};
pub use filter::{
    DeviceCutoffs, DeviceFilter, DevicePointData, HostExclusions, HostPointData, LastPairs,
};
pub use followed::{FollowedPoints, Judgement};
pub use given_data::PointNumber;
pub use given_systems::{DeviceSystems, HostSystems};
pub use gpu::GpuBackend;
pub use halo::{HaloField, HaloResults, HaloScratch};
pub use lattice::DeviceLattice;
pub use lists::DeviceLists;
pub use moved::{Moved, MovedPoints};
pub use nearest::DeviceNearest;
pub use pair_arrays::{DoublePairViews, GeometryQuantities, HostPairs, PairViews};
pub use pairs::{Deliver, DeviceResults, PairCall, PairFields, PairScratch};
pub use per_point::Stamped;
pub use points::DevicePoints;
pub use refused::{CLASSES as RADIUS_CLASSES, RadiusCounts, RefusedPointData, RefusedValues};
pub use rows::HostRows;
pub use share::{DeviceParts, DeviceShare, MAX_PARTS};
pub use skin_pairs::{DeviceCandidates, KeptPairs};
pub use sort::{PositionBounds, SortOutcome};
pub use stored::{ListedPairs, Since, Skin, SlotsOfLists};
pub use systems::{DevicePairs, PairArray, SystemsOutcome};
pub use walk::PairOfPoints;
pub use wide::MAX_WIDE_POINTS;
