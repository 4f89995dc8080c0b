//! Values that belong to one process, such as threads: a forked child gets its own.
//!
//! `fork` copies the memory of a process and one of its threads. A pool of workers, or a lock that
//! another thread held, is of no use in the child: no thread is there to work or to unlock. A
//! program that loads this library, such as a Python interpreter with `multiprocessing`, may fork
//! at any time, and must find a working engine on both sides.
//!
//! A [`PerProcess`] remembers which process made its value. In another process it leaves the value
//! alone, without even dropping it, and makes a new one. An [`OfProcess`] is for values that
//! cannot be made anew, such as those of a GPU driver: it only tells whether it was inherited, and
//! is not dropped then.
//!
//! **Invariant:** no value is used or dropped by a process that did not make it.
//!
//! # Why not `pthread_atfork`
//!
//! A handler would run in every fork of the process, in the middle of code that is not this
//! library's, where almost nothing is allowed. Asking for the process id when a value is needed
//! costs a system call or less, and only at the beginning of a job.

use std::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    process, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A value with the process that made it.
struct Stamped<T> {
    /// Id of the process that made the value.
    process: u32,
    /// The value.
    value: T,
}

/// A value of this process, made anew in a forked child.
///
/// The value of the parent is leaked in the child, because dropping it may wait for threads that
/// the child does not have.
pub struct PerProcess<T> {
    /// Null, or from [`Box::into_raw`].
    made: AtomicPtr<Stamped<T>>,
    /// Owns the value, for `Send` and `Sync`.
    owned: PhantomData<T>,
}

impl<T> PerProcess<T> {
    /// Nothing yet: the first [`get_or_make`](Self::get_or_make) makes the value.
    pub const fn empty() -> Self {
        Self {
            made: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// With the value of this process.
    pub fn new(value: T) -> Self {
        let process = process::id();
        Self {
            made: AtomicPtr::new(Box::into_raw(Box::new(Stamped { process, value }))),
            owned: PhantomData,
        }
    }

    /// Returns true if the value was made by another process, a parent of this one.
    pub fn is_inherited(&self) -> bool {
        self.made()
            .is_some_and(|made| made.process != process::id())
    }

    /// The value of this process, which `make` makes if there is none. Of several threads that make
    /// one at a time, all get the first.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        let process = process::id();
        match self.made() {
            Some(made) if made.process == process => &made.value,
            _ => self.make(process, make()),
        }
    }

    /// Puts a value of this process in the place of an inherited one. Several threads may come
    /// here at once: one wins the exchange, and the others drop their value and take the winner's.
    #[cold]
    fn make(&self, process: u32, value: T) -> &T {
        let fresh = Box::into_raw(Box::new(Stamped { process, value }));
        let mut held = self.made.load(Ordering::Acquire);
        loop {
            // SAFETY: what is held is null or a live box: nothing but `drop` frees one, which has
            // the value for itself.
            let there = unsafe { held.as_ref() };
            if let Some(there) = there.filter(|there| there.process == process) {
                // SAFETY: `fresh` is from `Box::into_raw` above, and was not published.
                drop(unsafe { Box::from_raw(fresh) });
                return &there.value;
            }
            // An inherited value is leaked here, with all threads that it had in the parent.
            let order = (Ordering::AcqRel, Ordering::Acquire);
            match (self.made).compare_exchange(held, fresh, order.0, order.1) {
                // SAFETY: a live box, as above.
                Ok(_) => return unsafe { &(*fresh).value },
                Err(other) => held = other,
            }
        }
    }

    /// The value that is held, whichever process made it.
    fn made(&self) -> Option<&Stamped<T>> {
        // SAFETY: null or a live box, as in `make`.
        unsafe { self.made.load(Ordering::Acquire).as_ref() }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.made().is_some() && !self.is_inherited() {
            // SAFETY: from `Box::into_raw`, and `&mut self` proves that no reference is left.
            drop(unsafe { Box::from_raw(*self.made.get_mut()) });
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PerProcess");
        if let Some(made) = self.made().filter(|_| !self.is_inherited()) {
            shown.field("process", &made.process);
            shown.field("value", &made.value);
        }
        shown.finish()
    }
}

/// A value that only the process that made it drops: what a driver holds for that process must be
/// left alone in a forked child, which asks [`is_inherited`](Self::is_inherited) before it uses the
/// value.
///
/// Driver contexts, streams and buffers are of this kind.
#[derive(Debug)]
pub struct OfProcess<T> {
    /// The value, dropped by hand.
    value: ManuallyDrop<T>,
    /// Id of the process that made it.
    process: u32,
}

impl<T> OfProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            process: process::id(),
        }
    }

    /// Returns true if the value was made by another process, a parent of this one.
    pub fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// The value. Ask [`is_inherited`](Self::is_inherited) first: it is dropped as any other.
    pub fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used nor dropped after this.
        unsafe { ManuallyDrop::take(&mut this.value) }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: dropped once, here, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn what_another_process_made_is_not_dropped() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut value = OfProcess::new(Counted(drops.clone(), 7));
        assert!(!value.is_inherited());
        assert_eq!(value.1, 7);
        // As a forked child finds it.
        value.process ^= 1;
        assert!(value.is_inherited());
        drop(value);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(OfProcess::new(Counted(drops.clone(), 7)));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    /// Counts its drops.
    struct Counted(Arc<AtomicUsize>, u32);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_value_is_made_once_and_dropped_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = PerProcess::empty();
        assert!(!value.is_inherited());
        for number in 0..3 {
            let made = value.get_or_make(|| Counted(drops.clone(), number));
            assert_eq!(made.1, 0);
        }
        drop(value);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        drop(PerProcess::<Counted>::empty());
    }

    #[test]
    fn a_value_of_another_process_is_replaced_and_never_dropped() {
        let drops = Arc::new(AtomicUsize::new(0));
        let elsewhere = |number| {
            let value = Counted(drops.clone(), number);
            let process = process::id().wrapping_add(1);
            let made = Box::into_raw(Box::new(Stamped { process, value }));
            PerProcess {
                made: AtomicPtr::new(made),
                owned: PhantomData,
            }
        };
        let value = elsewhere(7);
        assert!(value.is_inherited());
        assert_eq!(value.get_or_make(|| Counted(drops.clone(), 8)).1, 8);
        assert!(!value.is_inherited());
        drop(value);
        assert_eq!(drops.load(Ordering::Relaxed), 1, "its own only");
        drop(elsewhere(9));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn threads_that_make_a_value_at_once_get_the_same() {
        let value = PerProcess::empty();
        let made: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let value = &value;
                    scope.spawn(move || std::ptr::from_ref(value.get_or_make(|| number)) as usize)
                })
                .collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(made.iter().all(|&at| at == made[0]));
    }
}
