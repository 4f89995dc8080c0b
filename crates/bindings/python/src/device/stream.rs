//! Streams by their numbers in Python, and the current context.

use nearfield::device::cudarc::driver::{
    CudaContext, CudaStream, DriverError, result,
    sys::{CUcontext, CUstream},
};
use pyo3::{PyErr, PyResult, exceptions::PyRuntimeError, exceptions::PyValueError};
use std::{mem::ManuallyDrop, ops::Deref, ptr, sync::Arc};

/// The number of the legacy default stream, which has no address.
const LEGACY: i64 = 1;
/// That of the default stream of the calling thread.
const PER_THREAD: i64 = 2;

/// A stream by its number: 1 and 2 are the default streams, any other is a `CUstream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamNumber(i64);

impl StreamNumber {
    /// A stream of the owner or the consumer of an array.
    pub(crate) fn new(number: i64) -> PyResult<Self> {
        match number {
            LEGACY.. => Ok(Self(number)),
            _ => Err(PyValueError::new_err(format!(
                "stream {number}: 1 is the default stream, 2 that of the thread, any other the \
                 address of a CUstream"
            ))),
        }
    }

    /// One to work on, by default the stream on which others work unless told otherwise.
    pub(crate) fn of_engine(number: Option<i64>) -> PyResult<Self> {
        match number {
            // Another for every thread, so that nothing would order the engine's work.
            Some(PER_THREAD) => Err(PyValueError::new_err(
                "stream 2 is another in every thread: an engine needs 1 or the address of a CUstream",
            )),
            _ => Self::new(number.unwrap_or(LEGACY)),
        }
    }

    pub(crate) fn of(stream: &CudaStream) -> Self {
        match stream.cu_stream().addr() {
            0 => Self(LEGACY),
            address => Self(address as i64),
        }
    }

    pub(crate) fn get(self) -> i64 {
        self.0
    }

    /// For calls of the driver, which know the legacy stream as null.
    pub(crate) fn handle(self) -> CUstream {
        match self.0 {
            LEGACY => ptr::null_mut(),
            number => ptr::without_provenance_mut(number as usize),
        }
    }
}

/// Lets what `other` is given from now on wait for what `stream` has been given, or the other way
/// round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    OtherFirst,
    OtherAfter,
}

impl Order {
    pub(crate) fn keep(self, stream: &CudaStream, other: StreamNumber) -> PyResult<()> {
        if other == StreamNumber::of(stream) {
            return Ok(());
        }
        // SAFETY: by the convention of the protocols a number above 2 is a stream that exists, and
        // it is used for this call only; there is no way to ask the driver.
        let other = unsafe { stream.context().wrap_borrowed_stream(other.handle()) };
        let ordered = match self {
            Self::OtherFirst => stream.join(&other),
            Self::OtherAfter => other.join(stream),
        };
        ordered.map_err(|error| failed("ordering two streams", error))
    }
}

/// A call of the driver has failed.
pub(crate) fn failed(what: &str, error: DriverError) -> PyErr {
    PyRuntimeError::new_err(format!("{what}: {error}"))
}

/// The GPU's context is this thread's current one; the one before is again afterwards, because to
/// other libraries the current context says which GPU is chosen.
pub(crate) struct Current {
    before: Option<CUcontext>,
}

impl Current {
    pub(crate) fn enter(context: &CudaContext) -> Self {
        let before = Self::now();
        let own = context.cu_ctx();
        if before == own {
            return Self { before: None };
        }
        // Where this fails, so does the call that it is for.
        // SAFETY: the context lives as long as the object that holds it.
        let _ = unsafe { result::ctx::set_current(own) };
        Self {
            before: Some(before),
        }
    }

    /// As it is before there is an engine, whose making changes it.
    pub(crate) fn as_it_is() -> Self {
        // SAFETY: this loads the driver's library, whose initialisers need nothing from us.
        let there = unsafe { nearfield::device::cudarc::driver::sys::is_culib_present() };
        Self {
            before: there.then(Self::now),
        }
    }

    fn now() -> CUcontext {
        result::ctx::get_current()
            .ok()
            .flatten()
            .unwrap_or(ptr::null_mut())
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: null, or current before; the driver refuses one that was destroyed since.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// A stream, kept. With its last owner the context may go, and that changes which one is current.
pub(crate) struct Stream(ManuallyDrop<Arc<CudaStream>>);

impl Stream {
    pub(crate) fn new(stream: &Arc<CudaStream>) -> Self {
        Self(ManuallyDrop::new(stream.clone()))
    }
}

impl Deref for Stream {
    type Target = Arc<CudaStream>;

    fn deref(&self) -> &Arc<CudaStream> {
        &self.0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _current = Current::enter(self.0.context());
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}
