//! Data of points that filters read, from arrays of the device: radii that adapt in every step need
//! not pass through the host.
//!
//! The host cannot look at the values before they are used. A kernel copies them, replaces those
//! that cannot be used, and notes them; [`finish`](DeviceEngine::finish) reads the note, returns
//! the error that the same data in memory of the host would have caused, and forgets them. So a set
//! has usable data or none. If they were replaced before that, the new data stay, and `finish` asks
//! to repeat what was computed with the old.

use super::{
    engine::DeviceEngine,
    set::{DeviceSetId, GivenData, RadiusSizes},
};
use crate::{Error, ErrorKind, PointSetId, backend::next_stamp};
use nearfield_gpu::{
    DevicePointData, DeviceView, ErrorKind as GpuErrorKind, GpuBackend, PointNumber,
    PositionNumber, RefusedPointData, RefusedValues,
};
use nearfield_grid::{Precision, Radius, Value};

impl DeviceEngine {
    /// As [`set_radii`](Self::set_radii), from an array of the GPU with a radius per point, in
    /// `f32` or `f64`, which is copied. Does not wait: for radii that adapt in every step.
    ///
    /// The device counts how large they are. If cells of another size are better for them,
    /// [`finish`](Self::finish) makes these and returns
    /// [`Progress::Repeat`](super::Progress::Repeat).
    ///
    /// As the host does not see the largest of the radii, searches in which those of sources count
    /// look as far as the radius that cells are made for: choose that of the engine no larger than
    /// need be.
    ///
    /// ```no_run
    /// use nearfield::{RadiusRule, device::{DeviceEngine, DeviceView}};
    /// # use nearfield::{Error, PointSetId};
    /// # fn step(
    /// #     engine: &mut DeviceEngine, fluid: PointSetId, positions: &DeviceView<'_, f32>,
    /// #     radii: &DeviceView<'_, f32>,
    /// # ) -> Result<(), Error> {
    /// engine.update(fluid, positions)?;
    /// engine.set_radii_from_device(fluid, radii)?;
    /// engine.find_neighbors(fluid, fluid)?;
    /// let progress = engine.finish()?; // names a radius that cannot be used
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnusedRadii`], [`ErrorKind::UnknownPointSet`], and [`ErrorKind::OnDevice`] for
    /// another number of radii than of points, an array of another GPU, or if the GPU fails; data
    /// that were there before stay if the array is refused. Radii that are not from 2⁻⁵⁰ to the
    /// radius of the engine are found by [`finish`](Self::finish), which returns
    /// [`ErrorKind::Radii`]; the set then has no radii. The error has the radius in `f32`, rounded
    /// away from those that can be used.
    pub fn set_radii_from_device<T: PositionNumber>(
        &mut self,
        set: PointSetId,
        radii: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        let largest = self.largest_own_radius(set)?;
        self.receive(
            set,
            |backend, data, points, stamp| {
                backend.receive_radii(data, radii, largest, points, stamp)
            },
            |given, points| given.radii = Some(points),
        )?;
        self.sets[set.slot()].radii = match largest.precision() {
            Precision::Single => RadiusSizes::Counting,
            Precision::Double => RadiusSizes::Unknown,
        };
        Ok(())
    }

    /// As [`set_types`](Self::set_types), from an array of the GPU with a whole number per point,
    /// which is copied. Does not wait.
    ///
    /// # Errors
    /// [`ErrorKind::UnusedTypes`] and as [`set_radii_from_device`](Self::set_radii_from_device);
    /// types that there are not are found by [`finish`](Self::finish), which returns
    /// [`ErrorKind::PointData`]; the set then has no types.
    pub fn set_types_from_device<T: PointNumber>(
        &mut self,
        set: PointSetId,
        types: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.points(set)?;
        let Some(known) = self.filters.types() else {
            return Err(ErrorKind::UnusedTypes.into());
        };
        self.receive(
            set,
            |backend, data, points, stamp| backend.receive_types(data, types, known, points, stamp),
            |given, points| given.types = Some(points),
        )
    }

    /// As [`set_molecules`](Self::set_molecules), from an array of the GPU with a whole number
    /// below 2³² per point, which is copied. Does not wait.
    ///
    /// # Errors
    /// As [`set_radii_from_device`](Self::set_radii_from_device); negative numbers and those of
    /// more than 32 bits are found by [`finish`](Self::finish), which returns
    /// [`ErrorKind::OnDevice`]; jobs of the set are then refused until it has exclusions again, or
    /// these are [cleared](Self::clear_exclusions).
    pub fn set_molecules_from_device<T: PointNumber>(
        &mut self,
        set: PointSetId,
        molecules: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.receive(
            set,
            |backend, data, points, stamp| {
                backend.receive_molecules(data, molecules, points, stamp)
            },
            |given, points| given.exclusions = Some(points),
        )
    }

    /// As [`set_target_mask`](Self::set_target_mask), from an array of the GPU with a byte per
    /// point, which is not 0 for targets. Waits for the device, to learn how many targets there
    /// are.
    ///
    /// # Errors
    /// [`ErrorKind::Combined`] with half lists, and as
    /// [`set_radii_from_device`](Self::set_radii_from_device).
    pub fn set_target_mask_from_device(
        &mut self,
        set: PointSetId,
        mask: &DeviceView<'_, u8>,
    ) -> Result<(), Error> {
        self.can_choose(set)?;
        self.receive(
            set,
            |backend, data, points, stamp| backend.receive_chosen(data, mask, points, stamp),
            |given, points| given.chosen = Some(points),
        )
    }

    /// Copies data of a set's points on the device, and notes for how many points there are some.
    fn receive(
        &mut self,
        set: PointSetId,
        copy: impl FnOnce(
            &GpuBackend,
            &mut DevicePointData,
            usize,
            u64,
        ) -> Result<(), nearfield_gpu::Error>,
        note: impl FnOnce(&mut GivenData, usize),
    ) -> Result<(), Error> {
        self.known(set)?;
        let DeviceSetId {
            points,
            data,
            given,
            ..
        } = &mut self.sets[set.slot()];
        let points = points.len();
        copy(&self.backend, data, points, next_stamp())
            .map_err(|source| ErrorKind::OnDevice { set, source })?;
        note(given, points);
        self.outdate(set);
        self.arrange(set)
    }

    /// Looks what was refused of the data that came from the device. Sets lose these data, and
    /// what was computed since the last call does not stand; nor does it if the data were replaced
    /// since, which then is no error. Returns false if radii ask for other cells, into which all
    /// sets are sorted.
    ///
    /// # Errors
    /// What is wrong with the data of the first such set.
    pub(super) fn settle_data(&mut self) -> Result<bool, Error> {
        let (mut first, mut counted) = (None, false);
        for slot in 0..self.sets.len() {
            let set = self.slots.id(slot);
            let refused = match self.backend.refused_data(&mut self.sets[slot].data) {
                Ok(refused) => refused,
                Err(source) => {
                    self.sorted_anew = true;
                    first.get_or_insert(ErrorKind::OnDevice { set, source }.into());
                    continue;
                }
            };
            if refused != RefusedPointData::default() {
                self.outdate(set);
                self.sorted_anew = true;
            }
            let DeviceSetId { data, radii, .. } = &mut self.sets[slot];
            if let (RadiusSizes::Counting, Some(counts)) = (*radii, data.radius_counts()) {
                *radii = RadiusSizes::Counted(counts.into());
                counted = true;
            }
            if let Some(error) = self.refusal(set, refused) {
                let DeviceSetId { given, radii, .. } = &mut self.sets[slot];
                if refused.radii.is_some() {
                    (given.radii, *radii) = (None, RadiusSizes::Unknown);
                }
                if refused.types.is_some() {
                    given.types = None;
                }
                if refused.molecules.is_some() {
                    // Of no points: stale, so that jobs do not go on without exclusions.
                    given.exclusions = Some(0);
                }
                first.get_or_insert(error);
            }
        }
        if let Some(error) = first {
            return Err(error);
        }
        let fits = !counted || !self.fit_radii()?;
        self.sorted_anew |= !fits;
        Ok(fits)
    }

    /// The error of data that were refused, if any were: as that of data from the host.
    fn refusal(&self, set: PointSetId, refused: RefusedPointData) -> Option<Error> {
        let counted = |RefusedValues { count, .. }| usize::try_from(count).unwrap_or(usize::MAX);
        if let Some(radii) = refused.radii {
            let largest = self.settings.checked_radius();
            let largest = largest.map_or(self.radius().into(), Radius::as_given);
            let source = nearfield_cpu::ErrorKind::PointRadius {
                index: radii.first as usize,
                value: Value::Single(f32::from_bits(radii.bits)),
                largest,
                count: counted(radii),
                points: radii.points,
            }
            .into();
            return Some(ErrorKind::Radii { set, source }.into());
        }
        if let Some(types) = refused.types {
            let source = nearfield_cpu::ErrorKind::PointType {
                index: types.first as usize,
                value: types.bits,
                types: self.filters.types().unwrap_or_default(),
                count: counted(types),
                points: types.points,
            }
            .into();
            return Some(ErrorKind::PointData { set, source }.into());
        }
        refused.molecules.map(|molecules| {
            let source = GpuErrorKind::PointNumbers {
                what: "molecules of points",
                first: molecules.first,
                count: molecules.count,
            }
            .into();
            ErrorKind::OnDevice { set, source }.into()
        })
    }
}
