//! The CPU backend as a helper of engines whose data live on a GPU.
//!
//! Steps follow the same protocol as those of an [`Engine`](crate::Engine) with two backends. The
//! difference is where the data are: only what the CPU backend needs of them crosses the bus, as a
//! [halo](super::halo).
//!
//! 1. The sort of both sets is checked, because a halo must not be gathered from points that have
//!    left their cells. If the plan leaves everything to the GPU the check comes after the
//!    traversal, so the GPU does not stand idle for it.
//! 2. The GPU gathers the points of its own bricks, and the halo. The halo is copied to the host
//!    with its fields.
//! 3. The GPU traverses its targets while the CPU backend sorts the halo and works on it.
//! 4. Results of the CPU backend are copied to the device and put among the others by index.
//!
//! **Invariant:** a target's result comes from one backend, and is written or combined once.
//!
//! # Faults
//!
//! An error of the GPU is an error of the call, because the data are on the GPU alone. The caller's
//! results are then undefined, and nothing was written outside of them. The one [`Fault`] that can
//! arise is a plan that is missing, and the CPU backend then fetches all points.
//!
//! # A plan that leaves all to the GPU
//!
//! If the plan gives all bricks to the GPU, a step is that of an engine without a helper, and a
//! wait: nothing is gathered or copied. The controller learns its time and may try another split
//! later. Values that are added to the caller's take the checked way even then, because a traversal
//! of points that had left their cells could not be taken back.

use super::{
    engine::{DeviceEngine, Traversable},
    halo::{BrickSelection, Halos, Packing, PartsOfBricks, SortedPair},
};
use crate::{
    Error, ErrorKind, PairKernel, PointSetId,
    backend::{
        DeviceError, Fault, Job, JobKind, rates,
        split::{
            self, Backends, BrickPlan, Compute, ComputeEnd, Drive, DriveEnd, GpuDone, Halves,
            JobState, Outcome, PARTS_OF_CPU, Piece, Settings, Shared, Split, SplitJob, StepClock,
            StepObservations, StepTiming, is_taken, locked, share, ties_for,
        },
    },
    balance::Policy,
    report::SplitReport,
};
use nearfield_balance::{Controller, Traffic};
use nearfield_cpu::{CpuBackend, Fields, Output, PairOfSets};
use nearfield_gpu::{
    Cache, Deliver, DeviceFields, DeviceResults, DeviceShare, DeviceViewMut, HaloResults, Note,
    PairCall, PairOfPoints, PairScratch,
};
use nearfield_grid::{Bounds, Domain, Lattice, OfProcess, Radius, memory::filled};
use nearfield_pairs::Channels;
use std::{sync::Mutex, time::Instant};

/// The CPU backend as the helper of [`DeviceEngine`]s: takes those bricks of points off the GPU
/// whose targets it is the better place for, as a [`Policy`] finds out from what steps take.
///
/// Everything stays on the GPU. Only a halo crosses the bus: the points of the CPU backend's
/// bricks and those within reach of them, with their channels, and the results of its targets on
/// the way back, for every traversal anew. (When a plan is made, seldom, all positions are looked
/// at once; and where there is a periodic axis or the CPU backend has most of the work, the halo
/// holds all points.) Keep one helper for one engine: it remembers what steps took.
#[derive(Debug)]
pub struct CpuHelper {
    cpu: CpuBackend,
    split: Split,
    /// That of the engine it helped last, and the number of its GPU.
    lattice: Option<Lattice>,
    gpu: Option<u32>,
    /// Whether it begins with the rates of earlier runs, and leaves its own.
    known_rates: bool,
    // A forked child has no memory on the GPU to free, nor pinned memory of its driver.
    packing: OfProcess<Packing>,
    halos: OfProcess<Halos>,
    /// The GPU's targets.
    ours: OfProcess<DeviceShare>,
    found: CpuResults,
}

/// A pair kernel on the CPU backend, whatever its type.
pub(super) trait CpuKernel: Sync {
    /// The name of its type.
    fn name(&self) -> &'static str;

    /// Channels of a target, of a source and of a result.
    fn channels(&self) -> [usize; 3];

    /// Evaluates it for all targets that the CPU backend has, one result after the other.
    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        fields: Fields<'_>,
        numbers: &mut Vec<f32>,
    ) -> Result<(), Error>;
}

impl<K: PairKernel> CpuKernel for K {
    fn name(&self) -> &'static str {
        std::any::type_name::<K>()
    }

    fn channels(&self) -> [usize; 3] {
        [K::Target::COUNT, K::Source::COUNT, K::Output::COUNT]
    }

    fn evaluate(
        &self,
        cpu: &CpuBackend,
        of: PairOfSets<'_>,
        fields: Fields<'_>,
        numbers: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let blank = K::Output::read(|_| K::REDUCE.identity());
        let targets = of.targets.points().len();
        let mut values = filled(targets, blank, "results of the CPU backend")?;
        cpu.traverse(self, of, fields, Output::Write(&mut values))?;
        *numbers = filled(
            targets * K::Output::COUNT,
            0.0,
            "results of the CPU backend",
        )?;
        let places = numbers.chunks_exact_mut(K::Output::COUNT);
        for (value, place) in values.iter().zip(places) {
            value.write(|channel, number| place[channel] = number);
        }
        Ok(())
    }
}

/// The CPU backend's results before they are sent, by the caller's index.
#[derive(Debug, Default)]
struct CpuResults {
    /// Results of all points of the halo.
    numbers: Vec<f32>,
    targets: Vec<u32>,
    values: Vec<f32>,
}

/// A traversal that a helper takes part in.
pub(super) struct HelpedTraversal<'a> {
    pub(super) kernel: &'a dyn CpuKernel,
    pub(super) targets: PointSetId,
    pub(super) sources: PointSetId,
    pub(super) call: PairCall<'a>,
    pub(super) fields: &'a DeviceFields<'a>,
}

impl CpuHelper {
    /// A helper with a policy and this number of threads; 0 is one per core.
    ///
    /// # Errors
    /// [`ErrorKind::Schedule`] when the policy's numbers contradict each other, and
    /// [`ErrorKind::Cpu`] when threads cannot be started.
    pub fn new(policy: Policy, threads: usize) -> Result<Self, Error> {
        // Radius and lattice are each engine's own.
        let radius = Radius::new(1.0).map_err(ErrorKind::Setup)?;
        let lattice = Lattice::new(radius, Domain::OPEN, 1, &Bounds::EMPTY);
        let lattice = lattice.map_err(ErrorKind::Setup)?;
        Controller::new(policy)?;
        Ok(Self {
            cpu: CpuBackend::new(threads)?,
            split: Split::new(Settings::of(policy), None),
            lattice: None,
            gpu: None,
            known_rates: true,
            packing: OfProcess::new(Packing::default()),
            halos: OfProcess::new(Halos::new(lattice)),
            ours: OfProcess::new(DeviceShare::default()),
            found: CpuResults::default(),
        })
    }

    /// Whether it begins with the share of the work at which both backends ended together in
    /// earlier runs on this machine, and leaves what it measures for later ones, as
    /// [`Builder::known_rates`](crate::Builder::known_rates) has it. Default: true. Rates of data
    /// on a device are kept apart from those of data on the host.
    #[must_use]
    pub fn known_rates(mut self, known: bool) -> Self {
        self.known_rates = known;
        self
    }

    /// How every kernel was divided last, by its name: backends, threshold, times and why.
    pub fn report(&self) -> Vec<(String, SplitReport)> {
        let reports = self.split.reports().into_iter();
        reports
            .map(|(job, report)| (job.kind.to_string(), report))
            .collect()
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        let halos = &self.halos;
        let shares = [&halos.targets.share, &halos.sources.share, &self.ours];
        shares.map(DeviceShare::bytes).iter().sum::<usize>() + self.packing.scratch.bytes()
    }

    /// Runs a traversal of an engine, which the helper takes part in.
    ///
    /// Waits for both backends. `results` has the outputs of every target, in the caller's order.
    ///
    /// # Errors
    /// Those of the engine, of the halo's memory on the host, and of either backend.
    pub(super) fn run(
        &mut self,
        engine: &mut DeviceEngine,
        helped: &HelpedTraversal<'_>,
        results: &mut DeviceViewMut<'_, f32>,
        deliver: Deliver,
    ) -> Result<(), Error> {
        let job = Job {
            kind: JobKind::Kernel(helped.kernel.name()),
            targets: helped.targets.slot(),
            sources: helped.sources.slot(),
        };
        let device = DeviceSide::of(engine, helped)?;
        // If the GPU has everything, its sort may be checked afterwards. Values that were added to
        // could not be computed again.
        if deliver == Deliver::Write && self.leaves_all_to(&device, job) {
            let clock = StepClock::start(None);
            device.evaluate(None, results, deliver)?;
            if engine.settle_all()? {
                engine.stream().synchronize().map_err(|error| {
                    ErrorKind::Gpu(nearfield_gpu::Error::driver("waiting for the GPU", error))
                })?;
                return self.learn_of_gpu(job, engine.points(helped.targets)?, clock);
            }
        }
        engine.settle_all()?;
        let device = DeviceSide::of(engine, helped)?;
        self.step(device, helped.kernel, job, results, deliver)
    }

    /// A step that both backends may have work in.
    fn step(
        &mut self,
        device: DeviceSide<'_>,
        kernel: &dyn CpuKernel,
        job: Job,
        results: &mut DeviceViewMut<'_, f32>,
        deliver: Deliver,
    ) -> Result<(), Error> {
        self.move_to(&device);
        let Some(mut shared) = self.split.try_lock() else {
            // It is borrowed for this step, so no other job can have it.
            return device.evaluate(None, results, deliver);
        };
        let mut step = HelperStep {
            cpu: &self.cpu,
            settings: Settings {
                ties: ties_for(device.gathered.strategy, self.split.settings.policy),
                ..self.split.settings
            },
            shared: &mut shared,
            packing: &mut self.packing,
            halos: &mut self.halos,
            ours: &mut self.ours,
            found: &mut self.found,
            timed: StepTiming {
                clock: StepClock::start(None),
                planning_ms: 0.0,
                virtual_times: None,
            },
            done: GpuDone::default(),
            device,
            kernel,
            job,
            results,
            deliver,
        };
        split::run(&self.cpu, &mut step).map(drop)
    }

    /// Whether the plan there is gives everything to the GPU, and serves for this step.
    fn leaves_all_to(&self, device: &DeviceSide<'_>, job: Job) -> bool {
        let leaves = |state: &JobState| {
            state.backends() == Backends::Device && !state.is_stale(device.points(), false)
        };
        self.lattice.as_ref() == Some(device.gathered.of.lattice.cubic())
            && (self.split.try_lock())
                .is_some_and(|shared| shared.jobs.get(&job).is_some_and(leaves))
    }

    /// A step of the GPU alone was done.
    fn learn_of_gpu(&self, job: Job, targets: usize, clock: StepClock) -> Result<(), Error> {
        let Some(mut shared) = self.split.try_lock() else {
            return Ok(());
        };
        let Shared { jobs, spent, .. } = &mut *shared;
        let Some(state) = jobs.get_mut(&job) else {
            return Ok(());
        };
        let timed = StepTiming {
            clock,
            planning_ms: 0.0,
            virtual_times: None,
        };
        let seen = StepObservations {
            targets,
            spent,
            threads: self.cpu.threads_beside(),
            done: &GpuDone::default(),
            lost: false,
            grew: false,
        };
        split::learn(state, &timed, &Outcome::new(Backends::Device), seen)
    }

    /// Plans hold for one lattice, and memory is that of one GPU.
    ///
    /// Plans of the old lattice name cells that are others now, so they are dropped; the
    /// controllers keep what they have learnt.
    fn move_to(&mut self, device: &DeviceSide<'_>) {
        let card = device.gathered.backend.device();
        let gpu = card.index;
        if self.gpu != Some(gpu) {
            let cache = self.known_rates.then(Cache::from_env).flatten();
            let machine = || rates::machine(self.cpu.threads()) + ", data on the device";
            let note = cache.map(|cache| Note::new(cache, "rates", card, &machine()));
            self.split.move_to(note);
            (*self.packing, *self.ours) = (Packing::default(), DeviceShare::default());
            self.halos.targets.share = DeviceShare::default();
            self.halos.sources.share = DeviceShare::default();
            self.gpu = Some(gpu);
        }
        let lattice = device.gathered.of.lattice.cubic();
        if self.lattice.as_ref() != Some(lattice) {
            self.split.drop_plans();
            self.packing.parts.clear();
            self.lattice = Some(lattice.clone());
        }
    }
}

/// The device's side of a step: sorted sets, fields and the program.
struct DeviceSide<'a> {
    gathered: SortedPair<'a>,
    scratch: &'a Mutex<PairScratch>,
    fields: &'a DeviceFields<'a>,
    call: PairCall<'a>,
}

impl<'a> DeviceSide<'a> {
    fn of(engine: &'a DeviceEngine, helped: &'a HelpedTraversal<'_>) -> Result<Self, Error> {
        let Traversable {
            backend,
            of,
            strategy,
            scratch,
        } = engine.traversable(helped.targets, helped.sources)?;
        Ok(Self {
            gathered: SortedPair {
                backend,
                of,
                strategy,
            },
            scratch,
            fields: helped.fields,
            call: helped.call,
        })
    }

    fn points(&self) -> [usize; 2] {
        let of = &self.gathered.of;
        [of.targets.len(), of.sources.len()]
    }

    /// Evaluates for a share of the targets, or all.
    fn evaluate(
        &self,
        share: Option<&DeviceShare>,
        results: &mut DeviceViewMut<'_, f32>,
        deliver: Deliver,
    ) -> Result<(), Error> {
        let SortedPair {
            backend,
            of,
            strategy,
        } = self.gathered;
        let of = PairOfPoints { share, ..of };
        let to = DeviceResults {
            values: results,
            deliver,
        };
        let mut scratch = locked(self.scratch);
        backend
            .evaluate_on_device(of, self.call, self.fields, to, strategy, &mut scratch)
            .map_err(Error::from)
    }

    /// The GPU's part of a step that both backends began then; its targets are gathered in `ours`.
    fn part(
        &self,
        ours: &mut DeviceShare,
        parts: &mut PartsOfBricks,
        planned: &BrickPlan,
        began: Instant,
        (results, deliver): (&mut DeviceViewMut<'_, f32>, Deliver),
    ) -> Result<GpuDone, Error> {
        let targets = self.gathered.of.targets.len();
        let _span = tracing::debug_span!("gpu.evaluate", targets).entered();
        let asked = began.elapsed();
        let backend = self.gathered.backend;
        let begin = backend.mark()?;
        self.gathered
            .gather(ours, parts, &BrickSelection::Gpu(planned))?;
        self.evaluate(Some(ours), results, deliver)?;
        let end_ms = f64::from(backend.since(&begin)?);
        let traversed = locked(self.scratch).traversed(&begin)?;
        let [begin_ms, computed_ms] = traversed.map_or([0.0, end_ms], |times| times.map(f64::from));
        let mut done = GpuDone::of(ours.bounds(), self.gathered.strategy);
        done.pieces.push(Piece {
            behind: ours.len() as u64,
            begin_ms,
            computed_ms,
            end_ms: computed_ms,
        });
        done.place(began, asked);
        Ok(done)
    }
}

/// A traversal over data on a GPU, by the GPU and the CPU backend.
struct HelperStep<'s, 'r> {
    cpu: &'s CpuBackend,
    settings: Settings,
    shared: &'s mut Shared,
    packing: &'s mut Packing,
    halos: &'s mut Halos,
    ours: &'s mut DeviceShare,
    found: &'s mut CpuResults,
    timed: StepTiming,
    done: GpuDone,
    device: DeviceSide<'s>,
    kernel: &'s dyn CpuKernel,
    job: Job,
    results: &'s mut DeviceViewMut<'r, f32>,
    deliver: Deliver,
}

impl HelperStep<'_, '_> {
    /// Brings the points of some bricks over, with what the kernel reads of them.
    fn fetch(&mut self, bricks: &BrickSelection<'_>) -> Result<(), Error> {
        fetch(
            self.cpu,
            &self.device,
            self.kernel,
            self.halos,
            self.packing,
            bricks,
        )
    }

    /// Sends the results of those points of the halo that are the CPU backend's to where all
    /// results are, and waits until they are there.
    ///
    /// Cost: 4 bytes for the index of each target and 4 per output cross the bus.
    fn put(&mut self, of_cpu: impl Fn(usize) -> bool) -> Result<(), Error> {
        let CpuResults {
            numbers,
            targets,
            values,
        } = &mut *self.found;
        targets.clear();
        values.clear();
        let width = self.kernel.channels()[2];
        let results = numbers.chunks_exact(width).enumerate();
        for (place, result) in results.filter(|(place, _)| of_cpu(*place)) {
            targets.push(self.halos.targets.index(place));
            values.extend_from_slice(result);
        }
        let bytes = size_of_val(&targets[..]) + size_of_val(&values[..]);
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        let (device, backend) = (&self.device, self.device.gathered.backend);
        let to = DeviceResults {
            values: &mut *self.results,
            deliver: self.deliver,
        };
        let scratch = &mut self.packing.scratch;
        let found = HaloResults { targets, values };
        let [points, _] = device.points();
        backend
            .put_results(device.call.program, found, to, points, scratch)
            .and_then(|()| backend.wait())
            .map_err(Error::from)
    }
}

/// Brings the points of some bricks over, with what a kernel reads of them.
fn fetch(
    cpu: &CpuBackend,
    device: &DeviceSide<'_>,
    kernel: &dyn CpuKernel,
    halos: &mut Halos,
    packing: &mut Packing,
    bricks: &BrickSelection<'_>,
) -> Result<(), Error> {
    halos.fetch(cpu, device.gathered, packing, bricks)?;
    let [targets, sources, _] = kernel.channels();
    let scratch = &mut packing.scratch;
    halos.fetch_fields(device.gathered, device.fields, [targets, sources], scratch)
}

impl SplitJob for HelperStep<'_, '_> {
    fn plan(&mut self) -> Result<Backends, Error> {
        let (points, of) = (self.device.points(), self.device.gathered);
        let state = self.shared.state_of(self.job, self.settings.policy)?;
        if state.is_stale(points, false) {
            (self.halos).fetch(self.cpu, of, self.packing, &BrickSelection::All)?;
            let pair = self.halos.pair(of.of.same_set);
            state.plan_for(pair, &self.settings, Traffic::NONE)?;
        }
        self.timed.planning_ms = self.timed.clock.since_begin_ms();
        Ok(state.backends())
    }

    fn by_cpu(&mut self) -> Result<(), Error> {
        self.fetch(&BrickSelection::All)?;
        let fields = self.halos.fields();
        let [targets, sources] = &fields;
        let fields = Fields { targets, sources };
        let of = self.halos.pair(self.device.gathered.of.same_set);
        let numbers = &mut self.found.numbers;
        self.kernel.evaluate(self.cpu, of, fields, numbers)?;
        self.put(|_| true)
    }

    fn by_device(&mut self) -> Result<(), DeviceError> {
        self.device.evaluate(None, self.results, self.deliver)?;
        let waited = self.device.gathered.backend.wait();
        waited.map_err(|error| DeviceError::Host(Error::from(ErrorKind::Gpu(error))))
    }

    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError> {
        let state = self.shared.jobs.get(&self.job);
        let Some(planned) = state.and_then(JobState::planned) else {
            return Err(DeviceError::Fault(Fault::Behind));
        };
        let bricks = BrickSelection::Needed(planned);
        let (halos, packing) = (&mut *self.halos, &mut *self.packing);
        fetch(self.cpu, &self.device, self.kernel, halos, packing, &bricks)?;
        self.shared
            .clear(self.halos.targets.len())
            .map_err(Error::from)?;
        let Shared {
            jobs, taken, spent, ..
        } = &*self.shared;
        let planned = jobs.get(&self.job).and_then(JobState::planned);
        let Some(planned) = planned else {
            return Err(DeviceError::Fault(Fault::Behind));
        };
        let (device, done, ours) = (&self.device, &mut self.done, &mut *self.ours);
        let (parts, results, deliver) = (&mut self.packing.parts, &mut *self.results, self.deliver);
        let drive = move |began: Instant| {
            *done = device.part(ours, parts, planned, began, (results, deliver))?;
            Ok(DriveEnd::Done)
        };
        let (halos, kernel, cpu) = (&*self.halos, self.kernel, self.cpu);
        let (same_set, numbers) = (device.gathered.of.same_set, &mut self.found.numbers);
        let compute = move || {
            let fields = halos.fields();
            let [targets, sources] = &fields;
            let fields = Fields { targets, sources };
            let of = PairOfSets {
                filter: Default::default(),
                share: Some(share(planned, taken, spent, PARTS_OF_CPU)),
                ..halos.pair(same_set)
            };
            kernel.evaluate(cpu, of, fields, numbers)?;
            Ok(ComputeEnd::default())
        };
        Ok(Halves { drive, compute })
    }

    fn join(&mut self) -> Result<(), Error> {
        let taken = std::mem::take(&mut self.shared.taken);
        let put = self.put(|place| is_taken(&taken[place]));
        self.shared.taken = taken;
        put
    }

    fn recover(&mut self) -> Result<(), Error> {
        self.by_cpu()
    }

    fn learn(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let Shared { jobs, spent, .. } = &mut *self.shared;
        let Some(state) = jobs.get_mut(&self.job) else {
            return Ok(());
        };
        let seen = StepObservations {
            targets: self.device.points()[0],
            spent,
            threads: self.cpu.threads_beside(),
            done: &self.done,
            lost: false,
            grew: false,
        };
        split::learn(state, &self.timed, outcome, seen)
    }
}
