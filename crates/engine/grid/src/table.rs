//! Where the points of a row of cells lie among the sorted points.
//!
//! Sorted points are ordered by cell with x fastest, then y, then z, so the cells of one row
//! (equal y and z) are contiguous. Two tables answer the same questions: the dense one holds a
//! start per cell of the bounding box, the hashed one holds the occupied cells only and is used
//! when the box has many more cells than there are points (an outlier far away, a diagonal line).

use crate::{Cell, hashed::HashedTable, lattice::EVEN_CELLS};
use std::ops::Range;

/// Which cell table a grid uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A start for every cell of the bounding box.
    Dense,
    /// Occupied cells only, rows found by hash.
    Hashed,
}

/// Cells of a bounding box in row order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CellBox {
    pub(crate) origin: Cell,
    pub(crate) dims: [i64; 3],
}

impl CellBox {
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

    /// Whether no cell of the box is so far out that cells are larger there.
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
    fn row_of(&self, place: usize) -> RowOfCells {
        let width = self.dims[0] as usize;
        let row = (place / width) as i64;
        let first = place - place % width;
        RowOfCells {
            places: first..first + width,
            y: self.origin[1] + row % self.dims[1],
            z: self.origin[2] + row / self.dims[1],
        }
    }

    /// Whether row (y, z) crosses the box.
    #[inline(always)]
    fn has_row(&self, y: i64, z: i64) -> bool {
        (0..self.dims[1]).contains(&(y - self.origin[1]))
            && (0..self.dims[2]).contains(&(z - self.origin[2]))
    }
}

/// A row of a dense table, remembered between cells so that none needs a division.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowOfCells {
    places: Range<usize>,
    y: i64,
    z: i64,
}

/// A row of cells in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCells {
    first: usize,
    len: usize,
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

#[derive(Debug, Clone)]
pub(crate) enum CellTable {
    Dense(DenseTable),
    Hashed(HashedTable),
}

/// `starts[c]..starts[c + 1]` are the points of cell `c` of the box.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenseTable {
    pub(crate) cells: CellBox,
    pub(crate) starts: Vec<u32>,
}

impl CellTable {
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
    #[inline(always)]
    pub(crate) fn run(&self, row: RowCells, low: i64, high: i64) -> Range<usize> {
        let (begin, end) = match self {
            Self::Dense(table) => {
                let origin = table.cells.origin[0];
                let clip = |x: i64| (x - origin).clamp(0, row.len as i64) as usize;
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

    #[inline(always)]
    fn starts(&self) -> &[u32] {
        match self {
            Self::Dense(table) => &table.starts,
            Self::Hashed(table) => table.starts(),
        }
    }
}
