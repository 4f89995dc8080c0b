//! Points within the radius that are no neighbours: cut-offs per pair of types, exclusions, chosen
//! targets, and the k nearest.
//!
//! Cut-offs and k are settings of the engine ([`EngineFilters`]), checked when it is built. Types,
//! exclusions and chosen targets are data of a set's points ([`PointData`]), checked when they are
//! given. They belong to indices, as [radii](super::radii) do: they stay as long as the number of
//! points does, go with points that are kept, and are asked for anew after a change of the number.
//! A search never runs with those of other points.
//!
//! **Invariant:** a [`PairFilter`] that is handed to a backend has data for every point of its
//! sets.

use crate::{
    Builder, Engine, Error, ErrorKind, ListKind, ListOrder, PointSetId, RadiusRule,
    backend::support::{Feature, choose},
    engine::sets::Set,
};
use nearfield_cpu::{ChosenPoints, CutoffTable, Exclusions, PairFilter, PointTypes, TypeCutoffs};
use nearfield_grid::Radius;
use std::num::NonZeroU32;

/// The k nearest, in messages.
const NEAREST: &str = "the k nearest neighbours";
/// Cut-offs, in messages.
const CUTOFFS: &str = "cut-offs per pair of types";
/// Exclusions, in messages.
const EXCLUSIONS: &str = "exclusions";
/// Chosen targets, in messages.
const TARGETS: &str = "chosen targets";

/// The filters that hold for all sets.
#[derive(Debug, Default)]
pub(crate) struct EngineFilters {
    cutoffs: Option<CutoffTable>,
    nearest: Option<NonZeroU32>,
}

impl EngineFilters {
    /// Those of the settings, for a radius.
    ///
    /// # Errors
    /// [`ErrorKind::NoNearest`], [`ErrorKind::Combined`], and [`ErrorKind::Cpu`] for cut-offs that
    /// cannot be used.
    pub(super) fn new(settings: &Builder, radius: Radius) -> Result<Self, Error> {
        let combined = |first, second| Err(ErrorKind::Combined { first, second }.into());
        let mut filters = Self::default();
        if let Some(k) = settings.nearest {
            filters.nearest = Some(NonZeroU32::new(k).ok_or(ErrorKind::NoNearest)?);
            if settings.lists == ListKind::Half {
                return combined(NEAREST, "half lists");
            }
            if settings.order == ListOrder::Ascending {
                return combined(
                    NEAREST,
                    "lists in ascending order: theirs is that of distance",
                );
            }
        }
        if let Some(rows) = &settings.cutoffs {
            if settings.rule != RadiusRule::Uniform {
                return combined(CUTOFFS, "radii of single points");
            }
            filters.cutoffs = Some(CutoffTable::new(rows, radius, settings.strict)?);
        }
        Ok(filters)
    }

    /// The feature that all jobs of the engine need, if any.
    pub(crate) fn feature(&self) -> Option<Feature> {
        match (&self.cutoffs, self.nearest) {
            (Some(_), _) => Some(Feature::TypeCutoffs),
            (None, Some(_)) => Some(Feature::Nearest),
            (None, None) => None,
        }
    }

    /// The filters of positions that are points of no set.
    pub(crate) fn of_query(&self) -> PairFilter<'_> {
        PairFilter {
            nearest: self.nearest,
            ..PairFilter::default()
        }
    }
}

/// Data of a set's points that filters need.
#[derive(Debug, Default)]
pub(crate) struct PointData {
    /// Of another length than the set while it has none.
    types: PointTypes,
    exclusions: Given<Exclusions>,
    chosen: Given<ChosenPoints>,
}

/// Data that a set may do without.
#[derive(Debug, Default)]
enum Given<T> {
    /// Not given, or cleared.
    #[default]
    No,
    /// Given for the points that the set has.
    Yes(T),
    /// Given for points that the set had.
    Before,
}

impl<T> Given<T> {
    fn get(&self) -> Option<&T> {
        match self {
            Self::Yes(data) => Some(data),
            _ => None,
        }
    }

    /// Forgets what was given if it is for another number of points.
    fn follow(&mut self, is_for: impl FnOnce(&T) -> bool) {
        if self.get().is_some_and(|data| !is_for(data)) {
            *self = Self::Before;
        }
    }

    /// What was given, `of_kept` points.
    fn of_kept(
        &self,
        of_kept: impl FnOnce(&T) -> Result<T, nearfield_cpu::Error>,
    ) -> Result<Self, nearfield_cpu::Error> {
        Ok(match self {
            Self::Yes(data) => Self::Yes(of_kept(data)?),
            Self::No => Self::No,
            Self::Before => Self::Before,
        })
    }
}

impl PointData {
    /// Follows a change of the points: forgets data for another number of them.
    pub(crate) fn follow(&mut self, points: usize) {
        if self.types.len() != points {
            self.types.clear();
        }
        self.exclusions.follow(|data| data.len() == points);
        self.chosen.follow(|data| data.len() == points);
    }

    /// The data of the points `kept`, which are numbered anew from 0.
    pub(crate) fn of_kept(&self, kept: &[u32]) -> Result<Self, nearfield_cpu::Error> {
        Ok(Self {
            types: self.types.of_kept(kept)?,
            exclusions: self.exclusions.of_kept(|data| data.of_kept(kept))?,
            chosen: self.chosen.of_kept(|data| data.of_kept(kept))?,
        })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.types.bytes()
            + self.exclusions.get().map_or(0, Exclusions::bytes)
            + self.chosen.get().map_or(0, ChosenPoints::bytes)
    }

    /// The feature that jobs of a pair of sets need for these data, if any.
    fn feature(&self, same_set: bool) -> Option<Feature> {
        if same_set && !matches!(self.exclusions, Given::No) {
            return Some(Feature::Exclusions);
        }
        (!matches!(self.chosen, Given::No)).then_some(Feature::ChosenTargets)
    }
}

/// The filters of a pair of sets, by slot.
///
/// # Errors
/// [`ErrorKind::NoTypes`] and [`ErrorKind::StaleData`].
pub(crate) fn pair_filter<'a>(
    sets: &'a [Set],
    filters: &'a EngineFilters,
    [targets, sources]: [usize; 2],
) -> Result<PairFilter<'a>, Error> {
    let types = |slot: usize| {
        let Set { id, data, grid, .. } = &sets[slot];
        let (set, points) = (*id, grid.len());
        match data.types.len() == points {
            true => Ok(&data.types),
            false => Err(Error::from(ErrorKind::NoTypes { set, points })),
        }
    };
    let stale = |what| {
        let (set, points) = (sets[targets].id, sets[targets].grid.len());
        Err(Error::from(ErrorKind::StaleData { set, what, points }))
    };
    let data = &sets[targets].data;
    Ok(PairFilter {
        cutoffs: match &filters.cutoffs {
            None => None,
            Some(table) => Some(TypeCutoffs {
                table,
                types: [types(targets)?, types(sources)?],
            }),
        },
        excluded: match &data.exclusions {
            Given::Before if targets == sources => return stale(EXCLUSIONS),
            given => given.get().filter(|_| targets == sources),
        },
        chosen: match &data.chosen {
            Given::Before => return stale(TARGETS),
            given => given.get(),
        },
        nearest: filters.nearest,
    })
}

impl Engine {
    /// Gives every point of a set a type, in the order of the points: `u8`, `u16` or `u32`, below
    /// the number of types that [`Builder::cutoffs`] has. A pair of points is within the radius if
    /// it is within the cut-off of their types.
    ///
    /// Types stay with the indices of the points until they are given anew, and
    /// [`retain_points`](Self::retain_points) keeps them; after an [`update`](Self::update) that
    /// changes the number of points, give them again. Lists that involve the set are out of date
    /// until the next [`find_neighbors`](Self::find_neighbors). Takes two bytes per point.
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
        let Some(table) = &self.filters.cutoffs else {
            return Err(ErrorKind::UnusedTypes.into());
        };
        let known = table.types();
        let taken = self.sets[set.slot()].data.types.take(types, points, known);
        taken.map_err(|source| ErrorKind::PointData { set, source })?;
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
    /// On the CPU backend; an engine that was asked for a GPU alone refuses exclusions.
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
        self.sets[set.slot()].data.exclusions = Given::Yes(made);
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
    /// are; as sources they are found as before. The choice replaces the one before.
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
    /// On the CPU backend, and not with half lists: an engine that was asked for a GPU alone, or
    /// for half lists, refuses it.
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
        self.sets[set.slot()].data.chosen = Given::Yes(made);
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
        if self.filters.nearest.is_some() && self.lattice.repeats() {
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
