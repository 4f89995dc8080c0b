//! The worker pool of the CPU lane.

use crate::{Error, SimdLevel, group::Scratch, window};
use std::sync::{
    Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Sorted targets that one task works on: small enough to balance, large enough that the cells cut
/// at its ends do not matter. Fixed, so that sums do not depend on the number of threads.
const TASK: usize = 1024;

/// Worker threads a lane may have; far above any machine, far below what would exhaust one.
const MOST_THREADS: usize = 4096;

/// A pool of worker threads with their scratch, owned by one engine.
#[derive(Debug)]
pub struct CpuLane {
    pool: rayon::ThreadPool,
    /// One worker less, made when first needed; None where it cannot be had or is not wanted.
    smaller: OnceLock<Option<rayon::ThreadPool>>,
    /// Whether the number of workers was left to the lane.
    chosen: bool,
    /// Works under way that leave a core to somebody else.
    beside: AtomicUsize,
    /// Whether all work is done as if there were one.
    stays: AtomicBool,
    level: SimdLevel,
    scratch: Mutex<Vec<Scratch>>,
    /// Arrays of channels between traversals.
    channels: Mutex<Vec<Vec<f32>>>,
    /// Sums of tasks between traversals.
    windows: Mutex<Vec<window::Share>>,
}

impl CpuLane {
    /// A lane of `threads` workers (0 for one per core) at the best SIMD level of the processor.
    ///
    /// # Errors
    /// [`Error::Threads`] for more than 4096, or when the system does not start them.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Threads { threads, reason };
        if threads > MOST_THREADS {
            return Err(refuse(format!("at most {MOST_THREADS} are supported")));
        }
        let pool = workers(threads).map_err(refuse)?;
        Ok(Self {
            pool,
            smaller: OnceLock::new(),
            chosen: threads == 0,
            beside: AtomicUsize::new(0),
            stays: AtomicBool::new(false),
            level: SimdLevel::detect(),
            scratch: Mutex::default(),
            channels: Mutex::default(),
            windows: Mutex::default(),
        })
    }

    /// The lane held to `level`, or to the best level there is if the processor lacks it.
    #[must_use]
    pub fn with_level(mut self, level: SimdLevel) -> Self {
        if level.is_available() {
            self.level = level;
        }
        self
    }

    /// Number of worker threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Number of worker threads of work [`beside`](Self::beside) another.
    pub fn threads_beside(&self) -> usize {
        self.smaller()
            .map_or(self.threads(), rayon::ThreadPool::current_num_threads)
    }

    /// Does `work` on the pool, with one worker less where there is one per core, while this thread does
    /// something `other`, such as driving a GPU.
    pub fn beside<A, B: Send>(
        &self,
        other: impl FnOnce() -> A,
        work: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        let _under = Under::way(&self.beside);
        let stage = tracing::Span::current();
        let mut done = None;
        let others = self
            .smaller()
            .unwrap_or(&self.pool)
            .in_place_scope(|scope| {
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
        if workers == 0 {
            return other();
        }
        let _under = Under::way(&self.beside);
        let pool = self.smaller().unwrap_or(&self.pool);
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
        self.stays.store(stay, Ordering::Relaxed);
    }

    fn smaller(&self) -> Option<&rayon::ThreadPool> {
        let make = || match (self.chosen, self.threads()) {
            (true, 2..) => workers(self.threads() - 1).ok(),
            _ => None,
        };
        self.smaller.get_or_init(make).as_ref()
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

    /// Runs `work` on the pool; parallel iterators inside use its workers.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        // What begins on a worker is part of the stage that waits for it here.
        let stage = tracing::Span::current();
        let beside = self.stays.load(Ordering::Relaxed) || self.beside.load(Ordering::Relaxed) > 0;
        let smaller = beside.then(|| self.smaller()).flatten();
        let pool = smaller.unwrap_or(&self.pool);
        pool.install(|| stage.in_scope(work))
    }

    /// Calls `task` for consecutive ranges of `0..len` on all workers. A trait object, so that what
    /// deals out tasks is not compiled again for every kernel.
    pub(crate) fn for_each_task(
        &self,
        len: usize,
        task: &(dyn Fn(std::ops::Range<usize>, &mut Scratch) + Sync),
    ) {
        use rayon::prelude::*;
        self.install(|| {
            // One by one: some hold much more work than others, and of a share most hold none.
            let tasks = (0..len.div_ceil(TASK)).into_par_iter().with_max_len(1);
            tasks.for_each(|number| {
                let mut scratch = self.take_scratch();
                let begin = number * TASK;
                task(begin..(begin + TASK).min(len), &mut scratch);
                self.scratch_pool().push(scratch);
            });
        });
    }

    /// Results of `task` for consecutive ranges of `len` of `size` targets, worked on by all
    /// workers.
    pub(crate) fn map_tasks<R: Send>(
        &self,
        len: usize,
        size: usize,
        task: &(dyn Fn(std::ops::Range<usize>, &mut Scratch) -> R + Sync),
    ) -> Vec<R> {
        use rayon::prelude::*;
        self.install(|| {
            (0..len.div_ceil(size))
                .into_par_iter()
                .with_max_len(1)
                .map(|number| {
                    let mut scratch = self.take_scratch();
                    let begin = number * size;
                    let result = task(begin..(begin + size).min(len), &mut scratch);
                    self.scratch_pool().push(scratch);
                    result
                })
                .collect()
        })
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
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channel_pool(&self) -> std::sync::MutexGuard<'_, Vec<Vec<f32>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scratch_pool(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // A kernel that panicked held no lock and left no half-written scratch behind.
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A pool of so many workers, 0 for one per core.
fn workers(threads: usize) -> Result<rayon::ThreadPool, String> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|worker| format!("nearfield-{worker}"))
        .build()
        .map_err(|error| error.to_string())
}
