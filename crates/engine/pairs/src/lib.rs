//! Pair kernels: what is computed for a pair of neighbours.
//!
//! A [`PairKernel`] is plain scalar code for one pair. The backends call it for whole batches of
//! candidates in structure-of-arrays form, compiled together with the traversal for the widest
//! vectors the machine has, so branch-free arithmetic runs at full width.
//!
//! Per-point values go in as [`Field`]s, borrowed from the caller's arrays, and arrive in the
//! kernel as its [`Target`](PairKernel::Target) and [`Source`](PairKernel::Source) types.
//!
//! Forces that depend on the distance alone are written as a [`PairPotential`], of which
//! [`Interactions`] and [`Forces`] make kernels and [`Sum`] adds two.

mod all_pairs;
mod channels;
mod charges;
mod cuda;
mod cutoff_coulomb;
mod error;
mod field;
mod kernel;
mod lennard_jones;
mod list_kind;
mod potential;
mod power_law;
mod sph;

pub use all_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources, TILE};
pub use channels::Channels;
pub use charges::{ChargeField, ChargePotential};
pub use cuda::{Cuda, CudaParts};
pub use cutoff_coulomb::{CutoffCoulomb, Screening};
pub use error::{Error, ErrorKind};
pub use field::Field;
pub use kernel::{Pair, PairKernel, Reduce};
pub use lennard_jones::{
    Coefficients, LennardJones, LongRange, MAX_TYPES, Mixing, PlainLennardJones, Truncation,
};
pub use list_kind::ListKind;
pub use potential::{Forces, Interactions, PairPotential, Sum};
pub use power_law::PowerLaw;
pub use sph::{Dimensions, SphDensity, SphForce, WendlandC2};
