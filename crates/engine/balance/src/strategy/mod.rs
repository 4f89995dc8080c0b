//! How the GPU backend maps cells and targets to threads.
//!
//! All strategies visit the same pairs and differ in who reads a candidate how often.
//! [`Strategy::Flat`] gives every target a thread: neighbouring threads have nearly the same
//! candidates, which the caches hold, and each row of cells is cut to the chord of the sphere
//! around the very target. The other strategies read the candidates once per cell into shared
//! memory for all of its targets, by kernels that kernels launch, and differ in how many cells such
//! a kernel takes. On every cloud measured so far `flat` is the fastest
//! (docs/measurements/gpu.md).
//!
//! Within one strategy lists and sums are the same from run to run. Between strategies lists hold
//! the same neighbours, maybe in another order, and sums may differ in their last bits.
//!
//! The names are settings of an engine, and [`chooser`] learns from times, so neither needs a GPU:
//! a build without one takes and prints the same settings.
//!
//! ```
//! use nearfield_balance::Strategy;
//! assert_eq!("child-per-cell".parse(), Ok(Strategy::ChildPerCell));
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
    /// points, sized by their number: a thread per point, up to 1,024. The child stages neighbours
    /// in shared memory, 32 at a time. Every launch costs the device time, so many cells of few
    /// points take long. The host waits for the end of the traversal, to learn whether all launches
    /// succeeded.
    ChildPerCell,
    /// A parent block collects its occupied cells and launches one child grid for all of them: one
    /// launch per 256 cells. A warp of the child takes a cell and stages its neighbours. The host
    /// waits as with [`ChildPerCell`](Self::ChildPerCell).
    ChildAggregated,
    /// The engine measures on its first steps which of the others is the fastest for its points,
    /// with how many cells to a radius, and goes on with that. Asked of a backend itself, which
    /// keeps no times, it is [`Flat`](Self::Flat).
    Auto,
}

/// A strategy's name that is not understood; the message lists those that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}: use flat, child-per-cell, child-aggregated or auto")]
pub struct ParseStrategyError(String);

impl Strategy {
    /// Every strategy that runs; [`Auto`](Self::Auto) is a choice among them.
    pub const ALL: [Self; 3] = [Self::Flat, Self::ChildPerCell, Self::ChildAggregated];

    /// Its name, as [`FromStr`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::ChildPerCell => "child-per-cell",
            Self::ChildAggregated => "child-aggregated",
            Self::Auto => "auto",
        }
    }

    /// The one that takes its place where only some of the targets are searched for: what a part
    /// takes says nothing about which way is fastest for the whole.
    pub fn of_share(self) -> Self {
        match self {
            Self::Auto => Self::Flat,
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
            error.contains("\"fast\"") && error.contains("child-per-cell"),
            "{error}"
        );
    }
}
