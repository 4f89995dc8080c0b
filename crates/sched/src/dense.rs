//! Work and bricks by way of dense tables over the cells' bounding box.
//!
//! Real clouds fill their box more or less, and then a table costs a few nanoseconds per cell where
//! sorting and looking rows up costs hundreds. Candidates are summed row by row: first the windows
//! along x of every row, once per reach, then the rows of windows that a row of cells sees. Bricks
//! near a brick are a product of what is near along each axis; taken in row order it is sorted and
//! has no repeats, images included. Sparse clouds go the way of [`Places`](crate::cells::Places).

use crate::{
    Brick, CellLoad, Error,
    cells::Neighbourhood,
    work::{Bricks, add_points},
};
use std::ops::Range;

/// A box is dense with at most so many cells in it, empty margins included, per occupied one.
const SPARSEST: u128 = 8;

/// A box of places and its numbering, x fastest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    low: [i64; 3],
    size: [usize; 3],
}

impl Extent {
    /// The bounding box of `cells` if they fill it well enough.
    pub(crate) fn of_dense(cells: &[CellLoad], near: &Neighbourhood) -> Option<Self> {
        let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
        for load in cells {
            for axis in 0..3 {
                low[axis] = low[axis].min(load.cell[axis]);
                high[axis] = high[axis].max(load.cell[axis]);
            }
        }
        let margin = near.rows.iter().map(|row| row.reach).max().unwrap_or(0);
        let mut volume = 1;
        for axis in 0..3 {
            let size = high[axis].checked_sub(low[axis])? as u128 + 1;
            let margin = if axis == 0 { 2 * margin.max(0) } else { 0 };
            volume *= size + margin as u128;
            if volume > SPARSEST * cells.len() as u128 {
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

    fn volume(&self) -> usize {
        self.size.iter().product()
    }

    /// Number of the row in which a place is, and its place in the row.
    fn row_of(&self, at: [i64; 3]) -> (usize, usize) {
        let [x, y, z]: [usize; 3] =
            std::array::from_fn(|axis| (at[axis] - self.low[axis]) as usize);
        (z * self.size[1] + y, x)
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

/// Pairs tested by the targets of each cell; `cells` in row order, each once.
pub(crate) fn work_of_cells(cells: &[CellLoad], near: &Neighbourhood, extent: &Extent) -> Vec<u64> {
    let candidates = candidates(cells, near, extent);
    cells
        .iter()
        .map(|load| {
            let (row, x) = extent.row_of(load.cell);
            candidates[row * extent.size[0] + x].saturating_mul(u64::from(load.targets))
        })
        .collect()
}

/// Sources in the neighbour cells of every cell of the box that is in an occupied row.
fn candidates(cells: &[CellLoad], near: &Neighbourhood, extent: &Extent) -> Vec<u64> {
    let [width, height, depth] = extent.size;
    let mut sources = vec![0u32; extent.volume()];
    let mut occupied = vec![false; height * depth];
    for load in cells {
        let (row, x) = extent.row_of(load.cell);
        sources[row * width + x] = load.sources;
        occupied[row] = true;
    }
    let mut candidates = vec![0u64; extent.volume()];
    let mut windows = vec![0u64; extent.volume()];
    let mut reaches: Vec<i64> = near.rows.iter().map(|row| row.reach).collect();
    reaches.sort_unstable();
    reaches.dedup();
    // A row of negative reach has no cells.
    for reach in reaches.into_iter().filter(|&reach| reach >= 0) {
        let mut slider = Slider::new(extent, near, reach as usize);
        for row in (0..height * depth).filter(|&row| occupied[row]) {
            let row = row * width..(row + 1) * width;
            slider.slide(&sources[row.clone()], &mut windows[row]);
        }
        for offset in near.rows.iter().filter(|offset| offset.reach == reach) {
            for row in (0..height * depth).filter(|&row| occupied[row]) {
                let at = [row % height, row / height];
                match extent.row_at(at, [offset.y, offset.z], near) {
                    Some(other) if occupied[other] => {
                        let sums = &mut candidates[row * width..(row + 1) * width];
                        let windows = &windows[other * width..(other + 1) * width];
                        for (sum, window) in sums.iter_mut().zip(windows) {
                            *sum += window;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    candidates
}

/// Sums over windows of `2 · reach + 1` cells of a row, periodic images counted.
struct Slider {
    reach: usize,
    /// Where the cells before and behind the row are in it.
    margins: [Vec<Option<usize>>; 2],
    /// Sum of all cells before each, from the first of the margin on.
    before: Vec<u64>,
}

impl Slider {
    fn new(extent: &Extent, near: &Neighbourhood, reach: usize) -> Self {
        let (low, width) = (extent.low[0], extent.size[0]);
        let inside = |x: i64| {
            let x = low + x;
            let at = near.periods[0].map(|period| x.rem_euclid(period) - low)?;
            usize::try_from(at).ok().filter(|&at| at < width)
        };
        let (reach_i64, width_i64) = (reach as i64, width as i64);
        Self {
            reach,
            margins: [
                (-reach_i64..0).map(inside).collect(),
                (width_i64..width_i64 + reach_i64).map(inside).collect(),
            ],
            before: vec![0; width + 2 * reach + 1],
        }
    }

    fn slide(&mut self, row: &[u32], windows: &mut [u64]) {
        let margin = |at: &Option<usize>| at.map_or(0, |at| row[at]);
        let left = self.margins[0].iter().map(margin);
        let right = self.margins[1].iter().map(margin);
        let mut sum = 0;
        let cells = left.chain(row.iter().copied()).chain(right);
        for (before, sources) in self.before[1..].iter_mut().zip(cells) {
            sum += u64::from(sources);
            *before = sum;
        }
        let ends = &self.before[2 * self.reach + 1..];
        for ((window, end), start) in windows.iter_mut().zip(ends).zip(&self.before) {
            *window = end - start;
        }
    }
}

/// Bricks of cells in row order, and who is near whom.
///
/// # Errors
/// [`Error::TooManyPoints`].
pub(crate) fn bricks(
    cells: &[CellLoad],
    work: &[u64],
    near: &Neighbourhood,
    edge: i64,
    extent: &Extent,
) -> Result<Bricks, Error> {
    let box_of_bricks = extent.of_bricks(edge);
    let place = places_of_bricks(extent, &box_of_bricks, edge);
    let mut before = vec![0u32; box_of_bricks.volume() + 1];
    for load in cells {
        before[place(load.cell) + 1] = 1;
    }
    let mut bricks = Vec::new();
    for z in 0..box_of_bricks.size[2] {
        for y in 0..box_of_bricks.size[1] {
            let row = (z * box_of_bricks.size[1] + y) * box_of_bricks.size[0];
            for x in 0..box_of_bricks.size[0] {
                if before[row + x + 1] > 0 {
                    let at = [x, y, z];
                    bricks.push(Brick {
                        at: std::array::from_fn(|i| box_of_bricks.low[i] + at[i] as i64),
                        cells: 0,
                        targets: 0,
                        sources: 0,
                        work: 0,
                    });
                }
                before[row + x + 1] = bricks.len() as u32;
            }
        }
    }
    let mut overflow: Option<usize> = None;
    for (load, &work) in cells.iter().zip(work) {
        let number = before[place(load.cell)] as usize;
        let brick = &mut bricks[number];
        brick.cells += 1;
        brick.work = brick.work.saturating_add(work);
        add_points(
            [&mut brick.targets, &mut brick.sources],
            [load.targets, load.sources],
        )
        .unwrap_or_else(|| overflow = overflow.max(Some(number)));
    }
    match overflow {
        Some(number) => Err(Error::TooManyPoints {
            at: bricks[number].at,
        }),
        None => Ok(connected(
            bricks,
            &before,
            &near.of_bricks(edge),
            &box_of_bricks,
        )),
    }
}

/// From a cell to the place of its brick in the box of bricks, by tables instead of divisions.
fn places_of_bricks(
    extent: &Extent,
    bricks: &Extent,
    edge: i64,
) -> impl Fn([i64; 3]) -> usize + use<> {
    let steps = [1, bricks.size[0], bricks.size[0] * bricks.size[1]];
    let tables: [Vec<usize>; 3] = std::array::from_fn(|axis| {
        (extent.low[axis]..extent.low[axis] + extent.size[axis] as i64)
            .map(|at| (at.div_euclid(edge) - bricks.low[axis]) as usize * steps[axis])
            .collect()
    });
    let low = extent.low;
    move |cell| {
        let at = |axis: usize| tables[axis][(cell[axis] - low[axis]) as usize];
        at(0) + at(1) + at(2)
    }
}

/// Lists the bricks near each, from how many there are `before` each place of the box.
fn connected(bricks: Vec<Brick>, before: &[u32], near: &Neighbourhood, extent: &Extent) -> Bricks {
    // Neighbourhoods of bricks are whole boxes.
    let corner = near.rows[near.rows.len() - 1];
    let reach = [corner.reach, corner.y, corner.z];
    let [along_x, along_y, along_z]: [Vec<Vec<Range<usize>>>; 3] = std::array::from_fn(|axis| {
        (0..extent.size[axis])
            .map(|at| along(axis, at, reach[axis], near, extent))
            .collect()
    });
    let mut starts = Vec::with_capacity(bricks.len() + 1);
    starts.push(0);
    let mut all: Vec<u32> = Vec::with_capacity(bricks.len() * 27);
    for brick in &bricks {
        let at: [usize; 3] =
            std::array::from_fn(|axis| (brick.at[axis] - extent.low[axis]) as usize);
        for z in along_z[at[2]].iter().cloned().flatten() {
            for y in along_y[at[1]].iter().cloned().flatten() {
                let row = &before[(z * extent.size[1] + y) * extent.size[0]..];
                for x in &along_x[at[0]] {
                    all.extend(row[x.start]..row[x.end]);
                }
            }
        }
        starts.push(all.len());
    }
    Bricks::from_lists(bricks, starts, all)
}

/// What lies within `reach` of a place along an axis, in ascending ranges of places of the box.
fn along(
    axis: usize,
    at: usize,
    reach: i64,
    near: &Neighbourhood,
    extent: &Extent,
) -> Vec<Range<usize>> {
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
    ranges
        .into_iter()
        .map(|range| {
            let clamped = |edge: i64| (edge - low).clamp(0, size) as usize;
            clamped(range.start)..clamped(range.end)
        })
        .filter(|range| !range.is_empty())
        .collect()
}
