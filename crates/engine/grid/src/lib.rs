//! Cells, stable parallel sort and cell tables of the Nearfield neighbour engine.
//!
//! A [`Grid`] holds one point set sorted by (cell, index) together with a table that finds the
//! points of any run of cells along x. Everything a backend needs to know about geometry is here;
//! nothing here knows about lists, kernels or devices.
//!
//! How it goes together:
//!
//! 1. [`Positions`] views the caller's coordinates, [`Bounds::of`] checks them and measures them.
//! 2. [`Lattice`] turns a radius and a [`Domain`] into cells such that **no pair within the radius
//!    lies farther apart than the lattice's stencil reaches**, whatever floating point does.
//! 3. [`Grid::build`] sorts the points stably by cell (dense or hashed table, by memory).
//! 4. [`Grid::sweep`] visits the candidates of cell after cell: one contiguous range of sorted
//!    points per neighbour row (and periodic image).
//!
//! The order of the sorted points depends on the input alone, never on the number of threads.

mod bounds;
mod csr;
mod domain;
mod error;
mod grid;
mod hashed;
mod kept;
mod keys;
mod lattice;
pub mod memory;
mod occupancy;
pub mod parallel;
mod parts;
mod permutation;
mod positions;
mod process;
mod radius;
mod shared;
mod sort;
mod sweep;
mod table;
mod tilt;
mod value;
mod widest;

pub use bounds::Bounds;
pub use csr::Csr;
pub use domain::Domain;
pub use error::Error;
pub use grid::{Cells, DoublePoints, Grid, Run, SortedPoints};
pub use lattice::{AxisScale, Cell, Lattice, Row};
pub use parts::BrickParts;
pub use permutation::Permutation;
pub use positions::Positions;
pub use process::{OfProcess, PerProcess};
pub use radius::{Precision, Radius};
pub use shared::{SharedMut, prefetch_for_writing};
pub use sweep::{MAX_POINTS, MAX_RUNS, Sweep, Walked};
pub use table::TableKind;
pub use value::Value;

/// Backends of padding behind every sorted array, so that a vector load that starts at the last
/// point stays inside the allocation.
pub const PADDING: usize = 16;
