//! What filters need: the settings of an engine that hold for all sets, and data of a set's points.
//!
//! Settings are checked once, when the engine is built or its radius changes. Data are checked when
//! they are given, and forgotten when the number of points changes: those of other points would
//! leave out the wrong pairs without notice. That exclusions or targets *were* given is remembered,
//! so that a search is refused instead of going on without them.
//!
//! **Invariant:** data that are handed out are for as many points as the set has.

use crate::{
    Builder, Error, ErrorKind, ListKind, ListOrder, RadiusRule,
    backend::{DataStamps, next_stamp, support::Feature},
};
use nearfield_cpu::{ChosenPoints, CutoffTable, Exclusions, PairFilter, PointTypes, TypeCutoffs};
use nearfield_grid::Radius;
use std::num::NonZeroU32;

/// The k nearest, in messages.
pub(super) const NEAREST: &str = "the k nearest neighbours";
/// Cut-offs, in messages.
pub(super) const CUTOFFS: &str = "cut-offs per pair of types";
/// Exclusions, in messages.
pub(super) const EXCLUSIONS: &str = "exclusions";
/// Chosen targets, in messages.
pub(super) const TARGETS: &str = "chosen targets";

/// The filters that hold for all sets.
#[derive(Debug, Default)]
pub(crate) struct EngineFilters {
    cutoffs: Option<CutoffTable>,
    nearest: Option<NonZeroU32>,
    /// Tells the cut-offs from those before.
    stamp: u64,
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
                return combined(NEAREST, "ascending lists: they are in order of distance");
            }
        }
        if let Some(rows) = &settings.cutoffs {
            if settings.rule != RadiusRule::Uniform {
                return combined(CUTOFFS, "radii of single points");
            }
            filters.cutoffs = Some(CutoffTable::new(rows, radius, settings.strict)?);
            filters.stamp = next_stamp();
        }
        Ok(filters)
    }

    /// What tells the cut-offs from those before.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The number of types that cut-offs are for; none without cut-offs.
    pub(super) fn types(&self) -> Option<usize> {
        self.cutoffs.as_ref().map(CutoffTable::types)
    }

    /// Whether only the nearest are kept.
    pub(super) fn has_nearest(&self) -> bool {
        self.nearest.is_some()
    }

    /// The filters of a pair of sets with these data and numbers of points.
    ///
    /// # Errors
    /// What is missing: of which of the two sets, and what.
    pub(super) fn of_pair<'a>(
        &'a self,
        [targets, sources]: [&'a PointData; 2],
        points: [usize; 2],
        same_set: bool,
    ) -> Result<PairFilter<'a>, (usize, Missing)> {
        let mut filter = self.of_query();
        if let Some(table) = &self.cutoffs {
            for (side, data) in [targets, sources].into_iter().enumerate() {
                if data.types.len() != points[side] {
                    return Err((side, Missing::Types));
                }
            }
            let types = [&targets.types, &sources.types];
            filter.cutoffs = Some(TypeCutoffs { table, types });
        }
        if same_set {
            filter.excluded = targets
                .exclusions
                .now()
                .map_err(|()| (0, Missing::Exclusions))?;
        }
        filter.chosen = targets.chosen.now().map_err(|()| (0, Missing::Targets))?;
        Ok(filter)
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

/// Data that a search needs and a set does not have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Missing {
    Types,
    Exclusions,
    Targets,
}

/// Data of a set's points that filters need.
#[derive(Debug, Default)]
pub(crate) struct PointData {
    /// Of another length than the set while it has none.
    pub(super) types: PointTypes,
    pub(super) exclusions: Given<Exclusions>,
    pub(super) chosen: Given<ChosenPoints>,
    /// Tell them from those before; radii are kept elsewhere.
    pub(super) stamps: DataStamps,
}

/// Data that a set may do without.
#[derive(Debug, Default)]
pub(super) enum Given<T> {
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

    /// What was given; an error if that was for other points.
    fn now(&self) -> Result<Option<&T>, ()> {
        match self {
            Self::Before => Err(()),
            given => Ok(given.get()),
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
            stamps: DataStamps {
                types: next_stamp(),
                exclusions: next_stamp(),
                chosen: next_stamp(),
                radii: 0,
            },
        })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.types.bytes()
            + self.exclusions.get().map_or(0, Exclusions::bytes)
            + self.chosen.get().map_or(0, ChosenPoints::bytes)
    }

    /// The feature that jobs of a pair of sets need for these data, if any.
    pub(super) fn feature(&self, same_set: bool) -> Option<Feature> {
        if same_set && !matches!(self.exclusions, Given::No) {
            return Some(Feature::Exclusions);
        }
        (!matches!(self.chosen, Given::No)).then_some(Feature::ChosenTargets)
    }
}
