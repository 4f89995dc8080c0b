//! Arrays of other libraries, by their own descriptions.

use super::{
    dlpack::ForeignTensor,
    layout::{ArrayError, CPU, CUDA, Dtype, Layout, MAJOR},
    stream::StreamNumber,
};
use nearfield::device::{
    DeviceValue, Lent, Stream,
    interop::{MemoryKind, memory_at},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};

/// An array on a GPU that the caller passed, kept alive by this value.
pub(crate) struct GivenArray {
    layout: Layout,
    read_only: bool,
    /// The stream on which its owner works, if known.
    pub(crate) stream: Option<StreamNumber>,
    _keep: Keep,
}

impl std::ops::Deref for GivenArray {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}

impl From<ArrayError> for PyErr {
    fn from(refused: ArrayError) -> Self {
        match refused {
            ArrayError::Type(text) => PyTypeError::new_err(text),
            ArrayError::Value(text) => PyValueError::new_err(text),
        }
    }
}

/// Owner that keeps the memory alive; never read.
enum Keep {
    Tensor { _tensor: ForeignTensor },
    Object { _object: Py<PyAny> },
}

/// A packed array of a library that the package's own modules know, ready for the stream of the
/// engine that it is for: they read its address, where DLPack would be asked for a capsule.
#[pyclass(name = "_ArrayAt", module = "nearfield", frozen)]
pub(crate) struct PyArrayAt {
    owner: Py<PyAny>,
    pointer: u64,
    shape: Vec<i64>,
    typestr: String,
}

#[pymethods]
impl PyArrayAt {
    #[new]
    fn new(owner: Py<PyAny>, pointer: u64, shape: Vec<i64>, typestr: String) -> Self {
        Self {
            owner,
            pointer,
            shape,
            typestr,
        }
    }
}

/// Refuses what DeviceEngine.add_points() would refuse before it asks the driver, and returns the
/// address and the shape: for tests where there is no GPU.
#[pyfunction(name = "_check_points")]
#[pyo3(signature = (object, gpu=0, stream=1, writable=false))]
pub(crate) fn check_points(
    object: &Bound<'_, PyAny>,
    gpu: u32,
    stream: i64,
    writable: bool,
) -> PyResult<(u64, Vec<usize>)> {
    let given = GivenArray::of(object, "points", gpu, StreamNumber::new(stream)?)?;
    given.points(Dtype::F32)?;
    if writable {
        given.writable()?;
    }
    Ok((given.pointer, given.shape.clone()))
}

/// Makes the checks of a call that writes one array and reads another, for tests without a GPU.
#[pyfunction(name = "_check_apart")]
#[pyo3(signature = (read, out, gpu=0, stream=1))]
pub(crate) fn check_apart(
    read: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    gpu: u32,
    stream: i64,
) -> PyResult<()> {
    let stream = StreamNumber::new(stream)?;
    let read = GivenArray::of(read, "mass", gpu, stream)?;
    GivenArray::of(out, "out", gpu, stream)?.apart_from(&read)
}

impl GivenArray {
    /// The array that `object` holds on GPU `gpu`, ready for `stream` if its owner synchronises.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        what: &'static str,
        gpu: u32,
        stream: StreamNumber,
    ) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArrayAt>() {
            let (array, py) = (array.get(), object.py());
            let (pointer, shape) = (array.pointer, &array.shape);
            return Ok(Self {
                layout: Layout::of_interface(what, pointer, shape, &array.typestr, None)?,
                read_only: false,
                stream: None,
                _keep: Keep::Object {
                    _object: array.owner.clone_ref(py),
                },
            });
        }
        if let (Some(device), Some(tensor)) = (
            object.getattr_opt("__dlpack_device__")?,
            object.getattr_opt("__dlpack__")?,
        ) {
            on_this_gpu(&device, what, gpu)?;
            return Self::tensor(&tensor, what, gpu, stream);
        }
        if let Some(interface) = object.getattr_opt("__cuda_array_interface__")? {
            return Self::interface(object, &interface, what);
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "{what}: {name} is not an array on a GPU, which has __dlpack__ or __cuda_array_interface__; \
             for arrays of the CPU use nearfield.Engine"
        )))
    }

    fn tensor(
        dlpack: &Bound<'_, PyAny>,
        what: &'static str,
        gpu: u32,
        stream: StreamNumber,
    ) -> PyResult<Self> {
        let py = dlpack.py();
        let keywords = PyDict::new(py);
        keywords.set_item("stream", stream.get())?;
        keywords.set_item("max_version", (MAJOR, 0))?;
        let capsule = match dlpack.call((), Some(&keywords)) {
            // Owners from before version 1 do not know that keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                keywords.del_item("max_version")?;
                dlpack.call((), Some(&keywords))?
            }
            capsule => capsule?,
        };
        let tensor = ForeignTensor::take(&capsule, what)?;
        let found = tensor.describe(what)?;
        on_gpu(found.device.kind.into(), found.device.id.into(), what, gpu)?;
        Ok(Self {
            layout: Layout::of_tensor(&found, what)?,
            read_only: found.read_only,
            stream: None,
            _keep: Keep::Tensor { _tensor: tensor },
        })
    }

    fn interface(
        object: &Bound<'_, PyAny>,
        interface: &Bound<'_, PyAny>,
        what: &'static str,
    ) -> PyResult<Self> {
        let odd =
            |why: &str| PyTypeError::new_err(format!("{what}: __cuda_array_interface__ has {why}"));
        let interface = interface
            .cast::<PyDict>()
            .map_err(|_| odd("no dictionary"))?;
        let entry = |key: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            Ok(interface.get_item(key)?.filter(|value| !value.is_none()))
        };
        let shape: Vec<i64> = entry("shape")?
            .and_then(|shape| shape.extract().ok())
            .ok_or_else(|| odd("no shape of integers"))?;
        let typestr: String = entry("typestr")?
            .and_then(|typestr| typestr.extract().ok())
            .ok_or_else(|| odd("no typestr"))?;
        let (pointer, read_only): (u64, bool) = entry("data")?
            .and_then(|data| data.extract().ok())
            .ok_or_else(|| odd("no data (address, read-only)"))?;
        if entry("mask")?.is_some() {
            return Err(odd("a mask, which is not understood"));
        }
        let strides: Option<Vec<i64>> = match entry("strides")? {
            None => None,
            Some(strides) => {
                let strides = strides.extract();
                Some(strides.map_err(|_| odd("strides that are not integers"))?)
            }
        };
        let stream: Option<i64> = match entry("stream")? {
            None => None,
            Some(stream) => Some(
                stream
                    .extract()
                    .map_err(|_| odd("a stream that is not an integer"))?,
            ),
        };
        Ok(Self {
            layout: Layout::of_interface(what, pointer, &shape, &typestr, strides.as_deref())?,
            read_only,
            stream: stream.map(StreamNumber::new).transpose()?,
            _keep: Keep::Object {
                _object: object.clone().unbind(),
            },
        })
    }

    /// Refuses arrays that are to be written and may not be.
    pub(crate) fn writable(&self) -> PyResult<()> {
        if self.read_only {
            let text = format!("{} is read-only", self.what);
            return Err(PyValueError::new_err(text));
        }
        Ok(())
    }

    /// Refuses an array to be written that shares memory with one that is read by the same work.
    pub(crate) fn apart_from(&self, read: &Self) -> PyResult<()> {
        let end = |given: &Self| {
            let bytes = given.shape.iter().fold(given.element_bytes(), |bytes, n| {
                bytes.saturating_mul(*n as u64)
            });
            given.pointer.saturating_add(bytes)
        };
        let empty = |given: &Self| given.shape.contains(&0);
        let overlap = self.pointer < end(read) && read.pointer < end(self);
        if overlap && !empty(self) && !empty(read) {
            return Err(PyValueError::new_err(format!(
                "{} shares memory with {}: results need an array of their own",
                self.what, read.what
            )));
        }
        Ok(())
    }

    /// Asks the driver whose memory this is. The context must be current.
    pub(crate) fn located(&self, gpu: u32) -> PyResult<()> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let what = self.what;
        match memory_at(self.pointer) {
            // On every GPU.
            Some(MemoryKind::Managed) => Ok(()),
            Some(MemoryKind::Gpu(Some(found))) if found != gpu => {
                Err(elsewhere(what, found.into(), gpu))
            }
            Some(MemoryKind::Gpu(_)) => Ok(()),
            Some(MemoryKind::Host) | None => Err(PyValueError::new_err(format!(
                "{what}: address {:#x} is not in the memory of a GPU; for arrays of the CPU use \
                 nearfield.Engine",
                self.pointer
            ))),
        }
    }

    /// The values, all of them; the type was checked by [`points`](Self::points) or its like.
    pub(crate) fn lend<T: DeviceValue>(&self, stream: &Stream) -> Lent<T> {
        let len = self.shape.iter().product();
        // SAFETY: so its owner says, and the driver says that it is memory of this GPU; the engine
        // keeps what it was given until the stream has been waited for.
        unsafe { Lent::new(stream, self.pointer, len) }
    }
}

/// Whether an object says that it is an array on a GPU; all others may be arrays of the host.
pub(crate) fn is_on_gpu(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyArrayAt>() {
        return Ok(true);
    }
    match object.getattr_opt("__dlpack_device__")? {
        Some(device) => Ok(device.call0()?.extract::<(i64, i64)>()?.0 == CUDA),
        None => Ok(object.getattr_opt("__cuda_array_interface__")?.is_some()),
    }
}

/// Asks an object where it is before anything is exported.
fn on_this_gpu(device: &Bound<'_, PyAny>, what: &str, gpu: u32) -> PyResult<()> {
    let found = device.call0()?;
    let (kind, number) = found.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "{what}: __dlpack_device__() gave {found}, not the type and the number of a device"
        ))
    })?;
    on_gpu(kind, number, what, gpu)
}

fn on_gpu(kind: i64, number: i64, what: &str, gpu: u32) -> PyResult<()> {
    match kind {
        CUDA if number == i64::from(gpu) => Ok(()),
        CUDA => Err(elsewhere(what, number, gpu)),
        CPU => Err(PyTypeError::new_err(format!(
            "{what}: an array of the CPU: use nearfield.Engine, or copy it to GPU {gpu}"
        ))),
        _ => Err(PyTypeError::new_err(format!(
            "{what}: an array on a device of type {kind} of DLPack, not on a CUDA GPU ({})",
            CUDA
        ))),
    }
}

fn elsewhere(what: &str, found: i64, gpu: u32) -> PyErr {
    PyValueError::new_err(format!(
        "{what}: on GPU {found}, but the engine is on GPU {gpu}"
    ))
}
