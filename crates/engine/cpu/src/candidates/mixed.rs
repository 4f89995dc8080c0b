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
//! A piece is collected and gathered by itself, however few points it has. Up to [`FEW`] changes
//! in all runs of a cell, a number that was chosen and not measured, they are cut as elsewhere: a
//! box that is centred on the origin, for instance, has changes where its middle planes pass
//! through a run, and molecules that have just left the box are few. Both ways give the same
//! candidates in the same order, or some more of them here, so the pairs that are found do not
//! depend on the choice.
//!
//! # Cost
//!
//! Gathering computes three counts for each candidate and moves it, once per cell. Per target, or
//! run of targets in one box, a multiplication in `f64` per axis and candidate follows, nine in a
//! tilted box. With points scattered over 27 boxes a search takes about five times as long as with
//! all points inside.
//!
//! # Sums of pairs that are met once
//!
//! Ahead of a target there are other candidates than ahead of the next, so there candidates are
//! gathered for the targets of one box at a time. Where nearly all points differ from their
//! neighbours that costs more than evaluating each pair once saves, and kernels are evaluated from
//! either side ([`Walk::is_mostly_mixed`]).

use super::{
    arrays::{Arrays, Seen},
    gather::{Gather, splat, squared},
    mixing::Mixing,
    mode::{EXACT, Mode, RADII, Tag, has},
    scratch::{Piece, Scratch},
    walk::Walk,
};
use crate::{contract::Image, simd::vector::Compress};
use nearfield_grid::{
    Run,
    memory::{Shortage, make_room_for_one},
};
use std::ops::Range;

/// Changes of the box, from a candidate of a run to the next, up to which runs are cut into pieces.
const FEW: usize = 12;

/// Points per change of the box up to which most cells are taken to have mixed candidates: with
/// eight in a cell and 27 cells around it, one change in eight points is 27 in the runs of a cell.
const RARE: usize = 8;

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

    /// Returns true if the box changes so often, from a sorted source to the next, that most cells
    /// have mixed candidates.
    pub(crate) fn is_mostly_mixed(&self) -> bool {
        let points = self.sources.points();
        let changes = points.all_wraps().changes(0..points.len());
        self.mixing.is_some() && changes > points.len() / RARE
    }

    /// The bits of the mode of mixed candidates besides [`SHIFTED`](super::mode::SHIFTED). In
    /// double precision positions always decide: image vectors are those of `f64` then.
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
    ///
    /// # Safety
    /// The processor has the vector's level, and `MODE` says whether sources have radii.
    #[inline(always)]
    pub(crate) unsafe fn gather_mixed<V: Compress, const MODE: Mode>(
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
        let max = scratch.pieces.iter().map(|piece| piece.slots.len()).sum();
        candidates.clear(true, max)?;
        let to = candidates.arrays_mut();
        let (mut len, mut itself) = (0, None);
        for piece in &scratch.pieces {
            let image = piece.image.map(|n| n as f32);
            let mut rest = piece.slots.clone();
            // SAFETY: the caller guarantees the level; `clear` made room for all runs.
            unsafe {
                if self.same_set && piece.image == [0; 3] && rest.contains(&slots.start) {
                    // All targets survive the box test, so they stay next to each other.
                    let before = rest.start..slots.start;
                    len = moved::<V, MODE>(mixing, &args, image, before, &to, len);
                    itself = Some(len);
                    rest.start = slots.start;
                }
                len = moved::<V, MODE>(mixing, &args, image, rest, &to, len);
            }
        }
        // SAFETY: `moved` has written `len` candidates.
        unsafe { candidates.set_len(len) };
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
    /// [`Shortage`] where there is no memory for the names.
    #[inline(always)]
    pub(crate) fn see_mixed(&self, slot: usize, scratch: &mut Scratch) -> Result<(), Shortage> {
        let wraps = self.targets.points().wraps(slot).map(|n| n as f32);
        let lattice = self.sources.lattice();
        let seen = Seen {
            exact: self.double().is_some(),
            ranked: self.ranked,
        };
        scratch.candidates.see_from(lattice, wraps, seen);
        if !self.images {
            return Ok(());
        }
        let Scratch {
            candidates, pieces, ..
        } = scratch;
        let boxes = candidates.boxes();
        pieces.clear();
        for number in 0..candidates.len() {
            let image: Image = [0, 1, 2].map(|axis| (boxes[axis][number] + wraps[axis]) as i64);
            match pieces.last_mut() {
                Some(last) if last.image == image => last.end = number + 1,
                _ => {
                    make_room_for_one(pieces, "the images of a cell")?;
                    pieces.push(Piece {
                        slots: 0..0,
                        image,
                        image_vector: lattice.domain().image_vector_f64(image),
                        shift: [0.0; 3],
                        end: number + 1,
                    });
                }
            }
        }
        Ok(())
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
    mut len: usize,
) -> usize {
    let axes = args.points.axes();
    let wraps = args.points.all_wraps().axes();
    let index = args.points.index().as_ptr();
    let mut slot = slots.start;
    // SAFETY: the caller guarantees the level. Sorted points, their radii and their boxes are
    // padded by LANES, so a vector from any slot can be loaded, and the caller made room for the
    // run and LANES more.
    unsafe {
        let (low, high) = (splat::<V>(args.low), splat::<V>(args.high));
        let image = splat::<V>(image);
        let zero = V::splat(0.0);
        let (enlarged, least) = (V::splat(1.0 + f32::EPSILON * 8.0), V::splat(1e-36));
        let target_r2 = V::splat(args.r2);
        while slot < slots.end {
            let mut boxes = [zero; 3];
            for k in 0..3 {
                boxes[k] = image[k].sub(V::load_whole(wraps[k].as_ptr().add(slot)));
            }
            let mut position = [zero; 3];
            let mut d = [zero; 3];
            for axis in 0..3 {
                position[axis] = V::load(axes[axis].as_ptr().add(slot));
                let mut x = position[axis];
                if mixing.tilted {
                    for k in 0..3 {
                        x = boxes[k].mul_add(V::splat(mixing.vectors[k][axis]), x);
                    }
                } else {
                    x = boxes[axis].mul_add(V::splat(mixing.vectors[axis][axis]), x);
                }
                d[axis] = x.sub(x.min(high[axis]).max(low[axis]));
            }
            let mut r2 = target_r2;
            let mut own_r2 = zero;
            if has(MODE, RADII) {
                own_r2 = V::load(args.source_r2.as_ptr().add(slot));
                r2 = r2.max(own_r2);
            }
            let inside = u32::MAX >> (32 - (slots.end - slot).min(V::LANES));
            let near = squared(d).le(r2.mul_add(enlarged, least)) & inside;
            let tags = match args.tag {
                Tag::Index => V::load_u32(index.add(slot)),
                Tag::Slot => V::count_from(slot as u32),
            };
            let order = V::order(near);
            for axis in 0..3 {
                position[axis].compress(order, to.position[axis].add(len));
                boxes[axis].compress(order, to.boxes[axis].add(len));
            }
            if has(MODE, RADII) {
                own_r2.compress(order, to.r2.add(len));
            }
            V::compress_u32(tags, order, to.tag.add(len));
            len += near.count_ones() as usize;
            slot += V::LANES;
        }
    }
    len
}
