//! A traversal being put together: kernel, sets and fields.
//!
//! A [`Traversal`] borrows everything that it needs and does nothing until it is run, so its checks
//! see all of it at once. Pairs come from one of three places ([`PairSource`]): the cells, lists of
//! this engine, or lists with a skin; module `over_lists` has the last two.
//!
//! Results go to the caller's array, in the caller's order. A device gives numbers, which
//! [`put`] makes values of; the CPU backend writes values itself. Both fold contributions in an
//! order that depends on the points alone.
//!
//! **Invariant:** a device gets only kernels whose support is within the radius and arrays that
//! have one element per point, since it checks neither.

use crate::{
    Device, Engine, Error, PairKernel, PointSetId,
    backend::{
        AttachedDevice, Job, JobKind,
        accelerator::{KernelWork, Numbers, PairsFrom},
        gpu,
        kernel::check_support,
        support::{Choice, Feature, choose},
        values::Values,
    },
    engine::{job_record::KernelShape, jobs::job},
    kernels::Field,
    lists::VerletLists,
};
use nearfield_cpu::{CpuBackend, Fields, Output, PairOfSets};
use nearfield_grid::memory::{filled, make_room};
use nearfield_pairs::{Channels, FieldsOf};
use std::time::Instant;

/// Output channels a kernel may have.
///
/// The size of the arrays in which [`put`] combines two results.
const MAX_OUTPUTS: usize = 16;

/// A traversal, made by [`Engine::traverse`] and started by one of its `run` methods.
///
/// Fields are arrays of the caller's, one element per point, in the order of the points:
///
/// ```
/// use nearfield::prelude::*;
///
/// /// Sum of m_j (v_j − v_i), which slows a point down among its neighbours.
/// struct Drag;
///
/// impl PairKernel for Drag {
///     type Target = glam::Vec3; // velocity
///     type Source = (glam::Vec3, f32); // velocity, mass
///     type Output = glam::Vec3;
///
///     #[inline(always)]
///     fn pair(&self, _: Pair, vi: glam::Vec3, (vj, m): (glam::Vec3, f32)) -> glam::Vec3 {
///         m * (vj - vi)
///     }
/// }
///
/// let mut engine = Engine::builder(1.0).build()?;
/// let points = engine.add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])?;
/// let velocity = [[2.0f32, 0.0, 0.0], [0.0, 0.0, 0.0]];
/// let mass = [1.0f32, 3.0];
/// let drag = engine
///     .traverse(&Drag, points, points)
///     .targets(&velocity)
///     .sources((&velocity, &mass))
///     .run()?;
/// assert_eq!(drag[0], glam::vec3(-6.0, 0.0, 0.0));
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct Traversal<'a, K: PairKernel> {
    pub(crate) engine: &'a Engine,
    pub(crate) kernel: &'a K,
    pub(crate) targets: PointSetId,
    pub(crate) sources: PointSetId,
    pub(crate) given: FieldArrays<'a>,
    pub(crate) over: PairSource<'a, K>,
}

/// The arrays that a kernel reads.
#[derive(Debug, Default)]
pub(crate) struct FieldArrays<'a> {
    /// One entry per part of the kernel's target type; empty for `()`.
    targets: Vec<Field<'a>>,
    /// As for the targets.
    sources: Vec<Field<'a>>,
}

impl<'a> FieldArrays<'a> {
    /// Whether a field stands for the indices of the points.
    fn indices(&self) -> bool {
        self.targets
            .iter()
            .chain(&self.sources)
            .any(Field::is_indices)
    }

    /// Puts the first of `numbers` in the place of fields that stand for indices: as many as there
    /// are targets, or sources.
    fn number(&mut self, numbers: &'a [u32], points: (usize, usize)) {
        for (fields, points) in [(&mut self.targets, points.0), (&mut self.sources, points.1)] {
            for field in fields.iter_mut().filter(|field| field.is_indices()) {
                *field = Field::from(&numbers[..points]);
            }
        }
    }
}

/// The numbers 0, 1, 2 and so on.
fn numbers(count: usize) -> Result<Vec<u32>, Error> {
    let mut numbers = Vec::new();
    make_room(&mut numbers, count, "indices of points")?;
    numbers.extend((0..count).map(|number| number as u32));
    Ok(numbers)
}

/// Where a traversal takes its pairs from.
///
/// The loops over stored lists are named where they are asked for, and nowhere else. So a program
/// that only fuses a kernel with the search does not compile them for it.
#[derive(Debug)]
pub(crate) enum PairSource<'a, K: PairKernel> {
    /// The cells, as it goes.
    Grid,
    /// The lists that `find_neighbors` wrote.
    Lists(RunOverLists<K>),
    /// Lists with a skin, which hold more than the pairs within the radius.
    Skin(&'a VerletLists, RunOverSkin<K>),
}

/// Runs a traversal over the lists of its engine.
type RunOverLists<K> =
    fn(&Traversal<'_, K>, Output<'_, <K as PairKernel>::Output>) -> Result<(), Error>;

/// Runs a traversal over lists with a skin.
type RunOverSkin<K> =
    fn(&Traversal<'_, K>, &VerletLists, Output<'_, <K as PairKernel>::Output>) -> Result<(), Error>;

impl Engine {
    /// A traversal of all pairs of `targets` and `sources` with a kernel, no list stored.
    ///
    /// It is faster than a search and a loop over the lists: neighbours are used while they are in
    /// the first-level cache, and kernels run at the full width of the vectors. Contributions are
    /// added in an order that depends neither on the number of threads nor on the vector width.
    ///
    /// ```
    /// use nearfield::{kernels::{SphDensity, WendlandC2}, prelude::*};
    /// let positions = [[0.0f32, 0.0, 0.0], [0.3, 0.0, 0.0]];
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let fluid = engine.add_point_set(&positions)?;
    /// let kernel = SphDensity { kernel: WendlandC2::with_support(1.0) };
    /// let density = engine
    ///     .traverse(&kernel, fluid, fluid)
    ///     .sources(&[1.0, 2.0])
    ///     .run()?;
    /// assert!(density[0] == 2.0 * density[1]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn traverse<'a, K: PairKernel>(
        &'a self,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Traversal<'a, K> {
        Traversal {
            engine: self,
            kernel,
            targets,
            sources,
            given: FieldArrays::default(),
            over: PairSource::Grid,
        }
    }
}

impl<'a, K: PairKernel> Traversal<'a, K> {
    /// The fields that the kernel reads of every target, in the caller's order: one array for each
    /// part of [`PairKernel::Target`], such as `(&velocities, &masses)` for `(Vec3, f32)`.
    /// [`FieldsOf`] lists the arrays that serve a type; nothing is copied. Not needed where the
    /// type is `()`. Values inside your own structs are a [`Field::strided`]:
    ///
    /// ```
    /// use nearfield::{kernels::{Field, SphDensity}, prelude::*};
    /// use std::mem::offset_of;
    /// #[repr(C)]
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// struct Particle { position: [f32; 3], mass: f32 }
    /// let at = |x: f32| Particle { position: [x, 0.0, 0.0], mass: 2.0 };
    /// let particles = [at(0.0), at(0.25), at(0.5)];
    /// let (bytes, stride) = (bytemuck::cast_slice(&particles), size_of::<Particle>());
    /// let positions = Positions::strided(bytes, offset_of!(Particle, position), stride, 3)?;
    /// let mass = Field::strided(bytes, offset_of!(Particle, mass), stride, 3, 1)?;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let points = engine.add_point_set(positions)?;
    /// let kernel = SphDensity::with_support(1.0);
    /// let density = engine.traverse(&kernel, points, points).sources(mass).run()?;
    /// assert_eq!(density[0], density[2]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// [`Indices`](crate::kernels::Indices) gives a kernel the index of every point, as a `u32`, by
    /// an array that is made for the run: 4 bytes per point.
    ///
    /// Lengths are checked when the traversal is run. A second call replaces the fields of the
    /// first.
    pub fn targets(mut self, fields: impl FieldsOf<'a, K::Target>) -> Self {
        self.given.targets.clear();
        fields.append_to(&mut self.given.targets);
        self
    }

    /// The fields that the kernel reads of every source, as [`targets`](Self::targets) for
    /// [`PairKernel::Source`].
    pub fn sources(mut self, fields: impl FieldsOf<'a, K::Source>) -> Self {
        self.given.sources.clear();
        fields.append_to(&mut self.given.sources);
        self
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields {
            targets: &self.given.targets,
            sources: &self.given.sources,
        }
    }

    /// One result per target, in the caller's order.
    ///
    /// A target without neighbours gets the identity of the kernel's [`Reduce`](crate::Reduce): 0
    /// for sums, infinity for minima, its negative for maxima.
    ///
    /// # Errors
    /// [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) when the fields do not fit the sets and the
    /// kernel, [`ErrorKind::Support`](crate::ErrorKind::Support) when the kernel reaches farther
    /// than the search radius, [`ErrorKind::UnknownPointSet`](crate::ErrorKind::UnknownPointSet)
    /// and [`ErrorKind::NoRadii`](crate::ErrorKind::NoRadii).
    pub fn run(self) -> Result<Vec<K::Output>, Error> {
        // Also of targets that are not chosen, which nothing writes.
        let none = K::Output::read(|_| K::REDUCE.identity());
        let targets = self.engine.points(self.targets)?;
        let mut values = filled(targets, none, "the results of a traversal")?;
        self.run_into(&mut values)?;
        Ok(values)
    }

    /// Overwrites `values`, one per target in the caller's order. Values of targets that are not
    /// [chosen](Engine::set_targets) stay as they are.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) when `values` has the
    /// wrong length; it is then unchanged.
    pub fn run_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Write(values))
    }

    /// Adds to `values` (or takes the minimum or maximum, as the kernel's reduction says): the way
    /// to sum over several source sets.
    ///
    /// ```
    /// use nearfield::{kernels::SphDensity, prelude::*};
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let fluid = engine.add_point_set(&[[0.0f32; 3]])?;
    /// let wall = engine.add_point_set(&[[0.5f32, 0.0, 0.0]])?;
    /// let kernel = SphDensity::with_support(1.0);
    /// let mut density = vec![0.0; 1];
    /// engine.traverse(&kernel, fluid, fluid).sources(&[1.0]).run_into(&mut density)?;
    /// engine.traverse(&kernel, fluid, wall).sources(&[1.0]).add_into(&mut density)?;
    /// assert!(density[0] > 0.0);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Combine(values))
    }

    /// Puts an array in the place of [`Indices`](crate::kernels::Indices), and runs.
    fn finish(self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let points = (
            self.engine.points(self.targets)?,
            self.engine.points(self.sources)?,
        );
        let numbers = match self.given.indices() {
            true => numbers(points.0.max(points.1))?,
            false => Vec::new(),
        };
        let mut complete: Traversal<'_, K> = self;
        complete.given.number(&numbers, points);
        complete.run_with_fields(output)
    }

    /// Runs over the pairs asked for, and keeps the time for the report.
    fn run_with_fields(self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let span = tracing::debug_span!(
            "engine.traverse",
            targets = self.targets.slot(),
            sources = self.sources.slot(),
            kernel = std::any::type_name::<K>(),
            cutoff = tracing::field::Empty,
            list_radius = tracing::field::Empty,
            listed = tracing::field::Empty,
        )
        .entered();
        let begin = Instant::now();
        let radius = match self.over {
            PairSource::Grid | PairSource::Lists(_) => self.engine.radius() as f32,
            // The engine's own radius has the skin in it.
            PairSource::Skin(lists, _) => {
                span.record("cutoff", lists.radius());
                span.record("list_radius", lists.list_radius());
                if let Ok(candidates) = lists.candidates(self.targets, self.sources) {
                    span.record("listed", candidates.pairs());
                }
                lists.radius() as f32
            }
        };
        check_support(self.kernel, radius)?;
        match self.over {
            PairSource::Grid => self.run_over_grid(output)?,
            PairSource::Lists(run) => run(&self, output)?,
            PairSource::Skin(lists, run) => run(&self, lists, output)?,
        }
        self.engine.record(|times| times.traverse = begin.elapsed());
        Ok(())
    }

    /// Runs over the cells, where the engine's device and the kernel decide on the backend.
    ///
    /// A GPU compiles the text of a kernel when it is first asked about that kernel. So it is asked
    /// before the job is assigned, and a kernel without usable text is a feature of its own.
    fn run_over_grid(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let (engine, targets, sources) = (self.engine, self.targets, self.sources);
        engine.in_place()?;
        let job = job(
            JobKind::Kernel(std::any::type_name::<K>()),
            targets,
            sources,
        );
        let reason = match engine.second_backend() {
            None => {
                if engine.later.is_some() {
                    engine.job_record().note_kernel(job, || self.shape());
                }
                engine.reason.clone()
            }
            Some(device) => {
                let work = self.kernel_work(PairsFrom::Search);
                let filtered = engine.filter_feature([targets.slot(), sources.slot()]);
                let feature = match filtered {
                    Some(feature) => feature,
                    None => match device.accelerator.check_kernel(&work) {
                        Ok(()) => Feature::Kernel,
                        Err(reason) => Feature::KernelWithoutCuda {
                            kernel: work.name,
                            reason,
                        },
                    },
                };
                match choose(engine.settings.device, &feature)? {
                    Choice::AsAsked => return self.run_on_device(device, job, work, output),
                    Choice::Cpu(unsupported) => unsupported.to_string().into(),
                }
            }
        };
        self.run_on_cpu(output)?;
        engine.was_done(job, Device::Cpu, reason);
        Ok(())
    }

    /// The kernel as a device takes it.
    pub(super) fn kernel_work<'w>(&'w self, pairs: PairsFrom<'w>) -> KernelWork<'w> {
        // The kernel is the caller's code, which no device is held for.
        KernelWork {
            name: std::any::type_name::<K>(),
            program: gpu::program_of(self.kernel),
            fields: self.fields(),
            pairs,
        }
    }

    /// The kernel without its type, if it has text for a GPU.
    fn shape(&self) -> Option<KernelShape> {
        let channels = |fields: &[Field<'_>]| fields.iter().map(Field::channels).collect();
        let program = gpu::program_of(self.kernel);
        program.is_ok().then(|| KernelShape {
            program,
            channels: [&self.given.targets, &self.given.sources].map(|fields| channels(fields)),
            width: K::Output::COUNT,
        })
    }

    /// The CPU backend checks fields and output itself.
    fn run_on_cpu(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let of = self.engine.pair_of_sets(self.targets, self.sources)?;
        let backend = &self.engine.backend;
        Ok(backend.traverse(self.kernel, of, self.fields(), output)?)
    }

    /// Runs on a device, or on both backends.
    fn run_on_device(
        &self,
        device: AttachedDevice<'_>,
        job: Job,
        work: KernelWork<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let engine = self.engine;
        let (summing, values) = self.summing(work, output)?;
        let instead = device.evaluate(&engine.input(), job, &summing, values)?;
        engine.ran(job, instead);
        Ok(())
    }

    /// The sums of a kernel as a job of a device, and where they go. Arrays are checked, because a
    /// device checks nothing.
    pub(super) fn summing<'w, 'v>(
        &'w self,
        work: KernelWork<'w>,
        output: Output<'v, K::Output>,
    ) -> Result<(Summing<'w, K>, &'v mut [K::Output]), Error> {
        let engine = self.engine;
        let points = (engine.points(self.targets)?, engine.points(self.sources)?);
        self.fields().check::<K>(points.0, points.1)?;
        let (values, combine) = output.of_length(points.0)?;
        let summing = Summing {
            kernel: self.kernel,
            work,
            combine,
        };
        Ok((summing, values))
    }
}

/// Puts a result where the caller wants it, or combines it with what is there.
///
/// Combining goes channel by channel, by the kernel's reduction.
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

/// Sums of a kernel, as a job that two backends share.
///
/// `Values` is its side towards the caller, with values of the kernel's type; `Numbers` its side
/// towards a device that computes by the CPU backend's code, with the same values as rows of
/// numbers.
pub(super) struct Summing<'a, K> {
    kernel: &'a K,
    work: KernelWork<'a>,
    /// Whether results are combined with what is there.
    pub(super) combine: bool,
}

impl<K: PairKernel> Numbers for Summing<'_, K> {
    fn compute(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        numbers: &mut [f32],
    ) -> Result<(), Error> {
        let width = self.width();
        let blank = K::Output::read(|_| K::REDUCE.identity());
        let mut values = filled(numbers.len() / width, blank, "values on the device")?;
        cpu.traverse(
            self.kernel,
            of,
            self.work.fields,
            Output::Write(&mut values),
        )?;
        for (value, numbers) in values.iter().zip(numbers.chunks_exact_mut(width)) {
            value.write(|channel, number| numbers[channel] = number);
        }
        Ok(())
    }
}

impl<K: PairKernel> Values for Summing<'_, K> {
    type Value = K::Output;

    fn width(&self) -> usize {
        K::Output::COUNT
    }

    fn kernel(&self) -> Option<&KernelWork<'_>> {
        Some(&self.work)
    }

    fn combines(&self) -> bool {
        self.combine
    }

    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        values: &mut [K::Output],
    ) -> Result<(), Error> {
        let output = if self.combine {
            Output::Combine(values)
        } else {
            Output::Write(values)
        };
        Ok(cpu.traverse(self.kernel, of, self.work.fields, output)?)
    }

    fn put(&self, place: &mut K::Output, numbers: &[f32]) {
        let value = K::Output::read(|channel| numbers[channel]);
        put::<K>(place, value, self.combine);
    }
}
