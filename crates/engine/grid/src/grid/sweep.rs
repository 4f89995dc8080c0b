//! The candidates of cell after cell, as runs of sorted points.
//!
//! Rows are looked up once per row of cells and not once per cell: a [`TableSweep`] remembers the
//! rows around the last (y, z), and the cells of a row are asked for in order. Per cell and row a
//! run then costs two loads of starts in a dense table.
//!
//! # Ahead
//!
//! Where every pair of a set is to be met once, a cell takes its own points from a given one on
//! and the rows that follow, in the lexicographic order of (image, z, y, x). Of two points in
//! reach of each other exactly one finds the other. Around a periodic box the half of the images
//! that come after the central one takes that part.
//!
//! # Batches
//!
//! Around a box much smaller than the radius a cell has millions of runs, one per image.
//! [`TableSweep::next_runs`] gives them in pieces of at most 65,536 runs and about 524,288 points,
//! and [`Walked`] remembers where it stopped.
//!
//! # Shares
//!
//! A backend that searches for its own bricks evaluates pairs of two own points once and pairs
//! with other points for its own alone. [`TableSweep::runs_of_share`] gives the runs ahead, and
//! behind them the stretches of cells before the target that are not of the share, found by walking
//! those rows cell by cell.
//!
//! # Inside a periodic box
//!
//! Most cells of a large box have candidates of the central image alone.
//! [`TableSweep::inside_until`] tells them by the rows that were found and by the reach along x,
//! once per row of cells, and [`TableSweep::runs_inside`] gives their runs without wrapping a cell
//! or cutting a row.
//!
//! **Invariant:** the runs of a cell hold every sorted point within the radius of any point in the
//! cell, each once per image, in an order that depends on the cells alone.

use crate::{
    Cell, Grid, Lattice,
    lattice::rows::Row,
    memory::{Shortage, make_room, make_room_for_one},
    table::{CellTable, cells::RowCells},
};
use std::ops::Range;

/// A contiguous range of sorted points that are candidates of a cell, all in one periodic image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Sorted points.
    pub slots: Range<usize>,
    /// Image of the box their cell was found in; zero where the axis is open.
    pub image: [i32; 3],
}

/// The name of the memory in messages.
pub(super) const WHAT: &str = "the candidates of a cell";

/// Maximum number of runs that `TableSweep::next_runs` gives at a time.
pub const MAX_RUNS: usize = 1 << 16;
/// Rows that are walked at a time where the box cuts none of them, however many points they hold,
/// as in an open domain.
pub(super) const MAX_ROWS: usize = 1 << 8;
/// Maximum number of points in all runs of `TableSweep::next_runs` but the last.
pub const MAX_POINTS: usize = 1 << 19;

/// Finds the candidates of cells in the table of one grid.
///
/// Neighbour rows stay found while the cells asked for lie in the same row, so cells are best asked
/// for in the order of [`Grid::cells`].
///
/// Around a box much smaller than the radius a cell has millions of runs, one per image. They are
/// walked by [`next_runs`](Self::next_runs) in pieces of bounded size.
///
/// It borrows the grid and owns its buffers; a worker makes one per task.
#[derive(Debug, Clone)]
pub(super) struct TableSweep<'a> {
    /// The grid that is searched.
    grid: &'a Grid,
    /// Its lattice, with the rows that are in reach.
    lattice: &'a Lattice,
    /// (y, z) the rows were found for.
    of: Option<[i64; 2]>,
    /// Cells beyond that along y and z which the rows were found for too.
    block: [i64; 2],
    /// The rows that were found.
    rows: Vec<RowInReach>,
    /// Largest offset along x of the rows.
    reach: i64,
    /// All rows are of the central image.
    central: bool,
    /// The runs of the last cell.
    runs: Vec<Run>,
}

/// A row around the cells that are asked for.
#[derive(Debug, Clone, Copy)]
struct RowInReach {
    /// The row in the table.
    cells: RowCells,
    /// The row comes after, or is, the one it was found for.
    ahead: bool,
    /// It is the one it was found for, in the central image.
    own: bool,
    /// Its y and z, around the box where the domain is periodic there.
    at: [i64; 2],
    /// Largest offset along x in cells.
    reach: i64,
    /// Image of the box that the row was found in, along y.
    image_y: i32,
    /// The same along z.
    image_z: i32,
}

/// How far the runs of a cell have been walked by `TableSweep::next_runs`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walked {
    /// Number of the level that comes next.
    pub(super) level: usize,
    /// Number of its row that comes next.
    pub(super) row: usize,
    /// The cell of that row that comes next; None for its first.
    pub(super) low: Option<i64>,
    /// Every run has been given.
    pub(super) all: bool,
}

impl Walked {
    /// Returns true if some runs have been given.
    pub fn is_begun(&self) -> bool {
        self.all || self.level > 0 || self.row > 0 || self.low.is_some()
    }

    /// Returns true if there are no more runs.
    pub fn is_all(&self) -> bool {
        self.all
    }
}

/// How much is collected at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// Maximum number of runs.
    pub(super) runs: usize,
    /// Maximum number of points in all runs but the last.
    pub(super) points: usize,
}

impl Limit {
    pub(super) const NONE: Self = Self {
        runs: usize::MAX,
        points: usize::MAX,
    };
    pub(super) const BATCH: Self = Self {
        runs: MAX_RUNS,
        points: MAX_POINTS,
    };
}

/// Which of the runs of a cell are collected.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    All,
    /// Those ahead of a sorted point.
    Ahead(usize),
}

impl Grid {
    /// A search for the candidates of cells of the grid's table, one after the other, in the rows
    /// that a lattice of the same cells has.
    pub(super) fn table_sweep<'a>(&'a self, lattice: &'a Lattice) -> TableSweep<'a> {
        TableSweep {
            grid: self,
            lattice,
            of: None,
            block: [0; 2],
            rows: Vec::new(),
            reach: 0,
            central: false,
            runs: Vec::new(),
        }
    }

    /// Calls `visit` with every run that [`runs`](crate::Sweep::runs) gives for `cell`, in the same
    /// order. For one cell alone: nothing is stored.
    pub fn for_each_run(&self, cell: Cell, visit: impl FnMut(Run)) {
        self.for_each_run_within(&self.lattice, cell, visit);
    }

    /// The same of the rows that a lattice of the same cells has.
    #[inline(always)]
    pub(super) fn for_each_run_within(
        &self,
        lattice: &Lattice,
        cell: Cell,
        mut visit: impl FnMut(Run),
    ) {
        let table = self.table();
        let [x, y, z] = cell;
        for row in lattice.rows() {
            let (y, image_y) = wrap(y + row.y, lattice.period(1));
            let (z, image_z) = wrap(z + row.z, lattice.period(2));
            let Some(cells) = table.row(y, z) else {
                continue;
            };
            let high = x + row.reach;
            let mut low = x - row.reach;
            while low <= high {
                let (next, run) = piece(table, cells, low, high, lattice.period(0));
                if !run.slots.is_empty() {
                    let [image_x, ..] = run.image;
                    visit(Run {
                        slots: run.slots,
                        image: [image_x, image_y, image_z],
                    });
                }
                low = next;
            }
        }
    }
}

/// The points of a row's cells from `low` on that lie in one image, up to cell `high`, with their
/// image along x; and the cell at which the next image begins.
#[inline(always)]
fn piece(
    table: &CellTable,
    cells: RowCells,
    low: i64,
    high: i64,
    period: Option<i64>,
) -> (i64, Run) {
    let (begin, image_x) = wrap(low, period);
    let span = match period {
        None => high - low,
        Some(period) => (high - low).min(period - 1 - begin),
    };
    let slots = table.run(cells, begin, begin + span);
    let image = [image_x, 0, 0];
    (low + span + 1, Run { slots, image })
}

impl TableSweep<'_> {
    /// Every run of the grid's points that can lie within the radius of a point in `cell` or the
    /// `more` cells that follow it along x, by ascending image and row; no point stands in two runs
    /// of the same image.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    ///
    /// With `more` cells the runs reach as far beyond the last of them as before the first.
    #[inline(always)]
    pub(super) fn runs(&mut self, cell: Cell, more: i64) -> Result<&[Run], Shortage> {
        let [x, ..] = cell;
        self.begin(cell)?;
        match self.lattice.period(0) {
            None => self.collect_open(x, more),
            Some(_) => self.collect(x, more, Which::All, Limit::NONE, &mut Walked::default())?,
        }
        Ok(&self.runs)
    }

    /// Some of what [`runs`](Self::runs) or, ahead of a sorted point,
    /// [`runs_ahead`](Self::runs_ahead) give for `cell`: those that follow what has been `walked`,
    /// not more than fill some megabytes with their points, unless they are all of the runs of a
    /// few whole rows. For periodic domains.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    #[inline(always)]
    pub(super) fn next_runs(
        &mut self,
        cell: Cell,
        ahead_of: Option<usize>,
        walked: &mut Walked,
    ) -> Result<&[Run], Shortage> {
        let [x, ..] = cell;
        self.begin(cell)?;
        if !walked.is_begun() && self.is_inside_along_x(x, 0, MAX_ROWS) {
            // Whole rows, each of one image.
            match ahead_of {
                None => self.collect_open(x, 0),
                Some(from) => self.collect_open_ahead(x, 0, from),
            }
            walked.all = true;
            return Ok(&self.runs);
        }
        let which = ahead_of.map_or(Which::All, Which::Ahead);
        self.collect(x, 0, which, Limit::BATCH, walked)?;
        Ok(&self.runs)
    }

    /// Returns true if no row that was found is cut by the ends of the box when it is walked around
    /// cell `x` and the `more` cells after it, and there are at most `max_rows` rows.
    ///
    /// Rows may be of any image along y and z: two in three cells near the faces of a box are near
    /// none across x.
    #[inline(always)]
    pub(super) fn is_inside_along_x(&self, x: i64, more: i64, max_rows: usize) -> bool {
        let ends = match self.lattice.period(0) {
            None => true,
            Some(period) => x >= self.reach && x + more + self.reach < period,
        };
        ends && self.rows.len() <= max_rows
    }

    /// The last cell of the row of `cell`, itself or after it along x, whose candidates and those
    /// of all cells between are of the central image; `i64::MAX` along an open axis. `None` if
    /// `cell` has candidates of another image.
    ///
    /// Rows are looked up once per row of cells; for the other cells this costs a comparison.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for the rows.
    #[inline(always)]
    pub(super) fn inside_until(&mut self, cell: Cell) -> Result<Option<i64>, Shortage> {
        let [x, ..] = cell;
        self.begin(cell)?;
        let reach = self.reach;
        Ok(match self.lattice.period(0) {
            _ if !self.central => None,
            None => Some(i64::MAX),
            Some(period) if x >= reach && x + reach < period => Some(period - 1 - reach),
            Some(_) => None,
        })
    }

    /// The candidates of a cell and the `more` cells that follow it along x; those
    /// [ahead](Self::runs_ahead) of a sorted point alone if one is given. All of these cells must
    /// be [inside](Self::inside_until), or candidates of other images are missing. One run per row,
    /// as in an open domain: nothing is wrapped and nothing is cut.
    ///
    /// The runs hold the same points in the same order as [`runs`](Self::runs) and
    /// [`runs_ahead`](Self::runs_ahead) give.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    #[inline(always)]
    pub(super) fn runs_inside(
        &mut self,
        cell: Cell,
        more: i64,
        ahead_of: Option<usize>,
    ) -> Result<&[Run], Shortage> {
        let [x, ..] = cell;
        self.begin(cell)?;
        match ahead_of {
            None => self.collect_open(x, more),
            Some(from) => self.collect_open_ahead(x, more, from),
        }
        Ok(&self.runs)
    }

    /// Finds the rows of `cell` and of the cells up to as many beyond it along y and z as `block`
    /// says, unless they are those of the last one, and forgets the runs.
    #[inline(always)]
    pub(super) fn begin_block(&mut self, cell: Cell, block: [i64; 2]) -> Result<(), Shortage> {
        if self.block != block {
            (self.block, self.of) = (block, None);
        }
        self.begin(cell)
    }

    /// Forgets the runs that were collected.
    pub(super) fn forget_runs(&mut self) {
        self.runs.clear();
    }

    /// The runs that were collected last.
    pub(super) fn collected(&self) -> &[Run] {
        &self.runs
    }

    /// Returns true if all rows that were found are of the central image along y and z.
    pub(super) fn is_central(&self) -> bool {
        self.central
    }

    /// Finds the rows of `cell` unless they are those of the last one, and forgets the runs.
    #[inline(always)]
    fn begin(&mut self, [_, y, z]: Cell) -> Result<(), Shortage> {
        if self.of != Some([y, z]) {
            self.find_rows(y, z)?;
        }
        self.runs.clear();
        Ok(())
    }

    /// Half of the [`runs`](Self::runs): those of the own row from sorted point `from` on, which
    /// must lie in `cell`, and of the rows that follow, around the box where the domain is
    /// periodic. Of two points in reach of each other exactly one finds the other here, once per
    /// image; all find themselves. The own cell comes first.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    #[inline(always)]
    pub(super) fn runs_ahead(
        &mut self,
        cell: Cell,
        more: i64,
        from: usize,
    ) -> Result<&[Run], Shortage> {
        let [x, ..] = cell;
        self.begin(cell)?;
        if self.lattice.effective_domain().is_periodic() {
            let walked = &mut Walked::default();
            self.collect(x, more, Which::Ahead(from), Limit::NONE, walked)?;
        } else {
            self.collect_open_ahead(x, more, from);
        }
        Ok(&self.runs)
    }

    /// The runs that [`runs_ahead`](Self::runs_ahead) gives for a cell of a share in an open
    /// domain, and behind it the runs before the cell that are not of the share; `has` tells the
    /// cells of the share. Of two points in reach of each other, at least one of them of the share,
    /// exactly one point of the share finds the other here.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    pub(super) fn runs_of_share(
        &mut self,
        cell: Cell,
        more: i64,
        from: usize,
        has: impl Fn(Cell) -> bool,
    ) -> Result<&[Run], Shortage> {
        self.runs_ahead(cell, more, from)?;
        let [x, _, _] = cell;
        for row in self.rows.iter().filter(|row| !row.ahead || row.own) {
            let last = if row.own { x - 1 } else { x + more + row.reach };
            let [y, z] = row.at;
            let mut next = x - row.reach;
            while next <= last {
                let first = next;
                while next <= last && !has([next, y, z]) {
                    next += 1;
                }
                if first < next {
                    let slots = self.grid.table().run(row.cells, first, next - 1);
                    if !slots.is_empty() {
                        let image = [0; 3];
                        make_room_for_one(&mut self.runs, WHAT)?;
                        self.runs.push(Run { slots, image });
                    }
                }
                next += 1;
            }
        }
        Ok(&self.runs)
    }

    /// Collects one run per row that is ahead; in an open domain nothing is cut.
    #[inline(always)]
    fn collect_open_ahead(&mut self, x: i64, more: i64, from: usize) {
        let table = self.grid.table();
        for row in &self.rows {
            if row.ahead {
                let mut slots = table.run(row.cells, x - row.reach, x + more + row.reach);
                if row.own {
                    slots.start = slots.start.max(from);
                }
                if !slots.is_empty() {
                    let image = [0, row.image_y, row.image_z];
                    self.runs.push(Run { slots, image });
                }
            }
        }
    }

    /// Collects one run per row; in an open domain nothing is cut.
    #[inline(always)]
    pub(super) fn collect_open(&mut self, x: i64, more: i64) {
        let table = self.grid.table();
        for row in &self.rows {
            let slots = table.run(row.cells, x - row.reach, x + more + row.reach);
            if !slots.is_empty() {
                let image = [0, row.image_y, row.image_z];
                self.runs.push(Run { slots, image });
            }
        }
    }

    /// Adds runs of a cell, cut where the box ends along x, until there are enough or `walked` is
    /// all.
    ///
    /// A run that crosses the end of the box is cut there, because its two parts are seen through
    /// different images.
    #[inline(always)]
    pub(super) fn collect(
        &mut self,
        x: i64,
        more: i64,
        which: Which,
        limit: Limit,
        walked: &mut Walked,
    ) -> Result<(), Shortage> {
        let period = self.lattice.period(0);
        let table = self.grid.table();
        let (mut points, last) = (0, self.runs.len().saturating_add(limit.runs));
        while let Some(&row) = self.rows.get(walked.row) {
            let (first, from) = match which {
                Which::All => (x - row.reach, 0),
                Which::Ahead(from) if row.own => (x, from),
                Which::Ahead(_) if row.ahead => (x - row.reach, 0),
                Which::Ahead(_) => {
                    walked.row += 1;
                    continue;
                }
            };
            let high = x + more + row.reach;
            let mut low = walked.low.take().unwrap_or(first);
            while low <= high {
                if points >= limit.points || self.runs.len() >= last {
                    walked.low = Some(low);
                    return Ok(());
                }
                let (next, Run { mut slots, image }) = piece(table, row.cells, low, high, period);
                if low == first {
                    // The cell itself lies in the first piece.
                    slots.start = slots.start.max(from);
                }
                if !slots.is_empty() {
                    points += slots.len();
                    let image = [image[0], row.image_y, row.image_z];
                    make_room_for_one(&mut self.runs, WHAT)?;
                    self.runs.push(Run { slots, image });
                }
                low = next;
            }
            walked.row += 1;
        }
        walked.all = true;
        Ok(())
    }

    /// Finds the rows of the grid that the cells of row (`y`, `z`) reach.
    ///
    /// Around a periodic box rows are wrapped, and the image is kept with the row. Out of line: it
    /// happens once per row of cells.
    #[cold]
    #[inline(never)]
    fn find_rows(&mut self, y: i64, z: i64) -> Result<(), Shortage> {
        self.of = None;
        self.rows.clear();
        let lattice = self.lattice;
        let rows = match self.block {
            [0, 0] => lattice.rows().len(),
            block => lattice.rows_of_block(block).count(),
        };
        make_room(&mut self.rows, rows, WHAT)?;
        match self.block {
            [0, 0] => lattice
                .rows()
                .iter()
                .for_each(|row| self.add_row([y, z], row)),
            block => (lattice.rows_of_block(block)).for_each(|row| self.add_row([y, z], &row)),
        }
        let is_central = |row: &RowInReach| (row.image_y, row.image_z) == (0, 0);
        self.reach = self.rows.iter().map(|row| row.reach).max().unwrap_or(0);
        self.central = self.rows.iter().all(is_central);
        // A row has one run if none is cut, which is where there may be many of them.
        let most = if self.central { usize::MAX } else { MAX_RUNS };
        let runs = self.rows.len().min(most);
        self.runs.clear();
        make_room(&mut self.runs, runs, WHAT)?;
        self.of = Some([y, z]);
        Ok(())
    }

    /// Adds a row in reach of the cells at (y, z), if it holds points; there is room for it.
    #[inline(always)]
    fn add_row(&mut self, [y, z]: [i64; 2], row: &Row) {
        let (ahead, own) = ([row.z, row.y] >= [0, 0], [row.z, row.y] == [0, 0]);
        let (y, image_y) = wrap(y + row.y, self.lattice.period(1));
        let (z, image_z) = wrap(z + row.z, self.lattice.period(2));
        if let Some(cells) = self.grid.table().row(y, z) {
            self.rows.push(RowInReach {
                cells,
                ahead,
                own,
                at: [y, z],
                reach: row.reach,
                image_y,
                image_z,
            });
        }
    }
}

/// A cell coordinate inside the box, and the image it came from.
///
/// Asked for at both ends of every run near a face.
#[inline(always)]
fn wrap(cell: i64, period: Option<i64>) -> (i64, i32) {
    match period {
        None => (cell, 0),
        // Most cells are inside or in the next box, and a division takes longer than the rest.
        Some(period) if 0 <= cell && cell < period => (cell, 0),
        Some(period) if -period <= cell && cell < 0 => (cell + period, -1),
        Some(period) if period <= cell && cell < 2 * period => (cell - period, 1),
        Some(period) => (cell.rem_euclid(period), cell.div_euclid(period) as i32),
    }
}
