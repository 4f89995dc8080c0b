//! Iterates over groups of a range of sorted targets, and gathers the candidates of each.
//!
//! # Open domains
//!
//! A group is the targets of one cell, or of up to eight cells of a row that hold fewer than four
//! targets each. Its runs are gathered one after the other, in one loop per run.
//!
//! # Periodic domains
//!
//! Cells whose candidates are all of the central image and lie in the same box as the targets,
//! which is most of a large box, are searched exactly as in an open domain. Elsewhere the pieces of
//! a cell ([`super::pieces`]) are collected first, each with its image vector.
//! Targets of one cell may lie in different boxes, because coordinates are not wrapped; then they
//! see their neighbours through different images, and each wrap is a group of its own. Where boxes
//! change from point to point ([`super::mixed`]), candidates are gathered once for all of them.
//!
//! # Double precision
//!
//! Candidates are gathered by their proxies in `f32`, with their slots in addition to their names,
//! and positions as given are looked up for the few that are [near the radius](super::near). Where
//! these decide for all, candidates are gathered under their slots, positions are looked up once
//! for all targets of the group, and then candidates get the names that lists take.
//!
//! # Code per level
//!
//! [`NextGroup`] is compiled for every level, with the gathering of plain candidates inside. Other
//! candidates are copied by functions of their own ([`GatherRuns`], [`GatherPieces`],
//! [`GatherMixed`](super::mixed)), and nothing is compiled again with every kernel of a program.
//!
//! # Invariant
//!
//! Every target of the range, or of the share, is in exactly one group (in as many batches of it
//! as there are), and the candidates of a group contain every neighbour of each of its targets.

use super::{
    mixed::MixedRest,
    mode::{Mode, SHIFTED, with_gather_mode},
    pieces::{Collecting, Images},
    runs::{GatherPieces, GatherRuns, GatherTargets},
    scan::STREAMS,
    scratch::Scratch,
    walk::Walk,
};
use crate::{
    sets::share::Tally,
    simd::{Simd, Task, level::SimdLevel, with_level},
};
use nearfield_grid::{Cell, Cells, Run, Sweep, memory::Shortage};
use std::ops::Range;

/// Targets that are searched together.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Sorted targets.
    pub(crate) slots: Range<usize>,
    /// Number of the first target among the candidates; the others follow it. `None` when the
    /// targets are not candidates.
    pub(crate) itself: Option<usize>,
    /// Which of the candidates were gathered.
    pub(crate) batch: Batch,
    /// The bits of the arrays that candidates carry.
    pub(crate) mode: Mode,
    /// Largest squared radius of the targets, or bound of the filter in double precision.
    pub(crate) max_r2: f32,
    /// The candidates of the previous group serve again, perhaps seen through other images.
    pub(crate) kept: bool,
    /// They also serve for the next group.
    pub(crate) keeps: bool,
}

/// Which of the candidates of a group were gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// All of them.
    Whole,
    /// Some of them, because there are too many to be held at once. Such a group has one target,
    /// and the next group is the same with the next batch, up to the `last`.
    Part { first: bool, last: bool },
}

impl Group {
    /// Returns true if all candidates were gathered.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.batch == Batch::Whole
    }

    /// Returns true unless other candidates of the target were gathered before.
    #[inline(always)]
    pub(crate) fn begins(&self) -> bool {
        matches!(self.batch, Batch::Whole | Batch::Part { first: true, .. })
    }

    /// Returns true if there are no more candidates.
    #[inline(always)]
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.batch, Batch::Whole | Batch::Part { last: true, .. })
    }

    /// Number of target `k` of the group among the candidates, or `usize::MAX`.
    #[inline(always)]
    pub(crate) fn candidate_of(&self, k: usize) -> usize {
        self.itself.map_or(usize::MAX, |first| first + k)
    }
}

/// Cells with fewer targets than this are searched together with the next ones along x. The fixed
/// cost of a group is then shared, while its candidates still fill few vectors.
const SMALL_TARGETS: usize = STREAMS;

/// Maximum number of cells that a group spans.
const MAX_CELLS: i64 = 8;

/// Groups of a range of sorted targets; made by [`Walk::groups`].
///
/// It holds the position in the targets and the rows found last, and is made per task.
pub(crate) struct Groups<'a> {
    /// The search that the groups are of.
    walk: &'a Walk<'a>,
    /// Cells of the targets that are yet to come.
    cells: Cells<'a>,
    /// Finds the runs of cells.
    sweep: Sweep<'a>,
    /// A cell taken from `cells` whose targets, or the last of them, are yet to come.
    rest: Option<CellTargets>,
    /// The targets taken of a share.
    tally: Option<Tally<'a>>,
    /// A target with batches yet to come.
    long: Option<Collecting>,
    /// Some point lies outside of the periodic box.
    wrapped: bool,
    /// Targets of the cell whose candidates were gathered last, which are theirs too.
    mixed: Option<MixedRest>,
}

/// A cell, or several of a row, with targets.
struct CellTargets {
    /// The first cell.
    cell: Cell,
    /// Cells after `cell` along x whose targets are included.
    more: i64,
    /// The targets.
    slots: Range<usize>,
}

/// Targets whose pieces were collected. They share a wrap, unless candidates are mixed.
struct TargetBatch {
    /// The targets, all of one wrap.
    targets: Range<usize>,
    /// The part of their candidates.
    batch: Batch,
    /// The images through which the candidates are seen.
    images: Images,
}

impl<'a> Walk<'a> {
    /// The groups of the sorted targets `slots`.
    pub(crate) fn groups(&'a self, slots: Range<usize>) -> Groups<'a> {
        Groups {
            walk: self,
            cells: self.targets.cells(slots),
            sweep: self.sources.sweep_from(self.targets, self.counts),
            rest: None,
            tally: self.share.map(Tally::new),
            long: None,
            wrapped: self.targets.points().any_wrapped() || self.sources.points().any_wrapped(),
            mixed: None,
        }
    }
}

/// The search for the next group, compiled per level.
struct NextGroup<'a, 'b, 'c> {
    /// The groups.
    groups: &'a mut Groups<'b>,
    /// Where candidates go.
    scratch: &'a mut Scratch,
    /// The group that was found.
    next: &'c mut Result<Option<Group>, Shortage>,
}

impl Task for NextGroup<'_, '_, '_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (groups, scratch) = (self.groups, self.scratch);
        // SAFETY: the processor has the level `S`, as the caller guarantees.
        *self.next = unsafe {
            if (groups.walk.sources.lattice().effective_domain()).is_periodic() {
                groups.next_periodic::<S>(scratch)
            } else {
                groups.next_open::<S>(scratch)
            }
        };
    }
}

impl<'a> Groups<'a> {
    /// The walk that the groups belong to.
    pub(crate) fn walk(&self) -> &'a Walk<'a> {
        self.walk
    }

    /// Begins again with the batches of a group that is not [whole](Group::is_whole).
    pub(crate) fn rewind(&mut self, group: &Group) {
        let slot = group.slots.start;
        let cell = self.walk.targets.cells(slot..slot + 1).next();
        self.long = cell.map(|(cell, _)| Collecting::new(cell, slot));
    }

    /// Gathers the candidates of the next group into `scratch`. None when there are no more groups,
    /// or when memory was refused or the job ends early, which `scratch` then says.
    ///
    /// Not inlined, so that it is compiled here and not with every kernel.
    #[inline(never)]
    pub(crate) fn next(&mut self, level: SimdLevel, scratch: &mut Scratch) -> Option<Group> {
        if scratch.is_stopped() {
            return None;
        }
        let mut next = Ok(None);
        let task = NextGroup {
            groups: self,
            scratch,
            next: &mut next,
        };
        with_level(level, task);
        next.unwrap_or_else(|shortage| {
            scratch.failed = Some(shortage);
            None
        })
    }

    /// [`next`](Self::next) in an open domain.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn next_open<S: Simd>(
        &mut self,
        scratch: &mut Scratch,
    ) -> Result<Option<Group>, Shortage> {
        let walk = self.walk;
        let Some(first) = self.next_targets() else {
            return Ok(None);
        };
        let CellTargets { cell, more, slots } = self.joined(first, i64::MAX);
        self.sweep.aim(cell, more, &slots)?;
        let (runs, itself) = match (walk.ahead, &self.tally) {
            (false, _) => (self.sweep.runs(cell, more)?, None),
            // The targets come first, and all of them survive the box test.
            (true, None) => (self.sweep.runs_ahead(cell, more, slots.start)?, Some(0)),
            (true, Some(tally)) => {
                let share = tally.share();
                let covers = |cell: Cell| share.has(cell);
                let runs = (self.sweep).runs_of_share(cell, more, slots.start, covers)?;
                (runs, Some(0))
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            walk.gather_runs::<S>(runs, slots, itself, scratch)
                .map(Some)
        }
    }

    /// The next group of a periodic domain if none of its candidates is of another image. Its
    /// candidates carry no image vectors, so it is searched as in an open domain. None where the
    /// next cell is near a face, which is then still to come.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn next_inside<S: Simd>(
        &mut self,
        scratch: &mut Scratch,
    ) -> Result<Option<Group>, Shortage> {
        let walk = self.walk;
        let Some(first) = self.next_targets() else {
            return Ok(None);
        };
        self.sweep.aim(first.cell, first.more, &first.slots)?;
        let Some(last) = self.sweep.inside_until(first.cell)? else {
            self.rest = Some(first);
            return Ok(None);
        };
        // Whether the next cells are even as well is not known.
        let found = if self.wrapped {
            first
        } else {
            self.joined(first, last)
        };
        let CellTargets { cell, more, slots } = found;
        let ahead_of = walk.ahead.then_some(slots.start);
        let runs = self.sweep.runs_inside(cell, more, ahead_of)?;
        if self.wrapped && !walk.is_even(&slots, runs) {
            self.rest = Some(CellTargets { cell, more, slots });
            return Ok(None);
        }
        let itself = walk.ahead.then_some(0);
        // SAFETY: guaranteed by the caller.
        unsafe {
            walk.gather_runs::<S>(runs, slots, itself, scratch)
                .map(Some)
        }
    }

    /// The targets left over from the last cell, or those of the next cell.
    #[inline(always)]
    fn next_targets(&mut self) -> Option<CellTargets> {
        match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.next_cell(),
        }
    }

    /// The targets `found` together with those of the cells that follow along x, up to cell
    /// `last`, as long as all of them hold few targets.
    #[inline(always)]
    fn joined(&mut self, mut found: CellTargets, last: i64) -> CellTargets {
        while found.slots.len() < SMALL_TARGETS {
            let Some(next) = self.next_cell() else {
                break;
            };
            let apart = next.cell[0] - found.cell[0];
            // Of a share, cells between may have been left out.
            let same_row = next.cell[1..] == found.cell[1..]
                && apart < MAX_CELLS
                && next.cell[0] <= last
                && next.slots.start == found.slots.end
                && !self.walk.targets.begins_level(next.slots.start);
            if !same_row || found.slots.len() + next.slots.len() > 2 * SMALL_TARGETS {
                self.rest = Some(next);
                break;
            }
            found.slots.end = next.slots.end;
            found.more = apart;
        }
        found
    }

    /// The next cell with targets to be searched for.
    #[inline(always)]
    fn next_cell(&mut self) -> Option<CellTargets> {
        let index = self.walk.targets.points().index();
        loop {
            let (cell, slots) = self.cells.next()?;
            let taken = match &mut self.tally {
                Some(tally) => tally.takes(cell, &index[slots.clone()]),
                None => true,
            };
            if taken {
                let more = 0;
                return Some(CellTargets { cell, more, slots });
            }
        }
    }

    /// [`next`](Self::next) where the domain is periodic.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn next_periodic<S: Simd>(
        &mut self,
        scratch: &mut Scratch,
    ) -> Result<Option<Group>, Shortage> {
        if self.mixed.is_none() && self.long.is_none() {
            // SAFETY: the caller guarantees the level.
            let inside = unsafe { self.next_inside::<S>(scratch)? };
            if inside.is_some() {
                return Ok(inside);
            }
        }
        self.next_at_face(S::LEVEL, scratch)
    }

    /// The next group of a periodic domain whose candidates may be of other images.
    #[inline(never)]
    fn next_at_face(
        &mut self,
        level: SimdLevel,
        scratch: &mut Scratch,
    ) -> Result<Option<Group>, Shortage> {
        let walk = self.walk;
        if let Some(mixed) = self.mixed.take() {
            return self.next_mixed(level, mixed, true, scratch).map(Some);
        }
        let Some(collected) = self.collect_next(scratch)? else {
            return Ok(None);
        };
        if let (Images::Mixed, Some(mixing)) = (collected.images, &walk.mixing) {
            let slots = collected.targets;
            let itself = walk.gather_mixed(level, mixing, &slots, scratch)?;
            let mixed = MixedRest { slots, itself };
            return self.next_mixed(level, mixed, false, scratch).map(Some);
        }
        let shifted = collected.images != Images::Central;
        let max_r2 = walk.max_r2(&collected.targets);
        let mode = walk.mode(max_r2) | if shifted { SHIFTED } else { 0 };
        let searched = GatherTargets {
            slots: &collected.targets,
            max_r2,
            mode,
        };
        let mut itself = Ok(None);
        with_gather_mode!(mode, MODE => with_level(level, GatherPieces::<MODE> {
            walk,
            of: searched,
            scratch,
            itself: &mut itself,
        }));
        let itself = itself?;
        Ok(Some(Group {
            slots: collected.targets,
            itself,
            batch: collected.batch,
            mode,
            max_r2,
            kept: false,
            keeps: false,
        }))
    }

    /// The first of the targets whose candidates were gathered together, and those after it that
    /// lie in the same box.
    ///
    /// The candidates stay in the scratch, and only their image vectors are computed again. The
    /// other targets are left for the next call.
    fn next_mixed(
        &mut self,
        level: SimdLevel,
        MixedRest { slots, itself }: MixedRest,
        kept: bool,
        scratch: &mut Scratch,
    ) -> Result<Group, Shortage> {
        let walk = self.walk;
        let end = walk.same_wrap_until(&slots);
        walk.see_mixed(level, slots.start, scratch)?;
        if end < slots.end {
            self.mixed = Some(MixedRest {
                slots: end..slots.end,
                itself: itself.map(|first| first + (end - slots.start)),
            });
        }
        Ok(Group {
            slots: slots.start..end,
            itself,
            batch: Batch::Whole,
            mode: walk.mixed_mode() | SHIFTED,
            max_r2: f32::INFINITY,
            kept,
            keeps: end < slots.end,
        })
    }

    /// Collects the pieces of the next targets, all of the same wrap; or some of the pieces of one
    /// target, where there are too many to be held at once.
    #[inline(always)]
    fn collect_next(&mut self, scratch: &mut Scratch) -> Result<Option<TargetBatch>, Shortage> {
        let walk = self.walk;
        if let Some(long) = self.long.take() {
            return self.collect_batch(long, scratch).map(Some);
        }
        let Some(CellTargets { cell, slots, .. }) = self.next_targets() else {
            return Ok(None);
        };
        self.sweep.aim(cell, 0, &slots)?;
        let mut collecting = Collecting::new(cell, slots.start);
        let images = walk.collect_pieces(&mut collecting, &mut self.sweep, &mut scratch.pieces)?;
        let whole = collecting.walked.is_all();
        let (targets, batch) = if images == Images::Mixed {
            // In any box.
            (slots.clone(), Batch::Whole)
        } else if whole {
            (slots.start..walk.same_wrap_until(&slots), Batch::Whole)
        } else {
            self.long = Some(collecting);
            let (first, last) = (true, false);
            (collecting.targets(), Batch::Part { first, last })
        };
        if targets.end < slots.end {
            self.rest = Some(CellTargets {
                cell,
                more: 0,
                slots: targets.end..slots.end,
            });
        }
        Ok(Some(TargetBatch {
            targets,
            batch,
            images,
        }))
    }

    /// Collects the next pieces of one target.
    #[cold]
    #[inline(never)]
    fn collect_batch(
        &mut self,
        mut long: Collecting,
        scratch: &mut Scratch,
    ) -> Result<TargetBatch, Shortage> {
        let first = !long.walked.is_begun();
        let images = (self.walk).collect_pieces(&mut long, &mut self.sweep, &mut scratch.pieces)?;
        let last = long.walked.is_all();
        self.long = (!last).then_some(long);
        Ok(TargetBatch {
            targets: long.targets(),
            batch: Batch::Part { first, last },
            images,
        })
    }
}

impl Walk<'_> {
    /// The group of the targets `slots`, with its candidates gathered from `runs`, all of the
    /// central image.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn gather_runs<S: Simd>(
        &self,
        runs: &[Run],
        slots: Range<usize>,
        itself: Option<usize>,
        scratch: &mut Scratch,
    ) -> Result<Group, Shortage> {
        let max_r2 = self.max_r2(&slots);
        let mode = self.mode(max_r2);
        let searched = GatherTargets {
            slots: &slots,
            max_r2,
            mode,
        };
        let mut gathered = Ok(());
        // SAFETY: the caller guarantees the level.
        unsafe {
            if mode == 0 {
                gathered = self.gather_open::<S, 0>(runs, searched, scratch);
            } else {
                with_gather_mode!(mode, MODE => S::call(GatherRuns::<MODE> {
                    walk: self,
                    runs,
                    of: searched,
                    scratch,
                    gathered: &mut gathered,
                }));
            }
        }
        gathered?;
        Ok(Group {
            slots,
            itself,
            batch: Batch::Whole,
            mode,
            max_r2,
            kept: false,
            keeps: false,
        })
    }
}
