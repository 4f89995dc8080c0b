//! Lists that Python owns.

use crate::{
    call::guarded,
    errors::raise,
    lists::{Selection, room, whole_numbers},
};
use nearfield::{NeighborLists, lists::Csr};
use numpy::{Element, IntoPyArray, PyArray1, ndarray::ArrayView1};
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::PySlice,
};

/// Neighbour lists: the neighbours of point i are the ``count[i]`` entries of ``indices`` from
/// ``start[i]`` on, by their index in the set that was searched, once per periodic image.
///
/// ``lists[i]`` is that slice; ``len(lists)`` is the number of points; a loop over lists gives one
/// slice after the other. ``lists[2:5]``, ``lists[[7, 3]]`` and ``lists[mask]`` are Neighbors of
/// these points, copied. ``numpy.asarray(lists)`` is an array of type object with one slice per
/// point. Lists can be pickled. Half lists hold the pair of i < j in the list of i alone.
///
/// ``start``, ``count``, ``indices`` and ``lists[i]`` view memory of the library without a copy,
/// are read-only, stay valid as long as anything refers to them, and keep its types, uint64 and
/// uint32: convert by ``astype(int)`` before you subtract, and for libraries that index by int64
/// only. csr() and edge_index() are copies in int64.
///
/// Neighbors(offsets, indices) makes lists from the arrays of csr().
#[pyclass(name = "Neighbors", module = "nearfield")]
pub(crate) struct PyNeighbors {
    pub(crate) lists: NeighborLists,
}

/// Copies of lists one behind the other, in 64-bit integers.
type CopiedLists<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Lists as they are pickled.
type PickledLists<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

#[pymethods]
impl PyNeighbors {
    #[new]
    fn new(offsets: &Bound<'_, PyAny>, indices: &Bound<'_, PyAny>) -> PyResult<Self> {
        let offsets = whole_numbers::<u64>(offsets, "offsets", u64::MAX)?;
        let indices = whole_numbers::<u32>(indices, "indices", u64::from(u32::MAX) - 1)?;
        let lists = NeighborLists::from_csr(Csr { offsets, indices });
        let lists = lists.map_err(|error| raise(error.into()))?;
        Ok(Self { lists })
    }

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
    /// (pairs,), int64; the neighbours of point i are ``indices[offsets[i]:offsets[i + 1]]``.
    ///
    /// >>> offsets, indices = lists.csr()
    /// >>> shape = len(lists), number_of_sources
    /// >>> scipy.sparse.csr_array((np.ones(lists.pairs), indices, offsets), shape=shape)
    fn csr<'py>(&self, py: Python<'py>) -> PyResult<CopiedLists<'py>> {
        let (offsets, indices) = guarded(|| {
            py.detach(|| -> PyResult<_> {
                let mut offsets = room(self.lists.len() + 1, "the offsets of lists")?;
                let mut indices = room(self.lists.pairs() as usize, "lists one after the other")?;
                offsets.push(0);
                for list in self.lists.iter() {
                    indices.extend(list.iter().copied().map(i64::from));
                    offsets.push(indices.len() as i64);
                }
                Ok((offsets, indices))
            })
        })?;
        Ok((offsets.into_pyarray(py), indices.into_pyarray(py)))
    }

    /// All pairs as PyTorch Geometric takes them: shape (2, pairs), int64. Row 0 has the
    /// neighbours, which are the sources of messages, row 1 the points whose lists they are in;
    /// pairs are in the order of csr().
    ///
    /// >>> torch.from_numpy(lists.edge_index())
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pairs = self.lists.pairs() as usize;
        let edges = guarded(|| {
            py.detach(|| -> PyResult<_> {
                let mut edges = room(pairs.saturating_mul(2), "the pairs of lists")?;
                for list in self.lists.iter() {
                    edges.extend(list.iter().copied().map(i64::from));
                }
                for (point, list) in self.lists.iter().enumerate() {
                    edges.extend(std::iter::repeat_n(point as i64, list.len()));
                }
                Ok(edges)
            })
        })?;
        edges
            .into_pyarray(py)
            .call_method1("reshape", ((2, pairs),))
    }

    fn __len__(&self) -> usize {
        self.lists.len()
    }

    /// The neighbours of one point, or Neighbors of some.
    fn __getitem__<'py>(
        this: &Bound<'py, Self>,
        points: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = this.try_borrow()?.lists.len();
        if let Ok(slice) = points.cast::<PySlice>() {
            let found = slice.indices(len as isize)?;
            let chosen = Selection::Slice {
                begin: found.start,
                step: found.step,
                count: found.slicelength,
            };
            return selected(this, &chosen);
        }
        let point = match points.extract::<isize>() {
            Ok(point) => point,
            Err(error) if error.is_instance_of::<PyTypeError>(this.py()) => {
                return selected(this, &Selection::of(points, len)?);
            }
            Err(error) => return Err(error),
        };
        let from_end = if point < 0 { len as isize } else { 0 };
        let index = point.checked_add(from_end);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| *index < len).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "there is no point {point}: there are lists for {len} points"
            ))
        })?;
        Ok(view(this, |lists| lists.of(index))?.into_any())
    }

    /// The neighbours of one point after the other.
    fn __iter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: `this` is a live object and the thread is attached to Python; the call returns a
        // new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(this.py(), ffi::PySeqIter_New(this.as_ptr())) }
    }

    /// An array of type object with the neighbours of every point; shape (n,).
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        this: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let numpy = py.import("numpy")?;
        if let Some(dtype) = dtype {
            let kind = numpy.call_method1("dtype", (dtype,))?.getattr("kind")?;
            if kind.extract::<String>()? != "O" {
                return Err(PyTypeError::new_err(
                    "lists differ in length and are an array of type object only: csr() and \
                     edge_index() give arrays of numbers",
                ));
            }
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err("an array of lists is always a copy"));
        }
        let len = this.try_borrow()?.lists.len();
        let array = numpy.call_method1("empty", (len, "O"))?;
        for (point, list) in this.try_iter()?.enumerate() {
            array.set_item(point, list?)?;
        }
        Ok(array)
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, PickledLists<'py>)> {
        let py = this.py();
        let lists = &this.try_borrow()?.lists;
        let csr = guarded(|| {
            let csr = py.detach(|| lists.to_csr());
            csr.map_err(|error| raise(error.into()))
        })?;
        let parts = (csr.offsets.into_pyarray(py), csr.indices.into_pyarray(py));
        Ok((this.get_type().into_any(), parts))
    }

    fn __repr__(&self) -> String {
        let plural = |number: u64| if number == 1 { "" } else { "s" };
        let (points, pairs) = (self.lists.len(), self.lists.pairs());
        format!(
            "<nearfield.Neighbors of {points} point{}, {pairs} pair{}>",
            plural(points as u64),
            plural(pairs)
        )
    }
}

/// Lists of some points, copied.
fn selected<'py>(
    this: &Bound<'py, PyNeighbors>,
    points: &Selection,
) -> PyResult<Bound<'py, PyAny>> {
    let from = this.try_borrow()?;
    let lists = points.copied(&from.lists)?;
    Ok(Bound::new(this.py(), PyNeighbors { lists })?.into_any())
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
