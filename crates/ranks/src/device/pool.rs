//! The driver's pool of memory of a rank's GPU.
//!
//! A step allocates arrays for halos and for points that have moved. A pool that returns all freed
//! memory at every wait takes longer for these than the rest of an exchange does.

use super::staging::driver;
use crate::error::Refusal;
use nearfield::device::{
    DeviceEngine,
    cudarc::driver::{
        result,
        sys::{self, CUdevice_attribute, CUmemPool_attribute},
    },
};
use std::ffi::c_int;

/// Bytes of freed memory that a device keeps for the next arrays.
const KEPT_BYTES: u64 = 1 << 30;
/// The same as a share of its memory.
const KEPT_SHARE: u64 = 16;

/// Lets the pool of the device keep some freed memory in addition to the memory in use. Called
/// again when more is in use, because the limit of a pool includes that.
pub(super) fn keep_freed_memory(engine: &DeviceEngine) -> Result<(), Refusal> {
    let context = engine.stream().context();
    let has_pools =
        context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    if !has_pools.is_ok_and(|has| has != 0) {
        return Ok(());
    }
    let held = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let in_use = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    let (mut holds, mut used) = (0u64, 0u64);
    // SAFETY: the context has its device, and the attributes are numbers of 64 bits.
    let set = unsafe {
        result::device::get_mem_pool(context.cu_device()).and_then(|pool| {
            result::mem_pool::get_attribute(pool, held, (&raw mut holds).cast())?;
            result::mem_pool::get_attribute(pool, in_use, (&raw mut used).cast())?;
            let kept = KEPT_BYTES.min(engine.device().memory as u64 / KEPT_SHARE);
            if holds >= used + kept {
                return Ok(());
            }
            holds = used + used / 8 + kept;
            result::mem_pool::set_attribute(pool, held, (&raw mut holds).cast())
        })
    };
    set.map_err(|error| driver("keeping freed memory", error))
}

/// Lets other GPUs read the memory of this one; returns false if one of them cannot.
pub(super) fn open_to_peers(engine: &DeviceEngine, gpus: &[u64]) -> Result<bool, Refusal> {
    let failed = |error| driver("opening memory to other GPUs", error);
    let own = engine.stream().context().cu_device();
    for gpu in gpus.iter().map(|gpu| *gpu as c_int) {
        let peer = result::device::get(gpu).map_err(failed)?;
        if peer == own {
            continue;
        }
        let mut can = 0;
        // SAFETY: both are devices of the driver.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&mut can, peer, own) };
        asked.result().map_err(failed)?;
        if can == 0 {
            return Ok(false);
        }
        let access = sys::CUmemAccessDesc {
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: gpu,
            },
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pool is that of a device of the driver, and there is one description.
        let opened = unsafe {
            let pool = result::device::get_mem_pool(own).map_err(failed)?;
            sys::cuMemPoolSetAccess(pool, &access, 1)
        };
        opened.result().map_err(failed)?;
    }
    Ok(true)
}
