//! Contexts, and the one that is current on a thread.

use super::{
    presence::is_present,
    stream::{DriverError, Stream},
};
use cudarc::driver::{
    CudaContext, result,
    sys::{self, CUcontext, CUdevice_attribute, CUmemPool_attribute},
};
use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
};

/// The primary context of a GPU. Clones are the same context; it lives as long as its last clone
/// and everything made in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context(pub(crate) Arc<CudaContext>);

impl Context {
    /// The number of the GPU.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal()
    }

    /// The driver's `CUcontext`.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.cu_ctx().cast()
    }

    /// A new stream.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn new_stream(&self) -> Result<Stream, DriverError> {
        self.0.new_stream().map(Stream).map_err(DriverError)
    }

    /// A new stream of the highest priority: its blocks start before those of other streams.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn new_urgent_stream(&self) -> Result<Stream, DriverError> {
        self.0.bind_to_thread().map_err(DriverError)?;
        let (_, highest) = result::stream::get_priority_range().map_err(DriverError)?;
        let stream = self.0.new_stream_with_priority(highest);
        stream.map(Stream).map_err(DriverError)
    }

    /// The default stream.
    pub fn default_stream(&self) -> Stream {
        Stream(self.0.default_stream())
    }

    /// A stream that another library owns, a `CUstream`; null is the default stream.
    ///
    /// # Safety
    /// `stream` is null or a stream of this context, and exists for as long as what is returned.
    pub unsafe fn borrow_stream(&self, stream: *mut c_void) -> Stream {
        // SAFETY: as the caller promises.
        Stream(unsafe { self.0.wrap_borrowed_stream(stream.cast()) })
    }

    /// Makes this the current context of the calling thread.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn bind_to_thread(&self) -> Result<(), DriverError> {
        self.0.bind_to_thread().map_err(DriverError)
    }

    /// Makes this the current context of the calling thread unless it is already, without the
    /// bookkeeping of [`bind_to_thread`](Self::bind_to_thread): for calls of other libraries.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn make_current(&self) -> Result<(), DriverError> {
        let own = self.0.cu_ctx();
        if result::ctx::get_current() == Ok(Some(own)) {
            return Ok(());
        }
        // SAFETY: the context is alive.
        unsafe { result::ctx::set_current(own) }.map_err(DriverError)
    }

    /// Waits for everything that was started in the context.
    ///
    /// # Errors
    /// A failed call of the driver, or a failure of the work that is waited for.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.0.synchronize().map_err(DriverError)
    }

    /// Bytes of the GPU's memory that are free, and all of them.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn memory(&self) -> Result<[usize; 2], DriverError> {
        self.0.bind_to_thread().map_err(DriverError)?;
        let (free, all) = result::mem_get_info().map_err(DriverError)?;
        Ok([free, all])
    }

    /// Lets the GPU's pool keep this many bytes of freed memory, beside what is in use now. A pool
    /// that gives all back at every wait takes longer to make arrays than many kernels run. What a
    /// pool may hold counts what is in use, so call this again when that has grown. Does nothing if
    /// the GPU has no pools.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn keep_freed_memory(&self, kept: u64) -> Result<(), DriverError> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        if !self.0.attribute(attribute).is_ok_and(|has| has != 0) {
            return Ok(());
        }
        let held = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let in_use = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        let (mut holds, mut used) = (0u64, 0u64);
        // SAFETY: the context has its device, and the attributes are numbers of 64 bits.
        let set = unsafe {
            result::device::get_mem_pool(self.0.cu_device()).and_then(|pool| {
                result::mem_pool::get_attribute(pool, held, (&raw mut holds).cast())?;
                result::mem_pool::get_attribute(pool, in_use, (&raw mut used).cast())?;
                if holds >= used + kept {
                    return Ok(());
                }
                holds = used + used / 8 + kept;
                result::mem_pool::set_attribute(pool, held, (&raw mut holds).cast())
            })
        };
        set.map_err(DriverError)
    }

    /// Lets other GPUs read the memory of this one; returns false if one of them cannot.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn open_memory_to(&self, gpus: &[u64]) -> Result<bool, DriverError> {
        let own = self.0.cu_device();
        for gpu in gpus.iter().map(|gpu| *gpu as c_int) {
            let peer = result::device::get(gpu).map_err(DriverError)?;
            if peer == own {
                continue;
            }
            let mut can = 0;
            // SAFETY: both are devices of the driver.
            let asked = unsafe { sys::cuDeviceCanAccessPeer(&mut can, peer, own) };
            asked.result().map_err(DriverError)?;
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
                let pool = result::device::get_mem_pool(own).map_err(DriverError)?;
                sys::cuMemPoolSetAccess(pool, &access, 1)
            };
            opened.result().map_err(DriverError)?;
        }
        Ok(true)
    }
}

impl Stream {
    /// Its context.
    pub fn context(&self) -> Context {
        Context(self.0.context().clone())
    }
}

/// Keeps a context current on this thread; when dropped, the one before is current again. To other
/// libraries the current context says which GPU is chosen.
#[derive(Debug)]
pub struct CurrentContext {
    before: Option<CUcontext>,
}

impl CurrentContext {
    /// Makes `context` current. If the driver refuses, so does the call that it is for.
    pub fn enter(context: &Context) -> Self {
        let before = Self::now();
        let own = context.0.cu_ctx();
        if before == own {
            return Self { before: None };
        }
        // SAFETY: the context lives as long as the object that holds it.
        let _ = unsafe { result::ctx::set_current(own) };
        Self {
            before: Some(before),
        }
    }

    /// Changes nothing now, and makes the present context current again when dropped: for calls
    /// that change it. Works without a driver too.
    pub fn keep() -> Self {
        Self {
            before: is_present().then(Self::now),
        }
    }

    fn now() -> CUcontext {
        let current = result::ctx::get_current().ok().flatten();
        current.unwrap_or(ptr::null_mut())
    }
}

impl Drop for CurrentContext {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: null, or current before; the driver refuses one that was destroyed since.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}
