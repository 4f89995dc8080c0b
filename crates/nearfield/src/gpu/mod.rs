//! The GPU's side of an engine: its sets on the device, and the work it takes over there.
//!
//! The host keeps everything too, so nothing is lost when the GPU fails: the step is finished on
//! the CPU lane, as are all that follow, and the report says why.

mod lent;
mod pieces;
mod share;
mod times;
mod traverse;

use crate::{Device, Engine, Error, GpuReport, ListOrder, NeighborLists, PointSetId, Strategy};
use lent::{PageLocked, Received};
use nearfield_cpu::{CpuLane, ListKind, RadiusRule};
use nearfield_gpu::{
    self as gpu, Class, DeviceLattice, DeviceLists, DevicePoints, GpuLane, HostBuffer, HostLists,
    PairOfPoints, PairScratch, Way,
};
use nearfield_grid::{Bounds, Lattice, Positions};
use pieces::{PIECE, PIECES, Pieces};
pub(crate) use share::{GpuDone, GpuPart, KEPT_PLANS};
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};
use times::Times;
use tracing::field::Empty;

/// Mean points in a cell of the radius' edge from which finer cells are worth their table.
const FINER_FROM: f64 = 4.0;
/// Cells per point that the finer table may have.
const FINER_CELLS: f64 = 12.0;
/// Cells per point that a table may have to be tried by the strategy `auto`.
const MOST_CELLS: f64 = 20.0;

/// Numbers that one thread copies at a time.
const COPIED: usize = 1 << 15;

/// The GPU and what it holds of an engine.
#[derive(Debug)]
pub(crate) struct GpuSide {
    number: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lane: GpuLane,
    /// Positions on the device are current; sorting waits for the first search.
    sets: Vec<Placed>,
    times: Times,
    lattice: Option<DeviceLattice>,
    lists: DeviceLists,
    scratch: PairScratch,
    shares: share::Shares,
    staged: traverse::Staged,
    /// Where results arrive, made when first needed.
    results: Option<HostBuffer<f32>>,
    /// By the name of a kernel's type, whether it can run here.
    taken: HashMap<&'static str, bool>,
    failed: Option<String>,
}

#[derive(Debug)]
struct Placed {
    points: DevicePoints,
    sorted: bool,
}

impl GpuSide {
    pub(crate) fn new(number: u32) -> Result<Self, gpu::Error> {
        Ok(Self {
            number,
            state: Mutex::new(State {
                lane: GpuLane::new(number)?,
                sets: Vec::new(),
                times: Times::default(),
                lattice: None,
                lists: DeviceLists::default(),
                scratch: PairScratch::default(),
                shares: share::Shares::default(),
                staged: traverse::Staged::default(),
                results: None,
                taken: HashMap::new(),
                failed: None,
            }),
        })
    }

    /// Memory for a copy of positions that the GPU can read: `old`, where it suffices. None when
    /// the GPU has failed, now or before.
    fn copy(&self, old: Option<HostBuffer<f32>>, numbers: usize) -> Option<HostBuffer<f32>> {
        self.attempt(|state| {
            // It may be reading the old copy.
            state.lane.wait()?;
            state.lane.host_room(old, numbers)
        })
    }

    /// Copies the checked positions of a set to the device, by way of `copy`: workers fill it piece by piece,
    /// and a piece is sent off as soon as it is complete. False when the GPU has failed.
    fn place(&self, set: usize, cpu: &CpuLane, copy: &mut [f32], from: &[f32]) -> bool {
        let bytes = size_of_val(from);
        let placed = self.attempt(|state| {
            let _span = tracing::debug_span!("gpu.upload", bytes).entered();
            while state.sets.len() <= set {
                let points = state.lane.points();
                let sorted = false;
                state.sets.push(Placed { points, sorted });
            }
            let State { lane, sets, .. } = state;
            let target = &mut sets[set];
            target.sorted = false;
            lane.expect(&mut target.points, from.len() / 3)?;
            let pieces = Pieces::new(from, copy, from.len().div_ceil(PIECES).max(PIECE));
            let (sent, ()) = cpu.beside(
                || pieces.for_each(|first, piece| lane.receive(&mut target.points, first, piece)),
                || pieces.fill(),
            );
            sent
        });
        placed.is_some()
    }

    /// The lattice has changed.
    pub(crate) fn outdate(&mut self) {
        self.locked().lattice = None;
    }

    pub(crate) fn report(&self, strategy: Strategy) -> GpuReport {
        let state = self.locked();
        let sets = state.sets.iter().map(|set| set.points.bytes());
        GpuReport {
            name: state.lane.device().name.clone(),
            strategy: state.times.way().map_or(strategy, |way| way.strategy),
            subdivision: state.lattice.as_ref().map_or(1, DeviceLattice::subdivision),
            bytes: sets.sum::<usize>() + state.lists.bytes() + state.scratch.bytes(),
            tried: state.times.tried(),
            failed: state.failed.clone(),
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.locked().failed.is_some()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind is sorted anew at the next step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `work` does with page-locked memory; None when the GPU has failed.
    pub(crate) fn lend<T>(
        &self,
        work: impl FnOnce(&PageLocked<'_>) -> Result<T, Received>,
    ) -> Option<Result<T, nearfield_cpu::Error>> {
        self.attempt(|state| match work(&PageLocked(&state.lane)) {
            Ok(done) => Ok(Ok(done)),
            Err(Received::Cpu(error)) => Ok(Err(error)),
            Err(Received::Gpu(error)) => Err(error),
        })
    }

    /// What `work` gives, or None when the GPU has failed, now or before.
    fn attempt<T>(&self, work: impl FnOnce(&mut State) -> Result<T, gpu::Error>) -> Option<T> {
        let mut state = self.locked();
        if state.failed.is_some() {
            return None;
        }
        match work(&mut state) {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::warn!(%error, "the CPU lane takes over from the GPU");
                state.failed = Some(error.to_string());
                None
            }
        }
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
        let sorted = self.lattice.is_some() && self.sets.iter().all(|set| set.sorted);
        match self.times.way().filter(|_| sorted) {
            Some(way) => way,
            None => {
                let (class, finest) = engine.crowding(&all);
                self.times.next(class, finest)
            }
        }
    }

    /// Does `work` and books its time; `name` tells it from other works of the step.
    fn booked<T>(
        &mut self,
        name: impl Hash,
        work: impl FnOnce(&mut Self) -> Result<T, gpu::Error>,
    ) -> Result<T, gpu::Error> {
        if self.times.way().is_none() {
            return work(self);
        }
        let begin = self.lane.mark()?;
        let done = work(self)?;
        self.times.book(name, self.lane.since(&begin)?);
        Ok(done)
    }

    /// Brings all sets onto a lattice for the GPU, which has its own cell size.
    fn sort(&mut self, engine: &Engine) -> Result<Strategy, gpu::Error> {
        let way = self.way(engine);
        self.booked("sort", |state| state.sort_by(engine, way.subdivision))?;
        Ok(way.strategy)
    }

    fn sort_by(&mut self, engine: &Engine, subdivision: u32) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.sort").entered();
        let all = engine.bounds();
        let (radius, domain) = (engine.lattice.radius(), *engine.lattice.domain());
        let lattice = match Lattice::new(radius, domain, subdivision, &all) {
            Ok(lattice) => lattice,
            // The engine's own lattice was made for the same radius, domain and points.
            Err(_) => engine.lattice.clone(),
        };
        if (self.lattice.as_ref()).is_none_or(|old| *old.lattice() != lattice) {
            self.lattice = Some(self.lane.lattice(&lattice, subdivision)?);
            for set in &mut self.sets {
                set.sorted = false;
            }
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (set, on_host) in self.sets.iter_mut().zip(&engine.sets) {
            if !set.sorted {
                self.lane
                    .sort(&mut set.points, lattice, on_host.grid.bounds())?;
                set.sorted = true;
            }
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

    /// Hands checked positions to the GPU, to be sorted there; false when the host has to.
    pub(crate) fn place_on_gpu(
        &mut self,
        set: PointSetId,
        positions: Positions<'_>,
        bounds: Bounds,
    ) -> bool {
        let Some(gpu) = self.gpu_for_lists() else {
            return false;
        };
        let numbers = 3 * positions.len();
        if gpu.failed() {
            return false;
        }
        // Engines in f64 have no GPU.
        let Ok(packed) = positions.to_packed() else {
            return false;
        };
        let target = &mut self.sets[set.0];
        let old = target.grid.take_copy(&self.lattice);
        let old = old.or(target.spare_copy.take());
        let Some(mut copy) = self.gpu.as_ref().and_then(|gpu| gpu.copy(old, numbers)) else {
            return false;
        };
        let (from, to) = (packed.as_flattened(), &mut copy[..numbers]);
        let placed = (self.gpu.as_ref()).is_some_and(|gpu| gpu.place(set.0, &self.lane, to, from));
        if placed {
            let grid = &mut self.sets[set.0].grid;
            grid.defer((copy, positions.len()), bounds, &self.lattice);
        }
        placed
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
    fn crowding(&self, bounds: &Bounds) -> (Class, u32) {
        let cells = cells_of(bounds.extent(), self.lattice.edges());
        let points: usize = self.sets.iter().map(|set| set.grid.len()).sum();
        let affordable = |k: &u32| f64::from(*k).powi(3) * cells <= MOST_CELLS * points as f64;
        let finest = (2..=3).rev().find(affordable).unwrap_or(1);
        (Class::of(points, cells), finest)
    }

    /// The GPU, where it can do what the engine's settings ask for.
    pub(crate) fn gpu_for_lists(&self) -> Option<&GpuSide> {
        self.gpu
            .as_ref()
            .filter(|_| self.settings.rule == RadiusRule::Uniform)
    }

    /// Writes all lists that are out of date; false when the CPU lane has to.
    pub(crate) fn find_on_gpu(&mut self) -> Result<bool, Error> {
        if self.gpu_for_lists().is_none() {
            return Ok(false);
        }
        for at in 0..self.pairs.len() {
            if self.pairs[at].active && !self.pairs[at].current && !self.list_on_gpu(at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the lists of one pair of sets; false when the CPU lane has to.
    fn list_on_gpu(&mut self, at: usize) -> Result<bool, Error> {
        let mut lists = std::mem::take(&mut self.pairs[at].lists);
        let found = self.list_into(at, &mut lists);
        if matches!(found, Ok(true)) && self.settings.order == ListOrder::Ascending {
            self.lane.install(|| lists.sort());
        }
        let pair = &mut self.pairs[at];
        pair.lists = lists;
        pair.current = matches!(found, Ok(true));
        found
    }

    /// The same into lists that are not the engine's meanwhile.
    pub(crate) fn list_into(&self, at: usize, lists: &mut NeighborLists) -> Result<bool, Error> {
        let (kind, sets) = (on_device(self.settings.lists), self.sets.len());
        let found = self.gpu.as_ref().and_then(|side| {
            side.attempt(|state| {
                let strategy = state.sort(self)?;
                let mut storage = std::mem::take(&mut state.lists);
                let span = tracing::debug_span!("gpu.search", pairs = Empty).entered();
                let received = state.booked(("lists", at), |state| {
                    let Some(pair) = state.pair(at / sets, at % sets) else {
                        return Ok(Ok(()));
                    };
                    let lane = &state.lane;
                    let pairs = lane.measure_lists(pair, kind, strategy, &mut storage)?;
                    span.record("pairs", pairs);
                    let (targets, lender) = (pair.targets.len(), PageLocked(lane));
                    let fill = |start: &mut [u64], count: &mut [u32], entries: &mut [u32]| {
                        let to = HostLists {
                            start,
                            count,
                            entries,
                        };
                        lane.deliver_lists(pair, kind, strategy, &mut storage, to)
                            .map_err(Received::Gpu)
                    };
                    let received = self
                        .lane
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

    /// Counts the neighbours of every target; false when the CPU lane has to.
    pub(crate) fn count_on_gpu(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        counts: &mut [u32],
    ) -> bool {
        let Some(side) = self.gpu_for_lists() else {
            return false;
        };
        let counted = side.attempt(|state| {
            let strategy = state.sort(self)?;
            let _span = tracing::debug_span!("gpu.count").entered();
            state.booked(("counts", targets, sources), |state| {
                let Some(pair) = state.pair(targets.0, sources.0) else {
                    return Ok(None);
                };
                let counts = state.lane.count(pair, gpu::ListKind::Full, strategy)?;
                Ok(Some(counts))
            })
        });
        match counted.flatten() {
            Some(found) => {
                counts.copy_from_slice(&found);
                true
            }
            None => false,
        }
    }
}

/// The kind of lists, in the words of the GPU lane.
pub(crate) fn on_device(kind: ListKind) -> gpu::ListKind {
    match kind {
        ListKind::Full => gpu::ListKind::Full,
        ListKind::Half => gpu::ListKind::Half,
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
