//! From a range of sorted targets to groups of targets with their gathered candidates.
//!
//! A group is the targets of one cell, or of a few nearly empty ones (all of the same periodic wrap). Its candidates are a
//! superset of the neighbours of each of its targets, in the order of the grid's runs.

use crate::{
    SetRadii, Share, SortedRadii,
    aligned::Aligned,
    candidates::Candidates,
    image::{Image, image_of},
    listed::Listed,
    share::Tally,
    simd::{Gather, Mode, RADII, SHIFTED, STREAMS, Simd, Tag, has, with_mode},
    window::PageTable,
};
use nearfield_grid::{
    Cell, Cells, Grid, MAX_POINTS, MAX_RUNS, Run, Sweep, Walked,
    memory::{Shortage, make_room_for_one},
};
use std::ops::Range;

/// Buffers of one worker, reused for every group.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) candidates: Candidates,
    /// Source channels of the candidates, for traversals.
    pub(crate) gathered: Aligned<f32>,
    /// Geometry and source channels of the neighbours of one target, for traversals.
    pub(crate) packed: Aligned<f32>,
    /// For traversals that evaluate pairs once.
    pub(crate) pages: PageTable,
    /// Places of candidates that are to be decided in double precision.
    pub(crate) places: Aligned<u32>,
    /// Room for lists that are counted only.
    pub(crate) scribble: Aligned<u32>,
    pub(crate) pieces: Vec<Piece>,
    /// Pairs of one target, for traversals over lists.
    pub(crate) listed: Listed,
    /// Memory that was refused; what was being done then has ended early, and its results are of no
    /// use. Whoever deals out tasks looks here.
    pub(crate) failed: Option<Shortage>,
}

impl Scratch {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.candidates.bytes()
            + self.gathered.bytes()
            + self.packed.bytes()
            + self.places.bytes()
            + self.scribble.bytes()
            + self.pages.bytes()
            + size_of::<Piece>() * self.pieces.capacity()
            + self.listed.bytes()
    }
}

/// Part of a run whose points all take part in the same image.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    slots: Range<usize>,
    pub(crate) image: Image,
    /// Image vector of `image`.
    pub(crate) image_vector: [f64; 3],
    /// The same for the sorted coordinates.
    shift: [f32; 3],
    /// Number of candidates up to here, once they are gathered.
    pub(crate) end: usize,
}

/// What the groups of a search have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) targets: &'a Grid,
    pub(crate) sources: &'a Grid,
    /// Whether targets and sources are one set, so that a point must not find itself.
    pub(crate) same_set: bool,
    pub(crate) tag: Tag,
    /// Whether candidates need ranks, for half lists.
    pub(crate) ranked: bool,
    pub(crate) radii: Radii<'a>,
    /// Whether only the targets themselves and what comes after them are candidates, around the box
    /// where the domain is periodic, so that every pair of a set is met once. The targets then come
    /// first. Of a share, in an open domain, points before a target are candidates too where nobody
    /// searches for them.
    pub(crate) ahead: bool,
    /// Which targets are searched for, if not all.
    pub(crate) share: Option<Share<'a>>,
}

/// Squared radii per sorted point, where they are not all the lattice's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Radii<'a> {
    /// Of the targets.
    pub(crate) targets: Option<&'a [f32]>,
    /// Of the sources, padded as the coordinates are.
    pub(crate) sources: Option<&'a [f32]>,
}

impl<'a> From<SetRadii<&'a SortedRadii>> for Radii<'a> {
    fn from(radii: SetRadii<&'a SortedRadii>) -> Self {
        Self {
            targets: radii.targets().map(|radii| radii.squared()),
            sources: radii.sources().map(|radii| radii.squared()),
        }
    }
}

impl Radii<'_> {
    /// Squared radius of sorted target `slot`, `uniform` where points have none of their own; what
    /// sources bring themselves comes on top.
    #[inline(always)]
    pub(crate) fn of_target(&self, slot: usize, uniform: f32) -> f32 {
        match (self.targets, self.sources) {
            (None, None) => uniform,
            (Some(r2), _) => r2[slot],
            // Only the sources' radii count: below any square.
            (None, Some(_)) => -1.0,
        }
    }

    /// Whether j is a neighbour of i whenever i is one of j.
    pub(crate) fn are_symmetric(&self) -> bool {
        self.targets.is_some() == self.sources.is_some()
    }
}

/// Targets that are searched together.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Sorted targets.
    pub(crate) slots: Range<usize>,
    /// Place of the first target among the candidates; the others follow it. `None` when the
    /// targets are no candidates.
    pub(crate) itself: Option<usize>,
    pub(crate) batch: Batch,
}

/// Which of the candidates of a group were gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// All of them.
    Whole,
    /// Some of them, because there are too many to be held at once: such a group has one target, and
    /// the next group is the same with the next batch, up to the `last`.
    Part { first: bool, last: bool },
}

impl Group {
    /// Whether all candidates were gathered.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.batch == Batch::Whole
    }

    /// Whether there are no more candidates.
    #[inline(always)]
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.batch, Batch::Whole | Batch::Part { last: true, .. })
    }

    /// Place among the candidates of target number `k` of the group, or `usize::MAX`.
    #[inline(always)]
    pub(crate) fn place_of(&self, k: usize) -> usize {
        self.itself.map_or(usize::MAX, |first| first + k)
    }
}

/// Cells with fewer targets than this are searched together with the next ones along x: what a
/// group costs whatever its size is shared, while their candidates still fill few vectors.
const SMALL_TARGETS: usize = STREAMS;

/// Images of a point within the radius where no box is smaller than that, the point itself included.
const NEIGHBOUR_BOXES: usize = 27;

/// Cells that a group spans at most.
const LONGEST_GROUP: i64 = 8;

/// Group after group of a range of sorted targets.
pub(crate) struct Groups<'a> {
    walk: &'a Walk<'a>,
    cells: Cells<'a>,
    sweep: Sweep<'a>,
    /// A cell taken from `cells` whose targets, or the last of them, are yet to come.
    rest: Option<(Cell, Range<usize>)>,
    /// What was taken of a share.
    tally: Option<Tally<'a>>,
    /// A target of which batches are yet to come.
    long: Option<Long>,
}

/// A target whose candidates come in batches.
#[derive(Debug, Clone, Copy)]
struct Long {
    cell: Cell,
    slot: usize,
    walked: Walked,
}

impl Long {
    fn targets(&self) -> Range<usize> {
        self.slot..self.slot + 1
    }
}

impl<'a> Groups<'a> {
    /// What is walked.
    pub(crate) fn walk(&self) -> &'a Walk<'a> {
        self.walk
    }

    /// Begins anew with the batches of a group that is not [whole](Group::is_whole).
    pub(crate) fn rewind(&mut self, group: &Group) {
        let slot = group.slots.start;
        let cell = self.walk.targets.cells(slot..slot + 1).next();
        self.long = cell.map(|(cell, _)| Long {
            cell,
            slot,
            walked: Walked::default(),
        });
    }

    /// Gathers the candidates of the next group into `scratch`; returns the group and what its
    /// candidates carry.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    pub(crate) unsafe fn next<S: Simd>(&mut self, scratch: &mut Scratch) -> Option<(Group, Mode)> {
        // SAFETY: the caller's promise.
        unsafe { S::next_group(self, scratch) }
    }

    /// [`next`](Self::next), to be inlined into a function of the level.
    ///
    /// Not an iterator, and nothing here takes a closure: code is compiled for a level only where
    /// it is inlined into such a function, which closures cannot be relied on to be.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    pub(crate) unsafe fn next_at<S: Simd>(
        &mut self,
        scratch: &mut Scratch,
    ) -> Option<(Group, Mode)> {
        // SAFETY: the caller's promise.
        let next = unsafe {
            if self.walk.sources.lattice().effective_domain().is_periodic() {
                self.next_periodic::<S>(scratch)
            } else {
                self.next_open::<S>(scratch)
            }
        };
        match next {
            Ok(next) => next,
            Err(shortage) => {
                scratch.failed = Some(shortage);
                None
            }
        }
    }

    /// [`next`](Self::next) in an open domain.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn next_open<S: Simd>(&mut self, scratch: &mut Scratch) -> Next {
        let walk = self.walk;
        let Some((cell, more, slots)) = self.next_cells() else {
            return Ok(None);
        };
        let (runs, itself) = match (walk.ahead, &self.tally) {
            (false, _) => (self.sweep.runs(cell, more)?, None),
            // The targets come first, and all of them survive the box test.
            (true, None) => (self.sweep.runs_ahead(cell, more, slots.start)?, Some(0)),
            (true, Some(tally)) => {
                let parts = tally.parts();
                let runs = (self.sweep).runs_of_share(cell, more, slots.start, parts)?;
                (runs, Some(0))
            }
        };
        // SAFETY: the caller's promise.
        unsafe {
            match walk.radii.sources {
                None => walk.gather_open::<S, 0>(runs, &slots, scratch)?,
                Some(_) => walk.gather_open::<S, RADII>(runs, &slots, scratch)?,
            }
        };
        let batch = Batch::Whole;
        let group = Group {
            slots,
            itself,
            batch,
        };
        Ok(Some((group, walk.common_mode())))
    }

    /// The next cell, together with those that follow it along x as long as all of them hold few
    /// targets; how many follow; and their targets.
    #[inline(always)]
    fn next_cells(&mut self) -> Option<(Cell, i64, Range<usize>)> {
        let (cell, mut slots) = match self.rest.take() {
            Some(rest) => rest,
            None => self.next_cell()?,
        };
        let mut more = 0;
        while slots.len() < SMALL_TARGETS {
            let Some((next, more_slots)) = self.next_cell() else {
                break;
            };
            let apart = next[0] - cell[0];
            // Of a share, cells between may have been left out.
            let same_row =
                next[1..] == cell[1..] && apart < LONGEST_GROUP && more_slots.start == slots.end;
            if !same_row || slots.len() + more_slots.len() > 2 * SMALL_TARGETS {
                self.rest = Some((next, more_slots));
                break;
            }
            slots.end = more_slots.end;
            more = apart;
        }
        Some((cell, more, slots))
    }

    /// The next cell with targets to be searched for.
    #[inline(always)]
    fn next_cell(&mut self) -> Option<(Cell, Range<usize>)> {
        let Some(tally) = &mut self.tally else {
            return self.cells.next();
        };
        let index = self.walk.targets.points().index();
        loop {
            let (cell, slots) = self.cells.next()?;
            if tally.takes(cell, &index[slots.clone()]) {
                return Some((cell, slots));
            }
        }
    }

    /// [`next`](Self::next) where the domain is periodic.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn next_periodic<S: Simd>(&mut self, scratch: &mut Scratch) -> Next {
        let walk = self.walk;
        let Some(Collected {
            targets,
            batch,
            shifted,
        }) = self.collect_next(scratch)?
        else {
            return Ok(None);
        };
        let mode = walk.common_mode() | if shifted { SHIFTED } else { 0 };
        // SAFETY: the caller's promise.
        let group = with_mode!(mode, MODE => unsafe {
            walk.gather_pieces::<S, MODE>(targets, batch, scratch)?
        });
        Ok(Some((group, mode)))
    }

    /// Collects the pieces of the next targets, all of the same wrap; or of one target some of them,
    /// where there are too many to be held at once.
    #[inline(always)]
    fn collect_next(&mut self, scratch: &mut Scratch) -> Result<Option<Collected>, Shortage> {
        let walk = self.walk;
        if let Some(long) = self.long.take() {
            return self.collect_batch(long, scratch).map(Some);
        }
        let (cell, slots) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.next_cell() {
                Some(next) => next,
                None => return Ok(None),
            },
        };
        let mut long = Long {
            cell,
            slot: slots.start,
            walked: Walked::default(),
        };
        let shifted = walk.collect_pieces(&mut long, &mut self.sweep, &mut scratch.pieces)?;
        if !long.walked.is_all() {
            if slots.len() > 1 {
                self.rest = Some((cell, slots.start + 1..slots.end));
            }
            self.long = Some(long);
            return Ok(Some(Collected {
                targets: long.targets(),
                batch: Batch::Part {
                    first: true,
                    last: false,
                },
                shifted,
            }));
        }
        let end = walk.same_wrap_until(&slots);
        if end < slots.end {
            self.rest = Some((cell, end..slots.end));
        }
        Ok(Some(Collected {
            targets: slots.start..end,
            batch: Batch::Whole,
            shifted,
        }))
    }

    /// Collects the next pieces of one target.
    #[cold]
    #[inline(never)]
    fn collect_batch(
        &mut self,
        mut long: Long,
        scratch: &mut Scratch,
    ) -> Result<Collected, Shortage> {
        let first = !long.walked.is_begun();
        let shifted =
            (self.walk).collect_pieces(&mut long, &mut self.sweep, &mut scratch.pieces)?;
        let last = long.walked.is_all();
        self.long = (!last).then_some(long);
        Ok(Collected {
            targets: long.targets(),
            batch: Batch::Part { first, last },
            shifted,
        })
    }
}

/// Targets whose pieces were collected.
struct Collected {
    targets: Range<usize>,
    batch: Batch,
    /// Whether any piece is not of the central image.
    shifted: bool,
}

/// The next group, with what its candidates carry.
type Next = Result<Option<(Group, Mode)>, Shortage>;

impl Walk<'_> {
    /// Returns true if groups may have more candidates than are held at once, because points have a
    /// great many images within the radius.
    pub(crate) fn may_be_long(&self) -> bool {
        let images = self.sources.lattice().max_images();
        let points = self.sources.points().len();
        images > NEIGHBOUR_BOXES
            && (images > MAX_RUNS || images.saturating_mul(points) > MAX_POINTS)
    }

    /// Squared radius of sorted target `slot`; what candidates bring themselves comes on top.
    #[inline(always)]
    pub(crate) fn r2(&self, slot: usize) -> f32 {
        let uniform = self.sources.lattice().radius().squared();
        self.radii.of_target(slot, uniform)
    }

    /// Largest squared radius of the targets `slots`.
    #[inline(always)]
    fn largest_r2(&self, slots: &Range<usize>) -> f32 {
        match self.radii.targets {
            None => self.r2(slots.start),
            Some(r2) => r2[slots.clone()].iter().fold(0.0, |most, &r2| most.max(r2)),
        }
    }

    /// What the inner loops must do whatever the group.
    fn common_mode(&self) -> Mode {
        match self.radii.sources {
            Some(_) => RADII,
            None => 0,
        }
    }

    /// The groups of the sorted targets `slots`.
    pub(crate) fn groups(&self, slots: Range<usize>) -> Groups<'_> {
        Groups {
            walk: self,
            cells: self.targets.cells(slots),
            sweep: self.sources.sweep(),
            rest: None,
            tally: self.share.map(Tally::new),
            long: None,
        }
    }

    /// End of the targets that share the wrap of the first.
    fn same_wrap_until(&self, slots: &Range<usize>) -> usize {
        let points = self.targets.points();
        if !points.any_wrapped() {
            return slots.end;
        }
        let wraps = points.wraps(slots.start);
        slots
            .clone()
            .find(|&slot| points.wraps(slot) != wraps)
            .unwrap_or(slots.end)
    }

    /// What gathering for the targets `slots` starts from.
    #[inline(always)]
    fn gather_args(&self, slots: &Range<usize>) -> Gather<'_> {
        let (low, high) = self.bounds(slots);
        Gather {
            points: self.sources.points(),
            source_r2: self.radii.sources.unwrap_or_default(),
            tag: self.tag,
            shift: [0.0; 3],
            low,
            high,
            r2: self.largest_r2(slots),
        }
    }

    /// Gathers the candidates of the targets `slots` from `runs`, in an open domain.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says whether sources have radii.
    #[inline(always)]
    unsafe fn gather_open<S: Simd, const MODE: Mode>(
        &self,
        runs: &[Run],
        slots: &Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<(), Shortage> {
        let args = self.gather_args(slots);
        let candidates = &mut scratch.candidates;
        candidates.clear(false, runs.iter().map(|run| run.slots.len()).sum())?;
        let to = candidates.arrays_mut();
        let mut len = 0;
        for run in runs {
            // SAFETY: the caller's promise; room for all runs was made.
            len = unsafe { S::gather::<MODE>(&args, run.slots.clone(), &to, len) };
        }
        // SAFETY: all of them were written.
        unsafe { candidates.set_len(len) };
        candidates.seal(MODE);
        Ok(())
    }

    /// Gathers the candidates of the targets `slots`, all of the same wrap, from the pieces
    /// collected for them.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what the candidates carry.
    #[inline(always)]
    unsafe fn gather_pieces<S: Simd, const MODE: Mode>(
        &self,
        slots: Range<usize>,
        batch: Batch,
        scratch: &mut Scratch,
    ) -> Result<Group, Shortage> {
        let mut args = self.gather_args(&slots);
        let candidates = &mut scratch.candidates;
        let most = scratch.pieces.iter().map(|piece| piece.slots.len()).sum();
        candidates.clear(has(MODE, SHIFTED), most)?;
        let to = candidates.arrays_mut();
        let (mut len, mut itself) = (0, None);
        for piece in &mut scratch.pieces {
            let begin = len;
            args.shift = piece.shift;
            let mut rest = piece.slots.clone();
            let central = piece.image == [0; 3];
            // SAFETY: the caller's promise; room for all pieces was made, and what is ranked was
            // written.
            unsafe {
                if self.same_set && central && rest.contains(&slots.start) {
                    // All targets survive the box test, so they stay next to each other.
                    len = S::gather::<MODE>(&args, rest.start..slots.start, &to, len);
                    itself = Some(len);
                    rest.start = slots.start;
                }
                len = S::gather::<MODE>(&args, rest, &to, len);
                if self.ranked && has(MODE, SHIFTED) {
                    to.rank(begin..len, piece.image > [0; 3]);
                }
            }
            piece.end = len;
        }
        // SAFETY: all of them were written.
        unsafe { candidates.set_len(len) };
        candidates.seal(MODE);
        Ok(Group {
            slots,
            itself,
            batch,
        })
    }

    /// Collects the runs that come next for the cell of a target, cut by image, where they do not all
    /// have to be held at once; true when any image is not the central one.
    #[inline(always)]
    fn collect_pieces(
        &self,
        of: &mut Long,
        sweep: &mut Sweep<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<bool, Shortage> {
        pieces.clear();
        let wraps = self.targets.points().wraps(of.slot);
        let ahead_of = self.ahead.then_some(of.slot);
        loop {
            for run in sweep.next_runs(of.cell, ahead_of, &mut of.walked)? {
                let image = image_of(run.image, wraps, [0; 3]);
                self.split(run.slots.clone(), image, pieces)?;
            }
            // Sums of both points of a pair lie beside all candidates of the group.
            if !self.ahead || of.walked.is_all() {
                break;
            }
        }
        Ok(pieces.iter().any(|piece| piece.image != [0; 3]))
    }

    /// Cuts a run where the wraps of its points change, because an image counts from the
    /// unwrapped coordinates.
    fn split(
        &self,
        slots: Range<usize>,
        image: Image,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Shortage> {
        let points = self.sources.points();
        let lattice = self.sources.lattice();
        let mut begin = slots.start;
        while begin < slots.end {
            let wraps = points.wraps(begin);
            let end = match points.any_wrapped() {
                true => (begin..slots.end).find(|&slot| points.wraps(slot) != wraps),
                false => None,
            };
            let end = end.unwrap_or(slots.end);
            let [a, b, c] = image;
            let image = [
                a - i64::from(wraps[0]),
                b - i64::from(wraps[1]),
                c - i64::from(wraps[2]),
            ];
            // Away from the faces of the box all runs have one image.
            let (image_vector, shift) = match pieces.last() {
                Some(last) if last.image == image => (last.image_vector, last.shift),
                _ => {
                    let image_vector = lattice.domain().image_vector_f64(image);
                    (image_vector, lattice.image_shift(image_vector))
                }
            };
            make_room_for_one(pieces, "the candidates of a cell")?;
            pieces.push(Piece {
                slots: begin..end,
                image,
                image_vector,
                shift,
                end: 0,
            });
            begin = end;
        }
        Ok(())
    }

    /// Bounding box of the targets.
    #[inline(always)]
    fn bounds(&self, slots: &Range<usize>) -> ([f32; 3], [f32; 3]) {
        let axes = self.targets.points().axes();
        let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        for axis in 0..3 {
            for &x in &axes[axis][slots.clone()] {
                low[axis] = if x < low[axis] { x } else { low[axis] };
                high[axis] = if x > high[axis] { x } else { high[axis] };
            }
        }
        (low, high)
    }
}
