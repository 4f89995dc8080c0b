//! Cells, stable parallel sort and cell tables of the Nearfield neighbour engine.
//!
//! A [`Grid`] holds one point set sorted by (cell, index) together with a table that finds the
//! points of any run of cells along x. All geometry that a backend needs is here; nothing here
//! knows about lists, kernels or devices.
//!
//! # How it goes together
//!
//! 1. [`Positions`] views the caller's coordinates, [`Bounds::of`] checks and measures them.
//! 2. [`Lattice`] turns a radius and a [`Domain`] into cells such that **no pair within the radius
//!    lies farther apart than the lattice's stencil reaches**, whatever floating point does.
//! 3. [`Grid::build`] sorts the points stably by cell (dense or hashed table, by memory).
//! 4. [`Grid::sweep`] visits the candidates of cell after cell: one contiguous range of sorted
//!    points per neighbour row (and periodic image).
//!
//! # The cell walk
//!
//! Cells have edge r/K, and x runs fastest in the order of the sorted points. The cells from x−K to
//! x+K of a row are therefore one contiguous run of sorted points: nine runs per cell for K = 1 in
//! place of 27 cells. A run is found by two look-ups of starts, and reading it streams through
//! memory. Rows out of reach are left out, and the others are cut to the chord that the sphere
//! leaves along x.
//!
//! # Where to look
//!
//! | module | contents |
//! | --- | --- |
//! | `input` | positions in any layout, their bounds, the radius |
//! | `domain` | open, periodic and tilted boxes, image vectors |
//! | `lattice` | from coordinates to cells, and the rows that a search visits |
//! | `table` | from a row of cells to a range of sorted points |
//! | `sort` | the parallel stable sort, and permutations of the caller's arrays |
//! | `grid` | the sorted set, its cells and candidates, parts of it by brick |
//! | `memory` | allocations that can fail without ending the process |
//! | `parallel`, `process`, `shared` | loops on a pool, values per process, disjoint writes |
//! | `interrupt` | calls that end early when their caller asks |
//!
//! # Invariants
//!
//! The order of the sorted points depends on the input alone, never on the number of threads.
//! Every allocation whose size follows from input can be refused, and the error names the bytes.

#[doc(hidden)]
pub mod constants;
mod csr;
mod domain;
mod error;
mod grid;
mod input;
mod interrupt;
mod lattice;
pub mod memory;
pub mod parallel;
mod process;
mod shared;
mod sort;
mod table;

pub use csr::{Csr, HostLists};
pub use domain::{Domain, images::ImagesInReach};
pub use error::{Error, ErrorKind};
pub use grid::{
    Cells, Grid,
    levels::{LevelSpec, MAX_LEVELS},
    parts::BrickParts,
    points::{DoublePoints, SortedPoints},
    sweep::{MAX_POINTS, MAX_RUNS, Run, Walked},
    sweep_levels::Sweep,
    wraps::Wraps,
};
pub use input::{
    bounds::Bounds,
    positions::{IntoPositions, Positions},
    radii::Radii,
    radius::{Precision, Radius},
    value::Value,
};
pub use interrupt::{Stop, interruptible};
pub use lattice::{
    CellsWithin, Lattice, WrappedProxies,
    axis::{AxisScale, Cell},
    rows::Row,
};
pub use process::{OfProcess, PerProcess};
pub use shared::{SharedMut, copy_past_caches, prefetch, prefetch_for_writing};
pub use sort::permutation::Permutation;
pub use table::TableKind;

/// Elements of padding behind every sorted array, so that a vector load that starts at the last
/// point stays inside the allocation.
pub const PADDING: usize = 16;
