//! Data of points for a `DeviceEngine`, from arrays of the host or of its GPU.

use super::{
    engine::PyDeviceEngine,
    given::{GivenArray, is_on_gpu},
    layout::Dtype,
};
use crate::{
    engine::involving,
    errors::raise,
    filters::Targets,
    points::{field, whole_numbers},
};
use nearfield::{
    Error, PointSetId, Precision,
    device::{DeviceEngine, PointNumber},
};
use pyo3::{exceptions::PyTypeError, prelude::*};

impl PyDeviceEngine {
    /// Radii of a set's points.
    pub(super) fn take_radii(
        &self,
        py: Python<'_>,
        set: usize,
        radii: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !is_on_gpu(radii)? {
            let radii = field(radii, 1, "radii", Precision::Single)?;
            return self.change(py, set, move |engine, set| engine.set_radii(set, &radii));
        }
        let radii = self.shared.given(radii, "radii")?;
        radii.shaped(Dtype::F32, &[self.points(set)?])?;
        self.receive(py, set, radii, |engine, set, radii| {
            let radii = radii.lend::<f32>(engine.stream());
            engine.set_radii_from_device(set, &radii.as_view())
        })
    }

    /// Types of a set's points.
    pub(super) fn take_types(
        &self,
        py: Python<'_>,
        set: usize,
        types: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !is_on_gpu(types)? {
            let types = whole_numbers(types, "types", 1)?;
            return self.change(py, set, move |engine, set| engine.set_types(set, &types));
        }
        fn of<T: PointNumber>(
            engine: &mut DeviceEngine,
            set: PointSetId,
            types: &GivenArray,
        ) -> Result<(), Error> {
            let types = types.lend::<T>(engine.stream());
            engine.set_types_from_device(set, &types.as_view())
        }
        let types = self.shared.given(types, "types")?;
        let take = match types.whole_numbers(self.points(set)?)? {
            Dtype::I32 => of::<i32>,
            Dtype::I64 => of::<i64>,
            Dtype::U64 => of::<u64>,
            _ => of::<u32>,
        };
        self.receive(py, set, types, take)
    }

    /// Molecules of a set's points.
    pub(super) fn take_molecules(
        &self,
        py: Python<'_>,
        set: usize,
        molecules: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !is_on_gpu(molecules)? {
            let molecules = whole_numbers(molecules, "molecules", 1)?;
            return self.change(py, set, move |engine, set| {
                engine.set_molecules(set, &molecules)
            });
        }
        fn of<T: PointNumber>(
            engine: &mut DeviceEngine,
            set: PointSetId,
            molecules: &GivenArray,
        ) -> Result<(), Error> {
            let molecules = molecules.lend::<T>(engine.stream());
            engine.set_molecules_from_device(set, &molecules.as_view())
        }
        let molecules = self.shared.given(molecules, "molecules")?;
        let take = match molecules.whole_numbers(self.points(set)?)? {
            Dtype::I32 => of::<i32>,
            Dtype::I64 => of::<i64>,
            Dtype::U64 => of::<u64>,
            _ => of::<u32>,
        };
        self.receive(py, set, molecules, take)
    }

    /// Targets among a set's points, by a mask where it is on the GPU.
    pub(super) fn take_targets(
        &self,
        py: Python<'_>,
        set: usize,
        targets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(targets) = targets else {
            return self.change(py, set, |engine, set| engine.clear_targets(set));
        };
        if !is_on_gpu(targets)? {
            let targets = Targets::of(targets, 1)?;
            return self.change(py, set, move |engine, set| match &targets {
                Targets::Indices(indices) => engine.set_targets(set, indices),
                Targets::Mask(mask) => engine.set_target_mask(set, mask),
            });
        }
        let mask = self.shared.given(targets, "targets")?;
        if mask.dtype != Dtype::Bool.name() {
            return Err(PyTypeError::new_err(format!(
                "targets on a GPU must be a mask of type bool, not {}: numbers of points may be in \
                 an array of the host",
                mask.dtype
            )));
        }
        mask.shaped(Dtype::Bool, &[self.points(set)?])?;
        self.receive(py, set, mask, |engine, set, mask| {
            let mask = mask.lend::<u8>(engine.stream());
            engine.set_target_mask_from_device(set, &mask.as_view())
        })
    }

    /// Takes data of a set, whose lists are then out of date, from an array of the GPU.
    fn receive(
        &self,
        py: Python<'_>,
        set: usize,
        given: GivenArray,
        take: impl FnOnce(&mut DeviceEngine, PointSetId, &GivenArray) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.shared.work(py, vec![given], |state, given| {
            state.retire(involving(set));
            let set = state.set(set)?;
            take(&mut state.engine, set, &given[0]).map_err(raise)
        })
    }
}
