//! Lists with a skin.

use crate::{
    call::{detached, detached_or, guarded, read, write},
    domain::{Domain, DomainArgs},
    errors::{raise, set_named},
    neighbors::PyNeighbors,
    pairs::Wanted,
    points::{Points, Room},
    settings::{Settings, precision_of},
    systems::geometry_by,
};
use nearfield::{
    NeighborLists, PointSetId, Precision, RadiusRule,
    lists::{Csr, PairGeometry, Refresh, VerletLists},
};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::RwLock;

/// Neighbour lists with a skin: found within radius + skin, kept while points move little, and
/// found anew when a pair within the radius could be missing. For arrays of the host.
///
/// >>> lists = nearfield.VerletLists(2.5, 0.3, box=[10, 10, 10])
/// >>> atoms = lists.add_points(positions)
/// >>> for step in range(1000):
/// ...     lists.update(atoms, positions)
/// ...     i, j, D = lists.pair_geometry("ijD")
///
/// Results are those of an Engine of this radius at the points of the last update(), whatever the
/// skin; it decides only how often lists are built, which `builds` tells, and how long they are:
/// the best width depends on how far points move in a step. Coordinates may be wrapped into the box
/// at any time. A cell that changes needs new lists.
///
/// radius, skin: in the unit of the coordinates. The other settings are those of Engine, and so are
/// errors. On a GPU alone, device="gpu:0", lists are built there, and pairs with their geometry are
/// searched for there at the points of now; "auto" and "hybrid" leave the pairs to the CPU. While
/// one thread changes the lists, others meet a RuntimeError.
#[pyclass(name = "VerletLists", module = "nearfield", frozen)]
pub(crate) struct PyVerletLists {
    /// Of the engine.
    threads: usize,
    precision: Precision,
    domain: Domain,
    state: RwLock<State>,
}

struct State {
    lists: VerletLists,
    /// Where points are copied to.
    room: Room,
}

#[pymethods]
impl PyVerletLists {
    #[new]
    #[pyo3(signature = (radius, skin, *, r#box=None, cell=None, pbc=None, precision="f32",
                        half=false, sorted=false, strict=false, threads=0, memory_limit=None,
                        device="cpu"))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        radius: f64,
        skin: f32,
        r#box: Option<&Bound<'_, PyAny>>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
        precision: &str,
        half: bool,
        sorted: bool,
        strict: bool,
        threads: usize,
        memory_limit: Option<u64>,
        device: &str,
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
            rule: RadiusRule::Uniform,
            cutoffs: None,
            k: None,
            threads,
            memory_limit,
        };
        let lists = guarded(|| VerletLists::new(settings.builder()?, skin).map_err(raise))?;
        Ok(Self {
            threads: lists.report().threads,
            precision,
            domain,
            state: RwLock::new(State {
                lists,
                room: Room::default(),
            }),
        })
    }

    /// The radius within which pairs are found.
    #[getter]
    fn radius(&self) -> PyResult<f64> {
        read(&self.state, |state| Ok(state.lists.radius()))
    }

    /// The radius of the lists: that and the skin.
    #[getter]
    fn list_radius(&self) -> PyResult<f64> {
        read(&self.state, |state| Ok(state.lists.list_radius()))
    }

    /// How often lists were built, the first time included.
    #[getter]
    fn builds(&self) -> PyResult<u64> {
        read(&self.state, |state| Ok(state.lists.builds()))
    }

    /// Adds a set of points, an array as for Engine.add_points(), and returns its number. It
    /// searches all sets and is searched by all, itself included.
    fn add_points(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = self.given(points)?;
        write(&self.state, |state| {
            let State { lists, room } = state;
            let positions = points.copied(room, self.threads)?;
            let (added, handled) = detached(py, || lists.add_point_set(positions).map_err(raise));
            let id = added?;
            if let Err(raised) = handled {
                // The caller does not learn its number.
                lists.remove_point_set(id).map_err(raise)?;
                return Err(raised);
            }
            Ok(id.number() as usize)
        })
    }

    /// Gives a set new points, of any number. Returns True if a pair could now be missing, or their
    /// number is another: refresh() or the next question then builds the lists anew. Refused points
    /// leave the set as it was.
    fn update(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<bool> {
        let points = self.given(points)?;
        write(&self.state, |state| {
            let State { lists, room } = state;
            let id = named(lists, set)?;
            let positions = points.copied(room, self.threads)?;
            let (updated, handled) = detached(py, || lists.update(id, positions).map_err(raise));
            handled.and(updated)?;
            Ok(lists.needs_rebuild())
        })
    }

    /// Builds the lists anew if a pair could be missing; returns whether it did.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        write(&self.state, |state| {
            let lists = &mut state.lists;
            detached_or(py, || {
                Ok(lists.refresh().map_err(raise)? == Refresh::Rebuilt)
            })
        })
    }

    /// The largest displacement of a point of a set since its lists were built, modulo the box;
    /// infinite if the number of points has changed.
    #[pyo3(signature = (set=0))]
    fn displacement(&self, set: usize) -> PyResult<f64> {
        read(&self.state, |state| {
            let id = named(&state.lists, set)?;
            state.lists.displacement(id).map_err(raise)
        })
    }

    /// The neighbours within the radius of every point of one set in another, by default in the set
    /// itself, as Engine.neighbors() finds them, from lists that are built now if need be.
    #[pyo3(signature = (targets=0, sources=None))]
    fn neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyNeighbors> {
        let sets = [targets, sources.unwrap_or(targets)];
        let lists = self.ask(py, sets, |lists, [t, s]| {
            let mut found = PairGeometry::default();
            lists.pair_geometry(t, s, &mut found).map_err(raise)?;
            Ok(found.into_lists())
        })?;
        Ok(PyNeighbors { lists })
    }

    /// All pairs within the radius of points of one set and another, by default the set itself,
    /// with their geometry at the points of now, from lists that are built now if need be:
    /// arrays as Engine.pair_geometry() returns them.
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
        let sets = self.current(py, [targets, sources.unwrap_or(targets)])?;
        read(&self.state, |state| {
            geometry_by(py, self.precision, &wanted, |found| {
                state.lists.pair_geometry(sets[0], sets[1], found)
            })
        })
    }

    /// The lists as they were built, copied: every source within list_radius then, and so every one
    /// within the radius now, and others. They are built now if need be.
    #[pyo3(signature = (targets=0, sources=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyNeighbors> {
        let sets = [targets, sources.unwrap_or(targets)];
        let lists = self.ask(py, sets, |lists, [t, s]| {
            let csr: Csr = (lists.candidates(t, s).map_err(raise)?)
                .to_csr()
                .map_err(|error| raise(error.into()))?;
            NeighborLists::from_csr(csr).map_err(|error| raise(error.into()))
        })?;
        Ok(PyNeighbors { lists })
    }

    /// Says whether a set searches in another; all do at first.
    fn set_active(&self, targets: usize, sources: usize, active: bool) -> PyResult<()> {
        write(&self.state, |state| {
            let lists = &mut state.lists;
            let sets = [named(lists, targets)?, named(lists, sources)?];
            lists.set_active(sets[0], sets[1], active).map_err(raise)
        })
    }

    /// Removes a set, with its points and lists; other sets keep their numbers.
    fn remove_set(&self, set: usize) -> PyResult<()> {
        write(&self.state, |state| {
            let id = named(&state.lists, set)?;
            state.lists.remove_point_set(id).map_err(raise)
        })
    }

    /// Number of points of a set.
    fn points(&self, set: usize) -> PyResult<usize> {
        read(&self.state, |state| {
            let id = named(&state.lists, set)?;
            state.lists.points(id).map_err(raise)
        })
    }

    /// Number of sets.
    fn __len__(&self) -> PyResult<usize> {
        read(&self.state, |state| Ok(state.lists.engine().point_sets()))
    }

    /// The report of the engine of the lists, as Engine.report().
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = read(&self.state, |state| Ok(state.lists.report().to_json()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __repr__(&self) -> PyResult<String> {
        read(&self.state, |state| {
            let (radius, wide) = (state.lists.radius(), state.lists.list_radius());
            Ok(format!(
                "<nearfield.VerletLists, radius {radius}, lists of {wide}>"
            ))
        })
    }
}

/// The set with a number.
fn named(lists: &VerletLists, number: usize) -> PyResult<PointSetId> {
    set_named(number, |number| lists.engine().point_set(number))
}

impl PyVerletLists {
    /// Points that suit the lists.
    fn given<'py>(&self, points: &Bound<'py, PyAny>) -> PyResult<Points<'py>> {
        let points = Points::of(points, "points", Some(self.precision))?;
        self.domain.suits(points.are_flat())?;
        Ok(points)
    }

    /// Builds the lists if need be; returns the names of two sets.
    fn current(&self, py: Python<'_>, sets: [usize; 2]) -> PyResult<[PointSetId; 2]> {
        let (sets, stale) = read(&self.state, |state| {
            let lists = &state.lists;
            let names = [named(lists, sets[0])?, named(lists, sets[1])?];
            Ok((names, lists.needs_rebuild()))
        })?;
        if stale {
            self.refresh(py)?;
        }
        Ok(sets)
    }

    /// Asks lists that are up to date something that changes nothing.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        sets: [usize; 2],
        ask: impl FnOnce(&VerletLists, [PointSetId; 2]) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let sets = self.current(py, sets)?;
        read(&self.state, |state| {
            let lists = &state.lists;
            detached_or(py, || ask(lists, sets))
        })
    }
}
