//! The engine.

use crate::{
    call::{detached, detached_or, guarded, read, write},
    chunks::PyListChunks,
    density::density_kernel,
    domain::{Domain, DomainArgs},
    errors::{raise, set_named},
    filters::{self, Targets},
    lists::room,
    neighbors::PyNeighbors,
    out::Out,
    pairs::Wanted,
    points::{OwnRadii, Points, Room, field, values, whole_numbers},
    settings::{Settings, precision_of, rule_named},
    state::{Shared, State},
    systems::geometry,
};
use nearfield::{Engine, NeighborLists, PointSetId, Precision, lists::QueryScratch};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{exceptions::PyValueError, ffi, prelude::*, types::PyTuple};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of handed-out lists that are remembered, to use their memory again once no array refers
/// to them.
const REMEMBERED: usize = 8;

/// Point sets that search each other within a radius.
///
/// radius: in the unit of the coordinates. box: three lengths, 0 where an axis is open, or three
/// vectors (rows) along which the domain repeats, all 0 for an open axis; the others may point
/// anywhere. Points with two coordinates take two lengths, or two vectors of two numbers, and none
/// along z. cell, pbc: a box in the place of that, as ASE keeps it (``cell=atoms.cell,
/// pbc=atoms.pbc``): lengths or vectors, and True, False or one of them for every axis, whether the
/// domain repeats there; a vector that is 0 serves an open axis only. device: "auto", "cpu", "gpu",
/// "gpu:1" or "hybrid". precision: "f32" or "f64" (not with "hybrid"; takes both types of arrays).
/// half: lists hold every pair of a set once: i < j, in the list of i, and of the images of a point
/// itself those with a lexicographically positive image vector; lists between two sets are full.
/// sorted: lists are in ascending order. strict: pairs exactly as far apart as the radius are not
/// neighbours. rule: whose radius decides: "uniform", the engine's for all points; "gather", the
/// target's own, which set_radii() takes; "scatter", the source's; "symmetric", the larger of the
/// two. cutoffs: a square, symmetric matrix of a cut-off for each pair of types of points, none
/// above the radius, 0 for never; set_types() takes the types. k: only the k nearest neighbours of
/// every point, nearest first, at equal distances the smaller index. threads: 0 for one per core.
/// memory_limit: bytes that lists may take.
///
/// Cut-offs, exclusions, chosen targets and k hold for lists, counts, sums and pair_geometry();
/// query() knows only k. "hybrid" and "auto" leave these jobs to the CPU; "hybrid" refuses radii,
/// and a named GPU refuses all of these in "f64".
///
/// Points are an array of shape (n, 3) or (n, 2) of float32 or float64. Whole numbers, nested lists
/// and tensors on the host serve too: whole numbers and lists take the engine's precision.
///
/// Errors name the argument and the numbers: TypeError for arrays of another type and for counts
/// that are not whole, ValueError for shapes, coordinates, masked arrays with masked entries and
/// settings that cannot be used, OverflowError for counts and numbers of sets that are negative or
/// beyond 64 bits, IndexError for a set that is not there, MemoryError where memory is short or
/// memory_limit exceeded, RuntimeError for a device that cannot be used.
///
/// Any number of threads may ask an engine at the same time: query(), count_neighbors(),
/// sph_density(), z_sort(), report(), and neighbors() of lists that were found. While one thread
/// changes it, or finds lists, others meet a RuntimeError, and so does a thread that would change
/// it while others ask. Arrays are copied when a call begins: what other threads write to them
/// later changes nothing.
///
/// Ctrl-C ends a search, count or sum on the CPU within moments by a KeyboardInterrupt. The engine
/// has its last good points then, and lists that were being found are found by the next call.
#[pyclass(name = "Engine", module = "nearfield", frozen)]
pub(crate) struct PyEngine {
    /// Of the engine.
    threads: usize,
    precision: Precision,
    domain: Domain,
    shared: Arc<Shared>,
    held: Mutex<Held>,
}

/// Lists that were handed out. Locked for moments only, in which no other code runs.
#[derive(Default)]
struct Held {
    /// Those that are current, by pair of sets.
    current: Vec<([usize; 2], Py<PyNeighbors>)>,
    /// Earlier ones.
    earlier: Vec<Py<PyNeighbors>>,
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (radius, *, r#box=None, cell=None, pbc=None, device="auto",
                        precision="f32", half=false, sorted=false, strict=false,
                        rule="uniform", cutoffs=None, k=None, threads=0, memory_limit=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        radius: f64,
        r#box: Option<&Bound<'_, PyAny>>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
        device: &str,
        precision: &str,
        half: bool,
        sorted: bool,
        strict: bool,
        rule: &str,
        cutoffs: Option<&Bound<'_, PyAny>>,
        k: Option<i64>,
        threads: usize,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let precision = precision_of(precision)?;
        let domain = DomainArgs { r#box, cell, pbc }.read()?;
        let settings = Settings {
            radius,
            domain,
            device,
            precision,
            half,
            sorted,
            strict,
            rule: rule_named(rule)?,
            cutoffs: cutoffs.map(filters::cutoffs).transpose()?,
            k: k.map(filters::nearest).transpose()?,
            threads,
            memory_limit,
        };
        let state = State {
            engine: guarded(|| settings.build())?,
            flat: HashMap::new(),
            room: Room::default(),
        };
        Ok(Self {
            threads: state.engine.report().threads,
            precision,
            domain,
            shared: Arc::new(Shared::new(state)),
            held: Mutex::default(),
        })
    }

    /// The search radius in the unit of the coordinates; setting it makes all lists out of date.
    #[getter]
    fn radius(&self) -> PyResult<f64> {
        self.ask(|engine| Ok(engine.radius()))
    }

    #[setter]
    fn set_radius(&self, py: Python<'_>, radius: f64) -> PyResult<()> {
        self.change(py, |_| true, |state| state.engine.set_radius(radius))
    }

    /// Adds a set of points, an array of shape (n, 3) or (n, 2) of float32, or of float64 where the
    /// engine's precision is "f64", and returns its number. It searches all sets and is searched by
    /// all, itself included. Points are copied once.
    fn add_points(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = self.given(points, "points")?;
        write(&self.shared.state, |state| {
            self.shared.changed();
            let State { engine, flat, room } = state;
            let positions = points.copied(room, self.threads)?;
            let (added, handled) = detached(py, || engine.add_point_set(positions).map_err(raise));
            let id = added?;
            if let Err(raised) = handled {
                // The caller does not learn its number.
                engine.remove_point_set(id).map_err(raise)?;
                return Err(raised);
            }
            let number = id.number() as usize;
            flat.insert(number, points.are_flat());
            Ok(number)
        })
    }

    /// Gives a set new points, an array as for add_points(), of any number; its lists are out of
    /// date. Refused points leave it as it was.
    fn update(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = self.given(points, "points")?;
        write(&self.shared.state, |state| {
            self.shared.changed();
            let State { engine, flat, room } = state;
            let positions = points.copied(room, self.threads)?;
            let id = set_named(set, |set| engine.point_set(set))?;
            let (updated, handled) = detached(py, || {
                let updated = engine.update(id, positions);
                updated.map_err(raise)
            });
            if updated.is_ok() {
                flat.insert(set, points.are_flat());
            }
            // Also of a failed update, which leaves the set as it was, but perhaps not its lists.
            self.retire(involving(set));
            handled.and(updated)
        })
    }

    /// Gives every point of a set a search radius of its own, an array of shape (n,) of float32, in
    /// an engine of float64 also of float64, positive and at most the engine's radius; the engine's
    /// rule says whose radius decides. Radii stay with the numbers of the points, and
    /// retain_points() keeps them; give them again after an update() to another number of points.
    /// Lists that involve the set are out of date.
    fn set_radii(&self, py: Python<'_>, set: usize, radii: &Bound<'_, PyAny>) -> PyResult<()> {
        let radii = OwnRadii::of(radii, self.threads, self.precision)?;
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.engine.set_radii(id, radii.get())
        })
    }

    /// Gives every point of a set a type, an array of shape (n,) of whole numbers below the number
    /// of rows of the engine's cutoffs. Types stay with the numbers of the points, and
    /// retain_points() keeps them; give them again after an update() to another number of points.
    /// Lists that involve the set are out of date.
    fn set_types(&self, py: Python<'_>, set: usize, types: &Bound<'_, PyAny>) -> PyResult<()> {
        let types = whole_numbers(types, "types", 1)?;
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.engine.set_types(id, &types)
        })
    }

    /// Leaves out pairs of points of a set, an array of shape (m, 2) of their numbers in any order,
    /// such as bonds, in every periodic image. They replace those given before; otherwise as
    /// set_types().
    fn set_exclusions(&self, py: Python<'_>, set: usize, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairs = filters::pairs(pairs)?;
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.engine.exclude_pairs(id, &pairs)
        })
    }

    /// Leaves out pairs of points of the same molecule, and the images of a point itself: an array
    /// of shape (n,) of the molecule of every point. Replaces set_exclusions().
    fn set_molecules(
        &self,
        py: Python<'_>,
        set: usize,
        molecules: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let molecules = whole_numbers(molecules, "molecules", 1)?;
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.engine.set_molecules(id, &molecules)
        })
    }

    /// Leaves out no pair of a set any longer.
    fn clear_exclusions(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.engine.clear_exclusions(id)
        })
    }

    /// Searches for some points of a set only: their numbers in any order, or a mask of shape (n,)
    /// of bool; None for all. The others have empty lists and are found as before. Otherwise as
    /// set_types().
    fn set_targets(
        &self,
        py: Python<'_>,
        set: usize,
        targets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let targets = targets
            .map(|targets| Targets::of(targets, self.threads))
            .transpose()?;
        let id = self.set(set)?;
        self.change(py, involving(set), |state| match &targets {
            None => state.engine.clear_targets(id),
            Some(targets) => targets.give(&mut state.engine, id),
        })
    }

    /// Removes a set, with its points and lists. Its number is refused from then on by IndexError,
    /// and other sets keep theirs.
    fn remove_set(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        let id = self.set(set)?;
        self.change(py, involving(set), |state| {
            state.flat.remove(&set);
            state.engine.remove_point_set(id)
        })
    }

    /// Keeps the points of a set where `keep`, an array of shape (n,) of bool, is true, and removes
    /// all others; returns how many were removed. Points that are kept stay in their order and are
    /// renumbered from 0, as in ``array[keep]``. Lists that involve the set are out of date.
    fn retain_points(
        &self,
        py: Python<'_>,
        set: usize,
        keep: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let keep = values::<bool>(keep, self.threads, "keep")?;
        let (id, points) = (self.set(set)?, self.points(set)?);
        if keep.len() != points {
            return Err(PyValueError::new_err(format!(
                "keep has {} entries, but set {set} has {points} points",
                keep.len()
            )));
        }
        self.change(py, involving(set), |state| {
            let keep = |point: usize| keep.get(point).copied().unwrap_or(true);
            state.engine.retain_points(id, keep)
        })
    }

    /// Number of points of a set.
    fn points(&self, set: usize) -> PyResult<usize> {
        let set = self.set(set)?;
        self.ask(|engine| engine.points(set).map_err(raise))
    }

    /// Number of sets.
    fn __len__(&self) -> PyResult<usize> {
        self.ask(|engine| Ok(engine.point_sets()))
    }

    /// Says whether a set searches in another in find_neighbors(); all do at first.
    fn set_active(&self, targets: usize, sources: usize, active: bool) -> PyResult<()> {
        let sets = [self.set(targets)?, self.set(sources)?];
        // Takes no time, so that other threads need not run meanwhile.
        write(&self.shared.state, |state| {
            let set = state.engine.set_active(sets[0], sets[1], active);
            set.map_err(raise)?;
            self.retire(|pair| pair == [targets, sources] && !active);
            Ok(())
        })
    }

    /// Says whether every set searches in every set, later ones included; set_active() then says
    /// it of single pairs. For many sets that meet few others each, such as the bodies of a scene.
    fn set_all_active(&self, active: bool) -> PyResult<()> {
        write(&self.shared.state, |state| {
            state.engine.set_all_active(active);
            self.retire(|_| !active);
            Ok(())
        })
    }

    /// Reads the setting of set_active() and set_all_active().
    fn is_active(&self, targets: usize, sources: usize) -> PyResult<bool> {
        let sets = [self.set(targets)?, self.set(sources)?];
        self.ask(|engine| engine.is_active(sets[0], sets[1]).map_err(raise))
    }

    /// Writes the lists of every active pair of sets. neighbors() does so where it is needed.
    fn find_neighbors(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |_| true, |state| state.engine.find_neighbors())
    }

    /// The neighbours of every point of one set in another, by default in the set itself, found now
    /// if they were not yet. RuntimeError where the one does not search in the other
    /// (set_active()).
    #[pyo3(signature = (targets=0, sources=None))]
    fn neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<Py<PyNeighbors>> {
        let sources = sources.unwrap_or(targets);
        if let Some(lists) = self.current(py, [targets, sources]) {
            return Ok(lists);
        }
        let spare = self.reclaim(py);
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        write(&self.shared.state, |state| {
            if let Some(lists) = self.current(py, [targets, sources]) {
                return Ok(lists);
            }
            let engine = &mut state.engine;
            let lists = detached_or(py, || {
                if engine.neighbors(t, s).is_err() && engine.is_active(t, s).map_err(raise)? {
                    engine.find_neighbors().map_err(raise)?;
                }
                engine.take_neighbors(t, s, spare).map_err(raise)
            })?;
            let lists = Py::new(py, PyNeighbors { lists })?;
            let held = ([targets, sources], lists.clone_ref(py));
            self.held().current.push(held);
            Ok(lists)
        })
    }

    /// All pairs of points of one set with neighbours in another, by default in the set itself,
    /// with their geometry: a tuple with an array for every letter of quantities, in the order of
    /// the letters, as edges() describes them; "i" and "j" are numbers of points in their sets.
    /// They are found anew by every call. Pairs are in the order of i, those of a point in the
    /// order of lists.
    ///
    /// >>> i, j, D = engine.pair_geometry("ijD")
    #[pyo3(signature = (quantities=None, targets=0, sources=None, *, index="int64"))]
    fn pair_geometry<'py>(
        &self,
        py: Python<'py>,
        quantities: Option<&Bound<'py, PyAny>>,
        targets: usize,
        sources: Option<usize>,
        index: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let wanted = Wanted::of(quantities, index)?;
        let sets = [self.set(targets)?, self.set(sources.unwrap_or(targets))?];
        read(&self.shared.state, |state| {
            geometry(py, &state.engine, sets, self.precision, &wanted)
        })
    }

    /// The neighbours in a set of positions that are not points, an array as for add_points(); one
    /// list per position. radii: one per position, as for set_radii(), by the rules "gather" and
    /// "symmetric" and no others.
    #[pyo3(signature = (positions, sources=0, *, radii=None))]
    fn query(
        &self,
        py: Python<'_>,
        positions: &Bound<'_, PyAny>,
        sources: usize,
        radii: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyNeighbors> {
        let points = self.given(positions, "positions")?;
        let mut room = Room::default();
        let positions = points.copied(&mut room, self.threads)?;
        let radii = radii
            .map(|radii| OwnRadii::of(radii, self.threads, self.precision))
            .transpose()?;
        let sources = self.set(sources)?;
        let lists = self.work(py, |engine| {
            let mut scratch = QueryScratch::default();
            let radii = radii.as_ref().map(OwnRadii::get);
            let found = engine.query_into(positions, radii, sources, &mut scratch);
            found.map_err(raise)?;
            Ok(scratch.into_lists())
        })?;
        Ok(PyNeighbors { lists })
    }

    /// The neighbours of some points of one set in another, by default in the set itself: their
    /// numbers in any order; list k is that of points[k]. Lists are full. All of the engine's
    /// filters hold, but set_targets() does not matter. For most points of a set neighbors() is
    /// faster.
    ///
    /// >>> near = engine.neighbors_of([3, 7])
    #[pyo3(signature = (points, targets=0, sources=None))]
    fn neighbors_of(
        &self,
        py: Python<'_>,
        points: &Bound<'_, PyAny>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyNeighbors> {
        let points = whole_numbers(points, "points", 1)?;
        let (t, s) = (self.set(targets)?, self.set(sources.unwrap_or(targets))?);
        let lists = self.work(py, |engine| {
            engine.neighbors_of(t, s, &points).map_err(raise)
        })?;
        Ok(PyNeighbors { lists })
    }

    /// The lists of neighbors() in chunks of at most `memory` bytes, by default memory_limit, for
    /// sets whose lists do not fit into memory: an iterator of the numbers of some points, shape
    /// (n,), uint32, and their Neighbors; list k of these is that of points[k]. Every point comes
    /// once, near each other in space. Neighbours are counted first; nothing is kept in the engine.
    /// RuntimeError if the engine is changed meanwhile.
    ///
    /// >>> for points, lists in engine.chunks(memory=1 << 30):
    /// ...     numpy.save(name(points), lists.csr()[1])
    #[pyo3(signature = (targets=0, sources=None, *, memory=None))]
    fn chunks(
        this: &Bound<'_, Self>,
        targets: usize,
        sources: Option<usize>,
        memory: Option<u64>,
    ) -> PyResult<PyListChunks> {
        let engine = this.get();
        let sources = sources.unwrap_or(targets);
        let sets = [engine.set(targets)?, engine.set(sources)?];
        PyListChunks::begin(this.py(), engine.shared.clone(), sets, memory)
    }

    /// Number of neighbours of every point of one set in another, by default in the set itself,
    /// without lists; shape (n,), uint32: convert by ``astype(int)`` before you subtract.
    ///
    /// out: an array of that shape and type to write instead of a new one, which is then returned.
    #[pyo3(signature = (targets=0, sources=None, *, out=None))]
    fn count_neighbors<'py>(
        &self,
        py: Python<'py>,
        targets: usize,
        sources: Option<usize>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let sources = sources.unwrap_or(targets);
        let out = Out::of::<u32>(out, self.points(targets)?)?;
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        let counts = self.work(py, |engine| engine.count_neighbors(t, s).map_err(raise))?;
        out.take(py, counts)
    }

    /// Mass density of every point of one set by the neighbours in another, by default in the set
    /// itself, its own mass left out: the sum of m W(d) with the C2 kernel of Wendland (1995);
    /// shape (n,), float32, in mass per volume, or per area in two dimensions.
    ///
    /// The kernel computes in single precision, also in an engine of precision "f64": there pairs
    /// are decided in double, then distances and masses are rounded to float32.
    ///
    /// mass: one per source, shape (m,), float32, or float64 where the engine's precision is "f64".
    /// support: of the kernel, the radius by default, which it may not exceed. dimensions: 2 or 3,
    /// which the kernel is normalised for; by default 2 where both sets were given as arrays of
    /// shape (n, 2), and 3 where neither was; ValueError where one was. out: an array of the shape
    /// and type of the result to write instead of a new one, which is then returned.
    #[pyo3(signature = (mass, targets=0, sources=None, *, support=None, dimensions=None, out=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn sph_density<'py>(
        &self,
        py: Python<'py>,
        mass: &Bound<'py, PyAny>,
        targets: usize,
        sources: Option<usize>,
        support: Option<f64>,
        dimensions: Option<u32>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let sources = sources.unwrap_or(targets);
        let out = Out::of::<f32>(out, self.points(targets)?)?;
        let support = match support {
            Some(support) => support,
            None => self.ask(|engine| Ok(engine.radius()))?,
        };
        let flat = read(&self.shared.state, |state| {
            let flat = |set: usize| state.flat.get(&set).copied().unwrap_or_default();
            Ok([targets, sources].map(flat))
        })?;
        let kernel = density_kernel(support, dimensions, flat)?;
        let mass = field(mass, self.threads, "mass", self.precision)?;
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        let density = self.work(py, |engine| {
            let fields = &mass;
            let traversal = engine.traverse(&kernel, t, s);
            traversal.sources(fields).run().map_err(raise)
        })?;
        out.take(py, density)
    }

    /// The order that makes a set local in memory, shape (n,), int64: use ``array[order]`` for all
    /// arrays of the set, and update it, every few dozen steps.
    #[pyo3(signature = (set=0))]
    fn z_sort<'py>(&self, py: Python<'py>, set: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let set = self.set(set)?;
        let order = self.work(py, |engine| {
            let order = engine.z_sort(set).map_err(raise)?;
            let mut indices = room(order.order().len(), "the order of points")?;
            indices.extend(order.order().iter().copied().map(i64::from));
            Ok(indices)
        })?;
        Ok(order.into_pyarray(py))
    }

    /// Makes ready now what later steps would otherwise make when they first need it, for the jobs
    /// that the engine has done so far: the GPU of device "auto", compiled programs, and
    /// page-locked memory. Returns when all of it is there. Before any job it is the lists of all
    /// active pairs of sets. Results are dropped, and lists that are current stay. Without a GPU
    /// there is nothing to make ready.
    fn warm_up(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |_| false, |state| state.engine.warm_up())
    }

    /// The report of the last step: the device and the reason for it, milliseconds of each stage,
    /// pairs, bytes.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.ask(|engine| Ok(engine.report().to_json()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __repr__(&self) -> PyResult<String> {
        self.ask(|engine| {
            let sets = match engine.point_sets() {
                1 => "1 set".to_owned(),
                sets => format!("{sets} sets"),
            };
            let radius = engine.radius();
            Ok(format!("<nearfield.Engine of {sets}, radius {radius}>"))
        })
    }
}

impl PyEngine {
    /// Points that suit the engine, by the name of the argument.
    fn given<'py>(&self, points: &Bound<'py, PyAny>, what: &'static str) -> PyResult<Points<'py>> {
        let points = Points::of(points, what, Some(self.precision))?;
        self.domain.suits(points.are_flat())?;
        Ok(points)
    }

    /// The set with this number.
    fn set(&self, number: usize) -> PyResult<PointSetId> {
        self.ask(|engine| set_named(number, |number| engine.point_set(number)))
    }

    /// Asks something that takes no time.
    fn ask<T>(&self, ask: impl FnOnce(&Engine) -> PyResult<T>) -> PyResult<T> {
        read(&self.shared.state, |state| ask(&state.engine))
    }

    /// Runs work that changes nothing, possibly at the same time as other threads.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Engine) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        read(&self.shared.state, |state| {
            let engine = &state.engine;
            detached_or(py, || work(engine))
        })
    }

    /// Does work that changes the engine, after which lists of these pairs are current no longer,
    /// whatever becomes of it.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        which: impl Fn([usize; 2]) -> bool,
        work: impl FnOnce(&mut State) -> Result<T, nearfield::Error> + Send,
    ) -> PyResult<T> {
        write(&self.shared.state, |state| {
            self.shared.changed();
            let (done, handled) = detached(py, || work(state).map_err(raise));
            self.retire(which);
            handled.and(done)
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists of a pair that were handed out and are current.
    fn current(&self, py: Python<'_>, of: [usize; 2]) -> Option<Py<PyNeighbors>> {
        let held = self.held();
        let found = held.current.iter().find(|(pair, _)| *pair == of);
        found.map(|(_, lists)| lists.clone_ref(py))
    }

    /// Lists of these pairs are current no longer.
    fn retire(&self, which: impl Fn([usize; 2]) -> bool) {
        let mut held = self.held();
        let Held { current, earlier } = &mut *held;
        let (old, kept): (Vec<_>, Vec<_>) = std::mem::take(current)
            .into_iter()
            .partition(|(pair, _)| which(*pair));
        *current = kept;
        earlier.extend(old.into_iter().map(|(_, lists)| lists));
        let forgotten = earlier.len().saturating_sub(REMEMBERED);
        let forgotten: Vec<_> = earlier.drain(..forgotten).collect();
        // Their memory is freed after all locks are released.
        drop(held);
        drop(forgotten);
    }

    /// The memory of lists that only this engine refers to.
    fn reclaim(&self, py: Python<'_>) -> NeighborLists {
        // SAFETY: it is a live object, and this thread is attached to Python.
        let referred = |lists: &Py<PyNeighbors>| unsafe { ffi::Py_REFCNT(lists.as_ptr()) };
        let mut held = self.held();
        let free = (held.earlier.iter()).position(|lists| referred(lists) == 1);
        let free = free.map(|free| held.earlier.swap_remove(free));
        drop(held);
        let Some(lists) = free else {
            return NeighborLists::default();
        };
        match lists.try_borrow_mut(py) {
            Ok(mut lists) => std::mem::take(&mut lists.lists),
            Err(_) => NeighborLists::default(),
        }
    }
}

/// Tells whether a set is the targets or the sources of a pair.
pub(crate) fn involving(set: usize) -> impl Fn([usize; 2]) -> bool {
    move |pair| pair.contains(&set)
}
