//! Memory of a GPU that messages are sent from and received into, by address.
//!
//! A CUDA-aware message library reads and writes GPU memory itself. A transport over such a library
//! [hands over](super::Transport::hand_over) [`DeviceMemory`], and its receivers get [`Announced`]:
//! the message has arrived, and the transport still needs memory to write to.

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
    /// While `owner` lives, the bytes are valid memory of a GPU that this process has opened, or of
    /// the host. Bytes to be sent have been written and do not change. Nothing else writes or reads
    /// bytes that are received into. The context of the GPU is not destroyed before the message
    /// library ends, which keeps streams and mappings in it.
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

    /// Never frees the memory, because it may still be read or written.
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

/// Bytes announced by a message, which still need [memory](DeviceMemory) to be received into. They
/// are lost if this is dropped.
pub struct Announced {
    bytes: usize,
    by: Box<dyn Any + Send>,
}

impl Announced {
    /// An announcement of this many bytes, with the transport's own handle.
    pub fn new(bytes: usize, by: Box<dyn Any + Send>) -> Self {
        Self { bytes, by }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The transport's own handle.
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
