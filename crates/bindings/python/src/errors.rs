//! Converts errors of the engine to Python exceptions.

use nearfield::{
    Error, ErrorKind, PointSetId,
    error::{gpu::ErrorKind as GpuErrorKind, grid},
};
use pyo3::{
    PyErr, PyResult,
    exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyValueError},
};

/// The set with a number, by the engine's `point_set`.
pub(crate) fn set_named(
    number: usize,
    point_set: impl FnOnce(u32) -> Result<PointSetId, Error>,
) -> PyResult<PointSetId> {
    let known = u32::try_from(number);
    let known =
        known.map_err(|_| PyIndexError::new_err(format!("there is no point set {number}")))?;
    point_set(known).map_err(raise)
}

/// `ValueError` for what was passed, `IndexError` for a set or point that is not there,
/// `MemoryError`, and `RuntimeError` for devices and for calls in the wrong order; the text names
/// the culprit.
pub(crate) fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        _ if error.is_out_of_memory() => PyMemoryError::new_err(text),
        // In the words of this interface.
        ErrorKind::MemoryLimit {
            what,
            needed,
            limit,
        } => PyMemoryError::new_err(format!(
            "{what} would take {needed} bytes, but memory_limit is {limit}: raise it, ask for some \
             at a time (chunks(), neighbors_of(), query()), or do without lists (count_neighbors(), \
             sph_density())"
        )),
        // In the words of this interface too, in which a type is not a precision.
        ErrorKind::Positions { source, .. } | ErrorKind::Query(source)
            if matches!(source.kind(), grid::ErrorKind::Precision) =>
        {
            PyValueError::new_err(
                "the coordinates are float64, but the engine works in float32 and would have to \
                 round them: make it with precision=\"f64\", or convert them by \
                 astype(numpy.float32)",
            )
        }
        ErrorKind::ListTooLong { .. } => PyMemoryError::new_err(text),
        ErrorKind::UnknownPointSet { .. }
        | ErrorKind::RemovedPointSet { .. }
        | ErrorKind::UnknownPoint { .. } => PyIndexError::new_err(text),
        // Found on the device, but passed by the caller.
        ErrorKind::OnDevice { source, .. }
            if matches!(
                source.kind(),
                GpuErrorKind::NotFinite { .. } | GpuErrorKind::PointNumbers { .. }
            ) =>
        {
            PyValueError::new_err(text)
        }
        ErrorKind::DeviceUnavailable { .. }
        | ErrorKind::Gpu(_)
        | ErrorKind::OnDevice { .. }
        | ErrorKind::NoLists { .. }
        | ErrorKind::NeedsRefresh { .. } => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
