//! Both backends on points that live on the GPU: only what the CPU backend needs of them crosses the bus.

use super::{
    Backends, Clock, HybridSide, OF_CPU, Piece, Settings, Shared, Work, WorkKind, is_taken, locked,
    plan::{Planned, WorkState},
    report::WorkReport,
    share,
    step::{Seen, Step, learn, learn_alone, on_both},
    ties_for,
};
use crate::{
    Engine, Error, PairKernel, PointSetId, Policy, Strategy,
    backend::gpu::{GpuDone, KEPT_PLANS},
    device::{DeviceEngine, GpuError, Traversable},
    engine::traverse::check_support,
};
use nearfield_balance::{Backend, Controller, Traffic};
use nearfield_cpu::{CpuBackend, Fields, Output, PairOfSets, SetRadii};
use nearfield_gpu::{
    Deliver, DeviceField, DeviceFields, DeviceParts, DeviceShare, GpuBackend, HaloScratch,
    HostBuffer, PairOfPoints, PairProgram, PairScratch,
    cudarc::driver::{CudaViewMut, ValidAsZeroBits},
};
use nearfield_grid::{
    Bounds, BrickParts, Domain, Grid, Lattice, OfProcess, Radius,
    memory::{Shortage, filled, make_room},
};
use nearfield_pairs::{Channels, Field};
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, atomic::AtomicBool},
    time::Instant,
};
use tracing::field::Empty;

/// The CPU backend as the helper of [`DeviceEngine`]s: takes those bricks of points off the GPU whose
/// targets it is the better place for, as a [`Policy`] finds out from what steps take.
///
/// Everything stays on the GPU. What crosses the bus is a halo: the points of the CPU backend's bricks
/// and those within reach of them, with their channels, and the results of its targets on the way back,
/// for every traversal anew. (When a plan is made, seldom, all positions are looked at once; and where
/// there is a periodic axis or the CPU backend has most of the work, the halo holds all points.) Keep
/// one helper for one engine: it remembers what steps took.
#[derive(Debug)]
pub struct CpuShare {
    backend: CpuBackend,
    hybrid: HybridSide,
    /// That of the engine it helped last, and the number of its GPU.
    lattice: Option<Lattice>,
    gpu: Option<u32>,
    // A forked child has no memory on the GPU to free, nor pinned memory of its driver.
    packing: OfProcess<Packing>,
    halos: OfProcess<Halos>,
    /// The GPU's targets.
    ours: OfProcess<DeviceShare>,
    found: Found,
}

/// What points are gathered with.
#[derive(Debug, Default)]
struct Packing {
    parts: HashMap<PartsKey, DeviceParts>,
    scratch: HaloScratch,
}

/// Bricks whose points are gathered.
enum Bricks<'a> {
    All,
    /// What the CPU backend needs.
    Needed(&'a Planned),
    /// The GPU's, subregion by subregion.
    Gpu(&'a Planned),
}

/// What has come over for a step.
#[derive(Debug)]
struct Halos {
    targets: Halo,
    /// Not used where targets and sources are one set.
    sources: Halo,
    /// Of the targets, and of the sources.
    fields: [HaloFields; 2],
}

/// Points of a set that have come over.
#[derive(Debug)]
struct Halo {
    share: DeviceShare,
    /// Position and the caller's index.
    points: Option<HostBuffer<[f32; 4]>>,
    positions: Vec<[f32; 3]>,
    /// Sorted; their indices are places in the halo.
    grid: Grid,
}

/// Channels of such points, one behind the other.
#[derive(Debug, Default)]
struct HaloFields {
    values: Option<HostBuffer<f32>>,
    points: usize,
    channels: usize,
}

/// The CPU backend's results before they are sent, by the caller's index.
#[derive(Debug, Default)]
struct Found {
    targets: Vec<u32>,
    values: Vec<f32>,
}

/// A traversal of both backends over data on a GPU, made by [`DeviceEngine::traverse_shared`] and started
/// by one of its `run` methods.
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct SharedTraversal<'a, K> {
    engine: &'a mut DeviceEngine,
    cpu: &'a mut CpuShare,
    kernel: &'a K,
    targets: PointSetId,
    sources: PointSetId,
    fields: DeviceFields<'a>,
}

impl DeviceEngine {
    /// A traversal as [`traverse`](Self::traverse) makes it, of which `cpu` takes a part.
    pub fn traverse_shared<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
        cpu: &'a mut CpuShare,
    ) -> SharedTraversal<'a, K> {
        SharedTraversal {
            engine: self,
            cpu,
            kernel,
            targets,
            sources,
            fields: DeviceFields::default(),
        }
    }
}

impl<'a, K: PairKernel> SharedTraversal<'a, K> {
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

    /// Overwrites `results`: the channels of [`PairKernel::Output`] of every target, one target after the
    /// other in the caller's order. Waits for both backends; results are never provisional.
    ///
    /// # Errors
    /// [`Error::UnknownPointSet`], [`Error::OnDevice`] for coordinates that are not finite, and
    /// [`Error::Gpu`] when the kernel has no CUDA text or it does not compile, arrays do not fit or are
    /// on another GPU, or the GPU fails.
    pub fn run_into(self, results: &mut CudaViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Write)
    }

    /// Adds to `results` (or takes the minimum or maximum, as the kernel's reduction says).
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, results: &mut CudaViewMut<'_, f32>) -> Result<(), Error> {
        self.run(results, Deliver::Combine)
    }

    fn run(self, results: &mut CudaViewMut<'_, f32>, deliver: Deliver) -> Result<(), Error> {
        let Self {
            engine,
            cpu,
            kernel,
            targets,
            sources,
            fields,
        } = self;
        check_support(kernel, engine.radius())?;
        let (program, uniforms) = PairProgram::of(kernel).map_err(Error::Gpu)?;
        let program = (&program, &uniforms[..]);
        let work = Work {
            kind: WorkKind::Kernel(std::any::type_name::<K>()),
            targets: targets.0,
            sources: sources.0,
        };
        let device = OnDevice::of(engine, work, (&fields, program))?;
        // Where the GPU has everything, how its sort went may be looked at afterwards. What was added
        // to could not be computed again.
        if deliver == Deliver::Write && cpu.leaves_all_to(&device, work) {
            let clock = Clock::start(&cpu.hybrid);
            device.evaluate(None, results, deliver)?;
            if engine.settle_all()? {
                engine
                    .stream()
                    .synchronize()
                    .map_err(|error| Error::Gpu(GpuError::driver("waiting for the GPU", error)))?;
                return cpu.learn_of_gpu(work, engine.points(targets)?, &clock);
            }
        }
        engine.settle_all()?;
        let device = OnDevice::of(engine, work, (&fields, program))?;
        cpu.step(kernel, &device, work, (results, deliver))
    }
}

/// The device's side of a step.
struct OnDevice<'a> {
    backend: &'a GpuBackend,
    of: PairOfPoints<'a>,
    strategy: Strategy,
    scratch: &'a Mutex<PairScratch>,
    fields: &'a DeviceFields<'a>,
    program: (&'a PairProgram, &'a [f32]),
}

impl CpuShare {
    /// A helper with a policy and so many threads; 0 is one per core.
    ///
    /// # Errors
    /// [`Error::Schedule`] when the policy's numbers contradict each other, and [`Error::Cpu`] when
    /// threads cannot be started.
    pub fn new(policy: Policy, threads: usize) -> Result<Self, Error> {
        // Radius and lattice are each engine's own.
        let settings = Engine::builder(1.0).policy(policy);
        let radius = Radius::new(1.0).map_err(Error::Setup)?;
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &Bounds::EMPTY);
        let lattice = lattice.map_err(Error::Setup)?;
        Controller::new(policy).map_err(Error::Schedule)?;
        Ok(Self {
            backend: CpuBackend::new(threads)?,
            hybrid: HybridSide::new(&settings)?,
            lattice: None,
            gpu: None,
            packing: OfProcess::new(Packing::default()),
            halos: OfProcess::new(Halos {
                targets: Halo::new(lattice.clone()),
                sources: Halo::new(lattice),
                fields: Default::default(),
            }),
            ours: OfProcess::new(DeviceShare::default()),
            found: Found::default(),
        })
    }

    /// What every kernel did last: backends, threshold, times and why.
    pub fn report(&self) -> Vec<WorkReport> {
        self.hybrid.reports()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        let Halos {
            targets, sources, ..
        } = &*self.halos;
        let shares = [&targets.share, &sources.share, &self.ours];
        shares.map(DeviceShare::bytes).iter().sum::<usize>() + self.packing.scratch.bytes()
    }

    fn step<K: PairKernel>(
        &mut self,
        kernel: &K,
        device: &OnDevice<'_>,
        work: Work,
        (results, deliver): (&mut CudaViewMut<'_, f32>, Deliver),
    ) -> Result<(), Error> {
        self.move_to(device);
        let clock = Clock::start(&self.hybrid);
        let Self {
            backend,
            hybrid,
            packing,
            halos,
            ours,
            found,
            ..
        } = self;
        let (packing, halos, ours) = (&mut **packing, &mut **halos, &mut **ours);
        let Some(mut shared) = hybrid.try_lock() else {
            // Nobody else can have it: it is borrowed for this step.
            return device.evaluate(None, results, deliver);
        };
        let Shared {
            works,
            taken,
            spent,
            ..
        } = &mut *shared;
        let count = works.len() + 1;
        (works.try_reserve(1))
            .map_err(|_| Shortage::of::<(Work, WorkState)>(count, "what is known of a work"))?;
        let state = match works.entry(work) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(WorkState::new(hybrid.settings.policy).map_err(Error::Schedule)?)
            }
        };
        let points = device.points();
        if state.is_stale(points, false) {
            halos.fetch((backend, device), packing, &Bricks::All)?;
            let subdivision = device.of.lattice.subdivision();
            let settings = Settings {
                ties: ties_for(device.strategy),
                ..hybrid.settings
            };
            let of = halos.pair(device);
            state.plan_for(of, &settings, Traffic::NONE, subdivision)?;
        }
        let planning_ms = clock.since_begin_ms();
        let (backends, Some(planned)) = (state.backends(), state.planned()) else {
            return device.evaluate(None, results, deliver);
        };
        if backends == Backends::Device {
            device.evaluate(None, results, deliver)?;
            device.backend.wait().map_err(Error::Gpu)?;
            let took = (clock.ms(), planning_ms);
            return learn_alone(state, Backend::Gpu, points[0], took, None);
        }
        let bricks = match backends {
            Backends::Both => Bricks::Needed(planned),
            _ => Bricks::All,
        };
        halos.fetch((backend, device), packing, &bricks)?;
        halos.fetch_fields::<K>(device, packing)?;
        let blank = K::Output::read(|_| K::REDUCE.identity());
        let targets = halos.targets.positions.len();
        let mut values = filled(targets, blank, "results of the CPU backend")?;
        let fields = halos.fields.each_ref().map(|fields| fields.channels());
        let [targets, sources] = &fields;
        let fields = Fields { targets, sources };
        let of = halos.pair(device);
        if backends == Backends::Cpu {
            backend.traverse(kernel, of, fields, Output::Write(&mut values))?;
            found.take::<K>(&halos.targets, &values, |_| true);
            device.put(found, (results, deliver), packing)?;
            let took = (clock.ms(), planning_ms);
            return learn_alone(state, Backend::Cpu, points[0], took, None);
        }
        taken.clear();
        taken.resize_with(values.len(), AtomicBool::default);
        spent.clear();
        let step = Step {
            hybrid,
            work,
            clock,
            planning_ms,
            emulated: None,
        };
        let mut done = GpuDone::default();
        let both = {
            let of = PairOfSets {
                share: Some(share(planned, (taken, spent), (OF_CPU, u8::MAX))),
                ..of
            };
            let cpu = || {
                let output = Output::Write(&mut values[..]);
                Ok(backend.traverse(kernel, of, fields, output)?)
            };
            let (results, began) = (&mut *results, Instant::now());
            let parts = &mut packing.parts;
            let drive = || {
                let part = device.part((ours, parts), planned, (results, deliver), began);
                done = part.map_err(Some)?;
                Ok(())
            };
            on_both((backend, began), drive, cpu)?
        };
        found.take::<K>(&halos.targets, &values, |place| is_taken(&taken[place]));
        device.put(found, (results, deliver), packing)?;
        let seen = Seen {
            both: &both,
            spent,
            targets: points[0],
            gpu: Some(&done),
            lost: false,
            recovery_ms: 0.0,
            grew: false,
        };
        learn(backend, state, &step, seen)
    }

    /// Whether the plan there is gives everything to the GPU, and serves for this step.
    fn leaves_all_to(&self, device: &OnDevice<'_>, work: Work) -> bool {
        let planned = |shared: &Shared| {
            let state = shared.works.get(&work);
            state.is_some_and(|state| {
                state.backends() == Backends::Device && !state.is_stale(device.points(), false)
            })
        };
        self.lattice.as_ref() == Some(device.of.lattice.lattice())
            && self
                .hybrid
                .try_lock()
                .is_some_and(|shared| planned(&shared))
    }

    /// A step of the GPU alone was done.
    fn learn_of_gpu(&self, work: Work, targets: usize, clock: &Clock) -> Result<(), Error> {
        let Some(mut shared) = self.hybrid.try_lock() else {
            return Ok(());
        };
        match shared.works.get_mut(&work) {
            Some(state) => learn_alone(state, Backend::Gpu, targets, (clock.ms(), 0.0), None),
            None => Ok(()),
        }
    }

    /// Plans hold for one lattice, and memory is that of one GPU.
    fn move_to(&mut self, device: &OnDevice<'_>) {
        let gpu = device.backend.device().index;
        if self.gpu != Some(gpu) {
            (*self.packing, *self.ours) = (Packing::default(), DeviceShare::default());
            self.halos.targets.share = DeviceShare::default();
            self.halos.sources.share = DeviceShare::default();
            self.gpu = Some(gpu);
        }
        let lattice = device.of.lattice.lattice();
        if self.lattice.as_ref() != Some(lattice) {
            self.hybrid.move_to(lattice);
            self.packing.parts.clear();
            self.lattice = Some(lattice.clone());
        }
    }
}

impl<'a> OnDevice<'a> {
    fn of(
        engine: &'a DeviceEngine,
        work: Work,
        (fields, program): (&'a DeviceFields<'a>, (&'a PairProgram, &'a [f32])),
    ) -> Result<Self, Error> {
        let Traversable {
            backend,
            of,
            strategy,
            scratch,
        } = engine.traversable(PointSetId(work.targets), PointSetId(work.sources))?;
        Ok(Self {
            backend,
            of,
            strategy,
            scratch,
            fields,
            program,
        })
    }

    fn points(&self) -> [usize; 2] {
        [self.of.targets.len(), self.of.sources.len()]
    }
}

impl OnDevice<'_> {
    /// Evaluates for a share of the targets, or all.
    fn evaluate(
        &self,
        share: Option<&DeviceShare>,
        results: &mut CudaViewMut<'_, f32>,
        deliver: Deliver,
    ) -> Result<(), Error> {
        let of = PairOfPoints { share, ..self.of };
        let mut scratch = locked(self.scratch);
        self.backend
            .evaluate_on_device(
                of,
                self.program,
                self.fields,
                (results, deliver),
                self.strategy,
                &mut scratch,
            )
            .map_err(Error::Gpu)
    }

    /// The GPU's part of a step that both backends began then.
    fn part(
        &self,
        (ours, parts): (&mut DeviceShare, &mut HashMap<PartsKey, DeviceParts>),
        planned: &Planned,
        (results, deliver): (&mut CudaViewMut<'_, f32>, Deliver),
        began: Instant,
    ) -> Result<GpuDone, Error> {
        let _span = tracing::debug_span!("gpu.evaluate", targets = self.of.targets.len()).entered();
        let asked = began.elapsed();
        let begin = self.backend.mark().map_err(Error::Gpu)?;
        self.gather((&self.of, ours), parts, &Bricks::Gpu(planned))?;
        self.evaluate(Some(ours), results, deliver)?;
        let end_ms = f64::from(self.backend.since(&begin).map_err(Error::Gpu)?);
        let traversed = locked(self.scratch).traversed(&begin).map_err(Error::Gpu)?;
        let [begin_ms, computed_ms] = traversed.map_or([0.0, end_ms], |times| times.map(f64::from));
        let mut done = GpuDone::of(ours, self.strategy);
        done.pieces.push(Piece {
            behind: ours.len() as u64,
            begin_ms,
            computed_ms,
            end_ms: computed_ms,
        });
        done.place(began, asked);
        Ok(done)
    }

    /// Gathers the points of some bricks of the targets of a pair.
    fn gather(
        &self,
        (of, share): (&PairOfPoints<'_>, &mut DeviceShare),
        known: &mut HashMap<PartsKey, DeviceParts>,
        bricks: &Bricks<'_>,
    ) -> Result<(), Error> {
        let key = bricks.key();
        if known.len() >= 2 * KEPT_PLANS && !known.contains_key(&key) {
            known.clear();
        }
        let parts = match known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (parts, count) = bricks.parts()?;
                let lattice = (of.lattice.lattice(), of.lattice.subdivision());
                let made = self.backend.parts(&parts, count, lattice, None);
                new.insert(made.map_err(Error::Gpu)?)
            }
        };
        // Strategies that go from cell to cell need a table of the cells of what they work on.
        let grouped =
            !matches!(bricks, Bricks::Gpu(_)) || self.strategy.of_share() == Strategy::Flat;
        self.backend
            .share(of.targets, of.lattice, parts, grouped, share)
            .map_err(Error::Gpu)
    }

    /// Sends the CPU backend's results to where all results are, and waits until they are there.
    fn put(
        &self,
        found: &Found,
        (results, deliver): (&mut CudaViewMut<'_, f32>, Deliver),
        packing: &mut Packing,
    ) -> Result<(), Error> {
        let _span = tracing::debug_span!("gpu.upload", bytes = found.bytes()).entered();
        let (backend, targets) = (self.backend, self.of.targets.len());
        backend
            .put_results(
                self.program.0,
                (&found.targets, &found.values),
                (results, targets),
                deliver,
                &mut packing.scratch,
            )
            .and_then(|()| backend.wait())
            .map_err(Error::Gpu)
    }
}

/// Tells maps of bricks on the device from each other.
type PartsKey = (u64, u8);

impl Bricks<'_> {
    fn key(&self) -> PartsKey {
        match self {
            Self::All => (0, 0),
            Self::Needed(planned) => (planned.version(), 1),
            Self::Gpu(planned) => (planned.version(), 2),
        }
    }

    /// Whose bricks are whose, and how many of the parts are gathered.
    fn parts(&self) -> Result<(Cow<'_, BrickParts>, usize), Shortage> {
        Ok(match self {
            Self::Gpu(planned) => (Cow::Borrowed(planned.parts()), planned.subregions()),
            Self::Needed(planned) => match planned.needed() {
                Some(needed) => (Cow::Owned(needed.only(|part| part == 1)?), 1),
                None => (Cow::Owned(BrickParts::everywhere(0)), 1),
            },
            Self::All => (Cow::Owned(BrickParts::everywhere(0)), 1),
        })
    }
}

impl Halos {
    /// Brings the points of some bricks of both sets over, and sorts them.
    fn fetch(
        &mut self,
        (backend, device): (&CpuBackend, &OnDevice<'_>),
        packing: &mut Packing,
        bricks: &Bricks<'_>,
    ) -> Result<(), Error> {
        let Packing { parts, .. } = packing;
        self.targets
            .fetch((backend, device, &device.of), parts, bricks)?;
        if !device.of.same_set {
            let sources = PairOfPoints {
                targets: device.of.sources,
                ..device.of
            };
            self.sources
                .fetch((backend, device, &sources), parts, bricks)?;
        }
        Ok(())
    }

    /// Brings the channels of those points over.
    fn fetch_fields<K: PairKernel>(
        &mut self,
        device: &OnDevice<'_>,
        packing: &mut Packing,
    ) -> Result<(), Error> {
        let sources = match device.of.same_set {
            true => &self.targets,
            false => &self.sources,
        };
        let [of_targets, of_sources] = &mut self.fields;
        let (fields, of) = (device.fields, device.of);
        of_targets.fetch(
            device.backend,
            (&self.targets, of.targets.len(), K::Target::COUNT),
            ("fields of targets", fields.targets.as_ref()),
            &mut packing.scratch,
        )?;
        of_sources.fetch(
            device.backend,
            (sources, of.sources.len(), K::Source::COUNT),
            ("fields of sources", fields.sources.as_ref()),
            &mut packing.scratch,
        )
    }

    /// The points that have come over, as the CPU backend takes them.
    fn pair(&self, device: &OnDevice<'_>) -> PairOfSets<'_> {
        let same_set = device.of.same_set;
        PairOfSets {
            targets: &self.targets.grid,
            sources: match same_set {
                true => &self.targets.grid,
                false => &self.sources.grid,
            },
            same_set,
            radii: SetRadii::Uniform,
            share: None,
        }
    }
}

impl Halo {
    fn new(lattice: Lattice) -> Self {
        Self {
            share: DeviceShare::default(),
            points: None,
            positions: Vec::new(),
            grid: Grid::new(lattice),
        }
    }

    fn fetch(
        &mut self,
        (cpu, device, of): (&CpuBackend, &OnDevice<'_>, &PairOfPoints<'_>),
        parts: &mut HashMap<PartsKey, DeviceParts>,
        bricks: &Bricks<'_>,
    ) -> Result<(), Error> {
        let _span = tracing::debug_span!("gpu.download", bytes = Empty).entered();
        device.gather((of, &mut self.share), parts, bricks)?;
        let len = self.share.len();
        let points = room(device.backend, &mut self.points, len)?;
        (device.backend)
            .fetch_points(&self.share, points)
            .map_err(Error::Gpu)?;
        tracing::Span::current().record("bytes", size_of_val(points));
        self.positions.clear();
        make_room(&mut self.positions, points.len(), "positions of a device")?;
        self.positions
            .extend(points.iter().map(|&[x, y, z, _]| [x, y, z]));
        // The device has checked them; what it has sorted is finite and not too far away.
        let lattice = of.lattice.lattice();
        let sorted = cpu.install(|| {
            let bounds = Bounds::of((&self.positions).into(), lattice.domain());
            bounds.and_then(|bounds| self.grid.build((&self.positions).into(), bounds, lattice))
        });
        sorted.map_err(Error::Setup)
    }

    /// The caller's index of a point.
    fn index(&self, place: usize) -> u32 {
        let points = self.points.as_deref().unwrap_or_default();
        points
            .get(place)
            .map_or(u32::MAX, |point| point[3].to_bits())
    }
}

impl HaloFields {
    fn fetch(
        &mut self,
        backend: &GpuBackend,
        (halo, points, channels): (&Halo, usize, usize),
        field: (&'static str, Option<&DeviceField<'_>>),
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        (self.points, self.channels) = (halo.positions.len(), channels);
        let values = room(backend, &mut self.values, self.points * channels)?;
        backend
            .fetch_fields((&halo.share, points), field, values, scratch)
            .map_err(Error::Gpu)
    }

    /// One field a channel.
    fn channels(&self) -> Vec<Field<'_>> {
        let values = self.values.as_deref().unwrap_or_default();
        let channel = |k: usize| Field::from(&values[k * self.points..(k + 1) * self.points]);
        (0..self.channels).map(channel).collect()
    }
}

impl Found {
    /// Takes the results of those targets of a halo that are the CPU backend's.
    fn take<K: PairKernel>(
        &mut self,
        halo: &Halo,
        values: &[K::Output],
        of_cpu: impl Fn(usize) -> bool,
    ) {
        self.targets.clear();
        self.values.clear();
        for (place, value) in values
            .iter()
            .enumerate()
            .filter(|(place, _)| of_cpu(*place))
        {
            self.targets.push(halo.index(place));
            value.write(|_, channel| self.values.push(channel));
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.targets[..]) + size_of_val(&self.values[..])
    }
}

/// Page-locked memory for `len` elements, kept from before where it suffices.
fn room<'a, T: ValidAsZeroBits>(
    backend: &GpuBackend,
    buffer: &'a mut Option<HostBuffer<T>>,
    len: usize,
) -> Result<&'a mut [T], Error> {
    let kept = backend.host_room(buffer.take(), len).map_err(Error::Gpu)?;
    Ok(&mut buffer.insert(kept)[..len])
}
