//! Memory of the host that the GPU writes lists into.

use nearfield_cpu::{Lender, LentMemory};
use nearfield_gpu::{self as gpu, GpuBackend, HostBuffer};
use std::{fmt, ptr::NonNull};

/// Lends memory that the GPU can write into.
pub(crate) struct PageLocked<'a>(pub(super) &'a GpuBackend);

impl Lender for PageLocked<'_> {
    type Error = Received;

    fn starts(&self, len: usize) -> Result<Box<dyn LentMemory<u64>>, Received> {
        let buffer = self.0.host_buffer(len).map_err(Received::Gpu)?;
        Ok(Box::new(Lent(buffer)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn LentMemory<u32>>, Received> {
        let buffer = self.0.host_buffer(len).map_err(Received::Gpu)?;
        Ok(Box::new(Lent(buffer)))
    }
}

#[derive(Debug)]
struct Lent<T>(HostBuffer<T>);

// SAFETY: the buffer's memory does not move, and is reached through `place` alone.
unsafe impl<T: Send + Sync + fmt::Debug> LentMemory<T> for Lent<T> {
    fn place(&mut self) -> (NonNull<T>, usize) {
        (self.0.place(), self.0.len())
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
