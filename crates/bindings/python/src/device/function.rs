//! Functions of pairs that the caller writes in CUDA C++, over a search or over lists.

use super::{
    given::GivenArray,
    layout::Dtype,
    results::{Outlet, Results},
    shared::{SharedEngine, Works},
};
use nearfield::{
    Error, PointSetId, Reduce,
    device::{DeviceField, DeviceKernel, DeviceTraversal},
    kernels::Cuda,
};
use pyo3::{exceptions::PyValueError, prelude::*};

/// What `traverse` is called with, but for results.
pub(super) struct PairFunction<'a, 'py> {
    pub(super) text: String,
    pub(super) name: &'a str,
    /// The set that searches and the one that is searched.
    pub(super) sets: [usize; 2],
    pub(super) fields: [Option<&'a Bound<'py, PyAny>>; 2],
    pub(super) uniforms: Vec<f32>,
    pub(super) outputs: usize,
    pub(super) reduce: &'a str,
}

impl<E: Works> SharedEngine<E> {
    /// Runs a function over the pairs that `start` visits, and returns the array of the results.
    pub(super) fn traverse(
        &self,
        py: Python<'_>,
        function: PairFunction<'_, '_>,
        (out, add): (Option<&Bound<'_, PyAny>>, bool),
        start: impl for<'e> FnOnce(&'e E, &DeviceKernel, [PointSetId; 2]) -> DeviceTraversal<'e> + Send,
    ) -> PyResult<Py<PyAny>> {
        let PairFunction { outputs, sets, .. } = function;
        if !(1..=16).contains(&outputs) {
            return Err(PyValueError::new_err(format!(
                "outputs is 1 to 16, not {outputs}"
            )));
        }
        let points = self.points(sets[0])?;
        let shape = if outputs == 1 {
            vec![points]
        } else {
            vec![points, outputs]
        };
        let outlet = Outlet::new(out, Dtype::F32, shape).adding(add)?;
        let mut given = Vec::new();
        let mut channels = [0; 2];
        let names = ["target_field", "source_field"];
        for (at, field) in function.fields.into_iter().enumerate() {
            if let Some(field) = field {
                let field = self.given(field, names[at])?;
                channels[at] = field.field(self.points(sets[at])?)?;
                given.push(field);
            }
        }
        let kernel = DeviceKernel {
            // SAFETY: the caller promises what the text does, as the method's documentation says.
            cuda: unsafe { Cuda::new(function.name.to_owned(), function.text) }
                .uniforms(function.uniforms),
            target_channels: channels[0],
            source_channels: channels[1],
            outputs,
            reduce: reduction(function.reduce)?,
        };
        let sets = [self.set(sets[0])?, self.set(sets[1])?];
        let work = |of: &E, given: &[GivenArray], results: &Results| -> Result<(), Error> {
            let stream = of.engine().stream();
            let lent: Vec<_> = given.iter().map(|field| field.lend(stream)).collect();
            let (of_targets, of_sources) = lent.split_at(usize::from(channels[0] > 0));
            let mut traversal = start(of, &kernel, sets);
            if let [field] = of_targets {
                traversal = traversal.targets(DeviceField::new(field.as_view(), channels[0]));
            }
            if let [field] = of_sources {
                traversal = traversal.sources(DeviceField::new(field.as_view(), channels[1]));
            }
            results.run(stream, traversal)
        };
        self.deliver(py, given, outlet, work)
    }
}

fn reduction(name: &str) -> PyResult<Reduce> {
    match name {
        "sum" => Ok(Reduce::Sum),
        "min" => Ok(Reduce::Min),
        "max" => Ok(Reduce::Max),
        other => Err(PyValueError::new_err(format!(
            "reduce is \"sum\", \"min\" or \"max\", not {other:?}"
        ))),
    }
}
