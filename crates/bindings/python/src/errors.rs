//! Errors of the engine as Python's own exceptions.

use nearfield::{Error, device::GpuError};
use pyo3::{
    PyErr,
    exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyValueError},
};

/// `ValueError` for what was passed, `IndexError` for a set or point that is not there,
/// `MemoryError`, and `RuntimeError` for devices and for calls in the wrong order; the text names
/// the culprit.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        error if error.is_out_of_memory() => PyMemoryError::new_err(text),
        Error::MemoryLimit { .. } | Error::ListTooLong { .. } => PyMemoryError::new_err(text),
        Error::UnknownPointSet { .. } | Error::UnknownPoint { .. } => PyIndexError::new_err(text),
        // Found on the device, but passed by the caller.
        Error::OnDevice {
            source: GpuError::NotFinite { .. },
            ..
        } => PyValueError::new_err(text),
        Error::DeviceUnavailable { .. }
        | Error::Gpu(_)
        | Error::OnDevice { .. }
        | Error::NoLists { .. } => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
