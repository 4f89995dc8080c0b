//! Arrays of the device that an MPI which knows GPUs reads and writes itself.
//!
//! Their memory is no part of a pool: other processes cannot open memory of a pool, and an MPI then
//! copies it through the host.

use crate::transport::DeviceMemory;
use nearfield::device::{DeviceBuffer, DriverError, Stream};
use std::{any::Any, ops::Range};

/// An array of `len` zeros, or of one, for messages. It is cleared and freed in the order of a
/// stream, which is to be waited for before MPI writes to the array.
pub(super) fn array(stream: &Stream, len: usize) -> Result<DeviceBuffer<u32>, DriverError> {
    stream.alloc_unpooled(len.max(1))
}

/// Some words of an array that `owner` keeps, as messages take them.
///
/// Words to be sent have been waited for, and the array is not changed while it has more than one
/// owner. Words that come are read once they have been received, and nothing on a stream of the
/// device touches the array before.
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
