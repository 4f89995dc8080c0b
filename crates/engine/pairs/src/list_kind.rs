//! Which pairs a neighbour list holds, for every backend that writes lists.

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
