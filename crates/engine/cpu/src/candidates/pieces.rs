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
//! evaluates pairs once collects all runs at once, because the sums of both points are stored in
//! parallel to the candidates; it is not used where that would be too many.

use super::{piece::Pieces, walk::Walk};
use crate::contract::image_of;
use nearfield_grid::{Cell, Run, Sweep, Walked, memory::Shortage};
use std::ops::Range;

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
    /// [`Shortage`] if memory for them is refused.
    #[inline(always)]
    pub(crate) fn collect_pieces(
        &self,
        of: &mut Collecting,
        sweep: &mut Sweep<'_>,
        pieces: &mut Pieces,
    ) -> Result<Images, Shortage> {
        pieces.clear();
        let lattice = self.sources.lattice();
        let wraps = self.targets.points().wraps(of.slot);
        let ahead_of = self.ahead.then_some(of.slot);
        let any_wrapped = self.sources.points().any_wrapped();
        loop {
            let begins = !of.walked.is_begun();
            let runs = sweep.next_runs(of.cell, ahead_of, &mut of.walked)?;
            if begins && of.walked.is_all() && self.is_mixed(runs) {
                for run in runs {
                    let image = image_of(run.image, [0; 3], [0; 3]);
                    pieces.push(lattice, run.slots.clone(), image, 0)?;
                }
                return Ok(Images::Mixed);
            }
            for run in runs {
                if any_wrapped {
                    self.split(run, wraps, pieces)?;
                } else {
                    let image = image_of(run.image, wraps, [0; 3]);
                    pieces.push(lattice, run.slots.clone(), image, 0)?;
                }
            }
            // Sums of both points of a pair are parallel to all candidates of the group.
            if !self.ahead || of.walked.is_all() {
                break;
            }
        }
        Ok(if pieces.images.iter().all(|seen| seen.image == [0; 3]) {
            Images::Central
        } else {
            Images::Pieces
        })
    }

    /// Cuts a run where the wraps of its points change; targets have the wraps of `target`.
    fn split(&self, run: &Run, target: [i32; 3], pieces: &mut Pieces) -> Result<(), Shortage> {
        let (points, lattice) = (self.sources.points(), self.sources.lattice());
        let (mut begin, end) = (run.slots.start, run.slots.end);
        while begin < end {
            let same = begin..points.all_wraps().same_until(begin..end);
            begin = same.end;
            let image = image_of(run.image, target, points.wraps(same.start));
            pieces.push(lattice, same, image, 0)?;
        }
        Ok(())
    }
}
