//! What the driver knows of an address.

use super::presence::is_present;
use cudarc::driver::sys::{self, CUpointer_attribute as Attribute, CUresult};

/// Whose memory an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Memory that the driver moves between the host and all GPUs.
    Managed,
    /// Memory of a GPU, with its number if the driver tells it.
    Gpu(Option<u32>),
    /// Memory of the host.
    Host,
}

/// Asks the driver about an address; `None` if it does not know it, as without a
/// current context or without a driver.
pub fn memory_at(address: u64) -> Option<MemoryKind> {
    if !is_present() {
        return None;
    }
    let kind = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE)?;
    let managed = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED);
    if managed.is_some_and(|managed| managed & 0xff != 0) {
        return Some(MemoryKind::Managed);
    }
    if kind != sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 {
        return Some(MemoryKind::Host);
    }
    let gpu = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    Some(MemoryKind::Gpu(gpu))
}

fn attribute(address: u64, attribute: Attribute) -> Option<u32> {
    let mut value = 0u64;
    // SAFETY: these attributes are numbers of at most 32 bits, and the library is there.
    let asked = unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, address) };
    (asked == CUresult::CUDA_SUCCESS).then_some(value as u32)
}
