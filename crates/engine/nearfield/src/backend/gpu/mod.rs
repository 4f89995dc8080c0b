//! The GPU's side of an engine: its sets on the device, and the work it takes over there.
//!
//! The host keeps everything too, so nothing is lost when the GPU fails: the step is finished on
//! the CPU backend, as are those that follow until the GPU is [tried again](faults), and the report says
//! why.

mod faults;
mod landing;
mod lent;
mod pieces;
mod share;
mod times;
mod traverse;
mod turn;

use crate::{
    Device, Engine, Error, GpuReport, ListOrder, NeighborLists, PointSetId, RefusedKernel, Strategy,
};
pub(crate) use faults::Faults;
use landing::Landing;
use lent::{PageLocked, Received};
use nearfield_cpu::{CpuBackend, Inside, RadiusRule};
use nearfield_gpu::{
    self as gpu, Class, Destination, DeviceLattice, DeviceLists, DevicePoints, GpuBackend,
    HostBuffer, HostLists, PairOfPoints, PairScratch, Way, cudarc::driver::CudaEvent,
};
use nearfield_grid::{Bounds, Domain, Lattice, Positions};
use nearfield_pairs::ListKind;
use pieces::Pieces;
pub(crate) use share::{GpuDone, GpuPart, KEPT_PLANS};
use std::{
    collections::HashMap,
    hash::Hash,
    mem::ManuallyDrop,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use times::Times;
use tracing::field::Empty;
use turn::Turn;

/// Mean points in a cell of the radius' edge from which finer cells are worth their table.
const FINER_FROM: f64 = 4.0;
/// Cells per point that the finer table may have.
const FINER_CELLS: f64 = 12.0;
/// Cells per point that a table may have to be tried by the strategy `auto`.
const MAX_CELLS: f64 = 20.0;

/// The GPU and what it holds of an engine.
#[derive(Debug)]
pub(crate) struct GpuSide {
    number: u32,
    name: String,
    /// In a forked child neither used nor dropped: CUDA does not work there, and its calls may wait.
    state: ManuallyDrop<Turn<State>>,
    /// The process that started the GPU.
    process: u32,
    /// Whether the state says that it has failed, and that for good, for those who cannot look at it.
    failed: AtomicBool,
    lost: AtomicBool,
    /// By set, whether the device has the positions that were placed last. Never locked for longer than
    /// it takes to look.
    complete: Mutex<Vec<bool>>,
    /// What was reported last.
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

#[derive(Debug)]
struct State {
    backend: GpuBackend,
    /// Positions on the device are current; sorting waits for the first search.
    sets: Vec<Placed>,
    times: Times,
    lattice: Option<DeviceLattice>,
    lists: DeviceLists,
    scratch: PairScratch,
    shares: share::Shares,
    staged: traverse::Staged,
    /// Where results and counts arrive, made when first needed.
    results: Option<HostBuffer<f32>>,
    counts: Option<HostBuffer<u32>>,
    /// By the name of a kernel's type, why it cannot run here; `None` where it can.
    taken: HashMap<&'static str, Option<String>>,
    /// Before and after the sort that was begun, where it is timed.
    sorting: Option<[CudaEvent; 2]>,
    /// Page-locked buffers there were when that was last asked.
    host_buffers: u64,
    faults: Faults,
}

#[derive(Debug)]
struct Placed {
    points: DevicePoints,
    order: Order,
}

/// How far a set has come since its positions were placed, or since the lattice changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    AsGiven,
    /// The device has been asked to sort it.
    Begun,
    Sorted,
}

/// The kernels that stay on the CPU backend, by name.
fn refused(taken: &HashMap<&'static str, Option<String>>) -> Vec<RefusedKernel> {
    let mut refused: Vec<_> = (taken.iter())
        .filter_map(|(kernel, reason)| {
            Some(RefusedKernel {
                kernel: (*kernel).to_owned(),
                reason: reason.clone()?,
            })
        })
        .collect();
    refused.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    refused
}

impl GpuSide {
    pub(crate) fn new(number: u32) -> Result<Self, gpu::Error> {
        let backend = GpuBackend::new(number)?;
        Ok(Self {
            number,
            name: backend.device().name.clone(),
            process: process::id(),
            failed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            complete: Mutex::default(),
            reported: Mutex::default(),
            state: ManuallyDrop::new(Turn::new(State {
                backend,
                sets: Vec::new(),
                times: Times::default(),
                lattice: None,
                lists: DeviceLists::default(),
                scratch: PairScratch::default(),
                shares: share::Shares::default(),
                staged: traverse::Staged::default(),
                results: None,
                counts: None,
                taken: HashMap::new(),
                sorting: None,
                host_buffers: 0,
                faults: Faults::default(),
            })),
        })
    }

    /// Whether the GPU was started by the process that this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Memory for a copy of positions that the GPU can read: `old`, where it suffices. None when
    /// the GPU has failed, now or before.
    fn copy(&self, old: Option<HostBuffer<f32>>, numbers: usize) -> Option<HostBuffer<f32>> {
        self.attempt(|state| {
            // It may be reading the old copy.
            state.backend.wait()?;
            state.backend.host_room(old, numbers)
        })
    }

    /// Copies the positions of a set to the device, by way of `copy`: workers look at them and fill it piece by
    /// piece, and a piece is sent off as soon as it is complete. Returns their bounds, or None where some
    /// are not finite; None of either when the GPU has failed.
    fn place(
        &self,
        set: usize,
        cpu: &CpuBackend,
        copy: &mut [f32],
        from: &[f32],
    ) -> Option<Option<Bounds>> {
        let bytes = size_of_val(from);
        self.attempt(|state| {
            let _span = tracing::debug_span!("gpu.upload", bytes).entered();
            while state.sets.len() <= set {
                let points = state.backend.points();
                let order = Order::AsGiven;
                state.sets.push(Placed { points, order });
            }
            let State { backend, sets, .. } = state;
            let target = &mut sets[set];
            target.order = Order::AsGiven;
            self.set_complete(set, false);
            backend.expect(&mut target.points, from.len() / 3)?;
            let seen = Mutex::new(Some(Bounds::EMPTY));
            let look = |numbers: &[f32]| {
                let found = Bounds::of(numbers.as_chunks::<3>().0.into(), &Domain::OPEN);
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                *seen = seen.zip(found.ok()).map(|(all, more)| all.union(&more));
            };
            let pieces = Pieces::new(&[from], copy, look);
            let sent = pieces.send(cpu, |first, piece| {
                backend.receive(&mut target.points, first, piece)
            });
            sent?;
            self.set_complete(set, true);
            Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// Whether the device has all positions that were placed last.
    pub(crate) fn holds(&self, set: usize) -> bool {
        let complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        complete.get(set).is_some_and(|&complete| complete)
    }

    fn set_complete(&self, set: usize, to: bool) {
        let mut complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        if complete.len() <= set {
            complete.resize(set + 1, false);
        }
        complete[set] = to;
    }

    /// Brings the positions back to the device that a set had before others were placed and refused; none
    /// where the device had none.
    fn place_again(&self, set: usize, before: Option<&[f32]>) {
        self.attempt(|state| {
            let State { backend, sets, .. } = state;
            let Some(target) = sets.get_mut(set) else {
                return Ok(());
            };
            target.order = match before {
                Some(_) => Order::AsGiven,
                None => Order::Sorted,
            };
            let before = before.unwrap_or(&[]);
            self.set_complete(set, false);
            backend.expect(&mut target.points, before.len() / 3)?;
            backend.receive(&mut target.points, 0, before)?;
            self.set_complete(set, true);
            Ok(())
        });
    }

    /// The lattice has changed.
    pub(crate) fn outdate(&mut self) {
        self.state.get_mut().lattice = None;
    }

    pub(crate) fn report(&self, strategy: Strategy) -> GpuReport {
        // Nothing is waited for under the second lock.
        let now = self.state.take();
        let now = now.map(|state| self.report_of(&state, strategy));
        let mut reported = (self.reported.lock()).unwrap_or_else(PoisonError::into_inner);
        let report = match (now, reported.take()) {
            (Some(report), _) => report,
            // A job that this thread may be in the middle of uses the GPU: what was so before it.
            (None, Some(report)) => report,
            (None, None) => GpuReport {
                name: self.name.clone(),
                strategy,
                subdivision: 1,
                bytes: 0,
                trials: Vec::new(),
                busy: 0,
                failed: None,
                faults: 0,
                last_fault: None,
                cache_refused: None,
                refused: Vec::new(),
            },
        };
        let busy = self.state.missed();
        reported.insert(GpuReport { busy, ..report }).clone()
    }

    fn report_of(&self, state: &State, strategy: Strategy) -> GpuReport {
        let sets = state.sets.iter().map(|set| set.points.bytes());
        GpuReport {
            name: self.name.clone(),
            strategy: state.times.way().map_or(strategy, |way| way.strategy),
            subdivision: state.lattice.as_ref().map_or(1, DeviceLattice::subdivision),
            bytes: sets.sum::<usize>()
                + state.lists.bytes()
                + state.scratch.bytes()
                + state.staged.bytes(),
            trials: state.times.trials(),
            busy: self.state.missed(),
            failed: state.faults.reason(),
            faults: state.faults.so_far(),
            last_fault: state.faults.last().map(str::to_owned),
            cache_refused: state.backend.cache_refused(),
            refused: refused(&state.taken),
        }
    }

    /// Whether page-locked memory was taken since this was last asked: that takes longer than most steps.
    pub(crate) fn took_memory(&self) -> bool {
        // Where another job has taken memory meanwhile, that is not for this one to know.
        self.state.take().is_some_and(|mut state| {
            let made = state.backend.host_buffers_made();
            std::mem::replace(&mut state.host_buffers, made) != made
        })
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether the GPU cannot work again in this process.
    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// What `work` does with page-locked memory; None when the GPU has failed.
    pub(crate) fn lend<T>(
        &self,
        work: impl FnOnce(&PageLocked<'_>) -> Result<T, Received>,
    ) -> Option<Result<T, nearfield_cpu::Error>> {
        self.attempt(|state| match work(&PageLocked(&state.backend)) {
            Ok(done) => Ok(Ok(done)),
            Err(Received::Cpu(error)) => Ok(Err(error)),
            Err(Received::Gpu(error)) => Err(error),
        })
    }

    /// What `work` gives, or None when the GPU has failed, now or before, or when it is in use and this
    /// thread must not wait for it.
    fn attempt<T>(&self, work: impl FnOnce(&mut State) -> Result<T, gpu::Error>) -> Option<T> {
        let mut state = self.state.take_for_job()?;
        if !state.faults.may_try() {
            return None;
        }
        self.failed.store(false, Ordering::Relaxed);
        match work(&mut state) {
            Ok(done) => Some(done),
            Err(error) => {
                state.step_aside(&error);
                self.lost.store(state.faults.are_final(), Ordering::Relaxed);
                self.failed.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

impl State {
    /// The GPU has failed: it gives back what memory it does not need to go on later.
    fn step_aside(&mut self, error: &gpu::Error) {
        // After the fault of a kernel every call fails.
        let lost = self.backend.wait().is_err();
        tracing::warn!(%error, lost, "the CPU backend takes over from the GPU");
        self.faults.note(error.to_string(), lost);
        self.lattice = None;
        for set in &mut self.sets {
            set.order = Order::AsGiven;
        }
        self.lists = DeviceLists::default();
        self.scratch = PairScratch::default();
        self.shares = share::Shares::default();
        self.staged = traverse::Staged::default();
        self.sorting = None;
    }
}

impl State {
    /// The way to run: that of the engine's settings, or what the times so far speak for.
    fn way(&mut self, engine: &Engine) -> Way {
        let (strategy, all) = (engine.settings.strategy, engine.bounds());
        if strategy != Strategy::Auto {
            return Way {
                strategy,
                subdivision: engine.gpu_subdivision(&all),
            };
        }
        let sorted =
            self.lattice.is_some() && self.sets.iter().all(|set| set.order == Order::Sorted);
        match self.times.way().filter(|_| sorted) {
            Some(way) => way,
            None => {
                let (class, finest) = engine.occupancy(&all);
                self.times.next(class, finest)
            }
        }
    }

    /// Does `work` and books its time; `name` tells it from other works of the step. Where the work goes on
    /// after the device has done its part, it leaves a mark there.
    fn booked<T>(
        &mut self,
        name: impl Hash,
        work: impl FnOnce(&mut Self, &mut Option<CudaEvent>) -> Result<T, gpu::Error>,
    ) -> Result<T, gpu::Error> {
        let timed = self.times.way().is_some();
        let begin = timed.then(|| self.backend.mark()).transpose()?;
        let mut end = None;
        let done = work(self, &mut end)?;
        if let Some(begin) = begin {
            let took = match end {
                Some(end) => self.backend.between(&begin, &end),
                None => self.backend.since(&begin),
            };
            self.times.book(name, took?);
        }
        Ok(done)
    }

    /// Brings all sets onto a lattice for the GPU, which has its own cell size.
    fn sort(&mut self, engine: &Engine) -> Result<Strategy, gpu::Error> {
        let strategy = self.begin_sort(engine)?;
        self.finish_sort(engine)?;
        Ok(strategy)
    }

    /// Asks the device to sort all sets that are not, by the way that the work will be done; nothing else may
    /// be done with them before [`finish_sort`](Self::finish_sort).
    fn begin_sort(&mut self, engine: &Engine) -> Result<Strategy, gpu::Error> {
        let way = self.way(engine);
        let timed = self.times.way().is_some();
        let before = timed.then(|| self.backend.mark()).transpose()?;
        self.begin_sort_by(engine, way.subdivision)?;
        if let Some(before) = before {
            self.sorting = Some([before, self.backend.mark()?]);
        }
        Ok(way.strategy)
    }

    fn begin_sort_by(&mut self, engine: &Engine, subdivision: u32) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.begin_sort").entered();
        let all = engine.bounds();
        let (radius, domain) = (engine.lattice.radius(), *engine.lattice.domain());
        let lattice = match Lattice::new(radius, domain, subdivision, &all) {
            Ok(lattice) => lattice,
            // The engine's own lattice was made for the same radius, domain and points.
            Err(_) => engine.lattice.clone(),
        };
        if (self.lattice.as_ref()).is_none_or(|old| *old.lattice() != lattice) {
            self.lattice = Some(self.backend.lattice(&lattice, subdivision)?);
            for set in &mut self.sets {
                set.order = Order::AsGiven;
            }
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (set, on_host) in self.sets.iter_mut().zip(&engine.sets) {
            if set.order == Order::AsGiven {
                let bounds = on_host.grid.bounds();
                self.backend.begin_sort(&mut set.points, lattice, bounds)?;
                set.order = Order::Begun;
            }
        }
        Ok(())
    }

    /// Waits for the sort.
    fn finish_sort(&mut self, engine: &Engine) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.sort").entered();
        if let Some(lattice) = &self.lattice {
            for (set, on_host) in self.sets.iter_mut().zip(&engine.sets) {
                if set.order == Order::Begun {
                    let bounds = on_host.grid.bounds();
                    self.backend.finish(&mut set.points, lattice, bounds)?;
                    set.order = Order::Sorted;
                }
            }
        }
        if let Some([before, after]) = self.sorting.take() {
            self.times
                .book("sort", self.backend.between(&before, &after)?);
        }
        Ok(())
    }

    fn pair(&self, targets: usize, sources: usize) -> Option<PairOfPoints<'_>> {
        Some(PairOfPoints {
            lattice: self.lattice.as_ref()?,
            targets: &self.sets.get(targets)?.points,
            sources: &self.sets.get(sources)?.points,
            same_set: targets == sources,
            share: None,
        })
    }
}

impl Engine {
    /// Where the work is done.
    pub(crate) fn device(&self) -> Device {
        let asked = self.settings.device;
        match &self.gpu {
            Some(gpu) if gpu.failed() => Device::Cpu,
            Some(gpu) if self.hybrid.is_some() => Device::Hybrid(gpu.number),
            Some(gpu) => Device::Gpu(gpu.number),
            None if self.hybrid.is_some() => asked,
            None => Device::Cpu,
        }
    }

    /// Brings positions to the GPU, to be sorted there, and checks them on the way; the copy that the host
    /// keeps is to be [taken over](Self::keep_on_gpu), or the set to be [brought back](Self::restore_on_gpu).
    /// None when the host has to take them, or to say what is wrong with them.
    pub(crate) fn send_to_gpu(
        &mut self,
        set: PointSetId,
        positions: Positions<'_>,
    ) -> Option<(HostBuffer<f32>, Bounds)> {
        self.gpu_for_lists()?;
        let numbers = 3 * positions.len();
        if positions.len() >= u32::MAX as usize {
            return None;
        }
        // Engines in f64 have no GPU.
        let packed = positions.to_packed().ok()?;
        // Not the copy of the positions that the set has: it keeps them if these are refused.
        let spare = self.sets[set.0].spare_copy.take();
        let gpu = self.gpu.as_ref()?;
        let mut copy = gpu.copy(spare, numbers)?;
        let (from, to) = (packed.as_flattened(), &mut copy[..numbers]);
        let bounds = gpu.place(set.0, &self.backend, to, from)?;
        let domain = self.lattice.domain();
        match bounds.filter(|bounds| bounds.check(positions, domain).is_ok()) {
            Some(bounds) => Some((copy, bounds)),
            None => {
                self.sets[set.0].spare_copy = Some(copy);
                self.restore_on_gpu(set);
                None
            }
        }
    }

    /// The set has the positions that were [sent](Self::send_to_gpu).
    pub(crate) fn keep_on_gpu(
        &mut self,
        set: PointSetId,
        copy: (HostBuffer<f32>, usize),
        bounds: Bounds,
    ) {
        let target = &mut self.sets[set.0];
        let old = target.grid.take_copy(&self.lattice);
        target.spare_copy = old.or(target.spare_copy.take());
        target.grid.defer(copy, bounds, &self.lattice);
    }

    /// The set keeps the positions that it has, though others were [sent](Self::send_to_gpu).
    pub(crate) fn restore_on_gpu(&self, set: PointSetId) {
        if let Some(gpu) = &self.gpu {
            gpu.place_again(set.0, self.sets[set.0].grid.copied());
        }
    }

    /// Cells to a radius on the GPU.
    fn gpu_subdivision(&self, bounds: &Bounds) -> u32 {
        if self.settings.subdivision > 1 {
            return self.settings.subdivision;
        }
        let points = self.sets.iter().map(|set| set.grid.len()).sum();
        finer_cells(points, bounds.extent(), self.lattice.edges())
    }

    /// How crowded cells of the radius' edge are, and the finest cells whose table is no burden.
    fn occupancy(&self, bounds: &Bounds) -> (Class, u32) {
        let cells = cells_of(bounds.extent(), self.lattice.edges());
        let points: usize = self.sets.iter().map(|set| set.grid.len()).sum();
        let affordable = |k: &u32| f64::from(*k).powi(3) * cells <= MAX_CELLS * points as f64;
        let finest = (2..=3).rev().find(affordable).unwrap_or(1);
        (Class::of(points, cells), finest)
    }

    /// The GPU, where it can do what the engine's settings ask for.
    pub(crate) fn gpu_for_lists(&self) -> Option<&GpuSide> {
        self.gpu
            .as_ref()
            .filter(|_| self.settings.rule == RadiusRule::Uniform)
    }

    /// The GPU, where it has all sets as they are now.
    pub(crate) fn gpu_for_jobs(&self) -> Option<&GpuSide> {
        self.gpu_for_lists().filter(|gpu| self.all_are_on(gpu))
    }

    /// Whether the GPU has the positions of all sets as they are now. It has not those that were placed
    /// while it could not work.
    pub(crate) fn all_are_on(&self, gpu: &GpuSide) -> bool {
        let mut sets = self.sets.iter().enumerate();
        sets.all(|(number, set)| set.grid.copied().is_some() && gpu.holds(number))
    }

    /// Writes all lists that are out of date; false when the CPU backend has to.
    pub(crate) fn find_on_gpu(&mut self) -> Result<bool, Error> {
        if self.gpu_for_jobs().is_none() {
            return Ok(false);
        }
        for at in 0..self.pairs.len() {
            if self.pairs[at].active && !self.pairs[at].current && !self.list_on_gpu(at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the lists of one pair of sets; false when the CPU backend has to.
    fn list_on_gpu(&mut self, at: usize) -> Result<bool, Error> {
        let mut lists = std::mem::take(&mut self.pairs[at].lists);
        let found = self.list_into(at, &mut lists);
        if matches!(found, Ok(true)) && self.settings.order == ListOrder::Ascending {
            self.backend.install(|| lists.sort());
        }
        let pair = &mut self.pairs[at];
        pair.lists = lists;
        pair.current = matches!(found, Ok(true));
        found
    }

    /// The same into lists that are not the engine's meanwhile.
    pub(crate) fn list_into(&self, at: usize, lists: &mut NeighborLists) -> Result<bool, Error> {
        let (kind, sets) = (self.settings.lists, self.sets.len());
        let found = self.gpu.as_ref().and_then(|side| {
            side.attempt(|state| {
                let strategy = state.sort(self)?;
                let mut storage = std::mem::take(&mut state.lists);
                let span = tracing::debug_span!("gpu.search", pairs = Empty).entered();
                let received = state.booked(("lists", at), |state, _| {
                    let Some(pair) = state.pair(at / sets, at % sets) else {
                        return Ok(Ok(()));
                    };
                    let backend = &state.backend;
                    let pairs = backend.measure_lists(pair, kind, strategy, &mut storage)?;
                    span.record("pairs", pairs);
                    let (targets, lender) = (pair.targets.len(), PageLocked(backend));
                    let fill = |start: &mut [u64],
                                count: &mut [u32],
                                entries: &mut [u32],
                                inside: Inside| {
                        let to = HostLists {
                            start,
                            count,
                            entries,
                        };
                        let mut checked = None;
                        // While entries are still coming.
                        let placed = |start: &mut [u64], count: &mut [u32]| {
                            checked = Some(inside.check(start, count));
                        };
                        backend
                            .deliver_lists(pair, kind, strategy, &mut storage, (to, placed))
                            .map_err(Received::Gpu)?;
                        Ok(checked)
                    };
                    lists.work_on(&self.backend);
                    let received = self
                        .backend
                        .install(|| lists.receive(targets, pairs, &lender, fill));
                    match received {
                        Err(Received::Gpu(error)) => Err(error),
                        Err(Received::Cpu(error)) => Ok(Err(Error::Cpu(error))),
                        Ok(()) => Ok(Ok(())),
                    }
                });
                state.lists = storage;
                received
            })
        });
        found.transpose().map(|found| found.is_some())
    }

    /// Counts the neighbours of every target; false when the CPU backend has to.
    pub(crate) fn count_on_gpu(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        counts: &mut [u32],
    ) -> bool {
        let Some(side) = self.gpu_for_jobs() else {
            return false;
        };
        let counted = side.attempt(|state| {
            let strategy = state.sort(self)?;
            let span = tracing::debug_span!("gpu.count").entered();
            let mut results = state.backend.host_room(state.counts.take(), counts.len())?;
            let mut scratch = std::mem::take(&mut state.scratch);
            let counted = state.booked(("counts", targets, sources), |state, end| {
                let State { backend, .. } = &*state;
                let Some(pair) = state.pair(targets.0, sources.0) else {
                    return Ok(false);
                };
                let landing = Landing::new(counts, 1);
                let results = &mut results[..pair.targets.len()];
                let to = Destination::in_pieces(results, landing.piece(), |arrivals| {
                    *end = Some(backend.mark()?);
                    let put = |from: &[u32], to: &mut [u32]| to.copy_from_slice(from);
                    landing.hand_over((&self.backend, span), arrivals, false, put)
                });
                backend.count(pair, ListKind::Full, strategy, to, &mut scratch)?;
                Ok(true)
            });
            (state.scratch, state.counts) = (scratch, Some(results));
            counted
        });
        counted.unwrap_or(false)
    }
}

/// Cells that a box has, about.
fn cells_of(extent: [f64; 3], edges: [f64; 3]) -> f64 {
    (0..3)
        .map(|axis| extent[axis] / edges[axis] + 1.0)
        .product()
}

/// Cells to a radius for so many points in a box: finer ones test fewer candidates, but their table
/// has to be filled every step. `edges` are those of one cell to a radius.
pub(crate) fn finer_cells(points: usize, extent: [f64; 3], edges: [f64; 3]) -> u32 {
    let (cells, points) = (cells_of(extent, edges), points.max(1) as f64);
    match points / cells >= FINER_FROM || 8.0 * cells <= FINER_CELLS * points {
        true => 2,
        false => 1,
    }
}
