//! Both backends on one step: the CPU pool and a GPU, or a stand-in for one, share the targets of a work.
//!
//! A work is what is done for one pair of sets: its lists, its counts, or one kernel. Every work has a
//! controller and a [plan](plan::Planned) of its own, because backends compare differently on each. A
//! step of a work goes like this:
//!
//! 1. The plan says which bricks are whose. Where everything is one backend's, that backend works as it
//!    does alone.
//! 2. Else the calling thread drives the GPU while the CPU pool works on the other targets; an
//!    [emulated device](emulated)'s subregions are taken through their stages by a
//!    [`Crew`](nearfield_balance::Crew). Each backend sorts for itself; the CPU backend marks the targets
//!    that it takes, and the results of all others are the device's.
//! 3. Both backends' results are put together, and the times go to the controller, which may move
//!    bricks for the next step.
//!
//! When the device fails, the CPU backend does its part too, within the same step.
//!
//! A plan is made from the points of some step and serves for many: every cell of space belongs to
//! some part, so points that move meanwhile are searched for by exactly one backend all the same.

mod device_engine;
mod emulated;
mod lists;
mod plan;
mod report;
mod step;
mod times;
mod trace;
mod values;

pub use device_engine::{CpuShare, SharedTraversal};
pub use report::{BackendReport, WorkReport};
pub(crate) use times::Piece;
pub(crate) use values::Values;

use crate::{Builder, Device, Engine, Error, PointSetId, Strategy, backend::gpu::GpuSide};
use emulated::EmulatedDevice;
use nearfield_balance::{Controller, Policy, StepTimes, Ties, Traffic};
use nearfield_cpu::{PairOfSets, SetRadii, Share, ShareOfLists, Spent};
use nearfield_grid::{
    Grid, Lattice,
    memory::{Shortage, make_room},
};
use plan::WorkState;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Results that an emulated device may have on their way at a time.
const BUFFERS: usize = 2;

/// Parts of the CPU backend have this bit; subregions are below it.
const OF_CPU: u8 = 0x80;

/// What an engine needs to work on both backends.
#[derive(Debug)]
pub(crate) struct HybridSide {
    settings: Settings,
    /// Instead of a GPU.
    emulated: Option<EmulatedDevice>,
    shared: Mutex<Shared>,
    /// Checking and placing positions since the last work.
    placing: Mutex<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    policy: Policy,
    brick_edge: u32,
    subregions: usize,
    ties: Ties,
    /// Nothing may depend on what steps took.
    deterministic: bool,
}

/// What one work at a time uses.
#[derive(Debug, Default)]
struct Shared {
    works: HashMap<Work, WorkState>,
    taken: Vec<AtomicBool>,
    /// Whether the last step has left none of them taken, which goes without saying where there are none.
    unmarked: bool,
    spent: Spent,
    lists: ShareOfLists,
    /// By set, the points that the CPU backend needs.
    sorted: HashMap<usize, PartOfSet>,
}

/// Those points of a set that the CPU backend needs for a plan, sorted.
#[derive(Debug)]
struct PartOfSet {
    grid: Grid,
    /// Of which positions, and for which plan.
    stamp: u64,
    version: u64,
    /// Whether memory was taken for it since anybody asked, which takes longer than the sort itself.
    grew: bool,
}

/// Tells works from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Work {
    kind: WorkKind,
    targets: usize,
    sources: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum WorkKind {
    Lists,
    Counts,
    /// A pair kernel, by the name of its type.
    Kernel(&'static str),
}

/// Who works in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backends {
    Cpu,
    Device,
    Both,
}

/// What a cell costs strategies that go from cell to cell depends on its points; for the others only the
/// pairs count, and the CPU backend's bricks may as well lie together.
fn ties_for(strategy: Strategy) -> Ties {
    match strategy.of_share() {
        Strategy::Flat => Ties::Compact,
        _ => Ties::Octaves,
    }
}

impl HybridSide {
    pub(crate) fn new(settings: &Builder) -> Result<Self, Error> {
        let emulated = match settings.device {
            Device::Emulated(spec) => Some(EmulatedDevice::new(spec)?),
            _ => None,
        };
        Ok(Self {
            settings: Settings {
                policy: settings.policy,
                brick_edge: settings.brick_edge,
                subregions: settings.subregions,
                deterministic: settings.deterministic,
                ties: ties_for(settings.strategy),
            },
            emulated,
            shared: Mutex::default(),
            placing: Mutex::default(),
        })
    }

    /// The shared state, unless another work is under way: on another thread, or on this one, which
    /// may do something else while it waits for the pool.
    fn try_lock(&self) -> Option<MutexGuard<'_, Shared>> {
        match self.shared.try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Positions were placed, which took so long.
    pub(crate) fn placed(&self, took: Duration) {
        *locked(&self.placing) += took;
    }

    fn take_placing(&self) -> Duration {
        std::mem::take(&mut *locked(&self.placing))
    }

    /// Whether the device has work in the next step, as far as is known.
    pub(crate) fn wants_device(&self) -> bool {
        self.try_lock().is_none_or(|shared| {
            shared.works.is_empty() || shared.works.values().any(WorkState::wants_device)
        })
    }

    /// What a work sends and fetches, on the emulated device's clock. On a real one copies are part
    /// of what a subregion is measured to take.
    fn traffic(&self, kind: WorkKind) -> Traffic {
        match (&self.emulated, kind) {
            (None, _) => Traffic::NONE,
            (_, WorkKind::Lists) => Traffic::LISTS,
            _ => Traffic::SUMS,
        }
    }

    pub(crate) fn emulated(&self) -> Option<&EmulatedDevice> {
        self.emulated.as_ref()
    }

    /// What the next step of a work takes on the virtual clock; None where there is none.
    fn virtual_times(&self, shared: &Shared, work: Work) -> Option<StepTimes> {
        let device = self.emulated.as_ref()?;
        let planned = shared.works.get(&work)?.planned()?;
        Some(device.step(planned))
    }

    /// What every work did last.
    pub(crate) fn reports(&self) -> Vec<WorkReport> {
        let Some(shared) = self.try_lock() else {
            return Vec::new();
        };
        let mut works: Vec<_> = shared.works.iter().collect();
        works.sort_by_key(|(work, _)| **work);
        let reports = works.into_iter();
        reports.map(|(work, state)| state.report(work)).collect()
    }

    /// Another policy for all works.
    fn restart(&mut self, policy: Policy) -> Result<(), Error> {
        self.settings.policy = policy;
        let shared = self
            .shared
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut works = shared.works.values_mut();
        works.try_for_each(|state| state.restart(policy).map_err(Error::Schedule))
    }

    /// All sets are on another lattice now, to which no plan refers.
    pub(crate) fn move_to(&self, lattice: &Lattice) {
        if let Some(emulated) = &self.emulated {
            emulated.move_to(lattice);
        }
        if let Some(mut shared) = self.try_lock() {
            shared.works.values_mut().for_each(WorkState::drop_plan);
        }
    }
}

impl Shared {
    /// Nobody has taken any of so many targets.
    fn clear(&mut self, targets: usize) -> Result<(), Shortage> {
        if !std::mem::take(&mut self.unmarked) {
            self.taken.clear();
        }
        make_room(&mut self.taken, targets, "marks of targets")?;
        self.taken.resize_with(targets, AtomicBool::default);
        self.spent.clear();
        Ok(())
    }
}

impl Engine {
    /// From the next step on another policy divides the work between both backends; it has learnt nothing
    /// yet. Without effect on other devices than hybrid and emulated ones.
    ///
    /// # Errors
    /// [`Error::Schedule`] when the policy's numbers contradict each other; the old one then stays.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), Error> {
        Controller::new(policy).map_err(Error::Schedule)?;
        self.settings.policy = policy;
        self.hybrid
            .as_mut()
            .map_or(Ok(()), |hybrid| hybrid.restart(policy))
    }

    /// The engine's hybrid side, and the real GPU's where it has one.
    fn hybrid_sides(&self) -> Option<(&HybridSide, Option<&GpuSide>)> {
        let hybrid = self.hybrid.as_ref()?;
        let gpu = self.gpu_for_lists();
        let usable = hybrid.emulated.is_some() || gpu.is_some_and(|gpu| !gpu.failed());
        let uniform = self.settings.rule == crate::RadiusRule::Uniform;
        (usable && uniform).then_some((hybrid, gpu))
    }

    /// Whether the device has the positions of these sets as they are now.
    fn on_device(&self, hybrid: &HybridSide, sets: [usize; 2]) -> bool {
        match &hybrid.emulated {
            Some(emulated) => sets.iter().all(|&set| emulated.has(set)),
            None => self.gpu.as_ref().is_some_and(|gpu| self.all_are_on(gpu)),
        }
    }

    /// Who works in this step: the plan is made if there is none.
    ///
    /// Also says whether that is what was planned: what the device does not have it cannot work on; it
    /// gets it at the next update.
    fn backends(
        &self,
        hybrid: &HybridSide,
        shared: &mut Shared,
        work: Work,
    ) -> Result<(Backends, bool), Error> {
        let works = shared.works.len() + 1;
        (shared.works.try_reserve(1))
            .map_err(|_| Shortage::of::<(Work, WorkState)>(works, "what is known of a work"))?;
        let state = match shared.works.entry(work) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let state = WorkState::new(hybrid.settings.policy).map_err(Error::Schedule)?;
                new.insert(state)
            }
        };
        let points = [work.targets, work.sources].map(|set| self.sets[set].grid.len());
        if state.is_stale(points, hybrid.settings.deterministic) {
            let of = self.pair_of_sets(PointSetId(work.targets), PointSetId(work.sources))?;
            let subdivision = self.settings.subdivision;
            state.plan_for(of, &hybrid.settings, hybrid.traffic(work.kind), subdivision)?;
        }
        let planned = state.backends();
        // As long as both backends work, positions are checked and copied by the same workers too.
        self.backend
            .stay_beside(planned == Backends::Both && hybrid.emulated.is_none());
        match planned == Backends::Cpu || self.on_device(hybrid, [work.targets, work.sources]) {
            true => Ok((planned, true)),
            false => Ok((Backends::Cpu, false)),
        }
    }
}

impl Engine {
    /// The sets of a work as the CPU backend needs them for its share: whole where they are sorted anyway,
    /// else what lies within reach of its bricks.
    fn sets_of_share<'a>(
        &'a self,
        (hybrid, sorted): (&HybridSide, &'a mut HashMap<usize, PartOfSet>),
        plan: &plan::Planned,
        work: Work,
    ) -> Result<PairOfSets<'a>, Error> {
        let sets = [work.targets, work.sources].map(|set| &self.sets[set]);
        let whole = || self.pair_of_sets(PointSetId(work.targets), PointSetId(work.sources));
        let Some(needed) = plan.needed() else {
            return whole();
        };
        // Where the device is emulated the host sorts everything anyway, but does as if not.
        let emulated = hybrid.emulated.as_ref().map(EmulatedDevice::locked);
        if emulated.is_none() && sets.iter().any(|set| set.grid.made().is_some()) {
            return whole();
        }
        for (number, set) in [work.targets, work.sources].into_iter().zip(sets) {
            let copied = match &emulated {
                Some(sets) => (sets.get(number).and_then(Option::as_ref))
                    .map(|set| set.positions.as_flattened()),
                None => set.grid.copied(),
            };
            let Some(positions) = copied else {
                return whole();
            };
            let part = sorted.entry(number).or_insert_with(|| PartOfSet {
                grid: Grid::new(self.lattice.clone()),
                stamp: 0,
                version: 0,
                grew: false,
            });
            if (part.stamp, part.version) != (set.stamp, plan.version()) {
                let positions = positions.as_chunks::<3>().0;
                let (lattice, grid) = (plan.lattice().0, &mut part.grid);
                let held = grid.bytes();
                let bounds = set.grid.bounds();
                let built = (self.backend)
                    .install(|| grid.build_part(positions, bounds, lattice, needed, 1));
                built.map_err(|source| Error::Positions {
                    set: PointSetId(number),
                    source,
                })?;
                (part.stamp, part.version) = (set.stamp, plan.version());
                part.grew |= part.grid.bytes() > held;
            }
        }
        let grid = |set: usize| sorted.get(&set).map(|part| &part.grid);
        match (grid(work.targets), grid(work.sources)) {
            (Some(targets), Some(sources)) => Ok(PairOfSets {
                targets,
                sources,
                same_set: work.targets == work.sources,
                radii: SetRadii::Uniform,
                share: None,
            }),
            _ => whole(),
        }
    }
}

/// Whether memory was taken for any of these parts since this was asked last.
fn have_grown(parts: &mut HashMap<usize, PartOfSet>) -> bool {
    let grown = |part: &mut PartOfSet| std::mem::take(&mut part.grew);
    parts
        .values_mut()
        .fold(false, |any, part| grown(part) | any)
}

/// A clock that begins with the positions' placing.
struct Clock {
    begin: Instant,
    before: Duration,
}

impl Clock {
    fn start(hybrid: &HybridSide) -> Self {
        Self {
            begin: Instant::now(),
            before: hybrid.take_placing(),
        }
    }

    /// Milliseconds since the work began, placing left out.
    fn since_begin_ms(&self) -> f64 {
        self.begin.elapsed().as_secs_f64() * 1e3
    }

    /// Milliseconds of the step so far.
    fn ms(&self) -> f64 {
        (self.begin.elapsed() + self.before).as_secs_f64() * 1e3
    }
}

/// The targets of the CPU backend, or of a subregion of the device.
fn share<'a>(
    plan: &'a plan::Planned,
    (taken, spent): (&'a [AtomicBool], &'a Spent),
    parts: (u8, u8),
) -> Share<'a> {
    Share {
        bricks: plan.parts(),
        parts,
        taken,
        spent,
    }
}

/// Whether the CPU backend has a target's result.
fn is_taken(taken: &AtomicBool) -> bool {
    taken.load(Ordering::Relaxed)
}

/// What a mutex holds, whatever a thread that had it did.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
