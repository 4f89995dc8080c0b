//! Which thread may use the GPU of an engine that several threads share.
//!
//! A job holds the GPU while workers of the engine's pool copy for it. Where the job's own thread
//! is a worker of some rayon pool, it does other work of that pool while it waits for them: perhaps
//! another job of the same engine, on top of its own stack, or work whose end another worker's job
//! needs. **A worker therefore never waits for its turn**, or the pool may deadlock: it is told
//! that the GPU is in use, and the CPU backend does the job. Threads that belong to no pool do
//! nothing else while they have the GPU, so others of their kind wait for them.
//!
//! The price is a job on the slower backend where a wait would have been short. It is counted
//! ([`Turn::missed`]) and shows in the report, so a program that runs many small jobs from inside a
//! pool can see that its GPU is often not used.

use std::sync::{
    Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicU64, Ordering},
};

/// A value that one thread at a time may use.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    value: Mutex<T>,
    /// How often a worker found it in use.
    missed: AtomicU64,
}

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            missed: AtomicU64::new(0),
        }
    }

    /// The value, once no other thread uses it; `None` for a worker of a rayon pool while another
    /// thread uses it.
    ///
    /// A lock that a panicking thread left is taken over. The value must therefore be of a kind
    /// that the next user can put in order.
    pub(crate) fn take(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            // State left by a panic is sorted anew at the next step.
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) if rayon::current_thread_index().is_some() => None,
            Err(TryLockError::WouldBlock) => {
                Some(self.value.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// The value for a job; where a worker has to do without, that is counted and said.
    pub(crate) fn take_for_job(&self) -> Option<MutexGuard<'_, T>> {
        let taken = self.take();
        if taken.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            tracing::info!(
                "the CPU backend does a job: another job of the engine uses the GPU, and a worker of a \
                 rayon pool must not wait for it"
            );
        }
        taken
    }

    /// Jobs that had to do without the value.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// The value of a turn that is not shared.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::{sync::mpsc, thread, time::Duration};

    /// Far longer than the jobs take.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// Runs `work` on a thread of its own and returns its result; panics if it does not end.
    fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, result) = mpsc::channel();
        thread::spawn(move || done.send(work()));
        result.recv_timeout(DEADLINE).expect("it stands still")
    }

    fn pool(threads: usize) -> rayon::ThreadPool {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap()
    }

    /// Jobs of an outer pool that each hold the turn while an inner pool works.
    fn jobs(threads: usize) -> (u64, u64) {
        let (outer, inner, turn) = (pool(threads), pool(2), Turn::new(0u64));
        let others: u64 = outer.install(|| {
            let jobs = (0..64).into_par_iter().with_max_len(1);
            jobs.map(|_| {
                let Some(mut done) = turn.take_for_job() else {
                    return 1;
                };
                // Meanwhile this worker steals another of the jobs.
                inner.install(|| thread::sleep(Duration::from_millis(1)));
                *done += 1;
                0
            })
            .sum()
        });
        assert_eq!(turn.missed(), others);
        let done = *turn.take().unwrap();
        (done, others)
    }

    #[test]
    fn jobs_of_one_pool_do_not_wait_for_each_other() {
        for threads in [1, 2, 4] {
            let (done, others) = in_time(move || jobs(threads));
            assert_eq!(done + others, 64);
            assert!(done > 0 && others > 0, "{done} {others}");
        }
    }

    #[test]
    fn threads_of_no_pool_take_turns() {
        let done = in_time(|| {
            let turn = Turn::new(0u64);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let mut done = turn.take_for_job().unwrap();
                        thread::sleep(Duration::from_millis(2));
                        *done += 1;
                    });
                }
            });
            assert_eq!(turn.missed(), 0);
            *turn.take().unwrap()
        });
        assert_eq!(done, 8);
    }

    #[test]
    fn a_panic_does_not_end_the_turns() {
        let mut turn = Turn::new(1);
        let broken = thread::scope(|scope| {
            let job = || {
                let _taken = turn.take();
                panic!("on purpose");
            };
            scope.spawn(job).join().is_err()
        });
        assert!(broken);
        assert_eq!(*turn.take().unwrap(), 1);
        assert_eq!(*turn.get_mut(), 1);
    }
}
