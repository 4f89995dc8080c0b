//! Every launch of a kernel: one typed function each, and the structs that kernels take.

mod all_pairs;
mod grid;
mod kernel;
mod layout;
mod share;
mod traversal;

pub(crate) use all_pairs::{AllPairsKernels, Summing};
pub(crate) use grid::{GridKernels, Sorting};
pub(crate) use kernel::{SCAN_TILE, scan_tiles};
pub(crate) use layout::{
    Lattice, Launches, MAX_UNIFORMS, Outlet, Parts, Points, Row, Status, Walk,
};
pub(crate) use share::{ShareKernels, Sharing};
pub(crate) use traversal::{ChildArguments, Children, Flat, Halves, Tasks, TraversalKernels};
