//! Arrays of lists, in memory of their own or borrowed from another backend.
//!
//! A GPU writes fastest into page-locked memory that its driver has allocated. Lists that it found
//! stay there instead of being copied once more; readers see a slice either way.
//!
//! **Invariant:** [`Storage`] owns its memory, a `Vec` or a [`BorrowedBuffer`], and holds a pointer
//! into it. The pointer stays valid while the owner lives, and is replaced whenever the owner is.
//!
//! # Two kinds of memory
//!
//! Own memory is a `Vec`: it grows with `try_reserve`, and refusals are errors. Borrowed memory is
//! used up to its length and never grows; a longer array replaces it by own memory, and the
//! borrowed buffer is given back. Shrinking leaves borrowed memory alone.

use crate::error::{Error, ErrorKind};
use bytemuck::Zeroable;
use nearfield_grid::memory::zeroed;
use std::{
    fmt,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
};

/// Memory borrowed from another backend for lists; given back when it is dropped.
///
/// # Safety
/// [`elements`](Self::elements) returns the same initialised elements as long as the value lives,
/// wherever the value is moved, and no other code accesses them meanwhile.
pub unsafe trait BorrowedBuffer<T>: Send + Sync + fmt::Debug {
    /// The elements.
    fn elements(&mut self) -> NonNull<[T]>;
}

/// A backend that memory for lists can be borrowed from.
pub trait BufferProvider {
    /// Why there is no memory.
    type Error: From<Error>;

    /// Elements to ask for where `len` are needed: an eighth more, so that lists that grow a little
    /// do not borrow anew every step. Where a memory limit counts, exactly as many.
    fn roomy(&self, len: usize) -> usize {
        len.saturating_add(len / 8)
    }

    /// Borrows memory for `len` starts of lists.
    ///
    /// # Errors
    /// When memory is short.
    fn starts(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u64>>, Self::Error>;

    /// Borrows memory for `len` lengths or entries of lists.
    ///
    /// # Errors
    /// When memory is short.
    fn words(&self, len: usize) -> Result<Box<dyn BorrowedBuffer<u32>>, Self::Error>;
}

/// An array that can be read and written as a slice.
///
/// A pointer and not an enum of slices, so that reading it costs no branch.
pub(super) struct Storage<T> {
    /// First element.
    first: NonNull<T>,
    /// Number of elements in use.
    len: usize,
    /// Number of elements there is room for.
    capacity: usize,
    /// Owns the memory at `first`.
    memory: Memory<T>,
}

/// The owner of the memory.
enum Memory<T> {
    Own(Vec<T>),
    Borrowed { _keeps: Box<dyn BorrowedBuffer<T>> },
}

// SAFETY: it owns its memory alone, as a Vec or a Box does.
unsafe impl<T: Send> Send for Storage<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Storage<T> {}

impl<T> Default for Storage<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Storage<T> {
    fn from(mut own: Vec<T>) -> Self {
        Self {
            first: NonNull::new(own.as_mut_ptr()).unwrap_or(NonNull::dangling()),
            len: own.len(),
            capacity: own.capacity(),
            memory: Memory::Own(own),
        }
    }
}

impl<T> From<Box<dyn BorrowedBuffer<T>>> for Storage<T> {
    fn from(mut borrowed: Box<dyn BorrowedBuffer<T>>) -> Self {
        let elements = borrowed.elements();
        Self {
            first: elements.cast(),
            len: elements.len(),
            capacity: elements.len(),
            memory: Memory::Borrowed { _keeps: borrowed },
        }
    }
}

impl<T> Storage<T> {
    /// Elements there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns true if the memory is another backend's and has room for `len` elements.
    pub(super) fn is_borrowed_with(&self, len: usize) -> bool {
        matches!(self.memory, Memory::Borrowed { .. }) && len <= self.capacity
    }

    /// Leaves no element; the memory is kept.
    pub(super) fn clear(&mut self) {
        if let Memory::Own(own) = &mut self.memory {
            own.clear();
        }
        self.len = 0;
    }

    /// Gives back the elements from `len` on, unless the memory is borrowed.
    pub(super) fn shrink_to(&mut self, len: usize) {
        if let Memory::Own(own) = &mut self.memory {
            let mut own = std::mem::take(own);
            own.truncate(len);
            own.shrink_to_fit();
            *self = Self::from(own);
        }
    }
}

impl<T: Copy + Zeroable> Storage<T> {
    /// Makes the array `len` elements long; what they hold is unspecified.
    pub(super) fn resize(&mut self, len: usize, what: &'static str) -> Result<(), Error> {
        if let Memory::Borrowed { .. } = self.memory
            && len <= self.capacity
        {
            // All of them are initialised.
            self.len = len;
            return Ok(());
        }
        let mut own = match &mut self.memory {
            Memory::Own(own) => std::mem::take(own),
            Memory::Borrowed { .. } => Vec::new(),
        };
        *self = Self::default();
        if own.capacity() == 0 {
            // Pages that no list reaches are never touched.
            *self = Self::from(zeroed(len, what)?);
            return Ok(());
        }
        own.try_reserve_exact(len.saturating_sub(own.len()))
            .map_err(|_| ErrorKind::OutOfMemory {
                bytes: len.saturating_mul(size_of::<T>()),
                what,
            })?;
        own.resize(len, T::zeroed());
        *self = Self::from(own);
        Ok(())
    }
}

impl<T> Deref for Storage<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `memory` owns `capacity` elements there, and `len` of them at least are
        // initialised.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Storage<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for Storage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match &self.memory {
            Memory::Own(_) => "own",
            Memory::Borrowed { .. } => "borrowed",
        };
        f.debug_struct("Storage")
            .field("len", &self.len)
            .field("memory", &memory)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[derive(Debug)]
    struct DropCounter(Vec<u32>, Arc<AtomicUsize>);

    // SAFETY: the Vec is never changed.
    unsafe impl BorrowedBuffer<u32> for DropCounter {
        fn elements(&mut self) -> NonNull<[u32]> {
            NonNull::from(self.0.as_mut_slice())
        }
    }

    impl Drop for DropCounter {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn borrowed_memory_is_used_up_to_its_end_and_given_back() {
        let given_back = Arc::new(AtomicUsize::new(0));
        let counted = DropCounter(vec![7; 100], given_back.clone());
        let borrowed: Box<dyn BorrowedBuffer<u32>> = Box::new(counted);
        let mut storage = Storage::from(borrowed);
        assert!(storage.is_borrowed_with(100) && !storage.is_borrowed_with(101));
        storage.resize(40, "test").unwrap();
        storage[39] = 1;
        assert_eq!((storage.len(), storage[0], storage[39]), (40, 7, 1));
        storage.resize(100, "test").unwrap();
        assert_eq!((storage[39], storage[99]), (1, 7));
        storage.shrink_to(3);
        assert_eq!(storage.capacity(), 100, "not ours to shrink");
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        storage.resize(101, "test").unwrap();
        assert_eq!(given_back.load(Ordering::Relaxed), 1);
        assert!(!storage.is_borrowed_with(1) && storage.len() == 101);
    }

    #[test]
    fn own_memory_grows_and_shrinks_like_a_vec() {
        let mut storage = Storage::<u64>::default();
        assert!(storage.is_empty());
        storage.resize(10, "test").unwrap();
        storage.iter_mut().for_each(|x| *x = 5);
        storage.resize(20, "test").unwrap();
        assert_eq!(storage[..10], [5; 10]);
        storage.shrink_to(4);
        assert_eq!((storage.len(), storage.capacity()), (4, 4));
        assert!(storage.resize(usize::MAX / 16, "test").is_err());
        assert!(storage.is_empty(), "usable afterwards");
    }
}
