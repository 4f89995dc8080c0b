//! Errors of the engine as Python's own exceptions.

use nearfield::{Error, ErrorKind, device::GpuErrorKind};
use pyo3::{
    PyErr,
    exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyValueError},
};

/// `ValueError` for what was passed, `IndexError` for a set or point that is not there,
/// `MemoryError`, and `RuntimeError` for devices and for calls in the wrong order; the text names
/// the culprit.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        _ if error.is_out_of_memory() => PyMemoryError::new_err(text),
        ErrorKind::MemoryLimit { .. } | ErrorKind::ListTooLong { .. } => {
            PyMemoryError::new_err(text)
        }
        ErrorKind::UnknownPointSet { .. } | ErrorKind::UnknownPoint { .. } => {
            PyIndexError::new_err(text)
        }
        // Found on the device, but passed by the caller.
        ErrorKind::OnDevice { source, .. }
            if matches!(source.kind(), GpuErrorKind::NotFinite { .. }) =>
        {
            PyValueError::new_err(text)
        }
        ErrorKind::DeviceUnavailable { .. }
        | ErrorKind::Gpu(_)
        | ErrorKind::OnDevice { .. }
        | ErrorKind::NoLists { .. } => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
