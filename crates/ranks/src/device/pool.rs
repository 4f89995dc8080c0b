//! The driver's pool of memory of a rank's GPU.
//!
//! A step allocates arrays for halos and for points that have moved. A pool that returns all freed
//! memory at every wait takes longer for these than the rest of an exchange does.

use super::staging::driver;
use crate::error::Refusal;
use nearfield::device::DeviceEngine;

/// Bytes of freed memory that a device keeps for the next arrays.
const KEPT_BYTES: u64 = 1 << 30;
/// The same as a share of its memory.
const KEPT_SHARE: u64 = 16;

/// Lets the pool of the device keep some freed memory in addition to the memory in use. Called
/// again when more is in use, because the limit of a pool includes that.
pub(super) fn keep_freed_memory(engine: &DeviceEngine) -> Result<(), Refusal> {
    let kept = KEPT_BYTES.min(engine.device().memory as u64 / KEPT_SHARE);
    let set = engine.stream().context().keep_freed_memory(kept);
    set.map_err(|error| driver("keeping freed memory", error))
}

/// Lets other GPUs read the memory of this one; returns false if one of them cannot.
pub(super) fn open_to_peers(engine: &DeviceEngine, gpus: &[u64]) -> Result<bool, Refusal> {
    let opened = engine.stream().context().open_memory_to(gpus);
    opened.map_err(|error| driver("opening memory to other GPUs", error))
}
