//! Lists with a skin on a GPU.

use super::{
    function::PairFunction,
    given::{GivenArray, is_on_gpu},
    layout::Dtype,
    settings::DeviceSettings,
    shared::{SharedEngine, on_stream},
    stream::StreamNumber,
};
use crate::{
    call::guarded, domain::DomainArgs, errors::raise, filters, points::whole_numbers,
    settings::precision_of,
};
use nearfield::{
    Error, PointSetId, Precision,
    device::{DeviceVerletLists, PointNumber, PositionNumber, Progress},
    lists::Refresh,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// Neighbour lists with a skin that stay on a GPU: found within radius + skin, kept while points
/// move little, and found anew when a pair within the radius could be missing. For simulations
/// whose arrays are on a GPU.
///
/// >>> lists = nearfield.DeviceVerletLists(2.5, 0.3, box=[10, 10, 10])
/// >>> atoms = lists.add_points(positions)
/// >>> lists.refresh()
/// >>> for step in range(1000):
/// ...     lists.update(atoms, positions)
/// ...     while True:
/// ...         forces = lists.traverse(text, atoms, outputs=3)
/// ...         if lists.finish():
/// ...             break
///
/// Results are those of a DeviceEngine of this radius at the points of the last update(), whatever
/// the skin, but for the last bits of sums; it decides only how often lists are built, which
/// `builds` tells, and how long they are. An update sorts nothing, and how far points have moved is
/// found on the GPU: what is computed over lists that may miss a pair is not valid, as finish()
/// says. Coordinates may be wrapped into the box at any time. A cell that changes needs new lists.
///
/// radius, skin: in the unit of the coordinates. cutoffs: as for Engine; lists are found with
/// larger ones. The other settings, arrays, streams and errors are those of DeviceEngine.
#[pyclass(name = "DeviceVerletLists", module = "nearfield", frozen)]
pub(crate) struct PyDeviceVerletLists {
    shared: Arc<SharedEngine<DeviceVerletLists>>,
    radius: f64,
    list_radius: f64,
    precision: Precision,
}

#[pymethods]
impl PyDeviceVerletLists {
    #[new]
    #[pyo3(signature = (radius, skin, *, r#box=None, cell=None, pbc=None, gpu=0, stream=None,
                        strict=false, cutoffs=None, subdivision=0, within=None, precision="f32",
                        memory_limit=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        py: Python<'_>,
        radius: f64,
        skin: f32,
        r#box: Option<&Bound<'_, PyAny>>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
        gpu: u32,
        stream: Option<i64>,
        strict: bool,
        cutoffs: Option<&Bound<'_, PyAny>>,
        subdivision: u32,
        within: Option<([f32; 3], [f32; 3])>,
        precision: &str,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let settings = DeviceSettings {
            radius,
            precision: precision_of(precision)?,
            domain: DomainArgs { r#box, cell, pbc },
            half: false,
            sorted: false,
            strict,
            rule: "uniform",
            cutoffs,
            k: None,
            subdivision,
            within,
            memory_limit,
        };
        let (radius, precision) = (settings.rounded_radius(), settings.precision);
        let list_radius = match precision {
            Precision::Single => f64::from(radius as f32 + skin),
            Precision::Double => radius + f64::from(skin),
        };
        let stream = StreamNumber::of_engine(stream)?;
        let builder = settings.builder()?;
        let lists =
            || DeviceVerletLists::new(builder, skin, |builder| on_stream(builder, gpu, stream));
        let start = || SharedEngine::start(gpu, stream, lists);
        let shared = guarded(|| py.detach(start))?;
        Ok(Self {
            shared: Arc::new(shared),
            radius,
            list_radius,
            precision,
        })
    }

    /// The radius within which pairs are found.
    #[getter]
    fn radius(&self) -> f64 {
        self.radius
    }

    /// The radius of the lists: that and the skin.
    #[getter]
    fn list_radius(&self) -> f64 {
        self.list_radius
    }

    /// The number of the GPU.
    #[getter]
    fn gpu(&self) -> u32 {
        self.shared.gpu
    }

    /// The stream on which everything is done, as it is passed to the constructor.
    #[getter]
    fn stream(&self) -> i64 {
        self.shared.stream.get()
    }

    /// How often lists were built, the first time included.
    #[getter]
    fn builds(&self) -> PyResult<u64> {
        Ok(self.shared.lock()?.engine.builds())
    }

    /// Adds a set of points, an array as for DeviceEngine.add_points(), and returns its number. It
    /// searches all sets and is searched by all, itself included. Waits for the device.
    fn add_points(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = self.given(points)?;
        let double = self.precision == Precision::Double;
        self.shared.work(py, vec![points], |state, given| {
            let id = if double {
                add::<f64>(&mut state.engine, &given[0])
            } else {
                add::<f32>(&mut state.engine, &given[0])
            };
            Ok(id.map_err(raise)?.number() as usize)
        })
    }

    /// Gives a set new coordinates, which are copied; another number of points are other points, as
    /// for replace(). Does not wait for the device. Lists stay as they are until refresh() or
    /// finish().
    fn update(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = self.given(points)?;
        let double = self.precision == Precision::Double;
        self.change(py, set, vec![points], |lists, set, given| {
            if double {
                let positions = given[0].lend::<f64>(lists.engine().stream());
                lists.update(set, &positions.as_view())
            } else {
                let positions = given[0].lend::<f32>(lists.engine().stream());
                lists.update(set, &positions.as_view())
            }
        })
    }

    /// Gives a set other points, or the same in another order: their lists are built anew.
    fn replace(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = self.given(points)?;
        let double = self.precision == Precision::Double;
        self.change(py, set, vec![points], |lists, set, given| {
            if double {
                let positions = given[0].lend::<f64>(lists.engine().stream());
                lists.replace(set, &positions.as_view())
            } else {
                let positions = given[0].lend::<f32>(lists.engine().stream());
                lists.replace(set, &positions.as_view())
            }
        })
    }

    /// Whether targets search among sources; every pair of sets does by default.
    fn set_active(&self, targets: usize, sources: usize, active: bool) -> PyResult<()> {
        let mut state = self.shared.lock()?;
        let (t, s) = (state.set(targets)?, state.set(sources)?);
        state.engine.set_active(t, s, active).map_err(raise)
    }

    /// Gives every point of a set a type, as DeviceEngine.set_types() does; lists are built anew.
    fn set_types(&self, py: Python<'_>, set: usize, types: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take_numbers(py, set, types, "types")
    }

    /// Leaves out pairs of points of a set, as Engine.set_exclusions() does; lists are built anew.
    fn set_exclusions(&self, py: Python<'_>, set: usize, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairs = filters::pairs(pairs)?;
        self.change(py, set, Vec::new(), move |lists, set, _| {
            lists.exclude_pairs(set, &pairs)
        })
    }

    /// Leaves out pairs of points of the same molecule, as DeviceEngine.set_molecules() does; lists
    /// are built anew.
    fn set_molecules(
        &self,
        py: Python<'_>,
        set: usize,
        molecules: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take_numbers(py, set, molecules, "molecules")
    }

    /// Leaves out no pair of a set any longer.
    fn clear_exclusions(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.change(py, set, Vec::new(), |lists, set, _| {
            lists.clear_exclusions(set)
        })
    }

    /// Builds the lists anew if a pair within the radius could be missing, and returns True if it
    /// did. Waits for the displacements of the last updates.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.work(py, Vec::new(), |state, _| {
            let found = state.engine.refresh().map_err(raise)?;
            if found == Refresh::Rebuilt {
                // What was computed before may have done nothing.
                state
                    .provisional
                    .drain(..)
                    .for_each(|fate| fate.settle(false));
            }
            Ok(found == Refresh::Rebuilt)
        })
    }

    /// Waits for the device. True when everything computed since the last updates is valid; False
    /// when a pair could have been missing: lists have been built anew, so compute it again.
    /// Updates stand.
    fn finish(&self, py: Python<'_>) -> PyResult<bool> {
        let (valid, released) = self.shared.work(py, Vec::new(), |state, _| {
            let found = state.engine.finish();
            let valid = matches!(found, Ok(Progress::Valid));
            for fate in state.provisional.drain(..) {
                fate.settle(valid);
            }
            let released = found.map(|_| state.released());
            Ok((valid, released.map_err(raise)?))
        })?;
        drop(released);
        Ok(valid)
    }

    /// Combines what a function of yours gives for every pair of neighbours of one set in another
    /// within the radius, by default in the set itself, over the lists; arguments and result are
    /// those of DeviceEngine.traverse(). RuntimeError for sets without lists: call refresh().
    #[pyo3(signature = (text, targets=0, sources=None, *, target_field=None, source_field=None,
                        uniforms=Vec::new(), outputs=1, reduce="sum", name="kernel", out=None,
                        add=false))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn traverse(
        &self,
        py: Python<'_>,
        text: String,
        targets: usize,
        sources: Option<usize>,
        target_field: Option<&Bound<'_, PyAny>>,
        source_field: Option<&Bound<'_, PyAny>>,
        uniforms: Vec<f32>,
        outputs: usize,
        reduce: &str,
        name: &str,
        out: Option<&Bound<'_, PyAny>>,
        add: bool,
    ) -> PyResult<Py<PyAny>> {
        let function = PairFunction {
            text,
            name,
            sets: [targets, sources.unwrap_or(targets)],
            fields: [target_field, source_field],
            uniforms,
            outputs,
            reduce,
        };
        (self.shared).traverse(py, function, (out, add), |lists, kernel, [t, s]| {
            lists.traverse_with(kernel, t, s)
        })
    }

    /// The largest displacement of a point of a set since its lists were built, modulo the box;
    /// infinite where points have left the room around where they were. Waits for the last update.
    fn displacement(&self, py: Python<'_>, set: usize) -> PyResult<f64> {
        self.shared.work(py, Vec::new(), |state, _| {
            let set = state.set(set)?;
            state.engine.displacement(set).map_err(raise)
        })
    }

    /// Removes a set, with its points and lists. Its number is refused from then on by IndexError.
    fn remove_set(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.change(py, set, Vec::new(), |lists, set, _| {
            lists.remove_point_set(set)
        })
    }

    /// Number of points of a set.
    fn points(&self, set: usize) -> PyResult<usize> {
        self.shared.points(set)
    }

    /// Number of sets.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.shared.lock()?.engine.engine().point_sets())
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearfield.DeviceVerletLists on GPU {}, radius {}, lists of {}>",
            self.shared.gpu, self.radius, self.list_radius
        )
    }
}

impl PyDeviceVerletLists {
    /// Points in the precision of the lists.
    fn given(&self, points: &Bound<'_, PyAny>) -> PyResult<GivenArray> {
        let points = self.shared.given(points, "points")?;
        points.points(match self.precision {
            Precision::Single => Dtype::F32,
            Precision::Double => Dtype::F64,
        })?;
        Ok(points)
    }

    /// Changes a set by what was given.
    fn change(
        &self,
        py: Python<'_>,
        set: usize,
        given: Vec<GivenArray>,
        change: impl FnOnce(&mut DeviceVerletLists, PointSetId, &[GivenArray]) -> Result<(), Error>
        + Send,
    ) -> PyResult<()> {
        self.shared.work(py, given, |state, given| {
            let set = state.set(set)?;
            change(&mut state.engine, set, given).map_err(raise)
        })
    }

    /// Types or molecules of a set's points, from the host or the GPU.
    fn take_numbers(
        &self,
        py: Python<'_>,
        set: usize,
        given: &Bound<'_, PyAny>,
        what: &'static str,
    ) -> PyResult<()> {
        let types = what == "types";
        if !is_on_gpu(given)? {
            let numbers = whole_numbers(given, what, 1)?;
            return self.change(py, set, Vec::new(), move |lists, set, _| {
                if types {
                    lists.set_types(set, &numbers)
                } else {
                    lists.set_molecules(set, &numbers)
                }
            });
        }
        let numbers = self.shared.given(given, what)?;
        let dtype = numbers.whole_numbers(self.shared.points(set)?)?;
        self.change(py, set, vec![numbers], |lists, set, given| match dtype {
            Dtype::I32 => take::<i32>(lists, set, &given[0], types),
            Dtype::I64 => take::<i64>(lists, set, &given[0], types),
            Dtype::U64 => take::<u64>(lists, set, &given[0], types),
            _ => take::<u32>(lists, set, &given[0], types),
        })
    }
}

/// Adds a set of points in this precision.
fn add<T: PositionNumber>(
    lists: &mut DeviceVerletLists,
    points: &GivenArray,
) -> Result<PointSetId, Error> {
    let positions = points.lend::<T>(lists.engine().stream());
    lists.add_point_set(&positions.as_view())
}

/// Gives a set types, or else molecules.
fn take<T: PointNumber>(
    lists: &mut DeviceVerletLists,
    set: PointSetId,
    given: &GivenArray,
    types: bool,
) -> Result<(), Error> {
    let numbers = given.lend::<T>(lists.engine().stream());
    if types {
        lists.set_types_from_device(set, &numbers.as_view())
    } else {
        lists.set_molecules_from_device(set, &numbers.as_view())
    }
}
