//! Sums over all pairs of points, without a radius: gravity, and potentials on grids.
//!
//! A radius that holds all points makes cells, lists and sorting useless, so these sums are not
//! jobs of an [`Engine`](crate::Engine) with its point sets: arguments are arrays, and nothing is
//! kept of them after a call. The two backends and the protocol by which they share a step are
//! those of the engine.
//!
//! `sums` has the public calls, `check` what they refuse, `backends` where they run, `builder` the
//! settings and `report` the record of the last sum.
//!
//! **Invariant:** backends see checked arguments only; a sum that is refused has written nothing.

mod backends;
mod builder;
mod check;
mod report;
mod sums;

pub use builder::AllPairsBuilder;
pub use report::AllPairsReport;
pub use sums::AllPairs;
