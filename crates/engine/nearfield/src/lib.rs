//! Nearfield finds, for every point, all points within a radius, and computes pair interactions
//! over them.
//!
//! ```
//! use nearfield::prelude::*;
//!
//! let positions = vec![[0.0f32, 0.0, 0.0], [0.4, 0.0, 0.0], [0.0, 0.9, 0.0]];
//! let mut engine = Engine::builder(0.5).build()?;
//! let points = engine.add_point_set(&positions)?;
//! engine.find_neighbors()?;
//! let lists = engine.neighbors(points, points)?;
//! assert_eq!(lists.of(0), &[1]);
//! assert_eq!(lists.of(2), &[] as &[u32]);
//! # Ok::<(), nearfield::Error>(())
//! ```
//!
//! # Concepts
//!
//! * An [`Engine`] holds one search radius, one domain (open or periodic per axis, the box
//!   straight or tilted) and any number of **point sets**. Coordinates go in as `&[[f32; 3]]`, `&[glam::Vec3]`, 2D arrays or strided
//!   inside your own structs ([`Positions`]); they are copied once, sorted by cell.
//! * [`Engine::find_neighbors`] writes **neighbour lists** of every active pair of sets;
//!   [`Engine::traverse`] evaluates a [`PairKernel`] over all pairs **without storing lists**, which
//!   is faster when neighbours are needed once.
//! * [`Engine::pair_geometry`] adds displacement, distance and image to lists,
//!   [`Engine::list_chunks`] hands lists out in chunks that fit a memory limit, and [`VerletLists`]
//!   keep lists over many steps of slowly moving points.
//! * Points may have search radii of their own ([`Builder::radii`], [`Engine::set_radii`]), as SPH
//!   with adaptive resolution needs them: the target's, the source's or the larger one decides.
//! * [`Engine::all_pairs`] sums over all pairs without a radius: gravity, and electric potentials on
//!   grids.
//! * A [`DeviceEngine`](device::DeviceEngine) serves programs whose data live on a GPU.
//! * Results are always in your order and numbering. [`Engine::z_sort`] gives the permutation that
//!   makes your own arrays local in memory, which speeds up everything that follows.
//!
//! # What is exact
//!
//! A source j in periodic image n is a neighbour of target i when d² ≤ fl(r·r), where per axis
//! d = fl(fl(xj − xi) + S), S = n·length rounded once from `f64` (in a tilted box the sum of its
//! vectors (n_a·a + n_b·b) + n_c·c, rounded once from `f64`), and
//! d² = fma(dz, dz, fma(dy, dy, dx·dx)), all in `f32`. Only a point itself, in the zero image, is
//! left out; coincident points are neighbours. With radii of single points, fl(r·r) is that of the
//! point, or the larger of two, that the [`RadiusRule`] names. No list is ever truncated. The same
//! input gives the same lists in the same order and the same sums, whatever the number of threads or
//! the processor's vector width; [`ListOrder::Ascending`] makes the order independent of the cell
//! size too.
//!
//! Coordinates are `f32`: far from the origin they are coarse, and distances are those of the
//! coordinates as given. [`Engine::builder_f64`] makes an engine that takes `&[[f64; 3]]`,
//! `&[glam::DVec3]` and their like (and `f32`, which it converts), and for which all of the above
//! holds with `f64` in the place of `f32`: radius, coordinates, image vectors and every operation.
//! Kernels, callbacks and geometry get that displacement and its square, each rounded to `f32` once,
//! and what kernels add up is `f32`. An engine in `f32` refuses `f64` coordinates rather than round
//! them.

mod backend;
pub mod device;
mod engine;
mod error;

pub use backend::{
    hardware::{Device, ParseDeviceError},
    split::{BackendReport, JobReport, SplitReport},
    support::Unsupported,
};
pub use engine::{
    Engine,
    all_pairs::{AllPairs, AllPairsBuilder, AllPairsError, AllPairsReport},
    batches::PairBatch,
    builder::Builder,
    chunks::{ListChunk, ListChunks},
    report::{GpuReport, MemoryReport, Report, SetReport, StageTimes},
    sets::PointSetId,
    traverse::Traversal,
    verlet::{Refresh, VerletLists},
};
pub use error::Error;
pub use nearfield_balance::{EmulatedSpec, FaultAt, ParsePolicyError, ParseSpecError, Policy};
pub use nearfield_cpu::{
    ListOrder, NeighborLists, NeighborPair, PairGeometry, RadiusRule, SimdLevel,
};
pub use nearfield_gpu::{Class, GpuInfo, ParseStrategyError, Strategy, Trial, Way};
pub use nearfield_grid::{Csr, Permutation, Positions, Precision, TableKind};
pub use nearfield_pairs::{
    Arithmetic, Channels, ChargeField, ChargePotential, Coefficients, CoefficientsError, Cuda,
    CudaParts, CutoffCoulomb, Dimensions, Field, Forces, Interactions, LennardJones, ListKind,
    LongRange, MAX_TYPES, Mixing, Pair, PairKernel, PairPotential, PairSum, PairSumSettings,
    PlainLennardJones, PowerLaw, PowerLawError, Real, Reduce, SampleGrid, SampleGridError,
    Screening, Sources, SphDensity, SphForce, Sum, Truncation, WendlandC2,
};

/// What most programs need, for `use nearfield::prelude::*`.
pub mod prelude {
    pub use crate::{
        AllPairs, Device, Engine, Error, Field, ListKind, ListOrder, NeighborLists, Pair,
        PairKernel, Permutation, PointSetId, Positions, RadiusRule, Reduce,
    };
}
