//! Lists that Python owns.

use crate::{call::guarded, errors::raise};
use nearfield::NeighborLists;
use numpy::{Element, IntoPyArray, PyArray1, ndarray::ArrayView1};
use pyo3::{exceptions::PyIndexError, prelude::*};

/// Neighbour lists: the neighbours of point i are the ``count[i]`` entries of ``indices`` from
/// ``start[i]`` on, by their index in the set that was searched, once per periodic image.
///
/// ``lists[i]`` is that slice; ``len(lists)`` is the number of points. All arrays view memory of
/// the library without a copy, are read-only and stay valid as long as anything refers to them.
#[pyclass(name = "Neighbors", module = "nearfield")]
pub(crate) struct PyNeighbors {
    pub(crate) lists: NeighborLists,
}

#[pymethods]
impl PyNeighbors {
    /// First entry of the list of every point; shape (n,), uint64.
    #[getter]
    fn start<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        view(this, NeighborLists::starts)
    }

    /// Number of neighbours of every point; shape (n,), uint32.
    #[getter]
    fn count<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        view(this, NeighborLists::counts)
    }

    /// The lists, with entries between them that belong to none; shape (m,), uint32.
    #[getter]
    fn indices<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        view(this, NeighborLists::storage)
    }

    /// Number of neighbours of all points together.
    #[getter]
    fn pairs(&self) -> u64 {
        self.lists.pairs()
    }

    /// Copies of the lists one behind the other: ``(offsets, indices)``, of shapes (n + 1,) and
    /// (pairs,); the neighbours of point i are ``indices[offsets[i]:offsets[i + 1]]``.
    ///
    /// >>> offsets, indices = lists.csr()
    /// >>> scipy.sparse.csr_array((np.ones(lists.pairs), indices, offsets))
    #[expect(clippy::type_complexity, reason = "a tuple is what Python sees")]
    fn csr<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>)> {
        let csr = guarded(|| {
            py.detach(|| self.lists.to_csr())
                .map_err(|error| raise(error.into()))
        })?;
        Ok((csr.offsets.into_pyarray(py), csr.indices.into_pyarray(py)))
    }

    fn __len__(&self) -> usize {
        self.lists.len()
    }

    fn __getitem__<'py>(
        this: &Bound<'py, Self>,
        point: isize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let len = this.try_borrow()?.lists.len();
        let from_end = if point < 0 { len as isize } else { 0 };
        let index = usize::try_from(point + from_end)
            .ok()
            .filter(|index| *index < len);
        let index = index.ok_or_else(|| {
            PyIndexError::new_err(format!(
                "there is no point {point}: the lists are those of {len}"
            ))
        })?;
        view(this, |lists| lists.of(index))
    }

    fn __repr__(&self) -> String {
        format!(
            "<nearfield.Neighbors of {} points, {} pairs>",
            self.lists.len(),
            self.lists.pairs()
        )
    }
}

/// A read-only array that views memory of the lists and keeps them.
fn view<'py, T: Element>(
    this: &Bound<'py, PyNeighbors>,
    part: impl FnOnce(&NeighborLists) -> &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let owner = this.try_borrow()?;
    let values = ArrayView1::from(part(&owner.lists));
    // SAFETY: the lists stay where they are as long as the object that holds them, which the array
    // refers to; they are taken out of it only when no other object refers to it.
    let array = unsafe { PyArray1::borrow_from_array(&values, this.clone().into_any()) };
    array.call_method1("setflags", (false,))?;
    Ok(array)
}
