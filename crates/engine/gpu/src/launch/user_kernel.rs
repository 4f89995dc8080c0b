//! Kernels of a caller's own program: looked up once, and started by one function.
//!
//! Arguments are arrays, views and numbers in a tuple, in the order in which the kernel declares
//! them. A launch notes which arrays it reads and writes, so that streams wait for each other; a
//! trace and messages get the kernel's name.

use super::kernel::LaunchShape;
use crate::{
    error::Error,
    handles::{Function, KernelArguments},
    memory::Queue,
    program::Module,
};
use cudarc::{
    driver::{LaunchConfig, sys::CUfunction_attribute},
    nvrtc::Ptx,
};

/// A kernel of a caller's program, with the queue that it runs on.
///
/// ```no_run
/// use nearfield_gpu::{GpuBackend, LaunchShape, Program, UserKernel};
///
/// # fn add_one() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = GpuBackend::new(0)?;
/// let text = r#"extern "C" __global__ void add_one(float* values, unsigned count) {
///     unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///     if (i < count) values[i] += 1.0f;
/// }"#;
/// let module = backend.load(&Program::new("add_one", text))?;
/// let kernel = UserKernel::of(&module, "add_one", backend.queue())?;
/// let mut values = backend.queue().array("values", &[0.0f32; 1000])?;
/// // SAFETY: the arguments are those that the kernel declares, and it writes `count` values.
/// unsafe { kernel.start(LaunchShape::covering(1000, 256), (&mut values, &1000u32)) }?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct UserKernel {
    /// For messages and traces.
    name: &'static str,
    function: Function,
    /// Has the stream of every launch.
    queue: Queue,
}

impl UserKernel {
    /// Looks up the kernel `name` of a module, to run on `queue`.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`](crate::ErrorKind::NoKernel).
    pub fn of(module: &Module, name: &'static str, queue: &Queue) -> Result<Self, Error> {
        Ok(Self {
            name,
            function: module.function(name)?,
            queue: queue.clone(),
        })
    }

    /// As [`of`](Self::of), from machine code that no [`Program`](crate::Program) made: past the
    /// cache and its checks.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver).
    #[doc(hidden)]
    pub fn of_code(code: Vec<u8>, name: &'static str, queue: &Queue) -> Result<Self, Error> {
        let module = queue.0.context().load_module(Ptx::from_binary(code));
        let function = module.and_then(|module| module.load_function(name));
        let function =
            function.map_err(|error| Error::of_call(format!("loading {name}"), error))?;
        Ok(Self {
            name,
            function: Function(function),
            queue: queue.clone(),
        })
    }

    /// Lets launches ask for up to `bytes` bytes of [shared memory](LaunchShape::with_shared). It
    /// is needed where these and what the kernel declares come to more than 48 KiB.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) with the kernel's name if a block cannot
    /// have as many.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), Error> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let set = i32::try_from(bytes).unwrap_or(i32::MAX);
        let set = self.function.0.set_attribute(attribute, set);
        set.map_err(|error| {
            let name = self.name;
            Error::of_call(
                format!("taking {bytes} bytes of shared memory for {name}"),
                error,
            )
        })
    }

    /// Starts the kernel and returns without waiting for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`](crate::ErrorKind::Driver) with the kernel's name, also if it was not
    /// [allowed](Self::allow_shared) the shared memory of `shape`. A fault of the kernel itself
    /// shows in a later call.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and the kernel reads and writes nothing
    /// but what they and `shape` allow.
    pub unsafe fn start<'a>(
        &'a self,
        shape: LaunchShape,
        arguments: impl KernelArguments<'a>,
    ) -> Result<(), Error> {
        let mut launch = self.queue.0.launch_builder(&self.function.0);
        arguments.push(&mut launch);
        let config = LaunchConfig {
            grid_dim: (shape.blocks, 1, 1),
            block_dim: (shape.threads, 1, 1),
            shared_mem_bytes: shape.shared,
        };
        // SAFETY: the caller guarantees that the arguments fit the kernel.
        unsafe { self.queue.launch(self.name, &mut launch, config) }
    }
}
