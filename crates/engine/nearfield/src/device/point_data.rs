//! What filters read of the points of an engine on the device: taken from the host, checked,
//! copied. Module `given_data` takes them from arrays of the device.
//!
//! Data are checked as [`Engine`](crate::Engine) checks them, and are copied to the device once.
//! They belong to indices: as long as the number of points stays they follow the points, and a job
//! of a set with other points is refused until they are given anew. After every sort they are
//! brought into the order of the cells (`arrange`), on the stream and without waiting, unless
//! targets are chosen: how many those are is read then.
//!
//! **Invariant:** data on the device are in the order in which the set is sorted, whenever that is
//! sorted.

use super::{
    engine::DeviceEngine,
    filters::stamped,
    set::{DeviceSetId, GivenData, RadiusSizes},
};
use crate::{
    Error, ErrorKind, ListKind, PointSetId, RadiusRule, backend::gpu::RadiusClasses,
    own_radii::OwnRadii,
};
use nearfield_cpu::{ChosenPoints, CpuBackend, ExclusionArrays, Exclusions, PointTypes};
use nearfield_gpu::{HostExclusions, HostPointData};
use nearfield_grid::{Radii, Radius};

impl DeviceEngine {
    /// Gives every point of a set a type, from an array of the host, as
    /// [`Engine::set_types`](crate::Engine::set_types) does.
    ///
    /// # Errors
    /// As there, and [`ErrorKind::OnDevice`] when the GPU fails. Results that are provisional stay.
    pub fn set_types<T: Copy + Into<u32>>(
        &mut self,
        set: PointSetId,
        types: &[T],
    ) -> Result<(), Error> {
        let points = self.points(set)?;
        let Some(known) = self.filters.types() else {
            return Err(ErrorKind::UnusedTypes.into());
        };
        let mut taken = PointTypes::default();
        taken
            .take(types, points, known)
            .map_err(|source| ErrorKind::PointData { set, source })?;
        let given = HostPointData {
            types: Some(stamped(taken.of_points())),
            ..HostPointData::default()
        };
        self.take(set, given, |given| given.types = Some(points))
    }

    /// Leaves out pairs of a set's points, by ascending lists, as
    /// [`Engine::set_exclusions`](crate::Engine::set_exclusions) does.
    ///
    /// # Errors
    /// As there, and [`ErrorKind::OnDevice`] when the GPU fails.
    pub fn set_exclusions(
        &mut self,
        set: PointSetId,
        offsets: &[u64],
        indices: &[u32],
    ) -> Result<(), Error> {
        self.exclude(set, |_| Exclusions::lists(offsets, indices))
    }

    /// The same by pairs of points, as [`Engine::exclude_pairs`](crate::Engine::exclude_pairs).
    ///
    /// # Errors
    /// As [`set_exclusions`](Self::set_exclusions).
    pub fn exclude_pairs(&mut self, set: PointSetId, pairs: &[[u32; 2]]) -> Result<(), Error> {
        self.exclude(set, |points| Exclusions::pairs(pairs, points))
    }

    /// Leaves out pairs of points of the same molecule, as
    /// [`Engine::set_molecules`](crate::Engine::set_molecules).
    ///
    /// # Errors
    /// As [`set_exclusions`](Self::set_exclusions).
    pub fn set_molecules(&mut self, set: PointSetId, of_points: &[u32]) -> Result<(), Error> {
        self.exclude(set, |_| Exclusions::molecules(of_points))
    }

    fn exclude(
        &mut self,
        set: PointSetId,
        make: impl FnOnce(usize) -> Result<Exclusions, nearfield_cpu::Error>,
    ) -> Result<(), Error> {
        let points = self.points(set)?;
        let refuse = |source| Error::from(ErrorKind::PointData { set, source });
        let made = make(points).map_err(refuse)?;
        check_length("exclusions", made.len(), points).map_err(refuse)?;
        let arrays = match made.arrays() {
            ExclusionArrays::Lists { offsets, indices } => {
                HostExclusions::Lists { offsets, indices }
            }
            ExclusionArrays::Molecules(of) => HostExclusions::Molecules(of),
        };
        let given = HostPointData {
            exclusions: Some(stamped(arrays)),
            ..HostPointData::default()
        };
        self.take(set, given, |given| given.exclusions = Some(points))
    }

    /// All pairs of a set's points are neighbours again if they are near.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn clear_exclusions(&mut self, set: PointSetId) -> Result<(), Error> {
        self.points(set)?;
        let of = &mut self.sets[set.slot()];
        of.given.exclusions = None;
        of.data.forget_exclusions();
        self.outdate(set);
        Ok(())
    }

    /// Searches for some points of a set only, as
    /// [`Engine::set_targets`](crate::Engine::set_targets). The others have empty lists and 0
    /// neighbours, and traversals leave their results alone. While targets are chosen, an
    /// [`update`](Self::update) of the set waits for the device.
    ///
    /// # Errors
    /// As there, and [`ErrorKind::OnDevice`] when the GPU fails.
    pub fn set_targets(&mut self, set: PointSetId, indices: &[u32]) -> Result<(), Error> {
        self.choose(set, |points| ChosenPoints::with_indices(indices, points))
    }

    /// The same by a mask with an element for every point.
    ///
    /// # Errors
    /// As [`set_targets`](Self::set_targets).
    pub fn set_target_mask(&mut self, set: PointSetId, mask: &[bool]) -> Result<(), Error> {
        self.choose(set, |points| {
            check_length("chosen targets", mask.len(), points)?;
            ChosenPoints::with_mask(mask)
        })
    }

    fn choose(
        &mut self,
        set: PointSetId,
        make: impl FnOnce(usize) -> Result<ChosenPoints, nearfield_cpu::Error>,
    ) -> Result<(), Error> {
        let points = self.can_choose(set)?;
        let made = make(points).map_err(|source| ErrorKind::PointData { set, source })?;
        let given = HostPointData {
            chosen: Some(stamped(made.mask())),
            ..HostPointData::default()
        };
        self.take(set, given, |given| given.chosen = Some(points))
    }

    /// Refuses to choose targets for half lists; returns how many points the set has.
    pub(super) fn can_choose(&self, set: PointSetId) -> Result<usize, Error> {
        let points = self.points(set)?;
        if self.settings.lists == ListKind::Half {
            let (first, second) = ("chosen targets", "half lists");
            return Err(ErrorKind::Combined { first, second }.into());
        }
        Ok(points)
    }

    /// All points of a set are targets again.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn clear_targets(&mut self, set: PointSetId) -> Result<(), Error> {
        self.points(set)?;
        self.sets[set.slot()].given.chosen = None;
        self.outdate(set);
        Ok(())
    }

    /// Gives every point of a set a search radius of its own, at most that of the engine, as
    /// [`Engine::set_radii`](crate::Engine::set_radii).
    ///
    /// # Errors
    /// As there, and [`ErrorKind::OnDevice`] when the GPU fails.
    pub fn set_radii<'a>(
        &mut self,
        set: PointSetId,
        radii: impl Into<Radii<'a>>,
    ) -> Result<(), Error> {
        let (points, radii) = (self.points(set)?, radii.into());
        let largest = self.largest_own_radius(set)?;
        let cpu = CpuBackend::new(1)?;
        cpu.check_radii(radii, points, largest)
            .map_err(|source| ErrorKind::Radii { set, source })?;
        let radii = OwnRadii::copy_of(radii, largest.precision())?;
        let given = HostPointData {
            radii: Some(stamped(radii.get())),
            ..HostPointData::default()
        };
        self.sets[set.slot()].radii = RadiusSizes::Unknown;
        self.take(set, given, |given| given.radii = Some(points))?;
        if let Radii::Single(radii) = radii.get() {
            let classes = RadiusClasses::of(radii, largest.value(), &cpu);
            self.sets[set.slot()].radii = RadiusSizes::Counted(classes);
        }
        self.fit_radii().map(drop)
    }

    /// The largest radius that points of a set may have of their own, if they may.
    pub(super) fn largest_own_radius(&self, set: PointSetId) -> Result<Radius, Error> {
        self.known(set)?;
        let rule = self.filters.rule();
        if rule == RadiusRule::Uniform {
            let what = "points";
            return Err(ErrorKind::UnusedRadii { what, rule }.into());
        }
        let largest = self.settings.checked_radius().map_err(ErrorKind::Setup)?;
        Ok(largest)
    }

    /// Copies data of a set's points, and notes for how many points there are some now.
    fn take(
        &mut self,
        set: PointSetId,
        given: HostPointData<'_>,
        note: impl FnOnce(&mut GivenData),
    ) -> Result<(), Error> {
        let DeviceSetId { points, data, .. } = &mut self.sets[set.slot()];
        self.backend
            .take_point_data(data, given, points.len())
            .map_err(|source| ErrorKind::OnDevice { set, source })?;
        note(&mut self.sets[set.slot()].given);
        self.outdate(set);
        self.arrange(set)
    }

    /// Brings the data of a set's points into the order in which they are sorted now.
    pub(super) fn arrange(&mut self, set: PointSetId) -> Result<(), Error> {
        let DeviceSetId {
            points,
            data,
            given,
            ..
        } = &mut self.sets[set.slot()];
        if *given == GivenData::default() || !points.is_sorted() {
            return Ok(());
        }
        let arranged = self.backend.arrange(data, points);
        arranged.map_err(|source| ErrorKind::OnDevice { set, source }.into())
    }
}

/// Refuses data for another number of points.
fn check_length(
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), nearfield_cpu::Error> {
    if found == expected {
        return Ok(());
    }
    let kind = nearfield_cpu::ErrorKind::FilterLength {
        what,
        found,
        expected,
    };
    Err(kind.into())
}
