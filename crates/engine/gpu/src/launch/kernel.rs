//! One kernel with its name, and the one place where launches are started.
//!
//! [`Kernel::start`] pushes the arguments one by one and hands the launch to the [`Queue`], which
//! times it while a trace is recorded. A launch copies its arguments, so they may be temporaries of
//! the caller; only the memory behind addresses has to stay.
//!
//! # The promise of this room
//!
//! A kernel trusts its arguments: it checks neither their number and types nor the lengths of the
//! arrays. The typed functions beside this module are the only callers of [`Kernel::start`], and
//! each passes what its kernel declares. They rely on three facts, which the rooms above see to:
//!
//! 1. **Lengths.** Every address is that of a live buffer of the backend with at least as many
//!    elements as the counts beside it say. Buffers are reserved by those counts right before, and
//!    are never shortened.
//! 2. **Order.** A launch is on the backend's stream, as are the launches and copies that write
//!    what it reads. Work on a stream runs in the order in which it was started: a kernel that
//!    overlaps waits for the one before it before it reads or writes anything. Streams beside it
//!    are joined by events.
//! 3. **Indices.** Kernels write by the indices in a sorted set. `grid_settle` leaves a permutation
//!    of the set's own indices there even if the sort fails, so no index is out of range.
//!
//! `SAFETY` comments of the functions name the argument that is particular to them.

use crate::constants;
use crate::{
    error::Error,
    handles::Function,
    memory::{Launch, Queue},
    program::Module,
    version::Arch,
};
use cudarc::driver::{
    DeviceRepr, DriverError,
    sys::{CUfunction_attribute, CUresult},
};
use std::{ffi::c_void, ptr};

/// The first architecture that starts blocks of a kernel while the one before it ends.
const OVERLAPPING: Arch = Arch::new(90);

/// Items that a block of a scan takes. Arrays that are scanned are padded to whole tiles.
pub(crate) const SCAN_TILE: usize = constants::SCAN_TILE as usize;
/// Cells that one launch of a parent kernel goes through. It bounds the number of grids that wait
/// to run: a parent ends after its children, and the next batch begins after that.
pub(super) const CHILD_BATCH: usize = 1 << 18;

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// Tiles of a scan of `items`, 1 at least.
pub(crate) fn scan_tiles(items: usize) -> usize {
    items.div_ceil(SCAN_TILE).max(1)
}

/// Blocks of a launch and threads of a block, both along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Number of blocks, 1 at least.
    pub(super) blocks: u32,
    /// Threads of each block, at most what the kernel is compiled for.
    pub(super) threads: u32,
    /// Bytes of shared memory of each block, beside what the kernel declares.
    pub(super) shared: u32,
}

impl LaunchShape {
    /// Blocks of `threads` threads, without further shared memory.
    pub fn of(blocks: u32, threads: u32) -> Self {
        Self {
            blocks,
            threads,
            shared: 0,
        }
    }

    /// The same with `bytes` bytes of shared memory for each block, beside what the kernel
    /// declares: its `extern __shared__` array. For more than 48 KiB in all see
    /// [`UserKernel::allow_shared`](crate::UserKernel::allow_shared).
    pub fn with_shared(self, bytes: u32) -> Self {
        let shared = bytes;
        Self { shared, ..self }
    }

    /// One thread for each of `items`, in as few blocks of `threads` as hold them. Without items it
    /// is one block, because a launch of none is an error.
    pub fn covering(items: usize, threads: u32) -> Self {
        let blocks = items.div_ceil(threads.max(1) as usize).max(1);
        Self::of(u32::try_from(blocks).unwrap_or(u32::MAX), threads)
    }
}

/// One thread for each of `items`, in blocks of the size that most kernels have.
pub(super) fn one_each(items: usize) -> LaunchShape {
    LaunchShape::covering(items, constants::GRID_THREADS)
}

/// A kernel of a loaded module, with its name for messages and traces.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// As `grid_scan of grid`: the function and its program.
    name: String,
    function: Function,
    /// See [`Launch`].
    overlaps: bool,
}

/// Maximum number of arguments of a kernel. Their addresses are collected on the stack, so that a
/// launch allocates nothing.
const MAX_ARGUMENTS: usize = 16;

impl Kernel {
    /// Looks up the kernel `name` of a module.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub(super) fn of(module: &Module, name: &str) -> Result<Self, Error> {
        let function = module.function(name)?;
        let name = format!("{name} of {}", module.program());
        Ok(Self {
            name,
            function,
            overlaps: false,
        })
    }

    /// As [`of`](Self::of), of a kernel that begins with `await_kernels_before`: its blocks take
    /// their places while the kernel before it ends, where the device can do that.
    ///
    /// A test of nearfield-kernels makes sure that all kernels of grid.cu and flat.cu, and
    /// `gather_fields`, begin so. No others may be looked up here.
    ///
    /// # Errors
    /// As there.
    pub(super) fn overlapping(module: &Module, name: &str) -> Result<Self, Error> {
        let overlaps = module.arch() >= OVERLAPPING;
        Ok(Self {
            overlaps,
            ..Self::of(module, name)?
        })
    }

    /// Asks the driver for this number of bytes of shared memory per block, which launches name;
    /// false if a block cannot have them.
    pub(super) fn allow_shared(&self, bytes: u32) -> bool {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.function
            .0
            .set_attribute(attribute, bytes as i32)
            .is_ok()
    }

    /// Starts the kernel on the queue's stream and returns without waiting for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) with the kernel's name. A fault of the
    /// kernel itself shows in a later call.
    ///
    /// # Safety
    /// `arguments` are as many as the kernel declares, in its order and of its types, and addresses
    /// among them fulfil the promise in the module's documentation.
    pub(super) unsafe fn start(
        &self,
        queue: &Queue,
        shape: LaunchShape,
        arguments: &[&dyn Argument],
    ) -> Result<(), Error> {
        let LaunchShape {
            blocks,
            threads,
            shared,
        } = shape;
        let launch = Launch {
            blocks,
            threads,
            shared,
            overlaps: self.overlaps,
        };
        let mut addresses = [ptr::null_mut(); MAX_ARGUMENTS];
        let Some(addresses) = addresses.get_mut(..arguments.len()) else {
            return Err(Error::of_call(
                format!("starting kernel {}", self.name),
                DriverError(CUresult::CUDA_ERROR_INVALID_VALUE),
            ));
        };
        for (address, argument) in addresses.iter_mut().zip(arguments) {
            *address = argument.address();
        }
        // SAFETY: the caller passes what the kernel declares, over memory that the kernel may use.
        unsafe { queue.start(&self.name, &self.function.0, &launch, addresses) }
    }
}

/// A value that a kernel takes: a number, an address, or a struct of `layout`.
pub(super) trait Argument {
    /// Where the value is; a launch reads it there.
    fn address(&self) -> *mut c_void;
}

impl<T: DeviceRepr> Argument for T {
    fn address(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }
}
