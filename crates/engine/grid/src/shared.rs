//! A slice that several workers fill at once, each its own elements.
//!
//! Sorting scatters points to final positions that are all over the array, and traversals write
//! the result of each target to the caller's index of it. Every element has exactly one writer,
//! but the elements of a worker form no contiguous part that `chunks_mut` could hand out.
//! [`SharedMut`] is the one place where such writes are allowed, and each call site says why its
//! elements are its own.
//!
//! **Invariant:** callers of the two unsafe functions guarantee that no element is accessed by two
//! workers at once.

use std::marker::PhantomData;

/// A mutable slice shared between workers that write disjoint elements.
///
/// The one place where parallel scatter writes are allowed: sorting and traversal know, by
/// construction, that each element is written by exactly one worker, which the borrow checker
/// cannot see.
///
/// Copies of elements only (`T: Copy`), so overwriting drops nothing.
#[derive(Debug)]
pub struct SharedMut<'a, T> {
    /// First element.
    data: *mut T,
    /// Number of elements.
    len: usize,
    /// Keeps the slice borrowed.
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: only `write` and `slice_mut` touch the data, and their callers guarantee that no element
// is accessed by two workers at once.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T: Copy> SharedMut<'a, T> {
    /// Shares `slice` for as long as it is borrowed.
    ///
    /// The borrow keeps every other access to the slice out.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self {
            data: slice.as_mut_ptr(),
            len: slice.len(),
            borrow: PhantomData,
        }
    }

    /// Prefetches element `index`, which need not exist, for writing.
    #[inline(always)]
    pub fn expect(&self, index: usize) {
        prefetch_for_writing(self.data.wrapping_add(index));
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index` is below the slice's length, and no other thread accesses that element meanwhile.
    #[inline(always)]
    pub unsafe fn write(&self, index: usize, value: T) {
        debug_assert!(index < self.len);
        // SAFETY: in bounds and exclusive by the caller's promise.
        unsafe { self.data.add(index).write(value) }
    }

    /// Elements `begin..end`, exclusively.
    ///
    /// # Safety
    /// `begin <= end <= len`, and no other code accesses those elements while the slice lives.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller guarantees that parts are disjoint"
    )]
    pub unsafe fn slice_mut(&self, begin: usize, end: usize) -> &mut [T] {
        debug_assert!(begin <= end && end <= self.len);
        // SAFETY: in bounds and exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(begin), end - begin) }
    }
}

/// Prefetches the cache line at `at` for writing. The address need not be valid: a prefetch never
/// faults. Without it a scattered store waits for the line, because no processor foresees as many
/// streams as a sort writes to.
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
