//! Which pairs a neighbour list holds.
//!
//! Full lists serve sums per target. Half lists hold every pair once, for kernels that are
//! evaluated for both points and for programs that loop over pairs.

/// Which pairs a neighbour list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListKind {
    /// Every neighbour of every target.
    #[default]
    Full,
    /// Each pair of a set once: j > i, or j = i in a lexicographically positive image. Between two
    /// sets every pair is found from one side only, so all are kept.
    Half,
}
