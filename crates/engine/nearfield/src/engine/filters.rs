//! Leaves out pairs within the radius: by cut-offs per pair of types, exclusions, chosen targets,
//! and the k nearest.
//!
//! Cut-offs and k are settings of the engine, checked when it is built. Types, exclusions and
//! chosen targets are data of a set's points, checked when they are given ([`super::point_data`]).
//! They belong to indices, as [radii](super::radii) do: they stay while the number of points stays,
//! follow points that are kept, and must be given again after the number changes. A search never
//! runs with those of other points.
//!
//! **Invariant:** a [`PairFilter`] that is handed to a backend has data for every point of its
//! sets.

use crate::{
    Engine, Error, ErrorKind, ListKind, PointSetId,
    backend::{
        next_stamp,
        support::{Feature, choose},
    },
    engine::{
        point_data::{EXCLUSIONS, Given, NEAREST, TARGETS},
        sets::pair_filter,
    },
};
use nearfield_cpu::{ChosenPoints, Exclusions, PairFilter};

impl Engine {
    /// Gives every point of a set a type, in the order of the points: `u8`, `u16` or `u32`, below
    /// the number of types that [`Builder::cutoffs`](crate::Builder::cutoffs) has. A pair of points
    /// is within the radius if it is within the cut-off of their types.
    ///
    /// Types stay with the indices of the points until they are given anew, and
    /// [`retain_points`](Self::retain_points) keeps them; after an [`update`](Self::update) that
    /// changes the number of points, give them again. Lists that involve the set are out of date
    /// until the next [`find_neighbors`](Self::find_neighbors). Takes four bytes per point.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// // Oxygen sees oxygen within 1, hydrogen within 0.5; hydrogen does not see hydrogen.
    /// let mut engine = Engine::builder(1.0).cutoffs(&[[1.0, 0.5], [0.5, 0.0]]).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3], [0.9, 0.0, 0.0], [0.9, 0.4, 0.0]])?;
    /// engine.set_types(atoms, &[0u8, 0, 1])?;
    /// engine.find_neighbors()?;
    /// let lists = engine.neighbors(atoms, atoms)?;
    /// assert_eq!((lists.of(0), lists.of(2)), (&[1][..], &[1][..]));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnusedTypes`] in an engine without cut-offs; [`ErrorKind::PointData`] naming
    /// the point whose type there is not, or if there is not one type per point; and
    /// [`ErrorKind::UnknownPointSet`]. The set then keeps the types it had.
    pub fn set_types<T: Copy + Into<u32>>(
        &mut self,
        set: PointSetId,
        types: &[T],
    ) -> Result<(), Error> {
        let points = self.points(set)?;
        let Some(known) = self.filters.types() else {
            return Err(ErrorKind::UnusedTypes.into());
        };
        let data = &mut self.sets[set.slot()].data;
        let taken = data.types.take(types, points, known);
        taken.map_err(|source| ErrorKind::PointData { set, source })?;
        data.stamps.types = next_stamp();
        self.outdate(set);
        Ok(())
    }

    /// Leaves out pairs of a set's points: the points that point i excludes are
    /// `indices[offsets[i]..offsets[i + 1]]`, ascending. Exclusions are symmetric: j is in the list
    /// of i if and only if i is in that of j, which is checked. They replace those that were given
    /// before.
    ///
    /// An exclusion holds for **every periodic image** of the pair, as molecular dynamics takes it;
    /// a point in its own list excludes its own images. It holds among the points of the set, not
    /// between sets. As [types](Self::set_types), exclusions stay with the indices of the points;
    /// after an update that changes their number, jobs of the set are refused until exclusions are
    /// given anew or [cleared](Self::clear_exclusions).
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0], [0.5, 0.5, 0.0]])?;
    /// // Atoms 0 and 1 are bonded.
    /// engine.set_exclusions(atoms, &[0, 1, 2, 2], &[1, 0])?;
    /// engine.find_neighbors()?;
    /// assert_eq!(engine.neighbors(atoms, atoms)?.of(0), &[2]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A GPU does it if the engine was asked for one alone; otherwise the CPU pool does.
    ///
    /// # Errors
    /// [`ErrorKind::PointData`] naming the point whose list cannot be, [`ErrorKind::Unsupported`],
    /// and [`ErrorKind::UnknownPointSet`]. The set then keeps the exclusions it had.
    pub fn set_exclusions(
        &mut self,
        set: PointSetId,
        offsets: &[u64],
        indices: &[u32],
    ) -> Result<(), Error> {
        self.exclude(set, || Exclusions::lists(offsets, indices))
    }

    /// As [`set_exclusions`](Self::set_exclusions), by pairs of points, in any order and either way
    /// round, such as the bonds of a molecule.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0], [0.5, 0.5, 0.0]])?;
    /// engine.exclude_pairs(atoms, &[[2, 0], [0, 1]])?;
    /// assert_eq!(engine.count_neighbors(atoms, atoms)?, [0, 1, 1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_exclusions`](Self::set_exclusions).
    pub fn exclude_pairs(&mut self, set: PointSetId, pairs: &[[u32; 2]]) -> Result<(), Error> {
        let points = self.points(set)?;
        self.exclude(set, || Exclusions::pairs(pairs, points))
    }

    /// Leaves out pairs of points of the same molecule, whose number is given for every point of
    /// the set, own images included; otherwise as [`set_exclusions`](Self::set_exclusions), which
    /// it replaces.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let atoms = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0], [0.5, 0.5, 0.0]])?;
    /// engine.set_molecules(atoms, &[7, 7, 8])?;
    /// assert_eq!(engine.count_neighbors(atoms, atoms)?, [1, 1, 2]);
    /// engine.clear_exclusions(atoms)?;
    /// assert_eq!(engine.count_neighbors(atoms, atoms)?, [2, 2, 2]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_exclusions`](Self::set_exclusions).
    pub fn set_molecules(&mut self, set: PointSetId, of_points: &[u32]) -> Result<(), Error> {
        self.exclude(set, || Exclusions::molecules(of_points))
    }

    /// Takes exclusions that fit a set.
    fn exclude(
        &mut self,
        set: PointSetId,
        make: impl FnOnce() -> Result<Exclusions, nearfield_cpu::Error>,
    ) -> Result<(), Error> {
        let points = self.points(set)?;
        choose(self.settings.device, &Feature::Exclusions)?;
        let made = make().and_then(|made| match made.len() == points {
            true => Ok(made),
            false => Err(other_length(EXCLUSIONS, made.len(), points)),
        });
        let made = made.map_err(|source| ErrorKind::PointData { set, source })?;
        let data = &mut self.sets[set.slot()].data;
        data.exclusions = Given::Yes(made);
        data.stamps.exclusions = next_stamp();
        self.outdate(set);
        Ok(())
    }

    /// All pairs of a set's points are neighbours again if they are near.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn clear_exclusions(&mut self, set: PointSetId) -> Result<(), Error> {
        self.known(set)?;
        self.sets[set.slot()].data.exclusions = Given::No;
        self.outdate(set);
        Ok(())
    }

    /// Searches for some points of a set only, given by their indices, in any order. All other
    /// points have empty lists and no neighbours counted, and traversals leave their sums as they
    /// are; as sources they are found as before. The choice replaces the one before. Neighbours of
    /// [one point](Self::for_each_neighbor) and of [named points](Self::neighbors_of) are found
    /// whatever is chosen.
    ///
    /// It stays with the indices of the points; after an update that changes their number, jobs
    /// with these targets are refused until targets are chosen anew or
    /// [cleared](Self::clear_targets). Lists of the set are out of date. Few targets take little
    /// time, those that lie near each other least.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
    /// engine.set_targets(points, &[1])?;
    /// assert_eq!(engine.count_neighbors(points, points)?, [0, 1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Not with half lists, which are refused. A GPU does it if the engine was asked for one alone.
    ///
    /// # Errors
    /// [`ErrorKind::PointData`] naming an index that there is not, [`ErrorKind::Combined`],
    /// [`ErrorKind::Unsupported`] and [`ErrorKind::UnknownPointSet`]. The choice then stays.
    pub fn set_targets(&mut self, set: PointSetId, indices: &[u32]) -> Result<(), Error> {
        self.choose_targets(set, |points| ChosenPoints::with_indices(indices, points))
    }

    /// As [`set_targets`](Self::set_targets), by a mask with an element for every point.
    ///
    /// # Errors
    /// As [`set_targets`](Self::set_targets).
    pub fn set_target_mask(&mut self, set: PointSetId, mask: &[bool]) -> Result<(), Error> {
        self.choose_targets(set, |points| match mask.len() == points {
            true => ChosenPoints::with_mask(mask),
            false => Err(other_length(TARGETS, mask.len(), points)),
        })
    }

    /// Takes a choice of targets.
    fn choose_targets(
        &mut self,
        set: PointSetId,
        make: impl FnOnce(usize) -> Result<ChosenPoints, nearfield_cpu::Error>,
    ) -> Result<(), Error> {
        let points = self.points(set)?;
        choose(self.settings.device, &Feature::ChosenTargets)?;
        if self.settings.lists == ListKind::Half {
            let (first, second) = (TARGETS, "half lists");
            return Err(ErrorKind::Combined { first, second }.into());
        }
        let made = make(points).map_err(|source| ErrorKind::PointData { set, source })?;
        let data = &mut self.sets[set.slot()].data;
        data.chosen = Given::Yes(made);
        data.stamps.chosen = next_stamp();
        self.outdate(set);
        Ok(())
    }

    /// All points of a set are targets again.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn clear_targets(&mut self, set: PointSetId) -> Result<(), Error> {
        self.known(set)?;
        self.sets[set.slot()].data.chosen = Given::No;
        self.outdate(set);
        Ok(())
    }

    /// The feature that jobs of a pair of sets, by slot, need for their filters, if any.
    pub(crate) fn filter_feature(&self, [targets, sources]: [usize; 2]) -> Option<Feature> {
        let same_set = targets == sources;
        let of_points = || self.sets[targets].data.feature(same_set);
        self.filters.feature().or_else(of_points)
    }

    /// The filters that a traversal over stored lists repeats.
    ///
    /// # Errors
    /// As [`pair_filter`], and [`ErrorKind::Combined`] where lists do not tell which image of a
    /// source is among the k nearest.
    pub(crate) fn stored_filter(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<PairFilter<'_>, Error> {
        if self.filters.has_nearest() && self.lattice.repeats() {
            let second = "traversals over lists in a box smaller than two radii";
            let first = NEAREST;
            return Err(ErrorKind::Combined { first, second }.into());
        }
        pair_filter(&self.sets, &self.filters, [targets.slot(), sources.slot()])
    }
}

/// Data for another number of points.
fn other_length(what: &'static str, found: usize, expected: usize) -> nearfield_cpu::Error {
    nearfield_cpu::ErrorKind::FilterLength {
        what,
        found,
        expected,
    }
    .into()
}
