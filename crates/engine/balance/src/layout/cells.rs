//! Occupied places of a lattice (cells, or bricks of them), and which of them lie near each other.
//!
//! Places are kept in row order, x fastest. The places near one are windows of rows, so rows are
//! found once per row and the windows slide along: two pointers that only move forward. The cost
//! is proportional to the number of occupied places times the rows of the neighbourhood, whatever
//! the volume.
//!
//! # Windows
//!
//! For a place at x and a row around it, the places within reach are a range of that row. As x
//! rises along a row both ends of the range only move forward, so all windows of a pair of rows
//! cost as much as the two rows together. Periodic images of the box along x are further windows
//! of the same row, shifted by whole periods.
//!
//! # Limits
//!
//! Cells farther than 2⁶⁰ from the origin and neighbourhoods wider than 2²⁰ cells are refused, so
//! no sum of coordinates overflows.

use crate::{Error, ErrorKind};
use nearfield_grid::memory::{Shortage, collected, make_room, make_room_for_one};
use std::{collections::HashMap, ops::Range};

/// Cells `x − reach ..= x + reach` of the row at offset (y, z).
///
/// The same as a row of the grid's lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowOffset {
    /// Offset along y, in cells.
    pub y: i64,
    /// Offset along z, in cells.
    pub z: i64,
    /// Largest offset along x, in cells.
    pub reach: i64,
}

/// The cells that hold candidates of a cell, as the grid's lattice defines them.
///
/// It is symmetric: a cell is a candidate of its own candidates. Halo and uploads rely on that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Rows around a cell; symmetric: with (y, z) also (−y, −z).
    pub rows: Vec<RowOffset>,
    /// Cells along each periodic axis; `None` where the axis is open.
    pub periods: [Option<i64>; 3],
}

impl Neighbourhood {
    /// All cells within `reach` along every axis, on open axes.
    ///
    /// A neighbourhood for tests and examples; engines pass the lattice's rows.
    pub fn cube(reach: i64) -> Self {
        let rows = (-reach..=reach)
            .flat_map(|z| (-reach..=reach).map(move |y| RowOffset { y, z, reach }))
            .collect();
        Self {
            rows,
            periods: [None; 3],
        }
    }

    /// Refuses a neighbourhood that could not be walked.
    ///
    /// Periods must be at least one cell, and offsets at most 2²⁰.
    pub(crate) fn check(&self) -> Result<(), Error> {
        /// Rows farther away than this are refused.
        const FARTHEST: i64 = 1 << 20;
        for (axis, cells) in self.periods.iter().enumerate() {
            if cells.is_some_and(|cells| !(1..=FARTHEST_CELL).contains(&cells)) {
                let what =
                    format!("{cells:?} cells along periodic axis {axis}: at least 1 is needed");
                return Err(ErrorKind::Neighbourhood { what }.into());
            }
        }
        let near = |offset: i64| (-FARTHEST..=FARTHEST).contains(&offset);
        match self
            .rows
            .iter()
            .find(|row| !(near(row.y) && near(row.z) && near(row.reach)))
        {
            None => Ok(()),
            Some(row) => Err(ErrorKind::Neighbourhood {
                what: format!("{row:?}: at most {FARTHEST} cells away are searched"),
            }
            .into()),
        }
    }

    /// Bricks of `edge`³ cells that hold a cell of the neighbourhood of one of a brick's cells: at
    /// least these. A periodic axis may end in a brick of fewer cells, so that one more is in
    /// reach.
    ///
    /// The result is a box of bricks, which may hold some that no cell reaches; a halo that is too
    /// large costs little, one that is too small would be wrong.
    pub(crate) fn of_bricks(&self, edge: i64) -> Result<Self, Shortage> {
        let mut reach = [0; 3];
        for row in &self.rows {
            let row = [row.reach, row.y.abs(), row.z.abs()];
            reach = std::array::from_fn(|axis| reach[axis].max(row[axis]));
        }
        let bricks: [i64; 3] = std::array::from_fn(|axis| {
            let cut = self.periods[axis].is_some_and(|cells| cells % edge != 0);
            (reach[axis] + edge - 1) / edge + i64::from(cut)
        });
        let rows = (-bricks[2]..=bricks[2])
            .flat_map(|z| (-bricks[1]..=bricks[1]).map(move |y| (y, z)))
            .map(|(y, z)| RowOffset {
                y,
                z,
                reach: bricks[0],
            });
        let periods = self
            .periods
            .map(|cells| cells.map(|cells| (cells + edge - 1) / edge));
        Ok(Self {
            rows: collected(rows, "rows of bricks in reach")?,
            periods,
        })
    }
}

/// Occupied places in row order, without duplicates.
///
/// Coordinates are kept per row, so a place takes eight bytes.
#[derive(Debug, Clone)]
pub(crate) struct OccupiedPlaces {
    /// x of every place.
    x: Vec<i64>,
    /// The rows with their places.
    rows: Vec<RowOfPlaces>,
    /// Number of the row at (y, z).
    at: HashMap<[i64; 2], usize>,
}

/// The places of a row.
#[derive(Debug, Clone)]
struct RowOfPlaces {
    /// The row's y.
    y: i64,
    /// The row's z.
    z: i64,
    /// Numbers of its places.
    places: Range<usize>,
}

/// Sorts by z, then y, then x.
pub(crate) fn row_order(place: &[i64; 3]) -> [i64; 3] {
    [place[2], place[1], place[0]]
}

impl OccupiedPlaces {
    /// From places in strictly ascending row order.
    ///
    /// One pass; a new row begins where y or z changes.
    pub(crate) fn new(places: impl ExactSizeIterator<Item = [i64; 3]>) -> Result<Self, Shortage> {
        const WHAT: &str = "rows of places";
        let mut found = Self {
            x: Vec::new(),
            rows: Vec::new(),
            at: HashMap::new(),
        };
        make_room(&mut found.x, places.len(), WHAT)?;
        for [x, y, z] in places {
            let next = found.x.len();
            found.x.push(x);
            match found.rows.last_mut() {
                Some(row) if row.y == y && row.z == z => row.places.end = next + 1,
                _ => {
                    make_room_for_one(&mut found.rows, WHAT)?;
                    let rows = found.rows.len();
                    (found.at.try_reserve(1))
                        .map_err(|_| Shortage::of::<([i64; 2], usize)>(rows + 1, WHAT))?;
                    found.at.insert([y, z], rows);
                    let places = next..next + 1;
                    found.rows.push(RowOfPlaces { y, z, places });
                }
            }
        }
        Ok(found)
    }

    /// Calls `visit` with every place and each range of places in its neighbourhood, one range per
    /// row and periodic image. The ranges of one place do not come one after the other.
    ///
    /// A place may be visited several times for the same range where the box is small, once per
    /// image; callers that need sets drop repeats.
    pub(crate) fn windows(&self, near: &Neighbourhood, mut visit: impl FnMut(usize, Range<usize>)) {
        let wrap = |value: i64, axis: usize| match near.periods[axis] {
            Some(period) => value.rem_euclid(period),
            None => value,
        };
        for row in &self.rows {
            for offset in &near.rows {
                let other = [wrap(row.y + offset.y, 1), wrap(row.z + offset.z, 2)];
                if let Some(&other) = self.at.get(&other) {
                    let other = &self.rows[other].places;
                    for shift in image_shifts(offset.reach, near.periods[0]) {
                        self.slide(
                            row.places.clone(),
                            other.clone(),
                            offset.reach,
                            shift,
                            &mut visit,
                        );
                    }
                }
            }
        }
    }

    /// Slides a window along a row.
    fn slide(
        &self,
        row: Range<usize>,
        other: Range<usize>,
        reach: i64,
        shift: i64,
        visit: &mut impl FnMut(usize, Range<usize>),
    ) {
        let mut window = other.start..other.start;
        for place in row {
            let x = self.x[place] - shift;
            while window.start < other.end && self.x[window.start] < x - reach {
                window.start += 1;
            }
            window.end = window.end.max(window.start);
            while window.end < other.end && self.x[window.end] <= x + reach {
                window.end += 1;
            }
            if !window.is_empty() {
                visit(place, window.clone());
            }
        }
    }
}

/// Whole periods by which windows of `reach` can leave the box, the central one included.
fn image_shifts(reach: i64, period: Option<i64>) -> impl Iterator<Item = i64> {
    let (first, last, period) = match period {
        None => (0, 0, 0),
        Some(period) => (
            (-reach).div_euclid(period),
            (period - 1 + reach).div_euclid(period),
            period,
        ),
    };
    (first..=last).map(move |image| image * period)
}

/// Cells may be this far from the origin.
const FARTHEST_CELL: i64 = 1 << 60;

/// The least box around cells.
///
/// Checking the two corners is enough where they are inside; only otherwise are all cells looked
/// at, to name the first that is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Smallest coordinate along each axis.
    pub(crate) low: [i64; 3],
    /// Largest coordinate along each axis.
    pub(crate) high: [i64; 3],
}

impl Bounds {
    /// Without cells, `low` is above `high`.
    pub(crate) fn of(cells: impl Iterator<Item = [i64; 3]>) -> Self {
        let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
        for cell in cells {
            for axis in 0..3 {
                low[axis] = low[axis].min(cell[axis]);
                high[axis] = high[axis].max(cell[axis]);
            }
        }
        Self { low, high }
    }

    /// Refuses the first of `cells`, which these are the bounds of, that lies outside a periodic
    /// axis or too far out.
    pub(crate) fn check(
        &self,
        mut cells: impl Iterator<Item = [i64; 3]>,
        periods: &[Option<i64>; 3],
    ) -> Result<(), Error> {
        // Cells are fine if the corners are.
        match check_cell(self.low, periods).and(check_cell(self.high, periods)) {
            Ok(()) => Ok(()),
            Err(_) => cells.try_for_each(|cell| check_cell(cell, periods)),
        }
    }
}

/// Refuses a cell outside the box, or too far out.
///
/// The axis and the number of cells stand in the message.
fn check_cell(cell: [i64; 3], periods: &[Option<i64>; 3]) -> Result<(), Error> {
    let near = |axis: i64| (-FARTHEST_CELL..=FARTHEST_CELL).contains(&axis);
    if !cell.into_iter().all(near) {
        return Err(ErrorKind::FarCell { cell }.into());
    }
    for axis in 0..3 {
        if let Some(cells) = periods[axis]
            && !(0..cells).contains(&cell[axis])
        {
            return Err(ErrorKind::Cell { cell, axis, cells }.into());
        }
    }
    Ok(())
}
