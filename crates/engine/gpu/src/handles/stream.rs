//! Streams and events.

use cudarc::driver::{CudaEvent, CudaStream, result::DriverError as RawError};
use std::{ffi::c_void, fmt, sync::Arc};

/// A call of the driver that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DriverError(pub(crate) RawError);

impl DriverError {
    /// The driver's code, a `CUresult`.
    pub fn code(self) -> u32 {
        self.0.0 as u32
    }
}

/// The driver's code, as this crate and the library below hold it.
pub(crate) trait FailedCall {
    fn raw(self) -> RawError;
}

impl FailedCall for DriverError {
    fn raw(self) -> RawError {
        self.0
    }
}

impl FailedCall for RawError {
    fn raw(self) -> RawError {
        self
    }
}

impl fmt::Debug for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DriverError {}

/// A point of a stream that can be waited for.
#[derive(Debug)]
pub struct Event(pub(crate) CudaEvent);

impl Event {
    /// Waits until the stream has passed it.
    ///
    /// # Errors
    /// A failed call of the driver, or a failure of the work that is waited for.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.0.synchronize().map_err(DriverError)
    }
}

/// A stream of a GPU: work that is put on it runs in order. Clones are the same stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream(pub(crate) Arc<CudaStream>);

impl Stream {
    /// The driver's `CUstream`; null for the default stream.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.cu_stream().cast()
    }

    /// The number of its GPU.
    pub fn ordinal(&self) -> usize {
        self.0.context().ordinal()
    }

    /// Waits for everything that was put on it.
    ///
    /// # Errors
    /// A failed call of the driver, or a failure of the work that is waited for.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.0.synchronize().map_err(DriverError)
    }

    /// An event behind what was put on it.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn record_event(&self) -> Result<Event, DriverError> {
        self.0.record_event(None).map(Event).map_err(DriverError)
    }

    /// Lets what follows wait for an event of any stream.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn wait(&self, event: &Event) -> Result<(), DriverError> {
        self.0.wait(&event.0).map_err(DriverError)
    }

    /// Lets what follows wait for what was put on `other`.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn join(&self, other: &Stream) -> Result<(), DriverError> {
        self.0.join(&other.0).map_err(DriverError)
    }
}
