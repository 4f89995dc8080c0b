//! Kernels over lists that were found earlier.
//!
//! [`pairs`] decides which sources of a list are neighbours now, [`layout`] writes the pairs of a
//! target to arrays, and [`traverse`] evaluates a kernel over them; [`half`] does so once per pair
//! for both points. In a Lennard-Jones liquid finding neighbours among gathered candidates takes
//! less than half the time of reading positions through a list, because lists name points all over
//! memory. On the CPU, lists are for programs that need them.
//!
//! # Invariant
//!
//! A traversal over stored lists gives exactly the terms of a fused one if the lists hold every
//! pair within the radius; pairs that they hold beyond it are dropped by the test. The order of
//! the terms is that of the lists.

pub(crate) mod coordinate;
mod half;
pub(crate) mod layout;
pub(crate) mod listed;
pub(crate) mod pairs;
mod traverse;
