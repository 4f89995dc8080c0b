//! Results on a GPU, written into the caller's array or a new one.

use super::{
    array::PyDeviceArray,
    given::GivenArray,
    layout::Dtype,
    shared::{SharedEngine, Works},
};
use crate::errors::raise;
use nearfield::{
    Error,
    device::{DeviceTraversal, Lent, Stream},
};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Where results of a call go.
pub(super) struct Outlet<'a, 'py> {
    /// The caller's array; a new one if there is none.
    pub(super) out: Option<&'a Bound<'py, PyAny>>,
    /// True if they are added to the existing values.
    pub(super) add: bool,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
}

impl<'a, 'py> Outlet<'a, 'py> {
    /// One whose values are overwritten.
    pub(super) fn new(out: Option<&'a Bound<'py, PyAny>>, dtype: Dtype, shape: Vec<usize>) -> Self {
        Self {
            out,
            add: false,
            dtype,
            shape,
        }
    }

    /// The same, or one whose values are added to, which a new array cannot be.
    pub(super) fn adding(self, add: bool) -> PyResult<Self> {
        if add && self.out.is_none() {
            return Err(PyValueError::new_err(
                "add needs an array to add to: pass out",
            ));
        }
        Ok(Self { add, ..self })
    }
}

/// Memory of the device for the results of a call.
pub(super) struct Results {
    pointer: u64,
    len: usize,
    add: bool,
}

impl Results {
    pub(super) fn lend<T>(&self, stream: &Stream) -> Lent<T> {
        // SAFETY: a new array of that length, or one given of that shape and type, kept until the
        // stream has been waited for.
        unsafe { Lent::new(stream, self.pointer, self.len) }
    }

    pub(super) fn run(&self, stream: &Stream, traversal: DeviceTraversal<'_>) -> Result<(), Error> {
        let mut results = self.lend(stream);
        if self.add {
            traversal.add_into(&mut results.as_view_mut())
        } else {
            traversal.run_into(&mut results.as_view_mut())
        }
    }
}

impl<E: Works> SharedEngine<E> {
    /// Runs work that reads the given arrays and writes results, and returns the array that they
    /// are in.
    pub(super) fn deliver(
        &self,
        py: Python<'_>,
        mut given: Vec<GivenArray>,
        outlet: Outlet<'_, '_>,
        work: impl FnOnce(&E, &[GivenArray], &Results) -> Result<(), Error> + Send,
    ) -> PyResult<Py<PyAny>> {
        let Outlet {
            out,
            add,
            dtype,
            shape,
        } = outlet;
        let read = given.len();
        if let Some(out) = out {
            let out = self.given(out, "out")?;
            out.shaped(dtype, &shape)?;
            out.writable()?;
            given.iter().try_for_each(|read| out.apart_from(read))?;
            given.push(out);
        }
        let len = shape.iter().product();
        let made = self.work(py, given, |state, given| {
            let (given, out) = given.split_at(read);
            let (made, pointer) = if let [out] = out {
                (None, out.pointer)
            } else {
                let fate = state.new_fate();
                let made =
                    PyDeviceArray::zeros(state.engine.engine().stream(), shape, dtype, fate)?;
                let pointer = made.pointer;
                (Some(made), pointer)
            };
            let results = Results { pointer, len, add };
            work(&state.engine, given, &results).map_err(raise)?;
            Ok(made)
        })?;
        match (made, out) {
            (Some(made), _) => Ok(Py::new(py, made)?.into_any()),
            (None, Some(out)) => Ok(out.clone().unbind()),
            (None, None) => Ok(py.None()),
        }
    }
}
