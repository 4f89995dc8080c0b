//! Candidates of cell after cell: neighbour rows are looked up once per row, not once per cell.

use crate::{BrickParts, Cell, Grid, Run, table::RowCells};
use std::ops::RangeInclusive;

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
    /// Whether it is the one, in the central image.
    own: bool,
    /// Its y and z, around the box where the domain is periodic there.
    at: [i64; 2],
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
            Some(_) => self.collect_periodic(x, more),
        }
        &self.runs
    }

    /// Half of the [`runs`](Self::runs): those of the own row from sorted point `from` on, which must
    /// lie in `cell`, and of the rows that follow, around the box where the domain is periodic. Of
    /// two points in reach of each other exactly one finds the other here, once per image; all find
    /// themselves. The own cell comes first.
    #[inline(always)]
    pub fn runs_ahead(&mut self, cell: Cell, more: i64, from: usize) -> &[Run] {
        let [x, y, z] = cell;
        if self.of != Some([y, z]) {
            self.find_rows(y, z);
        }
        self.runs.clear();
        match self.grid.lattice().effective_domain().is_periodic() {
            false => self.collect_open_ahead(x, more, from),
            true => self.collect_periodic_ahead(x, more, from),
        }
        &self.runs
    }

    /// What [`runs_ahead`](Self::runs_ahead) gives for a cell of some `parts` of a share in an open domain,
    /// and behind it what is not of these parts and lies before the cell: of two points in reach of each
    /// other, one of them of these parts, exactly one of these finds the other here.
    pub fn runs_of_share(
        &mut self,
        cell: Cell,
        more: i64,
        from: usize,
        (bricks, parts): (&BrickParts, &RangeInclusive<u8>),
    ) -> &[Run] {
        self.runs_ahead(cell, more, from);
        let [x, _, _] = cell;
        let foreign = |cell: Cell| !parts.contains(&bricks.part(cell));
        for row in self.rows.iter().filter(|row| !row.ahead || row.own) {
            let last = match row.own {
                true => x - 1,
                false => x + more + row.reach,
            };
            let [y, z] = row.at;
            let mut next = x - row.reach;
            while next <= last {
                let first = next;
                while next <= last && foreign([next, y, z]) {
                    next += 1;
                }
                if first < next {
                    let slots = self.grid.table().run(row.cells, first, next - 1);
                    if !slots.is_empty() {
                        let image = [0; 3];
                        self.runs.push(Run { slots, image });
                    }
                }
                next += 1;
            }
        }
        &self.runs
    }

    #[inline(always)]
    fn collect_open_ahead(&mut self, x: i64, more: i64, from: usize) {
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
    }

    fn collect_periodic_ahead(&mut self, x: i64, more: i64, from: usize) {
        for number in 0..self.rows.len() {
            let row = self.rows[number];
            let high = x + more + row.reach;
            match (row.ahead, row.own) {
                (false, _) => {}
                (true, false) => self.collect_row(row, x - row.reach, high),
                (true, true) => {
                    let first = self.runs.len();
                    self.collect_row(row, x, high);
                    // The cell itself lies in the first piece.
                    if let Some(run) = self.runs.get_mut(first) {
                        run.slots.start = run.slots.start.max(from);
                    }
                }
            }
        }
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

    fn collect_periodic(&mut self, x: i64, more: i64) {
        for number in 0..self.rows.len() {
            let row = self.rows[number];
            self.collect_row(row, x - row.reach, x + more + row.reach);
        }
    }

    /// The cells `low` to `high` of a row, cut where the box ends along x.
    #[inline(always)]
    fn collect_row(&mut self, row: FoundRow, mut low: i64, high: i64) {
        let table = self.grid.table();
        let period = self.grid.lattice().period(0);
        while low <= high {
            let (begin, image_x) = wrap(low, period);
            let span = match period {
                None => high - low,
                Some(period) => (high - low).min(period - 1 - begin),
            };
            let slots = table.run(row.cells, begin, begin + span);
            if !slots.is_empty() {
                let image = [image_x, row.image_y, row.image_z];
                self.runs.push(Run { slots, image });
            }
            low += span + 1;
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
            let (ahead, own) = ([row.z, row.y] >= [0, 0], [row.z, row.y] == [0, 0]);
            let (y, image_y) = wrap(y + row.y, period_y);
            let (z, image_z) = wrap(z + row.z, period_z);
            if let Some(cells) = self.grid.table().row(y, z) {
                self.rows.push(FoundRow {
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
}

/// A cell coordinate inside the box, and the image it came from.
#[inline(always)]
fn wrap(cell: i64, period: Option<i64>) -> (i64, i32) {
    match period {
        None => (cell, 0),
        Some(period) => (cell.rem_euclid(period), cell.div_euclid(period) as i32),
    }
}
