//! The threads of a backend, and which of them a piece of work runs on.
//!
//! A [`Crew`] belongs to a process: in a forked child, which has none of its parent's threads, the
//! first call starts a crew of the child's own ([`PerProcess`]). One worker is the calling thread,
//! so an engine of one thread starts none.
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

use crate::{candidates::scratch::Scratch, kernels::window::WindowSums};
use nearfield_grid::{PerProcess, parallel};
use rayon::ThreadPool;
use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Name of the worker threads.
const NAME: &str = "nearfield";

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
    /// None where the calling thread is the only worker.
    pub(super) pool: Option<ThreadPool>,
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
}

impl Crew {
    /// Starts `threads` workers, 0 for one per core.
    fn start(threads: usize) -> Result<Self, String> {
        Ok(Self::of(parallel::start(threads, NAME)?))
    }

    /// A crew with the workers of `pool`.
    fn of(pool: Option<ThreadPool>) -> Self {
        Self {
            pool,
            beside_pool: OnceLock::new(),
            beside: AtomicUsize::new(0),
            stays: AtomicBool::new(false),
            scratch: Mutex::default(),
            channels: Mutex::default(),
            windows: Mutex::default(),
        }
    }

    /// Number of workers.
    pub(super) fn threads(&self) -> usize {
        let pool = self.pool.as_ref();
        pool.map_or(1, ThreadPool::current_num_threads)
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
}

/// A kernel that panicked held no lock and left nothing half written, so poison is ignored.
fn lock<T>(stack: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    stack.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Starts `threads` workers, 0 for one per core.
    ///
    /// # Errors
    /// The system's message when it does not start them.
    pub(super) fn start(threads: usize) -> Result<Self, String> {
        Ok(Self {
            asked: threads,
            crew: PerProcess::new(Crew::start(threads)?),
        })
    }

    /// The crew of this process.
    pub(super) fn crew(&self) -> &Crew {
        self.crew.get_or_make(|| {
            Crew::start(self.asked).unwrap_or_else(|error| {
                tracing::warn!(
                    threads = self.asked,
                    error,
                    "a forked child could not start the workers of an engine; its calls run on the \
                     calling thread"
                );
                Crew::of(None)
            })
        })
    }

    /// Runs `work` on all workers; loops inside use them.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        // A span that begins on a worker is a child of the stage that waits for it here.
        let stage = tracing::Span::current();
        let crew = self.crew();
        let beside = crew.stays.load(Ordering::Relaxed) || crew.beside.load(Ordering::Relaxed) > 0;
        let fewer = beside.then(|| self.fewer(crew)).flatten();
        let pool = fewer.or(crew.pool.as_ref());
        parallel::within(pool, || stage.in_scope(work))
    }

    /// One worker less than `crew` has, if their number was left to the backend; where the calling
    /// thread is the only worker, one on a thread of its own. None for the workers of `crew`.
    fn fewer<'a>(&self, crew: &'a Crew) -> Option<&'a ThreadPool> {
        let make = || match (&crew.pool, self.asked) {
            (Some(pool), 0) => {
                parallel::start_some(pool.current_num_threads().max(2) - 1, NAME).ok()
            }
            (Some(_), _) => None,
            (None, _) => parallel::start_some(1, NAME).ok(),
        };
        crew.beside_pool.get_or_init(make).as_ref()
    }

    /// The workers beside another backend; None where the system starts no thread for them.
    pub(super) fn pool_beside(&self) -> Option<&ThreadPool> {
        let crew = self.crew();
        self.fewer(crew).or(crew.pool.as_ref())
    }
}
