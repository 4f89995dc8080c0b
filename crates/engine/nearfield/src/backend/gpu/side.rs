//! The GPU of an engine, as one thread at a time uses it.
//!
//! For an engine's jobs [`GpuSide`] alone decides between a fault and an error of the host
//! (`attempt`). Each call of a job takes the [turn](super::super::turn), checks whether the GPU has
//! failed, and does its work. After an error of the driver the GPU steps aside: it gives memory
//! back, and the fault is recorded.
//!
//! A question about the GPU may come while a job has the turn, even from that job's own thread,
//! which may do other work of the pool while it waits. `failed`, `lost` and `holds` are therefore
//! answered from atomics and from a lock that is never held while a job runs. `report` answers with
//! the last report if it cannot have the turn.
//!
//! In a forked child of the process that started the GPU no call of the driver is made, not even to
//! free memory: [`Accelerator::usable`] refuses before any job, and dropping leaks.

use super::{
    super::{
        DeviceError, Fault, HostMemory, Job, StepInput,
        accelerator::{
            Accelerator, DevicePart, JointRoom, KernelWork, OnPlaced, OnResults, PairsOfNow,
            ValueWork,
        },
        gpu_report::GpuReport,
        rows::{MeasuredRows, OnRows, Query, QueryTo, RowRange, RowsOf},
        split::GpuDone,
        support::Backend,
        transfer::{RunningBounds, StagedUpload, numbers_of, words_of},
        turn::Turn,
    },
    buffers::{Queries, RowBuffers},
    bulk::CountedRadii,
    faults::FaultRecord,
    fields::StagedFields,
    kept::{KeptLists, MovedSet, SetsOfNow},
    sort::cells,
    state::{FilterUse, GpuJobError, GpuSet, GpuState, Order, Shares},
    times::Times,
};
use crate::{Device, Error, ErrorKind, balance::Strategy};
use nearfield_cpu::{CpuBackend, JointLists, ListRows, NeighborLists, PairGeometry};
use nearfield_gpu::{
    self as gpu, Cache, DeviceCutoffs, DeviceLattice, DeviceLists, DeviceNearest, DevicePointData,
    GpuBackend, Note, PairScratch,
};
use nearfield_grid::{Bounds, HostLists, Precision};
use nearfield_pairs::Field;
use std::{
    collections::HashMap,
    mem::ManuallyDrop,
    ops::ControlFlow,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The GPU and what it holds of an engine.
#[derive(Debug)]
struct GpuSide {
    number: u32,
    name: String,
    /// Strategy that the user chose.
    strategy: Strategy,
    /// Precision of the positions.
    precision: Precision,
    /// In a forked child neither used nor dropped: CUDA does not work there, and its calls may
    /// wait.
    state: ManuallyDrop<Turn<GpuState>>,
    /// The process that started the GPU.
    process: u32,
    /// Whether the state says that it has failed, and that for good, for those who cannot look at
    /// it.
    failed: AtomicBool,
    lost: AtomicBool,
    /// By set, whether the device has the positions that were placed last. Never locked for longer
    /// than it takes to look.
    complete: Mutex<Vec<bool>>,
    /// The last report.
    reported: Mutex<Option<GpuReport>>,
}

impl Drop for GpuSide {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: dropped once, here, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.state) };
        }
    }
}

impl GpuSide {
    fn new(number: u32, strategy: Strategy, precision: Precision) -> Result<Self, gpu::Error> {
        let backend = GpuBackend::new(number)?;
        Ok(Self {
            number,
            name: backend.device().name.clone(),
            strategy,
            precision,
            process: process::id(),
            failed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            complete: Mutex::default(),
            reported: Mutex::default(),
            state: ManuallyDrop::new(Turn::new(GpuState {
                backend,
                sets: Vec::new(),
                times: Times::default(),
                lattice: None,
                lists: DeviceLists::default(),
                kept: HashMap::new(),
                now: SetsOfNow::default(),
                queries: Queries::default(),
                rows: RowBuffers::default(),
                scratch: PairScratch::default(),
                shares: Shares::default(),
                staged: StagedFields::default(),
                results: None,
                refused: HashMap::new(),
                sorting: None,
                host_buffers: 0,
                faults: FaultRecord::default(),
                cutoffs: DeviceCutoffs::default(),
                nearest: DeviceNearest::default(),
                reads: FilterUse::default(),
            })),
        })
    }

    fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Notes whether the device has the positions of a set. False while they are on their way, so a
    /// transfer that fails leaves the set incomplete.
    fn set_complete(&self, set: usize, to: bool) {
        let mut complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        if complete.len() <= set {
            complete.resize(set + 1, false);
        }
        complete[set] = to;
    }

    fn report_of(&self, state: &GpuState) -> GpuReport {
        let sets = state
            .sets
            .iter()
            .map(|set| set.points.bytes() + set.data.bytes() + set.moved.bytes());
        GpuReport {
            name: self.name.clone(),
            strategy: (state.times.configuration()).map_or(self.strategy, |one| one.strategy),
            subdivision: state.lattice.as_ref().map_or(1, DeviceLattice::subdivision),
            bytes: sets.sum::<usize>()
                + state.lists.bytes()
                + state.now.bytes()
                + state.kept.values().map(KeptLists::bytes).sum::<usize>()
                + state.queries.bytes()
                + state.scratch.bytes()
                + state.nearest.bytes()
                + state.staged.bytes(),
            trials: state.times.trials(),
            busy: self.state.missed(),
            failed: state.faults.reason(),
            faults: state.faults.so_far(),
            last_fault: state.faults.last().map(str::to_owned),
            cache_refused: state.backend.cache_refused(),
        }
    }

    /// Runs `work` and returns its result. A fault if the GPU has failed, now or before, or if it
    /// is in use and this thread must not wait for it.
    fn attempt<T>(
        &self,
        work: impl FnOnce(&mut GpuState) -> Result<T, GpuJobError>,
    ) -> Result<T, DeviceError> {
        let mut state = self.state.take_for_job().ok_or(Fault::Busy)?;
        if let Some(reason) = state.faults.reason() {
            return Err(Fault::Failed(reason).into());
        }
        match work(&mut state) {
            Ok(done) => Ok(done),
            Err(GpuJobError::Host(error)) => Err(error.into()),
            Err(GpuJobError::Fault(fault)) => Err(fault.into()),
            // A kernel that does not compile is not a fault of the GPU.
            Err(GpuJobError::Gpu(error))
                if matches!(
                    error.kind(),
                    gpu::ErrorKind::Compile { .. } | gpu::ErrorKind::Translation { .. }
                ) =>
            {
                Err(Error::from(ErrorKind::Gpu(error)).into())
            }
            Err(GpuJobError::Gpu(error)) => {
                state.step_aside(&error);
                self.lost.store(state.faults.are_final(), Ordering::Relaxed);
                self.failed.store(true, Ordering::Relaxed);
                Err(Fault::Failed(error.to_string()).into())
            }
        }
    }

    /// As [`attempt`](Self::attempt), for work in which the host cannot fail.
    fn attempt_on_gpu<T>(
        &self,
        work: impl FnOnce(&mut GpuState) -> Result<T, gpu::Error>,
    ) -> Result<T, Fault> {
        match self.attempt(|state| Ok(work(state)?)) {
            Ok(done) => Ok(done),
            Err(DeviceError::Fault(fault)) => Err(fault),
            Err(DeviceError::Host(error)) => Err(Fault::Failed(error.to_string())),
        }
    }
}

impl Accelerator for GpuSide {
    fn device(&self) -> Device {
        Device::Gpu(self.number)
    }

    fn backend(&self) -> Backend {
        Backend::Gpu
    }

    fn check_kernel(&self, kernel: &KernelWork<'_>) -> Result<(), String> {
        let (program, _) = kernel.program.as_ref().map_err(Clone::clone)?;
        let state = self.state.take();
        // A GPU that has failed or is in use does not do the job anyway.
        let Some(mut state) = state.filter(|state| !state.faults.stand()) else {
            return Ok(());
        };
        let GpuState {
            backend, refused, ..
        } = &mut *state;
        let known = refused.entry(kernel.name).or_insert_with(|| {
            let compiled = backend.load(&program.program()).map(drop);
            compiled.err().map(|error| error.to_string())
        });
        known.clone().map_or(Ok(()), Err)
    }

    fn ready(&self) -> Result<(), Fault> {
        let mut state = self.state.take_for_job().ok_or(Fault::Busy)?;
        if !state.faults.may_try() {
            return Err(Fault::Failed(state.faults.reason().unwrap_or_default()));
        }
        self.failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn rates_note(&self, machine: &str) -> Option<Note> {
        let cache = Cache::from_env()?;
        let state = self.state.take()?;
        Some(Note::new(cache, "rates", state.backend.device(), machine))
    }

    fn usable(&self) -> Result<(), Error> {
        if self.is_inherited() {
            return Err(ErrorKind::Gpu(gpu::ErrorKind::Forked.into()).into());
        }
        Ok(())
    }

    fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn took_memory(&self) -> bool {
        // Where another job has taken memory meanwhile, that is not for this one to know.
        self.state.take().is_some_and(|mut state| {
            let made = state.backend.host_buffers_made();
            std::mem::replace(&mut state.host_buffers, made) != made
        })
    }

    fn report(&self) -> Option<GpuReport> {
        if self.is_inherited() {
            return None;
        }
        // Nothing is waited for under the second lock.
        let now = self.state.take();
        let now = now.map(|state| self.report_of(&state));
        let mut reported = (self.reported.lock()).unwrap_or_else(PoisonError::into_inner);
        let report = match (now, reported.take()) {
            (Some(report), _) => report,
            // A job that this thread may be in the middle of uses the GPU: what was so before it.
            (None, Some(report)) => report,
            (None, None) => GpuReport {
                name: self.name.clone(),
                strategy: self.strategy,
                subdivision: 1,
                bytes: 0,
                trials: Vec::new(),
                busy: 0,
                failed: None,
                faults: 0,
                last_fault: None,
                cache_refused: None,
            },
        };
        let busy = self.state.missed();
        Some(reported.insert(GpuReport { busy, ..report }).clone())
    }

    fn copy(&self, old: Option<HostMemory>, numbers: usize) -> Result<HostMemory, Fault> {
        let old = old.and_then(page_locked);
        self.attempt_on_gpu(|state| {
            // It may be reading the old copy.
            state.backend.wait()?;
            state.backend.host_room(old, numbers)
        })
        .map(HostMemory::PageLocked)
    }

    fn place(
        &self,
        set: usize,
        cpu: &CpuBackend,
        copy: &mut [f32],
        from: Field<'_>,
    ) -> Result<Option<Bounds>, Fault> {
        let numbers = numbers_of(&from);
        let bytes = size_of::<f32>() * numbers;
        self.attempt_on_gpu(|state| {
            let _span = tracing::debug_span!("gpu.upload", bytes).entered();
            while state.sets.len() <= set {
                let points = state.backend.points_in(self.precision);
                let order = Order::AsGiven;
                let data = DevicePointData::default();
                let radii = CountedRadii::default();
                let moved = MovedSet::default();
                state.sets.push(GpuSet {
                    points,
                    order,
                    data,
                    radii,
                    moved,
                });
            }
            let GpuState { backend, sets, .. } = state;
            let target = &mut sets[set];
            target.order = Order::AsGiven;
            self.set_complete(set, false);
            backend.expect(&mut target.points, numbers / words_of(self.precision))?;
            let seen = RunningBounds::new(self.precision);
            let upload = StagedUpload::new(&[from], copy, |numbers| seen.look(numbers));
            upload.send(cpu, |first, piece| {
                backend.receive(&mut target.points, first, piece)
            })?;
            self.set_complete(set, true);
            Ok(seen.bounds())
        })
    }

    fn place_again(&self, set: usize, before: Option<&[f32]>) {
        // A GPU that fails now gets the positions at the next update.
        let _ = self.attempt_on_gpu(|state| {
            let GpuState { backend, sets, .. } = state;
            let Some(target) = sets.get_mut(set) else {
                return Ok(());
            };
            target.order = if before.is_some() {
                Order::AsGiven
            } else {
                Order::Sorted
            };
            let before = before.unwrap_or(&[]);
            self.set_complete(set, false);
            let points = before.len() / words_of(self.precision);
            backend.expect(&mut target.points, points)?;
            backend.receive(&mut target.points, 0, before)?;
            self.set_complete(set, true);
            Ok(())
        });
    }

    fn holds(&self, set: usize) -> bool {
        let complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        complete.get(set).is_some_and(|&complete| complete)
    }

    fn holds_first(&self, sets: usize) -> bool {
        let complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        let first = complete.get(..sets);
        first.is_some_and(|first| first.iter().all(|&complete| complete))
    }

    fn outdate(&mut self) {
        self.state.get_mut().lattice = None;
    }

    fn find(
        &self,
        input: &StepInput<'_>,
        job: Job,
        lists: &mut NeighborLists,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.find(input, job, lists))
    }

    fn geometry(
        &self,
        input: &StepInput<'_>,
        job: Job,
        geometry: &mut PairGeometry,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.geometry(input, job, geometry))
    }

    fn geometry_of_now(
        &self,
        input: &StepInput<'_>,
        job: Job,
        now: PairsOfNow<'_>,
        geometry: &mut PairGeometry,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.geometry_of_now(input, job, now, geometry))
    }

    fn measure(&self, input: &StepInput<'_>, job: Job) -> Result<u64, DeviceError> {
        self.attempt(|state| state.measure(input, job))
    }

    fn query(
        &self,
        input: &StepInput<'_>,
        query: Query<'_>,
        to: QueryTo<'_>,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.query(input, query, to))
    }

    fn measure_rows(
        &self,
        input: &StepInput<'_>,
        job: Job,
        what: RowsOf,
    ) -> Result<MeasuredRows, DeviceError> {
        self.attempt(|state| state.measure_rows(input, job, what))
    }

    fn lend_rows(
        &self,
        rows: &mut ListRows,
        targets: usize,
        pairs: u64,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.lend_rows(rows, targets, pairs))
    }

    fn write_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        range: &RowRange,
        rows: &mut ListRows,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.write_rows(input, measured, range, rows))
    }

    fn stream_rows(
        &self,
        input: &StepInput<'_>,
        measured: &MeasuredRows,
        ranges: &[RowRange],
        receive: &mut OnRows<'_>,
    ) -> Result<ControlFlow<()>, DeviceError> {
        self.attempt(|state| state.stream_rows(input, measured, ranges, receive))
    }

    fn values(
        &self,
        input: &StepInput<'_>,
        job: Job,
        work: &ValueWork<'_>,
        receive: &mut OnResults<'_>,
    ) -> Result<(), DeviceError> {
        self.attempt(|state| state.values(input, job, work, receive))
    }

    fn begin_joint<'l>(
        &self,
        lists: &'l mut NeighborLists,
        targets: usize,
        room: JointRoom,
    ) -> Result<JointLists<'l>, DeviceError> {
        self.attempt(|state| state.begin_joint(lists, targets, room))
    }

    fn find_part<'a>(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        to: HostLists<'a>,
        placed: &mut OnPlaced<'_, 'a>,
    ) -> Result<GpuDone, DeviceError> {
        self.attempt(|state| Ok(state.find_part(input, part, to, placed)?))
    }

    fn prepare_part(&self, input: &StepInput<'_>, work: &ValueWork<'_>) -> u64 {
        let Some(kernel) = work.kernel else { return 0 };
        let prepared = self.attempt_on_gpu(|state| {
            let _span = tracing::debug_span!("engine.prepare").entered();
            state.begin_sort_by(input, cells(input, &input.bounds), &input.bounds)?;
            state
                .staged
                .fill(&state.backend, input.cpu, kernel.fields)?;
            Ok(state.staged.number())
        });
        // Should the GPU fail, or be in use, that shows when the part is begun.
        prepared.unwrap_or_default()
    }

    fn values_part(
        &self,
        input: &StepInput<'_>,
        part: DevicePart<'_>,
        work: &ValueWork<'_>,
        prepared: u64,
    ) -> Result<(HostMemory, GpuDone), DeviceError> {
        let values = |state: &mut GpuState| Ok(state.values_part(input, part, work, prepared)?);
        let (results, done) = self.attempt(values)?;
        Ok((HostMemory::PageLocked(results), done))
    }

    fn give_back(&self, numbers: HostMemory) {
        // Without a turn it is made anew for the next results.
        if let Some(mut state) = self.state.take() {
            state.results = page_locked(numbers);
        }
    }
}

/// Starts the GPU with this number for positions in this precision, which takes longer than a
/// search of a million points.
///
/// # Errors
/// The missing part, and how to get it.
pub(crate) fn start(
    number: u32,
    strategy: Strategy,
    precision: Precision,
) -> Result<Box<dyn Accelerator>, String> {
    let started = GpuSide::new(number, strategy, precision).map_err(|error| error.to_string())?;
    Ok(Box::new(started))
}

/// The memory, if it is a driver's.
fn page_locked(memory: HostMemory) -> Option<gpu::HostBuffer<f32>> {
    match memory {
        HostMemory::PageLocked(memory) => Some(memory),
        HostMemory::Own(_) => None,
    }
}
