//! Kernels over lists that were found earlier.
//!
//! [`pairs`] decides which sources of a list are neighbours now, [`layout`] writes the pairs of a
//! target to arrays, and [`traverse`] evaluates a kernel over them; [`half`] does so once per pair
//! for both points. In a Lennard-Jones liquid finding neighbours among gathered candidates takes
//! less than half the time of reading positions through a list, because lists name points all over
//! memory. On the CPU, lists are for programs that need them.

pub(crate) mod coordinate;
mod half;
pub(crate) mod layout;
pub(crate) mod listed;
pub(crate) mod pairs;
mod traverse;
