//! Candidates of cell after cell: neighbour rows are looked up once per row, not once per cell.

use crate::{Cell, Grid, Run, table::RowCells};

/// Finds the candidates of cells of one grid; made by [`Grid::sweep`].
///
/// Neighbour rows stay found while the cells asked for lie in the same row, so cells are best asked
/// for in the order of [`Grid::cells`].
#[derive(Debug, Clone)]
pub struct Sweep<'a> {
    grid: &'a Grid,
    /// (y, z) the rows were found for.
    of: Option<[i64; 2]>,
    rows: Vec<FoundRow>,
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy)]
struct FoundRow {
    cells: RowCells,
    /// Whether the row comes after, or is, the one it was found for.
    ahead: bool,
    reach: i64,
    image_y: i32,
    image_z: i32,
}

impl Grid {
    /// A search for the candidates of cells, one after the other.
    pub fn sweep(&self) -> Sweep<'_> {
        let rows = self.lattice().rows().len();
        Sweep {
            grid: self,
            of: None,
            rows: Vec::with_capacity(rows),
            runs: Vec::with_capacity(rows),
        }
    }
}

impl Sweep<'_> {
    /// Every run of the grid's points that can lie within the radius of a point in `cell` or the
    /// `more` cells that follow it along x, by ascending image and row; no point stands in two runs
    /// of the same image.
    #[inline(always)]
    pub fn runs(&mut self, cell: Cell, more: i64) -> &[Run] {
        let [x, y, z] = cell;
        if self.of != Some([y, z]) {
            self.find_rows(y, z);
        }
        self.runs.clear();
        match self.grid.lattice().period(0) {
            None => self.collect_open(x, more),
            Some(period) => self.collect_periodic(x, more, period),
        }
        &self.runs
    }

    /// Those of the [`runs`](Self::runs) that are not before sorted point `from`, which must lie in
    /// `cell`: its own row's from there on, then the rows that follow. Of two points in reach of
    /// each other exactly one finds the other here; both find themselves.
    ///
    /// For open domains; in a periodic one images are missing.
    #[inline(always)]
    pub fn runs_ahead(&mut self, cell: Cell, more: i64, from: usize) -> &[Run] {
        let [x, y, z] = cell;
        if self.of != Some([y, z]) {
            self.find_rows(y, z);
        }
        self.runs.clear();
        let table = self.grid.table();
        for row in &self.rows {
            if row.ahead {
                let mut slots = table.run(row.cells, x - row.reach, x + more + row.reach);
                slots.start = slots.start.max(from);
                if !slots.is_empty() {
                    let image = [0; 3];
                    self.runs.push(Run { slots, image });
                }
            }
        }
        &self.runs
    }

    #[inline(always)]
    fn collect_open(&mut self, x: i64, more: i64) {
        let table = self.grid.table();
        for row in &self.rows {
            let slots = table.run(row.cells, x - row.reach, x + more + row.reach);
            if !slots.is_empty() {
                let image = [0, row.image_y, row.image_z];
                self.runs.push(Run { slots, image });
            }
        }
    }

    fn collect_periodic(&mut self, x: i64, more: i64, period: i64) {
        let table = self.grid.table();
        for row in &self.rows {
            let (mut low, high) = (x - row.reach, x + more + row.reach);
            while low <= high {
                let (begin, image_x) = (low.rem_euclid(period), low.div_euclid(period) as i32);
                let span = (high - low).min(period - 1 - begin);
                let slots = table.run(row.cells, begin, begin + span);
                if !slots.is_empty() {
                    let image = [image_x, row.image_y, row.image_z];
                    self.runs.push(Run { slots, image });
                }
                low += span + 1;
            }
        }
    }

    /// Finds the rows of the grid that the cells of row (`y`, `z`) reach.
    #[cold]
    #[inline(never)]
    fn find_rows(&mut self, y: i64, z: i64) {
        let lattice = self.grid.lattice();
        let (period_y, period_z) = (lattice.period(1), lattice.period(2));
        self.of = Some([y, z]);
        self.rows.clear();
        for row in lattice.rows() {
            let ahead = [row.z, row.y] >= [0, 0];
            let (y, image_y) = wrap(y + row.y, period_y);
            let (z, image_z) = wrap(z + row.z, period_z);
            if let Some(cells) = self.grid.table().row(y, z) {
                self.rows.push(FoundRow {
                    cells,
                    ahead,
                    reach: row.reach,
                    image_y,
                    image_z,
                });
            }
        }
    }
}

/// A cell coordinate inside the box, and the image it came from.
#[inline(always)]
fn wrap(cell: i64, period: Option<i64>) -> (i64, i32) {
    match period {
        None => (cell, 0),
        Some(period) => (cell.rem_euclid(period), cell.div_euclid(period) as i32),
    }
}
