//! Arrays of lists, in memory of our own or lent by another backend.
//!
//! A GPU writes fastest into memory that the driver has made for it. Lists that it found stay there
//! instead of being copied once more; whoever reads them sees a slice either way.

use crate::Error;
use std::{
    fmt,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
};

/// Memory that another backend lends for lists.
///
/// # Safety
/// [`place`](Self::place) gives the same initialised elements as long as the value lives, wherever
/// the value is moved, and nobody else accesses them meanwhile.
pub unsafe trait LentMemory<T>: Send + Sync + fmt::Debug {
    /// First element and number of elements.
    fn place(&mut self) -> (NonNull<T>, usize);
}

/// Who lends memory, and what it says when it cannot.
pub trait Lender {
    /// Why there is no memory.
    type Error: From<Error>;

    /// Memory for so many starts of lists.
    ///
    /// # Errors
    /// When memory is short.
    fn starts(&self, len: usize) -> Result<Box<dyn LentMemory<u64>>, Self::Error>;

    /// Memory for so many lengths or entries of lists.
    ///
    /// # Errors
    /// When memory is short.
    fn words(&self, len: usize) -> Result<Box<dyn LentMemory<u32>>, Self::Error>;
}

/// An array that can be read and written as a slice.
pub(crate) struct Storage<T> {
    place: NonNull<T>,
    len: usize,
    capacity: usize,
    /// Owns the memory at `place`.
    memory: Memory<T>,
}

enum Memory<T> {
    Own(Vec<T>),
    Lent { _keeps: Box<dyn LentMemory<T>> },
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
            place: NonNull::new(own.as_mut_ptr()).unwrap_or(NonNull::dangling()),
            len: own.len(),
            capacity: own.capacity(),
            memory: Memory::Own(own),
        }
    }
}

impl<T> From<Box<dyn LentMemory<T>>> for Storage<T> {
    fn from(mut lent: Box<dyn LentMemory<T>>) -> Self {
        let (place, len) = lent.place();
        Self {
            place,
            len,
            capacity: len,
            memory: Memory::Lent { _keeps: lent },
        }
    }
}

impl<T> Storage<T> {
    /// Elements there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether the memory is another backend's and has room for `len` elements.
    pub(crate) fn is_lent_with(&self, len: usize) -> bool {
        matches!(self.memory, Memory::Lent { .. }) && len <= self.capacity
    }

    /// Leaves no element; the memory is kept.
    pub(crate) fn clear(&mut self) {
        if let Memory::Own(own) = &mut self.memory {
            own.clear();
        }
        self.len = 0;
    }

    /// Gives back what is not in use, where the memory is our own.
    pub(crate) fn shrink_to(&mut self, len: usize) {
        if let Memory::Own(own) = &mut self.memory {
            let mut own = std::mem::take(own);
            own.truncate(len);
            own.shrink_to_fit();
            *self = Self::from(own);
        }
    }
}

impl<T: Copy + Default> Storage<T> {
    /// Makes the array `len` elements long; what they hold is unspecified.
    pub(crate) fn resize(&mut self, len: usize, what: &'static str) -> Result<(), Error> {
        if let Memory::Lent { .. } = self.memory
            && len <= self.capacity
        {
            // All of them are initialised.
            self.len = len;
            return Ok(());
        }
        let mut own = match &mut self.memory {
            Memory::Own(own) => std::mem::take(own),
            Memory::Lent { .. } => Vec::new(),
        };
        *self = Self::default();
        own.try_reserve_exact(len.saturating_sub(own.len()))
            .map_err(|_| Error::OutOfMemory {
                bytes: len.saturating_mul(size_of::<T>()),
                what,
            })?;
        own.resize(len, T::default());
        *self = Self::from(own);
        Ok(())
    }
}

impl<T> Deref for Storage<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `memory` owns `capacity` elements there, of which `len` at least are initialised.
        unsafe { slice::from_raw_parts(self.place.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Storage<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.place.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for Storage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match &self.memory {
            Memory::Own(_) => "own",
            Memory::Lent { .. } => "lent",
        };
        f.debug_struct("Storage")
            .field("len", &self.len)
            .field("memory", &whose)
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
    struct Counted(Vec<u32>, Arc<AtomicUsize>);

    // SAFETY: the Vec is never changed.
    unsafe impl LentMemory<u32> for Counted {
        fn place(&mut self) -> (NonNull<u32>, usize) {
            (NonNull::from(self.0.as_mut_slice()).cast(), self.0.len())
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn lent_memory_is_used_up_to_its_end_and_given_back() {
        let given_back = Arc::new(AtomicUsize::new(0));
        let lent: Box<dyn LentMemory<u32>> = Box::new(Counted(vec![7; 100], given_back.clone()));
        let mut storage = Storage::from(lent);
        assert!(storage.is_lent_with(100) && !storage.is_lent_with(101));
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
        assert!(!storage.is_lent_with(1) && storage.len() == 101);
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
