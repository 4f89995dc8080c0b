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
    memory::{Shortage, make_room_for_one},
};
use std::ops::Range;

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
    /// Returns the end of the targets that share the wrap of the first.
    pub(crate) fn same_wrap_until(&self, slots: &Range<usize>) -> usize {
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

    /// Collects the pieces that come next for the cell of a target; returns true when any image is
    /// not the central one.
    #[inline(always)]
    pub(crate) fn collect_pieces(
        &self,
        of: &mut Collecting,
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

    /// Cuts a run where the wraps of its points change.
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
            let end = if points.any_wrapped() {
                (begin..slots.end).find(|&slot| points.wraps(slot) != wraps)
            } else {
                None
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
}
