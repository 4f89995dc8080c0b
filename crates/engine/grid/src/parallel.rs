//! Parallel loops that run on the calling thread's own pool and start no other.
//!
//! Rayon's own loops start the process's global pool when they are begun on a thread of no pool.
//! That pool has as many threads as the machine has cores, whatever the caller asked for, and a
//! forked child inherits it without its threads and waits for them for ever. So library code never
//! calls a loop of rayon's directly: [`PoolLoops`] has the same loops, which run on the calling
//! thread where this belongs to no pool, or where [`alone`] says so.
//!
//! **What others rely on:** results do not depend on where a loop runs.
//!
//! # How
//!
//! A parallel iterator of rayon can also be run on the calling thread, through its producer,
//! without touching any pool. [`PoolLoops`] does that wherever the calling thread belongs to no
//! pool. Only loops of known length have it, which are all that this project uses.
//!
//! # Threads of a pool
//!
//! [`start`] starts the workers of an engine; [`within`] runs a piece of work there. Inside,
//! nested loops use the same workers.

use rayon::iter::{
    IndexedParallelIterator,
    plumbing::{Producer, ProducerCallback},
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{cell::Cell, env, num::NonZero, thread};

thread_local! {
    /// True while loops stay on this thread even where it belongs to a pool.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if loops begun here run on several threads.
pub fn is_shared() -> bool {
    rayon::current_thread_index().is_some() && !ALONE.get()
}

/// Number of threads that loops begun here run on.
pub fn threads() -> usize {
    if is_shared() {
        rayon::current_num_threads()
    } else {
        1
    }
}

/// Does `work` on the calling thread, with all loops in it.
pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    /// Restores the flag when `work` ends or panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _restore = Restore(ALONE.replace(true));
    work()
}

/// Does `work` on the workers of `pool`; on the calling thread, with all loops in it, without one.
pub fn within<R: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    match pool {
        Some(pool) => crate::interrupt::install(pool, work),
        None => alone(work),
    }
}

/// Number of workers of an engine that is asked for `asked` of them, 0 for one per core.
///
/// In the second case it is that of the environment variable `RAYON_NUM_THREADS`, as for rayon's
/// own pools, if that is set. The system is asked at every call, because a process may be moved to
/// fewer cores.
pub fn workers(asked: usize) -> usize {
    if asked > 0 {
        return asked;
    }
    let set = env::var("RAYON_NUM_THREADS");
    let set = set.ok().and_then(|number| number.parse().ok());
    set.filter(|&number| number > 0).unwrap_or_else(|| {
        // The system may refuse to tell.
        thread::available_parallelism().map_or(1, NonZero::get)
    })
}

/// Starts a pool of `threads` workers, 0 for one per core; `None` where one thread is all, which is
/// the calling one.
///
/// # Errors
/// The system's message when it does not start them.
pub fn start(threads: usize, name: &'static str) -> Result<Option<ThreadPool>, String> {
    match workers(threads) {
        1 => Ok(None),
        threads => start_some(threads, name).map(Some),
    }
}

/// Starts a pool of `threads` workers, which may be one.
///
/// # Errors
/// The system's message when it does not start them.
pub fn start_some(threads: usize, name: &'static str) -> Result<ThreadPool, String> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |worker| format!("{name}-{worker}"))
        .build()
        .map_err(|error| error.to_string())
}

/// Rayon's loops, but never on the global pool.
///
/// Implemented for every indexed parallel iterator; importing the trait is all a caller does.
pub trait PoolLoops: IndexedParallelIterator {
    /// Calls `each` with every item.
    fn run(self, each: impl Fn(Self::Item) + Sync + Send) {
        if is_shared() {
            self.for_each(each);
        } else {
            self.with_producer(Each(each));
        }
    }

    /// Combines all items, with `identity` where there are none; `combine` is associative.
    ///
    /// The order of combination is not fixed, so floating-point sums are not combined with it.
    fn combined(
        self,
        identity: impl Fn() -> Self::Item + Sync + Send,
        combine: impl Fn(Self::Item, Self::Item) -> Self::Item + Sync + Send,
    ) -> Self::Item {
        if is_shared() {
            self.reduce(identity, combine)
        } else {
            self.with_producer(Fold(identity(), combine))
        }
    }

    /// Puts all items into `to`, in order, in the place of what it holds. Room for them is best
    /// reserved before, where it may be refused.
    fn put_into(self, to: &mut Vec<Self::Item>) {
        if is_shared() {
            self.collect_into_vec(to);
        } else {
            to.clear();
            self.with_producer(Put(to));
        }
    }

    /// Returns all items in order. For as many items as there are tasks; arrays with an item per
    /// point use [`put_into`](Self::put_into), with room that was reserved.
    fn listed(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        self.put_into(&mut items);
        items
    }
}

impl<I: IndexedParallelIterator> PoolLoops for I {}

struct Each<F>(F);

impl<T, F: Fn(T)> ProducerCallback<T> for Each<F> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, items: P) {
        items.into_iter().for_each(self.0);
    }
}

struct Fold<T, F>(T, F);

impl<T, F: Fn(T, T) -> T> ProducerCallback<T> for Fold<T, F> {
    type Output = T;

    fn callback<P: Producer<Item = T>>(self, items: P) -> T {
        items.into_iter().fold(self.0, self.1)
    }
}

struct Put<'a, T>(&'a mut Vec<T>);

impl<T> ProducerCallback<T> for Put<'_, T> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, items: P) {
        self.0.extend(items.into_iter());
    }
}
