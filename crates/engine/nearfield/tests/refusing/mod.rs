//! Allocators of tests: one refuses what a test tells it to, one counts what is taken.
#![allow(dead_code, reason = "every test needs one of both")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Refuses requests from a number of bytes on, after it has granted some of them.
pub(crate) struct Refusing {
    from: AtomicUsize,
    granted: AtomicUsize,
}

impl Refusing {
    /// Grants everything.
    pub(crate) const fn nothing() -> Self {
        Self {
            from: AtomicUsize::new(usize::MAX),
            granted: AtomicUsize::new(0),
        }
    }

    fn refuses(&self, size: usize) -> bool {
        size >= self.from.load(Ordering::SeqCst)
            && self
                .granted
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_err()
    }

    /// Grants `granted` requests of `from` bytes or more while `work` runs, and no other such.
    pub(crate) fn while_short<T>(
        &self,
        from: usize,
        granted: usize,
        work: impl FnOnce() -> T,
    ) -> T {
        self.granted.store(granted, Ordering::SeqCst);
        self.from.store(from, Ordering::SeqCst);
        let done = work();
        self.from.store(usize::MAX, Ordering::SeqCst);
        done
    }

    /// Grants one request of `from` bytes or more, and one more every time, until `work` succeeds;
    /// before that its errors must contain `said`. Returns how often it was refused too.
    pub(crate) fn squeeze<T, E: std::fmt::Display>(
        &self,
        from: usize,
        said: &str,
        mut work: impl FnMut() -> Result<T, E>,
    ) -> (T, usize) {
        for granted in 0.. {
            match self.while_short(from, granted, &mut work) {
                Ok(done) => return (done, granted),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(said), "{text}");
                }
            }
        }
        unreachable!("ranges without an end have none")
    }
}

/// The system's allocator, with the bytes that are taken now and were taken at most.
pub(crate) struct Counting {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    pub(crate) const fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Bytes taken and not given back.
    pub(crate) fn held(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Does `work`; returns its result and the bytes it took at most beside what was taken before.
    pub(crate) fn peak<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = self.held();
        self.peak.store(before, Ordering::Relaxed);
        let done = work();
        let peak = self.peak.load(Ordering::Relaxed);
        (done, peak.saturating_sub(before))
    }
}

// SAFETY: everything is handed on to the system's allocator; what is counted has no influence on
// it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = self.now.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.peak.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise; it came from there.
        unsafe { System.dealloc(place, layout) }
    }
}

// SAFETY: everything it grants comes from the system's allocator and goes back there.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.refuses(layout.size()) {
            true => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; it came from there.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // No allocator is short of memory for less than it has given; this one moves it.
        if size > layout.size() {
            return match self.refuses(size) {
                true => std::ptr::null_mut(),
                // SAFETY: the caller's promise; it came from there.
                false => unsafe { System.realloc(place, layout, size) },
            };
        }
        // SAFETY: the caller's promise: the size is not 0 and fits the alignment, `place` holds
        // more than that, came from there and is not used any more.
        unsafe {
            let moved = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(place, moved, size);
                System.dealloc(place, layout);
            }
            moved
        }
    }
}
