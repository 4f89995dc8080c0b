//! Radii of single points: taken, kept with their sets, and asked for by the rule.
//!
//! The engine's radius bounds every radius of a point. Radii are checked when they are given, kept
//! in the caller's order, and sorted as squares in the order of the points whenever the host sorts
//! those. They belong to indices: as long as the number of points stays the same they follow the
//! points, and a change of the number leaves the set without any.
//!
//! **Invariant:** a search that needs a radius per point is refused unless the set has them.

use crate::{Engine, Error, ErrorKind, PointSetId, RadiusRule, engine::sets::pair_of_sets};
use nearfield_cpu::{Coordinate, PairOfSets, SetRadii};
use nearfield_grid::Radii;

impl Engine {
    /// Gives every point of a set a search radius of its own, in the unit of the coordinates and in
    /// the order of the points; [`Builder::radii`] says whose radius decides. Radii must be
    /// positive and at most the [radius](Self::radius) of the engine. Where they differ so much
    /// that a search is faster for it, the CPU pool sorts the points by their radii first: one
    /// radius a hundred times the others then costs about as much as the pairs that it has. A GPU
    /// has cells of the engine's radius whatever the radii are, so there one large radius makes all
    /// searches slow.
    ///
    /// Radii are slices, arrays or vectors of `f32` or `f64`. As with the engine's own radius, an
    /// engine in single precision rounds those in `f64` to `f32`; one in double precision takes
    /// both as they are, and compares with the square of the radius in `f64`.
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
    /// Costs a pass over the points. The next search sorts them once more if radii are very
    /// different, and holds a copy of them then: 48 bytes a point, and as much again for the rows
    /// of cells that a radius reaches if it is some hundred times as large as others.
    ///
    /// # Errors
    /// [`ErrorKind::Radii`] naming the point whose radius cannot be used, or when there is not one
    /// radius per point; [`ErrorKind::UnusedRadii`] when all points of the engine have the same
    /// radius; [`ErrorKind::UnknownPointSet`]; and [`ErrorKind::Cpu`] when memory is short. The set
    /// then keeps the radii it had.
    ///
    /// [`Builder::radii`]: crate::Builder::radii
    pub fn set_radii<'a>(
        &mut self,
        set: PointSetId,
        radii: impl Into<Radii<'a>>,
    ) -> Result<(), Error> {
        self.known(set)?;
        let (radii, precision) = (radii.into(), self.precision());
        let rule = self.settings.rule;
        if rule == RadiusRule::Uniform {
            let what = "points";
            return Err(ErrorKind::UnusedRadii { what, rule }.into());
        }
        let target = &mut self.sets[set.slot()];
        (self.backend)
            .check_radii(radii, target.grid.len(), self.lattice.radius())
            .map_err(|source| ErrorKind::Radii { set, source })?;
        (target.radii).take(radii, precision, &target.grid, &self.backend)?;
        target.forget_wide();
        self.outdate(set);
        Ok(())
    }

    /// A pair of sets for the backend, with the radii that count and the filters.
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
            &self.filters,
            [targets.slot(), sources.slot()],
        )
    }

    /// The radii that count in the lists of a pair of sets, in the caller's order.
    ///
    /// They are in the precision of the engine, which is `T`.
    pub(crate) fn given_radii<T: Coordinate>(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<SetRadii<&[T]>, Error> {
        self.pair(targets, sources)?;
        let rule = self.settings.rule;
        let of = |set: PointSetId| {
            let radii = self.sets[set.slot()].given_radii(set, rule)?;
            Ok(T::radii(radii).unwrap_or_default())
        };
        rule.choose(|| of(targets), || of(sources))
    }
}
