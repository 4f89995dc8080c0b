//! Radii of the points of one set, as given and sorted.
//!
//! Both copies are kept because each has a user: searches over cells read sorted squares, and
//! traversals over lists, which name points by index, read the radii as given. That is eight bytes
//! per point.
//!
//! **Invariant:** sorted radii are those of the sorted points, or there are none and searches that
//! need them are refused.

use crate::{
    Error,
    backend::{lazy::LazyGrid, next_stamp},
};
use nearfield_cpu::{CpuBackend, SortedRadii};
use nearfield_grid::{Grid, Radius, memory::make_room};
use std::sync::OnceLock;

/// Radii of a set's points.
#[derive(Debug, Default)]
pub(crate) struct PointRadii {
    /// In the caller's order; of another length than the set while there are none for its points.
    ///
    /// In the unit of the coordinates.
    given: Vec<f32>,
    /// In the order of the grid; made when first needed where a device sorts the points.
    ///
    /// As squares rounded to `f32`, which the contract compares with.
    sorted: OnceLock<SortedRadii>,
    /// Tells the radii from those before.
    stamp: u64,
}

impl PointRadii {
    /// Takes checked radii of the points of `grid`; unchanged after an error.
    ///
    /// Room is made first and the copy is made last, so a shortage between them changes nothing.
    pub(super) fn take(
        &mut self,
        radii: &[f32],
        grid: &LazyGrid,
        backend: &CpuBackend,
    ) -> Result<(), Error> {
        make_room(&mut self.given, radii.len(), "radii in the caller's order")?;
        if let LazyGrid::Built(grid) = grid {
            // After an error they are sorted anew when they are needed.
            let mut sorted = self.sorted.take().unwrap_or_default();
            backend.sort_radii(radii, grid, &mut sorted)?;
            self.sorted = OnceLock::from(sorted);
        } else {
            self.sorted.take();
        }
        self.given.clear();
        self.given.extend_from_slice(radii);
        self.stamp = next_stamp();
        Ok(())
    }

    /// The radii in the order of another grid of the same points; none where the points have none.
    ///
    /// For queries on a wider lattice, whose sorted order differs from that of the set.
    pub(crate) fn sorted_for(
        &self,
        grid: &Grid,
        backend: &CpuBackend,
    ) -> Result<SortedRadii, nearfield_cpu::Error> {
        let mut sorted = SortedRadii::default();
        if self.given.len() == grid.points().len() && !self.given.is_empty() {
            backend.sort_radii(&self.given, grid, &mut sorted)?;
        }
        Ok(sorted)
    }

    /// Follows the points of `grid`, which have been sorted anew: forgets the radii when there are
    /// more or fewer points than there were.
    pub(crate) fn follow(&mut self, grid: &Grid, backend: &CpuBackend) {
        // There is room for them, and they were checked when they were taken and when the radius
        // of the grid changed; were they refused all the same, the set would be without radii.
        let mut sorted = self.sorted.take().unwrap_or_default();
        let kept = self.given.len() == grid.points().len()
            && (backend.sort_radii(&self.given, grid, &mut sorted)).is_ok();
        if !kept {
            self.given.clear();
            sorted.clear();
        }
        self.sorted = OnceLock::from(sorted);
    }

    /// The same for `points` points that the host has not sorted.
    pub(crate) fn follow_later(&mut self, points: usize) {
        self.sorted.take();
        if self.given.len() != points {
            self.given.clear();
        }
    }

    /// Checks the radii against a radius that the grid may get.
    ///
    /// Nothing is refused in a set without radii.
    pub(crate) fn check(
        &self,
        largest: Radius,
        backend: &CpuBackend,
    ) -> Result<(), nearfield_cpu::Error> {
        backend.check_radii(&self.given, self.given.len(), largest)
    }

    /// Takes checked radii of points that are then [followed](Self::follow).
    pub(super) fn replace(&mut self, radii: Vec<f32>) {
        (self.given, self.stamp) = (radii, next_stamp());
    }

    /// As squares in the order of the grid.
    ///
    /// # Errors
    /// Those of memory.
    pub(super) fn sorted(&self, grid: &Grid, backend: &CpuBackend) -> Result<&SortedRadii, Error> {
        if let Some(sorted) = self.sorted.get() {
            return Ok(sorted);
        }
        // Two threads that come at once both sort, to the same end.
        let mut sorted = SortedRadii::default();
        backend.sort_radii(&self.given, grid, &mut sorted)?;
        Ok(self.sorted.get_or_init(|| sorted))
    }

    /// What tells the radii from those before.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// In the caller's order; none where the points have none.
    pub(crate) fn given(&self) -> &[f32] {
        &self.given
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<f32>() * self.given.capacity() + self.sorted.get().map_or(0, SortedRadii::bytes)
    }
}
