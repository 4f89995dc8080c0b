//! Neighbours in double precision.
//!
//! Vectors of `f64` hold half as many numbers as those of `f32` and move twice as many bytes, so
//! candidates are gathered and tested as in single precision, on **proxies**: every point's
//! position relative to a common centre, rounded to `f32` ([`nearfield_grid::DoublePoints`]).
//! Proxies are compared with a filter radius that is enlarged by the largest possible error of two
//! proxies, so no pair of the contract is beyond it. The few candidates that pass are decided one
//! by one ([`decide`]), from the positions as they were given, in `f64`, with the operations of the
//! contract.
//!
//! **Invariant:** the set of pairs does not depend on the proxies; only the number of candidates to
//! decide does. A point far away makes the filter coarse for itself alone.
//!
//! # Cost
//!
//! A search in double precision takes 2.3 to 3.3 times as long as one in single precision: the
//! filter does the same work as a single-precision search, and then about as many pairs as are
//! found are decided by scalar code with positions gathered from memory. 28 bytes per point are
//! held more, three coordinates in `f64` and the filter radius.

pub(crate) mod decide;
