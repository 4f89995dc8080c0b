//! The class `DeviceSystemSearch`: many systems whose arrays are on a GPU, in and out.

use super::{
    array::{Memory, PyDeviceArray},
    fate::Fate,
    given::{GivenArray, is_on_gpu},
    layout::Dtype,
    search::{Found, Input, Numbers, SharedSystems, started},
    stream::{Current, KeptStream, Order, StreamNumber},
};
use crate::{
    call::guarded,
    pairs::{Quantity, Wanted},
    systems::{flags, table},
};
use nearfield::{ListKind, systems::Quantities};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};
use std::sync::Arc;

/// Searches many systems whose arrays are on a GPU; results stay there.
///
/// precision: "f32" or "f64", the type of the points and of displacements and distances. index:
/// "int64" or "int32". half: every pair once, as for SystemSearch. gpu, stream: as for
/// DeviceEngine.
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
    #[pyo3(signature = (*, gpu=0, stream=None, precision="f32", index="int64", half=false))]
    fn new(
        py: Python<'_>,
        gpu: u32,
        stream: Option<i64>,
        precision: &str,
        index: &str,
        half: bool,
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
        let start = || -> PyResult<_> {
            let _current = Current::keep();
            Ok(Box::new(match (real, index) {
                (Dtype::F32, Dtype::I32) => started::<f32, i32>(gpu, stream, kind)?,
                (Dtype::F32, _) => started::<f32, i64>(gpu, stream, kind)?,
                (_, Dtype::I32) => started::<f64, i32>(gpu, stream, kind)?,
                _ => started::<f64, i64>(gpu, stream, kind)?,
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

    /// The pairs of all systems within a radius, as SystemSearch.neighbors() finds them, sorted: a
    /// tuple with a DeviceArray for every letter of quantities, in the order of the letters. The
    /// arrays are valid until the next search. Waits for the device.
    ///
    /// points: of shape (n, 3), batch_ptr: of shape (systems + 1,), int64, both on the GPU. radius,
    /// cell: as for SystemSearch.neighbors() on the host, or arrays of float64 on the GPU. pbc: as
    /// there, on the host. quantities: "ijSdD" unless given; there is no "P".
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
        if wanted.in_order().contains(&Quantity::Pairs) {
            return Err(PyValueError::new_err(
                "a GPU has i and j in arrays of their own: ask for \"ij\" instead of \"P\"",
            ));
        }
        let points = GivenArray::of(points, "points", self.gpu, self.stream)?;
        points.suits(self.real, |shape| matches!(shape, [_, 3]), "(n, 3)")?;
        let offsets = GivenArray::of(batch_ptr, "batch_ptr", self.gpu, self.stream)?;
        offsets.suits(
            Dtype::I64,
            |shape| matches!(shape, [n] if *n > 0),
            "(systems + 1,)",
        )?;
        let flags = flags(cell.is_some(), pbc)?;
        let input = Input {
            points,
            offsets,
            radii: self.numbers(radius, "radius", 1)?,
            cells: cell.map(|cell| self.numbers(cell, "cell", 9)).transpose()?,
            periodic: flags
                .as_flattened()
                .iter()
                .map(|&flag| flag.into())
                .collect(),
        };
        let (found, fate) = self.search(py, input, wanted.quantities())?;
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

    fn __repr__(&self) -> String {
        format!("<nearfield.DeviceSystemSearch on GPU {}>", self.gpu)
    }
}

impl PyDeviceSystemSearch {
    /// Numbers of systems, on the GPU or on the host.
    fn numbers(
        &self,
        given: &Bound<'_, PyAny>,
        what: &'static str,
        each: usize,
    ) -> PyResult<Numbers> {
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

    /// Searches, and waits for it; earlier arrays are out of date from then on.
    fn search(
        &self,
        py: Python<'_>,
        input: Input,
        wanted: Quantities,
    ) -> PyResult<(Found, Arc<Fate>)> {
        let detached = move || {
            let found = self.find(&input, wanted);
            (found, input)
        };
        let (found, given) = guarded(|| Ok(py.detach(detached)))?;
        // Their owners' code runs, when the search is free for it.
        drop(given);
        found
    }

    fn find(&self, input: &Input, wanted: Quantities) -> PyResult<(Found, Arc<Fate>)> {
        let mut state = self.shared.lock()?;
        let stream = state.search.stream().clone();
        let _current = Current::enter(&stream.context());
        for given in input.given() {
            given.located(self.gpu)?;
            if let Some(other) = given.stream {
                Order::OtherFirst.keep(&stream, other)?;
            }
        }
        state.fate.go();
        state.fate = Arc::default();
        let found = state.search.search(input, wanted)?;
        state.fate.settle(true);
        Ok((found, state.fate.clone()))
    }
}
