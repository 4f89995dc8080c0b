//! Memory of the host that the GPU writes lists into.

use nearfield_cpu::{BorrowedBuffer, BufferProvider};
use nearfield_gpu::{self as gpu, GpuBackend, HostBuffer};
use std::{fmt, ptr::NonNull};

/// Lends memory that the GPU can write into.
pub(crate) struct PageLocked<'a>(pub(super) &'a GpuBackend);

impl BufferProvider for PageLocked<'_> {
    type Error = Received;

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Received> {
        let buffer = self.0.host_buffer(len).map_err(Received::Gpu)?;
        Ok(Box::new(Lent(buffer)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Received> {
        let buffer = self.0.host_buffer(len).map_err(Received::Gpu)?;
        Ok(Box::new(Lent(buffer)))
    }
}

#[derive(Debug)]
struct Lent<T>(HostBuffer<T>);

// SAFETY: the buffer's memory does not move, and is reached through `elements` alone.
unsafe impl<T: Send + Sync + fmt::Debug> BorrowedBuffer<T> for Lent<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.0.place(), self.0.len())
    }
}

/// Why lists did not arrive.
pub(crate) enum Received {
    Gpu(gpu::Error),
    Cpu(nearfield_cpu::Error),
}

impl From<nearfield_cpu::Error> for Received {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Cpu(error)
    }
}
