//! Every launch of a kernel: one typed function each, and the structs that kernels take.
//!
//! This room and `memory` hold the unsafe code of the backend. Rooms above it are safe code: they
//! hand over addresses of live buffers with the counts that belong to them.

mod all_pairs;
mod grid;
mod kernel;
mod layout;
mod share;
mod traversal;

pub(crate) use all_pairs::{AllPairsKernels, RowsOfGrid, Summing};
pub(crate) use grid::{GridKernels, Sorting};
pub(crate) use kernel::{SCAN_TILE, scan_tiles};
pub(crate) use layout::{
    Geometry, Lattice, Launches, MAX_UNIFORMS, Outlet, Parts, Points, Row, Status, Table, Walk,
};
pub(crate) use share::{HaloGather, HaloScatter, ShareKernels, Sharing};
pub(crate) use traversal::{ChildArguments, Children, Flat, Halves, Tasks, TraversalKernels};
