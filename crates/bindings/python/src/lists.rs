//! Integers from Python programs, and lists of selected points.

use crate::errors::raise;
use nearfield::{NeighborLists, lists::Csr};
use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::{
    exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError},
    prelude::*,
};

/// Points of lists in an order.
pub(crate) enum Selection {
    /// As Python counts them.
    Slice {
        begin: isize,
        step: isize,
        count: usize,
    },
    /// One by one.
    Points(Vec<usize>),
}

impl Selection {
    /// The points that an array of numbers or of bools chooses of `len`, as in NumPy.
    pub(crate) fn of(points: &Bound<'_, PyAny>, len: usize) -> PyResult<Self> {
        let numpy = points.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (points,))?;
        let array = array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
        let shape = array.shape().to_vec();
        let (kind, of) = (array.dtype().kind(), array.len());
        match (kind, &shape[..]) {
            (b'b', &[given]) if given == len => {
                let chosen = array.call_method0("nonzero")?.get_item(0)?;
                let chosen = whole_numbers::<u64>(&chosen, "points", u64::MAX)?;
                Ok(Self::Points(
                    chosen.iter().map(|&point| point as usize).collect(),
                ))
            }
            (b'b', _) => Err(PyIndexError::new_err(format!(
                "a mask of shape {shape:?} for the lists of {len} points"
            ))),
            // An empty list is an array of floats.
            (_, &[0]) => Ok(Self::Points(Vec::new())),
            (b'i' | b'u', &[_]) => {
                let mut chosen = room(of, "the points that were chosen")?;
                for point in array.try_iter()? {
                    let point: i128 = point?.extract()?;
                    let from_end = if point < 0 { len as i128 } else { 0 };
                    let index = usize::try_from(point + from_end).ok();
                    let index = index.filter(|index| *index < len).ok_or_else(|| {
                        PyIndexError::new_err(format!(
                            "there is no point {point}: there are lists for {len} points"
                        ))
                    })?;
                    chosen.push(index);
                }
                Ok(Self::Points(chosen))
            }
            _ => Err(PyTypeError::new_err(
                "lists are indexed by a whole number, a slice, or an array of whole numbers or bools \
                 with one axis",
            )),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Slice { count, .. } => *count,
            Self::Points(points) => points.len(),
        }
    }

    /// The point at a place.
    fn at(&self, place: usize) -> usize {
        match self {
            Self::Slice { begin, step, .. } => (begin + step * place as isize) as usize,
            Self::Points(points) => points[place],
        }
    }

    /// Their lists.
    pub(crate) fn copied(&self, from: &NeighborLists) -> PyResult<NeighborLists> {
        const WHAT: &str = "the lists that were chosen";
        let mut offsets = room(self.len() + 1, WHAT)?;
        offsets.push(0);
        let mut end = 0;
        for place in 0..self.len() {
            end += from.count(self.at(place)) as u64;
            offsets.push(end);
        }
        let mut indices = room(end as usize, WHAT)?;
        (0..self.len()).for_each(|place| indices.extend_from_slice(from.of(self.at(place))));
        let lists = NeighborLists::from_csr(Csr { offsets, indices });
        lists.map_err(|error| raise(error.into()))
    }
}

/// Whole numbers from 0 to `max` of an array or a list with one axis, called `what` in messages.
pub(crate) fn whole_numbers<T: Element + Copy>(
    given: &Bound<'_, PyAny>,
    what: &str,
    max: u64,
) -> PyResult<Vec<T>> {
    let py = given.py();
    let array = py.import("numpy")?.call_method1("asarray", (given,))?;
    let untyped = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    let kind = untyped.dtype().kind();
    let empty = untyped.shape() == [0];
    if untyped.ndim() != 1 || !(matches!(kind, b'i' | b'u') || empty) {
        return Err(PyTypeError::new_err(format!(
            "{what} must be whole numbers in an array with one axis, not {} of shape {:?}",
            untyped.dtype(),
            untyped.shape()
        )));
    }
    if !empty {
        for (extreme, place) in [("min", "argmin"), ("max", "argmax")] {
            let number: i128 = array.call_method0(extreme)?.extract()?;
            if !(0..=i128::from(max)).contains(&number) {
                let place: usize = array.call_method0(place)?.extract()?;
                return Err(PyValueError::new_err(format!(
                    "{what}: number {place} is {number}, which is not from 0 to {max}"
                )));
            }
        }
    }
    // Always a copy, which no other thread writes to.
    let own = array.call_method1("astype", (T::get_dtype(py),))?;
    let own = own.cast::<PyArray1<T>>().map_err(PyErr::from)?;
    let mut numbers = room(untyped.len(), what)?;
    numbers.extend_from_slice(own.try_readonly()?.as_slice()?);
    Ok(numbers)
}

/// An empty vector with room for `len` values; `what` names their use in errors.
pub(crate) fn room<T>(len: usize, what: &str) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(len);
    reserved.map_err(|_| {
        let bytes = len.saturating_mul(size_of::<T>());
        PyMemoryError::new_err(format!(
            "{what} would take {bytes} bytes, which the system refuses"
        ))
    })?;
    Ok(values)
}
