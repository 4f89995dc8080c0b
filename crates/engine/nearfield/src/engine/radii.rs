//! Radii of single points: taken, kept with their sets, and asked for by the rule.
//!
//! Cells are those of the engine's radius, so it bounds every radius of a point. Radii are checked
//! when they are given, kept in the caller's order, and sorted as squares in the order of the
//! points whenever those are sorted. They belong to indices: as long as the number of points stays
//! the same they follow the points, and a change of the number leaves the set without any.
//!
//! Both copies are kept because each has a user: searches over cells read sorted squares, and
//! traversals over lists, which name points by index, read the radii as given. That is eight bytes
//! per point.
//!
//! **Invariant:** sorted radii are those of the sorted points, or there are none and searches that
//! need them are refused.

use crate::{
    Engine, Error, ErrorKind, PointSetId, RadiusRule,
    backend::lazy::LazyGrid,
    engine::sets::{Set, pair_of_sets},
};
use nearfield_cpu::{CpuBackend, PairOfSets, SetRadii, SortedRadii};
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
    fn take(&mut self, radii: &[f32], grid: &Grid, backend: &CpuBackend) -> Result<(), Error> {
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

    /// In the caller's order; none where the points have none.
    pub(crate) fn given(&self) -> &[f32] {
        &self.given
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<f32>() * self.given.capacity() + self.sorted.bytes()
    }
}

impl Set {
    /// Takes the radii of points that have stayed while others were removed, in the order of the
    /// points.
    ///
    /// This cannot fail: sorted radii still have the room of more points, and the radii were
    /// checked with the same radius of the grid when they were given.
    pub(crate) fn keep_radii(&mut self, radii: Vec<f32>, backend: &CpuBackend) {
        // Only grids that are made at once have radii of their own.
        if let LazyGrid::Built(grid) = &self.grid {
            self.radii.given = radii;
            self.radii.follow(grid, backend);
        }
    }

    /// Radii of the points in the order of the grid; `id` and `rule` are for the error.
    ///
    /// # Errors
    /// [`ErrorKind::NoRadii`] when there is not one radius per point.
    pub(crate) fn sorted_radii(
        &self,
        id: PointSetId,
        rule: RadiusRule,
    ) -> Result<&SortedRadii, Error> {
        self.given_radii(id, rule)?;
        Ok(&self.radii.sorted)
    }

    /// Radii of the points in the caller's order; `id` and `rule` are for the error.
    ///
    /// A set without points has all radii that it needs.
    ///
    /// # Errors
    /// [`ErrorKind::NoRadii`] when there is not one radius per point.
    pub(crate) fn given_radii(&self, id: PointSetId, rule: RadiusRule) -> Result<&[f32], Error> {
        let points = self.grid.len();
        match self.radii.given.len() == points {
            true => Ok(&self.radii.given),
            false => Err(ErrorKind::NoRadii {
                set: id,
                points,
                rule,
            }
            .into()),
        }
    }
}

impl Engine {
    /// Gives every point of a set a search radius of its own, in the unit of the coordinates and in
    /// the order of the points; whose radius decides is said by [`Builder::radii`]. Radii must be
    /// positive and at most the [radius](Self::radius) of the engine, which sets the size of the
    /// cells: one much larger than most radii makes searches slow.
    ///
    /// Radii stay with the indices of the points until they are given anew. After an
    /// [`update`](Self::update) that changes the number of points, or to move them along with
    /// reordered points, give them again. Lists that involve the set are out of date until the next
    /// [`find_neighbors`](Self::find_neighbors).
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(2.0).radii(RadiusRule::Gather).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [1.5, 0.0, 0.0]])?;
    /// engine.set_radii(points, &[2.0, 1.0])?;
    /// engine.find_neighbors()?;
    /// let lists = engine.neighbors(points, points)?;
    /// assert_eq!((lists.of(0), lists.of(1)), (&[1][..], &[][..]));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Costs a pass over the points, not a sort: cells do not depend on the radii of points.
    ///
    /// # Errors
    /// [`ErrorKind::Radii`] naming the point whose radius cannot be used, or when there is not one
    /// radius per point; [`ErrorKind::UnusedRadii`] when all points of the engine have the same
    /// radius; [`ErrorKind::UnknownPointSet`]; and [`ErrorKind::Cpu`] when memory is short. The set
    /// then keeps the radii it had.
    ///
    /// [`Builder::radii`]: crate::Builder::radii
    pub fn set_radii(&mut self, set: PointSetId, radii: &[f32]) -> Result<(), Error> {
        self.known(set)?;
        let rule = self.settings.rule;
        if rule == RadiusRule::Uniform {
            let what = "points";
            return Err(ErrorKind::UnusedRadii { what, rule }.into());
        }
        let target = &mut self.sets[set.slot()];
        (self.backend)
            .check_radii(radii, target.grid.len(), self.lattice.radius())
            .map_err(|source| ErrorKind::Radii { set, source })?;
        let grid = target.grid.get(&self.backend);
        let grid = grid.map_err(|source| ErrorKind::Positions { set, source })?;
        target.radii.take(radii, grid, &self.backend)?;
        target.forget_wide();
        self.outdate(set);
        Ok(())
    }

    /// A pair of sets for the backend, with the radii that count.
    pub(crate) fn pair_of_sets(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<PairOfSets<'_>, Error> {
        self.pair(targets, sources)?;
        pair_of_sets(
            &self.backend,
            &self.sets,
            self.settings.rule,
            targets.slot(),
            sources.slot(),
        )
    }

    /// The radii that count in the lists of a pair of sets, in the caller's order.
    pub(crate) fn given_radii(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<SetRadii<&[f32]>, Error> {
        self.pair(targets, sources)?;
        let rule = self.settings.rule;
        let of = |set: PointSetId| self.sets[set.slot()].given_radii(set, rule);
        rule.choose(|| of(targets), || of(sources))
    }
}
