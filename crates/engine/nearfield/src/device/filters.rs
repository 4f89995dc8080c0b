//! Which pairs within the radius an engine on the device leaves out: cut-offs per pair of types,
//! exclusions, targets that are not chosen, all but the nearest, and radii of single points.
//!
//! Settings are checked when an engine is started. Data of points are taken by `point_data`; here a
//! job of two sets gets what there is for it, or is refused.
//!
//! **Invariant:** a filter that is handed to a job has data for every point of its sets, in the
//! order in which the sets are sorted.

use super::set::DeviceSetId;
use crate::{Error, ErrorKind, ListKind, ListOrder, PointSetId, RadiusRule, backend::next_stamp};
use nearfield_cpu::CutoffTable;
use nearfield_gpu::{
    DeviceCutoffs, DeviceFilter, DeviceNearest, DeviceShare, GpuBackend, PairOfPoints, Stamped,
};
use nearfield_grid::Radius;
use std::{
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The filters that hold for all sets of an engine, and memory for them.
#[derive(Debug, Default)]
pub(super) struct EngineFilters {
    cutoffs: Option<DeviceCutoffs>,
    /// Number of types.
    types: usize,
    rule: RadiusRule,
    k: Option<NonZeroU32>,
    nearest: Mutex<DeviceNearest>,
}

/// Settings of filters, as they are given to a builder.
#[derive(Debug, Clone, Default)]
pub(super) struct FilterSettings {
    pub(super) cutoffs: Option<Vec<Vec<f64>>>,
    pub(super) rule: RadiusRule,
    pub(super) nearest: Option<u32>,
}

/// A number that no data of this process have yet.
pub(super) fn stamped<T>(values: T) -> Stamped<T> {
    let stamp = next_stamp();
    Stamped { values, stamp }
}

impl FilterSettings {
    /// One of the filters that were asked for other than cut-offs, as messages name it.
    pub(super) fn beyond_cutoffs(&self) -> Option<&'static str> {
        match self {
            Self {
                nearest: Some(_), ..
            } => Some("the k nearest neighbours"),
            Self { rule, .. } if *rule != RadiusRule::Uniform => Some("radii of single points"),
            _ => None,
        }
    }

    /// Checks the settings, and copies cut-offs to the device.
    ///
    /// # Errors
    /// [`ErrorKind::Combined`], [`ErrorKind::NoNearest`],
    /// [`ErrorKind::Cpu`] for cut-offs that cannot be used and for half lists by a rule that is not
    /// symmetric, and [`ErrorKind::Gpu`].
    pub(super) fn start(
        &self,
        backend: &GpuBackend,
        (radius, strict): (Radius, bool),
        lists: ListKind,
        order: ListOrder,
    ) -> Result<EngineFilters, Error> {
        let combined = |first, second| Err(ErrorKind::Combined { first, second }.into());
        let mut filters = EngineFilters {
            rule: self.rule,
            ..EngineFilters::default()
        };
        if strict && self.rule != RadiusRule::Uniform {
            return Err(ErrorKind::StrictRadii(self.rule).into());
        }
        if lists == ListKind::Half && !self.rule.is_symmetric() {
            let rule = self.rule;
            let refused = nearfield_cpu::ErrorKind::HalfRule { rule };
            return Err(ErrorKind::Cpu(refused.into()).into());
        }
        if let Some(k) = self.nearest {
            const NEAREST: &str = "the k nearest neighbours";
            filters.k = Some(NonZeroU32::new(k).ok_or(ErrorKind::NoNearest)?);
            if lists == ListKind::Half {
                return combined(NEAREST, "half lists");
            }
            if order == ListOrder::Ascending {
                return combined(NEAREST, "ascending lists: they are in order of distance");
            }
        }
        if let Some(rows) = &self.cutoffs {
            if self.rule != RadiusRule::Uniform {
                return combined("cut-offs per pair of types", "radii of single points");
            }
            let table = CutoffTable::new(rows, radius, strict)?;
            let mut cutoffs = DeviceCutoffs::default();
            let (types, precision) = (table.types(), table.precision());
            backend.take_cutoffs(&mut cutoffs, stamped(table.squares()), types, precision)?;
            (filters.cutoffs, filters.types) = (Some(cutoffs), table.types());
        }
        Ok(filters)
    }
}

impl EngineFilters {
    /// The filter of a pair of sets, but for the nearest, and the targets that are chosen.
    ///
    /// # Errors
    /// [`ErrorKind::NoTypes`], [`ErrorKind::NoRadii`] and [`ErrorKind::StaleData`].
    pub(super) fn of_pair<'a>(
        &'a self,
        [(t, targets), (s, sources)]: [(PointSetId, &'a DeviceSetId); 2],
    ) -> Result<(DeviceFilter<'a>, Option<&'a DeviceShare>), Error> {
        let same_set = t == s;
        let is_of = |given: Option<usize>, set: &DeviceSetId| {
            given.is_some_and(|points| points == set.points.len())
        };
        let lacks =
            |given: Option<usize>, set: &DeviceSetId| !is_of(given, set) && !set.points.is_empty();
        let stale = |given: Option<usize>, what| match given {
            Some(_) if lacks(given, targets) => {
                let points = targets.points.len();
                Err(Error::from(ErrorKind::StaleData {
                    set: t,
                    what,
                    points,
                }))
            }
            given => Ok(given.is_some()),
        };
        let radii = [self.rule.needs_targets(), self.rule.needs_sources()];
        for ((set, of_set), counts) in [(t, targets), (s, sources)].into_iter().zip(radii) {
            let points = of_set.points.len();
            if self.cutoffs.is_some() && lacks(of_set.given.types, of_set) {
                return Err(ErrorKind::NoTypes { set, points }.into());
            }
            if counts && lacks(of_set.given.radii, of_set) {
                let rule = self.rule;
                return Err(ErrorKind::NoRadii { set, points, rule }.into());
            }
        }
        let chosen = stale(targets.given.chosen, "chosen targets")?;
        let filter = DeviceFilter {
            targets: Some(&targets.data),
            sources: Some(&sources.data),
            cutoffs: self.cutoffs.as_ref(),
            excluded: same_set && stale(targets.given.exclusions, "exclusions")?,
            radii,
            nearest: None,
        };
        Ok((filter, chosen.then(|| targets.data.chosen())))
    }

    /// Finds the nearest pairs for a job of these sets, if only these are kept; waits for the
    /// device then, unless they are known. The job runs [with](with_nearest) what this returns.
    ///
    /// # Errors
    /// As [`GpuBackend::find_nearest`].
    pub(super) fn nearest(
        &self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
    ) -> Result<Option<MutexGuard<'_, DeviceNearest>>, Error> {
        let Some(k) = self.k else {
            return Ok(None);
        };
        // State left by a panic is found out by its origin.
        let mut nearest = self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        backend.find_nearest(of, k, &mut nearest)?;
        Ok(Some(nearest))
    }

    /// Number of types; none without cut-offs.
    pub(super) fn types(&self) -> Option<usize> {
        self.cutoffs.as_ref().map(|_| self.types)
    }

    /// Whose radius decides.
    pub(super) fn rule(&self) -> RadiusRule {
        self.rule
    }

    /// How many of the nearest are kept; `None` for all.
    pub(super) fn kept(&self) -> Option<NonZeroU32> {
        self.k
    }

    /// Returns true if only the nearest are kept, so that lists are in the order of distance.
    pub(super) fn has_nearest(&self) -> bool {
        self.k.is_some()
    }

    /// Bytes held on the device, but for cut-offs.
    pub(super) fn bytes(&self) -> usize {
        let nearest = self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        nearest.bytes()
    }
}

/// The pair with the nearest that were found for it.
pub(super) fn with_nearest<'a>(
    of: PairOfPoints<'a>,
    nearest: &'a Option<MutexGuard<'_, DeviceNearest>>,
) -> PairOfPoints<'a> {
    let mut of = of;
    of.filter.nearest = nearest.as_ref().map(|nearest| nearest.last());
    of
}
