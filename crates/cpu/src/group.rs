//! From a range of sorted targets to groups of targets with their gathered candidates.
//!
//! A group is the targets of one cell (all of the same periodic wrap). Its candidates are a
//! superset of the neighbours of each of its targets, in the order of the grid's runs.

use crate::{
    aligned::Aligned,
    candidates::Candidates,
    simd::{Gather, Simd, Tag},
};
use nearfield_grid::{Cell, Grid};
use std::ops::Range;

/// Buffers of one worker, reused for every group.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) candidates: Candidates,
    /// Source channels of the candidates, for traversals.
    pub(crate) gathered: Aligned<f32>,
    /// Geometry and source channels of the neighbours of one target, for traversals.
    pub(crate) packed: Aligned<f32>,
    pieces: Vec<Piece>,
}

impl Scratch {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.candidates.bytes()
            + self.gathered.bytes()
            + self.packed.bytes()
            + size_of::<Piece>() * self.pieces.capacity()
    }
}

/// Part of a run whose points all take part in the same image.
#[derive(Debug, Clone)]
struct Piece {
    slots: Range<usize>,
    image: [i32; 3],
    /// Image vector of `image`.
    shift: [f32; 3],
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
}

/// Targets of one cell.
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

impl Walk<'_> {
    /// Squared radius by the contract.
    pub(crate) fn r2(&self) -> f32 {
        self.sources.lattice().radius().squared()
    }

    /// Gathers for every group of the sorted targets `slots` and hands it to `visit`.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    pub(crate) unsafe fn for_each_group<S: Simd>(
        &self,
        slots: Range<usize>,
        scratch: &mut Scratch,
        mut visit: impl FnMut(&Group, &Candidates),
    ) {
        for (cell, mut slots) in self.targets.cells(slots) {
            while !slots.is_empty() {
                let end = self.same_wrap_until(&slots);
                // SAFETY: the caller's promise.
                let group = unsafe { self.gather::<S>(cell, slots.start..end, scratch) };
                visit(&group, &scratch.candidates);
                slots.start = end;
            }
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

    /// Gathers the candidates of the targets `slots`, all in `cell` and of the same wrap.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn gather<S: Simd>(
        &self,
        cell: Cell,
        slots: Range<usize>,
        scratch: &mut Scratch,
    ) -> Group {
        let shifted = self.collect_pieces(cell, &slots, &mut scratch.pieces);
        let (low, high) = self.bounds(&slots);
        let candidates = &mut scratch.candidates;
        candidates.clear(shifted);
        candidates.reserve(scratch.pieces.iter().map(|piece| piece.slots.len()).sum());
        let mut itself = None;
        let mut args = Gather {
            points: self.sources.points(),
            slots: 0..0,
            tag: self.tag,
            shift: [0.0; 3],
            shifted,
            low,
            high,
            r2: self.r2(),
        };
        for piece in &scratch.pieces {
            let begin = candidates.len();
            args.slots = piece.slots.clone();
            args.shift = piece.shift;
            let central = piece.image == [0; 3];
            if self.same_set && central && piece.slots.contains(&slots.start) {
                // All targets survive the box test, so they stay next to each other.
                args.slots.end = slots.start;
                // SAFETY: the caller's promise; room for all pieces was made above.
                unsafe { S::gather(&args, candidates) };
                itself = Some(candidates.len());
                args.slots = slots.start..piece.slots.end;
            }
            // SAFETY: as above.
            unsafe { S::gather(&args, candidates) };
            if self.ranked && shifted {
                candidates.rank_from(begin, piece.image > [0; 3]);
            }
        }
        candidates.seal();
        Group { slots, itself }
    }

    /// Collects the runs of a cell, cut by image; true when any image is not the central one.
    #[inline(always)]
    fn collect_pieces(&self, cell: Cell, targets: &Range<usize>, pieces: &mut Vec<Piece>) -> bool {
        pieces.clear();
        if !self.sources.lattice().domain().is_periodic() {
            self.sources.for_each_run(cell, |run| {
                pieces.push(Piece {
                    slots: run.slots,
                    image: [0; 3],
                    shift: [0.0; 3],
                });
            });
            return false;
        }
        let wraps = self.targets.points().wraps(targets.start);
        self.sources.for_each_run(cell, |run| {
            let image = std::array::from_fn(|axis| run.image[axis] + wraps[axis]);
            self.split(run.slots, image, pieces);
        });
        pieces.iter().any(|piece| piece.image != [0; 3])
    }

    /// Cuts a run where the wraps of its points change, because an image counts from the
    /// unwrapped coordinates.
    fn split(&self, slots: Range<usize>, image: [i32; 3], pieces: &mut Vec<Piece>) {
        let points = self.sources.points();
        let domain = self.sources.lattice().domain();
        let mut begin = slots.start;
        while begin < slots.end {
            let wraps = points.wraps(begin);
            let end = match points.any_wrapped() {
                true => (begin..slots.end).find(|&slot| points.wraps(slot) != wraps),
                false => None,
            };
            let end = end.unwrap_or(slots.end);
            let image = std::array::from_fn(|axis| image[axis] - wraps[axis]);
            pieces.push(Piece {
                slots: begin..end,
                image,
                shift: domain.image_vector(image),
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
