//! Many systems of points at once, and pairs with their geometry by one call.

use crate::{
    call::{detached_or, read, write},
    domain::Domain,
    errors::raise,
    kept::{FindPairs, Kept, Key},
    lists::{room, whole_numbers},
    pairs::{Index, Wanted},
    points::{Points, Room, Rows},
    recycled,
};
use nearfield::{
    Engine, Error, PointSetId, Precision,
    lists::PairGeometry,
    systems::{PairColumns, PairIndex, SystemPairs, SystemReal, Systems},
};
use numpy::{Element, PyArrayDyn, PyUntypedArray, PyUntypedArrayMethods, prelude::*};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};
use std::sync::RwLock;

/// Searches many systems at once, again and again: molecules or crystals, each with a cell of its
/// own and without pairs between them.
///
/// device: "cpu", "gpu" or "gpu:1"; "auto" and "hybrid" are the CPU here. half: every pair once,
/// i < j, or i = j through an image that is lexicographically positive. sorted: pairs of a point in
/// the order of (neighbour, image); those of a GPU always are. threads: 0 for one per core.
///
/// Errors are those of Engine, and name the system. A GPU refuses systems of more than 32,768
/// points.
#[pyclass(name = "SystemSearch", module = "nearfield", frozen)]
pub(crate) struct PySystemSearch(RwLock<Kept>);

#[pymethods]
impl PySystemSearch {
    #[new]
    #[pyo3(signature = (*, device="auto", half=false, sorted=false, threads=0))]
    fn new(device: &str, half: bool, sorted: bool, threads: usize) -> PyResult<Self> {
        let key = Key::of(device, half, sorted, threads)?;
        Ok(Self(RwLock::new(Kept::start(key)?)))
    }

    /// The pairs of all systems within a radius: a tuple with an array for every letter of
    /// quantities, in the order of the letters, as edges() describes them.
    ///
    /// points: an array of shape (n, 3), system after system, float32 (searched in single
    /// precision) or float64 (in double). batch_ptr: the first point of every system, and the
    /// number of points behind the last; shape (systems + 1,). radius: one for all, or of shape
    /// (systems,). cell: vectors as rows, of shape (3, 3) for all or (systems, 3, 3); those of open
    /// axes are not read. pbc: True, False, or one of them for every axis, of shape (3,) or
    /// (systems, 3). strict: pairs exactly as far apart as the radius are not neighbours. Pairs are
    /// in the order of i.
    ///
    /// >>> i, j, D = search.neighbors(positions, 5.0, batch_ptr, cell=cells, pbc=True,
    /// ...                            quantities="ijD")
    #[pyo3(signature = (points, radius, batch_ptr, *, cell=None, pbc=None, quantities=None,
                        strict=false, index="int64"))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        radius: &Bound<'py, PyAny>,
        batch_ptr: &Bound<'py, PyAny>,
        cell: Option<&Bound<'py, PyAny>>,
        pbc: Option<&Bound<'py, PyAny>>,
        quantities: Option<&Bound<'py, PyAny>>,
        strict: bool,
        index: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let points = Points::of(points, "points", None)?;
        let batch = Batch::of(radius, batch_ptr, cell, pbc)?.within(strict);
        let wanted = Wanted::of(quantities, index)?;
        write(&self.0, |kept| batch.search(py, &points, &wanted, kept))
    }

    /// Where searches run, and why there: a dictionary.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        read(&self.0, |kept| {
            let (found, report) = (pyo3::types::PyDict::new(py), kept.search.report());
            found.set_item("requested", report.requested.to_string())?;
            found.set_item("device", report.device.to_string())?;
            found.set_item("reason", report.reason)?;
            found.set_item("gpu", report.gpu)?;
            found.set_item("failed", report.failed)?;
            found.set_item("threads", report.threads)?;
            found.set_item("simd", report.simd.name())?;
            Ok(found)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        read(&self.0, |kept| {
            let device = kept.search.report().device;
            Ok(format!("<nearfield.SystemSearch on {device}>"))
        })
    }
}

/// Pairs of two sets of an engine of this precision, with what is wanted of them.
pub(crate) fn geometry<'py>(
    py: Python<'py>,
    engine: &Engine,
    [targets, sources]: [PointSetId; 2],
    precision: Precision,
    wanted: &Wanted,
) -> PyResult<Bound<'py, PyTuple>> {
    geometry_by(py, precision, wanted, |found| {
        engine.pair_geometry(targets, sources, found)
    })
}

/// The same of the pairs that `find` writes.
pub(crate) fn geometry_by<'py>(
    py: Python<'py>,
    precision: Precision,
    wanted: &Wanted,
    find: impl FnOnce(&mut PairGeometry) -> Result<(), Error> + Send,
) -> PyResult<Bound<'py, PyTuple>> {
    match (precision, wanted.index) {
        (Precision::Single, Index::Int32) => compact::<f32, i32>(py, wanted, find),
        (Precision::Single, Index::Uint32) => compact::<f32, u32>(py, wanted, find),
        (Precision::Single, Index::Int64) => compact::<f32, i64>(py, wanted, find),
        (Precision::Double, Index::Int32) => compact::<f64, i32>(py, wanted, find),
        (Precision::Double, Index::Uint32) => compact::<f64, u32>(py, wanted, find),
        (Precision::Double, Index::Int64) => compact::<f64, i64>(py, wanted, find),
    }
}

fn compact<'py, T: SystemReal + Element, I: PairIndex + Element + Copy>(
    py: Python<'py>,
    wanted: &Wanted,
    find: impl FnOnce(&mut PairGeometry) -> Result<(), Error> + Send,
) -> PyResult<Bound<'py, PyTuple>> {
    let columns = detached_or(py, || {
        let (mut found, mut pairs) = (PairGeometry::default(), SystemPairs::<T, I>::default());
        find(&mut found).map_err(raise)?;
        let copied = pairs.copy_geometry(&found, wanted.quantities());
        copied.map_err(|error| raise(Error::from(error)))?;
        Ok(PairColumns::from(pairs))
    })?;
    wanted.arrays(py, columns)
}

/// What a call says of its systems, but for their points.
pub(crate) struct Batch {
    offsets: Vec<i64>,
    radii: Vec<f64>,
    /// Three vectors of every system.
    cells: Vec<f64>,
    periodic: Vec<[bool; 3]>,
    strict: bool,
}

impl Batch {
    /// A single system.
    pub(crate) fn one(points: usize, radius: f64, domain: Domain) -> Self {
        let (cell, periodic) = domain.cell();
        Self {
            offsets: vec![0, points as i64],
            radii: vec![radius],
            cells: cell.as_flattened().to_vec(),
            periodic: vec![periodic],
            strict: false,
        }
    }

    /// With `strict`, pairs exactly as far apart as the radius are not neighbours.
    pub(crate) fn within(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    pub(crate) fn of(
        radius: &Bound<'_, PyAny>,
        batch_ptr: &Bound<'_, PyAny>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let periodic = flags(cell.is_some(), pbc)?;
        let cells = cell
            .map(|cell| table(cell, "cell", "float64", 9))
            .transpose()?;
        Ok(Self {
            offsets: whole_numbers(batch_ptr, "batch_ptr", i64::MAX as u64)?,
            radii: table(radius, "radius", "float64", 1)?,
            cells: cells.unwrap_or_default(),
            periodic,
            strict: false,
        })
    }

    /// Searches the systems, and returns the arrays that are wanted.
    pub(crate) fn search<'py>(
        &self,
        py: Python<'py>,
        points: &Points<'_>,
        wanted: &Wanted,
        kept: &mut impl FindPairs,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut room = Room::default();
        let threads = if points.are_many() { kept.threads() } else { 1 };
        match (points.rows(&mut room, threads)?, wanted.index) {
            (Rows::Single(rows), Index::Int32) => self.run::<f32, i32>(py, rows, wanted, kept),
            (Rows::Single(rows), Index::Uint32) => self.run::<f32, u32>(py, rows, wanted, kept),
            (Rows::Single(rows), Index::Int64) => self.run::<f32, i64>(py, rows, wanted, kept),
            (Rows::Double(rows), Index::Int32) => self.run::<f64, i32>(py, rows, wanted, kept),
            (Rows::Double(rows), Index::Uint32) => self.run::<f64, u32>(py, rows, wanted, kept),
            (Rows::Double(rows), Index::Int64) => self.run::<f64, i64>(py, rows, wanted, kept),
        }
    }

    fn run<'py, T: SystemReal + Element, I: PairIndex + Element + Copy>(
        &self,
        py: Python<'py>,
        rows: &[[T; 3]],
        wanted: &Wanted,
        kept: &mut impl FindPairs,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut pairs = kept.take::<T, I>();
        pairs.give_columns(recycled::columns(wanted.quantities(), rows.len()));
        let into = &mut *pairs;
        let columns = detached_or(py, || {
            let systems = Systems::new(rows, &self.offsets, &self.radii);
            let systems = systems.in_cells(self.cells.as_chunks().0.as_chunks().0, &self.periodic);
            let systems = Systems {
                strict: self.strict,
                ..systems
            };
            kept.find(&systems, wanted.quantities(), into)
                .map_err(raise)?;
            Ok(into.take_columns())
        })?;
        let found = columns.offsets.last().copied().unwrap_or_default();
        kept.give(pairs, found as usize);
        wanted.arrays(py, columns)
    }
}

/// The periodicities of systems, which cells do not come without.
pub(crate) fn flags(has_cell: bool, pbc: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<[bool; 3]>> {
    let Some(pbc) = pbc else {
        if has_cell {
            return Err(PyValueError::new_err(
                "cells do not say where they repeat: give pbc= too, True for every axis",
            ));
        }
        return Ok(Vec::new());
    };
    let flags: Vec<bool> = table(pbc, "pbc", "bool", 3)?;
    Ok(match *flags {
        [all] => vec![[all; 3]],
        _ => {
            let mut of_systems = room(flags.len() / 3, "pbc")?;
            of_systems.extend_from_slice(flags.as_chunks().0);
            of_systems
        }
    })
}

/// The numbers of an array that has `each` of them for every system, or those of one for all: a
/// single number, three flags, or nine numbers of a cell.
pub(crate) fn table<T: Element + Copy>(
    given: &Bound<'_, PyAny>,
    what: &str,
    dtype: &str,
    each: usize,
) -> PyResult<Vec<T>> {
    let numpy = given.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (given,))?;
    let untyped = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    let (shape, kind) = (untyped.shape().to_vec(), untyped.dtype().kind());
    let (wanted, fits) = match each {
        1 => ("one number, or the shape (systems,)", shape.len() <= 1),
        3 => (
            "True or False, or the shape (3,) or (systems, 3)",
            matches!(shape[..], [] | [3] | [_, 3]),
        ),
        _ => (
            "the shape (3, 3) or (systems, 3, 3)",
            matches!(shape[..], [3, 3] | [_, 3, 3]),
        ),
    };
    // Flags may be 0 and 1, but lengths are not flags.
    let is_typed = match dtype {
        "bool" => matches!(kind, b'b' | b'i' | b'u'),
        _ => matches!(kind, b'f' | b'i' | b'u'),
    };
    if !(fits && is_typed) {
        return Err(PyValueError::new_err(format!(
            "{what} must have {wanted} and numbers of the kind of {dtype}, not {} of shape {shape:?}",
            untyped.dtype()
        )));
    }
    let array = array.call_method1("astype", (dtype,))?;
    let array = array.call_method1("reshape", (-1,))?;
    let array = array.cast::<PyArrayDyn<T>>().map_err(PyErr::from)?;
    let mut numbers = room(array.len(), what)?;
    numbers.extend_from_slice(array.try_readonly()?.as_slice()?);
    Ok(numbers)
}
