//! A slice that several workers fill at once, each its own elements.

use std::marker::PhantomData;

/// A mutable slice shared between workers that write disjoint elements.
///
/// The one place where parallel scatter writes are allowed: sorting and traversal know, by
/// construction, that each element is written by exactly one worker, which the borrow checker
/// cannot see.
#[derive(Debug)]
pub struct SharedMut<'a, T> {
    data: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: only `write` and `slice_mut` touch the data, and their callers promise that no element
// is accessed by two workers at once.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T: Copy> SharedMut<'a, T> {
    /// Shares `slice` for as long as it is borrowed.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self {
            data: slice.as_mut_ptr(),
            len: slice.len(),
            borrow: PhantomData,
        }
    }

    /// Asks for element `index`, which need not exist, to be fetched for writing.
    #[inline(always)]
    pub fn expect(&self, index: usize) {
        prefetch_for_writing(self.data.wrapping_add(index));
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index` is below the slice's length, and nobody else accesses that element meanwhile.
    #[inline(always)]
    pub unsafe fn write(&self, index: usize, value: T) {
        debug_assert!(index < self.len);
        // SAFETY: in bounds and exclusive by the caller's promise.
        unsafe { self.data.add(index).write(value) }
    }

    /// Elements `begin..end`, exclusively.
    ///
    /// # Safety
    /// `begin <= end <= len`, and nobody else accesses those elements while the slice lives.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // disjointness is the caller's promise, that is what this is for
    pub unsafe fn slice_mut(&self, begin: usize, end: usize) -> &mut [T] {
        debug_assert!(begin <= end && end <= self.len);
        // SAFETY: in bounds and exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(begin), end - begin) }
    }
}

/// Asks for the cache line at `at`, which need not be memory of ours, to be fetched for writing.
#[inline(always)]
pub fn prefetch_for_writing<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
