//! How the GPU backend maps cells and targets to threads.
//!
//! All strategies visit the same pairs and differ in who reads a candidate how often. With few
//! points in a cell a thread per target wins ([`Strategy::Flat`]): neighbouring threads have nearly
//! the same candidates, which the caches hold, and each row of cells is cut to the chord of the
//! sphere around the very target. With many points in a cell it pays to read the candidates once
//! per cell into shared memory for all of its targets, which the other strategies do. They differ
//! in how a warp gets its cell: launched by the device, or taken from a list.
//!
//! Within one strategy lists and sums are the same from run to run. Between strategies lists hold
//! the same neighbours, maybe in another order, and sums may differ in their last bits.
//!
//! The names are settings of an engine, and [`chooser`] learns from times, so neither needs a GPU:
//! a build without one takes and prints the same settings.
//!
//! ```
//! use nearfield_balance::Strategy;
//! assert_eq!("cell-tasks".parse(), Ok(Strategy::CellTasks));
//! assert_eq!(Strategy::default().to_string(), "flat");
//! ```

pub mod chooser;

use std::{fmt, str::FromStr};

/// How cells and targets are mapped to threads; all strategies find the same neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Strategy {
    /// One thread per target, which goes through the rows of cells within its reach. The only
    /// strategy that can work on a range of targets, so lists larger than the device's memory go by
    /// it, and results of a part of the targets leave while later ones are computed.
    #[default]
    Flat,
    /// A parent kernel with one thread per cell launches a child grid for every cell that holds
    /// points, sized by their number; the child stages neighbours in shared memory, 32 at a time.
    /// Every launch costs the device time, so this pays for cells of many points only. The host
    /// waits for the end of the traversal, to learn whether all launches succeeded.
    ChildPerCell,
    /// A parent block collects its occupied cells and launches one child grid for all of them: one
    /// launch per 256 cells. The host waits as with [`ChildPerCell`](Self::ChildPerCell).
    ChildAggregated,
    /// The same tiles from a list of tasks made on the device, without launches from kernels: every
    /// warp of a grid that fills the device takes one occupied cell after another. Needs neither
    /// the device runtime nor a linker.
    CellTasks,
    /// Pairs of points of different cells are computed once for both (Newton's third law), by half
    /// a warp per cell that goes through the cells ahead of it; what sources get is summed in
    /// shared memory and then in a plane of numbers per cell ahead, so sums are the same from run
    /// to run.
    ///
    /// Needs `PairKernel::SYMMETRIC`, `Cuda::antisymmetric` or `Cuda::symmetric`, a kernel that
    /// adds up at most 16 channels and reads at most as many of a target, and one set that searches
    /// itself as a whole. Everything else, counting and lists among it, is done as by
    /// [`Flat`](Self::Flat).
    /// Takes 4 bytes on the device per point, channel and plane. There are 14 planes with one cell
    /// to a radius, fewer in boxes of fewer cells. A cell is never divided among several half
    /// warps, so a cell of thousands of points takes long.
    HalfTiles,
    /// The engine measures on its first steps which of the others is the fastest for its points,
    /// with how many cells to a radius, and goes on with that. Asked of a backend itself, which
    /// keeps no times, it is [`Flat`](Self::Flat).
    Auto,
}

/// A strategy's name that is not understood; the message lists those that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown strategy {0:?}: use flat, child-per-cell, child-aggregated, cell-tasks, half-tiles or auto"
)]
pub struct ParseStrategyError(String);

impl Strategy {
    /// Every strategy that runs; [`Auto`](Self::Auto) is a choice among them.
    pub const ALL: [Self; 5] = [
        Self::Flat,
        Self::ChildPerCell,
        Self::ChildAggregated,
        Self::CellTasks,
        Self::HalfTiles,
    ];

    /// Its name, as [`FromStr`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::ChildPerCell => "child-per-cell",
            Self::ChildAggregated => "child-aggregated",
            Self::CellTasks => "cell-tasks",
            Self::HalfTiles => "half-tiles",
            Self::Auto => "auto",
        }
    }

    /// The one that takes its place where only some of the targets are searched for: what a part
    /// takes says nothing about which way is fastest for the whole, and half tiles take whole sets.
    pub fn of_share(self) -> Self {
        match self {
            Self::Auto | Self::HalfTiles => Self::Flat,
            strategy => strategy,
        }
    }

    /// Whether its kernels launch kernels.
    pub fn launches_children(self) -> bool {
        matches!(self, Self::ChildPerCell | Self::ChildAggregated)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .chain([Self::Auto])
            .find(|strategy| strategy.name() == text)
            .ok_or_else(|| ParseStrategyError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_printed() {
        for strategy in Strategy::ALL.into_iter().chain([Strategy::Auto]) {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        let error = "fast".parse::<Strategy>().unwrap_err().to_string();
        assert!(
            error.contains("\"fast\"") && error.contains("cell-tasks"),
            "{error}"
        );
    }
}
