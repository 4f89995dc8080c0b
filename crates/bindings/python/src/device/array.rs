//! Arrays on a GPU that Python owns or views.

use super::{
    dlpack,
    fate::Fate,
    layout::{CUDA, DLDevice, Dtype, MAJOR},
    search::SharedSystems,
    shared::SharedEngine,
    shared_chunks::SharedChunks,
    stream::{Current, KeptStream, Order, StreamNumber, failed},
};
use crate::call::guarded;
use nearfield::device::{DeviceBuffer, DeviceValue, Lent, Stream};
use numpy::{Element, IntoPyArray};
use pyo3::{
    exceptions::{PyBufferError, PyMemoryError},
    prelude::*,
    types::{PyCapsule, PyDict, PyTuple},
};
use std::{
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Owner of the memory. The engine frees or writes its own memory again whether or not a view
/// exists; owned memory lives as long as this value.
pub(crate) enum Memory {
    Owned(Owned),
    Engine(Arc<SharedEngine>),
    Systems(Arc<SharedSystems>),
    Chunks(Arc<SharedChunks>),
}

/// Memory of an array alone.
pub(crate) struct Owned {
    bytes: ManuallyDrop<DeviceBuffer<u8>>,
    /// Other libraries may use it on other streams than the one on which it is freed.
    elsewhere: AtomicBool,
}

impl Owned {
    pub(crate) fn new(bytes: DeviceBuffer<u8>) -> Self {
        Self {
            bytes: ManuallyDrop::new(bytes),
            elsewhere: AtomicBool::new(false),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _current = Current::enter(&self.bytes.stream().context());
        if *self.elsewhere.get_mut() {
            // Only the device knows when they are done. A failure here has been reported before.
            let _ = self.bytes.stream().context().synchronize();
        }
        // SAFETY: dropped once, here, where the context is current, which freeing needs.
        unsafe { ManuallyDrop::drop(&mut self.bytes) }
    }
}

/// An array on a GPU, for everything that speaks DLPack or ``__cuda_array_interface__``:
/// ``cupy.from_dlpack(array)``, ``torch.from_dlpack(array)``, ``cupy.asarray(array)``.
///
/// Results own their memory, which stays as long as anything made of them. The arrays of lists and
/// of the geometry of pairs are memory of the engine, for reading: they are valid until one of the
/// two sets is next updated, or other quantities of their pairs are asked for, and those of a
/// DeviceSystemSearch until its next search, those of a chunk until the next chunk. What other
/// libraries made of them must not be used any longer either. The object itself raises RuntimeError
/// then.
#[pyclass(name = "DeviceArray", module = "nearfield", frozen)]
pub(crate) struct PyDeviceArray {
    pub(crate) memory: Arc<Memory>,
    pub(crate) pointer: u64,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) fate: Arc<Fate>,
    pub(crate) stream: KeptStream,
}

#[pymethods]
impl PyDeviceArray {
    /// Lengths of the axes, one or two; rows lie one behind the other.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.tuple(py)
    }

    /// As a numpy.dtype: float32, float64, int32, int64, uint32 or uint64.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?
            .call_method1("dtype", (self.dtype.name(),))
    }

    pub(super) fn __len__(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// A copy as a numpy.ndarray. RuntimeError when finish() of the engine has not found the result
    /// valid, and for lists that are out of date.
    fn copy_to_host<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let flat = match self.dtype {
            Dtype::F32 => self.values::<f32>(py)?.into_pyarray(py).into_any(),
            Dtype::F64 => self.values::<f64>(py)?.into_pyarray(py).into_any(),
            Dtype::I64 => self.values::<i64>(py)?.into_pyarray(py).into_any(),
            Dtype::I32 => self.values::<i32>(py)?.into_pyarray(py).into_any(),
            Dtype::U32 => self.values::<u32>(py)?.into_pyarray(py).into_any(),
            Dtype::U64 => self.values::<u64>(py)?.into_pyarray(py).into_any(),
            Dtype::Bool => {
                let bytes = self.values::<u8>(py)?.into_pyarray(py);
                bytes.call_method1("view", ("bool",))?
            }
        };
        flat.call_method1("reshape", (self.tuple(py)?,))
    }

    /// The CUDA array interface, version 3. Lists that are out of date raise RuntimeError.
    #[getter(__cuda_array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.fate.usable()?;
        self.leaves();
        let interface = PyDict::new(py);
        interface.set_item("shape", self.tuple(py)?)?;
        interface.set_item("typestr", self.dtype.typestr())?;
        let empty = self.shape.contains(&0);
        let pointer = if empty { 0 } else { self.pointer };
        interface.set_item("data", (pointer, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", StreamNumber::of(&self.stream).get())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// The type and number of the device by DLPack: ``(2, gpu)``.
    fn __dlpack_device__(&self) -> (i64, usize) {
        (CUDA, self.stream.context().ordinal())
    }

    /// A capsule by DLPack, without a copy, for use on ``stream``: -1 for no ordering, None or 1
    /// for the default stream, 2 for that of the thread, or the address of a CUstream.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i64, i64)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.fate.usable()?;
        let gpu = self.stream.context().ordinal();
        if dl_device.is_some_and(|device| device != (CUDA, gpu as i64)) || copy == Some(true) {
            return Err(PyBufferError::new_err(
                "DLPack is given the memory as it is: use copy_to_host() for a copy",
            ));
        }
        match stream {
            Some(-1) => self.leaves(),
            number => {
                let consumer = StreamNumber::new(number.unwrap_or(1))?;
                if consumer != StreamNumber::of(&self.stream) {
                    self.leaves();
                }
                let _current = Current::enter(&self.stream.context());
                Order::OtherAfter.keep(&self.stream, consumer)?;
            }
        }
        let device = DLDevice {
            kind: CUDA as i32,
            id: gpu as i32,
        };
        dlpack::export(
            py,
            self.memory.clone(),
            self.pointer,
            &self.shape,
            self.dtype.dlpack(),
            device,
            max_version.is_some_and(|(major, _)| major >= MAJOR),
        )
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearfield.DeviceArray of shape {:?}, {}, on GPU {}>",
            self.shape,
            self.dtype.name(),
            self.stream.context().ordinal()
        )
    }
}

impl PyDeviceArray {
    /// Zeros on the device.
    pub(super) fn zeros(
        stream: &Stream,
        shape: Vec<usize>,
        dtype: Dtype,
        fate: Arc<Fate>,
    ) -> PyResult<Self> {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        // Of no bytes there would be no address.
        let made = stream.alloc_zeros::<u8>(bytes.max(1));
        let made = made.map_err(|error| failed(&format!("{bytes} bytes for a result"), error))?;
        let pointer = made.device_ptr(stream).0;
        Ok(Self {
            pointer,
            memory: Arc::new(Memory::Owned(Owned::new(made))),
            shape,
            dtype,
            fate,
            stream: KeptStream::new(stream),
        })
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Marks that another stream may use the memory.
    fn leaves(&self) {
        if let Memory::Owned(owned) = &*self.memory {
            owned.elsewhere.store(true, Ordering::Release);
        }
    }

    fn values<T: DeviceValue + Element + Default>(&self, py: Python<'_>) -> PyResult<Vec<T>> {
        let len = self.shape.iter().product();
        let copy = || {
            // What is locked does not write its memory again meanwhile.
            let _locked = match &*self.memory {
                Memory::Engine(engine) => (Some(engine.lock()?), None, None),
                Memory::Systems(systems) => (None, Some(systems.lock()?), None),
                Memory::Chunks(chunks) => (None, None, Some(chunks.lock()?)),
                Memory::Owned(_) => (None, None, None),
            };
            self.fate.settled()?;
            let mut values = Vec::new();
            values.try_reserve_exact(len).map_err(|_| {
                PyMemoryError::new_err(format!("no memory for a copy of {len} values"))
            })?;
            values.resize(len, T::default());
            if len > 0 {
                let _current = Current::enter(&self.stream.context());
                // SAFETY: the elements are there as long as `memory`, and lists that are not
                // out of date as long as the engine is locked.
                let lent = unsafe { Lent::<T>::new(&self.stream, self.pointer, len) };
                #[expect(
                    clippy::disallowed_methods,
                    reason = "an array that the caller asked for"
                )]
                let copied = self.stream.memcpy_dtoh(&*lent, &mut values);
                copied
                    .and_then(|()| self.stream.synchronize())
                    .map_err(|error| failed("copying to the host", error))?;
            }
            Ok(values)
        };
        guarded(|| py.detach(copy))
    }
}
