//! A kernel, and the one place where launches are started.
//!
//! **What the typed functions of this room rely on:** every address handed over is of a live buffer
//! with as many elements as the counts beside it say (the buffers' owners see to it), and every
//! kernel is on the backend's one stream, so it finds what the one before it wrote.

use crate::{error::Error, memory::Queue, program::Module};
use cudarc::driver::{CudaFunction, DeviceRepr, PushKernelArg, sys::CUfunction_attribute};
use nearfield_kernels::constants;

/// Items that a block of a scan takes.
pub(crate) const SCAN_TILE: usize = constants::SCAN_TILE as usize;
/// Cells that one parent kernel goes through.
pub(super) const CHILD_BATCH: usize = 1 << 18;
/// Tiles of a scan of `items`.
pub(crate) fn scan_tiles(items: usize) -> usize {
    items.div_ceil(SCAN_TILE).max(1)
}

/// Blocks of `threads` for `items`, one each at least.
pub(super) fn blocks(items: usize, threads: u32) -> u32 {
    u32::try_from(items.div_ceil(threads as usize).max(1)).unwrap_or(u32::MAX)
}

/// A kernel with its name for messages and traces.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    name: String,
    function: CudaFunction,
}

impl Kernel {
    pub(super) fn of(module: &Module, name: &str) -> Result<Self, Error> {
        let function = module.function(name)?;
        let name = format!("{name} of {}", module.program());
        Ok(Self { name, function })
    }

    /// Asks the driver for so many bytes of shared memory per block, which launches name; false if a
    /// block cannot have them.
    pub(super) fn allow_shared(&self, bytes: u32) -> bool {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.function.set_attribute(attribute, bytes as i32).is_ok()
    }

    /// Starts `blocks` × `threads`; `arguments` push what the kernel declares.
    ///
    /// # Safety
    /// The arguments are those the kernel declares, and the module's promise holds for them.
    pub(super) unsafe fn start(
        &self,
        queue: &Queue,
        shape: (u32, u32),
        arguments: &[&dyn Argument],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.start_staged(queue, shape, 0, arguments) }
    }

    /// As [`start`](Self::start), with `bytes` of shared memory for every block.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn start_staged(
        &self,
        queue: &Queue,
        shape: (u32, u32),
        bytes: u32,
        arguments: &[&dyn Argument],
    ) -> Result<(), Error> {
        let mut launch = queue.launch_builder(&self.function);
        for argument in arguments {
            argument.push(&mut launch);
        }
        // SAFETY: the caller's promise.
        unsafe { queue.launch_staged(&self.name, &mut launch, shape, bytes) }
    }
}

/// Something that a kernel takes.
pub(super) trait Argument {
    fn push<'a>(&'a self, launch: &mut cudarc::driver::LaunchArgs<'a>);
}

impl<T: DeviceRepr> Argument for T {
    fn push<'a>(&'a self, launch: &mut cudarc::driver::LaunchArgs<'a>) {
        launch.arg(self);
    }
}
