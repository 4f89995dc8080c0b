//! The runs of a cell around a periodic box, cut into pieces of one image each.
//!
//! The grid sorts points by their cell inside the box, while the contract counts images from the
//! coordinates as they were given. A point that lies n boxes outside is seen through the image of
//! its run less n. So a run is cut where the wrap of its points changes, and all candidates of a
//! piece share one image vector.
//!
//! # Batches
//!
//! All runs of a cell fit one batch unless points have a great many images within the radius. A
//! target beyond that comes once per batch, see [`super::groups::Batch`]. A traversal that
//! evaluates pairs once collects all runs at once, because the sums of both points lie beside the
//! candidates; it is not used where that would be too many.

use super::{scratch::Piece, walk::Walk};
use crate::contract::{Image, image_of};
use nearfield_grid::{
    Cell, Sweep, Walked,
    memory::{Shortage, make_room, make_room_for_one},
};
use std::ops::Range;

/// The name of the memory in messages.
const WHAT: &str = "the candidates of a cell";

/// The images that the candidates of a cell are seen through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// The central one alone.
    Central,
    /// One per piece.
    Pieces,
    /// One per candidate, see [`super::mixed`]; a piece is a run and names the image of its cells.
    Mixed,
}

/// A target whose candidates are collected, perhaps in batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collecting {
    /// The target's cell.
    pub(crate) cell: Cell,
    /// The target.
    pub(crate) slot: usize,
    /// How far the runs of the cell have been walked.
    pub(crate) walked: Walked,
}

impl Collecting {
    /// The first batch of the sorted target `slot` in `cell`.
    pub(crate) fn new(cell: Cell, slot: usize) -> Self {
        Self {
            cell,
            slot,
            walked: Walked::default(),
        }
    }

    /// The target as a range.
    pub(crate) fn targets(&self) -> Range<usize> {
        self.slot..self.slot + 1
    }
}

impl Walk<'_> {
    /// Returns the end of the targets that share the wrap of the first. They see every candidate
    /// through the same image, so they are one group.
    #[inline(always)]
    pub(crate) fn same_wrap_until(&self, slots: &Range<usize>) -> usize {
        self.targets.points().all_wraps().same_until(slots.clone())
    }

    /// Collects the pieces that come next for the cell of a target, and tells by how many images
    /// they are seen. Runs of [mixed](Images::Mixed) candidates are collected whole.
    ///
    /// # Errors
    /// [`Shortage`] where there is no memory for them.
    #[inline(always)]
    pub(crate) fn collect_pieces(
        &self,
        of: &mut Collecting,
        sweep: &mut Sweep<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<Images, Shortage> {
        pieces.clear();
        let wraps = self.targets.points().wraps(of.slot);
        let ahead_of = self.ahead.then_some(of.slot);
        loop {
            let begins = !of.walked.is_begun();
            let runs = sweep.next_runs(of.cell, ahead_of, &mut of.walked)?;
            if begins && of.walked.is_all() && self.is_mixed(runs) {
                make_room(pieces, runs.len(), WHAT)?;
                pieces.extend(runs.iter().map(Piece::whole));
                return Ok(Images::Mixed);
            }
            make_room(pieces, pieces.len() + runs.len(), WHAT)?;
            let any_wrapped = self.sources.points().any_wrapped();
            for run in runs {
                let image = image_of(run.image, wraps, [0; 3]);
                if any_wrapped {
                    self.split(run.slots.clone(), image, pieces)?;
                } else {
                    self.push(run.slots.clone(), image, pieces);
                }
            }
            // Sums of both points of a pair lie beside all candidates of the group.
            if !self.ahead || of.walked.is_all() {
                break;
            }
        }
        Ok(if pieces.iter().all(|piece| piece.image == [0; 3]) {
            Images::Central
        } else {
            Images::Pieces
        })
    }

    /// Cuts a run where the wraps of its points change.
    fn split(
        &self,
        slots: Range<usize>,
        image: Image,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Shortage> {
        let points = self.sources.points();
        let mut begin = slots.start;
        while begin < slots.end {
            let wraps = points.wraps(begin);
            let end = points.all_wraps().same_until(begin..slots.end);
            let [a, b, c] = image;
            let image = [
                a - i64::from(wraps[0]),
                b - i64::from(wraps[1]),
                c - i64::from(wraps[2]),
            ];
            make_room_for_one(pieces, WHAT)?;
            self.push(begin..end, image, pieces);
            begin = end;
        }
        Ok(())
    }

    /// Adds a piece, for which there is room.
    #[inline(always)]
    fn push(&self, slots: Range<usize>, image: Image, pieces: &mut Vec<Piece>) {
        let lattice = self.sources.lattice();
        // Away from the faces of the box all runs have one image, and rows that are cut by a face
        // have two in turn.
        let (image_vector, shift) = match pieces.as_slice() {
            [.., last] if last.image == image => (last.image_vector, last.shift),
            [.., other, _] if other.image == image => (other.image_vector, other.shift),
            _ => {
                let image_vector = lattice.domain().image_vector_f64(image);
                (image_vector, lattice.image_shift(image_vector))
            }
        };
        pieces.push(Piece {
            slots,
            image,
            image_vector,
            shift,
            end: 0,
        });
    }
}
