//! Allocators for tests: one refuses requests that a test selects, one counts bytes.
//!
//! Both hand everything else to the system's. A test program makes one of them its
//! `#[global_allocator]`, so it is a program of its own.
//!
//! ```
//! use nearfield_testkit::memory::Refusing;
//!
//! #[global_allocator]
//! static MEMORY: Refusing = Refusing::nothing();
//!
//! let mut numbers: Vec<u8> = Vec::new();
//! let short = MEMORY.while_short(4096, 0, || numbers.try_reserve(5000).is_err());
//! assert!(short);
//! ```

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Refuses requests of at least a number of bytes after granting some of them, on all threads or on
/// one.
#[derive(Debug)]
pub struct Refusing {
    from: AtomicUsize,
    granted: AtomicUsize,
}

/// Requests of one thread that are refused.
#[derive(Debug, Clone, Copy)]
struct Limit {
    from: usize,
    granted: usize,
    refused: usize,
}

impl Limit {
    const NONE: Self = Self {
        from: usize::MAX,
        granted: 0,
        refused: 0,
    };

    /// Takes note of a request; returns true if it is refused.
    fn refuses(&mut self, size: usize) -> bool {
        if size < self.from {
            return false;
        }
        match self.granted.checked_sub(1) {
            Some(left) => self.granted = left,
            None => self.refused += 1,
        }
        self.refused > 0
    }
}

thread_local! {
    /// Requests of this thread that are refused. It needs neither memory nor a destructor, so the
    /// allocator may use it at any time.
    static HERE: Cell<Limit> = const { Cell::new(Limit::NONE) };
}

impl Refusing {
    /// Grants everything.
    pub const fn nothing() -> Self {
        Self {
            from: AtomicUsize::new(usize::MAX),
            granted: AtomicUsize::new(0),
        }
    }

    fn refuses(&self, size: usize) -> bool {
        let mut here = HERE.get();
        let refused = here.refuses(size);
        HERE.set(here);
        refused
            || size >= self.from.load(Ordering::SeqCst)
                && self
                    .granted
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                        left.checked_sub(1)
                    })
                    .is_err()
    }

    /// While `work` runs, grants `granted` requests of `from` bytes or more and refuses further
    /// ones.
    pub fn while_short<T>(&self, from: usize, granted: usize, work: impl FnOnce() -> T) -> T {
        self.granted.store(granted, Ordering::SeqCst);
        self.from.store(from, Ordering::SeqCst);
        let done = work();
        self.from.store(usize::MAX, Ordering::SeqCst);
        done
    }

    /// As [`while_short`](Self::while_short) for requests of this thread alone; also returns how
    /// many were refused. Any number of threads may be short at a time.
    pub fn while_short_here<T>(
        &self,
        from: usize,
        granted: usize,
        work: impl FnOnce() -> T,
    ) -> (T, usize) {
        HERE.set(Limit {
            from,
            granted,
            refused: 0,
        });
        let done = work();
        (done, HERE.replace(Limit::NONE).refused)
    }

    /// Grants one request of `from` bytes or more, and one more every time, until `work` succeeds;
    /// before that its errors must contain `said`. Returns how often it was refused too.
    pub fn squeeze<T, E: std::fmt::Display>(
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
#[derive(Debug)]
pub struct Counting {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    /// Nothing taken yet.
    pub const fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Bytes taken and not given back.
    pub fn held(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Runs `work`; returns its result and its peak memory in bytes, without the memory allocated
    /// before.
    pub fn peak<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = self.held();
        self.peak.store(before, Ordering::Relaxed);
        let done = work();
        let peak = self.peak.load(Ordering::Relaxed);
        (done, peak.saturating_sub(before))
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: everything is passed to the system's allocator; counting has no influence on it.
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
        if self.refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; it came from there.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // No allocator is short of memory for less than it has given; this one moves it.
        if size > layout.size() {
            if self.refuses(size) {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's promise; it came from there.
            return unsafe { System.realloc(place, layout, size) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[global_allocator]
    static MEMORY: Refusing = Refusing::nothing();

    /// Larger than any request of threads and the test harness.
    const LARGE: usize = 1 << 20;

    /// Whether a request is granted.
    fn granted() -> bool {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(LARGE).is_ok()
    }

    #[test]
    fn a_thread_that_is_short_of_memory_is_the_only_one() {
        let here = || MEMORY.while_short_here(LARGE, 2, || [(); 4].map(|()| granted()));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(here(), ([true, true, false, false], 2)));
            }
            assert!((0..100).all(|_| granted()));
        });
        assert_eq!(MEMORY.while_short_here(LARGE + 1, 0, granted), (true, 0));
        assert!(granted());
    }
}
