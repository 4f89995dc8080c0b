//! Radii of the points of one set, as given and sorted.
//!
//! Both copies are kept because each has a user: searches over cells read sorted squares, and
//! traversals over lists, which name points by index, read the radii as given. That is eight bytes
//! per point.
//!
//! **Invariant:** sorted radii are those of the sorted points, or there are none and searches that
//! need them are refused.

use crate::Error;
use nearfield_cpu::{CpuBackend, SortedRadii};
use nearfield_grid::{Grid, Radius, memory::make_room};

/// Radii of a set's points.
#[derive(Debug, Default)]
pub(crate) struct PointRadii {
    /// In the caller's order; of another length than the set while there are none for its points.
    ///
    /// In the unit of the coordinates.
    given: Vec<f32>,
    /// In the order of the grid.
    ///
    /// As squares rounded to `f32`, which the contract compares with.
    sorted: SortedRadii,
}

impl PointRadii {
    /// Takes checked radii of the points of `grid`; unchanged after an error.
    ///
    /// Room is made first and the copy is made last, so a shortage between them changes nothing.
    pub(super) fn take(
        &mut self,
        radii: &[f32],
        grid: &Grid,
        backend: &CpuBackend,
    ) -> Result<(), Error> {
        make_room(&mut self.given, radii.len(), "radii in the caller's order")?;
        backend.sort_radii(radii, grid, &mut self.sorted)?;
        self.given.clear();
        self.given.extend_from_slice(radii);
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
        let kept = self.given.len() == grid.points().len()
            && (backend.sort_radii(&self.given, grid, &mut self.sorted)).is_ok();
        if !kept {
            self.given.clear();
            self.sorted.clear();
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

    /// Takes checked radii of the points of `grid`; none if there are more or fewer points.
    pub(super) fn replace(&mut self, radii: Vec<f32>, grid: &Grid, backend: &CpuBackend) {
        self.given = radii;
        self.follow(grid, backend);
    }

    /// As squares in the order of the grid; those of an earlier one if there is not one per point.
    pub(super) fn sorted(&self) -> &SortedRadii {
        &self.sorted
    }

    /// In the caller's order; none where the points have none.
    pub(crate) fn given(&self) -> &[f32] {
        &self.given
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<f32>() * self.given.capacity() + self.sorted.bytes()
    }
}
