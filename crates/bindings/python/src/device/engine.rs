//! The engine, and the one way to it: arrays are looked at, the engine is locked and works, and
//! what it was given is kept until its stream has used it.

use super::{
    array::{Dtype, Fate, Memory, Owned, PyDeviceArray, PyDeviceNeighbors},
    given::Given,
    stream::{Current, Order, Stream, StreamNumber, failed},
};
use crate::{
    call::guarded,
    engine::{involving, normalised_for},
    errors::{raise, set_named},
    settings::Domain,
};
use nearfield::{
    Error, ErrorKind, ListKind, PointSetId, Reduce,
    device::{
        DeviceEngine, DeviceEngineBuilder, DeviceField, DeviceKernel, DeviceTraversal, Lent,
        Progress,
        cudarc::driver::{CudaStream, DevicePtr},
    },
    kernels::{Cuda, SphDensity, WendlandC2},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use std::{
    mem::{self, ManuallyDrop},
    sync::{Arc, Mutex, MutexGuard, TryLockError},
};

/// Arrays kept for an engine that is never asked to finish; then it waits.
const HELD: usize = 8;

/// Point sets that live on a GPU and search each other there; arrays of the GPU in and out.
///
/// radius: in the unit of the coordinates. box: three lengths, 0 where an axis is open, or three
/// vectors that do not lean along open axes. gpu: its number, from 0. stream: on which everything
/// is done: 1 or None for the default stream, on which CuPy and PyTorch work unless told otherwise,
/// or the address of a CUstream of the GPU's primary context, which must stay for as long as the
/// engine and its arrays. half: lists hold every pair of a set once. subdivision: cells per radius,
/// 1 to 8; 0 chooses. within: a box ``(low, high)`` that points are expected to stay in.
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
/// there is a RuntimeError that says what is missing.
#[pyclass(name = "DeviceEngine", module = "nearfield", frozen)]
pub(crate) struct PyDeviceEngine {
    shared: Arc<Shared>,
    radius: f32,
}

/// An engine, kept by what it was asked by and by the arrays that look at its memory.
pub(crate) struct Shared {
    state: Mutex<State>,
    gpu: u32,
    stream: StreamNumber,
}

pub(crate) struct State {
    engine: ManuallyDrop<DeviceEngine>,
    /// Of results since the last finish().
    provisional: Vec<Arc<Fate>>,
    /// Of the lists there are, by pair of sets.
    lists: Vec<((usize, usize), Arc<Fate>)>,
    /// Arrays that the stream may not have read or written yet.
    held: Vec<Given>,
}

/// Where results of the device go.
struct Outlet<'a, 'py> {
    out: Option<&'a Bound<'py, PyAny>>,
    dtype: Dtype,
    shape: Vec<usize>,
}

#[pymethods]
impl PyDeviceEngine {
    #[new]
    #[pyo3(signature = (radius, *, r#box=None, gpu=0, stream=None, half=false, subdivision=0,
                        within=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        py: Python<'_>,
        radius: f64,
        r#box: Option<&Bound<'_, PyAny>>,
        gpu: u32,
        stream: Option<i64>,
        half: bool,
        subdivision: u32,
        within: Option<([f32; 3], [f32; 3])>,
    ) -> PyResult<Self> {
        let radius = radius as f32;
        let stream = StreamNumber::of_engine(stream)?;
        let mut builder = DeviceEngine::builder(radius).subdivision(subdivision);
        builder = match r#box.map(Domain::of).transpose()? {
            None => builder,
            Some(Domain::Lengths(lengths)) => builder.periodic(lengths),
            Some(Domain::Vectors(vectors)) => builder.box_vectors(vectors),
        };
        if half {
            builder = builder.lists(ListKind::Half);
        }
        if let Some((low, high)) = within {
            if !low.iter().chain(&high).all(|edge| edge.is_finite()) {
                return Err(PyValueError::new_err(
                    "within: the corners of the box must be finite",
                ));
            }
            builder = builder.within(low, high);
        }
        let engine = guarded(|| py.detach(|| start(builder, gpu, stream)))?;
        let state = State {
            engine: ManuallyDrop::new(engine),
            provisional: Vec::new(),
            lists: Vec::new(),
            held: Vec::new(),
        };
        let shared = Shared {
            state: Mutex::new(state),
            gpu,
            stream,
        };
        Ok(Self {
            shared: Arc::new(shared),
            radius,
        })
    }

    /// The search radius, in the unit of the coordinates.
    #[getter]
    fn radius(&self) -> f32 {
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

    /// Adds a set of points, an array of shape (n, 3), and returns its number. It searches all sets
    /// and is searched by all, itself included. Points are copied. Waits for the device.
    fn add_points(&self, py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let points = self.given(points, "points")?;
        points.points()?;
        self.shared.work(py, vec![points], |state, given| {
            let positions = given[0].lend(state.engine.stream());
            let id = state.engine.add_point_set(&positions.as_view());
            Ok(id.map_err(raise)?.number() as usize)
        })
    }

    /// Gives a set new points, of any number, which are copied; their lists are out of date. Does
    /// not wait for the device.
    fn update(&self, py: Python<'_>, set: usize, points: &Bound<'_, PyAny>) -> PyResult<()> {
        let points = self.given(points, "points")?;
        points.points()?;
        self.shared.work(py, vec![points], |state, given| {
            state.retire(involving(set));
            let positions = given[0].lend(state.engine.stream());
            let set = set_named(set, |set| state.engine.point_set(set))?;
            let updated = state.engine.update(set, &positions.as_view());
            updated.map_err(raise)
        })
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

    /// The neighbours of every point of one set in another, as arrays of the GPU that are valid
    /// until one of the sets is updated. Waits for the device the first time.
    #[pyo3(signature = (targets=0, sources=0))]
    fn neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: usize,
    ) -> PyResult<PyDeviceNeighbors> {
        let arrays = self.shared.work(py, Vec::new(), |state, _| {
            state.lists(&self.shared, (targets, sources))
        })?;
        let [start, count, indices] = arrays;
        Ok(PyDeviceNeighbors {
            start: Py::new(py, start)?,
            count: Py::new(py, count)?,
            indices: Py::new(py, indices)?,
        })
    }

    /// Number of neighbours of every point of one set in another; shape (n,), uint32.
    ///
    /// out: an array to write instead of a new one, which is then returned.
    #[pyo3(signature = (targets=0, sources=0, *, out=None))]
    fn count_neighbors(
        &self,
        py: Python<'_>,
        targets: usize,
        sources: usize,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let shape = vec![self.points(targets)?];
        let (dtype, ids) = (Dtype::U32, self.sets([targets, sources])?);
        self.deliver(
            py,
            Vec::new(),
            Outlet { out, dtype, shape },
            |engine, _, result| {
                let mut counts = result.lend(engine.stream());
                engine.count_neighbors(ids[0], ids[1], &mut counts.as_view_mut())
            },
        )
    }

    /// The order that makes a set local in memory, shape (n,), uint32: use ``array[order]`` for all
    /// arrays of the set, and update it, every few dozen steps.
    #[pyo3(signature = (set=0, *, out=None))]
    fn z_sort(
        &self,
        py: Python<'_>,
        set: usize,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (dtype, shape) = (Dtype::U32, vec![self.points(set)?]);
        let [id, _] = self.sets([set, set])?;
        self.deliver(
            py,
            Vec::new(),
            Outlet { out, dtype, shape },
            |engine, _, result| {
                let mut order = result.lend(engine.stream());
                engine.order(id, &mut order.as_view_mut())
            },
        )
    }

    /// Mass density of every point of one set by the neighbours in another, its own mass left out:
    /// the sum of m W(d) with the C2 kernel of Wendland (1995); shape (n,), float32.
    ///
    /// mass: one per source, shape (m,). support: of the kernel, the radius by default, which it
    /// may not exceed. dimensions: 2 or 3, which the kernel is normalised for. out: an array to
    /// write instead of a new one, which is then returned. add: whether to add to what is in it.
    #[pyo3(signature = (mass, targets=0, sources=0, *, support=None, dimensions=3, out=None,
                        add=false))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn sph_density(
        &self,
        py: Python<'_>,
        mass: &Bound<'_, PyAny>,
        targets: usize,
        sources: usize,
        support: Option<f32>,
        dimensions: u32,
        out: Option<&Bound<'_, PyAny>>,
        add: bool,
    ) -> PyResult<Py<PyAny>> {
        let support = support.unwrap_or(self.radius);
        if !(support.is_finite() && support > 0.0) {
            return Err(PyValueError::new_err(format!(
                "the support is {support}: it must be finite and positive"
            )));
        }
        must_have_out(add, out)?;
        let mass = self.given(mass, "mass")?;
        mass.shaped(Dtype::F32, &[self.points(sources)?])?;
        let (dtype, shape) = (Dtype::F32, vec![self.points(targets)?]);
        let kernel = SphDensity {
            kernel: WendlandC2::with_support(support)
                .in_dimensions(normalised_for(Some(dimensions), [false; 2])?),
        };
        let [t, s] = self.sets([targets, sources])?;
        self.deliver(
            py,
            vec![mass],
            Outlet { out, dtype, shape },
            |engine, given, result| {
                let mass = given[0].lend(engine.stream());
                let traversal = engine.traverse(&kernel, t, s);
                let field = DeviceField::new(mass.as_view(), 1);
                result.run(engine, traversal.sources(field), add)
            },
        )
    }

    /// Combines what a function of yours gives for every pair of neighbours; shape (n,) for one
    /// output, else (n, outputs), float32.
    ///
    /// text: CUDA C++ that defines ``void pair(const float* uniform, const Pair& pair, const float*
    /// target, const float* source, float* result)``, where ``pair.d[3]`` leads from the target to
    /// the source and ``pair.d2`` is its square. It is compiled once. target_field, source_field:
    /// what it reads of the points, shape (n,) or (n, channels). uniforms: parameters, at most 160;
    /// changing them compiles nothing. outputs: numbers it gives, 1 to 16. reduce: "sum", "min" or
    /// "max". name: what messages of the compiler call the text. out, add: as for sph_density().
    ///
    /// The text runs on the GPU as it is, in the context that PyTorch and CuPy use too, and nothing
    /// checks what it does there. It must read target and source only below their numbers of
    /// channels and uniform only below the number of parameters, write all numbers of result and
    /// nothing else, and end for every pair. An access to other memory may end the use of CUDA in
    /// the process.
    #[pyo3(signature = (text, targets=0, sources=0, *, target_field=None, source_field=None,
                        uniforms=Vec::new(), outputs=1, reduce="sum", name="kernel", out=None,
                        add=false))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn traverse(
        &self,
        py: Python<'_>,
        text: String,
        targets: usize,
        sources: usize,
        target_field: Option<&Bound<'_, PyAny>>,
        source_field: Option<&Bound<'_, PyAny>>,
        uniforms: Vec<f32>,
        outputs: usize,
        reduce: &str,
        name: &str,
        out: Option<&Bound<'_, PyAny>>,
        add: bool,
    ) -> PyResult<Py<PyAny>> {
        if !(1..=16).contains(&outputs) {
            return Err(PyValueError::new_err(format!(
                "outputs is 1 to 16, not {outputs}"
            )));
        }
        must_have_out(add, out)?;
        let mut given = Vec::new();
        let mut channels = [0; 2];
        let fields = [
            (target_field, "target_field", targets),
            (source_field, "source_field", sources),
        ];
        for (channels, (field, what, set)) in channels.iter_mut().zip(fields) {
            if let Some(field) = field {
                let field = self.given(field, what)?;
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
        let n = self.points(targets)?;
        let shape = if outputs == 1 {
            vec![n]
        } else {
            vec![n, outputs]
        };
        let [t, s] = self.sets([targets, sources])?;
        let dtype = Dtype::F32;
        self.deliver(
            py,
            given,
            Outlet { out, dtype, shape },
            |engine, given, result| {
                let lent: Vec<_> = given
                    .iter()
                    .map(|field| field.lend(engine.stream()))
                    .collect();
                let (of_targets, of_sources) = lent.split_at(usize::from(channels[0] > 0));
                let mut traversal = engine.traverse_with(&kernel, t, s);
                if let [field] = of_targets {
                    traversal = traversal.targets(DeviceField::new(field.as_view(), channels[0]));
                }
                if let [field] = of_sources {
                    traversal = traversal.sources(DeviceField::new(field.as_view(), channels[1]));
                }
                result.run(engine, traversal, add)
            },
        )
    }

    /// Removes a set, with its points and lists. Its number is refused from then on by IndexError,
    /// and other sets keep theirs. Points leave by an update() with those that stay.
    fn remove_set(&self, py: Python<'_>, set: usize) -> PyResult<()> {
        self.shared.work(py, Vec::new(), |state, _| {
            state.retire(involving(set));
            let set = set_named(set, |set| state.engine.point_set(set))?;
            state.engine.remove_point_set(set).map_err(raise)
        })
    }

    /// Number of points of a set.
    fn points(&self, set: usize) -> PyResult<usize> {
        let [set, _] = self.sets([set, set])?;
        self.shared.lock()?.engine.points(set).map_err(raise)
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
    /// The sets with these numbers.
    fn sets(&self, numbers: [usize; 2]) -> PyResult<[PointSetId; 2]> {
        let state = self.shared.lock()?;
        let set = |number| set_named(number, |number| state.engine.point_set(number));
        Ok([set(numbers[0])?, set(numbers[1])?])
    }

    fn given(&self, object: &Bound<'_, PyAny>, what: &'static str) -> PyResult<Given> {
        Given::of(object, what, self.shared.gpu, self.shared.stream)
    }

    /// Results into the array given for them or a new one, which is returned.
    fn deliver(
        &self,
        py: Python<'_>,
        mut given: Vec<Given>,
        outlet: Outlet<'_, '_>,
        work: impl FnOnce(&DeviceEngine, &[Given], &Results) -> Result<(), Error> + Send,
    ) -> PyResult<Py<PyAny>> {
        let Outlet { out, dtype, shape } = outlet;
        let fields = given.len();
        if let Some(out) = out {
            let out = self.given(out, "out")?;
            out.shaped(dtype, &shape)?;
            out.writable()?;
            given.iter().try_for_each(|read| out.apart_from(read))?;
            given.push(out);
        }
        let len = shape.iter().product();
        let made = self.shared.work(py, given, |state, given| {
            if let Some(out) = given.get(fields) {
                let pointer = out.pointer;
                work(&state.engine, &given[..fields], &Results { pointer, len }).map_err(raise)?;
                return Ok(None);
            }
            let fate = state.new_fate();
            let made = new_array(state.engine.stream(), shape, dtype, fate)?;
            let pointer = made.pointer;
            work(&state.engine, given, &Results { pointer, len }).map_err(raise)?;
            Ok(Some(made))
        })?;
        match (made, out) {
            (Some(made), _) => Ok(Py::new(py, made)?.into_any()),
            (None, Some(out)) => Ok(out.clone().unbind()),
            (None, None) => Ok(py.None()),
        }
    }
}

/// Memory of the device for the results of a call.
struct Results {
    pointer: u64,
    len: usize,
}

impl Results {
    fn lend<T>(&self, stream: &Arc<CudaStream>) -> Lent<T> {
        // SAFETY: a new array of that length, or one given of that shape and type, kept until the
        // stream has been waited for.
        unsafe { Lent::new(stream, self.pointer, self.len) }
    }

    fn run(
        &self,
        engine: &DeviceEngine,
        traversal: DeviceTraversal<'_>,
        add: bool,
    ) -> Result<(), Error> {
        let mut results = self.lend(engine.stream());
        match add {
            true => traversal.add_into(&mut results.as_view_mut()),
            false => traversal.run_into(&mut results.as_view_mut()),
        }
    }
}

impl Shared {
    /// The engine for a call.
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                PyRuntimeError::new_err("the engine is in use by another thread")
            }
            TryLockError::Poisoned(_) => {
                PyRuntimeError::new_err("the engine has failed within itself: make a new one")
            }
        })
    }

    /// Does work on the stream with what was given, in order with its owners' streams, while other
    /// Python threads run.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        given: Vec<Given>,
        work: impl FnOnce(&mut State, &[Given]) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let detached = || -> PyResult<_> {
            let mut state = self.lock()?;
            let stream = state.engine.stream().clone();
            let _current = Current::enter(stream.context());
            for given in &given {
                given.located(self.gpu)?;
                if let Some(other) = given.stream {
                    Order::OtherFirst.keep(&stream, other)?;
                }
            }
            let result = work(&mut state, &given);
            for other in given.iter().filter_map(|given| given.stream) {
                Order::OtherAfter.keep(&stream, other)?;
            }
            state.held.extend(given);
            let mut released = Vec::new();
            if state.held.len() > HELD && stream.synchronize().is_ok() {
                released = mem::take(&mut state.held);
            }
            Ok((result, released))
        };
        let (result, released) = guarded(|| py.detach(detached))?;
        // Their owners' code runs: not before the engine is free for it.
        drop(released);
        result
    }
}

impl State {
    /// That of a result which is computed now.
    fn new_fate(&mut self) -> Arc<Fate> {
        self.provisional.retain(|fate| Arc::strong_count(fate) > 1);
        let fate = Arc::new(Fate::default());
        self.provisional.push(fate.clone());
        fate
    }

    /// The lists of these pairs are out of date.
    fn retire(&mut self, which: impl Fn((usize, usize)) -> bool) {
        self.lists.retain(|(pair, fate)| {
            if which(*pair) {
                fate.go();
            }
            !which(*pair)
        });
    }

    /// Start, count and entries of the lists of a pair, written now if there are none to be used.
    fn lists(&mut self, shared: &Arc<Shared>, of: (usize, usize)) -> PyResult<[PyDeviceArray; 3]> {
        let named = |set| set_named(set, |set| self.engine.point_set(set));
        let (t, s) = (named(of.0)?, named(of.1)?);
        let current = |(pair, fate): &&((usize, usize), Arc<Fate>)| *pair == of && fate.is_usable();
        let kept = (self.lists.iter().find(current)).map(|(_, fate)| fate.clone());
        // The engine may have sorted a set anew since, and then knows no lists of it.
        let fate = match kept.filter(|_| self.engine.neighbors(t, s).is_ok()) {
            Some(fate) => fate,
            None => {
                self.retire(|pair| pair == of);
                self.engine.find_neighbors(t, s).map_err(raise)?;
                let fate = self.new_fate();
                self.lists.push((of, fate.clone()));
                fate
            }
        };
        let stream = self.engine.stream();
        let found = match self.engine.neighbors(t, s) {
            Ok(found) => found,
            // Where nothing was found there is no storage to look at.
            Err(error) if matches!(error.kind(), ErrorKind::NoLists { .. }) => {
                let points = self.engine.points(t).map_err(raise)?;
                let none = |len, dtype| new_array(stream, vec![len], dtype, fate.clone());
                return Ok([
                    none(points, Dtype::U64)?,
                    none(points, Dtype::U32)?,
                    none(0, Dtype::U32)?,
                ]);
            }
            Err(error) => return Err(raise(error)),
        };
        let memory = Arc::new(Memory::Engine(shared.clone()));
        let view = |pointer, len, dtype| PyDeviceArray {
            memory: memory.clone(),
            pointer,
            shape: vec![len],
            dtype,
            fate: fate.clone(),
            stream: Stream::new(stream),
        };
        let start = found.start.device_ptr(stream).0;
        let count = found.count.device_ptr(stream).0;
        let entries = found.entries.device_ptr(stream).0;
        Ok([
            view(start, found.start.len(), Dtype::U64),
            view(count, found.count.len(), Dtype::U32),
            view(entries, found.entries.len(), Dtype::U32),
        ])
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _current = Current::enter(self.engine.stream().context());
        // The held arrays may be freed then. A GPU that has failed uses nothing any longer.
        let _ = self.engine.stream().synchronize();
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut self.engine) }
    }
}

fn start(builder: DeviceEngineBuilder, gpu: u32, stream: StreamNumber) -> PyResult<DeviceEngine> {
    let _current = Current::as_it_is();
    // SAFETY: the caller has promised, as far as Python can, that the number is a stream which
    // stays for as long as the engine; there is no way to ask the driver.
    unsafe { builder.on_borrowed(gpu, stream.handle()) }.map_err(raise)
}

/// Zeros on the device.
fn new_array(
    stream: &Arc<CudaStream>,
    shape: Vec<usize>,
    dtype: Dtype,
    fate: Arc<Fate>,
) -> PyResult<PyDeviceArray> {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    // Of no bytes there would be no address.
    let made = stream.alloc_zeros::<u8>(bytes.max(1));
    let made = made.map_err(|error| failed(&format!("{bytes} bytes for a result"), error))?;
    let pointer = made.device_ptr(stream).0;
    Ok(PyDeviceArray {
        pointer,
        memory: Arc::new(Memory::Owned(Owned::new(made))),
        shape,
        dtype,
        fate,
        stream: Stream::new(stream),
    })
}

fn must_have_out(add: bool, out: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match add && out.is_none() {
        true => Err(PyValueError::new_err(
            "add needs an array to add to: pass out",
        )),
        false => Ok(()),
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
