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

/// Prefetches the cache line at `at` for reading. The address need not be valid.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
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

/// Copies numbers to memory that another device will read, past the caches of the processor where
/// that is possible: a GPU reads twice as fast what none of them holds.
///
/// # Panics
/// When the lengths differ, as copying slices does.
pub fn copy_past_caches(to: &mut [f32], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "as many numbers as there is room for");
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128, _mm_loadu_ps, _mm_sfence, _mm_stream_ps};
        // SAFETY: vectors are numbers side by side.
        let (head, middle, tail) = unsafe { to.align_to_mut::<__m128>() };
        let (first, rest) = from.split_at(head.len());
        let (vectors, last) = rest.split_at(4 * middle.len());
        head.copy_from_slice(first);
        tail.copy_from_slice(last);
        for (to, from) in middle.iter_mut().zip(vectors.as_chunks::<4>().0) {
            // SAFETY: every x86-64 processor has these; the place is aligned, and there are four
            // numbers to be read.
            unsafe { _mm_stream_ps(std::ptr::from_mut(to).cast(), _mm_loadu_ps(from.as_ptr())) };
        }
        // SAFETY: as above; what was written becomes visible before what this thread writes next.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_copied_wherever_they_lie() {
        let from: Vec<f32> = (0..100).map(|k| k as f32).collect();
        for begin in 0..9 {
            for len in [0, 1, 3, 4, 5, 17, 64] {
                let mut to = vec![-1.0; 100];
                copy_past_caches(
                    &mut to[begin..begin + len],
                    &from[2 * begin..2 * begin + len],
                );
                for (place, &found) in to.iter().enumerate() {
                    let expected = match (begin..begin + len).contains(&place) {
                        true => (place + begin) as f32,
                        false => -1.0,
                    };
                    assert_eq!(found, expected, "{begin}, {len}");
                }
            }
        }
    }
}
