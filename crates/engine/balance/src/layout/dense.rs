//! Work and bricks by way of dense tables over the cells' bounding box.
//!
//! Real clouds fill their box more or less, and then a table costs a few nanoseconds per cell
//! where sorting and looking rows up costs hundreds.
//!
//! # Work
//!
//! The candidates of a cell are the sources in its neighbour cells. They are summed row by row:
//! first the windows along x of every row, once per reach, by differences of a running sum; then
//! the windows of the rows that a row sees. So a cell costs one addition per row of the
//! neighbourhood. Numbers have 32 bits where all sums fit, which doubles the lanes of the vectors.
//!
//! # Neighbours
//!
//! Bricks near a brick are a product of the ranges near it along each axis. Taken in row order the
//! product is sorted and has no repeats, images included, so lists need no sorting. Sparse clouds
//! use [`OccupiedPlaces`](super::cells::OccupiedPlaces).
//!
//! # Tables
//!
//! A table of the cells' bounding box holds the windows of every row, one table per distinct reach
//! of the neighbourhood's rows: usually one to three. Another table over the bricks' box numbers
//! the occupied bricks in row order: the number of a brick is the count of occupied places before
//! it, by one prefix sum.
//!
//! # When it is used
//!
//! While the box has at most eight cells per occupied one, margins for the windows included. A
//! cloud with outliers has a vast box and is walked by rows instead; both give the same bricks,
//! the same work and the same lists, which a test compares.

use super::{
    bricks::{Brick, Bricks, CellLoad},
    cells::{Bounds, Neighbourhood},
};
use crate::{Error, ErrorKind};
use nearfield_grid::memory::{
    Shortage, collected, filled, make_room, make_room_for_one, with_room,
};
use std::ops::{AddAssign, Range, Sub};

/// The name of the memory in messages.
const NEAR: &str = "bricks near each other";
/// The name of the memory in messages.
const TABLES: &str = "tables of cells and bricks";

/// Maximum number of cells of a dense box, margins included, per occupied one.
const SPARSEST: u128 = 8;

/// A box of places and its numbering, x fastest.
///
/// Sizes are numbers of places, so an index is at most a product that [`Extent::of_dense`] has
/// bounded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// The smallest place.
    low: [i64; 3],
    /// Places along each axis.
    size: [usize; 3],
}

impl Extent {
    /// The box of `cells` occupied ones within `bounds`, if they fill it well enough.
    pub(crate) fn of_dense(bounds: &Bounds, cells: usize, near: &Neighbourhood) -> Option<Self> {
        let Bounds { low, high } = *bounds;
        let reach = near.rows.iter().map(|row| row.reach).max().unwrap_or(0);
        let mut volume = 1;
        for axis in 0..3 {
            let size = high[axis].checked_sub(low[axis])? as u128 + 1;
            let margins = if axis == 0 { 2 * reach.max(0) } else { 0 };
            volume *= size + margins as u128;
            if volume > SPARSEST * cells as u128 {
                return None;
            }
        }
        let size = std::array::from_fn(|axis| (high[axis] - low[axis] + 1) as usize);
        Some(Self { low, size })
    }

    /// The bricks that hold these cells.
    fn of_bricks(&self, edge: i64) -> Self {
        let low = self.low.map(|axis| axis.div_euclid(edge));
        let size = std::array::from_fn(|axis| {
            let last = self.low[axis] + self.size[axis] as i64 - 1;
            (last.div_euclid(edge) - low[axis] + 1) as usize
        });
        Self { low, size }
    }

    /// The row at offset (y, z) from row (y, z), where there is one in the box.
    fn row_at(&self, of: [usize; 2], offset: [i64; 2], near: &Neighbourhood) -> Option<usize> {
        let [y, z] = [1, 2].map(|axis| {
            let low = self.low[axis];
            let at = low + of[axis - 1] as i64 + offset[axis - 1];
            let at = near.periods[axis].map_or(at, |period| at.rem_euclid(period)) - low;
            usize::try_from(at).ok().filter(|&at| at < self.size[axis])
        });
        Some(z? * self.size[1] + y?)
    }
}

/// The cells of a row.
///
/// Rows of cells are consecutive in the input, so a row is a range of it.
struct Row {
    /// Position of the row in the box.
    y: usize,
    /// Position of the row in the box along z.
    z: usize,
    /// Its cells.
    cells: Range<usize>,
}

/// The rows of cells that come in row order.
fn rows_of(cells: &[CellLoad], extent: &Extent) -> Result<Vec<Row>, Shortage> {
    let mut first = 0;
    let rows = cells
        .chunk_by(|a, b| a.cell[1] == b.cell[1] && a.cell[2] == b.cell[2])
        .map(|row| {
            let [_, y, z] = row[0].cell;
            let cells = first..first + row.len();
            first = cells.end;
            Row {
                y: (y - extent.low[1]) as usize,
                z: (z - extent.low[2]) as usize,
                cells,
            }
        });
    collected(rows, TABLES)
}

/// Bricks of cells, which come in row order and each once, and which bricks lie near each other.
///
/// # Errors
/// [`ErrorKind::TooManyPoints`], [`ErrorKind::Memory`].
pub(crate) fn bricks(
    cells: &[CellLoad],
    near: &Neighbourhood,
    edge: i64,
    extent: &Extent,
) -> Result<Bricks, Error> {
    let sources: u64 = cells.iter().map(|load| u64::from(load.sources)).sum();
    // How often a source can count for a cell: with every row and every image.
    let times = near.rows.iter().fold(0u64, |times, row| {
        let images = near.periods[0].map_or(0, |period| 2 * row.reach.max(0) / period + 1);
        times.saturating_add(images as u64 + 1)
    });
    match u32::try_from(sources.saturating_mul(times)) {
        Ok(_) => summed::<u32>(cells, near, edge, extent),
        Err(_) => summed::<u64>(cells, near, edge, extent),
    }
}

/// Numbers that sources are added up in: 32 bits where every sum fits, which is known beforehand,
/// else 64.
trait Sum: Copy + Default + AddAssign + Sub<Output = Self> + From<u32> + Into<u64> {}
impl Sum for u32 {}
impl Sum for u64 {}

/// The bricks with their work, summed in numbers of type `T`. One pass over the rows of cells:
/// candidates of the row, then work of its cells, added to their bricks.
fn summed<T: Sum>(
    cells: &[CellLoad],
    near: &Neighbourhood,
    edge: i64,
    extent: &Extent,
) -> Result<Bricks, Error> {
    let rows = rows_of(cells, extent)?;
    let width = extent.size[0];
    let windows = windows::<T>(cells, &rows, near, extent)?;
    let table = Table::new(cells, &rows, extent, edge)?;
    let mut bricks = table.empty_bricks()?;
    let mut overflow: Option<usize> = None;
    let mut candidates = filled(width, T::default(), TABLES)?;
    // Candidates of every cell of the row, from the windows of all rows around it.
    for row in &rows {
        candidates.fill(T::default());
        for (reach, offset) in &windows.offsets {
            if let Some(other) = extent.row_at([row.y, row.z], [offset.0, offset.1], near) {
                let seen = &windows.by_reach[*reach][other * width..(other + 1) * width];
                for (sum, &window) in candidates.iter_mut().zip(seen) {
                    *sum += window;
                }
            }
        }
        let numbers = table.row(row);
        for load in &cells[row.cells.clone()] {
            let x = (load.cell[0] - extent.low[0]) as usize;
            let number = numbers[table.along[0][x] as usize] as usize;
            let brick = &mut bricks[number];
            let work = candidates[x].into().saturating_mul(u64::from(load.targets));
            brick.cells += 1;
            brick.work = brick.work.saturating_add(work);
            let (targets, many) = brick.targets.overflowing_add(load.targets);
            let (sources, found) = brick.sources.overflowing_add(load.sources);
            (brick.targets, brick.sources) = (targets, sources);
            if many | found {
                overflow = overflow.max(Some(number));
            }
        }
    }
    match overflow {
        Some(number) => Err(ErrorKind::TooManyPoints {
            at: bricks[number].at,
        }
        .into()),
        None => Ok(connected(bricks, &table, &near.of_bricks(edge)?)?),
    }
}

/// Sources in the window around every cell of every row.
///
/// A window of a cell counts the sources from `reach` cells before it to `reach` cells behind it.
struct Windows<T> {
    /// A table per distinct reach.
    by_reach: Vec<Vec<T>>,
    /// Which of them each row of the neighbourhood looks into, and where that row is.
    offsets: Vec<(usize, (i64, i64))>,
}

/// The windows of all rows, one table per distinct reach.
fn windows<T: Sum>(
    cells: &[CellLoad],
    rows: &[Row],
    near: &Neighbourhood,
    extent: &Extent,
) -> Result<Windows<T>, Shortage> {
    let [width, height, depth] = extent.size;
    // A row of negative reach has no cells.
    let reaches = near.rows.iter().map(|row| row.reach);
    let mut reaches = collected(reaches.filter(|&reach| reach >= 0), TABLES)?;
    reaches.sort_unstable();
    reaches.dedup();
    let offsets = near.rows.iter().filter_map(|row| {
        let reach = reaches.binary_search(&row.reach).ok()?;
        Some((reach, (row.y, row.z)))
    });
    let offsets = collected(offsets, TABLES)?;
    let mut by_reach = with_room(reaches.len(), TABLES)?;
    for reach in reaches {
        let mut slider = Slider::new(extent, near, reach as usize)?;
        let mut windows = filled(width * height * depth, T::default(), TABLES)?;
        for row in rows {
            let first = (row.z * height + row.y) * width;
            slider.slide(
                &cells[row.cells.clone()],
                extent.low[0],
                &mut windows[first..first + width],
            );
        }
        by_reach.push(windows);
    }
    Ok(Windows { by_reach, offsets })
}

/// Sums over windows of `2 · reach + 1` cells of a row, periodic images counted.
///
/// Periodic images are margins: the cells within reach beyond either end of the row are copies of
/// those at the other end, where the box ends there.
struct Slider<T> {
    /// Cells to either side.
    reach: usize,
    /// Which cells of the row are those before and behind it, as places in `before` both.
    images: Vec<(usize, usize)>,
    /// The row with its margins; then the sum of everything before each of its cells.
    before: Vec<T>,
}

impl<T: Sum> Slider<T> {
    /// The numbers of the bricks that hold the cells.
    fn new(extent: &Extent, near: &Neighbourhood, reach: usize) -> Result<Self, Shortage> {
        let (low, width) = (extent.low[0], extent.size[0]);
        let image_of = |place: usize| {
            let x = low + place as i64 - reach as i64;
            let inside = near.periods[0].map(|period| x.rem_euclid(period) - low)?;
            let inside = usize::try_from(inside).ok().filter(|&at| at < width)?;
            Some((place, inside + reach))
        };
        let margins = (0..reach).chain(width + reach..width + 2 * reach);
        Ok(Self {
            reach,
            images: collected(margins.filter_map(image_of), TABLES)?,
            before: filled(width + 2 * reach + 1, T::default(), TABLES)?,
        })
    }

    /// Writes the sums of all windows of a row of cells.
    fn slide(&mut self, cells: &[CellLoad], low: i64, windows: &mut [T]) {
        self.before.fill(T::default());
        for load in cells {
            self.before[(load.cell[0] - low) as usize + self.reach] = T::from(load.sources);
        }
        for &(image, of) in &self.images {
            self.before[image] = self.before[of];
        }
        let mut sum = T::default();
        for place in &mut self.before {
            let here = *place;
            *place = sum;
            sum += here;
        }
        let ends = &self.before[2 * self.reach + 1..];
        for ((window, &end), &start) in windows.iter_mut().zip(ends).zip(&self.before) {
            *window = end - start;
        }
    }
}

/// The numbers of bricks by place.
///
/// Positions of cells are mapped to those of bricks by a look-up per axis, not by divisions.
struct Table {
    /// The box of bricks.
    extent: Extent,
    /// For each axis and place of a cell along it the place of its brick.
    along: [Vec<u32>; 3],
    /// Bricks before each place of the box, and at the end all.
    before: Vec<u32>,
}

impl Table {
    fn new(
        cells: &[CellLoad],
        rows: &[Row],
        of_cells: &Extent,
        edge: i64,
    ) -> Result<Self, Shortage> {
        let extent = of_cells.of_bricks(edge);
        let along = |axis: usize| {
            let low = of_cells.low[axis];
            let cells = low..low + of_cells.size[axis] as i64;
            let places = cells.map(|at| (at.div_euclid(edge) - extent.low[axis]) as u32);
            collected(places, TABLES)
        };
        let mut table = Self {
            extent,
            along: [along(0)?, along(1)?, along(2)?],
            before: filled(extent.size.iter().product::<usize>() + 1, 0, TABLES)?,
        };
        for row in rows {
            let first = table.first_of(row);
            for load in &cells[row.cells.clone()] {
                let x = table.along[0][(load.cell[0] - of_cells.low[0]) as usize];
                table.before[first + x as usize] = 1;
            }
        }
        let mut count = 0;
        for place in &mut table.before {
            count += std::mem::replace(place, count);
        }
        Ok(table)
    }

    /// Where the row of bricks begins in which a row of cells lies.
    fn first_of(&self, row: &Row) -> usize {
        let [y, z] = [self.along[1][row.y], self.along[2][row.z]];
        (z as usize * self.extent.size[1] + y as usize) * self.extent.size[0]
    }

    /// Numbers of the bricks of a row of cells.
    fn row(&self, row: &Row) -> &[u32] {
        &self.before[self.first_of(row)..]
    }

    /// The occupied bricks, without points.
    fn empty_bricks(&self) -> Result<Vec<Brick>, Shortage> {
        let [width, height, _] = self.extent.size;
        let places = self.before.len() - 1;
        let occupied = (0..places).filter(|&at| self.before[at] != self.before[at + 1]);
        let bricks = occupied.map(|at| {
            let at = [at % width, at / width % height, at / width / height];
            Brick {
                at: std::array::from_fn(|axis| self.extent.low[axis] + at[axis] as i64),
                cells: 0,
                targets: 0,
                sources: 0,
                work: 0,
            }
        });
        collected(bricks, TABLES)
    }
}

/// Lists the bricks near each brick: the product of the ranges near it along the three axes. Rows
/// of the product are found once for all bricks of a row.
fn connected(bricks: Vec<Brick>, table: &Table, near: &Neighbourhood) -> Result<Bricks, Shortage> {
    let extent = &table.extent;
    // Neighbourhoods of bricks are whole boxes.
    let corner = near.rows[near.rows.len() - 1];
    let reach = [corner.reach, corner.y, corner.z];
    let along = |axis: usize| {
        let places = 0..extent.size[axis];
        let ranges = places.map(|at| along(axis, at, reach[axis], near, extent));
        collected(ranges, NEAR)
    };
    let [along_x, along_y, along_z] = [along(0)?, along(1)?, along(2)?];
    let mut starts = with_room(bricks.len() + 1, NEAR)?;
    starts.push(0);
    let mut lists = Lists::new(bricks.len())?;
    let mut rows: Vec<&[u32]> = Vec::new();
    for row in bricks.chunk_by(|a, b| a.at[1] == b.at[1] && a.at[2] == b.at[2]) {
        let [_, y, z] = row[0].at;
        let [y, z] = [y - extent.low[1], z - extent.low[2]].map(|at| at as usize);
        rows.clear();
        for z in along_z[z].iter().cloned().flatten() {
            for y in along_y[y].iter().cloned().flatten() {
                let first = (z * extent.size[1] + y) * extent.size[0];
                make_room_for_one(&mut rows, NEAR)?;
                rows.push(&table.before[first..=first + extent.size[0]]);
            }
        }
        for brick in row {
            let ranges = &along_x[(brick.at[0] - extent.low[0]) as usize];
            for row in &rows {
                for x in ranges.iter().filter(|x| !x.is_empty()) {
                    lists.push(row[x.start]..row[x.end])?;
                }
            }
            starts.push(lists.length);
        }
    }
    Ok(Bricks {
        bricks,
        starts,
        near: lists.finish(),
    })
}

/// Numbers near each brick. Four are written at a time, and the next ones overwrite the excess.
///
/// Most lists are short runs of three consecutive numbers; writing four at a time needs no loop.
struct Lists {
    /// The numbers, with room behind.
    numbers: Vec<u32>,
    /// Numbers in use.
    length: usize,
}

impl Lists {
    /// Entries of room behind the lists.
    const ROOM: usize = 64;

    /// With room for bricks that have one neighbour to each side.
    fn new(bricks: usize) -> Result<Self, Shortage> {
        Ok(Self {
            numbers: filled(bricks * 27 + Self::ROOM, 0, NEAR)?,
            length: 0,
        })
    }

    /// Appends consecutive numbers to the last list.
    fn push(&mut self, numbers: Range<u32>) -> Result<(), Shortage> {
        let first = numbers.start;
        let four = self.numbers[self.length..].first_chunk_mut();
        match four {
            Some(four) if numbers.len() <= 4 => {
                *four = [0, 1, 2, 3].map(|more| first.wrapping_add(more));
                self.length += numbers.len();
            }
            _ => {
                let length = self.length + numbers.len();
                let room = length + length / 2 + Self::ROOM;
                make_room(&mut self.numbers, room, NEAR)?;
                self.numbers.truncate(self.length);
                self.numbers.extend(numbers);
                self.length = length;
                self.numbers.resize(room, 0);
            }
        }
        Ok(())
    }

    /// The lists without the room behind them.
    fn finish(mut self) -> Vec<u32> {
        self.numbers.truncate(self.length);
        self.numbers
    }
}

/// The places within `reach` of a place along an axis, in ascending ranges of places of the box,
/// some of them empty.
///
/// A range that crosses the end of a periodic axis becomes two; a reach of the whole box becomes
/// the box once.
fn along(
    axis: usize,
    at: usize,
    reach: i64,
    near: &Neighbourhood,
    extent: &Extent,
) -> [Range<usize>; 2] {
    let (low, size) = (extent.low[axis], extent.size[axis] as i64);
    let at = low + at as i64;
    let (first, last) = (at - reach, at + reach);
    let ranges = match near.periods[axis] {
        None => [first..last + 1, 0..0],
        Some(period) if last - first + 1 >= period => [0..period, 0..0],
        Some(period) => match (first.rem_euclid(period), last.rem_euclid(period)) {
            (first, last) if first <= last => [first..last + 1, 0..0],
            (first, last) => [0..last + 1, first..period],
        },
    };
    let clamped = |edge: i64| (edge - low).clamp(0, size) as usize;
    ranges.map(|range| clamped(range.start)..clamped(range.end))
}
