//! What a view keeps of positions and values: scales of colours, and steps.

/// A quantity that colours the points of a [`View`](super::View).
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Its name and unit.
    pub name: String,
    /// The value of the first colour, which lower values have too.
    pub low: f64,
    /// The value of the last colour, which higher values have too.
    pub high: f64,
    /// Whether values are whole numbers.
    pub whole: bool,
    /// Whether values may lie beyond `high`, which is then written with ≥.
    pub open: bool,
}

/// How finely a view keeps positions and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// Positions in steps of a 256th and values in steps of a 65,536th: some 6 bytes a point.
    Fine,
    /// Positions in steps of a 16th of a cell of about one point, and values in 64 steps: some 3.5
    /// bytes a point with two quantities. For many frames.
    Coarse,
}

impl Detail {
    /// Steps of positions per cell.
    pub(super) fn steps(self) -> u64 {
        match self {
            Self::Fine => 256,
            Self::Coarse => 16,
        }
    }

    /// The word of the highest value.
    pub(super) fn last_word(self) -> u16 {
        match self {
            Self::Fine => u16::MAX,
            Self::Coarse => 63,
        }
    }
}
