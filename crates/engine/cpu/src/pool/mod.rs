//! The CPU backend: a pool of workers and the SIMD level they use.
//!
//! [`workers`] holds the threads, [`tasks`] deals a job out to them. The other modules add the jobs
//! to [`CpuBackend`], each in an `impl` of its own: searches, traversals, sums over all pairs.
//!
//! # Two sets of workers
//!
//! A backend that shares a step with a GPU leaves one core to the thread that drives it.
//! [`CpuBackend::beside`] runs a job on the remaining workers while the calling thread does
//! something else, and [`CpuBackend::at_once`] wakes some of them for a short job.
//!
//! # Never the global pool
//!
//! Loops run on the backend's own workers or on the calling thread, never on rayon's global pool:
//! that would start threads that the user did not ask for, and a forked child would wait for them
//! for ever.
//!
//! **Invariant:** the level of a backend is one that the processor has, and no call runs on
//! threads other than the backend's and the caller's.

pub(crate) mod tasks;
pub(crate) mod workers;

use crate::{
    candidates::scratch::Scratch,
    error::{Error, ErrorKind},
    kernels::{repeats::Repeats, window::WindowSums},
    simd::level::SimdLevel,
};
use nearfield_grid::{Stop, parallel};
use rayon::ThreadPool;
use std::sync::{Arc, MutexGuard, Weak};
use workers::{Crew, Workers};

/// Maximum number of worker threads of a backend; far above any machine, far below the number that
/// would exhaust one.
const MAX_THREADS: usize = 4096;

/// A pool of worker threads with their scratch, owned by one engine.
///
/// One worker is the calling thread: no thread is started for it. In a forked child, which has none
/// of its parent's threads, the first call starts workers of the child's own.
///
/// Calls from several threads at once are safe and share the workers. A call from inside a rayon
/// pool, or from a worker of another backend, works too: it waits for its own tasks only.
#[derive(Debug)]
pub struct CpuBackend {
    /// The threads; lists may borrow them.
    workers: Arc<Workers>,
    /// The SIMD level of all loops.
    level: SimdLevel,
}

/// The workers of a backend, for work that borrows the backend, or what owns it.
#[derive(Debug, Clone)]
pub struct WorkerHandle(Arc<Workers>);

impl WorkerHandle {
    /// As [`CpuBackend::install_for`]. Jobs of the backend that `work` begins run on the same
    /// workers, and none of them waits for a thread to wake before it begins.
    pub fn install_for<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.0.install_for(points, work)
    }
}

impl CpuBackend {
    /// A backend of `threads` workers (0 for one per core) at the best SIMD level of the processor.
    ///
    /// # Errors
    /// [`ErrorKind::Threads`] for more than 4096.
    ///
    /// No thread is started yet: jobs start them once there has been work that is worth it. If the
    /// system refuses, jobs fail with [`ErrorKind::Threads`] where `threads` says a number, and
    /// otherwise go on with the calling thread, and a warning in the trace.
    pub fn new(threads: usize) -> Result<Self, Error> {
        if threads > MAX_THREADS {
            let reason = format!("at most {MAX_THREADS} are supported");
            return Err(ErrorKind::Threads { threads, reason }.into());
        }
        Ok(Self {
            workers: Arc::new(Workers::new(threads)),
            level: SimdLevel::detect(),
        })
    }

    /// The backend held to `level`, or to the best level there is if the processor lacks it.
    ///
    /// For tests, and for comparing levels on one machine.
    #[must_use]
    pub fn with_level(mut self, level: SimdLevel) -> Self {
        if level.is_available() {
            self.level = level;
        }
        self
    }

    /// The threads of this process.
    fn crew(&self) -> &Crew {
        self.workers.crew()
    }

    /// The workers apart from the backend, for work that uses the backend itself.
    pub fn worker_handle(&self) -> WorkerHandle {
        WorkerHandle(Arc::clone(&self.workers))
    }

    /// The workers, for as long as the backend lives.
    pub(crate) fn workers(&self) -> Weak<Workers> {
        Arc::downgrade(&self.workers)
    }

    /// Number of worker threads, the calling thread where that is the only one.
    pub fn threads(&self) -> usize {
        self.crew().threads()
    }

    /// Number of worker threads of jobs [`beside`](Self::beside) another.
    pub fn threads_beside(&self) -> usize {
        (self.workers.pool_beside()).map_or(1, ThreadPool::current_num_threads)
    }

    /// Does `work` on the workers, with one less where there is one per core, while this thread
    /// does `other`, such as driving a GPU. Where this thread is the only worker, another one is
    /// started for it; where the system refuses that, one is done after the other.
    pub fn beside<A, B: Send>(
        &self,
        other: impl FnOnce() -> A,
        work: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        let _guard = self.crew().enter_beside();
        let (stage, stop) = (tracing::Span::current(), Stop::current());
        let Some(pool) = self.workers.pool_beside() else {
            return (other(), parallel::alone(work));
        };
        let mut done = None;
        let others = pool.in_place_scope(|scope| {
            scope.spawn(|_| done = Some(stop.scope(|| stage.in_scope(work))));
            other()
        });
        match done {
            Some(done) => (others, done),
            // A scope waits for the tasks it has spawned, and panics when one of them does.
            None => unreachable!("the work has neither ended nor panicked"),
        }
    }

    /// Calls `work` on up to `workers` of those that work [`beside`](Self::beside) another, while
    /// this thread does `other`. This thread wakes them one by one, so they begin earlier than
    /// where each wakes the next; that counts where the work is as short as a wake-up.
    pub fn at_once<A>(
        &self,
        workers: usize,
        other: impl FnOnce() -> A,
        work: impl Fn() + Sync,
    ) -> A {
        let workers = workers.min(self.threads_beside());
        let (1.., Some(pool)) = (workers, self.workers.pool_beside()) else {
            return other();
        };
        let _guard = self.crew().enter_beside();
        pool.in_place_scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| work());
            }
            other()
        })
    }

    /// Runs all jobs on the workers that work [`beside`](Self::beside) another from now on, or on
    /// all workers again. Changing over in the middle of a step wakes threads that sleep while
    /// others go to sleep.
    pub fn stay_beside(&self, stay: bool) {
        self.crew().stay_beside(stay);
    }

    /// The SIMD level in use.
    pub fn level(&self) -> SimdLevel {
        self.level
    }

    /// Bytes of scratch that workers keep for the next search or traversal.
    ///
    /// Counted in the report of an engine's memory.
    pub fn scratch_bytes(&self) -> usize {
        let crew = self.crew();
        let scratch: usize = crew.scratch().iter().map(|one| one.bytes()).sum();
        let channels = crew.channels();
        let channels = channels.iter().map(|one| size_of::<f32>() * one.capacity());
        let windows: usize = crew.windows().iter().map(WindowSums::bytes).sum();
        scratch + channels.sum::<usize>() + windows + crew.repeats().bytes()
    }

    /// Starts the threads, unless they are, before work that is [installed](Self::install) and is
    /// no job of this crate.
    ///
    /// # Errors
    /// [`ErrorKind::Threads`] if the system does not start the number that was asked for.
    pub fn start(&self) -> Result<(), Error> {
        self.workers.start()
    }

    /// Runs `work` on the workers; the [loops](nearfield_grid::parallel) inside use all of them.
    /// Starts threads that were not started yet: for work of unknown size.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.workers.install(work)
    }

    /// As [`install`](Self::install) for a pass over `points` points, which stays on the calling
    /// thread where they are few or threads are not worth starting for them.
    pub fn install_for<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.workers.install_for(points, work)
    }

    /// The scratch of a worker, for the calling thread.
    pub(crate) fn take_scratch(&self) -> Scratch {
        self.crew().scratch().pop().unwrap_or_default()
    }

    /// Keeps it for the next task.
    pub(crate) fn keep_scratch(&self, scratch: Scratch) {
        self.crew().scratch().push(scratch);
    }

    /// An array for a channel, of any length and content. Fresh memory costs more than filling it.
    pub(crate) fn take_channel(&self) -> Vec<f32> {
        self.crew().channels().pop().unwrap_or_default()
    }

    /// Keeps arrays for the next traversal.
    pub(crate) fn keep_channels(&self, channels: Vec<Vec<f32>>) {
        self.crew().channels().extend(channels);
    }

    /// The last traversals of pairs that were evaluated once.
    pub(crate) fn repeats(&self) -> MutexGuard<'_, Repeats> {
        self.crew().repeats()
    }

    /// Memory for the sums of a task.
    pub(crate) fn take_window(&self) -> WindowSums {
        self.crew().windows().pop().unwrap_or_default()
    }

    /// Keeps sums of tasks for the next traversal.
    pub(crate) fn keep_windows(&self, windows: Vec<WindowSums>) {
        self.crew().windows().extend(windows);
    }
}
