//! A traversal being put together: kernel, sets and fields.

use crate::{
    Device, Engine, Error, Field, PairKernel, PointSetId, Precision, VerletLists,
    backend::gpu::{GpuDone, GpuPart, GpuSide},
    backend::split::Values,
    engine::verlet::Stored,
};
use nearfield_cpu::{Coordinate, CpuBackend, Fields, Output, PairOfSets, StoredPairs};
use nearfield_gpu::{HostBuffer, PairProgram};
use nearfield_grid::memory::filled;
use nearfield_pairs::Channels;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

/// Output channels a kernel may have.
const MAX_OUTPUTS: usize = 16;

/// A traversal, made by [`Engine::traverse`] and started by one of its `run` methods.
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct Traversal<'a, K> {
    pub(crate) engine: &'a Engine,
    pub(crate) kernel: &'a K,
    pub(crate) targets: PointSetId,
    pub(crate) sources: PointSetId,
    pub(crate) fields: Fields<'a>,
    pub(crate) over: Over<'a>,
}

/// Where a traversal takes its pairs from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Over<'a> {
    /// The cells, as it goes.
    Grid,
    /// The lists that `find_neighbors` wrote.
    Lists,
    /// Lists with a skin, which hold more than the pairs within the radius.
    Skin(&'a VerletLists),
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

    /// Takes the pairs from the lists that [`Engine::find_neighbors`] wrote instead of searching
    /// again: worth it when several kernels, or many iterations of one, run over the same pairs.
    /// Results differ from those without lists by the order of summation only.
    ///
    /// Half lists of one set give every pair to both of its points, by [`PairKernel::symmetric`]; best where
    /// points near each other lie near each other in memory ([`Engine::z_sort`]).
    ///
    /// Running it is refused with [`Error::NoLists`] when the lists are out of date. Traversals of
    /// [`VerletLists`] run over lists anyway.
    pub fn over_lists(mut self) -> Self {
        if let Over::Grid = self.over {
            self.over = Over::Lists;
        }
        self
    }

    /// One result per target, in the caller's order.
    ///
    /// # Errors
    /// [`Error::Cpu`] when the fields do not fit the sets and the kernel, [`Error::Support`] when the
    /// kernel reaches farther than the search radius, [`Error::UnknownPointSet`] and
    /// [`Error::NoRadii`].
    pub fn run(self) -> Result<Vec<K::Output>, Error> {
        let zero = K::Output::read(|_| 0.0);
        let targets = self.engine.points(self.targets)?;
        let mut values = filled(targets, zero, "the results of a traversal")?;
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
        let _span = tracing::debug_span!(
            "engine.traverse",
            targets = self.targets.0,
            sources = self.sources.0,
            kernel = std::any::type_name::<K>(),
        )
        .entered();
        let begin = Instant::now();
        let radius = match self.over {
            Over::Grid | Over::Lists => self.engine.radius(),
            // The engine's own radius has the skin in it.
            Over::Skin(lists) => lists.radius(),
        };
        check_support(self.kernel, radius)?;
        match self.over {
            Over::Grid => self.run_over_grid(output)?,
            Over::Lists => match self.engine.precision() {
                Precision::Single => self.run_over_lists::<f32>(output)?,
                Precision::Double => self.run_over_lists::<f64>(output)?,
            },
            Over::Skin(lists) => match lists.stored(self.targets, self.sources)? {
                Stored::Single(pairs) => self.run_over(&pairs, output)?,
                Stored::Double(pairs) => self.run_over(&pairs, output)?,
            },
        }
        self.engine.record(|times| times.traverse = begin.elapsed());
        Ok(())
    }

    fn run_over_grid(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        match self.run_with_device(output)? {
            None => Ok(()),
            Some(output) => self.run_on_cpu(output),
        }
    }

    /// Gives `output` back when the CPU backend has to.
    fn run_with_device<'o>(
        &self,
        output: Output<'o, K::Output>,
    ) -> Result<Option<Output<'o, K::Output>>, Error> {
        // Who asked for a GPU is told when a kernel cannot run there; who left it open is not.
        let open = self.engine.settings.device == Device::Auto;
        let gpu = self.engine.gpu.as_ref();
        if open && gpu.is_some_and(|gpu| !gpu.takes(self.kernel)) {
            return Ok(Some(output));
        }
        let output = match self.engine.hybrid {
            Some(_) => self.run_on_both(output)?,
            None => Some(output),
        };
        match output {
            None => Ok(None),
            Some(output) => self.run_on_gpu(output),
        }
    }

    fn run_on_cpu(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let of = self.engine.pair_of_sets(self.targets, self.sources)?;
        let backend = &self.engine.backend;
        Ok(backend.traverse(self.kernel, of, self.fields, output)?)
    }

    /// Evaluates the kernel on both backends; gives `output` back when a single backend has to.
    fn run_on_both<'o>(
        &self,
        output: Output<'o, K::Output>,
    ) -> Result<Option<Output<'o, K::Output>>, Error> {
        let (targets, sources) = (self.targets, self.sources);
        let points = (self.engine.points(targets)?, self.engine.points(sources)?);
        self.fields.check::<K>(points.0, points.1)?;
        let (values, combine) = match output {
            Output::Write(values) => (values, false),
            Output::Combine(values) => (values, true),
        };
        let give_back = |values| match combine {
            false => Output::Write(values),
            true => Output::Combine(values),
        };
        if values.len() != points.0 {
            // The CPU backend says what is wrong.
            return Ok(Some(give_back(values)));
        }
        let (program, uniforms) = match &self.engine.gpu {
            // A kernel without CUDA text is the caller's mistake, not the GPU's.
            Some(_) => PairProgram::of(self.kernel).map(Some).map_err(Error::Gpu)?,
            None => None,
        }
        .unzip();
        let summing = Summing {
            traversal: self,
            program,
            uniforms: uniforms.unwrap_or_default(),
            combine,
            prepared: AtomicU64::new(0),
        };
        let done = self
            .engine
            .values_by_both(&summing, (targets, sources), values)?;
        Ok((!done).then(|| give_back(values)))
    }

    fn run_over_lists<T: Coordinate>(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let (engine, same_set) = (self.engine, self.targets == self.sources);
        let lists = engine.neighbors(self.targets, self.sources)?;
        let targets = engine.backend.positions::<T>(engine.grid(self.targets)?)?;
        let others = match same_set {
            true => None,
            false => Some(engine.backend.positions(engine.grid(self.sources)?)?),
        };
        let pairs = StoredPairs {
            lists,
            kind: engine.settings.lists,
            lattice: &engine.lattice,
            targets: &targets,
            sources: others.as_ref().unwrap_or(&targets),
            same_set,
            radius: engine.lattice.radius(),
            radii: engine.given_radii(self.targets, self.sources)?,
        };
        self.run_over(&pairs, output)
    }

    fn run_over<T: Coordinate>(
        &self,
        pairs: &StoredPairs<'_, T>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let backend = &self.engine.backend;
        Ok(backend.traverse_lists(self.kernel, pairs, self.fields, output)?)
    }
}

/// Refuses a kernel that reaches farther than pairs are searched for.
///
/// # Errors
/// [`Error::Support`]; not where the support is but rounded differently from the radius.
pub(crate) fn check_support<K: PairKernel>(kernel: &K, radius: f32) -> Result<(), Error> {
    match kernel.support() {
        Some(support) if support > radius.next_up() && support.is_finite() => Err(Error::Support {
            kernel: std::any::type_name::<K>(),
            support,
            radius,
        }),
        _ => Ok(()),
    }
}

/// Puts a result where the caller wants it, or combines it with what is there.
pub(crate) fn put<K: PairKernel>(place: &mut K::Output, value: K::Output, combine: bool) {
    if !combine {
        *place = value;
        return;
    }
    let (mut before, mut after) = ([0.0; MAX_OUTPUTS], [0.0; MAX_OUTPUTS]);
    place.write(|channel, value| before[channel] = value);
    value.write(|channel, value| after[channel] = value);
    *place = K::Output::read(|channel| K::REDUCE.combine(before[channel], after[channel]));
}

/// Sums of a kernel as both backends find them together.
struct Summing<'t, 'a, K> {
    traversal: &'t Traversal<'a, K>,
    /// Where there is a GPU.
    program: Option<PairProgram>,
    uniforms: Vec<f32>,
    combine: bool,
    /// The number under which the GPU has the fields.
    prepared: AtomicU64,
}

impl<K: PairKernel> Values for Summing<'_, '_, K> {
    type Value = K::Output;
    type OfGpu = HostBuffer<f32>;

    fn kernel(&self) -> Option<&'static str> {
        Some(std::any::type_name::<K>())
    }

    fn blank(&self) -> K::Output {
        K::Output::read(|_| K::REDUCE.identity())
    }

    fn evaluate(
        &self,
        backend: &CpuBackend,
        of: PairOfSets<'_>,
        values: &mut [K::Output],
        fresh: bool,
    ) -> Result<(), Error> {
        let output = match self.combine && !fresh {
            true => Output::Combine(values),
            false => Output::Write(values),
        };
        let Traversal { kernel, fields, .. } = self.traversal;
        Ok(backend.traverse(*kernel, of, *fields, output)?)
    }

    fn evaluate_on_gpu(&self, _: &Engine, values: &mut [K::Output]) -> Result<bool, Error> {
        let output = match self.combine {
            true => Output::Combine(values),
            false => Output::Write(values),
        };
        Ok(self.traversal.run_on_gpu(output)?.is_none())
    }

    fn prepare_on_gpu(&self, engine: &Engine, gpu: &GpuSide) {
        let prepared = gpu.prepare_part(engine, self.traversal.fields);
        self.prepared.store(prepared, Ordering::Relaxed);
    }

    fn part_on_gpu(
        &self,
        engine: &Engine,
        gpu: &GpuSide,
        part: GpuPart<'_>,
        began: Instant,
    ) -> Result<Option<(HostBuffer<f32>, GpuDone)>, Error> {
        let Some(program) = &self.program else {
            return Ok(None);
        };
        let program = (program, &self.uniforms[..]);
        let prepared = self.prepared.load(Ordering::Relaxed);
        let fields = (self.traversal.fields, prepared);
        gpu.evaluate_part::<K>(engine, part, program, fields, began)
    }

    fn of_gpu(&self, found: &HostBuffer<f32>, target: usize) -> K::Output {
        K::Output::read(|channel| found[target * K::Output::COUNT + channel])
    }

    fn give_back(&self, gpu: &GpuSide, found: HostBuffer<f32>) {
        gpu.give_back(found);
    }

    fn put(&self, place: &mut K::Output, value: K::Output) {
        put::<K>(place, value, self.combine);
    }
}
