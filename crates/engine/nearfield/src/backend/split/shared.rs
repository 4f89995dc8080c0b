//! State that an engine keeps between steps of two backends: settings, jobs and memory.
//!
//! One job at a time uses it. A second one does not wait: the pool's workers that the first needs
//! might be waiting in the second, so it is done by the CPU backend alone.
//!
//! Marks, times and list memory are one set for all jobs, since they serve one step only. Plans and
//! controllers are kept per job for the life of the engine.
//!
//! **Invariant:** `taken` has no mark set when a step of both backends begins. A join clears each
//! mark as it reads it; a step that ended otherwise leaves `unmarked` false, and the next one
//! clears all marks.

use super::{
    super::{Job, gpu::Note, rates::Rates},
    plan::JobState,
    report::SplitReport,
    settings::Settings,
    sorted::PartOfSet,
};
use crate::Error;
use nearfield_balance::Policy;
use nearfield_cpu::{ShareOfLists, Spent};
use nearfield_grid::memory::{Shortage, make_room};
use std::{
    cmp::Reverse,
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError, atomic::AtomicBool},
    time::Duration,
};

/// State of an engine for dividing steps.
#[derive(Debug)]
pub(crate) struct Split {
    /// Of all jobs; the policy may change between steps.
    pub(crate) settings: Settings,
    shared: Mutex<Shared>,
    /// Checking and placing positions since the last job.
    placing: Mutex<Duration>,
    /// Where rates are kept between runs.
    note: Option<Note>,
}

/// State that one job at a time uses.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Plans and controllers.
    pub(crate) jobs: HashMap<Job, JobState>,
    /// Rates of earlier runs.
    rates: Rates,
    /// Whether the device has work in any job, if that was asked since the last one: of many sets
    /// each is placed, and each has many jobs.
    wants_device: Option<bool>,
    /// By target in the caller's order, whether the CPU backend has its result in this step.
    pub(crate) taken: Vec<AtomicBool>,
    /// Whether the last step has left none of them taken.
    pub(super) unmarked: bool,
    /// Time of the workers by part, and targets done.
    pub(crate) spent: Spent,
    /// Memory of the CPU backend's part of lists.
    pub(super) lists: ShareOfLists,
    /// By set, the points that the CPU backend needs.
    pub(super) sorted: HashMap<usize, PartOfSet>,
}

impl Split {
    /// Settings for jobs that are not known yet. Rates are read from the note, and written there
    /// when this is dropped.
    pub(crate) fn new(settings: Settings, note: Option<Note>) -> Self {
        let shared = Shared {
            rates: rates_of(note.as_ref()),
            ..Shared::default()
        };
        Self {
            settings,
            shared: Mutex::new(shared),
            placing: Mutex::default(),
            note,
        }
    }

    /// Another device takes the place of the one before, with the note about it: nothing that was
    /// learnt holds for it. Rates of the one before are left in its note.
    #[cfg(feature = "gpu")]
    pub(crate) fn move_to(&mut self, note: Option<Note>) {
        self.leave_rates();
        let shared = self.shared.get_mut();
        let shared = shared.unwrap_or_else(PoisonError::into_inner);
        (shared.rates, shared.wants_device) = (rates_of(note.as_ref()), None);
        shared.jobs.clear();
        self.note = note;
    }

    /// The shared state, unless another job is under way: on another thread, or on this one, which
    /// may do something else while it waits for the pool.
    ///
    /// State that a panic left is used again: a plan stays complete whatever a step did, and marks
    /// are made anew.
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

    /// Time of placing since the last job, which this job's step then counts.
    pub(super) fn take_placing(&self) -> Duration {
        std::mem::take(&mut *locked(&self.placing))
    }

    /// Whether the device has work in the next step, as far as is known.
    ///
    /// Asked when positions are placed: a device that has no work in any job is not sent them, and
    /// the host sorts at once. True while a job is under way, since its plan cannot be looked at.
    pub(crate) fn wants_device(&self) -> bool {
        self.try_lock().is_none_or(|mut shared| {
            let Shared {
                jobs, wants_device, ..
            } = &mut *shared;
            let wants = || jobs.is_empty() || jobs.values().any(JobState::wants_device);
            *wants_device.get_or_insert_with(wants)
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

    /// Another policy for all jobs, with the order of bricks that it asks for.
    pub(crate) fn restart(&mut self, settings: Settings) -> Result<(), Error> {
        let (policy, other_order) = (settings.policy, settings.ties != self.settings.ties);
        self.settings = settings;
        let shared = self.shared.get_mut();
        let shared = shared.unwrap_or_else(PoisonError::into_inner);
        shared.wants_device = None;
        for state in shared.jobs.values_mut() {
            if other_order {
                state.drop_plan();
            }
            state.restart(policy)?;
        }
        Ok(())
    }

    /// All sets are on another lattice now, to which no plan refers.
    pub(crate) fn drop_plans(&self) {
        if let Some(mut shared) = self.try_lock() {
            shared.wants_device = None;
            shared.jobs.values_mut().for_each(JobState::drop_plan);
        }
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        self.leave_rates();
    }
}

impl Split {
    /// Leaves the rates of this run for the next one, where they are new. Of several jobs of a kind
    /// the largest counts.
    fn leave_rates(&mut self) {
        let Some(note) = &self.note else {
            return;
        };
        let shared = self.shared.get_mut();
        let Shared { jobs, rates, .. } = shared.unwrap_or_else(PoisonError::into_inner);
        let mut measured: Vec<_> = (jobs.iter())
            .filter_map(|(job, state)| Some((state.rates()?, job.kind)))
            .collect();
        measured.sort_by_key(|((_, work), kind)| (*kind, Reverse(*work)));
        measured.dedup_by_key(|(_, kind)| *kind);
        let mut worth = false;
        for ((found, _), kind) in measured {
            worth |= rates.learn(&kind.to_string(), found);
        }
        if worth && let Err(error) = note.write(&rates.to_string()) {
            tracing::warn!(%error, "the rates of this run are not kept for the next one");
        }
    }
}

/// The rates in a note; none where there is none, or where it is damaged.
fn rates_of(note: Option<&Note>) -> Rates {
    let Some(text) = note.and_then(Note::read) else {
        return Rates::default();
    };
    Rates::parse(&text).unwrap_or_else(|| {
        tracing::warn!("the note about the rates of earlier runs is ignored: it is damaged");
        Rates::default()
    })
}

impl Shared {
    /// State of a job; made at its first step.
    pub(crate) fn state_of(&mut self, job: Job, policy: Policy) -> Result<&mut JobState, Error> {
        let count = self.jobs.len() + 1;
        self.wants_device = None;
        (self.jobs.try_reserve(1))
            .map_err(|_| Shortage::of::<(Job, JobState)>(count, "what is known of a job"))?;
        Ok(match self.jobs.entry(job) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let known = self.rates.of(&job.kind.to_string());
                new.insert(JobState::new(job, policy, known)?)
            }
        })
    }

    /// Marks none of `targets` targets as taken.
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

/// Locks a mutex, also after a panic of a thread that held it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
