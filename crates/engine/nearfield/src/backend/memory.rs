//! Memory of the host that a device reads and writes.

use nearfield_gpu::HostBuffer;
use std::ops::{Deref, DerefMut};

/// Numbers in memory of the host that a device reaches.
#[derive(Debug)]
pub(crate) enum HostMemory {
    /// Of a driver.
    PageLocked(HostBuffer<f32>),
    /// Of the host, for a device that is emulated.
    Own(Vec<f32>),
}

impl Deref for HostMemory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::PageLocked(memory) => memory,
            Self::Own(memory) => memory,
        }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [f32] {
        match self {
            Self::PageLocked(memory) => memory,
            Self::Own(memory) => memory,
        }
    }
}

impl HostMemory {
    /// The memory, if it is a driver's.
    pub(crate) fn page_locked(self) -> Option<HostBuffer<f32>> {
        match self {
            Self::PageLocked(memory) => Some(memory),
            Self::Own(_) => None,
        }
    }
}
