//! The class `DeviceEngine`: checks arrays and passes them to the engine.

use super::{
    chunks::PyDeviceListChunks,
    columns::OutColumns,
    function::PairFunction,
    given::GivenArray,
    layout::Dtype,
    neighbors::PyDeviceNeighbors,
    pairs::{PyDevicePairs, quantities},
    results::{Outlet, Results},
    settings::DeviceSettings,
    shared::{SharedEngine, on_stream},
    stream::StreamNumber,
};
use crate::{
    call::guarded, density::density_kernel, domain::DomainArgs, errors::raise, filters,
    pairs::Wanted, points::OwnRadii, settings::precision_of,
};
use nearfield::{
    Error, PointSetId, Precision,
    device::{DeviceEngine, DeviceField, Progress},
};
use pyo3::{prelude::*, types::PyDict};
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
/// expected to stay in. memory_limit: bytes of the GPU that the lists of a pair of sets may take,
/// 12 a point, 4 a pair, and the numbers of pairs beside; more is a MemoryError that says how many,
/// and chunks() has the lists of some points at a time.
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
    pub(super) precision: Precision,
    memory_limit: Option<u64>,
}

#[pymethods]
impl PyDeviceEngine {
    #[new]
    #[pyo3(signature = (radius, *, r#box=None, cell=None, pbc=None, gpu=0, stream=None,
                        half=false, sorted=false, strict=false, rule="uniform", cutoffs=None,
                        k=None, subdivision=0, within=None, precision="f32", memory_limit=None))]
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
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let settings = DeviceSettings {
            radius,
            precision: precision_of(precision)?,
            domain: DomainArgs { r#box, cell, pbc },
            half,
            sorted,
            strict,
            rule,
            cutoffs,
            k,
            subdivision,
            within,
            memory_limit,
        };
        let (radius, precision) = (settings.rounded_radius(), settings.precision);
        let stream = StreamNumber::of_engine(stream)?;
        let builder = settings.builder()?;
        let start = || SharedEngine::start(gpu, stream, || on_stream(builder, gpu, stream));
        let shared = guarded(|| py.detach(start))?;
        Ok(Self {
            shared: Arc::new(shared),
            radius,
            precision,
            memory_limit,
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
    /// radii: a radius for every position, an array of the host of float32 or of the precision,
    /// where the rule of the engine
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
        let radii = radii.map(|radii| OwnRadii::of(radii, 1, self.precision));
        let radii = radii.transpose()?;
        let double = self.precision == Precision::Double;
        let arrays = self.shared.work(py, vec![positions], |state, given| {
            let radii = radii.as_ref().map(OwnRadii::get);
            state.query(&self.shared, (&given[0], double), radii, set)
        })?;
        PyDeviceNeighbors::of(py, arrays)
    }

    /// The neighbours in a set of some points of another, by default of the set itself: list k has
    /// those of point ``points[k]``. points: an array of the GPU of shape (n,), whole numbers of 32
    /// or 64 bits, in any order; it is copied. Arrays are valid until the next call or until one of
    /// the sets is updated. Waits for the device the first time.
    ///
    /// All filters hold, but whoever set_targets() has chosen, all points that are asked for are
    /// searched for. Lists are full, whatever the engine's are. Where finish() returns False, ask
    /// again; it raises IndexError for a point that there is not.
    #[pyo3(signature = (points, targets=0, sources=None))]
    fn neighbors_of(
        &self,
        py: Python<'_>,
        points: &Bound<'_, PyAny>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<PyDeviceNeighbors> {
        let of = [targets, sources.unwrap_or(targets)];
        let points = self.shared.given(points, "points")?;
        let count = points.shape.first().copied().unwrap_or(0);
        let dtype = points.whole_numbers(count)?;
        let arrays = self.shared.work(py, vec![points], |state, given| {
            state.named(&self.shared, of, (&given[0], dtype))
        })?;
        PyDeviceNeighbors::of(py, arrays)
    }

    /// The neighbours of every point of one set in another, by default in the set itself, some
    /// points at a time: an iterator over pairs of the numbers of these points, an array of shape
    /// (n,) of uint32, and their lists, DeviceNeighbors or, with quantities as for
    /// pair_geometry(), DevicePairs. For searches whose lists do not fit. Waits for the device.
    ///
    /// memory: bytes of the GPU that the arrays of a chunk take at most, the engine's memory_limit
    /// by default; one chunk without either. Arrays are valid until the next chunk; they are never
    /// provisional. If one of the sets is updated meanwhile, the next chunk is a RuntimeError.
    #[pyo3(signature = (targets=0, sources=None, *, quantities=None, memory=None))]
    fn chunks(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: Option<usize>,
        quantities: Option<&Bound<'_, PyAny>>,
        memory: Option<u64>,
    ) -> PyResult<PyDeviceListChunks> {
        let wanted = quantities.map(self::quantities).transpose()?;
        let of = [targets, sources.unwrap_or(targets)];
        let memory = memory.or(self.memory_limit);
        PyDeviceListChunks::begin(py, &self.shared, of, wanted, memory)
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

    /// Writes the pairs of one set with another, by default with itself, to arrays of the GPU, one
    /// for every quantity, of shape (m,) or (m, 3): letters of "ijSdD" or their names. Pairs come
    /// in the order of the points that have them. Lists of these sets that are there are taken.
    ///
    /// What is written counts if finish() returns True and pair_count() is at most m; otherwise
    /// write again, after a False to the same arrays, and else to longer ones, which does not
    /// search again. Arrays for i and j are of one type, int32, uint32 or int64, and no array
    /// shares memory with another.
    #[pyo3(signature = (quantities, out, targets=0, sources=None))]
    fn write_pairs(
        &self,
        py: Python<'_>,
        quantities: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        targets: usize,
        sources: Option<usize>,
    ) -> PyResult<()> {
        let wanted = Wanted::of(Some(quantities), "int64")?;
        let given = |array: &Bound<'_, PyAny>, what| self.shared.given(array, what);
        let nothing = [].iter();
        let (to, arrays) = OutColumns::of(&wanted, out, (self.coordinates(), nothing), given)?;
        let of = [targets, sources.unwrap_or(targets)];
        let double = self.precision == Precision::Double;
        self.shared.work(py, arrays, |state, arrays| {
            match (double, to.index.is_some_and(|index| index.size() == 8)) {
                (false, false) => state.write_pairs::<f32, u32>(of, &to, arrays),
                (false, true) => state.write_pairs::<f32, i64>(of, &to, arrays),
                (true, false) => state.write_pairs::<f64, u32>(of, &to, arrays),
                (true, true) => state.write_pairs::<f64, i64>(of, &to, arrays),
            }
        })
    }

    /// Number of pairs of one set with another, by default with itself, as finish() last found it.
    #[pyo3(signature = (targets=0, sources=None))]
    fn pair_count(&self, targets: usize, sources: Option<usize>) -> PyResult<u64> {
        let (t, s) = (self.set(targets)?, self.set(sources.unwrap_or(targets))?);
        let state = self.shared.lock()?;
        state.engine.pair_count(t, s).map_err(raise)
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
            results.run(engine.stream(), traversal.sources(field))
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
        let function = PairFunction {
            text,
            name,
            sets: [targets, sources.unwrap_or(targets)],
            fields: [target_field, source_field],
            uniforms,
            outputs,
            reduce,
        };
        (self.shared).traverse(py, function, (out, add), |engine, kernel, [t, s]| {
            let traversal = engine.traverse_with(kernel, t, s);
            if over_lists {
                traversal.over_lists()
            } else {
                traversal
            }
        })
    }

    /// Removes a set, with its points and lists. Its number is refused from then on by IndexError,
    /// and other sets keep theirs. Points leave by an update() with those that stay.
    fn remove_set(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.change(py, set, |engine, set| engine.remove_point_set(set))
    }

    /// Number of points of a set.
    pub(super) fn points(&self, set: usize) -> PyResult<usize> {
        self.shared.points(set)
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
            state.changed(set);
            let set = state.set(set)?;
            change(&mut state.engine, set, given).map_err(raise)
        })
    }

    /// The set with this number.
    fn set(&self, number: usize) -> PyResult<PointSetId> {
        self.shared.set(number)
    }
}
