//! A traversal on the device being put together.

use super::{ResidentEngine, pair};
use crate::{Error, PairKernel, PointSetId};
use nearfield_gpu::{Deliver, DeviceField, DeviceFields, PairProgram, cudarc::driver::CudaViewMut};

/// A traversal, made by [`ResidentEngine::traverse`] and started by one of its `run` methods.
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct ResidentTraversal<'a, K> {
    engine: &'a ResidentEngine,
    kernel: &'a K,
    targets: PointSetId,
    sources: PointSetId,
    fields: DeviceFields<'a>,
}

impl<'a, K: PairKernel> ResidentTraversal<'a, K> {
    pub(super) fn new(
        engine: &'a ResidentEngine,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Self {
        Self {
            engine,
            kernel,
            targets,
            sources,
            fields: DeviceFields::default(),
        }
    }

    /// The channels of [`PairKernel::Target`].
    pub fn target_fields(mut self, field: DeviceField<'a>) -> Self {
        self.fields.targets = Some(field);
        self
    }

    /// The channels of [`PairKernel::Source`].
    pub fn source_fields(mut self, field: DeviceField<'a>) -> Self {
        self.fields.sources = Some(field);
        self
    }

    /// Overwrites `results`: the channels of [`PairKernel::Output`] of every target, one target
    /// after the other in the caller's order.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`], and [`Error::Gpu`] when the kernel has no CUDA text or it does
    /// not compile, arrays do not fit or are on another GPU, or the GPU fails.
    pub fn run_into(self, results: &mut CudaViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Write)
    }

    /// Adds to `results` (or takes the minimum or maximum, as the kernel's reduction says): the way
    /// to sum over several source sets.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, results: &mut CudaViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Combine)
    }

    fn run(self, results: &mut CudaViewMut<'_, f32>, deliver: Deliver) -> Result<(), Error> {
        let engine = self.engine;
        let (program, uniforms) = PairProgram::of(self.kernel).map_err(Error::Gpu)?;
        let of = pair(&engine.lattice, &engine.sets, self.targets, self.sources)?;
        engine
            .lane
            .evaluate_resident(
                of,
                (&program, &uniforms),
                self.fields,
                (results, deliver),
                engine.settings.strategy,
                &mut engine.scratch(),
            )
            .map_err(Error::Gpu)
    }
}
