//! Cells with their counts, bricks of them, and which bricks lie near each other.
//!
//! A brick is a block of `edge`³ cells, the unit that is given to a backend. Cells would be too
//! small: the border between the backends would be long, and a plan would have millions of
//! entries. Bricks are numbered in row order, x fastest; [`super::work`] makes them from cells,
//! and this file holds the result.
//!
//! **Invariant:** `near` lists of all bricks are symmetric, hold the brick itself, and ascend.
//!
//! # Occupancy
//!
//! The number of targets of a brick is its occupancy: how full a brick is decides how well a GPU
//! works on it, and thresholds compare it. A brick of b³ cells has b³ times the occupancy of its
//! cells on average, so thresholds depend on the edge of bricks.

/// Points of one cell.
///
/// Cells without points need not be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellLoad {
    /// Coordinates of the cell, in `0..n` on periodic axes.
    pub cell: [i64; 3],
    /// Points in it that search.
    pub targets: u32,
    /// Points in it that are found.
    pub sources: u32,
}

/// A block of cells, the unit that is given to a backend.
///
/// `cells` counts occupied cells, from which the mean occupancy of its cells follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brick {
    /// Coordinates in bricks.
    pub at: [i64; 3],
    /// Occupied cells.
    pub cells: u32,
    /// Points that search: the brick's occupancy, which thresholds compare.
    pub targets: u32,
    /// Points that are found.
    pub sources: u32,
    /// Pairs tested by its targets.
    pub work: u64,
}

/// Occupied bricks in row order (x fastest), and who is near whom.
///
/// Lists of near bricks take about 27 entries per brick, four bytes each.
#[derive(Debug, Clone)]
pub struct Bricks {
    /// The bricks, in row order.
    pub(super) bricks: Vec<Brick>,
    /// `near[starts[b]..starts[b + 1]]` are the bricks near brick b, itself among them, ascending.
    pub(super) starts: Vec<usize>,
    /// All lists of near bricks, one after the other.
    pub(super) near: Vec<u32>,
}

impl Bricks {
    /// The bricks, in row order.
    pub fn as_slice(&self) -> &[Brick] {
        &self.bricks
    }

    /// Bricks that hold a neighbour cell of one of `brick`'s cells, itself among them.
    ///
    /// Ascending, so the bricks of one subregion are consecutive in it.
    pub fn near(&self, brick: usize) -> &[u32] {
        &self.near[self.starts[brick]..self.starts[brick + 1]]
    }

    /// Pairs tested by all targets; `u64::MAX` where they are more.
    ///
    /// The unit is pairs tested, not pairs found.
    pub fn work(&self) -> u64 {
        let work = self.bricks.iter().map(|brick| brick.work);
        work.fold(0, u64::saturating_add)
    }
}
