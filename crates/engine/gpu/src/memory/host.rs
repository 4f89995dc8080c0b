//! Memory of the host that the GPU reads and writes directly.
//!
//! The system may move pages of ordinary memory, so the driver copies from and to them by way of a
//! small page-locked buffer of its own: slower, and the host waits. Page-locked memory stays where
//! it is. The GPU's copy engine reads it while the host works on, and kernels can write a few
//! numbers straight to it. Making it costs the system work per page, so buffers are made once and
//! kept between steps.

use crate::error::{Error, ErrorKind};
use cudarc::driver::{CudaContext, ValidAsZeroBits, result, sys};
use std::{
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
    sync::Arc,
};

/// Page-locked memory: copies to and from the GPU run at the full speed of the bus, several times
/// that of other memory, and beside other work. Making it takes long, about half a millisecond a
/// mebibyte, so it is kept between steps.
#[derive(Debug)]
pub struct HostBuffer<T> {
    /// First element.
    place: NonNull<T>,
    /// Elements, all of them initialised.
    len: usize,
    /// Keeps the context, and so the memory, alive.
    context: Arc<CudaContext>,
}

// SAFETY: it owns its memory alone, as a Vec does.
unsafe impl<T: Send> Send for HostBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HostBuffer<T> {}

impl<T: ValidAsZeroBits> HostBuffer<T> {
    /// Page-locked memory for `len` elements, all zero.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] when the system has none to give.
    pub(crate) fn new(context: &Arc<CudaContext>, len: usize) -> Result<Self, Error> {
        let failed = |error| Error::driver(format!("page-locking memory for {len} values"), error);
        context.bind_to_thread().map_err(failed)?;
        let Some(bytes) = len.max(1).checked_mul(size_of::<T>()) else {
            return Err(Error::from(ErrorKind::OutOfMemory {
                bytes: usize::MAX,
                what: "page-locked memory".to_owned(),
            }));
        };
        // SAFETY: the context is current; the memory is freed once, when the buffer is dropped.
        let place = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        let place = place.map_err(failed)?.cast::<T>();
        // SAFETY: the driver has given as many bytes there, for which all zero is a value.
        unsafe { place.write_bytes(0, len.max(1)) };
        Ok(Self {
            // The driver gives no null pointer without an error.
            place: NonNull::new(place).unwrap_or(NonNull::dangling()),
            len,
            context: context.clone(),
        })
    }
}

impl<T> HostBuffer<T> {
    /// Where the first element is; it stays there.
    pub fn place(&mut self) -> NonNull<T> {
        self.place
    }
}

impl<T> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer owns so many initialised elements.
        unsafe { slice::from_raw_parts(self.place.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.place.as_ptr(), self.len) }
    }
}

impl<T> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        // The memory of a destroyed context was freed with it.
        if self.context.bind_to_thread().is_ok() {
            // A copy that was started may not have ended.
            let _ = self.context.synchronize();
            // SAFETY: it came from malloc_host and is freed once.
            let _ = unsafe { result::free_host(self.place.as_ptr().cast()) };
        }
    }
}

/// Copies numbers to [page-locked memory](HostBuffer) that the GPU will read, past the caches of
/// the processor where that is possible: the GPU reads twice as fast what none of them holds.
///
/// # Panics
/// When the lengths differ, as copying slices does.
pub fn copy_for_gpu(to: &mut [f32], from: &[f32]) {
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
                copy_for_gpu(
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
