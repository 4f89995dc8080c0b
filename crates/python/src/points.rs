//! Coordinates of the caller, as the engine reads them.

use nearfield::{Positions, Precision};
use numpy::{Element, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods, prelude::*};
use pyo3::{exceptions::PyTypeError, exceptions::PyValueError, prelude::*};
use std::slice;

/// An array of shape (n, 3) or (n, 2), borrowed, or copied where the engine could not read it.
pub(crate) enum Points<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl<'py> Points<'py> {
    /// The coordinates that `object` holds.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = object.cast::<PyUntypedArray>().map_err(|_| {
            PyTypeError::new_err("points must be a NumPy array of float32 or float64")
        })?;
        match array.shape() {
            [_, 2 | 3] => {}
            shape => {
                return Err(PyValueError::new_err(format!(
                    "points must have the shape (n, 3) or (n, 2), not {shape:?}"
                )));
            }
        }
        let readable = is_readable(array);
        let array = match readable {
            true => object.clone(),
            false => object.call_method1("copy", ("C",))?,
        };
        if let Ok(single) = array.extract() {
            return Ok(Self::Single(single));
        }
        array.extract().map(Self::Double).map_err(|_| {
            PyTypeError::new_err("points must be of type float32 or float64: convert by astype")
        })
    }

    /// Whether they have two coordinates each.
    pub(crate) fn are_flat(&self) -> bool {
        let shape = match self {
            Self::Single(array) => array.shape(),
            Self::Double(array) => array.shape(),
        };
        shape[1] == 2
    }

    /// The precision the coordinates are in.
    pub(crate) fn precision(&self) -> Precision {
        match self {
            Self::Single(_) => Precision::Single,
            Self::Double(_) => Precision::Double,
        }
    }

    /// The coordinates where they lie.
    pub(crate) fn positions(&self) -> PyResult<Positions<'_>> {
        match self {
            Self::Single(array) => positions(array, |bytes, stride, rows| {
                Positions::strided(bytes, 0, stride, rows).map_err(|error| error.to_string())
            }),
            Self::Double(array) => positions(array, |bytes, stride, rows| {
                Positions::strided_f64(bytes, 0, stride, rows).map_err(|error| error.to_string())
            }),
        }
    }
}

/// Whether rows lie one behind the other, at any distance, and coordinates side by side; and for two
/// coordinates, whether there is nothing between them.
fn is_readable(array: &Bound<'_, PyUntypedArray>) -> bool {
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    let size = array.dtype().itemsize() as isize;
    let [row, column] = [array.strides()[0], array.strides()[1]];
    let packed = size * columns as isize;
    match columns {
        2 => array.is_c_contiguous(),
        _ => column == size && (rows < 2 || row >= packed),
    }
}

fn positions<'a, T: Element>(
    array: &'a PyReadonlyArray2<'_, T>,
    strided: impl FnOnce(&'a [u8], usize, usize) -> Result<Positions<'a>, String>,
) -> PyResult<Positions<'a>>
where
    Positions<'a>: From<&'a [[T; 3]]> + From<&'a [[T; 2]]>,
{
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    if rows == 0 {
        let none: &[[T; 3]] = &[];
        return Ok(none.into());
    }
    let first = array.data();
    let stride = array.strides()[0];
    if columns == 2 && array.is_c_contiguous() {
        // SAFETY: so many pairs lie side by side in the array, which stays borrowed.
        return Ok(unsafe { slice::from_raw_parts(first.cast::<[T; 2]>(), rows) }.into());
    }
    if array.is_c_contiguous() {
        // SAFETY: so many triples lie side by side in the array, which stays borrowed.
        return Ok(unsafe { slice::from_raw_parts(first.cast::<[T; 3]>(), rows) }.into());
    }
    let size = size_of::<[T; 3]>();
    // One row may have any stride.
    let stride = usize::try_from(stride).unwrap_or(size).max(size);
    let bytes = (rows - 1) * stride + size;
    // SAFETY: `is_readable` has let through arrays of ascending rows alone, so this is what lies
    // between the first and the last coordinate of the array, which stays borrowed.
    let bytes = unsafe { slice::from_raw_parts(first.cast::<u8>(), bytes) };
    strided(bytes, stride, rows).map_err(PyValueError::new_err)
}
