//! Every launch of a kernel: one typed function each, and the structs that kernels take.
//!
//! This room and `memory` hold the unsafe code of the backend. The rooms above are safe code: they
//! hand over addresses of live buffers with the counts that belong to them. The module `kernel`
//! states what a launch relies on, and the others have one file per CUDA source:
//!
//! | module | CUDA source | work |
//! | --- | --- | --- |
//! | `grid` | grid.cu | sorting into cells, prefix sums, passes between orders |
//! | `traversal` | flat.cu, children.cu | visiting pairs, by strategy |
//! | `share` | share.cu | targets of one backend, halos between two |
//! | `all_pairs` | all_pairs.cu | sums without a radius |
//! | `systems` | systems.cu | pairs of many small systems |
//! | `ascend` | ascend.cu | lists into ascending order, or nearest first |
//! | `skin_pairs` | skin_pairs.cu | pairs of systems among earlier candidates |
//! | `columns` | columns.cu, column_pairs.cu | lists as arrays of pairs |
//! | `stored` | stored.cu, slots.cu | pair kernels over stored lists |
//! | `point_data` | point_data.cu | data of points that filters read, from the device |
//! | `user_kernel` | programs of callers | theirs |
//! | `images` | pair_seen.cuh, imaged.cuh | vectors of images that are looked up |
//! | `layout` | contract.cuh, walk.cuh, work.cuh and others | structs passed by value or in device memory |
//!
//! The CUDA sources state what each kernel computes and why it is exact. Sizes of blocks and
//! lengths of tables come from `crate::constants`, which also makes the header that the sources
//! include, so both sides have the same numbers. The structs carry their layouts, which every
//! program compares with its own declarations when it is compiled.

mod all_pairs;
mod ascend;
mod columns;
mod grid;
mod images;
mod kernel;
mod kernel_lattice;
mod layout;
mod point_data;
mod share;
mod skin_pairs;
pub mod sources;
mod status;
mod stored;
mod systems;
mod traversal;
mod user_kernel;

pub(crate) use all_pairs::{AllPairsKernels, RowsOfGrid, Summing};
pub(crate) use ascend::{AscendKernels, ByDistance, ListsToSort};
pub(crate) use columns::{ColumnPairsKernel, ColumnsKernel};
pub(crate) use grid::{GridKernels, ListArrays, Scan, Sorting};
pub(crate) use images::image_steps;
pub use kernel::LaunchShape;
pub(crate) use kernel::{SCAN_TILE, scan_tiles};
pub use kernel_lattice::KernelLattice;
pub(crate) use layout::{
    Arguments as ChildArguments, FilteredWalk, Filters, Following, Geometry, Judged, Lattice,
    Launches, ListedPoints, MAX_UNIFORMS, Nearest, Outlet, PairArrays, PairOutput, Parts, Points,
    Row, Status, Stored, StoredLists, StridedChannels, SystemArrays, SystemsStatus, Table, Walk,
};
pub(crate) use point_data::{PointDataKernels, TakenValues, WIDE_WORDS};
pub(crate) use share::{HaloGather, HaloScatter, ShareKernels, Sharing};
pub(crate) use skin_pairs::{SkinCandidates, SkinKernels, SkinStatus};
pub(crate) use stored::{Entries, GatheredPoints, OverLists, PartOfLists, SlotKernels};
pub(crate) use systems::{SystemsKernels, units};
pub(crate) use traversal::{Children, Flat, FlatKernels, TraversalKernels, Traverse};
pub use user_kernel::UserKernel;
