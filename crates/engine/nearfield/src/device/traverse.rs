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
    engine::DeviceEngine,
    filters::with_nearest,
    helper::{CpuHelper, CpuKernel, HelpedTraversal},
};
use crate::{
    Error, ErrorKind, PairKernel, PointSetId, Reduce,
    backend::kernel::check_support,
    kernels::{Channels, Cuda},
};
use nearfield_gpu::{
    Deliver, DeviceFields, DeviceResults, DeviceViewMut, ErrorKind as GpuErrorKind, PairCall,
    PairProgram, Skin,
};
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
    pairs: PairSource<'a>,
}

/// Where the pairs of a traversal come from.
enum PairSource<'a> {
    /// A search.
    Search,
    /// The lists that were found.
    Lists,
    /// Lists with a skin.
    Skin(Skin<'a>),
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
    /// A kernel of Rust, prepared once: a program that runs it in every step saves the translation
    /// of its text there.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] with [`gpu::ErrorKind::NoCuda`](crate::error::gpu::ErrorKind) when it has
    /// no CUDA text.
    pub fn of<K: PairKernel>(kernel: &K) -> Result<Self, Error> {
        let cuda = kernel.cuda().ok_or_else(|| {
            let kernel = std::any::type_name::<K>().to_owned();
            ErrorKind::Gpu(GpuErrorKind::NoCuda { kernel }.into())
        })?;
        Ok(Self {
            cuda,
            target_channels: K::Target::COUNT,
            source_channels: K::Source::COUNT,
            outputs: K::Output::COUNT,
            reduce: K::REDUCE,
        })
    }

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
        let program = check_support(kernel, self.settings.radius)
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
        let program = check_support(kernel, self.engine.radius())
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
            pairs: PairSource::Search,
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
            pairs: PairSource::Search,
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

    /// Runs over the lists that [`find_neighbors`](DeviceEngine::find_neighbors) or
    /// [`pair_geometry`](DeviceEngine::pair_geometry) found of these sets, and searches nothing:
    /// several kernels over one search.
    ///
    /// ```no_run
    /// use nearfield::device::{DeviceBuffer, DeviceEngine, DeviceField};
    /// use nearfield::kernels::{SphDensity, SphForce, WendlandC2};
    /// # use nearfield::{Error, PointSetId};
    ///
    /// fn step(
    ///     engine: &mut DeviceEngine,
    ///     fluid: PointSetId,
    ///     [mass, state]: [&DeviceBuffer<f32>; 2],
    ///     [density, force]: [&mut DeviceBuffer<f32>; 2],
    /// ) -> Result<(), Error> {
    ///     let kernel = WendlandC2::with_support(engine.radius());
    ///     let mass = DeviceField::new(mass.as_view(), 1);
    ///     engine.find_neighbors(fluid, fluid)?;
    ///     let densities = engine.traverse(&SphDensity { kernel }, fluid, fluid).over_lists();
    ///     densities.sources(mass).run_into(&mut density.as_view_mut())?;
    ///     // Velocity, density, pressure and mass side by side.
    ///     let state = || DeviceField::new(state.as_view(), 6);
    ///     let forces = SphForce { kernel, h: 0.5 * engine.radius(), alpha_c: 0.1 };
    ///     let forces = engine.traverse(&forces, fluid, fluid).over_lists();
    ///     forces.targets(state()).sources(state()).run_into(&mut force.as_view_mut())
    /// }
    /// ```
    ///
    /// Every pair is tested and computed anew from the positions, through all images within the
    /// radius, so pairs are those of a traversal without lists, and each that a kernel sees has the
    /// same bits. Sums are in the order of the lists, shared by the eight threads of a target (32
    /// where there are few targets), so they may differ in the last bits.
    ///
    /// The first traversal after a search also brings the entries into an array of their own, four
    /// bytes each; those that follow take no longer than a traversal that searches. Half lists of
    /// one set give every pair to both points: full lists are then found beside them, once per
    /// search. Results are provisional as the lists are.
    ///
    /// A traversal with a [`CpuHelper`] is refused, because the helper has no lists.
    pub fn over_lists(mut self) -> Self {
        if let PairSource::Search = self.pairs {
            self.pairs = PairSource::Lists;
        }
        self
    }

    /// Runs over lists with a skin.
    pub(super) fn over_skin(mut self, skin: Skin<'a>) -> Self {
        self.pairs = PairSource::Skin(skin);
        self
    }

    /// Overwrites `results`: the channels of [`PairKernel::Output`](crate::PairKernel::Output) of
    /// every target, one target after the other in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet),
    /// [`ErrorKind::Support`](crate::ErrorKind::Support) when the kernel reaches farther than the
    /// search radius, [`ErrorKind::NoLists`](crate::ErrorKind::NoLists) over lists that there are
    /// none of, and [`ErrorKind::Gpu`](crate::ErrorKind::Gpu) when the kernel has no CUDA text or
    /// it does not compile, arrays do not fit or are on another GPU, or the GPU fails.
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
                let to = DeviceResults {
                    values: results,
                    deliver,
                };
                let skin = match self.pairs {
                    PairSource::Search => None,
                    PairSource::Lists => Some(None),
                    PairSource::Skin(skin) => Some(Some(skin)),
                };
                if let Some(skin) = skin {
                    let sets = [targets, sources];
                    return engine.run_over_lists(sets, skin, call, fields, to);
                }
                let of = engine.pair(targets, sources)?;
                let nearest = engine.filters.nearest(&engine.backend, of)?;
                let of = with_nearest(of, &nearest);
                let strategy = engine.settings.strategy;
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
                if !matches!(self.pairs, PairSource::Search) {
                    let (first, second) = ("traversals over lists", "a helper on the CPU");
                    return Err(ErrorKind::Combined { first, second }.into());
                }
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
