//! Kernels and the arguments of a launch.

use super::array::{DeviceBuffer, DeviceValue, DeviceView, DeviceViewMut};
use cudarc::driver::{CudaFunction, DeviceRepr, LaunchArgs, PushKernelArg};

/// A kernel of a loaded [`Module`](crate::Module).
#[derive(Debug, Clone)]
pub(crate) struct Function(pub(crate) CudaFunction);

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

/// A tuple of 1 to 13 arguments of a kernel: references to arrays, views, numbers and structs.
///
/// Arrays and views that the kernel writes are borrowed mutably. Numbers and structs are
/// [`KernelArgument`]s, whose bytes are copied when the kernel is started, so they may change or go
/// afterwards. A kernel with more arguments takes a struct.
pub trait KernelArguments<'a>: sealed::Push<'a> {}

mod sealed {
    use cudarc::driver::LaunchArgs;

    /// Adds itself to the arguments of the library below.
    pub trait Push<'a> {
        fn push(self, launch: &mut LaunchArgs<'a>);
    }
}

macro_rules! tuples {
    () => {};
    ($first:ident $($kind:ident)*) => {
        impl<'a, $first: sealed::Push<'a>, $($kind: sealed::Push<'a>),*> sealed::Push<'a>
            for ($first, $($kind,)*)
        {
            #[inline(always)]
            #[allow(non_snake_case, reason = "values are named like their types")]
            fn push(self, launch: &mut LaunchArgs<'a>) {
                let ($first, $($kind,)*) = self;
                $first.push(launch);
                $($kind.push(launch);)*
            }
        }

        impl<'a, $first: sealed::Push<'a>, $($kind: sealed::Push<'a>),*> KernelArguments<'a>
            for ($first, $($kind,)*)
        {
        }
        tuples!($($kind)*);
    };
}
tuples!(A B C D E F G H I J K L M);

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
