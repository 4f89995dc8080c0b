//! The class `DeviceEngine`: checks arrays and passes them to the engine.

use super::{
    given::GivenArray,
    layout::Dtype,
    neighbors::PyDeviceNeighbors,
    pairs::{PyDevicePairs, quantities},
    results::{Outlet, Results},
    shared::SharedEngine,
    stream::StreamNumber,
};
use crate::{
    call::guarded,
    density::density_kernel,
    domain::{self, Axes},
    engine::involving,
    errors::raise,
    filters,
    points::field,
    settings::{precision_of, rule_named},
};
use nearfield::{
    Error, ListKind, ListOrder, PointSetId, Precision, Reduce,
    device::{DeviceEngine, DeviceField, DeviceKernel, Progress},
    kernels::Cuda,
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use std::{mem, sync::Arc};

/// Point sets that live on a GPU and search each other there; arrays of the GPU in and out.
///
/// radius: in the unit of the coordinates. precision: "f32", or "f64" for points, and the geometry
/// of their pairs, in float64; masses, fields and results are float32. box: three lengths, 0 where
/// an axis is open, or three vectors, as for Engine. cell, pbc: a box in the place of that. gpu:
/// its number, from 0. stream: on which everything is done: 1 or None for the default stream, on
/// which CuPy and PyTorch work unless told otherwise, or the address of a CUstream of the GPU's
/// primary context, which must stay for as long as the engine and its arrays. half: lists hold
/// every pair of a set once, i < j, in the list of i, and of the images of a point itself those
/// with a lexicographically positive image vector. sorted: lists ascend, and pairs of one neighbour
/// by their images. strict, cutoffs, k: as for Engine. rule: as for Engine, in "f32" only.
/// subdivision: cells per radius, 1 to 8; 0 chooses. within: a box ``(low, high)`` that points are
/// expected to stay in.
///
/// An array is anything with ``__dlpack__`` or ``__cuda_array_interface__``, float32 unless said
/// otherwise, contiguous and on this GPU. It is read by work that is only started: where others
/// work on another stream than the engine, it must not be changed before finish().
///
/// Results are provisional until finish() has found them valid:
///
/// >>> fluid = engine.add_points(positions)
/// >>> while True:
/// ...     density = engine.sph_density(mass)
/// ...     if engine.finish():
/// ...         break
///
/// An engine may be used from one thread at a time; another meets a RuntimeError. Without a GPU
/// there is a RuntimeError that says what is missing. Other errors are those of Engine.
#[pyclass(name = "DeviceEngine", module = "nearfield", frozen)]
pub(crate) struct PyDeviceEngine {
    pub(super) shared: Arc<SharedEngine>,
    radius: f64,
    precision: Precision,
}

#[pymethods]
impl PyDeviceEngine {
    #[new]
    #[pyo3(signature = (radius, *, r#box=None, cell=None, pbc=None, gpu=0, stream=None,
                        half=false, sorted=false, strict=false, rule="uniform", cutoffs=None,
                        k=None, subdivision=0, within=None, precision="f32"))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        py: Python<'_>,
        radius: f64,
        r#box: Option<&Bound<'_, PyAny>>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
        gpu: u32,
        stream: Option<i64>,
        half: bool,
        sorted: bool,
        strict: bool,
        rule: &str,
        cutoffs: Option<&Bound<'_, PyAny>>,
        k: Option<i64>,
        subdivision: u32,
        within: Option<([f32; 3], [f32; 3])>,
        precision: &str,
    ) -> PyResult<Self> {
        let precision = precision_of(precision)?;
        let radius = match precision {
            Precision::Single => f64::from(radius as f32),
            Precision::Double => radius,
        };
        let stream = StreamNumber::of_engine(stream)?;
        let mut builder = DeviceEngine::builder(radius).precision(precision);
        builder = builder.subdivision(subdivision);
        let domain = domain::DomainArgs { r#box, cell, pbc }.read()?;
        // Points of a GPU have three coordinates.
        domain.suits(false)?;
        builder = match domain.axes() {
            Axes::Lengths(lengths) => builder.periodic(lengths),
            Axes::Vectors(vectors) => builder.box_vectors(vectors),
        };
        if half {
            builder = builder.lists(ListKind::Half);
        }
        if sorted {
            builder = builder.list_order(ListOrder::Ascending);
        }
        if strict {
            builder = builder.strictly_within();
        }
        builder = builder.radii(rule_named(rule)?);
        if let Some(cutoffs) = cutoffs {
            builder = builder.cutoffs(&filters::cutoffs(cutoffs)?);
        }
        if let Some(k) = k {
            builder = builder.nearest(filters::nearest(k)?);
        }
        if let Some((low, high)) = within {
            if !low.iter().chain(&high).all(|edge| edge.is_finite()) {
                return Err(PyValueError::new_err(
                    "within: the corners of the box must be finite",
                ));
            }
            builder = builder.within(low, high);
        }
        let shared = guarded(|| py.detach(|| SharedEngine::start(builder, gpu, stream)))?;
        Ok(Self {
            shared: Arc::new(shared),
            radius,
            precision,
        })
    }

    /// The search radius, in the unit of the coordinates.
    #[getter]
    fn radius(&self) -> f64 {
        self.radius
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

    /// Adds a set of points, an array of shape (n, 3) in the engine's precision, and returns its
    /// number. It searches
    /// all sets and is searched by all, itself included. Points are copied. Waits for the device.
    fn add_points(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = self.shared.given(points, "points")?;
        points.points(self.coordinates())?;
        let double = self.precision == Precision::Double;
        self.shared.work(py, vec![points], |state, given| {
            let id = if double {
                let positions = given[0].lend::<f64>(state.engine.stream());
                state.engine.add_point_set(&positions.as_view())
            } else {
                let positions = given[0].lend::<f32>(state.engine.stream());
                state.engine.add_point_set(&positions.as_view())
            };
            Ok(id.map_err(raise)?.number() as usize)
        })
    }

    /// Gives a set new points, of any number, which are copied; their lists are out of date. Does
    /// not wait for the device.
    fn update(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = self.shared.given(points, "points")?;
        points.points(self.coordinates())?;
        let double = self.precision == Precision::Double;
        self.receive(py, set, vec![points], |engine, set, given| {
            if double {
                let positions = given[0].lend::<f64>(engine.stream());
                engine.update(set, &positions.as_view())
            } else {
                let positions = given[0].lend::<f32>(engine.stream());
                engine.update(set, &positions.as_view())
            }
        })
    }

    /// Gives every point of a set a radius of its own, as Engine.set_radii() does: an array of
    /// shape (n,) of float32 of the host or of this GPU. One of the GPU is copied there, without
    /// waiting; radii that cannot be used are found by finish(), which raises ValueError, and the
    /// set then has none.
    fn set_radii(&self, py: Python<'_>, set: usize, radii: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take_radii(py, set, radii)
    }

    /// Gives every point of a set a type, as Engine.set_types() does: whole numbers of 32 or 64
    /// bits where the array is on the GPU; otherwise as set_radii().
    fn set_types(&self, py: Python<'_>, set: usize, types: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take_types(py, set, types)
    }

    /// Leaves out pairs of points of a set, as Engine.set_exclusions() does.
    fn set_exclusions(&self, py: Python<'_>, set: usize, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairs = filters::pairs(pairs)?;
        self.change(py, set, move |engine, set| {
            engine.exclude_pairs(set, &pairs)
        })
    }

    /// Leaves out pairs of points of the same molecule, as Engine.set_molecules() does; an array as
    /// for set_types().
    fn set_molecules(
        &self,
        py: Python<'_>,
        set: usize,
        molecules: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take_molecules(py, set, molecules)
    }

    /// Leaves out no pair of a set any longer.
    fn clear_exclusions(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.change(py, set, |engine, set| engine.clear_exclusions(set))
    }

    /// Searches for some points of a set only, as Engine.set_targets() does; None for all. An array
    /// of the GPU is a mask of bool; this then waits for the device, to learn how many there are.
    fn set_targets(
        &self,
        py: Python<'_>,
        set: usize,
        targets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.take_targets(py, set, targets)
    }

    /// Waits for the device. True when everything computed since the last call is valid; False when
    /// points had left their cells or lists their storage: there is room now, so compute again what
    /// was computed since then. Updates stand.
    fn finish(&self, py: Python<'_>) -> PyResult<bool> {
        let (valid, released) = self.shared.work(py, Vec::new(), |state, _| {
            let found = state.engine.finish();
            let valid = matches!(found, Ok(Progress::Valid));
            for fate in state.provisional.drain(..) {
                fate.settle(valid);
            }
            let released = found.map(|_| mem::take(&mut state.held));
            Ok((valid, released.map_err(raise)?))
        })?;
        drop(released);
        Ok(valid)
    }

    /// The neighbours of every point of one set in another, by default in the set itself, as arrays
    /// of the GPU that are valid until one of the sets is updated. Waits for the device the first
    /// time.
    #[pyo3(signature = (targets=0, sources=None))]
    fn neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyDeviceNeighbors> {
        let sources = sources.unwrap_or(targets);
        let arrays = self.shared.work(py, Vec::new(), |state, _| {
            state.lists(&self.shared, [targets, sources])
        })?;
        PyDeviceNeighbors::of(py, arrays)
    }

    /// The points of a set near free positions, an array of shape (n, 3) in the engine's
    /// precision, which is copied, as arrays of the GPU that are valid until the next query or
    /// until the set is updated. Waits for the device the first time.
    ///
    /// Refused with cutoffs or rule; exclusions and targets do not concern positions. Lists are
    /// full, whatever the engine's are. Where finish() returns False, ask again. From the
    /// first query on positions are a set of the engine's own, which len() counts.
    ///
    /// radii: a radius for every position, an array of the host, where the rule of the engine
    /// counts the radius of the target ("gather" and "symmetric").
    #[pyo3(signature = (positions, set=0, *, radii=None))]
    fn query(
        &self,
        py: Python<'_>,
        positions: &Bound<'_, PyAny>,
        set: usize,
        radii: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDeviceNeighbors> {
        let positions = self.shared.given(positions, "positions")?;
        positions.points(self.coordinates())?;
        let radii = radii.map(|radii| field(radii, 1, "radii", Precision::Single));
        let radii = radii.transpose()?;
        let double = self.precision == Precision::Double;
        let arrays = self.shared.work(py, vec![positions], |state, given| {
            state.query(&self.shared, (&given[0], double), radii.as_deref(), set)
        })?;
        PyDeviceNeighbors::of(py, arrays)
    }

    /// The neighbours of every point of one set in another, by default in the set itself, and
    /// numbers of every pair, as arrays of the GPU that are valid until one of the sets is updated
    /// or other quantities are asked for. Waits for the device the first time.
    ///
    /// quantities: letters of "ijSdD" as for Engine.pair_geometry(), or a list of these, of their
    /// names, "shifts" and "squares", which DevicePairs describes; only these are computed, and j
    /// is always there. Pairs of a half list are seen from the point that has the list. finish()
    /// raises RuntimeError for images that have no 32-bit numbers.
    #[pyo3(signature = (quantities, targets=0, sources=None))]
    fn pair_geometry(
        &self,
        py: Python<'_>,
        quantities: &Bound<'_, PyAny>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyDevicePairs> {
        let wanted = self::quantities(quantities)?;
        let sources = sources.unwrap_or(targets);
        let arrays = self.shared.work(py, Vec::new(), |state, _| {
            state.pairs(&self.shared, [targets, sources], wanted)
        })?;
        arrays.hand_over(py)
    }

    /// Number of neighbours of every point of one set in another, by default in the set itself;
    /// shape (n,), uint32.
    ///
    /// out: an array of that shape and type to write instead of a new one, which is then returned;
    /// it must not share memory with what is read.
    #[pyo3(signature = (targets=0, sources=None, *, out=None))]
    fn count_neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let sources = sources.unwrap_or(targets);
        let outlet = Outlet::new(out, Dtype::U32, vec![self.points(targets)?]);
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        let work = |engine: &DeviceEngine, _: &[GivenArray], results: &Results| {
            let mut counts = results.lend(engine.stream());
            engine.count_neighbors(t, s, &mut counts.as_view_mut())
        };
        self.shared.deliver(py, Vec::new(), outlet, work)
    }

    /// The order that makes a set local in memory, shape (n,), uint32: use ``array[order]`` for all
    /// arrays of the set, and update it, every few dozen steps. out: as for count_neighbors().
    #[pyo3(signature = (set=0, *, out=None))]
    fn z_sort(
        &self,
        py: Python<'_>,
        set: usize,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let outlet = Outlet::new(out, Dtype::U32, vec![self.points(set)?]);
        let set = self.set(set)?;
        let work = |engine: &DeviceEngine, _: &[GivenArray], results: &Results| {
            let mut order = results.lend(engine.stream());
            engine.order(set, &mut order.as_view_mut())
        };
        self.shared.deliver(py, Vec::new(), outlet, work)
    }

    /// Mass density of every point of one set by the neighbours in another, by default in the set
    /// itself, its own mass left out: the sum of m W(d) with the C2 kernel of Wendland (1995);
    /// shape (n,), float32, in mass per volume, or per area in two dimensions.
    ///
    /// mass: one per source, shape (m,). support: of the kernel, the radius by default, which it
    /// may not exceed. dimensions: 2 or 3, which the kernel is normalised for. out: as for
    /// count_neighbors(). add: whether to add to what is in it.
    #[pyo3(signature = (mass, targets=0, sources=None, *, support=None, dimensions=3, out=None,
                        add=false))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn sph_density(
        &self,
        py: Python<'_>,
        mass: &Bound<'_, PyAny>,
        targets: usize,
        sources: Option<usize>,
        support: Option<f64>,
        dimensions: u32,
        out: Option<&Bound<'_, PyAny>>,
        add: bool,
    ) -> PyResult<Py<PyAny>> {
        let sources = sources.unwrap_or(targets);
        let kernel = density_kernel(support.unwrap_or(self.radius), Some(dimensions), [false; 2])?;
        let outlet = Outlet::new(out, Dtype::F32, vec![self.points(targets)?]).adding(add)?;
        let mass = self.shared.given(mass, "mass")?;
        mass.shaped(Dtype::F32, &[self.points(sources)?])?;
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        let work = |engine: &DeviceEngine, given: &[GivenArray], results: &Results| {
            let mass = given[0].lend(engine.stream());
            let traversal = engine.traverse(&kernel, t, s);
            let field = DeviceField::new(mass.as_view(), 1);
            results.run(engine, traversal.sources(field))
        };
        self.shared.deliver(py, vec![mass], outlet, work)
    }

    /// Combines what a function of yours gives for every pair of neighbours of one set in another,
    /// by default in the set itself; shape (n,) for one output, else (n, outputs), float32.
    ///
    /// text: CUDA C++ that defines ``void pair(const float* uniform, const Pair& pair, const float*
    /// target, const float* source, float* result)``, where ``pair.d[3]`` leads from the target to
    /// the source and ``pair.d2`` is its square. It is compiled once. target_field, source_field:
    /// what it reads of the points, shape (n,) or (n, channels). uniforms: parameters, at most 160;
    /// changing them compiles nothing. outputs: numbers it gives, 1 to 16. reduce: "sum", "min" or
    /// "max". name: what messages of the compiler call the text. out, add: as for sph_density().
    /// over_lists: whether to run over the lists that neighbors() or pair_geometry() found of the
    /// sets, instead of searching: several functions over one search. Sums may then differ in the
    /// last bits.
    ///
    /// The text runs on the GPU as it is, in the context that PyTorch and CuPy use too, and nothing
    /// checks what it does there. It must read target and source only below their numbers of
    /// channels and uniform only below the number of parameters, write all numbers of result and
    /// nothing else, and end for every pair. An access to other memory may end the use of CUDA in
    /// the process.
    #[pyo3(signature = (text, targets=0, sources=None, *, target_field=None, source_field=None,
                        uniforms=Vec::new(), outputs=1, reduce="sum", name="kernel", out=None,
                        add=false, over_lists=false))]
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
        over_lists: bool,
    ) -> PyResult<Py<PyAny>> {
        let sources = sources.unwrap_or(targets);
        if !(1..=16).contains(&outputs) {
            return Err(PyValueError::new_err(format!(
                "outputs is 1 to 16, not {outputs}"
            )));
        }
        let points = self.points(targets)?;
        let shape = if outputs == 1 {
            vec![points]
        } else {
            vec![points, outputs]
        };
        let outlet = Outlet::new(out, Dtype::F32, shape).adding(add)?;
        let mut given = Vec::new();
        let mut channels = [0; 2];
        let fields = [
            (target_field, "target_field", targets),
            (source_field, "source_field", sources),
        ];
        for (channels, (field, what, set)) in channels.iter_mut().zip(fields) {
            if let Some(field) = field {
                let field = self.shared.given(field, what)?;
                *channels = field.field(self.points(set)?)?;
                given.push(field);
            }
        }
        let kernel = DeviceKernel {
            // SAFETY: the caller promises what the text does, as the method's documentation says.
            cuda: unsafe { Cuda::new(name.to_owned(), text) }.uniforms(uniforms),
            target_channels: channels[0],
            source_channels: channels[1],
            outputs,
            reduce: reduction(reduce)?,
        };
        let (t, s) = (self.set(targets)?, self.set(sources)?);
        let work = |engine: &DeviceEngine, given: &[GivenArray], results: &Results| {
            let lent: Vec<_> = given
                .iter()
                .map(|field| field.lend(engine.stream()))
                .collect();
            let (of_targets, of_sources) = lent.split_at(usize::from(channels[0] > 0));
            let mut traversal = engine.traverse_with(&kernel, t, s);
            if over_lists {
                traversal = traversal.over_lists();
            }
            if let [field] = of_targets {
                traversal = traversal.targets(DeviceField::new(field.as_view(), channels[0]));
            }
            if let [field] = of_sources {
                traversal = traversal.sources(DeviceField::new(field.as_view(), channels[1]));
            }
            results.run(engine, traversal)
        };
        self.shared.deliver(py, given, outlet, work)
    }

    /// Removes a set, with its points and lists. Its number is refused from then on by IndexError,
    /// and other sets keep theirs. Points leave by an update() with those that stay.
    fn remove_set(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.change(py, set, |engine, set| engine.remove_point_set(set))
    }

    /// Number of points of a set.
    pub(super) fn points(&self, set: usize) -> PyResult<usize> {
        let state = self.shared.lock()?;
        state.engine.points(state.set(set)?).map_err(raise)
    }

    /// Number of sets.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.shared.lock()?.engine.point_sets())
    }

    /// The GPU, cells per radius, how work is mapped to threads, and the bytes held there.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.shared.lock()?.engine.report();
        let report = PyDict::new(py);
        report.set_item("gpu", self.shared.gpu)?;
        report.set_item("name", found.name)?;
        report.set_item("strategy", found.strategy.to_string())?;
        report.set_item("subdivision", found.subdivision)?;
        report.set_item("bytes", found.bytes)?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearfield.DeviceEngine on GPU {}, radius {}>",
            self.shared.gpu, self.radius
        )
    }
}

impl PyDeviceEngine {
    /// The type of coordinates.
    fn coordinates(&self) -> Dtype {
        match self.precision {
            Precision::Single => Dtype::F32,
            Precision::Double => Dtype::F64,
        }
    }

    /// Changes a set, whose lists are then out of date.
    pub(super) fn change(
        &self,
        py: Python<'_>,
        set: usize,
        change: impl FnOnce(&mut DeviceEngine, PointSetId) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.receive(py, set, Vec::new(), |engine, set, _| change(engine, set))
    }

    /// Changes a set by what was given, after which its lists are out of date.
    pub(super) fn receive(
        &self,
        py: Python<'_>,
        set: usize,
        given: Vec<GivenArray>,
        change: impl FnOnce(&mut DeviceEngine, PointSetId, &[GivenArray]) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        self.shared.work(py, given, |state, given| {
            state.retire(involving(set));
            let set = state.set(set)?;
            change(&mut state.engine, set, given).map_err(raise)
        })
    }

    /// The set with this number.
    fn set(&self, number: usize) -> PyResult<PointSetId> {
        self.shared.lock()?.set(number)
    }
}

fn reduction(name: &str) -> PyResult<Reduce> {
    match name {
        "sum" => Ok(Reduce::Sum),
        "min" => Ok(Reduce::Min),
        "max" => Ok(Reduce::Max),
        other => Err(PyValueError::new_err(format!(
            "reduce is \"sum\", \"min\" or \"max\", not {other:?}"
        ))),
    }
}
