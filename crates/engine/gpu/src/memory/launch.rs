//! Kernels that begin while the one before them on the stream ends.
//!
//! Between two kernels a device waits for the last blocks of the first, and then starts the blocks
//! of the second, which takes a few microseconds: as long as some kernels of a sort. Devices since
//! compute capability 9.0 can start blocks earlier (*programmatic dependent launch*), as soon as
//! all blocks of the kernel in front have begun and where it leaves room. Such a kernel has to wait
//! for the one in front itself before it reads or writes memory, by the instruction
//! `griddepcontrol.wait`. It then has waited for all before, too, because the one in front ends
//! only after its own wait. A copy in between, an event or a kernel that is started in the usual
//! way waits for everything before it, as ever.
//!
//! Blocks that wait take places that the kernel in front has left, so they hold nothing up: they
//! are started only when none of its blocks is left to start.

use super::{queue::Queue, timeline::Work};
use crate::error::Error;
use cudarc::driver::{
    CudaFunction,
    sys::{
        CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
        cuLaunchKernelEx,
    },
};
use std::{ffi::c_void, ptr};

/// Blocks of a launch and threads of a block, both along one dimension, and when they begin.
///
/// The arguments of a kernel are not part of it: their addresses are handed over apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Number of blocks, 1 at least.
    pub(crate) blocks: u32,
    /// Threads of each block, at most what the kernel is compiled for.
    pub(crate) threads: u32,
    /// Bytes of shared memory of each block, beside what the kernel declares; more than 48 KiB in
    /// all is refused by the driver unless it has been asked.
    pub(crate) shared: u32,
    /// Blocks may take their places on the device before the kernel in front has ended, and wait
    /// there: its last blocks run meanwhile, and no time passes between the two.
    pub(crate) overlaps: bool,
}

impl Queue {
    /// Starts a kernel as `launch` describes it; messages and traces call it `name`. `arguments`
    /// are the addresses of what the kernel takes, which is copied.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] naming the kernel.
    ///
    /// # Safety
    /// As [`launch`](Self::launch). A kernel that overlaps begins with `await_kernels_before`.
    pub(crate) unsafe fn start(
        &self,
        name: &str,
        function: &CudaFunction,
        launch: &Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let mut overlap = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: Default::default(),
            value: CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            },
        };
        let config = CUlaunchConfig {
            gridDimX: launch.blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: launch.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared,
            hStream: self.0.cu_stream(),
            attrs: &raw mut overlap,
            numAttrs: u32::from(launch.overlaps),
        };
        let (function, arguments) = (function.cu_function(), arguments.as_mut_ptr());
        let start = || {
            self.0.context().bind_to_thread()?;
            // SAFETY: the arguments are those that the kernel declares, says the caller, and the
            // function lives.
            unsafe { cuLaunchKernelEx(&raw const config, function, arguments, ptr::null_mut()) }
                .result()
        };
        self.timed(|| Work::Kernel(name.to_owned()), start)
            .map_err(|error| Error::of_call(format!("starting kernel {name}"), error))
    }
}
