//! Boxes and rows of cells, and their numbers in a table.
//!
//! Cells are numbered in row order: x fastest, then y, then z. In a dense table that number is the
//! place of the cell's start; in a hashed table cells are numbered as they occur.
//!
//! **Invariant:** [`CellBox::key`] of any cell, inside or not, is below the number of cells of the
//! box, so an unchecked index into a table of that length is sound.

use crate::{Cell, lattice::axis::EVEN_CELLS};
use std::ops::Range;

/// Cells of a bounding box in row order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CellBox {
    /// The smallest cell.
    pub(crate) origin: Cell,
    /// Cells along each axis, at least one.
    pub(crate) dims: [i64; 3],
}

impl CellBox {
    /// The box from cell `low` to cell `high`.
    pub(crate) fn new(low: Cell, high: Cell) -> Self {
        Self {
            origin: low,
            // At least one, whatever the corners are.
            dims: std::array::from_fn(|axis| (high[axis] - low[axis] + 1).max(1)),
        }
    }

    /// Number of cells, `None` when it does not fit.
    pub(crate) fn cells(&self) -> Option<usize> {
        let [x, y, z] = self.dims.map(|dim| usize::try_from(dim).ok());
        x?.checked_mul(y?)?.checked_mul(z?)
    }

    /// Returns true if no cell of the box is so far out that cells are larger there.
    pub(crate) fn is_near(&self) -> bool {
        (0..3).all(|axis| {
            let last = self.origin[axis] + self.dims[axis] - 1;
            (self.origin[axis] as f64) > -EVEN_CELLS && (last as f64) < EVEN_CELLS - 1.0
        })
    }

    /// Index of a cell of the box in row order.
    #[inline(always)]
    pub(crate) fn index(&self, cell: Cell) -> usize {
        let row = (cell[2] - self.origin[2]) * self.dims[1] + cell[1] - self.origin[1];
        (row * self.dims[0] + cell[0] - self.origin[0]) as usize
    }

    /// Index of a cell of a box of at most 2³¹ cells; a cell outside gets that of one inside.
    #[inline(always)]
    pub(crate) fn key(&self, cell: Cell) -> u32 {
        // Offsets below 0 become vast.
        let inside = |axis: usize| {
            let offset = cell[axis].wrapping_sub(self.origin[axis]) as u64;
            offset.min(self.dims[axis] as u64 - 1) as i64
        };
        let row = inside(2) * self.dims[1] + inside(1);
        (row * self.dims[0] + inside(0)) as u32
    }

    /// The row that cell number `place` lies in.
    pub(super) fn row_of(&self, place: usize) -> RowOfCells {
        let width = self.dims[0] as usize;
        let row = (place / width) as i64;
        let first = place - place % width;
        RowOfCells {
            places: first..first + width,
            y: self.origin[1] + row % self.dims[1],
            z: self.origin[2] + row / self.dims[1],
        }
    }

    /// Returns true if row (y, z) crosses the box.
    #[inline(always)]
    pub(super) fn has_row(&self, y: i64, z: i64) -> bool {
        (0..self.dims[1]).contains(&(y - self.origin[1]))
            && (0..self.dims[2]).contains(&(z - self.origin[2]))
    }
}

/// A row of a dense table, remembered between cells so that none needs a division.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowOfCells {
    /// Numbers of the cells of the row.
    pub(super) places: Range<usize>,
    /// The row's y.
    pub(super) y: i64,
    /// The row's z.
    pub(super) z: i64,
}

/// A row of cells in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCells {
    /// Number of the first cell.
    pub(super) first: usize,
    /// Number of cells.
    pub(super) len: usize,
}

impl RowCells {
    /// Cells with these numbers.
    #[inline(always)]
    pub(crate) fn new(places: Range<usize>) -> Self {
        Self {
            first: places.start,
            len: places.len(),
        }
    }

    /// Numbers of its cells.
    #[inline(always)]
    pub(crate) fn places(self) -> Range<usize> {
        self.first..self.first + self.len
    }
}
