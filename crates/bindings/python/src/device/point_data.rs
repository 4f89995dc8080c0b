//! Data of points for a `DeviceEngine`, from arrays of the host or of its GPU.

use super::{
    engine::PyDeviceEngine,
    given::{GivenArray, is_on_gpu},
    layout::Dtype,
};
use crate::{
    filters::Targets,
    points::{OwnRadii, whole_numbers},
};
use nearfield::{
    Error, PointSetId, Precision,
    device::{DeviceEngine, PointNumber},
};
use pyo3::{exceptions::PyTypeError, prelude::*};

/// Whole numbers that every point of a set can have.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    Types,
    Molecules,
}

impl Numbers {
    fn name(self) -> &'static str {
        match self {
            Self::Types => "types",
            Self::Molecules => "molecules",
        }
    }

    /// Gives a set those of an array of the GPU.
    fn give<T: PointNumber>(
        self,
        engine: &mut DeviceEngine,
        set: PointSetId,
        given: &GivenArray,
    ) -> Result<(), Error> {
        let numbers = given.lend::<T>(engine.stream());
        match self {
            Self::Types => engine.set_types_from_device(set, &numbers.as_view()),
            Self::Molecules => engine.set_molecules_from_device(set, &numbers.as_view()),
        }
    }
}

impl PyDeviceEngine {
    /// Radii of a set's points.
    pub(super) fn take_radii(
        &self,
        py: Python<'_>,
        set: usize,
        radii: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !is_on_gpu(radii)? {
            let radii = OwnRadii::of(radii, 1, self.precision)?;
            return self.change(py, set, move |engine, set| {
                engine.set_radii(set, radii.get())
            });
        }
        let radii = self.shared.given(radii, "radii")?;
        let double = self.precision == Precision::Double && radii.is(Dtype::F64);
        let dtype = if double { Dtype::F64 } else { Dtype::F32 };
        radii.shaped(dtype, &[self.points(set)?])?;
        self.receive(py, set, vec![radii], move |engine, set, given| {
            if double {
                let radii = given[0].lend::<f64>(engine.stream());
                engine.set_radii_from_device(set, &radii.as_view())
            } else {
                let radii = given[0].lend::<f32>(engine.stream());
                engine.set_radii_from_device(set, &radii.as_view())
            }
        })
    }

    /// Types of a set's points.
    pub(super) fn take_types(
        &self,
        py: Python<'_>,
        set: usize,
        types: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take_numbers(py, set, types, Numbers::Types)
    }

    /// Molecules of a set's points.
    pub(super) fn take_molecules(
        &self,
        py: Python<'_>,
        set: usize,
        molecules: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take_numbers(py, set, molecules, Numbers::Molecules)
    }

    fn take_numbers(
        &self,
        py: Python<'_>,
        set: usize,
        given: &Bound<'_, PyAny>,
        are: Numbers,
    ) -> PyResult<()> {
        let what = are.name();
        if !is_on_gpu(given)? {
            let numbers = whole_numbers(given, what, 1)?;
            return self.change(py, set, move |engine, set| match are {
                Numbers::Types => engine.set_types(set, &numbers),
                Numbers::Molecules => engine.set_molecules(set, &numbers),
            });
        }
        let numbers = self.shared.given(given, what)?;
        let dtype = numbers.whole_numbers(self.points(set)?)?;
        self.receive(py, set, vec![numbers], |engine, set, given| match dtype {
            Dtype::I32 => are.give::<i32>(engine, set, &given[0]),
            Dtype::I64 => are.give::<i64>(engine, set, &given[0]),
            Dtype::U64 => are.give::<u64>(engine, set, &given[0]),
            _ => are.give::<u32>(engine, set, &given[0]),
        })
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
        self.receive(py, set, vec![mask], |engine, set, given| {
            let mask = given[0].lend::<u8>(engine.stream());
            engine.set_target_mask_from_device(set, &mask.as_view())
        })
    }
}
