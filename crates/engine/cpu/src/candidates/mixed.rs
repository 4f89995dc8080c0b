//! Candidates of a periodic box that lie in many different boxes.
//!
//! Coordinates are not wrapped, so neighbours in a cell may have been given boxes apart from each
//! other, as molecules are that have diffused for long. Each pair then has an image of its own:
//! that of its cells, more the boxes of the target, less those of the source. Cutting runs where
//! boxes change would leave pieces of a single point. Here runs stay whole, candidates carry their
//! share of the count, and the image vectors are computed for all candidates at once.
//!
//! # Two steps
//!
//! 1. [`Walk::gather_mixed`] copies the candidates of all targets of a cell, with the image of
//!    their cells less their own boxes. Targets and candidates lie in one box only after they are
//!    moved there, so the test against the bounding box of the targets is done with moved
//!    coordinates, which are rounded; the box is enlarged by their slack ([`super::mixing`]).
//! 2. For every target, or those next to each other that lie in the same box,
//!    [`Candidates::see_from`](super::arrays::Candidates::see_from) adds the target's boxes and
//!    computes the contract's image vectors. Positions are those given, so the pair test is the
//!    contract's.
//!
//! # When it is done
//!
//! A piece is collected and gathered separately, however few points it has. Up to [`FEW`] changes
//! in all runs of a cell, a number that was chosen and not measured, they are cut as elsewhere: a
//! box that is centred on the origin, for instance, has changes where its middle planes pass
//! through a run, and molecules that have just left the box are few. Both ways give the same
//! candidates in the same order, or some more of them here, so the pairs that are found do not
//! depend on the choice.
//!
//! # Cost
//!
//! Gathering computes three counts for each candidate and moves it, once per cell. Per target, or
//! run of targets in one box, a multiplication per axis and candidate follows, in `f32` where the
//! lengths of the box allow it ([`super::mixing`]), and nine in `f64` in a tilted box.
//!
//! # Sums of pairs that are evaluated once
//!
//! Candidates are gathered ahead of the first target of the cell, the targets first among them. A
//! target meets those behind itself, which are the ones ahead of it. Contributions to sources stay
//! in arrays parallel to the candidates until all targets have met them
//! ([`Group::keeps`](super::groups::Group)).

use super::{
    arrays::{ArrayLengths, Arrays, Candidates, ImageArrays},
    gather::{Gather, Lanes, inside, splat, squared_to_box},
    mixing::Mixing,
    mode::{EXACT, Mode, RADII, has},
    piece::Pieces,
    scratch::Scratch,
    walk::Walk,
};
use crate::{
    contract::Image,
    simd::{Simd, Task, level::SimdLevel, vector::Compress, with_level},
};
use nearfield_grid::{Lattice, Run, memory::Shortage};
use std::ops::Range;

/// Changes of the box, from a candidate of a run to the next, up to which runs are cut into pieces.
const FEW: usize = 12;

/// Targets that see the candidates that were gathered for their cell through other images, group
/// after group.
pub(super) struct MixedRest {
    /// The targets, sorted.
    pub(super) slots: Range<usize>,
    /// Number of the first among the candidates, where targets are candidates.
    pub(super) itself: Option<usize>,
}

impl Walk<'_> {
    /// Returns true if the runs had to be cut into many pieces.
    pub(crate) fn is_mixed(&self, runs: &[Run]) -> bool {
        let wraps = self.sources.points().all_wraps();
        if wraps.is_empty() || self.mixing.is_none() {
            return false;
        }
        let changes = runs.iter().map(|run| wraps.changes(run.slots.clone()));
        changes.sum::<usize>() > FEW
    }

    /// Returns true if the targets of a cell that is inside and all candidates, the points of
    /// `runs`, lie in the same box, so that they see each other through the central image.
    ///
    /// The box need not be the one that the domain names: molecules that have moved together are
    /// searched as fast as if they had stayed. Costs a look at a bit per candidate.
    #[inline(always)]
    pub(super) fn is_even(&self, slots: &Range<usize>, runs: &[Run]) -> bool {
        let targets = self.targets.points().all_wraps();
        let sources = self.sources.points().all_wraps();
        let wraps = targets.of(slots.start);
        let same = |run: &Run| sources.all_are(run.slots.clone(), wraps);
        targets.all_are(slots.clone(), wraps) && runs.iter().all(same)
    }

    /// The bits of the mode of mixed candidates in addition to [`SHIFTED`](super::mode::SHIFTED).
    /// In double precision positions always decide: image vectors are those of `f64` then.
    #[inline(always)]
    pub(super) fn mixed_mode(&self) -> Mode {
        self.mode(f32::INFINITY)
    }

    /// Bounding box of the targets after they are moved into the box, enlarged by the slack: its
    /// lower and its upper corner.
    ///
    /// Scalar code, because a cell has few targets. Rounding differs from that of the candidates,
    /// which are moved by fused operations; the slack covers either.
    fn moved_bounds(&self, mixing: &Mixing, slots: &Range<usize>) -> [[f32; 3]; 2] {
        let points = self.targets.points();
        let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        for slot in slots.clone() {
            let (position, wraps) = (points.position(slot), points.wraps(slot));
            for axis in 0..3 {
                let mut x = position[axis];
                for k in 0..3 {
                    x -= wraps[k] as f32 * mixing.vectors[k][axis];
                }
                low[axis] = low[axis].min(x);
                high[axis] = high[axis].max(x);
            }
        }
        for axis in 0..3 {
            low[axis] -= mixing.slack[axis];
            high[axis] += mixing.slack[axis];
        }
        [low, high]
    }

    /// Gathers the candidates of the targets `slots` from the runs that were collected as pieces;
    /// returns the number of the first target among them, where the targets are candidates.
    pub(super) fn gather_mixed(
        &self,
        level: SimdLevel,
        mixing: &Mixing,
        slots: &Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Shortage> {
        if has(self.mixed_mode(), RADII) {
            self.gather_mixed_of::<RADII>(level, mixing, slots, scratch)
        } else {
            self.gather_mixed_of::<0>(level, mixing, slots, scratch)
        }
    }

    /// As [`gather_mixed`](Self::gather_mixed); `MODE` says whether sources have radii.
    fn gather_mixed_of<const MODE: Mode>(
        &self,
        level: SimdLevel,
        mixing: &Mixing,
        slots: &Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Shortage> {
        let mut itself = Ok(None);
        let task = GatherMixed::<'_, MODE> {
            walk: self,
            mixing,
            slots,
            scratch,
            itself: &mut itself,
        };
        with_level(level, task);
        itself
    }

    /// As [`gather_mixed`](Self::gather_mixed).
    ///
    /// # Safety
    /// The processor has the vector's level, and `MODE` says whether sources have radii.
    #[inline(always)]
    unsafe fn gather_moved<V: Compress, const MODE: Mode>(
        &self,
        mixing: &Mixing,
        slots: &Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<Option<usize>, Shortage> {
        let [low, high] = self.moved_bounds(mixing, slots);
        let args = Gather {
            points: self.sources.points(),
            source_r2: self.radii.sources.unwrap_or_default(),
            tag: self.gathered_tag(self.mixed_mode()),
            low,
            high,
            r2: self.max_r2(slots),
        };
        let candidates = &mut scratch.candidates;
        candidates.clear(true, scratch.pieces.points())?;
        let to = candidates.arrays_mut();
        let (mut filled, mut itself) = (ArrayLengths::default(), None);
        let Pieces { pieces, images, .. } = &scratch.pieces;
        for piece in pieces {
            let of_cells = images[piece.image].image;
            let image = of_cells.map(|n| n as f32);
            let mut rest = piece.slots.clone();
            // SAFETY: the caller guarantees the level; `clear` made room for all runs.
            unsafe {
                if self.same_set && of_cells == [0; 3] && rest.contains(&slots.start) {
                    // All targets survive the box test, so they stay next to each other.
                    let before = rest.start..slots.start;
                    filled = moved::<V, MODE>(mixing, &args, image, before, &to, filled);
                    itself = Some(filled.candidates);
                    rest.start = slots.start;
                }
                filled = moved::<V, MODE>(mixing, &args, image, rest, &to, filled);
            }
        }
        // SAFETY: `moved` has written them.
        unsafe { candidates.set_filled(filled) };
        candidates.seal(MODE);
        if has(self.mixed_mode(), EXACT) {
            self.look_up(candidates)?;
        }
        Ok(itself)
    }

    /// Moves mixed candidates to the images that the target `slot` sees them through, and names
    /// these where they are asked for.
    ///
    /// Pieces then stand for candidates of one image next to each other, as consumers of pieces
    /// expect, and no longer for runs.
    ///
    /// # Errors
    /// [`Shortage`] if memory for the names is refused.
    pub(super) fn see_mixed(
        &self,
        level: SimdLevel,
        slot: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Shortage> {
        let wraps = self.targets.points().wraps(slot).map(|n| n as f32);
        let lattice = self.sources.lattice();
        let seen = ImageArrays {
            exact: self.double().is_some(),
            lengths: self.mixing.and_then(|mixing| mixing.lengths),
            ranked: self.ranked,
        };
        let task = SeeFrom {
            candidates: &mut scratch.candidates,
            lattice,
            wraps,
            seen,
        };
        with_level(level, task);
        if !self.images {
            return Ok(());
        }
        let Scratch {
            candidates, pieces, ..
        } = scratch;
        let boxes = candidates.boxes();
        pieces.clear();
        let mut last = None;
        for number in 0..candidates.len() {
            let image: Image = [0, 1, 2].map(|axis| (boxes[axis][number] + wraps[axis]) as i64);
            match pieces.pieces.last_mut() {
                Some(piece) if last == Some(image) => piece.end = number + 1,
                _ => pieces.push(lattice, 0..0, image, number + 1)?,
            }
            last = Some(image);
        }
        Ok(())
    }
}

/// Mixed candidates, compiled for a level.
struct GatherMixed<'a, const MODE: Mode> {
    /// The search.
    walk: &'a Walk<'a>,
    /// How points are moved into the box.
    mixing: &'a Mixing,
    /// The targets.
    slots: &'a Range<usize>,
    /// The runs as pieces, and where candidates go.
    scratch: &'a mut Scratch,
    /// The number of the first target among the candidates.
    itself: &'a mut Result<Option<usize>, Shortage>,
}

impl<const MODE: Mode> Task for GatherMixed<'_, MODE> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, mixing, slots) = (self.walk, self.mixing, self.slots);
        // SAFETY: guaranteed by the caller, and the mode by the maker of the task.
        let itself = unsafe { walk.gather_moved::<S::Single, MODE>(mixing, slots, self.scratch) };
        *self.itself = itself;
    }
}

/// Image vectors of mixed candidates, compiled for a level.
struct SeeFrom<'a> {
    /// The candidates.
    candidates: &'a mut Candidates,
    /// The boxes.
    lattice: &'a Lattice,
    /// Boxes of the target.
    wraps: [f32; 3],
    /// What is computed.
    seen: ImageArrays,
}

impl Task for SeeFrom<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        (self.candidates).see_from(self.lattice, self.wraps, self.seen);
    }
}

/// Copies the candidates among the sorted points `slots`, which are seen through `image` before
/// their own boxes are taken off, as [`gather`](super::gather::gather) does. Per candidate the
/// image less its boxes is kept.
///
/// # Safety
/// As for [`gather`](super::gather::gather).
#[inline(always)]
unsafe fn moved<V: Compress, const MODE: Mode>(
    mixing: &Mixing,
    args: &Gather<'_>,
    image: [f32; 3],
    slots: Range<usize>,
    to: &Arrays,
    mut filled: ArrayLengths,
) -> ArrayLengths {
    let wraps = args.points.all_wraps().axes();
    let mut slot = slots.start;
    // SAFETY: the caller guarantees the level. Boxes are padded by LANES as the points are, and the
    // caller made room for the run and LANES more.
    unsafe {
        let (low, high) = (splat::<V>(args.low), splat::<V>(args.high));
        let image = splat::<V>(image);
        let (enlarged, least) = (V::splat(1.0 + f32::EPSILON * 8.0), V::splat(1e-36));
        let target_r2 = V::splat(args.r2);
        while slot < slots.end {
            let lanes = Lanes::<V>::load::<MODE>(args, slot);
            let (mut boxes, mut moved) = (image, lanes.position);
            for k in 0..3 {
                boxes[k] = image[k].sub(V::load_whole(wraps[k].as_ptr().add(slot)));
            }
            for axis in 0..3 {
                if mixing.tilted {
                    for k in 0..3 {
                        let vector = V::splat(mixing.vectors[k][axis]);
                        moved[axis] = boxes[k].mul_add(vector, moved[axis]);
                    }
                } else {
                    let length = V::splat(mixing.vectors[axis][axis]);
                    moved[axis] = boxes[axis].mul_add(length, moved[axis]);
                }
            }
            let r2 = lanes.larger_r2::<MODE>(target_r2).mul_add(enlarged, least);
            let near = squared_to_box(moved, low, high).le(r2) & inside::<V>(slot, slots.end);
            let (order, len) = (V::order(near), filled.candidates);
            for k in 0..3 {
                boxes[k].compress(order, to.boxes[k].add(len));
            }
            lanes.keep::<MODE>(args, (near, order), to, &mut filled);
            slot += V::LANES;
        }
    }
    filled
}
