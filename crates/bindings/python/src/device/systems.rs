//! The class `DeviceSystemSearch`: many systems whose arrays are on a GPU, in and out.

use super::{
    array::{Memory, PyDeviceArray},
    columns::{OutColumns, refuse_pairs},
    fate::Fate,
    given::{GivenArray, is_on_gpu},
    layout::Dtype,
    search::{Input, Numbers, Search, SharedSystems, started},
    stream::{Current, KeptStream, Order, StreamNumber},
};
use crate::{
    call::guarded,
    lists::whole_numbers,
    pairs::{Quantity, Wanted},
    systems::{flags, table},
};
use nearfield::ListKind;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use std::sync::Arc;

/// Searches many systems whose arrays are on a GPU; results stay there.
///
/// precision: "f32" or "f64", the type of the points and of displacements and distances. index:
/// "int64" or "int32". half: every pair once, as for SystemSearch. strict: pairs exactly as far
/// apart as the radius are not neighbours. gpu, stream: as for DeviceEngine. skin: in the unit of
/// the coordinates; where it is given, lists of radius + skin are kept, and a search tests only
/// these until a point has moved by half the skin. Pairs are the same, bit for bit, and are written
/// to arrays of yours: neighbors() has none.
///
/// One thread may use a search at a time; another meets a RuntimeError. Errors are those of
/// SystemSearch, and name the system.
#[pyclass(name = "DeviceSystemSearch", module = "nearfield", frozen)]
pub(crate) struct PyDeviceSystemSearch {
    shared: Arc<SharedSystems>,
    gpu: u32,
    stream: StreamNumber,
    real: Dtype,
    index: Dtype,
}

#[pymethods]
impl PyDeviceSystemSearch {
    #[new]
    #[pyo3(signature = (*, gpu=0, stream=None, precision="f32", index="int64", half=false,
                        strict=false, skin=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn new(
        py: Python<'_>,
        gpu: u32,
        stream: Option<i64>,
        precision: &str,
        index: &str,
        half: bool,
        strict: bool,
        skin: Option<f64>,
    ) -> PyResult<Self> {
        let stream = StreamNumber::of_engine(stream)?;
        let wrong = |text: String| Err(PyValueError::new_err(text));
        let (real, index) = match (precision, index) {
            ("f32", "int32") => (Dtype::F32, Dtype::I32),
            ("f32", "int64") => (Dtype::F32, Dtype::I64),
            ("f64", "int32") => (Dtype::F64, Dtype::I32),
            ("f64", "int64") => (Dtype::F64, Dtype::I64),
            ("f32" | "f64", other) => {
                return wrong(format!("index is \"int64\" or \"int32\", not {other:?}"));
            }
            (other, _) => return wrong(format!("precision is \"f32\" or \"f64\", not {other:?}")),
        };
        let kind = if half { ListKind::Half } else { ListKind::Full };
        let how = (kind, strict, skin);
        let start = || -> PyResult<_> {
            let _current = Current::keep();
            Ok(Box::new(match (real, index) {
                (Dtype::F32, Dtype::I32) => started::<f32, i32>(gpu, stream, how)?,
                (Dtype::F32, _) => started::<f32, i64>(gpu, stream, how)?,
                (_, Dtype::I32) => started::<f64, i32>(gpu, stream, how)?,
                _ => started::<f64, i64>(gpu, stream, how)?,
            }))
        };
        let search = guarded(|| py.detach(start))?;
        Ok(Self {
            shared: Arc::new(SharedSystems::new(*search)),
            gpu,
            stream,
            real,
            index,
        })
    }

    /// The number of the GPU.
    #[getter]
    fn gpu(&self) -> u32 {
        self.gpu
    }

    /// The stream on which everything is done, as it is passed to the constructor.
    #[getter]
    fn stream(&self) -> i64 {
        self.stream.get()
    }

    /// How often lists with a skin were built, the first time included; 0 without a skin.
    #[getter]
    fn builds(&self) -> PyResult<u64> {
        Ok(self.shared.lock()?.search.builds())
    }

    /// The pairs of all systems within a radius, as SystemSearch.neighbors() finds them, sorted: a
    /// tuple with a DeviceArray for every letter of quantities, in the order of the letters. The
    /// arrays are valid until the next search. Waits for the device.
    ///
    /// points: of shape (n, 3), on the GPU. batch_ptr, radius, cell: as for
    /// SystemSearch.neighbors() on the host, or arrays of int64 and float64 on the GPU; numbers of
    /// the host that are those of the last call are not copied again. pbc: as there, on the host.
    /// quantities: "ijSdD" unless given; there is no "P".
    #[pyo3(signature = (points, radius, batch_ptr, *, cell=None, pbc=None, quantities=None))]
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
    ) -> PyResult<Bound<'py, PyTuple>> {
        let wanted = Wanted::of(quantities, "int64")?;
        refuse_pairs(&wanted)?;
        let input = self.input((points, radius, batch_ptr), cell, pbc)?;
        let quantities = wanted.quantities();
        let searched = self.search(py, input, Vec::new(), |search, input, _| {
            search.search(input, quantities)
        });
        let (found, fate) = searched?;
        let arrays = wanted.in_order().iter().map(|quantity| {
            let (at, width, dtype) = match quantity {
                Quantity::Targets => (found.targets, 1, self.index),
                Quantity::Sources | Quantity::Pairs => (found.sources, 1, self.index),
                Quantity::Images => (found.images, 3, Dtype::I32),
                Quantity::Displacements => (found.displacements, 3, self.real),
                Quantity::Distances => (found.distances, 1, self.real),
            };
            let shape = match width {
                1 => vec![found.count],
                _ => vec![found.count, width],
            };
            let array = PyDeviceArray {
                memory: Arc::new(Memory::Systems(self.shared.clone())),
                pointer: at,
                shape,
                dtype,
                fate: fate.clone(),
                stream: KeptStream::new(&found.stream),
            };
            Py::new(py, array)
        });
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }

    /// The same into arrays of the GPU, one for every quantity, of shape (m,) or (m, 3); returns
    /// the number of pairs. All of them are written if there are at most m; otherwise nothing
    /// counts, and the arrays have to be longer. Arrays for i and j are of the type of the search,
    /// and none shares memory with another or with what is read. Waits for the device.
    #[pyo3(signature = (out, points, radius, batch_ptr, *, cell=None, pbc=None, quantities=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn neighbors_into(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        points: &Bound<'_, PyAny>,
        radius: &Bound<'_, PyAny>,
        batch_ptr: &Bound<'_, PyAny>,
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
        quantities: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let wanted = Wanted::of(quantities, "int64")?;
        let input = self.input((points, radius, batch_ptr), cell, pbc)?;
        let given =
            |array: &Bound<'_, PyAny>, what| GivenArray::of(array, what, self.gpu, self.stream);
        let (to, arrays) = OutColumns::of(&wanted, out, (self.real, input.given()), given)?;
        if to.index.is_some_and(|index| index != self.index) {
            return Err(PyTypeError::new_err(format!(
                "out: the arrays for i and j must be {}, as the search was made",
                self.index.name()
            )));
        }
        let (pairs, _) = self.search(py, input, arrays, |search, input, arrays| {
            search.search_into(input, &to, arrays)
        })?;
        Ok(pairs)
    }

    fn __repr__(&self) -> String {
        format!("<nearfield.DeviceSystemSearch on GPU {}>", self.gpu)
    }
}

impl PyDeviceSystemSearch {
    /// What a search reads.
    fn input(
        &self,
        (points, radius, batch_ptr): (&Bound<'_, PyAny>, &Bound<'_, PyAny>, &Bound<'_, PyAny>),
        cell: Option<&Bound<'_, PyAny>>,
        pbc: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Input> {
        let points = GivenArray::of(points, "points", self.gpu, self.stream)?;
        points.suits(self.real, |shape| matches!(shape, [_, 3]), "(n, 3)")?;
        let offsets = if is_on_gpu(batch_ptr)? {
            let array = GivenArray::of(batch_ptr, "batch_ptr", self.gpu, self.stream)?;
            let fits = |shape: &[usize]| matches!(shape, [n] if *n > 0);
            array.suits(Dtype::I64, fits, "(systems + 1,)")?;
            Numbers::Device(array)
        } else {
            let offsets = whole_numbers(batch_ptr, "batch_ptr", i64::MAX as u64)?;
            if offsets.is_empty() {
                return Err(PyValueError::new_err(
                    "batch_ptr must have the shape (systems + 1,), not (0,)",
                ));
            }
            Numbers::Host(offsets)
        };
        let flags = flags(cell.is_some(), pbc)?;
        Ok(Input {
            points,
            offsets,
            radii: self.numbers(radius, "radius", 1)?,
            cells: cell.map(|cell| self.numbers(cell, "cell", 9)).transpose()?,
            periodic: flags
                .as_flattened()
                .iter()
                .map(|&flag| flag.into())
                .collect(),
        })
    }

    /// Numbers of systems, on the GPU or on the host.
    fn numbers(
        &self,
        given: &Bound<'_, PyAny>,
        what: &'static str,
        each: usize,
    ) -> PyResult<Numbers<f64>> {
        if !is_on_gpu(given)? {
            return Ok(Numbers::Host(table(given, what, "float64", each)?));
        }
        let array = GivenArray::of(given, what, self.gpu, self.stream)?;
        match each {
            1 => array.suits(Dtype::F64, |shape| shape.len() == 1, "(systems,)")?,
            _ => array.suits(
                Dtype::F64,
                |shape| matches!(shape, [3, 3] | [_, 3, 3]),
                "(3, 3) or (systems, 3, 3)",
            )?,
        }
        Ok(Numbers::Device(array))
    }

    /// Searches, and waits for it; earlier arrays are out of date from then on. `out` are arrays
    /// that the search writes.
    fn search<R: Send>(
        &self,
        py: Python<'_>,
        input: Input,
        out: Vec<GivenArray>,
        search: impl FnOnce(&mut dyn Search, &Input, &[GivenArray]) -> PyResult<R> + Send,
    ) -> PyResult<(R, Arc<Fate>)> {
        let detached = move || {
            let found = self.find(&input, &out, search);
            (found, (input, out))
        };
        let (found, given) = guarded(|| Ok(py.detach(detached)))?;
        // Their owners' code runs, when the search is free for it.
        drop(given);
        found
    }

    fn find<R>(
        &self,
        input: &Input,
        out: &[GivenArray],
        search: impl FnOnce(&mut dyn Search, &Input, &[GivenArray]) -> PyResult<R>,
    ) -> PyResult<(R, Arc<Fate>)> {
        let mut state = self.shared.lock()?;
        let stream = state.search.stream().clone();
        let _current = Current::enter(&stream.context());
        for given in input.given().chain(out) {
            given.located(self.gpu)?;
            if let Some(other) = given.stream {
                Order::OtherFirst.keep(&stream, other)?;
            }
        }
        state.fate.go();
        state.fate = Arc::default();
        let found = search(&mut **state.search, input, out)?;
        for other in out.iter().filter_map(|given| given.stream) {
            Order::OtherAfter.keep(&stream, other)?;
        }
        state.fate.settle(true);
        Ok((found, state.fate.clone()))
    }
}
