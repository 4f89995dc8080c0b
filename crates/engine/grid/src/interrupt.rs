//! Ends long calls early when the caller asks for it.
//!
//! A program that is asked to stop (Ctrl-C, a closed window) should not wait until a search of
//! minutes has ended. [`interruptible`] runs work together with a check of the caller's, which is
//! called about every [`PERIOD`] on the calling thread alone: while that thread waits for workers,
//! and between parts of jobs where it does them itself. No thread is started for it, so short calls
//! are as fast as without. Once the check says so, jobs see it ([`Stop::is_asked`]) between parts
//! and fail, as they do when memory is short.
//!
//! # Why no thread is started
//!
//! Handing a call to another thread and waiting for it takes about ten microseconds, a tenth of a
//! search of a thousand points, and in Python only the main thread may handle signals. So the
//! calling thread looks itself. While it waits for workers it wakes once a period. Where it is the
//! only worker, jobs ask it between their parts, and most of these questions end at a clock that
//! says it is too early.
//!
//! # Where a call ends
//!
//! At a part of a job: some hundred targets, or one target with a million candidates. Passes over
//! single points, such as a sort, are not cut, because they take seconds at most. A job that is
//! over when the flag is set has its result.
//!
//! **Invariant:** the flag of a call reaches every thread that works for the call, and no other
//! call: workers get it with the work ([`Stop::scope`]), and it is taken back afterwards.

use rayon::ThreadPool;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread::LocalKey,
    time::{Duration, Instant},
};

/// Time from one check to the next.
const PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    /// The flag of the call that this thread works for.
    static STOP: RefCell<Stop> = const { RefCell::new(Stop(None)) };
    /// The check of the call that was begun on this thread.
    static CHECK: RefCell<Option<Check>> = const { RefCell::new(None) };
}

/// Whether a call is to end early; shared by the threads that work for it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

/// The caller's function, and when it was last called.
///
/// Cloned before each call, because the function may begin calls of its own on this thread.
#[derive(Clone)]
struct Check {
    /// Returns true to end the call.
    ask: Rc<dyn Fn() -> bool>,
    /// The flag of the call. A thread of a pool may do a task of another call meanwhile, which this
    /// check must not end.
    asked: Arc<AtomicBool>,
    /// When it last returned, or the call began.
    last: Rc<Cell<Instant>>,
}

impl Stop {
    /// That of the call which this thread works for.
    ///
    /// Taken once per job; tasks get it from the job, because they may run on any thread.
    pub fn current() -> Self {
        STOP.try_with(|stop| stop.borrow().clone())
            .unwrap_or_default()
    }

    /// Returns true if the call is to end.
    ///
    /// One load, for loops.
    #[inline]
    pub fn is_asked(&self) -> bool {
        (self.0.as_ref()).is_some_and(|asked| asked.load(Ordering::Relaxed))
    }

    /// As [`is_asked`](Self::is_asked), after the caller's check if it is time for it and this is
    /// the calling thread.
    pub fn is_asked_now(&self) -> bool {
        self.check();
        self.is_asked()
    }

    /// Does `work` for this call.
    ///
    /// Always needed on a worker, also for calls without a check: the worker may be in the middle
    /// of a task of another call, whose flag must not count.
    pub fn scope<R>(self, work: impl FnOnce() -> R) -> R {
        let _restore = Restore::of(&STOP, self);
        work()
    }

    /// Calls the caller's check, if it is time for it and this is the calling thread.
    fn check(&self) {
        let Some(asked) = &self.0 else { return };
        // The check may run any code, so nothing is borrowed meanwhile.
        let check = CHECK.try_with(|check| check.borrow().clone());
        let Some(check) = check.ok().flatten() else {
            return;
        };
        let is_early = check.last.get().elapsed() < PERIOD || asked.load(Ordering::Relaxed);
        if is_early || !Arc::ptr_eq(asked, &check.asked) {
            return;
        }
        if (check.ask)() {
            asked.store(true, Ordering::Relaxed);
        }
        check.last.set(Instant::now());
    }
}

/// Puts a value back when work ends or panics.
struct Restore<T: Default + 'static>(&'static LocalKey<RefCell<T>>, T);

impl<T: Default> Restore<T> {
    /// After putting another value there. None in a thread that ends and has no place for it any
    /// more, where an owner drops an engine, for instance.
    fn of(place: &'static LocalKey<RefCell<T>>, value: T) -> Option<Self> {
        let before = place.try_with(|held| held.replace(value));
        before.ok().map(|before| Self(place, before))
    }
}

impl<T: Default> Drop for Restore<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.1);
        // Nothing reads it where there is no place any more.
        let _ = self.0.try_with(|held| held.replace(value));
    }
}

/// Does `work`, which ends early once `check` has returned true: jobs of an engine then fail with
/// an error that says so, and the engine has its last good state. `check` is called about every 50
/// ms on this thread, and not again after it has returned true.
///
/// Searches, counts and traversals on the CPU can be ended; sorting points, copying lists, work of
/// a GPU and functions of the caller's are waited for.
pub fn interruptible<R>(check: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
    let asked = Arc::<AtomicBool>::default();
    let check = Check {
        ask: Rc::new(check),
        asked: asked.clone(),
        last: Rc::new(Cell::new(Instant::now())),
    };
    let _restore = Restore::of(&CHECK, Some(check));
    Stop(Some(asked)).scope(work)
}

/// Does `work` on the workers of `pool`, and calls the check meanwhile, if there is one.
pub(crate) fn install<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    let (mut work, mut done) = (Some(work), None);
    install_object(pool, &mut || done = work.take().map(|work| work()));
    match done {
        Some(done) => done,
        // The pool runs the function it is given, and panics when that does.
        None => unreachable!("the work has neither ended nor panicked"),
    }
}

/// As [`install`], compiled once for all work.
fn install_object(pool: &ThreadPool, work: &mut (dyn FnMut() + Send)) {
    let stop = Stop::current();
    let here = stop.clone();
    let work = move || stop.scope(work);
    // A thread of a pool must go on with tasks of that pool while it waits.
    let has_check = || CHECK.try_with(|check| check.borrow().is_some());
    if rayon::current_thread_index().is_some() || !has_check().unwrap_or_default() {
        return pool.install(work);
    }
    pool.in_place_scope(|scope| {
        let (at_work, ended) = channel::<()>();
        // The only task, so a worker begins it as soon as it would one that is installed.
        scope.spawn(move |_| {
            // Dropped at the end, also by a panic.
            let _at_work = at_work;
            work();
        });
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            here.check();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_check_is_never_asked_to_stop() {
        assert!(!Stop::current().is_asked_now());
        interruptible(|| true, || assert!(!Stop::current().is_asked()));
        assert!(!Stop::current().is_asked_now());
    }

    #[test]
    fn a_check_ends_no_other_call_that_its_thread_works_for() {
        let other = Stop(Some(Arc::default()));
        interruptible(
            || true,
            || {
                std::thread::sleep(2 * PERIOD);
                assert!(!other.is_asked_now());
                assert!(Stop::current().is_asked_now());
                assert!(!other.is_asked());
            },
        );
    }

    #[test]
    fn workers_see_the_flag_of_their_call_while_the_caller_waits() {
        let pool = crate::parallel::start_some(2, "test").unwrap();
        let waited = interruptible(
            || true,
            || {
                install(&pool, || {
                    let (stop, begin) = (Stop::current(), Instant::now());
                    while !stop.is_asked_now() && begin.elapsed() < Duration::from_secs(20) {
                        std::thread::yield_now();
                    }
                    begin.elapsed()
                })
            },
        );
        assert!(waited < Duration::from_secs(20));
        assert!(
            !install(&pool, || Stop::current().is_asked()),
            "of the next call"
        );
    }

    #[test]
    fn the_calling_thread_checks_between_parts_of_its_own_work() {
        let calls = Rc::new(Cell::new(0));
        let seen = calls.clone();
        let check = move || {
            seen.set(seen.get() + 1);
            seen.get() == 2
        };
        interruptible(check, || {
            let stop = Stop::current();
            while !stop.is_asked_now() {
                std::thread::yield_now();
            }
            assert!(stop.is_asked_now());
        });
        assert_eq!(calls.get(), 2, "and not after it said stop");
    }
}
