//! Arrays of the device that a CUDA-aware MPI reads and writes itself.
//!
//! Their memory is not part of a pool: other processes cannot open memory of a pool, and an MPI
//! would copy it through the host.

use crate::transport::DeviceMemory;
use nearfield::device::{DeviceBuffer, DriverError, Stream};
use std::{any::Any, ops::Range};

/// An array of `len` zeros (at least one) for messages. It is cleared and freed in the order of a
/// stream, which the host must wait for before MPI writes to the array.
pub(super) fn array(stream: &Stream, len: usize) -> Result<DeviceBuffer<u32>, DriverError> {
    stream.alloc_unpooled(len.max(1))
}

/// Some words of an array that `owner` keeps alive, for messages.
///
/// Words to be sent have been waited for, and the array is not changed while it has more than one
/// owner. Words that arrive are read after they have been received, and no stream of the device
/// touches the array before that.
pub(super) fn memory_of(
    array: &DeviceBuffer<u32>,
    stream: &Stream,
    words: Range<usize>,
    owner: impl Any + Send,
) -> DeviceMemory {
    let view = array.slice(words);
    let (address, _held) = view.device_ptr(stream);
    // SAFETY: the view has as many bytes, which its owner keeps. The rest is what this function
    // asks for.
    unsafe { DeviceMemory::new(address, size_of::<u32>() * view.len(), Box::new(owner)) }
}
