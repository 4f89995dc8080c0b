//! Arrays made on a stream, and copies that are put on it.

use super::{
    array::{DeviceArray, DeviceArrayMut, DeviceBuffer, DeviceValue},
    stream::{DriverError, Stream},
};
use cudarc::driver::result;

impl Stream {
    /// An array without elements.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn null<T: DeviceValue>(&self) -> Result<DeviceBuffer<T>, DriverError> {
        self.0.null().map(DeviceBuffer).map_err(DriverError)
    }

    /// A new array, of unspecified values.
    ///
    /// # Errors
    /// A failed call of the driver.
    ///
    /// # Safety
    /// Every element is written before it is read.
    pub unsafe fn alloc<T: DeviceValue>(&self, len: usize) -> Result<DeviceBuffer<T>, DriverError> {
        // SAFETY: as the caller promises.
        let made = unsafe { self.0.alloc(len) };
        made.map(DeviceBuffer).map_err(DriverError)
    }

    /// A new array of zeros.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn alloc_zeros<T: DeviceValue>(&self, len: usize) -> Result<DeviceBuffer<T>, DriverError> {
        let made = self.0.alloc_zeros(len);
        made.map(DeviceBuffer).map_err(DriverError)
    }

    /// A new array of zeros that is not part of the GPU's pool: other processes can open its
    /// memory, while that of a pool they cannot. It is cleared and freed in the order of this
    /// stream.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn alloc_unpooled<T: DeviceValue>(
        &self,
        len: usize,
    ) -> Result<DeviceBuffer<T>, DriverError> {
        self.0.context().bind_to_thread().map_err(DriverError)?;
        // SAFETY: the memory is filled with zeros before anything reads it.
        let address = unsafe { result::malloc_sync(size_of::<T>() * len) };
        let address = address.map_err(DriverError)?;
        // SAFETY: the memory has as many elements, and nothing else frees it. The driver frees
        // memory of its own in the order of a stream as it does memory of a pool.
        let mut array = DeviceBuffer(unsafe { self.0.upgrade_device_ptr(address, len) });
        self.memset_zeros(&mut array)?;
        Ok(array)
    }

    /// A new array with these values. Copies through [`Queue::array`](crate::Queue::array) are
    /// counted and timed, these are not.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn clone_htod<T: DeviceValue>(&self, values: &[T]) -> Result<DeviceBuffer<T>, DriverError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "callers of this method are checked"
        )]
        let made = self.0.clone_htod(values);
        made.map(DeviceBuffer).map_err(DriverError)
    }

    /// A copy of an array on the host. Waits for the stream.
    ///
    /// # Errors
    /// A failed call of the driver, or a failure of the work that is waited for.
    pub fn clone_dtoh<T: DeviceValue>(
        &self,
        from: &impl DeviceArray<T>,
    ) -> Result<Vec<T>, DriverError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "callers of this method are checked"
        )]
        let made = self.0.clone_dtoh(&from.view().0);
        made.map_err(DriverError)
    }

    /// Starts to copy an array to the host; wait for the stream before the values are used.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn memcpy_dtoh<T: DeviceValue>(
        &self,
        from: &impl DeviceArray<T>,
        to: &mut [T],
    ) -> Result<(), DriverError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "callers of this method are checked"
        )]
        let started = self.0.memcpy_dtoh(&from.view().0, to);
        started.map_err(DriverError)
    }

    /// Starts to copy values to the front of an array.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn memcpy_htod<T: DeviceValue>(
        &self,
        from: &[T],
        to: &mut impl DeviceArrayMut<T>,
    ) -> Result<(), DriverError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "callers of this method are checked"
        )]
        let started = self.0.memcpy_htod(from, &mut to.view_mut().0);
        started.map_err(DriverError)
    }

    /// Starts to copy one array of the GPU to the front of another.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn memcpy_dtod<T: DeviceValue>(
        &self,
        from: &impl DeviceArray<T>,
        to: &mut impl DeviceArrayMut<T>,
    ) -> Result<(), DriverError> {
        let started = self.0.memcpy_dtod(&from.view().0, &mut to.view_mut().0);
        started.map_err(DriverError)
    }

    /// A copy of an array of the GPU.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn clone_dtod<T: DeviceValue>(
        &self,
        from: &impl DeviceArray<T>,
    ) -> Result<DeviceBuffer<T>, DriverError> {
        let made = self.0.clone_dtod(&from.view().0);
        made.map(DeviceBuffer).map_err(DriverError)
    }

    /// Starts to fill an array with zeros.
    ///
    /// # Errors
    /// A failed call of the driver.
    pub fn memset_zeros<T: DeviceValue>(
        &self,
        array: &mut impl DeviceArrayMut<T>,
    ) -> Result<(), DriverError> {
        self.0
            .memset_zeros(&mut array.view_mut().0)
            .map_err(DriverError)
    }
}
