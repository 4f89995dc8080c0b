//! Converts keyword arguments to settings of an engine.

use crate::{domain::Domain, errors::raise};
use nearfield::{Device, Engine, ListKind, ListOrder, Precision};
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
    pub(crate) threads: usize,
    pub(crate) memory_limit: Option<u64>,
}

impl Settings<'_> {
    pub(crate) fn build(&self) -> PyResult<Engine> {
        let mut builder = Engine::builder(self.radius).precision(self.precision);
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
        if let Some(bytes) = self.memory_limit {
            builder = builder.memory_limit(bytes);
        }
        builder.build().map_err(raise)
    }
}

fn unreadable(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
