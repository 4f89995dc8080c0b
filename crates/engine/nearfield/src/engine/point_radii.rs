//! Radii of the points of one set, as given and sorted.
//!
//! Both copies are kept because each has a user: searches over cells read sorted squares, and
//! traversals over lists, which name points by index, read the radii as given. That is eight bytes
//! per point, in double precision twenty.
//!
//! Where radii are so different that cells of the largest would make searches slow, the CPU pool
//! searches a copy of the points that is sorted by radii first ([`ByRadii`]). It is made by the
//! first search after the points or their radii have changed.
//!
//! **Invariant:** sorted radii are those of the sorted points, or there are none and searches that
//! need them are refused.

use crate::{
    Error, ErrorKind, PointSetId, RadiusRule,
    backend::{lazy::LazyGrid, next_stamp},
    own_radii::OwnRadii,
};
use nearfield_cpu::{CpuBackend, SortedRadii};
use nearfield_grid::{Grid, Permutation, Precision, Radii, Radius};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Radii of a set's points.
#[derive(Debug, Default)]
pub(crate) struct PointRadii {
    /// In the caller's order; of another length than the set while there are none for its points.
    ///
    /// In the unit of the coordinates.
    given: OwnRadii,
    /// In the order of the grid; made when first needed where a device sorts the points.
    ///
    /// As squares, which the contract compares with.
    sorted: OnceLock<SortedRadii>,
    /// Tells the radii from those before.
    stamp: u64,
    /// The points sorted by their radii, made when first searched; None inside where the grid of
    /// the set serves as well.
    by_radii: OnceLock<Option<Box<ByRadii>>>,
    /// Memory of the copy before.
    spare: Mutex<Option<Box<ByRadii>>>,
}

/// The points of a set once more, sorted by their radii and then by cell, for the CPU pool.
#[derive(Debug)]
pub(crate) struct ByRadii {
    /// The points.
    pub(crate) grid: Grid,
    /// Their radii in that order; none in a set without.
    pub(super) radii: SortedRadii,
    /// Sorted place of every point, made when first asked for.
    places: OnceLock<Permutation>,
}

impl ByRadii {
    /// The sorted place of every point.
    pub(crate) fn places(&self) -> Result<&Permutation, nearfield_grid::Error> {
        places_in(&self.places, &self.grid)
    }

    /// Bytes held.
    fn bytes(&self) -> usize {
        let places = self.places.get();
        self.grid.bytes()
            + self.radii.bytes()
            + places.map_or(0, |places| size_of_val(places.order()))
    }
}

/// The sorted place of every point of a grid, kept in `places`. Two threads that come at once both
/// compute it, and the first result is kept.
pub(super) fn places_in<'a>(
    places: &'a OnceLock<Permutation>,
    grid: &Grid,
) -> Result<&'a Permutation, nearfield_grid::Error> {
    if let Some(places) = places.get() {
        return Ok(places);
    }
    let made = grid.permutation()?.inverse()?;
    Ok(places.get_or_init(|| made))
}

impl PointRadii {
    /// Takes checked radii of the points of `grid`; unchanged after an error.
    ///
    /// Room is made first and the copy is made last, so a shortage between them changes nothing.
    pub(super) fn take(
        &mut self,
        radii: Radii<'_>,
        precision: Precision,
        grid: &LazyGrid,
        backend: &CpuBackend,
    ) -> Result<(), Error> {
        self.given.make_room(radii.len(), precision)?;
        if let LazyGrid::Built(grid) = grid {
            // After an error they are sorted anew when they are needed.
            let mut sorted = self.sorted.take().unwrap_or_default();
            backend.sort_radii(radii, grid, &mut sorted)?;
            self.sorted = OnceLock::from(sorted);
        } else {
            self.sorted.take();
        }
        self.given.fill(radii);
        self.stamp = next_stamp();
        self.forget_copy();
        Ok(())
    }

    /// The points or their radii have changed: forgets their copy by radii and keeps its memory.
    fn forget_copy(&mut self) {
        if let Some(Some(copy)) = self.by_radii.take() {
            *(self.spare.get_mut()).unwrap_or_else(PoisonError::into_inner) = Some(copy);
        }
    }

    /// The copy by radii, if `grid` is its grid.
    pub(super) fn copy_of(&self, grid: &Grid) -> Option<&ByRadii> {
        let copy = self.by_radii.get()?.as_deref()?;
        std::ptr::eq(&raw const copy.grid, grid).then_some(copy)
    }

    /// The points of `grid` sorted by their radii; None where the grid itself is to be searched.
    ///
    /// # Errors
    /// Those of memory.
    pub(super) fn by_radii(
        &self,
        set: PointSetId,
        grid: &Grid,
        rule: RadiusRule,
        backend: &CpuBackend,
    ) -> Result<Option<&ByRadii>, Error> {
        if let Some(copy) = self.by_radii.get() {
            return Ok(copy.as_deref());
        }
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copy = spare().take().unwrap_or_else(|| {
            Box::new(ByRadii {
                grid: Grid::new(grid.lattice().clone()),
                radii: SortedRadii::default(),
                places: OnceLock::new(),
            })
        });
        copy.places.take();
        copy.radii.clear();
        let given = self.given.get();
        let radii = (given.len() == grid.points().len()).then_some(given);
        let sorted = backend.sort_by_radii(radii, rule, grid, &mut copy.grid);
        let sorted = sorted.map_err(|source| ErrorKind::Positions { set, source })?;
        if !sorted {
            *spare() = Some(copy);
            return Ok(self.by_radii.get_or_init(|| None).as_deref());
        }
        if let Some(radii) = radii {
            backend.sort_radii(radii, &copy.grid, &mut copy.radii)?;
        }
        Ok(self.by_radii.get_or_init(|| Some(copy)).as_deref())
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
        let given = self.given.get();
        if given.len() == grid.points().len() && !given.is_empty() {
            backend.sort_radii(given, grid, &mut sorted)?;
        }
        Ok(sorted)
    }

    /// Follows the points of `grid`, which have been sorted anew: forgets the radii when there are
    /// more or fewer points than there were.
    pub(crate) fn follow(&mut self, grid: &Grid, backend: &CpuBackend) {
        self.forget_copy();
        // There is room for them, and they were checked when they were taken and when the radius
        // of the grid changed; were they refused all the same, the set would be without radii.
        let mut sorted = self.sorted.take().unwrap_or_default();
        let given = self.given.get();
        let kept = given.len() == grid.points().len()
            && (backend.sort_radii(given, grid, &mut sorted)).is_ok();
        if !kept {
            self.given.clear();
            sorted.clear();
        }
        self.sorted = OnceLock::from(sorted);
    }

    /// The same for `points` points that the host has not sorted.
    pub(crate) fn follow_later(&mut self, points: usize) {
        self.forget_copy();
        self.sorted.take();
        if self.given.get().len() != points {
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
        let given = self.given.get();
        backend.check_radii(given, given.len(), largest)
    }

    /// Takes checked radii of points that are then [followed](Self::follow).
    pub(super) fn replace(&mut self, radii: OwnRadii) {
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
        backend.sort_radii(self.given.get(), grid, &mut sorted)?;
        Ok(self.sorted.get_or_init(|| sorted))
    }

    /// What tells the radii from those before.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// In the caller's order; none where the points have none.
    pub(crate) fn given(&self) -> Radii<'_> {
        self.given.get()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = [spare.as_ref(), self.by_radii.get().and_then(Option::as_ref)];
        let copied: usize = copies.into_iter().flatten().map(|copy| copy.bytes()).sum();
        self.given.bytes() + self.sorted.get().map_or(0, SortedRadii::bytes) + copied
    }
}
