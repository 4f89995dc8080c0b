//! Memory of results that programs have dropped, for the next results.
//!
//! Fresh memory costs more than the search of a thousand points: the system hands it out page by
//! page, at the first write to each, and it is filled with zeros before pairs are written. So an
//! array of pairs views memory of a [`Lent`], which keeps the memory when the array and all its
//! views are gone.
//!
//! At most 64 MiB in 64 arrays are kept for good. Arrays of 16 MiB and more, up to 1 GiB together, are kept but
//! offered to the system (Linux): it takes their pages as soon as anybody is short of memory, and
//! until then a search that writes to them again waits for no page. [`forget`] frees everything.

use crate::lists::room;
use nearfield::systems::{PairColumns, Quantities};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2,
    ndarray::{Array2, ArrayView1, ArrayView2},
};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{any::Any, mem::take, ops::Range, sync::Mutex};

/// Bytes that are kept at most, but for those that the system may take.
const MAX_FIRM_BYTES: usize = 1 << 26;
/// Bytes that are kept at most.
const MAX_BYTES: usize = 1 << 30;
/// Bytes of an array from which the system may take it.
const MIN_OFFERED_BYTES: usize = 1 << 24;
/// Arrays that are kept at most.
const MAX_ARRAYS: usize = 64;
/// Bytes of an array that is worth it: less is filled with zeros in no time.
const MIN_BYTES: usize = 1 << 13;
/// Points from which on results are large: they take no memory of small ones, which would have to
/// grow, and leave theirs to others like them.
const MANY: usize = 128;
/// Bytes of the arrays that few points, and many points, take.
const OF_FEW: Range<usize> = 0..1 << 19;
const OF_MANY: Range<usize> = 1 << 16..usize::MAX;

/// Memory that arrays view.
#[pyclass(name = "_Memory", module = "nearfield", frozen)]
pub(crate) struct Lent {
    /// `None` while it is dropped.
    values: Option<Held>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(values) = self.values.take() {
            keep(values);
        }
    }
}

/// A vector of numbers, whatever they are, and its allocation.
struct Held {
    values: Box<dyn Any + Send + Sync>,
    begin: usize,
    bytes: usize,
}

impl Held {
    fn of<V: Copy + Send + Sync + 'static>(mut values: Vec<V>) -> Self {
        Self {
            begin: values.as_mut_ptr().expose_provenance(),
            bytes: values.capacity() * size_of::<V>(),
            values: Box::new(values),
        }
    }

    /// Whether the system may take its pages.
    fn is_offered(&self) -> bool {
        cfg!(target_os = "linux") && self.bytes >= MIN_OFFERED_BYTES
    }

    /// Lets the system take the pages until they are written again. Their contents are
    /// unspecified from now on.
    #[cfg(target_os = "linux")]
    fn offer(&self) {
        use std::{
            ffi::{c_int, c_void},
            ptr::with_exposed_provenance_mut,
        };
        const PAGE: usize = 4096;
        const MADV_FREE: c_int = 8;
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        let begin = self.begin.next_multiple_of(PAGE);
        let bytes = (self.begin + self.bytes).saturating_sub(begin) / PAGE * PAGE;
        // SAFETY: whole pages within an allocation that `values` owns and nobody views. They may
        // turn into zeros, which are numbers of every type too, and whoever takes the vector
        // writes before it reads. A refusal changes nothing.
        unsafe {
            let _ = madvise(with_exposed_provenance_mut(begin), bytes, MADV_FREE);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn offer(&self) {}
}

/// Vectors, that of the last result last.
static KEPT: Mutex<Vec<Held>> = Mutex::new(Vec::new());

fn keep(held: Held) {
    if held.is_offered() {
        held.offer();
    } else if held.bytes > MAX_FIRM_BYTES {
        return;
    }
    // Freed after the lock is released.
    let _forgotten: Vec<Held> = match KEPT.try_lock() {
        Ok(mut kept) => {
            kept.push(held);
            // None fits at the least.
            let mut forgotten = 0;
            while !fit(&kept[forgotten..]) {
                forgotten += 1;
            }
            kept.drain(..forgotten).collect()
        }
        Err(_) => Vec::new(),
    };
}

/// Whether vectors may be kept together.
fn fit(kept: &[Held]) -> bool {
    if kept.len() > MAX_ARRAYS {
        return false;
    }
    let all: usize = kept.iter().map(|held| held.bytes).sum();
    let firm = kept.iter().filter(|held| !held.is_offered());
    all <= MAX_BYTES && firm.map(|held| held.bytes).sum::<usize>() <= MAX_FIRM_BYTES
}

/// Frees what is kept.
#[pyfunction]
#[pyo3(name = "_forget_memory")]
pub(crate) fn forget() {
    let _forgotten = KEPT.try_lock().map(|mut kept| take(&mut *kept));
}

/// A vector of an earlier result, of any length and contents and of so many bytes, if it is wanted.
fn taken<T: Send + Sync + 'static>(wanted: bool, bytes: &Range<usize>) -> Vec<T> {
    if !wanted {
        return Vec::new();
    }
    let fits = |held: &Held| bytes.contains(&held.bytes) && held.values.is::<Vec<T>>();
    let found = KEPT.try_lock().ok().and_then(|mut kept| {
        let place = kept.iter().rposition(fits)?;
        Some(kept.remove(place).values)
    });
    let vector = found.and_then(|values| values.downcast().ok());
    vector.map_or_else(Vec::new, |vector| *vector)
}

/// Arrays of earlier results for those that are wanted of so many points.
pub(crate) fn columns<T: Element + 'static, I: Element + 'static>(
    wanted: Quantities,
    points: usize,
) -> PairColumns<T, I> {
    let bytes = if points < MANY { OF_FEW } else { OF_MANY };
    PairColumns {
        offsets: Vec::new(),
        targets: taken(wanted.targets, &bytes),
        sources: taken(wanted.sources, &bytes),
        images: taken(wanted.images, &bytes),
        displacements: taken(wanted.displacements, &bytes),
        distances: taken(wanted.distances, &bytes),
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
        keep(Held::of(values));
        return Ok(Err(copy));
    }
    let values = Some(Held::of(values));
    Bound::new(py, Lent { values }).map(Ok)
}
