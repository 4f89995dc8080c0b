//! Results that are written to an array of the caller.

use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, prelude::*,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

/// An array of the caller for a number per point, if one was given.
pub(crate) struct Out<'py>(Option<Bound<'py, PyUntypedArray>>);

impl<'py> Out<'py> {
    /// Checks the array, before anything is computed.
    pub(crate) fn of<T: Element>(
        given: Option<&Bound<'py, PyAny>>,
        points: usize,
    ) -> PyResult<Self> {
        let Some(given) = given else {
            return Ok(Self(None));
        };
        let dtype = T::get_dtype(given.py());
        let wanted = || format!("out must be a NumPy array of {dtype} of shape ({points},)");
        let Ok(array) = given.cast::<PyUntypedArray>() else {
            let kind = given.get_type();
            return Err(PyTypeError::new_err(format!("{}, not {kind}", wanted())));
        };
        if !array.dtype().is_equiv_to(&dtype) || array.shape() != [points] {
            let (dtype, shape) = (array.dtype(), array.shape());
            return Err(PyValueError::new_err(format!(
                "{}, not of {dtype} of shape {shape:?}",
                wanted()
            )));
        }
        if !array.getattr("flags")?.getattr("writeable")?.extract()? {
            return Err(PyValueError::new_err("out is read-only"));
        }
        Ok(Self(Some(array.clone())))
    }

    /// The values: in the array of the caller, which NumPy writes, or in one that is made of them.
    pub(crate) fn take<T: Element>(
        self,
        py: Python<'py>,
        values: Vec<T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made: Bound<'py, PyArray1<T>> = values.into_pyarray(py);
        let Some(out) = self.0 else {
            return Ok(made.into_any());
        };
        py.import("numpy")?.call_method1("copyto", (&out, made))?;
        Ok(out.into_any())
    }
}
