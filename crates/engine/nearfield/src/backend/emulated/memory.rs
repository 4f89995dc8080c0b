//! Memory of the host that the emulated device lends, as a GPU lends page-locked memory.

use crate::{Error, backend::DeviceError};
use nearfield_cpu::{BorrowedBuffer, BufferProvider};
use nearfield_grid::memory::zeroed;
use std::ptr::NonNull;

/// Memory that the device copies lists into.
#[derive(Debug)]
struct OwnMemory<T>(Vec<T>);

// SAFETY: the Vec is never changed, so its elements stay where they are, and it is reached through
// `elements` alone.
unsafe impl<T: Send + Sync + std::fmt::Debug> BorrowedBuffer<T> for OwnMemory<T> {
    fn elements(&mut self) -> NonNull<[T]> {
        NonNull::from(self.0.as_mut_slice())
    }
}

/// Lends memory as a GPU does.
pub(super) struct OwnLender;

impl From<nearfield_cpu::Error> for DeviceError {
    fn from(error: nearfield_cpu::Error) -> Self {
        Self::Host(error.into())
    }
}

impl BufferProvider for OwnLender {
    type Error = DeviceError;

    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, DeviceError> {
        let memory = zeroed(len, "list starts").map_err(Error::from)?;
        Ok(Box::new(OwnMemory(memory)))
    }

    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, DeviceError> {
        let memory = zeroed(len, "neighbour lists").map_err(Error::from)?;
        Ok(Box::new(OwnMemory(memory)))
    }
}
