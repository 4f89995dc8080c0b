//! A traversal being put together: kernel, sets and fields.

use crate::{Engine, Error, Field, PairKernel, PointSetId};
use nearfield_cpu::{Fields, Output};
use nearfield_pairs::Channels;

/// A fused traversal, made by [`Engine::traverse`] and started by one of its `run` methods.
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct Traversal<'a, K> {
    pub(crate) engine: &'a Engine,
    pub(crate) kernel: &'a K,
    pub(crate) targets: PointSetId,
    pub(crate) sources: PointSetId,
    pub(crate) fields: Fields<'a>,
}

impl<'a, K: PairKernel> Traversal<'a, K> {
    /// Values the kernel reads per target: their channels, in order, make up
    /// [`PairKernel::Target`].
    pub fn target_fields(mut self, fields: &'a [Field<'a>]) -> Self {
        self.fields.targets = fields;
        self
    }

    /// Values the kernel reads per source: their channels, in order, make up
    /// [`PairKernel::Source`].
    pub fn source_fields(mut self, fields: &'a [Field<'a>]) -> Self {
        self.fields.sources = fields;
        self
    }

    /// One result per target, in the caller's order.
    ///
    /// # Errors
    /// [`Error::Cpu`] when the fields do not fit the sets and the kernel, and
    /// [`Error::UnknownPointSet`].
    pub fn run(self) -> Result<Vec<K::Output>, Error> {
        let zero = K::Output::read(|_| 0.0);
        let mut values = vec![zero; self.engine.grid(self.targets)?.points().len()];
        self.run_into(&mut values)?;
        Ok(values)
    }

    /// Overwrites `values`, one per target in the caller's order.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Cpu`] when `values` has the wrong length; it is then
    /// unchanged.
    pub fn run_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Write(values))
    }

    /// Adds to `values` (or takes the minimum or maximum, as the kernel's reduction says): the way
    /// to sum over several source sets.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Combine(values))
    }

    fn finish(self, output: Output<'_, K::Output>) -> Result<(), Error> {
        self.engine
            .run_traversal(self.kernel, self.targets, self.sources, self.fields, output)
    }
}
