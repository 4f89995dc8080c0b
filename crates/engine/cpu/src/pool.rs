//! The worker pool of the CPU backend.

use crate::{Error, SimdLevel, group::Scratch, window};
use nearfield_grid::{
    PerProcess,
    memory::{Shortage, make_room},
    parallel::{self, PoolLoops},
};
use rayon::{ThreadPool, prelude::*};
use std::{
    ops::Range,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// What worker threads are called.
const NAME: &str = "nearfield";

/// Sorted targets that one task works on: small enough to balance, large enough that the cells cut
/// at its ends do not matter. Fixed, so that sums do not depend on the number of threads.
const TASK: usize = 1024;

/// Worker threads a backend may have; far above any machine, far below what would exhaust one.
const MAX_THREADS: usize = 4096;

/// A pool of worker threads with their scratch, owned by one engine.
///
/// One worker is the calling thread: no thread is started for it. In a forked child, which has none
/// of its parent's threads, the first call starts workers of the child's own.
#[derive(Debug)]
pub struct CpuBackend {
    workers: Arc<Workers>,
    level: SimdLevel,
}

/// The workers of a backend, which lists that it has found may [borrow](crate::NeighborLists::work_on).
#[derive(Debug)]
pub(crate) struct Workers {
    /// Threads asked for, 0 for one per core.
    asked: usize,
    crew: PerProcess<Crew>,
}

/// The threads of one process, and what they keep between works.
#[derive(Debug)]
struct Crew {
    /// None where the calling thread is the only worker.
    pool: Option<ThreadPool>,
    /// Workers beside another backend, made when first needed; None for those of `pool`.
    beside_pool: OnceLock<Option<ThreadPool>>,
    /// Works under way that leave a core to somebody else.
    beside: AtomicUsize,
    /// Whether all work is done as if there were one.
    stays: AtomicBool,
    scratch: Mutex<Vec<Scratch>>,
    /// Arrays of channels between traversals.
    channels: Mutex<Vec<Vec<f32>>>,
    /// Sums of tasks between traversals.
    windows: Mutex<Vec<window::Share>>,
}

impl Crew {
    fn start(threads: usize) -> Result<Self, String> {
        Ok(Self::of(parallel::start(threads, NAME)?))
    }

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

    fn threads(&self) -> usize {
        let pool = self.pool.as_ref();
        pool.map_or(1, ThreadPool::current_num_threads)
    }
}

impl Workers {
    /// The crew of this process.
    fn crew(&self) -> &Crew {
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
        // What begins on a worker is part of the stage that waits for it here.
        let stage = tracing::Span::current();
        let crew = self.crew();
        let beside = crew.stays.load(Ordering::Relaxed) || crew.beside.load(Ordering::Relaxed) > 0;
        let fewer = beside.then(|| self.fewer(crew)).flatten();
        let pool = fewer.or(crew.pool.as_ref());
        parallel::within(pool, || stage.in_scope(work))
    }

    /// One worker less than `crew` has, where their number was left to the backend and the others are
    /// enough; where the calling thread is the only worker, one on a thread of its own.
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
}

impl CpuBackend {
    /// A backend of `threads` workers (0 for one per core) at the best SIMD level of the processor.
    ///
    /// # Errors
    /// [`Error::Threads`] for more than 4096, or when the system does not start them.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Threads { threads, reason };
        if threads > MAX_THREADS {
            return Err(refuse(format!("at most {MAX_THREADS} are supported")));
        }
        let crew = Crew::start(threads).map_err(refuse)?;
        Ok(Self {
            workers: Arc::new(Workers {
                asked: threads,
                crew: PerProcess::new(crew),
            }),
            level: SimdLevel::detect(),
        })
    }

    /// The backend held to `level`, or to the best level there is if the processor lacks it.
    #[must_use]
    pub fn with_level(mut self, level: SimdLevel) -> Self {
        if level.is_available() {
            self.level = level;
        }
        self
    }

    fn crew(&self) -> &Crew {
        self.workers.crew()
    }

    /// The workers, for as long as the backend lives.
    pub(crate) fn workers(&self) -> Weak<Workers> {
        Arc::downgrade(&self.workers)
    }

    /// Number of worker threads, the calling thread where that is the only one.
    pub fn threads(&self) -> usize {
        self.crew().threads()
    }

    /// Workers of work beside another backend; None where no thread can be had for it.
    fn pool_beside(&self) -> Option<&ThreadPool> {
        let crew = self.crew();
        self.workers.fewer(crew).or(crew.pool.as_ref())
    }

    /// Number of worker threads of work [`beside`](Self::beside) another.
    pub fn threads_beside(&self) -> usize {
        self.pool_beside()
            .map_or(1, ThreadPool::current_num_threads)
    }

    /// Does `work` on the workers, with one less where there is one per core, while this thread does
    /// something `other`, such as driving a GPU. Where this thread is the only worker, another one is
    /// started for it; where the system refuses that, one is done after the other.
    pub fn beside<A, B: Send>(
        &self,
        other: impl FnOnce() -> A,
        work: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        let _under = Under::way(&self.crew().beside);
        let stage = tracing::Span::current();
        let Some(pool) = self.pool_beside() else {
            return (other(), parallel::alone(work));
        };
        let mut done = None;
        let others = pool.in_place_scope(|scope| {
            scope.spawn(|_| done = Some(stage.in_scope(work)));
            other()
        });
        match done {
            Some(done) => (others, done),
            // A scope waits for what it has spawned, and panics when that does.
            None => unreachable!("the work has neither ended nor panicked"),
        }
    }

    /// Calls `work` on up to so many workers of those that work [`beside`](Self::beside) another, while this
    /// thread does something `other`. Woken one by one by this thread, they begin earlier than where each
    /// wakes another, which counts where the work takes as long as that.
    pub fn at_once<A>(
        &self,
        workers: usize,
        other: impl FnOnce() -> A,
        work: impl Fn() + Sync,
    ) -> A {
        let workers = workers.min(self.threads_beside());
        let (1.., Some(pool)) = (workers, self.pool_beside()) else {
            return other();
        };
        let _under = Under::way(&self.crew().beside);
        pool.in_place_scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|_| work());
            }
            other()
        })
    }

    /// From now on all work is done by the workers that work [`beside`](Self::beside) another is done by, or by
    /// all again: changing over in the middle of a step wakes threads that sleep while others go to sleep.
    pub fn stay_beside(&self, stay: bool) {
        self.crew().stays.store(stay, Ordering::Relaxed);
    }

    /// The SIMD level in use.
    pub fn level(&self) -> SimdLevel {
        self.level
    }

    /// Bytes of scratch that workers keep for the next search or traversal.
    pub fn scratch_bytes(&self) -> usize {
        let channels = self.channel_pool();
        let channels = channels.iter().map(|one| size_of::<f32>() * one.capacity());
        self.scratch_pool()
            .iter()
            .map(Scratch::bytes)
            .sum::<usize>()
            + channels.sum::<usize>()
            + (self.window_pool().iter())
                .map(window::Share::bytes)
                .sum::<usize>()
    }

    /// Runs `work` on the workers; the [loops](nearfield_grid::parallel) inside use all of them.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.workers.install(work)
    }

    /// Calls `task` for consecutive ranges of `0..len` on all workers. A trait object, so that what
    /// deals out tasks is not compiled again for every kernel.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where a task [says so](Scratch::failed); some tasks are then not done.
    pub(crate) fn for_each_task(
        &self,
        len: usize,
        task: &(dyn Fn(Range<usize>, &mut Scratch) + Sync),
    ) -> Result<(), Error> {
        let refused = Refused::default();
        self.install(|| {
            // One by one: some hold much more work than others, and of a share most hold none.
            let tasks = (0..len.div_ceil(TASK)).into_par_iter().with_max_len(1);
            tasks.run(|number| {
                let begin = number * TASK;
                let slots = begin..(begin + TASK).min(len);
                self.with_scratch(&refused, |scratch| task(slots, scratch));
            });
        });
        refused.into_result()
    }

    /// Results of `task` for consecutive ranges of `len` of `size` targets, worked on by all
    /// workers.
    ///
    /// # Errors
    /// As [`for_each_task`](Self::for_each_task).
    pub(crate) fn map_tasks<R: Send + Default>(
        &self,
        len: usize,
        size: usize,
        task: &(dyn Fn(Range<usize>, &mut Scratch) -> R + Sync),
    ) -> Result<Vec<R>, Error> {
        let (refused, tasks) = (Refused::default(), len.div_ceil(size));
        let mut results = Vec::new();
        make_room(&mut results, tasks, "the results of tasks")?;
        self.install(|| {
            (0..tasks)
                .into_par_iter()
                .with_max_len(1)
                .map(|number| {
                    let begin = number * size;
                    let slots = begin..(begin + size).min(len);
                    self.with_scratch(&refused, |scratch| task(slots, scratch))
                        .unwrap_or_default()
                })
                .put_into(&mut results);
        });
        refused.into_result().map(|()| results)
    }

    /// Does a task, unless memory was refused to another one. None where it was.
    fn with_scratch<R>(
        &self,
        refused: &Refused,
        task: impl FnOnce(&mut Scratch) -> R,
    ) -> Option<R> {
        if refused.is_known() {
            return None;
        }
        let mut scratch = self.take_scratch();
        let result = task(&mut scratch);
        if let Some(shortage) = scratch.failed.take() {
            // What this scratch holds is given back rather than kept: others may need it.
            refused.tell(shortage);
            return None;
        }
        self.scratch_pool().push(scratch);
        Some(result)
    }

    /// Scratch is taken from a common stack rather than kept per thread, so that a kernel that
    /// itself waits inside the pool, and so runs another task meanwhile, finds its own.
    fn take_scratch(&self) -> Scratch {
        self.scratch_pool().pop().unwrap_or_default()
    }

    /// An array for a channel, of any length and content.
    pub(crate) fn take_channel(&self) -> Vec<f32> {
        self.channel_pool().pop().unwrap_or_default()
    }

    /// Keeps arrays for the next traversal.
    pub(crate) fn keep_channels(&self, channels: Vec<Vec<f32>>) {
        self.channel_pool().extend(channels);
    }

    /// Memory for the sums of a task.
    pub(crate) fn take_window(&self) -> window::Share {
        self.window_pool().pop().unwrap_or_default()
    }

    /// Keeps sums of tasks for the next traversal.
    pub(crate) fn keep_windows(&self, windows: Vec<window::Share>) {
        self.window_pool().extend(windows);
    }

    fn window_pool(&self) -> std::sync::MutexGuard<'_, Vec<window::Share>> {
        self.crew()
            .windows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn channel_pool(&self) -> std::sync::MutexGuard<'_, Vec<Vec<f32>>> {
        self.crew()
            .channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn scratch_pool(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // A kernel that panicked held no lock and left no half-written scratch behind.
        self.crew()
            .scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that was refused to a task of several.
#[derive(Default)]
struct Refused(OnceLock<Shortage>);

impl Refused {
    fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    fn tell(&self, shortage: Shortage) {
        // The first counts.
        let _ = self.0.set(shortage);
    }

    fn into_result(self) -> Result<(), Error> {
        self.0
            .into_inner()
            .map_or(Ok(()), |short| Err(short.into()))
    }
}

/// A work under way, counted until it ends or panics.
struct Under<'a>(&'a AtomicUsize);

impl<'a> Under<'a> {
    fn way(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
