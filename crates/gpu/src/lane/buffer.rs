//! Device memory that is kept between steps and grows when it must.
//!
//! A buffer that cannot grow keeps the memory it has: after an out-of-memory error its address and its
//! capacity are what they were.

use crate::Error;
use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, DevicePtr, DeviceRepr, result,
    sys::{CUdeviceptr, CUresult},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

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
    what: &'static str,
    slice: Option<CudaSlice<T>>,
}

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
    /// [`Error::OutOfMemory`] and [`Error::Driver`]; the array is then the old one.
    pub(crate) fn reserve(&mut self, stream: &Arc<CudaStream>, len: usize) -> Result<bool, Error> {
        if len <= self.capacity() && self.slice.is_some() {
            return Ok(false);
        }
        // An eighth more, so that a growing set does not make a new array every step.
        let wanted = match &self.slice {
            None => len.max(1),
            Some(_) => len.saturating_add(len / 8),
        };
        let slice = match self.allocate(stream, wanted) {
            Err(Error::OutOfMemory { .. }) if wanted > len.max(1) => self.allocate(stream, len)?,
            allocated => allocated?,
        };
        self.slice = Some(slice);
        Ok(true)
    }

    /// As [`reserve`](Self::reserve), where the elements of a new array are zero.
    pub(crate) fn reserve_zeroed(
        &mut self,
        stream: &Arc<CudaStream>,
        len: usize,
    ) -> Result<(), Error>
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

    fn allocate(&self, stream: &Arc<CudaStream>, len: usize) -> Result<CudaSlice<T>, Error> {
        let out_of_memory = || Error::OutOfMemory {
            bytes: len.saturating_mul(size_of::<T>()),
            what: self.what.to_owned(),
        };
        if len.checked_mul(size_of::<T>()).is_none() {
            return Err(out_of_memory());
        }
        // SAFETY: every element is written by a kernel or a copy before anything reads it.
        let slice = unsafe { stream.alloc::<T>(len) }.map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(),
            _ => Error::driver(format!("allocating {}", self.what), error),
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

    /// Sets the elements `range` to zero bytes.
    pub(crate) fn zero(
        &mut self,
        stream: &Arc<CudaStream>,
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
                .memset_zeros(&mut view)
                .map_err(|error| Error::driver(format!("clearing {what}"), error)),
        }
    }

    /// Sets all bits of the array, which is there already.
    pub(crate) fn fill_ones(&mut self, stream: &Arc<CudaStream>) -> Result<(), Error> {
        match &self.slice {
            Some(slice) => self.set_all_bits(stream, slice),
            None => Ok(()),
        }
    }

    fn set_all_bits(&self, stream: &Arc<CudaStream>, slice: &CudaSlice<T>) -> Result<(), Error> {
        let (address, _held) = slice.device_ptr(slice.stream());
        // SAFETY: the array has as many bytes, and the stream orders this with its other uses.
        unsafe { result::memset_d8_async(address, u8::MAX, slice.num_bytes(), stream.cu_stream()) }
            .map_err(|error| Error::driver(format!("clearing {}", self.what), error))
    }

    /// Copies `values` to the front, making room for them.
    pub(crate) fn upload(&mut self, stream: &Arc<CudaStream>, values: &[T]) -> Result<(), Error> {
        self.reserve(stream, values.len())?;
        self.upload_at(stream, 0, values)
    }

    /// Copies `values` to where there is room for them, from element `first` on.
    pub(crate) fn upload_at(
        &mut self,
        stream: &Arc<CudaStream>,
        first: usize,
        values: &[T],
    ) -> Result<(), Error> {
        let (what, held) = (self.what, self.capacity());
        let range = first..first.saturating_add(values.len());
        let part = self.slice.as_mut().filter(|_| !values.is_empty());
        let Some(mut part) = part.and_then(|slice| slice.try_slice_mut(range.clone())) else {
            return match values.is_empty() {
                true => Ok(()),
                false => Err(Error::FieldLength {
                    what,
                    found: range.end,
                    expected: held,
                }),
            };
        };
        stream
            .memcpy_htod(values, &mut part)
            .map_err(|error| Error::driver(format!("uploading {what}"), error))
    }

    /// Copies `values` from elsewhere on the device to the front, making room for them.
    pub(crate) fn copy_from(
        &mut self,
        stream: &Arc<CudaStream>,
        values: &CudaView<'_, T>,
    ) -> Result<(), Error> {
        self.reserve(stream, values.len())?;
        let what = self.what;
        let Some(slice) = self.slice.as_mut().filter(|_| !values.is_empty()) else {
            return Ok(());
        };
        stream
            .memcpy_dtod(values, slice)
            .map_err(|error| Error::driver(format!("copying {what}"), error))
    }

    /// The first `len` elements; None before the first [`reserve`](Self::reserve).
    pub(crate) fn view(&self, len: usize) -> Option<CudaView<'_, T>> {
        self.slice.as_ref()?.try_slice(0..len)
    }

    /// Starts to copy elements from `first` on into `values`; wait for the stream before they are
    /// used, and before they are given back.
    pub(crate) fn copy_to(
        &self,
        stream: &Arc<CudaStream>,
        first: usize,
        values: &mut [T],
    ) -> Result<(), Error> {
        let failed = |error| Error::driver(format!("downloading {}", self.what), error);
        let inside = first
            .checked_add(values.len())
            .is_some_and(|end| end <= self.capacity());
        if values.is_empty() || !inside {
            return match inside {
                true => Ok(()),
                false => Err(Error::FieldLength {
                    what: self.what,
                    found: self.capacity(),
                    expected: first.saturating_add(values.len()),
                }),
            };
        }
        stream.context().bind_to_thread().map_err(failed)?;
        let from = self.address() + (first * size_of::<T>()) as u64;
        // SAFETY: the array has those elements, and the lane waits for the stream before the
        // borrow of `values` ends (`deliver_since`, `divided`, `Arrivals`).
        unsafe { result::memcpy_dtoh_async(values, from, stream.cu_stream()) }.map_err(failed)
    }

    /// Copies elements from `first` on into `values` and waits until they are there.
    pub(crate) fn download(
        &self,
        stream: &Arc<CudaStream>,
        first: usize,
        values: &mut [T],
    ) -> Result<(), Error> {
        let failed = |error| Error::driver(format!("downloading {}", self.what), error);
        if !values.is_empty() {
            let range = first..first.saturating_add(values.len());
            let view = self
                .slice
                .as_ref()
                .and_then(|slice| slice.try_slice(range.clone()));
            let Some(view) = view else {
                return Err(Error::FieldLength {
                    what: self.what,
                    found: self.capacity(),
                    expected: range.end,
                });
            };
            stream.memcpy_dtoh(&view, values).map_err(failed)?;
        }
        stream.synchronize().map_err(failed)
    }
}
