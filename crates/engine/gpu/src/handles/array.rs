//! Arrays of a GPU, and views of them.

use super::stream::Stream;
use cudarc::driver::{
    CudaSlice, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop,
};
use nearfield_grid::Precision;
use std::{fmt, ops::RangeBounds};

/// A number, or an array of numbers, that arrays of a GPU hold.
pub trait DeviceValue: sealed::Element {}

mod sealed {
    use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

    /// What the library below asks of elements.
    pub trait Element: DeviceRepr + ValidAsZeroBits + Copy + 'static {}
}

impl<T: DeviceValue, const N: usize> sealed::Element for [T; N] {}
impl<T: DeviceValue, const N: usize> DeviceValue for [T; N] {}

macro_rules! elements {
    ($($number:ty),+) => { $(
        impl sealed::Element for $number {}
        impl DeviceValue for $number {}
    )+ };
}

elements!(i8, u8, i16, u16, i32, u32, i64, u64, usize, isize, f32, f64);

/// Numbers that positions are made of: `f32` and `f64`.
///
/// An engine has one precision and takes positions in it. Positions are converted by nobody but
/// their owner: rounding in silence would change results near the radius.
pub trait PositionNumber: DeviceValue {
    /// The precision of an engine that takes them.
    const PRECISION: Precision;
}

impl PositionNumber for f32 {
    const PRECISION: Precision = Precision::Single;
}

impl PositionNumber for f64 {
    const PRECISION: Precision = Precision::Double;
}

/// An array of a GPU. It is freed in the order of the stream that it was made on.
#[derive(Debug)]
pub struct DeviceBuffer<T>(pub(crate) CudaSlice<T>);

/// A part of an array, to be read.
#[derive(Debug)]
pub struct DeviceView<'a, T>(pub(crate) CudaView<'a, T>);

/// A part of an array, to be written.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T>(pub(crate) CudaViewMut<'a, T>);

/// An address in use by a stream. Keep it until the work that uses the address was put on the
/// stream.
#[must_use]
pub struct InUse<'a>(#[expect(dead_code, reason = "dropping it ends the use")] SyncOnDrop<'a>);

/// An array or a view that can be read.
pub trait DeviceArray<T> {
    /// All of it.
    fn view(&self) -> DeviceView<'_, T>;

    /// The address, for work on `stream` that reads what is there.
    fn device_ptr<'a>(&'a self, stream: &'a Stream) -> (u64, InUse<'a>);
}

/// An array or a view that can be written.
pub trait DeviceArrayMut<T>: DeviceArray<T> {
    /// All of it.
    fn view_mut(&mut self) -> DeviceViewMut<'_, T>;
}

macro_rules! arrays {
    ($($kind:ty),+) => { $(
        impl<T> $kind {
            /// Number of elements.
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Returns true if there is no element.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// All of it, to be read.
            pub fn as_view(&self) -> DeviceView<'_, T> {
                DeviceView(self.0.slice(..))
            }

            /// The number of its GPU.
            pub fn ordinal(&self) -> usize {
                self.0.stream().context().ordinal()
            }

            /// The address, for work on `stream` that reads what is there: the stream waits for
            /// work on other streams that writes it.
            pub fn device_ptr<'a>(&'a self, stream: &'a Stream) -> (u64, InUse<'a>) {
                let (address, held) = self.0.device_ptr(&stream.0);
                (address, InUse(held))
            }
        }

        impl<T> DeviceArray<T> for $kind {
            fn view(&self) -> DeviceView<'_, T> {
                self.as_view()
            }

            fn device_ptr<'a>(&'a self, stream: &'a Stream) -> (u64, InUse<'a>) {
                self.device_ptr(stream)
            }
        }
    )+ };
}

arrays!(DeviceBuffer<T>, DeviceView<'_, T>, DeviceViewMut<'_, T>);

impl<T> DeviceArrayMut<T> for DeviceBuffer<T> {
    fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.as_view_mut()
    }
}

impl<T> DeviceArrayMut<T> for DeviceViewMut<'_, T> {
    fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.slice_mut(..)
    }
}

impl<T> DeviceBuffer<T> {
    /// An array of `len` elements at an address that the driver has allocated.
    ///
    /// # Safety
    /// The memory has as many elements on the stream's GPU, and nothing else frees it.
    pub unsafe fn from_raw(stream: &Stream, address: u64, len: usize) -> Self {
        // SAFETY: as the caller promises.
        Self(unsafe { stream.0.upgrade_device_ptr(address, len) })
    }

    /// Gives the array up without freeing it, and returns its address.
    pub fn into_raw(self) -> u64 {
        self.0.leak()
    }

    /// The stream that it was made on and is freed on.
    pub fn stream(&self) -> Stream {
        Stream(self.0.stream().clone())
    }

    /// All of it, to be written.
    pub fn as_view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut(self.0.as_view_mut())
    }

    /// Some elements, to be read.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> DeviceView<'_, T> {
        DeviceView(self.0.slice(range))
    }

    /// Some elements, to be read; `None` if there are no such elements.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<DeviceView<'_, T>> {
        self.0.try_slice(range).map(DeviceView)
    }

    /// Some elements, to be written.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceViewMut<'_, T> {
        DeviceViewMut(self.0.slice_mut(range))
    }

    /// Some elements, to be written; `None` if there are no such elements.
    pub fn try_slice_mut(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> Option<DeviceViewMut<'_, T>> {
        self.0.try_slice_mut(range).map(DeviceViewMut)
    }

    /// The elements before `middle` and those from there on, to be written.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn split_at_mut(&mut self, middle: usize) -> (DeviceViewMut<'_, T>, DeviceViewMut<'_, T>) {
        let (before, behind) = self.0.split_at_mut(middle);
        (DeviceViewMut(before), DeviceViewMut(behind))
    }

    /// The bytes as `len` elements of another type; `None` if there are fewer bytes.
    ///
    /// # Safety
    /// The bytes are values of that type.
    pub unsafe fn transmute<S>(&self, len: usize) -> Option<DeviceView<'_, S>> {
        // SAFETY: as the caller promises.
        unsafe { self.0.transmute(len) }.map(DeviceView)
    }
}

impl<'a, T: PositionNumber> DeviceView<'a, T> {
    /// The words of four bytes of all numbers, by which positions of either precision are copied.
    pub(crate) fn words(&self) -> Option<DeviceView<'a, f32>> {
        let words = size_of::<T>() / size_of::<f32>() * self.len();
        // SAFETY: any four bytes are an `f32`.
        unsafe { self.0.transmute(words) }.map(DeviceView)
    }
}

impl<'a, T> DeviceView<'a, T> {
    /// Some elements.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// Some elements; `None` if there are no such elements.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        self.0.try_slice(range).map(Self)
    }

    /// The elements before `middle` and those from there on.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn split_at(&self, middle: usize) -> (Self, Self) {
        let (before, behind) = self.0.split_at(middle);
        (Self(before), Self(behind))
    }
}

impl<T> DeviceViewMut<'_, T> {
    /// Some elements, to be read.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> DeviceView<'_, T> {
        DeviceView(self.0.slice(range))
    }

    /// Some elements, to be written.
    ///
    /// # Panics
    /// If there are no such elements.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceViewMut<'_, T> {
        DeviceViewMut(self.0.slice_mut(range))
    }
}

macro_rules! written {
    ($($kind:ty),+) => { $(
        impl<T> $kind {
            /// The address, for work on `stream` that writes there: the stream waits for work on
            /// other streams that uses it.
            pub fn device_ptr_mut<'a>(&'a mut self, stream: &'a Stream) -> (u64, InUse<'a>) {
                let (address, held) = self.0.device_ptr_mut(&stream.0);
                (address, InUse(held))
            }
        }
    )+ };
}

written!(DeviceBuffer<T>, DeviceViewMut<'_, T>);

impl fmt::Debug for InUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InUse").finish_non_exhaustive()
    }
}
