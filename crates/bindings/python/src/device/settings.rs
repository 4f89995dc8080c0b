//! Settings of engines on a GPU, as Python's keywords give them.

use crate::{
    domain::{Axes, DomainArgs},
    filters,
    settings::rule_named,
};
use nearfield::{
    ListKind, ListOrder, Precision,
    device::{DeviceEngine, DeviceEngineBuilder},
};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Keywords of the constructors of `DeviceEngine` and `DeviceVerletLists`.
pub(super) struct DeviceSettings<'a, 'py> {
    pub(super) radius: f64,
    pub(super) precision: Precision,
    pub(super) domain: DomainArgs<'a, 'py>,
    pub(super) half: bool,
    pub(super) sorted: bool,
    pub(super) strict: bool,
    pub(super) rule: &'a str,
    pub(super) cutoffs: Option<&'a Bound<'py, PyAny>>,
    pub(super) k: Option<i64>,
    pub(super) subdivision: u32,
    pub(super) within: Option<([f32; 3], [f32; 3])>,
    pub(super) memory_limit: Option<u64>,
}

impl DeviceSettings<'_, '_> {
    /// The radius as it is searched, in single precision rounded to float32.
    pub(super) fn rounded_radius(&self) -> f64 {
        match self.precision {
            Precision::Single => f64::from(self.radius as f32),
            Precision::Double => self.radius,
        }
    }

    /// The settings for an engine to be started.
    pub(super) fn builder(self) -> PyResult<DeviceEngineBuilder> {
        let mut builder = DeviceEngine::builder(self.rounded_radius()).precision(self.precision);
        builder = builder.subdivision(self.subdivision);
        let domain = self.domain.read()?;
        // Points of a GPU have three coordinates.
        domain.suits(false)?;
        builder = match domain.axes() {
            Axes::Lengths(lengths) => builder.periodic(lengths),
            Axes::Vectors(vectors) => builder.box_vectors(vectors),
        };
        if self.half {
            builder = builder.lists(ListKind::Half);
        }
        if self.sorted {
            builder = builder.list_order(ListOrder::Ascending);
        }
        if self.strict {
            builder = builder.strictly_within();
        }
        if let Some(bytes) = self.memory_limit {
            builder = builder.memory_limit(bytes);
        }
        builder = builder.radii(rule_named(self.rule)?);
        if let Some(cutoffs) = self.cutoffs {
            builder = builder.cutoffs(&filters::cutoffs(cutoffs)?);
        }
        if let Some(k) = self.k {
            builder = builder.nearest(filters::nearest(k)?);
        }
        if let Some((low, high)) = self.within {
            if !low.iter().chain(&high).all(|edge| edge.is_finite()) {
                return Err(PyValueError::new_err(
                    "within: the corners of the box must be finite",
                ));
            }
            builder = builder.within(low, high);
        }
        Ok(builder)
    }
}
