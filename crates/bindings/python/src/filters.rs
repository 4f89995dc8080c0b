//! What leaves out pairs within the radius, as Python gives it: cut-offs, types, exclusions and
//! chosen targets.

use crate::{
    lists::room,
    points::{values, whole_numbers},
};
use nearfield::{Engine, Error, PointSetId};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

/// Some points of a set.
pub(crate) enum Targets {
    Indices(Vec<u32>),
    Mask(Vec<bool>),
}

impl Targets {
    /// Indices, or a mask of bool.
    pub(crate) fn of(object: &Bound<'_, PyAny>, threads: usize) -> PyResult<Self> {
        // Lists and tensors become arrays; masked arrays stay what they are, and are refused.
        let numpy = object.py().import("numpy")?;
        let array = numpy.call_method1("asanyarray", (object,))?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        Ok(match kind.as_str() {
            "b" => Self::Mask(values::<bool>(&array, threads, "targets")?),
            _ => Self::Indices(whole_numbers(&array, "targets", 1)?),
        })
    }

    pub(crate) fn give(&self, engine: &mut Engine, set: PointSetId) -> Result<(), Error> {
        match self {
            Self::Indices(indices) => engine.set_targets(set, indices),
            Self::Mask(mask) => engine.set_target_mask(set, mask),
        }
    }
}

/// What `neighbors` is given of its points, besides radii.
pub(crate) struct FilterData {
    types: Option<Vec<u32>>,
    exclusions: Option<Vec<[u32; 2]>>,
    molecules: Option<Vec<u32>>,
    targets: Option<Targets>,
}

impl FilterData {
    pub(crate) fn of(
        types: Option<&Bound<'_, PyAny>>,
        exclusions: Option<&Bound<'_, PyAny>>,
        molecules: Option<&Bound<'_, PyAny>>,
        targets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if exclusions.is_some() && molecules.is_some() {
            return Err(PyValueError::new_err(
                "exclusions and molecules replace each other: give one of them",
            ));
        }
        let of_points = |given: Option<&Bound<'_, PyAny>>, what| {
            let numbers = given.map(|given| whole_numbers(given, what, 1));
            numbers.transpose()
        };
        Ok(Self {
            types: of_points(types, "types")?,
            exclusions: exclusions.map(pairs).transpose()?,
            molecules: of_points(molecules, "molecules")?,
            targets: targets.map(|given| Targets::of(given, 1)).transpose()?,
        })
    }

    pub(crate) fn give(&self, engine: &mut Engine, set: PointSetId) -> Result<(), Error> {
        if let Some(types) = &self.types {
            engine.set_types(set, types)?;
        }
        if let Some(pairs) = &self.exclusions {
            engine.exclude_pairs(set, pairs)?;
        }
        if let Some(molecules) = &self.molecules {
            engine.set_molecules(set, molecules)?;
        }
        match &self.targets {
            Some(targets) => targets.give(engine, set),
            None => Ok(()),
        }
    }
}

/// Pairs of points that are not neighbours.
pub(crate) fn pairs(object: &Bound<'_, PyAny>) -> PyResult<Vec<[u32; 2]>> {
    let numbers = whole_numbers(object, "exclusions", 2)?;
    let (given, _) = numbers.as_chunks();
    let mut pairs = room(given.len(), "exclusions")?;
    pairs.extend_from_slice(given);
    Ok(pairs)
}

/// Rows and columns of cut-offs that are read: more than the engine takes, so that it is the one to
/// refuse them.
const MAX_CUTOFFS: usize = 2048;

/// A matrix of cut-offs. Read number by number: a sequence may claim any length.
pub(crate) fn cutoffs(object: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f64>>> {
    let row = |given: Bound<'_, PyAny>| -> PyResult<Vec<f64>> {
        let numbers = given.try_iter()?.take(MAX_CUTOFFS);
        numbers.map(|number| number?.extract()).collect()
    };
    let rows = || -> PyResult<Vec<Vec<f64>>> {
        let rows = object.try_iter()?.take(MAX_CUTOFFS);
        rows.map(|given| row(given?)).collect()
    };
    rows().map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(object.py()) {
            return error;
        }
        PyTypeError::new_err("cutoffs must be a square matrix of numbers, one row for each type")
    })
}

/// How many of the nearest are kept.
pub(crate) fn nearest(k: i64) -> PyResult<u32> {
    u32::try_from(k).map_err(|_| {
        PyValueError::new_err(format!(
            "k is {k}: it must be at least 1 and at most {}",
            u32::MAX
        ))
    })
}
