//! An allocator that refuses what a test tells it to.

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
