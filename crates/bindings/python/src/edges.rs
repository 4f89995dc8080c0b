//! All pairs within a radius with their geometry, in one call.
//!
//! Arrays of the host come here directly. Those of other libraries and devices go through the
//! Python module `_edges`, which calls back with NumPy arrays or asks the engines of a GPU.

use crate::{
    call::guarded,
    domain::DomainArgs,
    kept::{Kept, Key, with_search},
    one_call::{FilterKeywords, Keywords, OneCall},
    pairs::Wanted,
    points::Points,
    systems::{Batch, geometry},
};
use numpy::PyUntypedArray;
use pyo3::{
    call::PyCallArgs,
    exceptions::PyValueError,
    prelude::*,
    sync::PyOnceLock,
    types::{IntoPyDict, PyDict, PyList, PyTuple},
};

/// All pairs of points within a radius with their geometry: a tuple with an array for every letter
/// of quantities, in the order of the letters.
///
/// quantities: "ijSdD" unless given: "i", the point of every pair, and "j", its neighbour; "P",
/// both in an array of shape (pairs, 2); "S", by how many cell vectors the neighbour is moved,
/// shape (pairs, 3), int32; "D", the displacement ``points[j] - points[i] + S @ cell``, shape
/// (pairs, 3), and "d", its length, in the type of the points, in which pairs are decided. Names do
/// as well as letters: "targets", "sources", "pairs", "images", "displacements", "distances".
/// index: the type of i, j and P, "int64", "int32" or "uint32".
///
/// points: arrays of NumPy, CuPy, PyTorch or JAX, on the host or on a GPU, of shape (n, 3), or
/// (n, 2) in NumPy, of float32 or float64; results are arrays of the same library on the same
/// device. The first call on a GPU starts an engine there, which is kept for calls with the same
/// settings, up to four of them, until free_memory(). Lists of numbers give NumPy arrays. radius,
/// cell, pbc, box, half, strict, radii, rule, types, cutoffs, exclusions, molecules, targets, k,
/// threads: as for neighbors(). device: where arrays of the host are searched, "cpu" unless given,
/// "gpu" or "gpu:1"; arrays of a GPU are searched there. sorted: pairs in the order of (i, j, S);
/// otherwise in the order of i.
///
/// batch_ptr: the first point of every system, and the number of points behind the last, shape
/// (systems + 1,): there are no pairs between systems, and radius, cell and pbc are one for all or
/// one each, of shapes (systems,), (systems, 3, 3) and (systems, 3). batch_idx: the system of every
/// point instead, shape (n,), ascending. Many systems take no box=. With radii, types, cutoffs,
/// exclusions, molecules, targets or k they are searched one after the other, each by an engine;
/// these arguments count the points of all systems. other: another
/// set of points to search in; j is then a point of it. self_pairs: also every point with itself at
/// distance 0. out: arrays to write into, one for every letter, at least as long as there are
/// pairs; returns their parts that were written.
///
/// >>> i, j, S, d = nearfield.edges(atoms.positions, 5.0, "ijSd", cell=atoms.cell, pbc=atoms.pbc)
///
/// Errors and Ctrl-C are those of Engine.
#[pyfunction]
#[pyo3(signature = (points, radius, quantities=None, *, cell=None, pbc=None, r#box=None,
                    batch_ptr=None, batch_idx=None, other=None, radii=None, rule=None, types=None,
                    cutoffs=None, exclusions=None, molecules=None, targets=None, k=None,
                    half=false, sorted=false, strict=false, self_pairs=false, device=None,
                    index="int64", out=None, threads=0))]
#[allow(clippy::too_many_arguments)] // they are Python's keywords
pub(crate) fn edges<'py>(
    py: Python<'py>,
    points: &Bound<'py, PyAny>,
    radius: &Bound<'py, PyAny>,
    quantities: Option<&Bound<'py, PyAny>>,
    cell: Option<&Bound<'py, PyAny>>,
    pbc: Option<&Bound<'py, PyAny>>,
    r#box: Option<&Bound<'py, PyAny>>,
    batch_ptr: Option<&Bound<'py, PyAny>>,
    batch_idx: Option<&Bound<'py, PyAny>>,
    other: Option<&Bound<'py, PyAny>>,
    radii: Option<&Bound<'py, PyAny>>,
    rule: Option<&str>,
    types: Option<&Bound<'py, PyAny>>,
    cutoffs: Option<&Bound<'py, PyAny>>,
    exclusions: Option<&Bound<'py, PyAny>>,
    molecules: Option<&Bound<'py, PyAny>>,
    targets: Option<&Bound<'py, PyAny>>,
    k: Option<i64>,
    half: bool,
    sorted: bool,
    strict: bool,
    self_pairs: bool,
    device: Option<&str>,
    index: &str,
    out: Option<&Bound<'py, PyAny>>,
    threads: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let filters = FilterKeywords {
        radii,
        rule,
        types,
        cutoffs,
        exclusions,
        molecules,
        targets,
        k,
    };
    let is_more = self_pairs || batch_idx.is_some() || out.is_some();
    if is_more || (batch_ptr.is_some() && filters.any().is_some()) || is_foreign(points)? {
        let keywords = [
            ("cell", cell),
            ("pbc", pbc),
            ("box", r#box),
            ("batch_ptr", batch_ptr),
            ("batch_idx", batch_idx),
            ("other", other),
            ("radii", radii),
            ("types", types),
            ("cutoffs", cutoffs),
            ("exclusions", exclusions),
            ("molecules", molecules),
            ("targets", targets),
            ("out", out),
        ];
        let keywords = keywords.into_py_dict(py)?;
        let flags = [half, sorted, strict, self_pairs];
        for (name, given) in ["half", "sorted", "strict", "self_pairs"].iter().zip(flags) {
            keywords.set_item(name, given)?;
        }
        for (name, given) in [("rule", rule), ("device", device), ("index", Some(index))] {
            keywords.set_item(name, given)?;
        }
        (keywords.set_item("k", k)).and_then(|()| keywords.set_item("threads", threads))?;
        return elsewhere(py, (points, radius, quantities), &keywords);
    }
    let given = Host {
        points: Points::of(points, "points", None)?,
        radius,
        wanted: Wanted::of(quantities, index)?,
        other,
        key: Key::of(device.unwrap_or("cpu"), half, sorted, threads)?,
        device: device.unwrap_or("cpu"),
        strict,
    };
    match batch_ptr {
        Some(batch_ptr) => given.systems(py, batch_ptr, [r#box, cell, pbc]),
        None => given.points(py, filters, DomainArgs { r#box, cell, pbc }),
    }
}

/// Hands a call over to the module `_edges`.
fn elsewhere<'py>(
    py: Python<'py>,
    given: impl PyCallArgs<'py>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyTuple>> {
    static EDGES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let call = EDGES.import(py, "nearfield._edges", "edges")?;
    let arrays = call.call(given, Some(keywords))?;
    arrays.cast_into().map_err(PyErr::from)
}

/// Arguments of a call whose arrays are on the host.
struct Host<'a, 'py> {
    points: Points<'py>,
    radius: &'a Bound<'py, PyAny>,
    wanted: Wanted,
    other: Option<&'a Bound<'py, PyAny>>,
    key: Key,
    device: &'a str,
    strict: bool,
}

impl<'a, 'py> Host<'a, 'py> {
    /// Pairs of many systems.
    fn systems(
        self,
        py: Python<'py>,
        batch_ptr: &Bound<'py, PyAny>,
        [r#box, cell, pbc]: [Option<&Bound<'py, PyAny>>; 3],
    ) -> PyResult<Bound<'py, PyTuple>> {
        let refused = (self.other.map(|_| "other")).or(r#box.map(|_| "box"));
        if let Some(name) = refused {
            return Err(PyValueError::new_err(format!(
                "{name}= is for points of one system: many systems take cell=, pbc= and radius, \
                 one for all or one each, and filters"
            )));
        }
        let batch = Batch::of(self.radius, batch_ptr, cell, pbc)?.within(self.strict);
        with_search(self.key, |kept| {
            batch.search(py, &self.points, &self.wanted, kept)
        })
    }

    /// Pairs of points.
    fn points(
        self,
        py: Python<'py>,
        filters: FilterKeywords<'a, 'py>,
        domain: DomainArgs<'a, 'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let Self { points, wanted, .. } = self;
        let radius: f64 = self.radius.extract()?;
        let is_plain = filters.any().is_none() && self.other.is_none() && !points.are_flat();
        if is_plain && on_cpu(self.device) {
            let box_of = domain.read()?;
            box_of.suits(false)?;
            let batch = Batch::one(points.len(), radius, box_of).within(self.strict);
            let search = |kept: &mut Kept| batch.search(py, &points, &wanted, kept);
            match with_search(self.key, search) {
                // An engine says what is wrong with points that are no system.
                Err(refused) if refused.is_instance_of::<PyValueError>(py) => {}
                found => return found,
            }
        }
        let other = self
            .other
            .map(|other| Points::of(other, "other", None))
            .transpose()?;
        let given = Keywords {
            radius,
            domain,
            device: self.device,
            half: self.key.half,
            sorted: self.key.sorted,
            strict: self.strict,
            filters,
            threads: self.key.threads,
        };
        let call = OneCall::of(points, other, given)?;
        guarded(|| {
            let (engine, sets) = call.engine(py)?;
            geometry(py, &engine, sets, call.precision(), &wanted)
        })
    }
}

/// Whether one call stays on the CPU: a GPU would take longer to start.
fn on_cpu(device: &str) -> bool {
    matches!(device, "auto" | "cpu")
}

/// Whether points are an array of another library than NumPy.
fn is_foreign(points: &Bound<'_, PyAny>) -> PyResult<bool> {
    if points.is_instance_of::<PyUntypedArray>() || points.is_instance_of::<PyList>() {
        return Ok(false);
    }
    Ok(points.hasattr("__dlpack__")? || points.hasattr("__cuda_array_interface__")?)
}
