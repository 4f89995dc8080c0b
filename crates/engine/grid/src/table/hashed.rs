//! The table of occupied cells only, for points far apart, and the keys that points are sorted by
//! for it.
//!
//! # Keys
//!
//! Cells of a box that is too large for a dense table are packed into one integer that sorts like
//! (z, y, x): 64 bits where the box allows it, else 128. A box has fewer than 2⁴² cells along an
//! axis, so 126 bits always suffice.
//!
//! # Filling
//!
//! Points are already sorted by key, so cells and rows begin where keys change. Tasks of 8,192
//! points count their beginnings in parallel; a prefix sum over the tasks tells each where its
//! cells and rows go; then all tasks write at once.
//!
//! # Finding a row
//!
//! Rows are found by open addressing: a row's number is stored at the first free slot from the one
//! that its hash names. There are at least twice as many slots as rows, so a free one is near.
//! Threads fill the slots with compare-and-exchange. The order of their arrival decides which slot
//! a row has, but not whether it is found, so results do not depend on it.
//!
//! # Cost
//!
//! A hashed table takes 28 bytes per occupied cell and some more per row. Building it reads the
//! sorted keys twice. A run in it costs more than one in a dense table, which is why small sets and
//! clouds that fill their box use the dense one.

use crate::{
    Cell, Error, SharedMut,
    error::reserve,
    parallel::PoolLoops,
    table::cells::{CellBox, RowCells},
};
use rayon::prelude::*;
use std::{
    mem,
    ops::Range,
    sync::atomic::{AtomicU32, Ordering},
};

/// Points that one thread looks at together; a million of them make 123 tasks, whose counts a
/// single thread then adds up.
const TASK: usize = 1 << 13;
/// No row.
const NONE: u32 = u32::MAX;

/// Numbers of cells, wide enough for cells far apart.
pub(crate) trait WideKey: radsort::Key + Copy + Ord + Default + Send + Sync {
    /// Few keys are sorted faster by comparing them than byte by byte.
    const COMPARED: bool;

    /// The key in this width; it fits.
    fn of(key: u128) -> Self;
    /// The key in 128 bits.
    fn wide(self) -> u128;
}

impl WideKey for u64 {
    const COMPARED: bool = false;

    fn of(key: u128) -> Self {
        key as Self
    }

    fn wide(self) -> u128 {
        u128::from(self)
    }
}

impl WideKey for u128 {
    const COMPARED: bool = true;

    fn of(key: u128) -> Self {
        key
    }

    fn wide(self) -> u128 {
        self
    }
}

/// Cells of a box packed into one integer that sorts like (z, y, x).
///
/// Offsets from the lowest cell of the box along each axis, x in the lowest bits. Sorting such keys
/// puts the cells of a row next to each other, and rows in the order that the dense table has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packing {
    /// The box of the cells.
    cells: CellBox,
    /// Bits before those of y.
    shift_y: u32,
    /// Bits before those of z.
    shift_z: u32,
    /// Bits of a key.
    bits: u32,
}

impl Packing {
    /// The packing of the cells of a box.
    pub(crate) fn new(cells: CellBox) -> Self {
        // A box has less than 2⁴² cells along an axis, so that takes at most 42 bits and all three
        // fit in 128.
        let [x, y, z] = cells.dims.map(|dim| i64::BITS - dim.leading_zeros());
        Self {
            cells,
            shift_y: x,
            shift_z: x + y,
            bits: x + y + z,
        }
    }

    /// Bits of a key.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// The key of a cell of the box. Two cells have the same key only if they are the same.
    pub(crate) fn key(&self, cell: Cell) -> u128 {
        let [x, y, z] = std::array::from_fn(|axis| {
            // A cell outside the box, of a point that its bounds do not hold, gets one inside.
            let offset = cell[axis].wrapping_sub(self.cells.origin[axis]) as u64;
            u128::from(offset.min(self.cells.dims[axis] as u64 - 1))
        });
        z << self.shift_z | y << self.shift_y | x
    }

    /// The cell of a key.
    fn cell(&self, key: u128) -> Cell {
        let low = |bits: u32| (1 << bits) - 1;
        let x = key & low(self.shift_y);
        let y = key >> self.shift_y & low(self.shift_z - self.shift_y);
        let offset = [x, y, key >> self.shift_z];
        std::array::from_fn(|axis| self.cells.origin[axis] + offset[axis] as i64)
    }

    /// The part of a key that all cells of a row share.
    fn row(&self, key: u128) -> u128 {
        key >> self.shift_y
    }
}

/// Occupied cells in sorted order, in rows that are found by hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct HashedTable {
    /// Coordinates of the occupied cells, in sorted order.
    cells: Vec<Cell>,
    /// `starts[k]..starts[k + 1]` are the points of cell `k`.
    starts: Vec<u32>,
    /// And behind the last where its cells end.
    rows: Vec<Row>,
    /// Finds rows by hash.
    places: Places,
}

/// A row of cells; it ends where the next begins.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// Its y and z.
    at: [i64; 2],
    /// The first of its cells.
    first: u32,
}

impl HashedTable {
    /// Makes the table of points that are sorted by the keys of their cells.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); the table is then what it was
    /// before.
    pub(crate) fn fill<K: WideKey>(
        &mut self,
        sorted: &[(K, u32)],
        packing: &Packing,
    ) -> Result<(), Error> {
        const WHAT: &str = "the cell table";
        // True where a cell, and where a row, begins with a point.
        let begins = |slot: usize| {
            let key = sorted[slot].0.wide();
            let before = slot.checked_sub(1).map(|before| sorted[before].0.wide());
            let cell = before != Some(key);
            let row = before.map(|before| packing.row(before)) != Some(packing.row(key));
            [cell, row]
        };
        let slots = |task: usize| task * TASK..((task + 1) * TASK).min(sorted.len());
        let tasks = (0..sorted.len().div_ceil(TASK)).into_par_iter();
        let mut first: Vec<[usize; 2]> = tasks
            .map(|task| {
                slots(task).map(begins).fold([0, 0], |count, begins| {
                    std::array::from_fn(|of| count[of] + usize::from(begins[of]))
                })
            })
            .listed();
        let mut all = [0, 0];
        for first in &mut first {
            let count = mem::replace(first, all);
            all = std::array::from_fn(|of| all[of] + count[of]);
        }
        let [cells, rows] = all;
        reserve(&mut self.cells, cells, WHAT)?;
        reserve(&mut self.starts, cells + 1, WHAT)?;
        reserve(&mut self.rows, rows + 1, WHAT)?;
        self.places.reserve(rows, WHAT)?;
        self.cells.resize(cells, [0; 3]);
        self.starts.resize(cells + 1, 0);
        self.rows.resize(rows + 1, Row::default());
        let written = (
            SharedMut::new(&mut self.cells),
            SharedMut::new(&mut self.starts),
            SharedMut::new(&mut self.rows),
        );
        first
            .into_par_iter()
            .enumerate()
            .run(|(task, [mut cell, mut row])| {
                for slot in slots(task) {
                    let [new_cell, new_row] = begins(slot);
                    if !new_cell {
                        continue;
                    }
                    let at = packing.cell(sorted[slot].0.wide());
                    // SAFETY: every task writes as many as it has counted, from where those of the
                    // task before end.
                    unsafe {
                        if new_row {
                            let (at, first) = ([at[1], at[2]], cell as u32);
                            written.2.write(row, Row { at, first });
                            row += 1;
                        }
                        written.0.write(cell, at);
                        written.1.write(cell, slot as u32);
                    }
                    cell += 1;
                }
            });
        self.starts[cells] = sorted.len() as u32;
        self.rows[rows].first = cells as u32;
        self.places.fill(&self.rows[..rows]);
        Ok(())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Cell>() * self.cells.capacity()
            + size_of::<u32>() * self.starts.capacity()
            + size_of::<Row>() * self.rows.capacity()
            + self.places.bytes()
    }

    /// First point of every cell, and behind the last the number of points.
    #[inline(always)]
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Coordinates of cell number `place`.
    #[inline(always)]
    pub(crate) fn cell(&self, place: usize) -> Cell {
        self.cells[place]
    }

    /// The cells of row (y, z), if there are any.
    ///
    /// None where no point lies in the row.
    #[inline(always)]
    pub(crate) fn row(&self, y: i64, z: i64) -> Option<RowCells> {
        let found = self.places.find(&self.rows, [y, z])?;
        let [first, end] = [found, found + 1].map(|row| self.rows[row].first as usize);
        Some(RowCells::new(first..end))
    }

    /// Which of the cells of a row lie before x.
    #[inline(always)]
    pub(crate) fn before(&self, row: Range<usize>, x: i64) -> usize {
        self.cells[row].partition_point(|cell| cell[0] < x)
    }
}

/// Slots with numbers of rows, each at the first free slot from the one its hash names on.
#[derive(Debug, Default)]
struct Places(Vec<AtomicU32>);

impl Clone for Places {
    fn clone(&self) -> Self {
        let copy = |place: &AtomicU32| AtomicU32::new(place.load(Ordering::Relaxed));
        Self(self.0.iter().map(copy).collect())
    }
}

impl Places {
    /// Twice as many as rows at least, so that a free one is near.
    fn room(rows: usize) -> usize {
        (2 * rows).next_power_of_two()
    }

    /// Makes room for `rows` rows.
    fn reserve(&mut self, rows: usize, what: &'static str) -> Result<(), Error> {
        reserve(&mut self.0, Self::room(rows), what)
    }

    /// Bytes held.
    fn bytes(&self) -> usize {
        size_of::<AtomicU32>() * self.0.capacity()
    }

    /// Takes in rows, which differ from each other, from many threads at once.
    fn fill(&mut self, rows: &[Row]) {
        self.0
            .resize_with(Self::room(rows.len()), AtomicU32::default);
        let free = self.0.par_iter_mut().with_min_len(1 << 14);
        free.run(|place| *place.get_mut() = NONE);
        let rows = rows.par_iter().with_min_len(1 << 10).enumerate();
        rows.run(|(number, row)| {
            let mut place = self.first(row.at);
            let put = |place: usize| {
                let order = Ordering::Relaxed;
                self.0[place].compare_exchange(NONE, number as u32, order, order)
            };
            while put(place).is_err() {
                place = self.next(place);
            }
        });
    }

    /// The number of the row at (y, z).
    #[inline(always)]
    fn find(&self, rows: &[Row], at: [i64; 2]) -> Option<usize> {
        let mut place = self.first(at);
        loop {
            match self.0.get(place)?.load(Ordering::Relaxed) {
                NONE => return None,
                number if rows[number as usize].at == at => return Some(number as usize),
                _ => place = self.next(place),
            }
        }
    }

    /// The place that a hash of a row names.
    #[inline(always)]
    fn first(&self, [y, z]: [i64; 2]) -> usize {
        let mixed = (y as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (z as u64).rotate_left(32);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ mixed >> 32) as usize & self.0.len().wrapping_sub(1)
    }

    /// The slot after `place`, around the end.
    #[inline(always)]
    fn next(&self, place: usize) -> usize {
        (place + 1) & self.0.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occupied_row_is_found_and_no_other() {
        let mut table = HashedTable::default();
        assert!(table.row(0, 0).is_none());
        for (points, wide) in [
            (1, false),
            (3 * TASK + 5, false),
            (2 * TASK, true),
            (1, true),
        ] {
            let spread = if wide { 1 << 40 } else { 40 };
            let coordinate = |k: usize| {
                let bits = (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                (bits % (2 * spread)) as i64 - spread as i64
            };
            let packing = Packing::new(CellBox::new([-(spread as i64); 3], [spread as i64; 3]));
            let mut sorted: Vec<(u128, u32)> = (0..points)
                .map(|k| {
                    // Four of them share a row.
                    let cell = [
                        coordinate(3 * k),
                        coordinate(k / 4 + 1),
                        coordinate(k / 4 + 2),
                    ];
                    assert_eq!(packing.cell(packing.key(cell)), cell);
                    (packing.key(cell), k as u32)
                })
                .collect();
            sorted.sort();
            if packing.bits() <= 64 {
                let narrow = sorted.iter().map(|&(key, index)| (u64::of(key), index));
                table.fill(&narrow.collect::<Vec<_>>(), &packing).unwrap();
            } else {
                table.fill(&sorted, &packing).unwrap()
            }
            let mut slot = 0;
            for place in 0..table.starts().len() - 1 {
                let cell = table.cell(place);
                let row = table.row(cell[1], cell[2]).unwrap().places();
                assert!(row.contains(&place));
                assert_eq!(row.start + table.before(row.clone(), cell[0]), place);
                assert!(row.map(|place| table.cell(place)).is_sorted());
                for slot in table.starts()[place]..table.starts()[place + 1] {
                    assert_eq!(packing.cell(sorted[slot as usize].0), cell);
                }
                assert_eq!(table.starts()[place], slot);
                slot = table.starts()[place + 1];
                let row = |at: [i64; 2]| {
                    sorted.iter().any(|item| {
                        let [_, y, z] = packing.cell(item.0);
                        [y, z] == at
                    })
                };
                if place % 997 == 0 {
                    let beside = [cell[1] + 1, cell[2]];
                    assert_eq!(table.row(beside[0], beside[1]).is_some(), row(beside));
                }
            }
            assert_eq!(slot as usize, points);
        }
    }
}
