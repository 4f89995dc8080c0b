//! Kernels and the arguments of a launch.

use super::{
    array::{DeviceBuffer, DeviceValue, DeviceView, DeviceViewMut},
    stream::{DriverError, Stream},
};
use cudarc::driver::{CudaFunction, DeviceRepr, LaunchArgs, LaunchConfig, PushKernelArg};

/// A kernel of a loaded [`Module`](crate::Module).
#[derive(Debug, Clone)]
pub struct Function(pub(crate) CudaFunction);

/// A struct or number whose bytes are copied to a kernel.
///
/// # Safety
/// The type is `#[repr(C)]` or a number, has no references to the host, and its bytes are a value
/// of the type that the kernel declares.
pub unsafe trait KernelArgument {}

/// A value with the bytes of `T`, as the library below takes it.
#[repr(transparent)]
struct Bytes<T>(T);

// SAFETY: it has the layout of `T`, whose bytes may be copied to a kernel.
unsafe impl<T: KernelArgument> DeviceRepr for Bytes<T> {}

/// A launch of a kernel and its arguments.
#[derive(Debug)]
pub struct Launch<'a>(pub(crate) LaunchArgs<'a>);

impl<'a> Launch<'a> {
    /// Adds an argument: an array, a view, or a [`KernelArgument`].
    #[inline(always)]
    pub fn arg(&mut self, argument: impl LaunchArgument<'a>) -> &mut Self {
        argument.push(&mut self.0);
        self
    }

    /// Starts `blocks` blocks of `threads` threads. A [`UserKernel`](crate::UserKernel) also times
    /// the kernel and names it in errors.
    ///
    /// # Errors
    /// A failed call of the driver.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and it reads and writes nothing but what
    /// they allow.
    pub unsafe fn start(&mut self, blocks: u32, threads: u32) -> Result<(), DriverError> {
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: as the caller promises.
        let started = unsafe { self.0.launch(config) };
        started.map(drop).map_err(DriverError)
    }
}

impl Stream {
    /// A launch of a kernel, to be given its arguments.
    pub fn launch_builder<'a>(&'a self, function: &'a Function) -> Launch<'a> {
        Launch(self.0.launch_builder(&function.0))
    }
}

/// What a launch takes: references to arrays, views, numbers and structs.
pub trait LaunchArgument<'a>: sealed::Push<'a> {}

impl<'a, A: sealed::Push<'a>> LaunchArgument<'a> for A {}

mod sealed {
    use cudarc::driver::LaunchArgs;

    /// Adds itself to the arguments of the library below.
    pub trait Push<'a> {
        fn push(self, launch: &mut LaunchArgs<'a>);
    }
}

impl<'a, 'b: 'a, T: KernelArgument> sealed::Push<'a> for &'b T {
    #[inline(always)]
    fn push(self, launch: &mut LaunchArgs<'a>) {
        // SAFETY: `Bytes` is transparent.
        let bytes: &'b Bytes<T> = unsafe { &*std::ptr::from_ref(self).cast() };
        launch.arg(bytes);
    }
}

impl<'a, 'b: 'a, T: DeviceValue> sealed::Push<'a> for &'b DeviceBuffer<T> {
    #[inline(always)]
    fn push(self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&self.0);
    }
}

impl<'a, 'b: 'a, T: DeviceValue> sealed::Push<'a> for &'b mut DeviceBuffer<T> {
    #[inline(always)]
    fn push(self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&mut self.0);
    }
}

impl<'a, 'b: 'a, 'c: 'b, T: DeviceValue> sealed::Push<'a> for &'b DeviceView<'c, T> {
    #[inline(always)]
    fn push(self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&self.0);
    }
}

impl<'a, 'b: 'a, 'c: 'b, T: DeviceValue> sealed::Push<'a> for &'b mut DeviceViewMut<'c, T> {
    #[inline(always)]
    fn push(self, launch: &mut LaunchArgs<'a>) {
        launch.arg(&mut self.0);
    }
}

macro_rules! numbers {
    ($($number:ty),+) => { $(
        // SAFETY: a number has the same bytes on the host and on the device.
        unsafe impl KernelArgument for $number {}
    )+ };
}

numbers!(i8, u8, i16, u16, i32, u32, i64, u64, usize, isize, f32, f64);
