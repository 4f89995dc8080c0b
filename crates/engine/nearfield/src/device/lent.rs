//! Device memory by its address, for programs in other languages.
//!
//! A [`DeviceBuffer`] frees its memory of the device when its last owner is dropped. An array of
//! another library is known by its address and length alone and must outlive the call, so [`Lent`]
//! wraps it in such an owner that frees nothing.
//!
//! Only its constructor has to trust an address, so it is the one unsafe step; all calls that take
//! the view are safe and check its length and its GPU as they do with any other.

use nearfield_gpu::{DeviceBuffer, DeviceColumns, DeviceViewMut, Stream};
use std::{fmt, mem::ManuallyDrop, ops::Deref};

/// Device memory that is not ours to free, lent for a call: what the engine is given where all that
/// is known of an array is its address.
pub struct Lent<T>(ManuallyDrop<DeviceBuffer<T>>);

impl<T> Lent<T> {
    /// The `len` elements at `pointer`.
    ///
    /// # Safety
    /// `pointer` points to `len` elements on the stream's GPU, which the work that is given this
    /// may use until the stream has done it.
    pub unsafe fn new(stream: &Stream, pointer: u64, len: usize) -> Self {
        // SAFETY: the caller of this function guarantees that the address holds `len` initialised
        // values for as long as this borrows it.
        Self(ManuallyDrop::new(unsafe {
            DeviceBuffer::from_raw(stream, pointer, len)
        }))
    }
}

impl<T> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({} elements)", self.0.len())
    }
}

impl<T> Deref for Lent<T> {
    type Target = DeviceBuffer<T>;

    fn deref(&self) -> &DeviceBuffer<T> {
        &self.0
    }
}

impl<T> Lent<T> {
    /// All of it, to be written. A view and not the array itself: that could be put somewhere else
    /// in exchange for another, and would free the memory there.
    pub fn as_view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.0.as_view_mut()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here; leaked, because the memory is another's.
        unsafe { ManuallyDrop::take(&mut self.0) }.into_raw();
    }
}

/// Arrays of another library that pairs are written to; None for those that are not wanted.
#[derive(Debug)]
pub struct LentColumns<T, I> {
    /// The point of every pair.
    pub targets: Option<Lent<I>>,
    /// Its neighbour.
    pub sources: Option<Lent<I>>,
    /// Three counts of vectors of every pair.
    pub images: Option<Lent<i32>>,
    /// Three numbers of every pair.
    pub displacements: Option<Lent<T>>,
    /// A number of every pair.
    pub distances: Option<Lent<T>>,
}

impl<T, I> Default for LentColumns<T, I> {
    /// No arrays.
    fn default() -> Self {
        Self {
            targets: None,
            sources: None,
            images: None,
            displacements: None,
            distances: None,
        }
    }
}

impl<T, I> LentColumns<T, I> {
    /// The arrays, as engines take them.
    pub fn views(&mut self) -> DeviceColumns<'_, T, I> {
        DeviceColumns {
            targets: self.targets.as_mut().map(Lent::as_view_mut),
            sources: self.sources.as_mut().map(Lent::as_view_mut),
            images: self.images.as_mut().map(Lent::as_view_mut),
            displacements: self.displacements.as_mut().map(Lent::as_view_mut),
            distances: self.distances.as_mut().map(Lent::as_view_mut),
        }
    }
}
