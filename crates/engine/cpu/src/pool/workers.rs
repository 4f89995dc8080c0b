//! The threads of a backend, and the choice of the threads that do a piece of work.
//!
//! A [`Crew`] belongs to a process: in a forked child, which has none of its parent's threads, the
//! first call makes a crew of the child's own ([`PerProcess`]). One worker is the calling thread,
//! so an engine of one thread starts none.
//!
//! # When threads are started
//!
//! Starting a thread takes about as long as searching some hundred points, and a program may make
//! an engine for a single search of a few. So work is done on the calling thread until there has
//! been as much of it as starting the threads costs ([`WORTH_A_THREAD`]). A crew has then spent at
//! most twice what was necessary. Work that is one task, or too little to be divided
//! ([`TOO_LITTLE`]), stays on the calling thread for good: waking a worker takes longer. Results do
//! not depend on where work is done.
//!
//! Where the system starts no threads, a number that was left to the backend becomes one: passes
//! and jobs go on with the calling thread. A number that was asked for is what runs, so jobs fail
//! then.
//!
//! While another thread drives a GPU, one core is left to it: work then runs on a second pool with
//! one worker less, made when it is first needed. `beside` counts such work under way, and `stays`
//! keeps everything on the second pool between steps, because changing over wakes threads that
//! sleep while others go to sleep.
//!
//! # Stacks of memory
//!
//! Scratch, channel arrays and windows are kept in stacks under a lock that is held for a push or
//! a pop. A worker takes what lies on top, which was used last and is most likely in a cache.
//! After a task that was refused memory its scratch is freed instead, because the memory is needed
//! elsewhere.

use crate::{
    candidates::scratch::Scratch,
    error::{Error, ErrorKind},
    kernels::{repeats::Repeats, window::WindowSums},
};
use nearfield_grid::{PerProcess, parallel};
use rayon::ThreadPool;
use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Name of the worker threads.
const NAME: &str = "nearfield";

/// Targets, added up over all jobs, from which starting a thread costs less than doing without it.
const WORTH_A_THREAD: usize = 1 << 10;

/// Points of a pass, such as a sort, that take as long as one target of a job.
const PASSED_PER_TARGET: usize = 8;

/// Points up to which passes over single points, such as a sort, are not divided.
const TOO_LITTLE: usize = 1 << 10;

/// The workers of a backend. Lists that it has found may
/// [borrow](crate::NeighborLists::work_on) them.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Threads asked for, 0 for one per core.
    asked: usize,
    /// The threads of this process.
    crew: PerProcess<Crew>,
}

/// The threads of one process, and the memory that they keep between jobs.
#[derive(Debug)]
pub(super) struct Crew {
    /// Threads asked for, 0 for one per core.
    asked: usize,
    /// Number of workers, once it was needed: asking the system for its cores takes as long as
    /// searching some hundred points.
    threads: OnceLock<usize>,
    /// Targets of the jobs so far, as long as no thread was started.
    begun: AtomicUsize,
    /// Empty until threads are worth it; None where the calling thread is the only worker, or the
    /// system started no other.
    pool: OnceLock<Option<ThreadPool>>,
    /// The system's message where it started no threads.
    refused: OnceLock<String>,
    /// Workers beside another backend, made when first needed; None for those of `pool`.
    beside_pool: OnceLock<Option<ThreadPool>>,
    /// Jobs under way that leave a core to another thread.
    beside: AtomicUsize,
    /// All jobs run on the workers beside another backend.
    stays: AtomicBool,
    /// Buffers of workers between jobs.
    scratch: Mutex<Vec<Scratch>>,
    /// Arrays of channels between traversals.
    channels: Mutex<Vec<Vec<f32>>>,
    /// Sums of tasks between traversals.
    windows: Mutex<Vec<WindowSums>>,
    /// The last traversals of pairs that were evaluated once.
    repeats: Mutex<Repeats>,
}

impl Crew {
    /// A crew of `asked` workers, 0 for one per core, that are not started yet.
    fn new(asked: usize) -> Self {
        Self {
            asked,
            threads: OnceLock::new(),
            begun: AtomicUsize::new(0),
            pool: OnceLock::new(),
            refused: OnceLock::new(),
            beside_pool: OnceLock::new(),
            beside: AtomicUsize::new(0),
            stays: AtomicBool::new(false),
            scratch: Mutex::default(),
            channels: Mutex::default(),
            windows: Mutex::default(),
            repeats: Mutex::default(),
        }
    }

    /// The workers, started now if they were not. None where the calling thread is the only one.
    fn pool(&self) -> Option<&ThreadPool> {
        let start = || {
            let threads = self.wanted();
            if threads == 1 {
                return None;
            }
            match parallel::start_some(threads, NAME) {
                Ok(started) => Some(started),
                Err(error) => {
                    tracing::warn!(threads, error, "the workers of an engine cannot be started");
                    // Only this function sets it, once.
                    let _ = self.refused.set(error);
                    None
                }
            }
        };
        self.pool.get_or_init(start).as_ref()
    }

    /// The workers for a job of `targets` targets, which are counted; None where the calling thread
    /// does it.
    fn pool_for(&self, targets: usize) -> Option<&ThreadPool> {
        if let Some(started) = self.pool.get() {
            return started.as_ref();
        }
        let begun = self.begun.fetch_add(targets, Ordering::Relaxed);
        let worth = self.wanted().saturating_mul(WORTH_A_THREAD);
        (begun.saturating_add(targets) >= worth)
            .then(|| self.pool())
            .flatten()
    }

    /// Number of workers that there are to be.
    fn wanted(&self) -> usize {
        *(self.threads).get_or_init(|| parallel::workers(self.asked))
    }

    /// Number of workers, those included that were not started yet.
    pub(super) fn threads(&self) -> usize {
        match self.pool.get() {
            None => self.wanted(),
            Some(started) => started.as_ref().map_or(1, ThreadPool::current_num_threads),
        }
    }

    /// Counts a job beside another backend until the guard is dropped.
    pub(super) fn enter_beside(&self) -> BesideGuard<'_> {
        self.beside.fetch_add(1, Ordering::Relaxed);
        BesideGuard(&self.beside)
    }

    /// Runs all jobs on the workers beside another backend from now on, or no longer.
    pub(super) fn stay_beside(&self, stay: bool) {
        self.stays.store(stay, Ordering::Relaxed);
    }

    /// Scratch is taken from a common stack rather than kept per thread, so that a kernel that
    /// itself waits inside the pool, and so runs another task meanwhile, finds its own.
    pub(super) fn scratch(&self) -> MutexGuard<'_, Vec<Scratch>> {
        lock(&self.scratch)
    }

    /// The stack of arrays for channels.
    pub(super) fn channels(&self) -> MutexGuard<'_, Vec<Vec<f32>>> {
        lock(&self.channels)
    }

    /// The stack of windows.
    pub(super) fn windows(&self) -> MutexGuard<'_, Vec<WindowSums>> {
        lock(&self.windows)
    }

    /// The last traversals.
    pub(super) fn repeats(&self) -> MutexGuard<'_, Repeats> {
        lock(&self.repeats)
    }
}

/// A kernel that panicked held no lock and left nothing half written, so poison is ignored.
fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job beside another backend, counted until it ends or panics.
///
/// Dropped by a panic too, so that a failed job does not leave a core unused for ever.
pub(super) struct BesideGuard<'a>(&'a AtomicUsize);

impl Drop for BesideGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// `threads` workers, 0 for one per core. They are started by work that is worth it.
    pub(super) fn new(threads: usize) -> Self {
        Self {
            asked: threads,
            crew: PerProcess::new(Crew::new(threads)),
        }
    }

    /// The crew of this process.
    pub(super) fn crew(&self) -> &Crew {
        self.crew.get_or_make(|| Crew::new(self.asked))
    }

    /// Runs `work` on all workers, which it starts if there are none; loops inside use them. For
    /// work of unknown size, such as functions of the caller's.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let crew = self.crew();
        self.within(crew, || crew.pool(), work)
    }

    /// Runs a pass over `points` points on all workers, if it is worth it.
    pub(crate) fn install_for<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        if points <= TOO_LITTLE {
            return parallel::alone(work);
        }
        let crew = self.crew();
        self.within(crew, || crew.pool_for(points / PASSED_PER_TARGET), work)
    }

    /// Runs a job of `tasks` tasks for `targets` points on all workers, if it is worth it.
    ///
    /// # Errors
    /// [`ErrorKind::Threads`] if a number of threads was asked for that the system does not start;
    /// nothing was done then.
    pub(super) fn install_tasks<R: Send>(
        &self,
        tasks: usize,
        targets: usize,
        work: impl FnOnce(&Crew) -> R + Send,
    ) -> Result<R, Error> {
        let crew = self.crew();
        if tasks <= 1 {
            return Ok(parallel::alone(|| work(crew)));
        }
        let pool = self.chosen(crew, || crew.pool_for(targets));
        self.check(crew, pool)?;
        Ok(Self::run(pool, || work(crew)))
    }

    /// Starts the workers that work of unknown size runs on.
    ///
    /// # Errors
    /// As [`install_tasks`](Self::install_tasks).
    pub(super) fn start(&self) -> Result<(), Error> {
        let crew = self.crew();
        self.check(crew, self.chosen(crew, || crew.pool()))
    }

    /// Returns an error if `pool` is missing because the system started no threads, and a number
    /// was asked for.
    fn check(&self, crew: &Crew, pool: Option<&ThreadPool>) -> Result<(), Error> {
        match (pool, crew.refused.get(), self.asked) {
            (None, Some(reason), threads @ 1..) => {
                let reason = reason.clone();
                Err(ErrorKind::Threads { threads, reason }.into())
            }
            _ => Ok(()),
        }
    }

    /// Runs `work` on the workers of `pool`, or on those beside another backend if it is at work.
    fn within<'a, R: Send>(
        &self,
        crew: &'a Crew,
        pool: impl FnOnce() -> Option<&'a ThreadPool>,
        work: impl FnOnce() -> R + Send,
    ) -> R {
        Self::run(self.chosen(crew, pool), work)
    }

    /// The workers of `pool`, or those beside another backend if it is at work.
    fn chosen<'a>(
        &self,
        crew: &'a Crew,
        pool: impl FnOnce() -> Option<&'a ThreadPool>,
    ) -> Option<&'a ThreadPool> {
        let beside = crew.stays.load(Ordering::Relaxed) || crew.beside.load(Ordering::Relaxed) > 0;
        let fewer = beside.then(|| self.fewer(crew)).flatten();
        fewer.or_else(pool)
    }

    /// Runs `work` on workers, or on the calling thread.
    fn run<R: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
        match pool {
            None => parallel::alone(work),
            // A span that begins on a worker is a child of the stage that waits for it here.
            some => {
                let stage = tracing::Span::current();
                parallel::within(some, || stage.in_scope(work))
            }
        }
    }

    /// One worker less than `crew` has, if their number was left to the backend; where the calling
    /// thread is the only worker, one on a thread of its own. None for the workers of `crew`.
    fn fewer<'a>(&self, crew: &'a Crew) -> Option<&'a ThreadPool> {
        let make = || match (crew.wanted(), self.asked) {
            (1, _) => parallel::start_some(1, NAME).ok(),
            (threads, 0) => parallel::start_some(threads - 1, NAME).ok(),
            _ => None,
        };
        crew.beside_pool.get_or_init(make).as_ref()
    }

    /// The workers beside another backend; None where the system starts no thread for them.
    pub(super) fn pool_beside(&self) -> Option<&ThreadPool> {
        let crew = self.crew();
        self.fewer(crew).or_else(|| crew.pool())
    }
}
