//! The engine, and the one call that makes, asks and drops one.

use crate::{errors::raise, neighbors::PyNeighbors, points::Points, settings::Settings};
use nearfield::{
    Dimensions, Engine, Field, NeighborLists, PointSetId, Precision, SphDensity, WendlandC2,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::{exceptions::PyValueError, ffi, prelude::*};

/// Lists handed out that are remembered, to use their memory again once nobody refers to them.
const REMEMBERED: usize = 8;

/// Point sets that search each other within a radius.
///
/// radius: in the unit of the coordinates. box: three lengths, 0 where an axis is open, or three
/// vectors (rows) along which the domain repeats. device: "auto", "cpu", "gpu", "gpu:1" or "hybrid".
/// precision: "f32" or "f64" (on the CPU, takes both types of arrays). half: lists hold every pair of
/// a set once. sorted: lists are in ascending order. strict: pairs exactly as far apart as the radius
/// are no neighbours. threads: 0 for one per core. memory_limit: bytes that lists may take.
///
/// An engine may be used from one thread at a time; another meets a RuntimeError.
#[pyclass(name = "Engine", module = "nearfield")]
pub(crate) struct PyEngine {
    engine: Engine,
    /// By set, whether its points were given with two coordinates.
    flat: Vec<bool>,
    /// Current lists that were handed out, by pair of sets.
    current: Vec<((usize, usize), Py<PyNeighbors>)>,
    /// Earlier ones.
    earlier: Vec<Py<PyNeighbors>>,
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (radius, *, r#box=None, device="auto", precision="f32", half=false,
                        sorted=false, strict=false, threads=0, memory_limit=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        radius: f64,
        r#box: Option<&Bound<'_, PyAny>>,
        device: &str,
        precision: &str,
        half: bool,
        sorted: bool,
        strict: bool,
        threads: usize,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let precision = match precision {
            "f32" => Precision::Single,
            "f64" => Precision::Double,
            other => {
                return Err(PyValueError::new_err(format!(
                    "precision is \"f32\" or \"f64\", not {other:?}"
                )));
            }
        };
        let settings = Settings {
            radius,
            domain: r#box,
            device,
            precision,
            half,
            sorted,
            strict,
            threads,
            memory_limit,
        };
        Ok(Self {
            engine: settings.build()?,
            flat: Vec::new(),
            current: Vec::new(),
            earlier: Vec::new(),
        })
    }

    /// The search radius; setting it makes all lists out of date.
    #[getter]
    fn radius(&self) -> f64 {
        self.engine.radius_f64()
    }

    #[setter]
    fn set_radius(&mut self, radius: f64) -> PyResult<()> {
        let changed = match self.engine.precision() {
            Precision::Single => self.engine.set_radius(radius as f32),
            Precision::Double => self.engine.set_radius_f64(radius),
        };
        self.retire(|_| true);
        changed.map_err(raise)
    }

    /// Adds a set of points, an array of shape (n, 3) or (n, 2) of float32 or float64, and returns its
    /// number. It searches all sets and is searched by all, itself included. Points are copied once.
    fn add_points(&mut self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = Points::of(points)?;
        let (positions, engine) = (points.positions()?, &mut self.engine);
        let id = py
            .detach(|| engine.add_point_set(positions))
            .map_err(raise)?;
        self.flat.push(points.are_flat());
        Ok(id.index())
    }

    /// Gives a set new points, of any number; refused points leave it as it was.
    fn update(&mut self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = Points::of(points)?;
        let (positions, engine) = (points.positions()?, &mut self.engine);
        py.detach(|| engine.update(PointSetId::new(set), positions))
            .map_err(raise)?;
        self.flat[set] = points.are_flat();
        self.retire(|(targets, sources)| targets == set || sources == set);
        Ok(())
    }

    /// Number of points of a set.
    fn points(&self, set: usize) -> PyResult<usize> {
        self.engine.points(PointSetId::new(set)).map_err(raise)
    }

    /// Number of sets.
    fn __len__(&self) -> usize {
        self.engine.point_sets()
    }

    /// Whether a set searches in another in find_neighbors(); all do at first.
    fn set_active(&mut self, targets: usize, sources: usize, active: bool) -> PyResult<()> {
        let sets = [targets, sources].map(PointSetId::new);
        self.engine
            .set_active(sets[0], sets[1], active)
            .map_err(raise)?;
        self.retire(|pair| pair == (targets, sources) && !active);
        Ok(())
    }

    /// Asks what set_active() sets.
    fn is_active(&self, targets: usize, sources: usize) -> PyResult<bool> {
        let sets = [targets, sources].map(PointSetId::new);
        self.engine.is_active(sets[0], sets[1]).map_err(raise)
    }

    /// Writes the lists of every active pair of sets. neighbors() does so where it is needed.
    fn find_neighbors(&mut self, py: Python<'_>) -> PyResult<()> {
        self.retire(|_| true);
        let engine = &mut self.engine;
        py.detach(|| engine.find_neighbors()).map_err(raise)
    }

    /// The neighbours of every point of one set in another, found now if they were not yet.
    #[pyo3(signature = (targets=0, sources=0))]
    fn neighbors(
        &mut self,
        py: Python<'_>,
        targets: usize,
        sources: usize,
    ) -> PyResult<Py<PyNeighbors>> {
        let held = self
            .current
            .iter()
            .find(|(pair, _)| *pair == (targets, sources));
        if let Some((_, lists)) = held {
            return Ok(lists.clone_ref(py));
        }
        let spare = self.reclaim(py);
        let (t, s) = (PointSetId::new(targets), PointSetId::new(sources));
        let engine = &mut self.engine;
        let lists = py.detach(|| {
            if engine.neighbors(t, s).is_err() && engine.is_active(t, s)? {
                engine.find_neighbors()?;
            }
            engine.take_neighbors(t, s, spare)
        });
        let lists = lists.map_err(raise)?;
        let lists = Py::new(py, PyNeighbors { lists })?;
        self.current.push(((targets, sources), lists.clone_ref(py)));
        Ok(lists)
    }

    /// The neighbours in a set of positions that are no points, an array of shape (n, 3) or (n, 2).
    #[pyo3(signature = (positions, sources=0))]
    fn query(
        &mut self,
        py: Python<'_>,
        positions: &Bound<'_, PyAny>,
        sources: usize,
    ) -> PyResult<PyNeighbors> {
        let points = Points::of(positions)?;
        let (positions, engine) = (points.positions()?, &mut self.engine);
        let lists = py.detach(|| engine.query(positions, PointSetId::new(sources)));
        Ok(PyNeighbors {
            lists: lists.map_err(raise)?,
        })
    }

    /// Number of neighbours of every point of one set in another, without lists; shape (n,), uint32.
    #[pyo3(signature = (targets=0, sources=0))]
    fn count_neighbors<'py>(
        &self,
        py: Python<'py>,
        targets: usize,
        sources: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (t, s) = (PointSetId::new(targets), PointSetId::new(sources));
        let counts = py
            .detach(|| self.engine.count_neighbors(t, s))
            .map_err(raise)?;
        Ok(counts.into_pyarray(py))
    }

    /// Mass density of every point of one set by the neighbours in another, its own mass left out:
    /// the sum of m W(d) with the C2 kernel of Wendland (1995); shape (n,), float32.
    ///
    /// mass: one per source, shape (m,), float32. support: of the kernel, the radius by default, which
    /// it may not exceed. dimensions: 2 or 3, which the kernel is normalised for; by default 2 where
    /// both sets were given as arrays of shape (n, 2), and 3 where neither was.
    #[pyo3(signature = (mass, targets=0, sources=0, *, support=None, dimensions=None))]
    fn sph_density<'py>(
        &self,
        py: Python<'py>,
        mass: PyReadonlyArray1<'py, f32>,
        targets: usize,
        sources: usize,
        support: Option<f32>,
        dimensions: Option<u32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let support = support.unwrap_or_else(|| self.engine.radius());
        if !(support.is_finite() && support > 0.0) {
            return Err(PyValueError::new_err(format!(
                "the support is {support}: it must be finite and positive"
            )));
        }
        let flat = [targets, sources].map(|set| self.flat.get(set).copied().unwrap_or_default());
        let kernel = SphDensity {
            kernel: WendlandC2::with_support(support)
                .in_dimensions(normalised_for(dimensions, flat)?),
        };
        let mass = mass.as_slice().map_err(|_| {
            PyValueError::new_err("mass must lie side by side in memory: use ascontiguousarray")
        })?;
        let (t, s) = (PointSetId::new(targets), PointSetId::new(sources));
        let density = py.detach(|| {
            let fields = [Field::from(mass)];
            self.engine
                .traverse(&kernel, t, s)
                .source_fields(&fields)
                .run()
        });
        Ok(density.map_err(raise)?.into_pyarray(py))
    }

    /// The order that makes a set local in memory, shape (n,), uint32: use ``array[order]`` for all
    /// arrays of the set, and update it, every few dozen steps.
    #[pyo3(signature = (set=0))]
    fn z_sort<'py>(&self, py: Python<'py>, set: usize) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let order = self.engine.z_sort(PointSetId::new(set)).map_err(raise)?;
        Ok(PyArray1::from_slice(py, order.order()))
    }

    /// What the engine did last: the device and why, milliseconds of each stage, pairs, bytes.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?
            .call_method1("loads", (self.engine.report().to_json(),))
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearfield.Engine of {} sets, radius {}>",
            self.engine.point_sets(),
            self.engine.radius_f64()
        )
    }
}

impl PyEngine {
    /// Lists of these pairs are current no longer.
    fn retire(&mut self, which: impl Fn((usize, usize)) -> bool) {
        let held = std::mem::take(&mut self.current);
        let (old, held): (Vec<_>, Vec<_>) = held.into_iter().partition(|(pair, _)| which(*pair));
        self.current = held;
        self.earlier.extend(old.into_iter().map(|(_, lists)| lists));
        let forgotten = self.earlier.len().saturating_sub(REMEMBERED);
        self.earlier.drain(..forgotten);
    }

    /// The memory of lists that nobody but this engine refers to any longer.
    fn reclaim(&mut self, py: Python<'_>) -> NeighborLists {
        // SAFETY: it is a live object, and this thread is attached to Python.
        let referred = |lists: &Py<PyNeighbors>| unsafe { ffi::Py_REFCNT(lists.as_ptr()) };
        let free = self.earlier.iter().position(|lists| referred(lists) == 1);
        let Some(free) = free else {
            return NeighborLists::default();
        };
        let lists = self.earlier.swap_remove(free);
        let mut lists = lists.borrow_mut(py);
        std::mem::take(&mut lists.lists)
    }
}

/// The dimensions asked for, or those of two sets that were given with two coordinates, or with three.
pub(crate) fn normalised_for(asked: Option<u32>, flat: [bool; 2]) -> PyResult<Dimensions> {
    match (asked, flat) {
        (Some(2), _) | (None, [true, true]) => Ok(Dimensions::Two),
        (Some(3), _) | (None, [false, false]) => Ok(Dimensions::Three),
        (Some(other), _) => Err(PyValueError::new_err(format!(
            "dimensions is 2 or 3, not {other}"
        ))),
        (None, _) => Err(PyValueError::new_err(
            "one set has points of two coordinates and the other of three: say dimensions=2 or \
             dimensions=3, which the kernel is to be normalised for",
        )),
    }
}

/// The neighbours of every point within a radius.
///
/// points: an array of shape (n, 3) or (n, 2) of float32 (searched in single precision) or float64
/// (in double). radius: in the unit of the coordinates. box: three lengths, 0 where an axis is open,
/// or three vectors (rows) along which the domain repeats. device: "auto", "cpu", "gpu" or "hybrid".
/// half: every pair once. sorted: lists in ascending order. strict: pairs exactly as far apart as the
/// radius are no neighbours. threads: 0 for one per core.
#[pyfunction]
#[pyo3(signature = (points, radius, r#box=None, device="auto", *, half=false, sorted=false,
                    strict=false, threads=0))]
#[allow(clippy::too_many_arguments)] // they are Python's keywords
pub(crate) fn neighbors(
    py: Python<'_>,
    points: &Bound<'_, PyAny>,
    radius: f64,
    r#box: Option<&Bound<'_, PyAny>>,
    device: &str,
    half: bool,
    sorted: bool,
    strict: bool,
    threads: usize,
) -> PyResult<PyNeighbors> {
    let points = Points::of(points)?;
    let settings = Settings {
        radius,
        domain: r#box,
        device,
        precision: points.precision(),
        half,
        sorted,
        strict,
        threads,
        memory_limit: None,
    };
    let (mut engine, positions) = (settings.build()?, points.positions()?);
    let lists = py.detach(|| {
        let set = engine.add_point_set(positions)?;
        engine.find_neighbors()?;
        engine.take_neighbors(set, set, NeighborLists::default())
    });
    Ok(PyNeighbors {
        lists: lists.map_err(raise)?,
    })
}
