//! The work model: bricks of cells, and how many pairs each has to test.
//!
//! Work of a cell = its targets × the sources in its neighbour cells, every periodic image
//! counted: the pairs that are tested, not the points. A brick sums its cells. Points of several
//! sets are counted together: points that search are targets, points that are found are sources.
//!
//! Work is the quantity that predicts time. Two subregions with equal numbers of points may differ
//! tenfold in work where one is dense.
//!
//! # Two ways
//!
//! Cells come in any order and more than once, one time per set. They are brought into row order
//! first, which costs little because they come as few ascending runs ([`super::merge`]). A box
//! that cells fill is then handled by tables ([`super::dense`]), any other by walking rows.
//!
//! # Overflow
//!
//! Counts have 32 bits and are checked; work has 64 bits and saturates, because a work of 2⁶⁴
//! pairs is only ever compared.

use super::{
    bricks::{Brick, Bricks, CellLoad},
    cells::{Bounds, Neighbourhood, OccupiedPlaces, row_order},
    dense::{self, Extent},
    merge::sort_runs,
};
use crate::{Error, ErrorKind};
use nearfield_grid::memory::{Shortage, collected, copied, filled};
use std::ops::Range;

/// The name of the memory in messages.
const CELLS: &str = "occupied cells";
/// The name of the memory in messages.
const BRICKS: &str = "bricks";
/// The name of the memory in messages.
const NEAR: &str = "bricks near each other";

impl Bricks {
    /// Bricks of `edge`³ cells. Cells may come in any order and more than once (several sets).
    ///
    /// # Errors
    /// [`ErrorKind::BrickEdge`], [`ErrorKind::Neighbourhood`], [`ErrorKind::Cell`],
    /// [`ErrorKind::FarCell`], [`ErrorKind::TooManyPoints`], [`ErrorKind::Memory`].
    pub fn new(
        cells: impl IntoIterator<Item = CellLoad>,
        near: &Neighbourhood,
        edge: u32,
    ) -> Result<Self, Error> {
        if edge == 0 {
            return Err(ErrorKind::BrickEdge.into());
        }
        near.check()?;
        let edge = i64::from(edge);
        let (cells, bounds) = merged(cells, near)?;
        match Extent::of_dense(&bounds, cells.len(), near) {
            Some(extent) => dense::bricks(&cells, near, edge, &extent),
            None => {
                let work = work_of_cells(&cells, near)?;
                Ok(Self::connected(gather(&cells, &work, edge)?, near, edge)?)
            }
        }
    }

    /// Finds the bricks near each other by walking rows.
    fn connected(bricks: Vec<Brick>, near: &Neighbourhood, edge: i64) -> Result<Self, Shortage> {
        let places = OccupiedPlaces::new(bricks.iter().map(|brick| brick.at))?;
        let near_bricks = near.of_bricks(edge)?;
        let mut starts = filled(bricks.len() + 1, 0, NEAR)?;
        places.windows(&near_bricks, |brick, window| {
            starts[brick + 1] += window.len()
        });
        for brick in 0..bricks.len() {
            starts[brick + 1] += starts[brick];
        }
        let mut near = filled(starts[bricks.len()], 0, NEAR)?;
        let mut ends = copied(&starts, NEAR)?;
        places.windows(&near_bricks, |brick, window| {
            for other in window {
                near[ends[brick]] = other as u32;
                ends[brick] += 1;
            }
        });
        let mut all = Self {
            bricks,
            starts,
            near,
        };
        // Where the box is small a brick is met through several images.
        if near_bricks.periods.iter().any(Option::is_some) {
            all.drop_repeats();
        }
        Ok(all)
    }

    /// Sorts every list and drops bricks that stand in it several times.
    fn drop_repeats(&mut self) {
        let mut kept = 0;
        let mut first = 0;
        for brick in 0..self.bricks.len() {
            let last = self.starts[brick + 1];
            self.near[first..last].sort_unstable();
            self.starts[brick] = kept;
            for at in first..last {
                if at == first || self.near[at] != self.near[at - 1] {
                    self.near[kept] = self.near[at];
                    kept += 1;
                }
            }
            first = last;
        }
        self.starts[self.bricks.len()] = kept;
        self.near.truncate(kept);
    }
}

/// Cells in row order, each once with the sums of its counts, and their bounds.
fn merged(
    cells: impl IntoIterator<Item = CellLoad>,
    near: &Neighbourhood,
) -> Result<(Vec<CellLoad>, Bounds), Error> {
    let mut cells = collected(cells, CELLS)?;
    let bounds = Bounds::of(cells.iter().map(|load| load.cell));
    bounds.check(cells.iter().map(|load| load.cell), &near.periods)?;
    if cells.is_sorted_by(|a, b| row_order(&a.cell) < row_order(&b.cell)) {
        return Ok((cells, bounds));
    }
    sort_runs(&mut cells, |load| row_order(&load.cell), CELLS)?;
    let mut overflow = None;
    cells.dedup_by(|next, kept| {
        next.cell == kept.cell && {
            add_points(
                [&mut kept.targets, &mut kept.sources],
                [next.targets, next.sources],
            )
            .unwrap_or_else(|| overflow = Some(next.cell));
            true
        }
    });
    match overflow {
        Some(cell) => Err(ErrorKind::TooManyPoints { at: cell }.into()),
        None => Ok((cells, bounds)),
    }
}

/// Adds counts of targets and sources; `None` if they do not fit.
fn add_points(kept: [&mut u32; 2], next: [u32; 2]) -> Option<()> {
    for (kept, next) in kept.into_iter().zip(next) {
        *kept = kept.checked_add(next)?;
    }
    Some(())
}

/// Pairs tested by the targets of each cell. Sources before each cell are summed once, so a window
/// counts by one difference.
fn work_of_cells(cells: &[CellLoad], near: &Neighbourhood) -> Result<Vec<u64>, Shortage> {
    let mut before = filled(cells.len() + 1, 0u64, CELLS)?;
    for (at, load) in cells.iter().enumerate() {
        before[at + 1] = before[at] + u64::from(load.sources);
    }
    let mut work = filled(cells.len(), 0u64, CELLS)?;
    let places = OccupiedPlaces::new(cells.iter().map(|load| load.cell))?;
    places.windows(near, |cell, window: Range<usize>| {
        work[cell] += before[window.end] - before[window.start];
    });
    for (work, load) in work.iter_mut().zip(cells) {
        *work = work.saturating_mul(u64::from(load.targets));
    }
    Ok(work)
}

/// Sums cells to bricks, in row order. Cells of a brick are not consecutive in row order, so
/// bricks are sorted once more; a stable sort of few runs.
fn gather(cells: &[CellLoad], work: &[u64], edge: i64) -> Result<Vec<Brick>, Error> {
    let single = cells.iter().zip(work).map(|(load, &work)| Brick {
        at: load.cell.map(|axis| axis.div_euclid(edge)),
        cells: 1,
        targets: load.targets,
        sources: load.sources,
        work,
    });
    let mut bricks = collected(single, BRICKS)?;
    sort_runs(&mut bricks, |brick| row_order(&brick.at), BRICKS)?;
    let mut overflow = None;
    bricks.dedup_by(|next, kept| {
        next.at == kept.at && {
            kept.cells += 1;
            kept.work = kept.work.saturating_add(next.work);
            add_points(
                [&mut kept.targets, &mut kept.sources],
                [next.targets, next.sources],
            )
            .unwrap_or_else(|| overflow = Some(next.at));
            true
        }
    });
    match overflow {
        Some(brick) => Err(ErrorKind::TooManyPoints { at: brick }.into()),
        None => Ok(bricks),
    }
}
