//! Arrays of others, as they describe themselves.

use super::{
    array::Dtype,
    dlpack::{self, DLDataType, Managed},
    stream::StreamNumber,
};
use nearfield::resident::{
    Lent,
    cudarc::driver::{
        CudaStream,
        sys::{self, CUpointer_attribute as Attribute, CUresult},
    },
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::Arc;

/// An array on a GPU, kept for as long as this is.
pub(crate) struct Given {
    what: &'static str,
    pub(crate) pointer: u64,
    pub(crate) shape: Vec<usize>,
    dtype: String,
    packed: bool,
    read_only: bool,
    /// On which its owner works, where that is told.
    pub(crate) stream: Option<StreamNumber>,
    _keep: Keep,
}

/// What keeps the memory; never looked at.
enum Keep {
    Tensor { _tensor: Managed },
    Object { _object: Py<PyAny> },
}

/// Refuses what ResidentEngine.add_points() would refuse before it asks the driver, and returns the
/// address and the shape: for tests where there is no GPU.
#[pyfunction(name = "_check_points")]
#[pyo3(signature = (object, gpu=0, stream=1, writable=false))]
pub(crate) fn check_points(
    object: &Bound<'_, PyAny>,
    gpu: u32,
    stream: i64,
    writable: bool,
) -> PyResult<(u64, Vec<usize>)> {
    let given = Given::of(object, "points", gpu, StreamNumber::new(stream)?)?;
    given.points()?;
    if writable {
        given.writable()?;
    }
    Ok((given.pointer, given.shape))
}

/// Refuses what a call would refuse of an array to be written beside one that is read: for tests
/// where there is no GPU.
#[pyfunction(name = "_check_apart")]
#[pyo3(signature = (read, out, gpu=0, stream=1))]
pub(crate) fn check_apart(
    read: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    gpu: u32,
    stream: i64,
) -> PyResult<()> {
    let stream = StreamNumber::new(stream)?;
    let read = Given::of(read, "mass", gpu, stream)?;
    Given::of(out, "out", gpu, stream)?.apart_from(&read)
}

impl Given {
    /// What `object` holds on GPU `gpu`, ready for `stream` as far as its owner sees to that.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        what: &'static str,
        gpu: u32,
        stream: StreamNumber,
    ) -> PyResult<Self> {
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
            "{what}: {name} is no array on a GPU, which has __dlpack__ or __cuda_array_interface__; \
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
        keywords.set_item("max_version", (dlpack::MAJOR, 0))?;
        let capsule = match dlpack.call((), Some(&keywords)) {
            // Owners from before version 1 do not know that keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                keywords.del_item("max_version")?;
                dlpack.call((), Some(&keywords))?
            }
            capsule => capsule?,
        };
        let tensor = Managed::take(&capsule, what)?;
        let found = tensor.describe(what)?;
        on_gpu(
            (found.device.kind.into(), found.device.id.into()),
            what,
            gpu,
        )?;
        let shape = lengths(&found.shape, what)?;
        let strides = found.strides.as_deref();
        Ok(Self {
            what,
            pointer: found.pointer,
            packed: strides.is_none_or(|strides| are_packed(&shape, strides, 1)),
            shape,
            dtype: name_of(found.dtype),
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
                Some(strides.map_err(|_| odd("strides that are no integers"))?)
            }
        };
        let stream: Option<i64> = match entry("stream")? {
            None => None,
            Some(stream) => Some(
                stream
                    .extract()
                    .map_err(|_| odd("a stream that is no integer"))?,
            ),
        };
        let shape = lengths(&shape, what)?;
        let (dtype, size) = of_typestr(&typestr);
        Ok(Self {
            what,
            pointer,
            packed: strides.is_none_or(|strides| are_packed(&shape, &strides, size)),
            shape,
            dtype,
            read_only,
            stream: stream.map(StreamNumber::new).transpose()?,
            _keep: Keep::Object {
                _object: object.clone().unbind(),
            },
        })
    }

    /// Three coordinates a point; returns how many points.
    pub(crate) fn points(&self) -> PyResult<usize> {
        self.expect(Dtype::F32, |shape| matches!(shape, [_, 3]), "(n, 3)")?;
        Ok(self.shape[0])
    }

    /// So many values of this type.
    pub(crate) fn shaped(&self, dtype: Dtype, wanted: &[usize]) -> PyResult<()> {
        self.expect(dtype, |shape| shape == wanted, &tuple(wanted))
    }

    /// Some float32 for each of so many points; returns how many.
    pub(crate) fn field(&self, points: usize) -> PyResult<usize> {
        let fits = |shape: &[usize]| match shape {
            [rows] => *rows == points,
            [rows, channels] => *rows == points && *channels > 0,
            _ => false,
        };
        self.expect(
            Dtype::F32,
            fits,
            &format!("({points},) or ({points}, channels)"),
        )?;
        Ok(self.shape.get(1).copied().unwrap_or(1))
    }

    fn expect(
        &self,
        dtype: Dtype,
        fits: impl FnOnce(&[usize]) -> bool,
        wanted: &str,
    ) -> PyResult<()> {
        let what = self.what;
        if self.dtype != dtype.name() {
            return Err(PyTypeError::new_err(format!(
                "{what} must be of type {}, not {}",
                dtype.name(),
                self.dtype
            )));
        }
        if !fits(&self.shape) {
            return Err(PyValueError::new_err(format!(
                "{what} must have the shape {wanted}, not {}",
                tuple(&self.shape)
            )));
        }
        if !self.packed {
            return Err(PyValueError::new_err(format!(
                "{what} must lie side by side in memory: make a contiguous copy (ascontiguousarray, \
                 contiguous())"
            )));
        }
        let bytes = self
            .shape
            .iter()
            .try_fold(dtype.size(), |bytes, length| bytes.checked_mul(*length));
        let end = bytes.and_then(|bytes| self.pointer.checked_add(bytes as u64));
        let there = self.pointer != 0 || bytes == Some(0);
        if end.is_none() || !there || !self.pointer.is_multiple_of(dtype.size() as u64) {
            return Err(PyValueError::new_err(format!(
                "{what}: {} values of {} cannot lie at address {:#x}",
                tuple(&self.shape),
                dtype.name(),
                self.pointer
            )));
        }
        Ok(())
    }

    /// Refuses arrays that are to be written and may not be.
    pub(crate) fn writable(&self) -> PyResult<()> {
        match self.read_only {
            false => Ok(()),
            true => Err(PyValueError::new_err(format!("{} is read-only", self.what))),
        }
    }

    /// Refuses an array to be written that shares memory with one that is read by the same work.
    pub(crate) fn apart_from(&self, read: &Self) -> PyResult<()> {
        // What is read and what is written are numbers of 4 bytes (`points`, `shaped`, `field`).
        let end = |given: &Self| {
            let len = given
                .shape
                .iter()
                .fold(1u64, |len, n| len.saturating_mul(*n as u64));
            given.pointer.saturating_add(len.saturating_mul(4))
        };
        let empty = |given: &Self| given.shape.contains(&0);
        let overlap = self.pointer < end(read) && read.pointer < end(self);
        match overlap && !empty(self) && !empty(read) {
            true => Err(PyValueError::new_err(format!(
                "{} shares memory with {}: results need an array of their own",
                self.what, read.what
            ))),
            false => Ok(()),
        }
    }

    /// Asks the driver whose memory this is. The context must be current.
    pub(crate) fn located(&self, gpu: u32) -> PyResult<()> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let what = self.what;
        let kind = attribute(self.pointer, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
        let managed = attribute(self.pointer, Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED);
        match (kind, managed) {
            // On every GPU.
            (Some(_), Some(managed)) if managed & 0xff != 0 => return Ok(()),
            (Some(kind), _) if kind == sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 => {}
            _ => {
                return Err(PyValueError::new_err(format!(
                    "{what}: address {:#x} is not in the memory of a GPU; for arrays of the CPU use \
                     nearfield.Engine",
                    self.pointer
                )));
            }
        }
        let found = attribute(self.pointer, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
        match found {
            Some(found) if found != gpu => Err(elsewhere(what, found.into(), gpu)),
            _ => Ok(()),
        }
    }

    /// The values, all of them; the type was checked by [`points`](Self::points) or its like.
    pub(crate) fn lend<T>(&self, stream: &Arc<CudaStream>) -> Lent<T> {
        let len = self.shape.iter().product();
        // SAFETY: so its owner says, and the driver says that it is memory of this GPU; the engine
        // keeps what it was given until the stream has been waited for.
        unsafe { Lent::new(stream, self.pointer, len) }
    }
}

/// What the driver says of an address; none where it knows nothing.
fn attribute(pointer: u64, attribute: Attribute) -> Option<u32> {
    let mut value = 0u64;
    // SAFETY: these attributes are numbers of at most 32 bits, and an engine has started the driver.
    let asked = unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, pointer) };
    (asked == CUresult::CUDA_SUCCESS).then_some(value as u32)
}

/// Asks an object where it is before anything is exported.
fn on_this_gpu(device: &Bound<'_, PyAny>, what: &str, gpu: u32) -> PyResult<()> {
    let found = device.call0()?;
    let found = found.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "{what}: __dlpack_device__() gave {found}, not the type and the number of a device"
        ))
    })?;
    on_gpu(found, what, gpu)
}

fn on_gpu((kind, number): (i64, i64), what: &str, gpu: u32) -> PyResult<()> {
    match kind {
        dlpack::CUDA if number == i64::from(gpu) => Ok(()),
        dlpack::CUDA => Err(elsewhere(what, number, gpu)),
        dlpack::CPU => Err(PyTypeError::new_err(format!(
            "{what}: an array of the CPU: use nearfield.Engine, or copy it to GPU {gpu}"
        ))),
        _ => Err(PyTypeError::new_err(format!(
            "{what}: an array on a device of type {kind} of DLPack, not on a CUDA GPU ({})",
            dlpack::CUDA
        ))),
    }
}

fn elsewhere(what: &str, found: i64, gpu: u32) -> PyErr {
    PyValueError::new_err(format!(
        "{what}: on GPU {found}, but the engine is on GPU {gpu}"
    ))
}

fn lengths(shape: &[i64], what: &str) -> PyResult<Vec<usize>> {
    let length = |length: &i64| usize::try_from(*length);
    let lengths: Result<_, _> = shape.iter().map(length).collect();
    lengths.map_err(|_| PyValueError::new_err(format!("{what}: a shape of {shape:?}")))
}

/// Whether elements lie one behind the other, the last axis first; strides of axes along which there
/// is nothing to step over say nothing.
fn are_packed(shape: &[usize], strides: &[i64], size: i64) -> bool {
    let mut expected = Some(size);
    let axes = shape.iter().zip(strides).rev();
    let packed = axes.fold(true, |packed, (length, stride)| {
        let fits = *length < 2 || expected == Some(*stride);
        let length = i64::try_from(*length).ok();
        expected = expected.and_then(|bytes| bytes.checked_mul(length?));
        packed && fits
    });
    (packed && shape.len() == strides.len()) || shape.contains(&0)
}

/// As NumPy calls a type.
fn name_of(dtype: DLDataType) -> String {
    let kind = match dtype.code {
        0 => "int",
        dlpack::UNSIGNED => "uint",
        dlpack::FLOAT => "float",
        4 => "bfloat",
        5 => "complex",
        6 => "bool",
        code => return format!("type {code} of DLPack"),
    };
    match dtype.lanes {
        1 => format!("{kind}{}", dtype.bits),
        lanes => format!("{kind}{} by {lanes}", dtype.bits),
    }
}

/// The same, and the bytes of an element; little endian as all GPUs are.
fn of_typestr(typestr: &str) -> (String, i64) {
    let known = |dtype: &Dtype| dtype.typestr() == typestr;
    if let Some(dtype) = Dtype::ALL.iter().find(|dtype| known(dtype)) {
        return (dtype.name().to_owned(), dtype.size() as i64);
    }
    let kind = match typestr.get(1..2) {
        Some("f") => "float",
        Some("i") => "int",
        Some("u") => "uint",
        Some("c") => "complex",
        _ => return (format!("{typestr:?}"), 1),
    };
    match typestr.get(2..).map(str::parse::<i64>) {
        Some(Ok(size @ 1..=32)) if !typestr.starts_with('>') => {
            (format!("{kind}{}", 8 * size), size)
        }
        _ => (format!("{typestr:?}"), 1),
    }
}

/// As Python writes a tuple.
fn tuple(shape: &[usize]) -> String {
    let numbers: Vec<_> = shape.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [one] => format!("({one},)"),
        _ => format!("({})", numbers.join(", ")),
    }
}

/// The same for Python.
pub(crate) fn to_tuple<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, shape)
}
