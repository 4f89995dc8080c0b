//! The table of a grid: from a row of cells to a range of sorted points.
//!
//! Sorted points are ordered by cell with x fastest, then y, then z, so the cells of one row
//! (equal y and z) are contiguous, and so are the points of any stretch of a row. Two tables
//! answer the same questions.
//!
//! * The **dense** table holds a start per cell of the bounding box. A run is two loads, whatever
//!   the cells hold. It is used while it has at most eight cells per point.
//! * The **hashed** table ([`hashed`]) holds the occupied cells only, and finds rows by hash. A
//!   run costs a look-up of the row and two binary searches in it. It is used when the box has
//!   many more cells than there are points, as with an outlier far away or a diagonal line, so
//!   memory follows the points and not the volume.
//!
//! **Invariant:** `starts[c] .. starts[c + 1]` are the sorted points of cell number c, in both
//! tables, and the starts ascend; so a run of cells is the range from the start of its first to
//! the start of the cell behind its last.
//!
//! # Iterating cells
//!
//! Loops over targets ask for the occupied cells of a range of slots, in order. The cell that
//! holds the first slot is found by bisection; from there the starts are walked, empty cells
//! skipped. A row's y and z are computed once per row, so no cell needs a division.

pub(crate) mod cells;
pub(crate) mod hashed;

use crate::Cell;
use cells::{CellBox, RowCells, RowOfCells};
use hashed::HashedTable;
use std::ops::Range;

/// Which cell table a grid uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A start for every cell of the bounding box.
    Dense,
    /// Occupied cells only, rows found by hash.
    Hashed,
}

/// The table that a grid uses.
#[derive(Debug, Clone)]
pub(crate) enum CellTable {
    Dense(DenseTable),
    Hashed(HashedTable),
}

/// `starts[c]..starts[c + 1]` are the points of cell `c` of the box.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenseTable {
    /// The box of the cells.
    pub(crate) cells: CellBox,
    /// First sorted point of every cell, and the number of points.
    pub(crate) starts: Vec<u32>,
}

impl CellTable {
    /// The kind of the table, for reports.
    pub(crate) fn kind(&self) -> TableKind {
        match self {
            Self::Dense(_) => TableKind::Dense,
            Self::Hashed(_) => TableKind::Hashed,
        }
    }

    /// Cells the table holds a start for.
    pub(crate) fn len(&self) -> usize {
        self.starts().len().saturating_sub(1)
    }

    /// Bytes the table holds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Dense(table) => size_of::<u32>() * table.starts.capacity(),
            Self::Hashed(table) => table.bytes(),
        }
    }

    /// Row (y, z), if it can hold points.
    #[inline(always)]
    pub(crate) fn row(&self, y: i64, z: i64) -> Option<RowCells> {
        match self {
            Self::Dense(table) => table.cells.has_row(y, z).then(|| RowCells {
                first: table.cells.index([table.cells.origin[0], y, z]),
                len: table.cells.dims[0] as usize,
            }),
            Self::Hashed(table) => table.row(y, z),
        }
    }

    /// Sorted points in the cells `low..=high` along x of a row of this table.
    ///
    /// Cells beyond the ends of the row are clipped.
    #[inline(always)]
    pub(crate) fn run(&self, row: RowCells, low: i64, high: i64) -> Range<usize> {
        let (begin, end) = match self {
            Self::Dense(table) => {
                let origin = table.cells.origin[0];
                // Spelt out: `clamp` is a call of its own in builds without optimisation across
                // units.
                let clip = |x: i64| {
                    let place = if x < origin { 0 } else { (x - origin) as usize };
                    if place < row.len { place } else { row.len }
                };
                (clip(low), clip(high + 1))
            }
            Self::Hashed(table) => {
                let before = |x: i64| table.before(row.places(), x);
                (before(low), before(high + 1))
            }
        };
        let starts = self.starts();
        starts[row.first + begin] as usize..starts[row.first + end] as usize
    }

    /// Last cell that starts at or before sorted point `slot` and is not empty.
    ///
    /// Used once per iteration over cells.
    pub(crate) fn find(&self, slot: usize) -> usize {
        self.starts()
            .partition_point(|&start| start as usize <= slot)
            .saturating_sub(1)
    }

    /// Points of cell number `place`, or `None` behind the last.
    #[inline(always)]
    pub(crate) fn points(&self, place: usize) -> Option<Range<usize>> {
        let starts = self.starts();
        Some(*starts.get(place)? as usize..*starts.get(place + 1)? as usize)
    }

    /// Coordinates of cell number `place`; `row` is the row of the last call and becomes its row.
    #[inline(always)]
    pub(crate) fn cell(&self, place: usize, row: &mut RowOfCells) -> Cell {
        match self {
            Self::Dense(table) => {
                if !row.places.contains(&place) {
                    *row = table.cells.row_of(place);
                }
                let x = (place - row.places.start) as i64;
                [table.cells.origin[0] + x, row.y, row.z]
            }
            Self::Hashed(table) => table.cell(place),
        }
    }

    /// First point of every cell, and behind the last the number of points.
    #[inline(always)]
    fn starts(&self) -> &[u32] {
        match self {
            Self::Dense(table) => &table.starts,
            Self::Hashed(table) => table.starts(),
        }
    }
}
