//! Memory of the host that the GPU writes lists into.
//!
//! Page-locked memory is lent to lists through the same trait as memory of any other backend, and
//! returns to the driver when the lists are dropped.
//!
//! Lists own what they were lent, so they can be read after the job has given its turn back.

use super::state::Trouble;
use nearfield_cpu::{BorrowedBuffer, BufferProvider};
use nearfield_gpu::{GpuBackend, HostBuffer};
use std::{fmt, ptr::NonNull};

/// Lends memory that the GPU can write into.
pub(super) struct Lender<'a>(pub(super) &'a GpuBackend);

impl BufferProvider for Lender<'_> {
    type Error = Trouble;

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Trouble> {
        let buffer = self.0.host_buffer(len)?;
        Ok(Box::new(PageLockedBuffer(buffer)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Trouble> {
        let buffer = self.0.host_buffer(len)?;
        Ok(Box::new(PageLockedBuffer(buffer)))
    }
}

#[derive(Debug)]
struct PageLockedBuffer<T>(HostBuffer<T>);

// SAFETY: the buffer's memory does not move, and is reached through `elements` alone.
unsafe impl<T: Send + Sync + fmt::Debug> BorrowedBuffer<T> for PageLockedBuffer<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.0.place(), self.0.len())
    }
}
