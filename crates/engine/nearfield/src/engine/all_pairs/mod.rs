//! Sums over all pairs of points, without a radius: gravity, and potentials on grids.

mod backends;
mod builder;
mod check;
mod report;
mod sums;

pub use builder::AllPairsBuilder;
pub use report::AllPairsReport;
pub use sums::AllPairs;
