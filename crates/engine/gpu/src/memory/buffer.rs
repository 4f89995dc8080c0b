//! Device memory that is kept between steps and grows when it must.
//!
//! A buffer grows to an eighth more than was asked for, so a growing set does not allocate every
//! step. If that does not fit, it asks for the exact length. A buffer that cannot grow keeps the
//! memory it has: after an out-of-memory error its address and its capacity are what they were.
//!
//! New memory is uninitialised. Every element is written by a kernel or a copy before it is read;
//! tests fill new memory with ones to show violations.
//!
//! Memory is taken and given back in the order of the stream that a buffer is reserved on, where
//! the device has memory pools, so no kernel under way loses its array. Growing does not copy:
//! contents are lost, because every buffer is filled anew in each step.
//!
//! A buffer has a name for messages. Out of memory is an error with that name and the bytes needed,
//! and the buffer stays usable at its old size.

use super::queue::{HostCopy, Queue};
use crate::{
    error::{Error, ErrorKind},
    handles::{DeviceValue, Stream},
};
use cudarc::driver::{
    CudaSlice, CudaView, DevicePtr, DeviceRepr, result,
    sys::{CUdeviceptr, CUresult},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether new arrays are filled with ones, which are neither an index nor a number.
static POISONED: AtomicBool = AtomicBool::new(false);

/// For tests: from now on new device memory holds ones, so that what is read before it was written
/// shows.
#[doc(hidden)]
pub fn poison_new_memory() {
    POISONED.store(true, Ordering::Relaxed);
}

/// An array on the device; its contents are lost when it grows.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    /// Name in messages.
    what: &'static str,
    /// None before the first reservation, and after a release.
    slice: Option<CudaSlice<T>>,
}

/// Declares a struct of buffers that are kept between steps.
///
/// Every buffer has the name that messages call it by, in the place of a default. Fields in the
/// block `with` begin with the default of their type. A new struct holds no memory; `held` is the
/// number of bytes that its buffers hold on the device.
macro_rules! kept_buffers {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$doc:meta])* $scope:vis $buffer:ident: $element:ty = $what:literal, )+
        }
        $( with { $( $(#[$more:meta])* $field_scope:vis $field:ident: $kind:ty, )+ } )?
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        $vis struct $name {
            $( $(#[$doc])* $scope $buffer: $crate::memory::Buffer<$element>, )+
            $( $( $(#[$more])* $field_scope $field: $kind, )+ )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $buffer: $crate::memory::Buffer::new($what), )+
                    $( $( $field: Default::default(), )+ )?
                }
            }
        }

        impl $name {
            /// Bytes that the buffers hold on the device.
            pub(super) fn held(&self) -> usize {
                [$( self.$buffer.bytes(), )+].into_iter().sum()
            }
        }
    };
}
pub(crate) use kept_buffers;

impl<T: DeviceRepr> Buffer<T> {
    /// Nothing yet. Messages call it `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, slice: None }
    }

    /// Elements there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.slice.as_ref().map_or(0, CudaSlice::len)
    }

    /// Gives the array back.
    pub(crate) fn release(&mut self) {
        self.slice = None;
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }

    /// Makes room for `len` elements; true when the array is new, its contents unspecified.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`]; the array is then the old one.
    pub(crate) fn reserve(&mut self, stream: &Stream, len: usize) -> Result<bool, Error> {
        if len <= self.capacity() && self.slice.is_some() {
            return Ok(false);
        }
        // An eighth more, so that a growing set does not make a new array every step.
        let wanted = match &self.slice {
            None => len.max(1),
            Some(_) => len.saturating_add(len / 8),
        };
        let slice = match self.allocate(stream, wanted) {
            Err(error) if error.is_out_of_memory() && wanted > len.max(1) => {
                self.allocate(stream, len)?
            }
            allocated => allocated?,
        };
        self.slice = Some(slice);
        Ok(true)
    }

    /// As [`reserve`](Self::reserve), where the elements of a new array are zero.
    pub(crate) fn reserve_zeroed(&mut self, stream: &Stream, len: usize) -> Result<(), Error>
    where
        T: cudarc::driver::ValidAsZeroBits,
    {
        if self.reserve(stream, len)? {
            let cleared = self.zero(stream, 0..self.capacity());
            if cleared.is_err() {
                // The next call is to clear a new array, not to find this one.
                self.release();
            }
            return cleared;
        }
        Ok(())
    }

    /// A new array of exactly `len` elements.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] with the bytes, also if there are more than an address space has.
    fn allocate(&self, stream: &Stream, len: usize) -> Result<CudaSlice<T>, Error> {
        let out_of_memory = || {
            Error::from(ErrorKind::OutOfMemory {
                bytes: len.saturating_mul(size_of::<T>()),
                what: self.what.to_owned(),
            })
        };
        if len.checked_mul(size_of::<T>()).is_none() {
            return Err(out_of_memory());
        }
        // SAFETY: every element is written by a kernel or a copy before anything reads it.
        let slice = unsafe { stream.0.alloc::<T>(len) }.map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(),
            _ => Error::of_call(format!("allocating {}", self.what), error),
        })?;
        if POISONED.load(Ordering::Relaxed) {
            self.set_all_bits(stream, &slice)?;
        }
        Ok(slice)
    }

    /// Address of the array, 0 before the first [`reserve`](Self::reserve).
    pub(crate) fn address(&self) -> CUdeviceptr {
        let Some(slice) = &self.slice else { return 0 };
        let (address, _held) = slice.device_ptr(slice.stream());
        address
    }

    /// Starts to set the elements `range` to zero bytes. Does nothing if the array does not have
    /// all of them.
    pub(crate) fn zero(
        &mut self,
        stream: &Stream,
        range: std::ops::Range<usize>,
    ) -> Result<(), Error>
    where
        T: cudarc::driver::ValidAsZeroBits,
    {
        let what = self.what;
        let Some(mut view) = self
            .slice
            .as_mut()
            .and_then(|slice| slice.try_slice_mut(range))
        else {
            return Ok(());
        };
        match view.len() {
            0 => Ok(()),
            _ => stream
                .0
                .memset_zeros(&mut view)
                .map_err(|error| Error::of_call(format!("clearing {what}"), error)),
        }
    }

    /// Starts to set all bits of the array, which makes every `u32` the index `NONE`. Does nothing
    /// before there is an array.
    pub(crate) fn fill_ones(&mut self, stream: &Stream) -> Result<(), Error> {
        match &self.slice {
            Some(slice) => self.set_all_bits(stream, slice),
            None => Ok(()),
        }
    }

    /// Starts to set all bits of an array.
    fn set_all_bits(&self, stream: &Stream, slice: &CudaSlice<T>) -> Result<(), Error> {
        let (address, _held) = slice.device_ptr(slice.stream());
        // SAFETY: the array has as many bytes, and the stream orders this with its other uses.
        unsafe {
            result::memset_d8_async(address, u8::MAX, slice.num_bytes(), stream.0.cu_stream())
        }
        .map_err(|error| Error::of_call(format!("clearing {}", self.what), error))
    }

    /// Starts to copy `values` from the host to the front, making room for them.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub(crate) fn upload(&mut self, stream: &Queue, values: &[T]) -> Result<(), Error> {
        self.reserve(stream, values.len())?;
        self.upload_at(stream, 0, values)
    }

    /// Starts to copy `values` to where there is room for them, from element `first` on. Values in
    /// memory that is not page-locked may be changed when this returns.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] if the array ends before them.
    pub(crate) fn upload_at(
        &mut self,
        queue: &Queue,
        first: usize,
        values: &[T],
    ) -> Result<(), Error> {
        let end = self.end(first, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        debug_assert!(end <= self.capacity());
        // SAFETY: the array has those elements. Memory that is not page-locked has been read when
        // this returns; page-locked memory is left alone by its owners until a stream was waited
        // for (`receive_fields`).
        unsafe { queue.start_to_device(self.what, values, self.place(first)) }
    }

    /// Starts to copy `values` from elsewhere on the device to the front, making room for them.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub(crate) fn copy_from(
        &mut self,
        stream: &Stream,
        values: &CudaView<'_, T>,
    ) -> Result<(), Error> {
        self.reserve(stream, values.len())?;
        let what = self.what;
        let Some(slice) = self.slice.as_mut().filter(|_| !values.is_empty()) else {
            return Ok(());
        };
        stream
            .0
            .memcpy_dtod(values, slice)
            .map_err(|error| Error::of_call(format!("copying {what}"), error))
    }

    /// The first `len` elements; None before the first [`reserve`](Self::reserve).
    pub(crate) fn view(&self, len: usize) -> Option<CudaView<'_, T>> {
        self.slice.as_ref()?.try_slice(0..len)
    }

    /// The array as values of another type, as many as it holds; None before the first
    /// [`reserve`](Self::reserve).
    pub(crate) fn values<V: DeviceValue>(&self) -> Option<CudaView<'_, V>> {
        let len = self.bytes() / size_of::<V>();
        let bytes = self.slice.as_ref()?.as_view();
        // SAFETY: any bits are a value of a `DeviceValue`, which is numbers; arrays of a device are
        // aligned to 256 bytes, and so many values fit.
        unsafe { bytes.transmute(len) }
    }

    /// Starts to copy elements from `first` on into `values`; wait for the stream before they are
    /// used, and before they are given back.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] if the array ends before them, and [`ErrorKind::Driver`].
    pub(crate) fn copy_to(
        &self,
        queue: &Queue,
        first: usize,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.end(first, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        // SAFETY: the array has those elements, and the backend waits for the stream before the
        // borrow of `values` ends (`deliver_since`, `divided`, `Arrivals`).
        unsafe { queue.start_to_host(self.what, self.place(first), values) }
    }

    /// Starts to copy elements from `first` on to where the host will [read](HostCopy::read) them.
    ///
    /// # Errors
    /// As [`copy_to`](Self::copy_to).
    pub(crate) fn start_host_copy(
        &self,
        queue: &Queue,
        first: usize,
        to: &mut HostCopy<T>,
        count: usize,
    ) -> Result<(), Error> {
        let end = self.end(first, count)?;
        match &self.slice {
            Some(slice) => queue.start_host_copy_of(self.what, &slice.slice(first..end), to),
            None => Ok(()),
        }
    }

    /// Copies elements from `first` on into `values` and waits until they are there, and so for all
    /// that was started before.
    ///
    /// # Errors
    /// As [`copy_to`](Self::copy_to).
    pub(crate) fn download(
        &self,
        queue: &Queue,
        first: usize,
        values: &mut [T],
    ) -> Result<(), Error> {
        let end = self.end(first, values.len())?;
        let held = self.slice.as_ref().filter(|_| !values.is_empty());
        match held {
            Some(slice) => queue.copy_to_host_of(self.what, &slice.slice(first..end), values),
            None => queue.synchronize(),
        }
    }

    /// Address of an element.
    fn place(&self, element: usize) -> CUdeviceptr {
        self.address() + (element * size_of::<T>()) as u64
    }

    /// Index behind the last of `count` elements from `first` on, if the array has them.
    fn end(&self, first: usize, count: usize) -> Result<usize, Error> {
        let end = first.saturating_add(count);
        if end <= self.capacity() || count == 0 {
            return Ok(end);
        }
        Err(Error::from(ErrorKind::FieldLength {
            what: self.what,
            found: self.capacity(),
            expected: end,
        }))
    }
}
