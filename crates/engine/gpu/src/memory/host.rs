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
        let failed = |error| Error::of_call(format!("page-locking memory for {len} values"), error);
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
        // SAFETY: the buffer owns `len` initialised elements.
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
