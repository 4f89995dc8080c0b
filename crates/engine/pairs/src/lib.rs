//! Pair kernels: the computation for a pair of neighbours.
//!
//! A [`PairKernel`] is plain scalar code for one pair. The backends call it for whole batches of
//! candidates in structure-of-arrays form, compiled together with the traversal for the widest
//! vectors the machine has, so branch-free arithmetic runs at full width.
//!
//! Per-point values go in as [`Field`]s, borrowed from the caller's arrays, and arrive in the
//! kernel as its [`Target`](PairKernel::Target) and [`Source`](PairKernel::Source) types.
//!
//! Forces that depend on the distance alone are written as a [`PairPotential`]. [`Interactions`]
//! and [`Forces`] make kernels of it, and [`Sum`] adds two.
//!
//! # Which kernel for what
//!
//! | quantity | kernel |
//! | --- | --- |
//! | SPH density | [`SphDensity`] |
//! | SPH pressure and viscosity | [`SphForce`] |
//! | Lennard-Jones, one kind of atoms | [`PlainLennardJones`] |
//! | Lennard-Jones, several kinds | [`LennardJones`] |
//! | charges within a cut-off, energy and force | [`CutoffCoulomb`] |
//! | electric potential or field at any points | [`ChargePotential`], [`ChargeField`] |
//! | a force by powers of the distance | [`PowerLaw`] |
//! | potential or pull of all points on all | [`PairSum`], without a radius |
//!
//! # On a GPU
//!
//! [`pair_kernel`](macro@pair_kernel) translates a kernel to CUDA, which is compiled into the GPU's
//! traversal at run time; the kernels here are written so. A kernel may bring a text of its own
//! ([`Cuda`]) instead. One without a text runs on the CPU backend.
//!
//! **Invariant:** a kernel is a pure function of the pair, the values of both points and its own
//! fields, so any backend may evaluate any pair, in any order, and also pairs that are thrown
//! away.

mod all_pairs;
mod channels;
mod charges;
mod cuda;
mod cutoff_coulomb;
#[doc(hidden)]
pub mod device;
mod error;
mod field;
mod image;
mod kernel;
mod lennard_jones;
mod list_kind;
mod potential;
mod power_law;
mod random;
mod sph;
#[doc(hidden)]
pub mod texts;

pub use all_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources, TILE};
pub use channels::Channels;
pub use charges::{ChargeField, ChargePotential};
pub use cuda::{Cuda, CudaParts};
pub use cutoff_coulomb::{CutoffCoulomb, Screening};
#[doc(hidden)]
pub use device as __device;
pub use device::{
    cuda_source,
    fast::{fast_div, fast_mul_add, fast_recip, fast_rsqrt, fast_saturate, fast_sqrt, mul_high},
};
pub use error::{Error, ErrorKind, MAX_TYPES};
pub use field::{Field, FieldsOf, Indices};
pub use image::Images;
pub use kernel::{Pair, PairKernel, Reduce};
pub use lennard_jones::{
    Coefficients, LennardJones, LongRange, Mixing, PlainLennardJones, Truncation,
};
pub use list_kind::ListKind;
pub use nearfield_macros::{Channels, pair_fn, pair_kernel};
pub use potential::{EnergyForce, EnergyVirial, Forces, Interactions, PairPotential, Sum};
pub use power_law::PowerLaw;
pub use random::{Random, normal, philox4x32, unit_interval, unit_variance};
pub use sph::{Dimensions, SphDensity, SphForce, WendlandC2};
