//! Keyword arguments as settings of an engine.

use crate::errors::raise;
use nearfield::{Device, Engine, ListKind, ListOrder, Precision};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Settings of `Engine` and `neighbors`.
pub(crate) struct Settings<'a> {
    pub(crate) radius: f64,
    pub(crate) domain: Option<&'a Bound<'a, PyAny>>,
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
        if let Some(domain) = self.domain {
            builder = match Domain::of(domain)? {
                Domain::Lengths(lengths) => builder.periodic(lengths),
                Domain::Vectors(vectors) => builder.box_vectors(vectors),
            };
        }
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

/// Three lengths, 0 where an axis is open, or three vectors, all 0 where an axis is open. The
/// others may point anywhere.
pub(crate) enum Domain {
    Lengths([Option<f64>; 3]),
    Vectors([Option<[f64; 3]>; 3]),
}

impl Domain {
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(lengths) = given.extract::<[f64; 3]>() {
            let lengths = lengths.map(|length| (length != 0.0).then_some(length));
            return Ok(Self::Lengths(lengths));
        }
        let vectors: [[f64; 3]; 3] = given.extract().map_err(|_| {
            PyValueError::new_err(
                "box must be three lengths, or three vectors of three numbers, 0 for an open axis",
            )
        })?;
        let vectors = vectors.map(|vector| (vector != [0.0; 3]).then_some(vector));
        Ok(Self::Vectors(vectors))
    }
}

fn unreadable(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
