//! Two backends on one step: the CPU pool and a device share the targets of a job.
//!
//! Every job, the lists or counts of a pair of sets or one kernel over it, has a controller and a
//! [plan](Planned) of its own, because backends compare differently on each. The plan says which
//! bricks are whose; [`protocol`] says what happens in a step, whatever the job is. Each backend sorts
//! for itself. The CPU backend marks the targets that it takes, and the results of all others are the
//! device's.
//!
//! A plan is made from the points of some step and serves for many: every cell of space belongs to
//! some part, so points that move meanwhile are searched for by exactly one backend all the same.

mod done;
mod lists;
mod plan;
mod protocol;
mod report;
mod sorted;
mod step;
mod times;
mod trace;
mod values;

pub(crate) use done::{GpuDone, Piece};
pub(crate) use lists::find;
pub(crate) use plan::{JobState, Planned};
pub(crate) use protocol::{
    Backends, Compute, Computed, Drive, Driven, Halves, Outcome, SplitJob, milliseconds, run,
};
pub use report::{BackendReport, JobReport, SplitReport};
pub(crate) use step::{Clock, Device, Ran, Seen, Timed, learn};
pub(crate) use values::{Values, evaluate};

use super::Job;
use crate::{Builder, Error, Strategy};
use nearfield_balance::{Policy, Ties};
use nearfield_cpu::{Share, ShareOfLists, Spent};
use nearfield_grid::memory::{Shortage, make_room};
use sorted::PartOfSet;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Parts of the CPU backend have this bit; subregions are below it.
pub(crate) const OF_CPU: u8 = 0x80;

/// What an engine needs to divide steps.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) settings: Settings,
    shared: Mutex<Shared>,
    /// Checking and placing positions since the last job.
    placing: Mutex<Duration>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) brick_edge: u32,
    pub(crate) subregions: usize,
    pub(crate) ties: Ties,
    /// Nothing may depend on what steps took.
    pub(crate) deterministic: bool,
}

/// What one job at a time uses.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) jobs: HashMap<Job, JobState>,
    pub(crate) taken: Vec<AtomicBool>,
    /// Whether the last step has left none of them taken.
    unmarked: bool,
    pub(crate) spent: Spent,
    lists: ShareOfLists,
    /// By set, the points that the CPU backend needs.
    sorted: HashMap<usize, PartOfSet>,
}

/// Which bricks go over together. What a cell costs strategies that go from cell to cell depends on
/// its points; for the others only the pairs count, and the CPU backend's bricks may as well lie
/// together.
pub(crate) fn ties_for(strategy: Strategy) -> Ties {
    match strategy.of_share() {
        Strategy::Flat => Ties::Compact,
        _ => Ties::Octaves,
    }
}

impl Split {
    pub(crate) fn new(settings: &Builder) -> Self {
        Self {
            settings: Settings {
                policy: settings.policy,
                brick_edge: settings.brick_edge,
                subregions: settings.subregions,
                deterministic: settings.deterministic,
                ties: ties_for(settings.strategy),
            },
            shared: Mutex::default(),
            placing: Mutex::default(),
        }
    }

    /// The shared state, unless another job is under way: on another thread, or on this one, which
    /// may do something else while it waits for the pool.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Shared>> {
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
            shared.jobs.is_empty() || shared.jobs.values().any(JobState::wants_device)
        })
    }

    /// How every job was divided last; none while a job is under way.
    pub(crate) fn reports(&self) -> Vec<(Job, SplitReport)> {
        let Some(shared) = self.try_lock() else {
            return Vec::new();
        };
        let reports = shared.jobs.iter();
        let mut reports: Vec<_> = reports.map(|(job, state)| (*job, state.report())).collect();
        reports.sort_by_key(|(job, _)| *job);
        reports
    }

    /// Another policy for all jobs.
    pub(crate) fn restart(&mut self, policy: Policy) -> Result<(), Error> {
        self.settings.policy = policy;
        let shared = self.shared.get_mut();
        let mut jobs = shared
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .values_mut();
        jobs.try_for_each(|state| state.restart(policy).map_err(Error::from))
    }

    /// All sets are on another lattice now, to which no plan refers.
    pub(crate) fn drop_plans(&self) {
        if let Some(mut shared) = self.try_lock() {
            shared.jobs.values_mut().for_each(JobState::drop_plan);
        }
    }
}

impl Shared {
    /// What is known of a job; made at its first step.
    pub(crate) fn state_of(&mut self, job: Job, policy: Policy) -> Result<&mut JobState, Error> {
        let count = self.jobs.len() + 1;
        (self.jobs.try_reserve(1))
            .map_err(|_| Shortage::of::<(Job, JobState)>(count, "what is known of a job"))?;
        Ok(match self.jobs.entry(job) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(JobState::new(policy)?),
        })
    }

    /// None of so many targets is taken.
    pub(crate) fn clear(&mut self, targets: usize) -> Result<(), Shortage> {
        if !std::mem::take(&mut self.unmarked) {
            self.taken.clear();
        }
        make_room(&mut self.taken, targets, "marks of targets")?;
        self.taken.resize_with(targets, AtomicBool::default);
        self.spent.clear();
        Ok(())
    }
}

/// The targets in bricks of some parts.
pub(crate) fn share<'a>(
    planned: &'a Planned,
    taken: &'a [AtomicBool],
    spent: &'a Spent,
    parts: (u8, u8),
) -> Share<'a> {
    Share {
        bricks: planned.parts(),
        parts,
        taken,
        spent,
    }
}

/// The parts of the CPU backend, and those of the device.
pub(crate) const PARTS_OF_CPU: (u8, u8) = (OF_CPU, u8::MAX);
pub(crate) const PARTS_OF_DEVICE: (u8, u8) = (0, OF_CPU - 1);

/// Whether the CPU backend has a target's result.
pub(crate) fn is_taken(taken: &AtomicBool) -> bool {
    taken.load(Ordering::Relaxed)
}

/// What a mutex holds, whatever a thread that had it did.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
