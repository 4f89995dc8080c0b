//! Memory of results that programs have dropped, for the next results.
//!
//! Fresh memory costs more than the search of a thousand points: the system hands it out page by
//! page, at the first write to each. So an array of pairs views memory of a [`Lent`], which keeps
//! the memory when the array and all its views are gone. At most 64 MiB are kept.

use crate::lists::room;
use nearfield::systems::{PairColumns, Quantities};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2,
    ndarray::{Array2, ArrayView1, ArrayView2},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{any::Any, sync::Mutex};

/// Bytes that are kept at most.
const MAX_BYTES: usize = 1 << 26;
/// Bytes of an array that is worth it: the allocator keeps less itself.
const MIN_BYTES: usize = 1 << 16;

/// Memory that arrays view.
#[pyclass(name = "_Memory", module = "nearfield", frozen)]
pub(crate) struct Lent {
    /// A vector; `None` while it is dropped.
    values: Option<Box<dyn Any + Send + Sync>>,
    bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(values) = self.values.take() {
            keep(values, self.bytes);
        }
    }
}

/// Vectors with their bytes, those of the last result last.
type Kept = Vec<(usize, Box<dyn Any + Send + Sync>)>;

static KEPT: Mutex<Kept> = Mutex::new(Vec::new());

fn keep(values: Box<dyn Any + Send + Sync>, bytes: usize) {
    if bytes > MAX_BYTES {
        return;
    }
    // Freed after the lock is released.
    let _forgotten: Kept = match KEPT.try_lock() {
        Ok(mut kept) => {
            kept.push((bytes, values));
            let mut all: usize = kept.iter().map(|(bytes, _)| bytes).sum();
            let is_too_much = |(bytes, _): &&(usize, _)| {
                let is_too_much = all > MAX_BYTES;
                all -= if is_too_much { *bytes } else { 0 };
                is_too_much
            };
            let forgotten = kept.iter().take_while(is_too_much).count();
            kept.drain(..forgotten).collect()
        }
        Err(_) => Vec::new(),
    };
}

/// A vector of an earlier result, of any length and contents, if it is wanted.
fn taken<T: Send + Sync + 'static>(wanted: bool) -> Vec<T> {
    if !wanted {
        return Vec::new();
    }
    let found = KEPT.try_lock().ok().and_then(|mut kept| {
        let place = kept.iter().rposition(|(_, values)| values.is::<Vec<T>>())?;
        Some(kept.remove(place).1)
    });
    let vector = found.and_then(|values| values.downcast().ok());
    vector.map_or_else(Vec::new, |vector| *vector)
}

/// Arrays of earlier results for those that are wanted.
pub(crate) fn columns<T: Element + 'static, I: Element + 'static>(
    wanted: Quantities,
) -> PairColumns<T, I> {
    PairColumns {
        offsets: Vec::new(),
        targets: taken(wanted.targets),
        sources: taken(wanted.sources),
        images: taken(wanted.images),
        displacements: taken(wanted.displacements),
        distances: taken(wanted.distances),
    }
}

/// Values as an array.
pub(crate) fn array<T: Element + Copy + 'static>(
    py: Python<'_>,
    mut values: Vec<T>,
) -> PyResult<Bound<'_, PyAny>> {
    let (begin, len) = (values.as_mut_ptr(), values.len());
    match lent(py, values)? {
        Ok(lent) => {
            // SAFETY: the vector stays where it is until the object that has it is dropped, and the
            // array refers to that object. Programs may write through the array, whose pointer is
            // therefore that of an exclusive borrow; nothing else looks at the values before.
            let array = unsafe {
                let view = ArrayView1::from_shape_ptr(len, begin);
                PyArray1::borrow_from_array(&view, lent.into_any())
            };
            Ok(array.into_any())
        }
        Err(values) => Ok(values.into_pyarray(py).into_any()),
    }
}

/// Rows of three numbers as an array.
pub(crate) fn rows<T: Element + Copy + 'static>(
    py: Python<'_>,
    mut values: Vec<[T; 3]>,
) -> PyResult<Bound<'_, PyAny>> {
    let (begin, len) = (values.as_mut_ptr().cast::<T>(), values.len());
    match lent(py, values)? {
        Ok(lent) => {
            // SAFETY: as for one axis; rows lie one behind the other.
            let array = unsafe {
                let view = ArrayView2::from_shape_ptr((len, 3), begin);
                PyArray2::borrow_from_array(&view, lent.into_any())
            };
            Ok(array.into_any())
        }
        Err(values) => table(py, values.into_flattened(), 3),
    }
}

/// An array of rows of so many numbers.
pub(crate) fn table<T: Element>(
    py: Python<'_>,
    numbers: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let rows = Array2::from_shape_vec((numbers.len() / columns, columns), numbers);
    let rows = rows.map_err(|odd| PyRuntimeError::new_err(odd.to_string()))?;
    Ok(rows.into_pyarray(py).into_any())
}

/// An object that keeps values, or the values where that is not worth it.
fn lent<V: Copy + Send + Sync + 'static>(
    py: Python<'_>,
    values: Vec<V>,
) -> PyResult<Result<Bound<'_, Lent>, Vec<V>>> {
    let bytes = values.capacity() * size_of::<V>();
    if bytes < MIN_BYTES {
        return Ok(Err(values));
    }
    if size_of_val(values.as_slice()) < bytes / 4 {
        // Memory of a larger result: a program may keep the small one for long.
        let mut copy = room(values.len(), "the pairs")?;
        copy.extend_from_slice(&values);
        keep(Box::new(values), bytes);
        return Ok(Err(copy));
    }
    let values: Option<Box<dyn Any + Send + Sync>> = Some(Box::new(values));
    Bound::new(py, Lent { values, bytes }).map(Ok)
}
