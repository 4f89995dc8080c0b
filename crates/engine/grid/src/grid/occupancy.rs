//! The occupancy of the cells, as an event for subscribers of `tracing`.
//!
//! Counting costs time, so it is done for subscribers only, and of large tables a sample is
//! counted.
//!
//! **Invariant:** nothing is counted while no subscriber listens, so the event costs a load and a
//! branch.

use crate::table::CellTable;
use std::{collections::BTreeMap, fmt::Write};

/// Maximum number of cells that are counted; of more, an evenly spread sample is.
const MAX_COUNTED: usize = 1 << 12;

/// Records the occupancy of a table's cells as the event `grid.occupancy`; costs nothing without a
/// subscriber.
pub(super) fn record(table: &CellTable) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let one_in = table.len().div_ceil(MAX_COUNTED).max(1);
        let counts = counted(table, one_in);
        tracing::debug!(name: "grid.occupancy", of = "cells", one_in, counts);
    }
}

/// Pairs `points:cells`, ascending: the number of cells that hold that many points, or up to an
/// eighth more.
fn counted(table: &CellTable, one_in: usize) -> String {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for place in (0..table.len()).step_by(one_in) {
        let points = table.points(place).map_or(0, |points| points.len());
        *counts.entry(rounded(points)).or_default() += 1;
    }
    let mut text = String::new();
    for (points, cells) in counts {
        let separator = if text.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{points}:{cells}");
    }
    text
}

/// The number without all but its four leading binary digits, so that few numbers are told apart
/// however many points are in a cell: 17 becomes 16, 100 becomes 96.
fn rounded(points: usize) -> usize {
    let below = points.checked_ilog2().unwrap_or(0).saturating_sub(3);
    points >> below << below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Domain, Grid, Lattice, Radius};

    fn grid(positions: &[[f32; 3]]) -> Grid {
        let radius = Radius::new(1.0).unwrap();
        let bounds = Bounds::of(positions.into(), &Domain::OPEN).unwrap();
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &bounds).unwrap();
        let mut grid = Grid::new(lattice.clone());
        grid.build(positions.into(), bounds, &lattice).unwrap();
        grid
    }

    #[test]
    fn cells_are_counted_by_their_points() {
        let at = |x: f32| [x, 0.5, 0.5];
        let grid = grid(&[at(0.5), at(0.5), at(3.5), at(0.6)]);
        // Cells 0 to 3; two are empty.
        assert_eq!(counted(grid.table(), 1), "0:2 1:1 3:1");
        assert_eq!(counted(grid.table(), 2), "0:1 3:1");
        assert_eq!(counted(Grid::new(grid.lattice().clone()).table(), 1), "");
    }

    #[test]
    fn large_numbers_are_rounded_down_by_at_most_an_eighth() {
        for points in 0..16 {
            assert_eq!(rounded(points), points);
        }
        assert_eq!((rounded(17), rounded(18), rounded(1000)), (16, 18, 960));
        for points in [33usize, 1000, 12_345, usize::MAX] {
            assert!(rounded(points) <= points && points - rounded(points) <= points / 8);
        }
    }
}
