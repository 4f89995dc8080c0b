//! Ranks as threads of one process.

#[path = "../common/mod.rs"]
mod common;
#[path = "../protocol/mod.rs"]
mod protocol;

mod faults;
mod filters;
mod geometry;
mod hostile;
mod messages;
mod same_bits;
mod shapes;
#[cfg(feature = "dam-break")]
mod solver;
mod steps;
mod transport;
mod two_sets;
