//! Memory of a GPU that messages are sent from and received into, by its address.
//!
//! A library of messages that knows GPUs reads and writes their memory itself. A transport over
//! such a library takes [`DeviceMemory`] as what is [handed
//! over](super::Transport::hand_over), and its receivers get it [`Announced`]: the message has
//! come, and the transport still needs memory to write to.

use std::{any::Any, fmt};

/// Bytes in the memory of a GPU.
pub struct DeviceMemory {
    address: u64,
    bytes: usize,
    /// Keeps the memory where it is.
    owner: Box<dyn Any + Send>,
}

impl DeviceMemory {
    /// The `bytes` bytes from `address` on.
    ///
    /// # Safety
    /// As long as `owner` lives, the bytes are there, in memory of a GPU that this process has
    /// opened, or of the host. Bytes to be sent have been written, and stay as they are; to bytes
    /// that are received into nothing else is written, and nothing reads them. The context of the
    /// GPU is not destroyed before the library of messages ends, which keeps what it has made
    /// there.
    pub unsafe fn new(address: u64, bytes: usize, owner: Box<dyn Any + Send>) -> Self {
        Self {
            address,
            bytes,
            owner,
        }
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Never gives the memory back, because it may still be read or written.
    pub fn leak(self) {
        std::mem::forget(self.owner);
    }
}

/// Address and length.
impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.address)
    }
}

/// Bytes that come with a message and still need [memory](DeviceMemory) to come to. They are lost
/// if this is dropped.
pub struct Announced {
    bytes: usize,
    by: Box<dyn Any + Send>,
}

impl Announced {
    /// Of this many bytes, with what the transport knows them by.
    pub fn new(bytes: usize, by: Box<dyn Any + Send>) -> Self {
        Self { bytes, by }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The transport knows them by this.
    pub fn by(self) -> Box<dyn Any + Send> {
        self.by
    }
}

/// The number of bytes.
impl fmt::Debug for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Announced({} bytes)", self.bytes)
    }
}
