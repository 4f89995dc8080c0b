//! Loops on the workers of the pool that the calling thread belongs to, and on no others.
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
//! A loop is cut into parts of consecutive items, through rayon's producer of them, and [`tasks`]
//! does the parts: on the workers of the pool, or one after another on the calling thread without
//! touching any pool. Only loops of known length can be cut so, which are all that this project
//! uses.
//!
//! `tasks` takes a trait object, so what deals work out to the threads is compiled once. Rayon's
//! own loops compile it again for every loop, three times each, which took more machine code than
//! all sorting and searching of this crate. Rayon cuts a loop further where a thread has nothing
//! to do; here a loop has a fixed number of parts for each thread (`PARTS_PER_THREAD`), or parts
//! as short as `with_max_len` says.
//!
//! # Threads of a pool
//!
//! [`start`] starts the workers of an engine; [`within`] runs a piece of work there. Inside,
//! nested loops use the same workers.

use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, ParallelIterator,
    plumbing::{Producer, ProducerCallback},
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    cell::Cell,
    env,
    mem::MaybeUninit,
    num::NonZero,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Parts of a loop for each thread, so that a thread that begins late does not hold up the others.
const PARTS_PER_THREAD: usize = 4;

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

/// Calls `task` with every number below `count`, on all threads of the pool that the calling
/// thread belongs to; see [`is_shared`].
pub fn tasks(count: usize, task: &(dyn Fn(usize) + Sync)) {
    if count > 1 && is_shared() {
        (0..count).into_par_iter().with_max_len(1).for_each(task);
    } else {
        (0..count).for_each(task);
    }
}

/// Loops over a parallel iterator of rayon, but never on the global pool.
///
/// Implemented for every indexed parallel iterator; importing the trait is all a caller does.
pub trait PoolLoops: IndexedParallelIterator {
    /// Calls `each` with every item.
    fn run(self, each: impl Fn(Self::Item) + Sync + Send) {
        in_parts(self, &Each(each));
    }

    /// Combines all items in order, with `identity` where there are none; `combine` is associative.
    ///
    /// Which neighbours are combined first is not fixed, so floating-point sums are not combined
    /// with it.
    fn combined(
        self,
        identity: impl Fn() -> Self::Item + Sync + Send,
        combine: impl Fn(Self::Item, Self::Item) -> Self::Item + Sync + Send,
    ) -> Self::Item {
        let fold = Fold {
            identity,
            combine,
            parts: Mutex::default(),
        };
        in_parts(self, &fold);
        let parts = std::mem::take(&mut *lock(&fold.parts));
        let parts = parts.into_iter().map(|(_, part)| part);
        parts.fold((fold.identity)(), &fold.combine)
    }

    /// Puts all items into `to`, in order, in the place of what it holds. Room for them is best
    /// reserved before, where it may be refused.
    fn put_into(self, to: &mut Vec<Self::Item>) {
        let len = self.len();
        to.clear();
        to.reserve(len);
        let slots = &mut to.spare_capacity_mut()[..len];
        let written = AtomicUsize::new(0);
        in_parts(slots.into_par_iter().zip(self), &Put(&written));
        assert_eq!(
            written.into_inner(),
            len,
            "an iterator is as long as it says"
        );
        // SAFETY: so many slots were written, each once, because each is one item of the loop.
        unsafe { to.set_len(len) };
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

/// What a loop does with its items.
///
/// A trait, not a closure, because the type of the items' iterator is the producer's own.
trait Body<T>: Sync {
    /// Does one part of the loop.
    fn part(&self, number: usize, items: impl Iterator<Item = T>);
}

/// Does the items in parts, each of which is one task.
fn in_parts<I: IndexedParallelIterator>(items: I, body: &impl Body<I::Item>) {
    let len = items.len();
    items.with_producer(Parts { body, len });
}

/// Takes the producer of a loop of `len` items apart.
///
/// A producer can be split but not shared, so each part lies in a lock of its own until its task
/// takes it, once and without waiting.
struct Parts<'a, B> {
    body: &'a B,
    len: usize,
}

impl<T, B: Body<T>> ProducerCallback<T> for Parts<'_, B> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, items: P) {
        let count = number_of_parts(self.len, items.min_len(), items.max_len());
        let mut parts = Vec::with_capacity(count);
        let (mut rest, mut begin) = (items, 0);
        for number in 1..count {
            let end = (number as u128 * self.len as u128 / count as u128) as usize;
            let (part, others) = rest.split_at(end - begin);
            parts.push(Mutex::new(Some(part)));
            (rest, begin) = (others, end);
        }
        parts.push(Mutex::new(Some(rest)));
        tasks(count, &|number| {
            if let Some(part) = lock(&parts[number]).take() {
                self.body.part(number, part.into_iter());
            }
        });
    }
}

/// Number of parts of a loop of `len` items whose parts have between `min` and `max` items, where
/// that can be.
fn number_of_parts(len: usize, min: usize, max: usize) -> usize {
    let threads = threads();
    if threads == 1 {
        return 1;
    }
    let wanted = (PARTS_PER_THREAD * threads).min(len / min.max(1));
    wanted.max(len.div_ceil(max.max(1))).max(1)
}

/// No code of a loop runs while its lock is held, so poison is ignored.
fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function with each item.
struct Each<F>(F);

impl<T, F: Fn(T) + Sync> Body<T> for Each<F> {
    #[inline]
    fn part(&self, _: usize, items: impl Iterator<Item = T>) {
        items.for_each(&self.0);
    }
}

/// Combines the items of each part, and keeps what comes out until all parts are done: which
/// part ends first is a matter of chance, and `combine` need not be commutative.
struct Fold<T, I, F> {
    identity: I,
    combine: F,
    /// What was made of each part, with its number, in order.
    parts: Mutex<Vec<(usize, T)>>,
}

impl<T: Send, I: Fn() -> T + Sync, F: Fn(T, T) -> T + Sync> Body<T> for Fold<T, I, F> {
    fn part(&self, number: usize, items: impl Iterator<Item = T>) {
        let part = items.fold((self.identity)(), &self.combine);
        let mut parts = lock(&self.parts);
        let at = parts.partition_point(|&(before, _)| before < number);
        parts.insert(at, (number, part));
    }
}

/// Writes each item into its slot, and counts them.
struct Put<'a>(&'a AtomicUsize);

impl<'a, T> Body<(&'a mut MaybeUninit<T>, T)> for Put<'_> {
    fn part(&self, _: usize, items: impl Iterator<Item = (&'a mut MaybeUninit<T>, T)>) {
        let mut written = 0;
        items.for_each(|(slot, item)| {
            slot.write(item);
            written += 1;
        });
        self.0.fetch_add(written, Ordering::Relaxed);
    }
}
