//! Streams by their numbers in Python, and the current context.

/// The context that is current, as other libraries choose it.
pub(crate) use nearfield::device::interop::CurrentContext as Current;
use nearfield::device::{DriverError, Stream};
use pyo3::{PyErr, PyResult, exceptions::PyRuntimeError, exceptions::PyValueError};
use std::{ffi::c_void, mem::ManuallyDrop, ops::Deref, ptr};

/// The number of the legacy default stream, which has no address.
const LEGACY: i64 = 1;
/// The number of the default stream of the calling thread.
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

    pub(crate) fn of(stream: &Stream) -> Self {
        match stream.as_raw().addr() {
            0 => Self(LEGACY),
            address => Self(address as i64),
        }
    }

    pub(crate) fn get(self) -> i64 {
        self.0
    }

    /// For calls of the driver, which know the legacy stream as null.
    pub(crate) fn handle(self) -> *mut c_void {
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
    pub(crate) fn keep(self, stream: &Stream, other: StreamNumber) -> PyResult<()> {
        if other == StreamNumber::of(stream) {
            return Ok(());
        }
        // SAFETY: by the convention of the protocols a number above 2 is a stream that exists, and
        // it is used for this call only; there is no way to ask the driver.
        let other = unsafe { stream.context().borrow_stream(other.handle()) };
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

/// A stream, kept. With its last owner the context may go, and that changes which one is current.
pub(crate) struct KeptStream(ManuallyDrop<Stream>);

impl KeptStream {
    pub(crate) fn new(stream: &Stream) -> Self {
        Self(ManuallyDrop::new(stream.clone()))
    }
}

impl Deref for KeptStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.0
    }
}

impl Drop for KeptStream {
    fn drop(&mut self) {
        let _current = Current::enter(&self.0.context());
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}
