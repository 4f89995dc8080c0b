//! Levels: the number of cases that a runner checks.

/// How thorough a [`Runner`](super::Runner) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Every shape and domain, few sizes: seconds in a debug build.
    Quick,
    /// More sizes, radii and seeds.
    Full,
}

impl Level {
    /// Number of seeds that random cases are made with.
    pub(super) fn seeds(self) -> u64 {
        match self {
            Self::Quick => 1,
            Self::Full => 4,
        }
    }
}
