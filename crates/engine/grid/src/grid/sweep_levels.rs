//! The candidates of cells of a set: of all its points or, where they were sorted by their radii,
//! of every level.
//!
//! Every level of the sources has a search of its own, with the rows that the current targets reach
//! there ([`super::levels`]). Cells of different levels are unrelated, so the targets of a cell
//! have a block of cells in another level: from the smallest to the largest cell that any of them
//! would have there. Targets of one cell lie in one box after they are wrapped, so that block is
//! contiguous.
//!
//! **Invariant:** as that of [`super::sweep`]: the runs hold every sorted point in reach of any of
//! the targets, each once per image.

use super::{
    levels::LevelInReach,
    sweep::{Limit, MAX_ROWS, Run, TableSweep, WHAT, Walked, Which},
};
use crate::{
    Cell, Grid, Lattice,
    memory::{Shortage, make_room, make_room_for_one},
};
use std::ops::Range;

/// Finds the candidates of cells of one grid, as runs; made by [`Grid::sweep`] and
/// [`Grid::sweep_from`].
///
/// Neighbour rows stay found while the cells asked for lie in the same row, so cells are best asked
/// for in the order of [`Grid::cells`]. It borrows the grid and owns its buffers; a worker makes
/// one per task.
///
/// Of points that were [sorted by their radii](Grid::build_levels) it finds those of every level,
/// and is told the targets by [`aim`](Self::aim) before anything else is asked.
///
/// # Errors
/// All of its functions return [`Shortage`] where there is no memory for rows or runs.
#[derive(Debug, Clone)]
pub struct Sweep<'a> {
    /// The search of a grid without levels.
    table: TableSweep<'a>,
    /// The search of levels; nothing else is used then.
    levels: Option<Box<LevelSweep<'a>>>,
}

impl Sweep<'_> {
    /// Says which targets the cells that are asked for next are those of: the sorted points
    /// `slots` of the set that searches, which lie in `cell` and the `more` cells after it along x.
    /// Only a search of levels has to know.
    ///
    /// # Errors
    /// [`Shortage`].
    #[inline(always)]
    pub fn aim(&mut self, cell: Cell, more: i64, slots: &Range<usize>) -> Result<(), Shortage> {
        match &mut self.levels {
            None => Ok(()),
            Some(levels) => levels.aim(cell, more, slots),
        }
    }

    /// Every run of the grid's points that can lie within the radius of a point in `cell` or the
    /// `more` cells that follow it along x, by ascending image and row; no point stands in two runs
    /// of the same image. With `more` cells the runs reach as far beyond the last of them as before
    /// the first.
    ///
    /// # Errors
    /// [`Shortage`].
    #[inline(always)]
    pub fn runs(&mut self, cell: Cell, more: i64) -> Result<&[Run], Shortage> {
        match &mut self.levels {
            None => self.table.runs(cell, more),
            Some(levels) => levels.runs(),
        }
    }

    /// Some of what [`runs`](Self::runs) or, ahead of a sorted point,
    /// [`runs_ahead`](Self::runs_ahead) give for `cell`: those that follow what has been `walked`,
    /// not more than fill some megabytes with their points, unless they are all of the runs of a
    /// few whole rows. For periodic domains.
    ///
    /// # Errors
    /// [`Shortage`].
    #[inline(always)]
    pub fn next_runs(
        &mut self,
        cell: Cell,
        ahead_of: Option<usize>,
        walked: &mut Walked,
    ) -> Result<&[Run], Shortage> {
        match &mut self.levels {
            None => self.table.next_runs(cell, ahead_of, walked),
            Some(levels) => levels.next_runs(walked),
        }
    }

    /// The last cell of the row of `cell`, itself or after it along x, whose candidates and those
    /// of all cells between are of the central image; `i64::MAX` along an open axis. `None` if
    /// `cell` has candidates of another image. A search of levels tells it of `cell` alone.
    ///
    /// # Errors
    /// [`Shortage`].
    #[inline(always)]
    pub fn inside_until(&mut self, cell: Cell) -> Result<Option<i64>, Shortage> {
        match &self.levels {
            None => self.table.inside_until(cell),
            Some(levels) => Ok(levels.is_inside().then_some(cell[0])),
        }
    }

    /// The candidates of a cell and the `more` cells that follow it along x, in the order of
    /// [`runs`](Self::runs); those [ahead](Self::runs_ahead) of a sorted point alone if one is
    /// given. All of these cells must be [inside](Self::inside_until), or candidates of other
    /// images are missing. One run per row, as in an open domain.
    ///
    /// # Errors
    /// [`Shortage`].
    #[inline(always)]
    pub fn runs_inside(
        &mut self,
        cell: Cell,
        more: i64,
        ahead_of: Option<usize>,
    ) -> Result<&[Run], Shortage> {
        match &mut self.levels {
            None => self.table.runs_inside(cell, more, ahead_of),
            Some(levels) => levels.runs_inside(),
        }
    }

    /// Half of the [`runs`](Self::runs): those of the own row from sorted point `from` on, which
    /// must lie in `cell`, and of the rows that follow, around the box where the domain is
    /// periodic. Of two points in reach of each other exactly one finds the other here, once per
    /// image; all find themselves. The own cell comes first. Not of levels.
    ///
    /// # Errors
    /// [`Shortage`].
    ///
    /// # Panics
    /// For levels, of which pairs would be lost.
    #[inline(always)]
    pub fn runs_ahead(&mut self, cell: Cell, more: i64, from: usize) -> Result<&[Run], Shortage> {
        assert!(
            self.levels.is_none(),
            "levels are searched from either side"
        );
        self.table.runs_ahead(cell, more, from)
    }

    /// The runs that [`runs_ahead`](Self::runs_ahead) gives for a cell of a share in an open
    /// domain, and behind it the runs before the cell that are not of the share; `has` tells the
    /// cells of the share. Of two points in reach of each other, at least one of them of the share,
    /// exactly one point of the share finds the other here. Not of levels.
    ///
    /// # Errors
    /// [`Shortage`].
    ///
    /// # Panics
    /// For levels, of which pairs would be lost.
    pub fn runs_of_share(
        &mut self,
        cell: Cell,
        more: i64,
        from: usize,
        has: impl Fn(Cell) -> bool,
    ) -> Result<&[Run], Shortage> {
        assert!(
            self.levels.is_none(),
            "levels are searched from either side"
        );
        self.table.runs_of_share(cell, more, from, has)
    }
}

/// A search of the levels of a set.
#[derive(Debug, Clone)]
struct LevelSweep<'a> {
    /// The set that searches.
    targets: &'a Grid,
    /// The set that is searched.
    sources: &'a Grid,
    /// Whether the radii of targets and of sources count.
    counts: [bool; 2],
    /// The level of the targets that the parts are for.
    level: Option<usize>,
    /// A search of each level of the sources.
    parts: Vec<Part<'a>>,
    /// The runs of all of them.
    runs: Vec<Run>,
}

/// The search of one level.
#[derive(Debug, Clone)]
struct Part<'a> {
    /// The search; it calls the first point of the level 0.
    sweep: TableSweep<'a>,
    /// Its lattice.
    lattice: &'a Lattice,
    /// The slot of that point.
    start: usize,
    /// It is the level of the targets themselves.
    own: bool,
    /// Cells of the targets along x: the first one…
    x: i64,
    /// …and those that follow.
    more: i64,
}

impl Grid {
    /// A search for the sources that sorted points of `targets` look among; `counts` says if the
    /// radii of targets and those of sources count. As [`sweep`](Self::sweep) where neither set has
    /// levels. What it needs is to be [made ready](Self::ready_for).
    pub fn sweep_from<'a>(&'a self, targets: &'a Self, counts: [bool; 2]) -> Sweep<'a> {
        let by_levels = self.has_levels() || targets.has_levels();
        let levels = by_levels.then(|| {
            Box::new(LevelSweep {
                targets,
                sources: self,
                counts,
                level: None,
                parts: Vec::new(),
                runs: Vec::new(),
            })
        });
        Sweep {
            table: self.table_sweep(self.lattice()),
            levels,
        }
    }

    /// A search for the candidates of cells, one after the other, in a grid without levels.
    pub fn sweep(&self) -> Sweep<'_> {
        self.sweep_from(self, [false; 2])
    }

    /// Calls `visit` with every run of sources that can lie within reach of sorted target `slot` of
    /// `targets`; see [`sweep_from`](Self::sweep_from).
    ///
    /// # Errors
    /// [`Shortage`] where nothing was [made ready](Self::ready_for).
    #[inline(always)]
    pub fn for_each_run_from(
        &self,
        targets: &Self,
        slot: usize,
        counts: [bool; 2],
        mut visit: impl FnMut(Run),
    ) -> Result<(), Shortage> {
        let position = targets.points.position_f64(slot);
        if !self.has_levels() {
            self.for_each_run(self.lattice.cell_f64(position), visit);
            return Ok(());
        }
        for found in self.in_reach_of(targets, targets.level_of(slot), counts) {
            let LevelInReach {
                grid,
                lattice,
                start,
            } = found?;
            grid.for_each_run_within(lattice, lattice.cell_f64(position), |run| {
                visit(moved(&run, start));
            });
        }
        Ok(())
    }
}

/// A run of a level as one of all points.
fn moved(run: &Run, start: usize) -> Run {
    Run {
        slots: run.slots.start + start..run.slots.end + start,
        image: run.image,
    }
}

impl<'a> LevelSweep<'a> {
    /// Finds the rows around the targets `slots`, which lie in `cell` and `more` cells after it.
    #[inline(never)]
    fn aim(&mut self, cell: Cell, more: i64, slots: &Range<usize>) -> Result<(), Shortage> {
        let level = self.targets.level_of(slots.start);
        if self.parts.is_empty() || self.level != level {
            self.prepare(level)?;
        }
        let points = self.targets.points();
        for part in &mut self.parts {
            let (mut low, mut high) = (cell, [cell[0] + more, cell[1], cell[2]]);
            if !part.own {
                low = part.lattice.cell_f64(points.position_f64(slots.start));
                high = low;
                for slot in slots.start + 1..slots.end {
                    let at = part.lattice.cell_f64(points.position_f64(slot));
                    for axis in 0..3 {
                        low[axis] = low[axis].min(at[axis]);
                        high[axis] = high[axis].max(at[axis]);
                    }
                }
            }
            (part.x, part.more) = (low[0], high[0] - low[0]);
            let block = [high[1] - low[1], high[2] - low[2]];
            part.sweep.begin_block(low, block)?;
        }
        Ok(())
    }

    /// Finds the rows in reach of targets of a level.
    fn prepare(&mut self, level: Option<usize>) -> Result<(), Shortage> {
        self.parts.clear();
        let same = std::ptr::eq(self.targets, self.sources);
        let (sources, targets) = (self.sources, self.targets);
        for found in sources.in_reach_of(targets, level, self.counts) {
            let LevelInReach {
                grid,
                lattice,
                start,
            } = found?;
            make_room_for_one(&mut self.parts, WHAT)?;
            let own = same && Some(self.parts.len()) == level;
            self.parts.push(Part {
                sweep: grid.table_sweep(lattice),
                lattice,
                start,
                own,
                x: 0,
                more: 0,
            });
        }
        self.level = level;
        Ok(())
    }

    /// The runs of all levels, each of one image.
    fn runs(&mut self) -> Result<&[Run], Shortage> {
        self.runs.clear();
        for part in &mut self.parts {
            part.collect(Limit::NONE, &mut Walked::default(), &mut self.runs)?;
        }
        Ok(&self.runs)
    }

    /// Returns true if the candidates of the targets are all of the central image.
    fn is_inside(&self) -> bool {
        let inside = |part: &Part<'_>| part.sweep.is_central() && part.is_whole(usize::MAX);
        self.parts.iter().all(inside)
    }

    /// The runs where [that](Self::is_inside) is so: one per row.
    fn runs_inside(&mut self) -> Result<&[Run], Shortage> {
        self.runs.clear();
        for part in &mut self.parts {
            part.sweep.forget_runs();
            part.sweep.collect_open(part.x, part.more);
            part.take_runs(&mut self.runs)?;
        }
        Ok(&self.runs)
    }

    /// The next runs of the levels that have not been walked, as [`Sweep::next_runs`] gives them.
    fn next_runs(&mut self, walked: &mut Walked) -> Result<&[Run], Shortage> {
        let whole = |part: &Part<'_>| part.is_whole(MAX_ROWS);
        if !walked.is_begun() && self.parts.iter().all(whole) {
            walked.all = true;
            return self.runs_inside();
        }
        self.runs.clear();
        let mut limit = Limit::BATCH;
        while let Some(part) = self.parts.get_mut(walked.level) {
            let mut of_part = Walked {
                level: 0,
                ..*walked
            };
            let before = self.runs.len();
            part.collect(limit, &mut of_part, &mut self.runs)?;
            if !of_part.all {
                (walked.row, walked.low) = (of_part.row, of_part.low);
                return Ok(&self.runs);
            }
            *walked = Walked {
                level: walked.level + 1,
                ..Walked::default()
            };
            let added = &self.runs[before..];
            let points: usize = added.iter().map(|run| run.slots.len()).sum();
            if points >= limit.points || added.len() >= limit.runs {
                break;
            }
            limit.points -= points;
            limit.runs -= added.len();
        }
        walked.all = walked.level == self.parts.len();
        Ok(&self.runs)
    }
}

impl Part<'_> {
    /// Returns true if the box cuts none of the rows, which are at most `max_rows`.
    fn is_whole(&self, max_rows: usize) -> bool {
        self.sweep.is_inside_along_x(self.x, self.more, max_rows)
    }

    /// Adds the next runs to `runs`.
    fn collect(
        &mut self,
        limit: Limit,
        walked: &mut Walked,
        runs: &mut Vec<Run>,
    ) -> Result<(), Shortage> {
        self.sweep.forget_runs();
        let (x, more) = (self.x, self.more);
        if limit.points == usize::MAX && self.is_whole(usize::MAX) && self.sweep.is_central() {
            self.sweep.collect_open(x, more);
        } else {
            self.sweep.collect(x, more, Which::All, limit, walked)?;
        }
        self.take_runs(runs)
    }

    /// Moves the runs that were collected behind those in `runs`.
    fn take_runs(&mut self, runs: &mut Vec<Run>) -> Result<(), Shortage> {
        let found = self.sweep.collected();
        make_room(runs, runs.len() + found.len(), WHAT)?;
        runs.extend(found.iter().map(|run| moved(run, self.start)));
        Ok(())
    }
}
