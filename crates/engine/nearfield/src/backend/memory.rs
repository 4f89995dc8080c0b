//! Memory of the host that a device reads and writes.
//!
//! A GPU copies to and from page-locked memory at the full speed of the bus and while other work
//! goes on. Locking pages takes about as long as sorting the points, so such memory is reused: an
//! engine keeps the copy of a set until the next positions, and gives results back when they are
//! merged.
//!
//! **Invariant:** memory that a device may still be reading or writing is not handed out again
//! before the device has been waited for.

use super::gpu::PageLocked;
use std::ops::{Deref, DerefMut};

/// Numbers in memory of the host that a device reaches.
///
/// It may be longer than what was asked for: callers cut it to the length they use.
#[derive(Debug)]
pub(crate) enum HostMemory {
    /// Page-locked by a driver.
    PageLocked(PageLocked),
    /// Ordinary memory, for an emulated device.
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
