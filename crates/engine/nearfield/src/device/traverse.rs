//! A traversal on the device being put together.
//!
//! It looks like a [`Traversal`](crate::Traversal) of host data and takes other things: arrays of
//! the device, with the channels of a point side by side, and results as numbers instead of values
//! of the kernel's type. Nothing of the kernel but its CUDA text and the number
//! of its channels is used, except by a helper, which evaluates the kernel itself.
//!
//! A builder has no place to return an error from, so a kernel that has no CUDA text, or reaches
//! too far, is kept as an error and returned by the `run` methods. Text is compiled there too: the
//! first run of a kernel may take the time of a compiler, later ones look it up.
//!
//! A traversal by the GPU alone borrows the engine shared, so several can be prepared at once; one
//! with a helper borrows it exclusively, since it settles the engine's sorts.

use super::{
    DeviceFieldsOf,
    engine::{DeviceEngine, pair},
    helper::{CpuHelper, CpuKernel, HelpedTraversal},
};
use crate::{
    Device, Error, PairKernel, PointSetId, Reduce,
    backend::{
        kernel::check_support,
        support::{Feature, choose},
    },
    kernels::Cuda,
};
use nearfield_gpu::{Deliver, DeviceFields, DeviceResults, DeviceViewMut, PairCall, PairProgram};
use nearfield_grid::Precision;
use std::fmt;

/// A traversal, made by [`DeviceEngine::traverse`] and started by one of its `run` methods.
#[must_use = "a traversal does nothing until it is run"]
pub struct DeviceTraversal<'a> {
    on: Executor<'a>,
    /// The program and its uniforms, or the reason why there is none.
    program: Result<(PairProgram, Vec<f32>), Error>,
    targets: PointSetId,
    sources: PointSetId,
    fields: DeviceFields<'a>,
}

/// The device of a traversal.
enum Executor<'a> {
    Gpu(&'a DeviceEngine),
    /// The GPU and the CPU backend.
    Both {
        engine: &'a mut DeviceEngine,
        helper: &'a mut CpuHelper,
        kernel: &'a dyn CpuKernel,
    },
}

impl fmt::Debug for DeviceTraversal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceTraversal")
            .field("targets", &self.targets)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

/// A pair kernel that is known at run time only, such as one of another language.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceKernel {
    /// Its text and parameters.
    pub cuda: Cuda,
    /// Numbers it reads of a target.
    pub target_channels: usize,
    /// Numbers it reads of a source.
    pub source_channels: usize,
    /// Numbers it gives, 1 to 16.
    pub outputs: usize,
    /// How the contributions of a target's neighbours are combined.
    pub reduce: Reduce,
}

impl DeviceKernel {
    /// The program and the uniforms.
    pub(super) fn program(&self) -> Result<(PairProgram, Vec<f32>), Error> {
        let channels = [self.target_channels, self.source_channels, self.outputs];
        PairProgram::new(self.cuda.clone(), channels, self.reduce).map_err(Error::from)
    }
}

impl DeviceEngine {
    /// A traversal of all pairs of `targets` with their neighbours among `sources`, to be given its
    /// fields and run. The kernel is copied: its text and its uniforms are all that the GPU needs.
    /// Text is compiled at its first use, or taken from the cache on disk.
    pub fn traverse<'a, K: PairKernel>(
        &'a self,
        kernel: &K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'a> {
        let program = check_support(kernel, self.radius())
            .and_then(|()| PairProgram::of(kernel).map_err(Error::from));
        DeviceTraversal::new(self, program, targets, sources)
    }

    /// The same with a kernel that is known at run time only. Its support is not known, so it is
    /// not compared with the radius.
    pub fn traverse_with<'a>(
        &'a self,
        kernel: &DeviceKernel,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'a> {
        DeviceTraversal::new(self, kernel.program(), targets, sources)
    }

    /// This engine with the CPU backend as a helper, which takes a part of the next traversal:
    /// `engine.with_cpu(&mut helper).traverse(&kernel, targets, sources)`.
    pub fn with_cpu<'a>(&'a mut self, helper: &'a mut CpuHelper) -> WithCpu<'a> {
        WithCpu {
            engine: self,
            helper,
        }
    }
}

/// An engine with a helper for its next traversal, made by [`DeviceEngine::with_cpu`].
#[derive(Debug)]
pub struct WithCpu<'a> {
    engine: &'a mut DeviceEngine,
    helper: &'a mut CpuHelper,
}

impl<'a> WithCpu<'a> {
    /// A traversal as [`DeviceEngine::traverse`] makes it; the helper takes a part. Running it
    /// waits for both backends, and its results are never provisional.
    pub fn traverse<K: PairKernel>(
        self,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> DeviceTraversal<'a> {
        // Two backends share traversals in `f32` only.
        let shared = match self.engine.precision() {
            Precision::Single => Ok(()),
            Precision::Double => choose(Device::Hybrid(0), &Feature::Double).map(drop),
        };
        let program = (shared.map_err(Error::from))
            .and_then(|()| check_support(kernel, self.engine.radius()))
            .and_then(|()| PairProgram::of(kernel).map_err(Error::from));
        DeviceTraversal::with_cpu(self, kernel, program, targets, sources)
    }
}

impl<'a> DeviceTraversal<'a> {
    /// A traversal by the GPU alone.
    pub(super) fn new(
        engine: &'a DeviceEngine,
        program: Result<(PairProgram, Vec<f32>), Error>,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Self {
        Self {
            on: Executor::Gpu(engine),
            program,
            targets,
            sources,
            fields: DeviceFields::default(),
        }
    }

    /// A traversal by the GPU and the CPU backend.
    pub(super) fn with_cpu(
        WithCpu { engine, helper }: WithCpu<'a>,
        kernel: &'a dyn CpuKernel,
        program: Result<(PairProgram, Vec<f32>), Error>,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Self {
        Self {
            on: Executor::Both {
                engine,
                helper,
                kernel,
            },
            program,
            targets,
            sources,
            fields: DeviceFields::default(),
        }
    }

    /// The channels of [`PairKernel::Target`](crate::PairKernel::Target), those of a point side by
    /// side, in the caller's order: one field, or several in the order of the channels.
    /// [`DeviceFieldsOf`] lists what serves. Not needed for a kernel that reads none. Integers are
    /// channels that hold their bits; [`Indices`](crate::kernels::Indices) stands for an array of
    /// them that the traversal makes.
    ///
    /// Several fields are put together on the device for the run: 4 bytes per point and channel,
    /// kept for the next. A second call replaces the fields of the first.
    pub fn targets(mut self, fields: impl DeviceFieldsOf<'a>) -> Self {
        self.fields.targets.clear();
        fields.append_to(&mut self.fields.targets);
        self
    }

    /// The channels of [`PairKernel::Source`](crate::PairKernel::Source), as
    /// [`targets`](Self::targets) takes those of a target.
    pub fn sources(mut self, fields: impl DeviceFieldsOf<'a>) -> Self {
        self.fields.sources.clear();
        fields.append_to(&mut self.fields.sources);
        self
    }

    /// Overwrites `results`: the channels of [`PairKernel::Output`](crate::PairKernel::Output) of
    /// every target, one target after the other in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet),
    /// [`ErrorKind::Support`](crate::ErrorKind::Support) when the kernel reaches farther than the
    /// search radius, and [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the kernel has no CUDA
    /// text or it does not compile, arrays do not fit or are on another GPU, or the GPU fails.
    pub fn run_into(self, results: &mut DeviceViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Write)
    }

    /// Adds to `results` (or takes the minimum or maximum, as the kernel's reduction says): the way
    /// to sum over several source sets.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, results: &mut DeviceViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Combine)
    }

    /// Puts the work on the stream, or shares it with the helper and waits for both.
    fn run(self, results: &mut DeviceViewMut<'_, f32>, deliver: Deliver) -> Result<(), Error> {
        let (program, uniforms) = self.program?;
        let call = PairCall {
            program: &program,
            uniforms: &uniforms,
        };
        let (targets, sources, fields) = (self.targets, self.sources, &self.fields);
        match self.on {
            Executor::Gpu(engine) => {
                engine.usable()?;
                let of = pair(
                    &engine.slots,
                    &engine.lattice,
                    &engine.sets,
                    targets,
                    sources,
                )?;
                let strategy = engine.settings.strategy;
                let to = DeviceResults {
                    values: results,
                    deliver,
                };
                engine
                    .backend
                    .evaluate_on_device(of, call, fields, to, strategy, &mut engine.scratch())
                    .map_err(Error::from)
            }
            Executor::Both {
                engine,
                helper,
                kernel,
            } => {
                let helped = HelpedTraversal {
                    kernel,
                    targets,
                    sources,
                    call,
                    fields,
                };
                helper.run(engine, &helped, results, deliver)
            }
        }
    }
}
