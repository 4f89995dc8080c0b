//! Many systems of points at once, and pairs with their geometry by one call.

use crate::{
    call::{detached_or, guarded, read, write},
    domain::DomainArgs,
    errors::raise,
    lists::{room, whole_numbers},
    pairs::Wanted,
    points::{Points, Room, Rows},
    settings::{Settings, unreadable},
};
use nearfield::{
    Device, Engine, Error, ListKind, ListOrder, PointSetId, Precision, RadiusRule,
    lists::PairGeometry,
    systems::{PairColumns, PairIndex, SystemPairs, SystemReal, SystemSearch, Systems},
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
pub(crate) struct PySystemSearch(RwLock<SystemSearch>);

#[pymethods]
impl PySystemSearch {
    #[new]
    #[pyo3(signature = (*, device="auto", half=false, sorted=false, threads=0))]
    fn new(device: &str, half: bool, sorted: bool, threads: usize) -> PyResult<Self> {
        Ok(Self(RwLock::new(search(device, half, sorted, threads)?)))
    }

    /// The pairs of all systems within a radius: a tuple with an array for every letter of
    /// quantities, in the order of the letters.
    ///
    /// points: an array of shape (n, 3), system after system, float32 (searched in single
    /// precision) or float64 (in double). batch_ptr: the first point of every system, and the
    /// number of points behind the last; shape (systems + 1,). radius: one for all, or of shape
    /// (systems,). cell: vectors as rows, of shape (3, 3) for all or (systems, 3, 3); those of open
    /// axes are not read. pbc: True, False, or one of them for every axis, of shape (3,) or
    /// (systems, 3).
    ///
    /// quantities: "ijSdD" unless given: "i", the point of every pair, and "j", its neighbour, both
    /// by their place in points and of the type that index says, "int32" or "int64"; "P", both in
    /// an array of shape (pairs, 2); "S", by how many cell vectors the neighbour is moved, shape
    /// (pairs, 3), int32; "D", the displacement ``points[j] - points[i] + S @ cell``, shape
    /// (pairs, 3), and "d", its length, in the precision of the points. Names do as well as
    /// letters: "targets", "sources", "pairs", "images", "displacements", "distances". Pairs are in
    /// the order of i.
    ///
    /// >>> i, j, D = search.neighbors(positions, 5.0, batch_ptr, cell=cells, pbc=True,
    /// ...                            quantities="ijD", index="int64")
    #[pyo3(signature = (points, radius, batch_ptr, *, cell=None, pbc=None, quantities=None,
                        index="int32"))]
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
        index: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let points = Points::of(points, None)?;
        let batch = Batch::of(radius, batch_ptr, cell, pbc)?;
        let wanted = Wanted::of(quantities, index)?;
        write(&self.0, |search| batch.search(py, &points, &wanted, search))
    }

    /// Where searches run, and why there: a dictionary.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        read(&self.0, |search| {
            let (found, report) = (pyo3::types::PyDict::new(py), search.report());
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
        read(&self.0, |search| {
            Ok(format!(
                "<nearfield.SystemSearch on {}>",
                search.report().device
            ))
        })
    }
}

/// All pairs within a radius with their geometry: a tuple with an array for every letter of
/// quantities, in the order of the letters, as SystemSearch.neighbors() describes them.
///
/// points, box, cell, pbc, device, half, sorted, strict, threads: as for neighbors(). With
/// batch_ptr the points are those of many systems, and batch_ptr, radius, cell and pbc are as for
/// SystemSearch.neighbors(), without box and strict.
///
/// >>> i, j, S, d = nearfield.edges(atoms.positions, 5.0, "ijSd", cell=atoms.cell, pbc=atoms.pbc)
#[pyfunction]
#[pyo3(signature = (points, radius, quantities=None, *, batch_ptr=None, r#box=None, cell=None,
                    pbc=None, device="auto", half=false, sorted=false, strict=false,
                    index="int32", threads=0))]
#[allow(clippy::too_many_arguments)] // they are Python's keywords
pub(crate) fn edges<'py>(
    py: Python<'py>,
    points: &Bound<'py, PyAny>,
    radius: &Bound<'py, PyAny>,
    quantities: Option<&Bound<'py, PyAny>>,
    batch_ptr: Option<&Bound<'py, PyAny>>,
    r#box: Option<&Bound<'py, PyAny>>,
    cell: Option<&Bound<'py, PyAny>>,
    pbc: Option<&Bound<'py, PyAny>>,
    device: &str,
    half: bool,
    sorted: bool,
    strict: bool,
    index: &str,
    threads: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let points = Points::of(points, None)?;
    let wanted = Wanted::of(quantities, index)?;
    if let Some(batch_ptr) = batch_ptr {
        if r#box.is_some() || strict {
            return Err(PyValueError::new_err(
                "systems take cell= and pbc=, neither box= nor strict=",
            ));
        }
        let batch = Batch::of(radius, batch_ptr, cell, pbc)?;
        return guarded(|| {
            let mut search = search(device, half, sorted, threads)?;
            batch.search(py, &points, &wanted, &mut search)
        });
    }
    let domain = DomainArgs { r#box, cell, pbc }.read()?;
    domain.suits(points.are_flat())?;
    let settings = Settings {
        radius: radius.extract()?,
        domain,
        device,
        precision: points.precision(),
        half,
        sorted,
        strict,
        rule: RadiusRule::Uniform,
        cutoffs: None,
        k: None,
        threads,
        memory_limit: None,
    };
    guarded(|| {
        let (mut engine, mut room) = (settings.build()?, Room::default());
        let threads = engine.report().threads;
        let positions = points.copied(&mut room, threads)?;
        let set = engine.add_point_set(positions).map_err(raise)?;
        geometry(py, &engine, [set, set], points.precision(), &wanted)
    })
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
    match (precision, wanted.wide) {
        (Precision::Single, false) => compact::<f32, i32>(py, wanted, find),
        (Precision::Single, true) => compact::<f32, i64>(py, wanted, find),
        (Precision::Double, false) => compact::<f64, i32>(py, wanted, find),
        (Precision::Double, true) => compact::<f64, i64>(py, wanted, find),
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

fn search(device: &str, half: bool, sorted: bool, threads: usize) -> PyResult<SystemSearch> {
    let device: Device = device.parse().map_err(unreadable)?;
    let mut builder = SystemSearch::builder().device(device).threads(threads);
    if half {
        builder = builder.lists(ListKind::Half);
    }
    if sorted {
        builder = builder.list_order(ListOrder::Ascending);
    }
    guarded(|| builder.build().map_err(raise))
}

/// What a call says of its systems, but for their points.
struct Batch {
    offsets: Vec<i64>,
    radii: Vec<f64>,
    cells: Vec<f64>,
    periodic: Vec<[bool; 3]>,
}

impl Batch {
    fn of(
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
        })
    }

    /// Searches the systems, and returns the arrays that are wanted.
    fn search<'py>(
        &self,
        py: Python<'py>,
        points: &Points<'_>,
        wanted: &Wanted,
        search: &mut SystemSearch,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut room = Room::default();
        let threads = search.report().threads;
        match (points.rows(&mut room, threads)?, wanted.wide) {
            (Rows::Single(rows), false) => self.run::<f32, i32>(py, rows, wanted, search),
            (Rows::Single(rows), true) => self.run::<f32, i64>(py, rows, wanted, search),
            (Rows::Double(rows), false) => self.run::<f64, i32>(py, rows, wanted, search),
            (Rows::Double(rows), true) => self.run::<f64, i64>(py, rows, wanted, search),
        }
    }

    fn run<'py, T: SystemReal + Element, I: PairIndex + Element + Copy>(
        &self,
        py: Python<'py>,
        rows: &[[T; 3]],
        wanted: &Wanted,
        search: &mut SystemSearch,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let columns = detached_or(py, || {
            let systems = Systems::new(rows, &self.offsets, &self.radii);
            let systems = systems.in_cells(self.cells.as_chunks().0.as_chunks().0, &self.periodic);
            let mut pairs = SystemPairs::<T, I>::default();
            let found = search.neighbors(&systems, wanted.quantities(), &mut pairs);
            found.map_err(raise)?;
            Ok(PairColumns::from(pairs))
        })?;
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
