//! Pair kernels: what is computed for a pair of neighbours.
//!
//! A [`PairKernel`] is plain scalar code for one pair. The lanes call it for whole batches of
//! candidates in structure-of-arrays form, compiled together with the traversal for the widest
//! vectors the machine has, so branch-free arithmetic runs at full width.
//!
//! Per-point values go in as [`Field`]s, borrowed from the caller's arrays, and arrive in the
//! kernel as its [`Target`](PairKernel::Target) and [`Source`](PairKernel::Source) types.

mod all_pairs;
mod channels;
mod charges;
mod cuda;
mod field;
mod kernel;
mod sph;

pub use all_pairs::{
    Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, SampleGridError, Sources, TILE,
};
pub use channels::Channels;
pub use charges::{ChargeField, ChargePotential};
pub use cuda::Cuda;
pub use field::Field;
pub use kernel::{Pair, PairKernel, Reduce};
pub use sph::{SphDensity, SphForce, WendlandC2};
