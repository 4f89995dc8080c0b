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
use nearfield_grid::{Cell, Cells, Grid, Run, Sweep};
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
    pub(crate) pieces: Vec<Piece>,
    /// Pairs of one target, for traversals over lists.
    pub(crate) listed: Listed,
}

impl Scratch {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.candidates.bytes()
            + self.gathered.bytes()
            + self.packed.bytes()
            + self.places.bytes()
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
    pub(crate) fn are_mutual(&self) -> bool {
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
}

impl Group {
    /// Place among the candidates of target number `k` of the group, or `usize::MAX`.
    #[inline(always)]
    pub(crate) fn place_of(&self, k: usize) -> usize {
        self.itself.map_or(usize::MAX, |first| first + k)
    }
}

/// Cells with fewer targets than this are searched together with the next ones along x: what a
/// group costs whatever its size is shared, while their candidates still fill few vectors.
const FEW_TARGETS: usize = STREAMS;

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
}

impl Groups<'_> {
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
        let walk = self.walk;
        if walk.sources.lattice().effective_domain().is_periodic() {
            // SAFETY: the caller's promise.
            return unsafe { self.next_periodic::<S>(scratch) };
        }
        let (cell, more, slots) = self.next_cells()?;
        let (runs, itself) = match (walk.ahead, &self.tally) {
            (false, _) => (self.sweep.runs(cell, more), None),
            // The targets come first, and all of them survive the box test.
            (true, None) => (self.sweep.runs_ahead(cell, more, slots.start), Some(0)),
            (true, Some(tally)) => {
                let parts = tally.parts();
                let runs = (self.sweep).runs_of_share(cell, more, slots.start, parts);
                (runs, Some(0))
            }
        };
        // SAFETY: the caller's promise.
        unsafe {
            match walk.radii.sources {
                None => walk.gather_open::<S, 0>(runs, &slots, scratch),
                Some(_) => walk.gather_open::<S, RADII>(runs, &slots, scratch),
            }
        };
        Some((Group { slots, itself }, walk.common_mode()))
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
        while slots.len() < FEW_TARGETS {
            let Some((next, more_slots)) = self.next_cell() else {
                break;
            };
            let apart = next[0] - cell[0];
            // Of a share, cells between may have been left out.
            let same_row =
                next[1..] == cell[1..] && apart < LONGEST_GROUP && more_slots.start == slots.end;
            if !same_row || slots.len() + more_slots.len() > 2 * FEW_TARGETS {
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
    unsafe fn next_periodic<S: Simd>(&mut self, scratch: &mut Scratch) -> Option<(Group, Mode)> {
        let walk = self.walk;
        let (cell, slots) = match self.rest.take() {
            Some(rest) => rest,
            None => self.next_cell()?,
        };
        let end = walk.same_wrap_until(&slots);
        if end < slots.end {
            self.rest = Some((cell, end..slots.end));
        }
        let group = slots.start..end;
        let shifted = walk.collect_pieces(cell, &group, &mut self.sweep, &mut scratch.pieces);
        let mode = walk.common_mode() | if shifted { SHIFTED } else { 0 };
        // SAFETY: the caller's promise.
        let group = with_mode!(mode, MODE => unsafe {
            walk.gather_pieces::<S, MODE>(group, scratch)
        });
        Some((group, mode))
    }
}

impl Walk<'_> {
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
    ) {
        let args = self.gather_args(slots);
        let candidates = &mut scratch.candidates;
        candidates.clear(false, runs.iter().map(|run| run.slots.len()).sum());
        let to = candidates.arrays_mut();
        let mut len = 0;
        for run in runs {
            // SAFETY: the caller's promise; room for all runs was made.
            len = unsafe { S::gather::<MODE>(&args, run.slots.clone(), &to, len) };
        }
        // SAFETY: all of them were written.
        unsafe { candidates.set_len(len) };
        candidates.seal(MODE);
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
        scratch: &mut Scratch,
    ) -> Group {
        let mut args = self.gather_args(&slots);
        let candidates = &mut scratch.candidates;
        let most = scratch.pieces.iter().map(|piece| piece.slots.len()).sum();
        candidates.clear(has(MODE, SHIFTED), most);
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
        Group { slots, itself }
    }

    /// Collects the runs of a cell, cut by image; true when any image is not the central one.
    #[inline(always)]
    fn collect_pieces(
        &self,
        cell: Cell,
        targets: &Range<usize>,
        sweep: &mut Sweep<'_>,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        pieces.clear();
        let wraps = self.targets.points().wraps(targets.start);
        let runs = match self.ahead {
            false => sweep.runs(cell, 0),
            true => sweep.runs_ahead(cell, 0, targets.start),
        };
        for run in runs {
            let image = image_of(run.image, wraps, [0; 3]);
            self.split(run.slots.clone(), image, pieces);
        }
        pieces.iter().any(|piece| piece.image != [0; 3])
    }

    /// Cuts a run where the wraps of its points change, because an image counts from the
    /// unwrapped coordinates.
    fn split(&self, slots: Range<usize>, image: Image, pieces: &mut Vec<Piece>) {
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
            let image = std::array::from_fn(|axis| image[axis] - i64::from(wraps[axis]));
            let image_vector = lattice.domain().image_vector_f64(image);
            pieces.push(Piece {
                slots: begin..end,
                image,
                image_vector,
                shift: lattice.image_shift(image_vector),
                end: 0,
            });
            begin = end;
        }
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
