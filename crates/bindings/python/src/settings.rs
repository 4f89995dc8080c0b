//! Converts keyword arguments to settings of an engine.

use crate::{domain::Domain, errors::raise};
use nearfield::{Builder, Device, Engine, ListKind, ListOrder, Precision, RadiusRule};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Settings of `Engine` and `neighbors`.
pub(crate) struct Settings<'a> {
    pub(crate) radius: f64,
    pub(crate) domain: Domain,
    pub(crate) device: &'a str,
    pub(crate) precision: Precision,
    pub(crate) half: bool,
    pub(crate) sorted: bool,
    pub(crate) strict: bool,
    /// Whose radius decides.
    pub(crate) rule: RadiusRule,
    /// By types, row by row.
    pub(crate) cutoffs: Option<Vec<Vec<f64>>>,
    /// How many of the nearest.
    pub(crate) k: Option<u32>,
    pub(crate) threads: usize,
    pub(crate) memory_limit: Option<u64>,
}

impl Settings<'_> {
    /// The engine.
    pub(crate) fn build(&self) -> PyResult<Engine> {
        self.builder()?.build().map_err(raise)
    }

    /// The settings as the library takes them.
    pub(crate) fn builder(&self) -> PyResult<Builder> {
        let mut builder = Engine::builder(self.radius).precision(self.precision);
        builder = builder.radii(self.rule);
        let device: Device = self.device.parse().map_err(unreadable)?;
        builder = builder.device(device).threads(self.threads);
        builder = self.domain.apply(builder);
        if self.half {
            builder = builder.lists(ListKind::Half);
        }
        if self.sorted {
            builder = builder.list_order(ListOrder::Ascending);
        }
        if self.strict {
            builder = builder.strictly_within();
        }
        if let Some(cutoffs) = &self.cutoffs {
            builder = builder.cutoffs(cutoffs);
        }
        if let Some(k) = self.k {
            builder = builder.nearest(k);
        }
        if let Some(bytes) = self.memory_limit {
            builder = builder.memory_limit(bytes);
        }
        Ok(builder)
    }
}

/// The rule of radii with a name.
pub(crate) fn rule_named(name: &str) -> PyResult<RadiusRule> {
    const RULES: [RadiusRule; 4] = [
        RadiusRule::Uniform,
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ];
    let rule = RULES.into_iter().find(|rule| rule.name() == name);
    rule.ok_or_else(|| {
        PyValueError::new_err(format!(
            "rule is \"uniform\", \"gather\", \"scatter\" or \"symmetric\", not {name:?}"
        ))
    })
}

/// A text that is not a device.
pub(crate) fn unreadable(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The precision of this name.
pub(crate) fn precision_of(name: &str) -> PyResult<Precision> {
    match name {
        "f32" => Ok(Precision::Single),
        "f64" => Ok(Precision::Double),
        other => Err(PyValueError::new_err(format!(
            "precision is \"f32\" or \"f64\", not {other:?}"
        ))),
    }
}
