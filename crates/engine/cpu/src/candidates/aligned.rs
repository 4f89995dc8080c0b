//! Arrays that begin on a cache line, so that a vector load never touches two.
//!
//! A vector of AVX-512 is a whole cache line. An unaligned one is loaded from two lines, at half
//! the speed; in a scratch that is read millions of times that is worth the alignment. A
//! `Vec<f32>` is aligned to four bytes, so the array is a `Vec` of lines, viewed as numbers.
//!
//! **Invariant:** the contents are plain numbers, so any bytes are valid, and new lines are zero.

use bytemuck::{Pod, Zeroable};
use nearfield_grid::memory::Shortage;
use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; 16]);

// SAFETY: sixteen `u32` fill the line exactly, so there is no padding, and zeros are valid.
unsafe impl Zeroable for Line {}
// SAFETY: as above; `u32` is plain data.
unsafe impl Pod for Line {}

/// A growable array of `f32`, `f64` or `u32` that begins on a cache line and ends on one.
///
/// The array only grows. It is scratch: its contents mean something only until the next group.
#[derive(Debug, Default)]
pub(crate) struct Aligned<T> {
    /// The memory.
    lines: Vec<Line>,
    /// The type of the values.
    values: PhantomData<T>,
}

impl<T> Aligned<T> {
    /// An array without values.
    pub(crate) fn empty() -> Self {
        Self {
            lines: Vec::new(),
            values: PhantomData,
        }
    }
}

impl<T: Pod> Aligned<T> {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Line>() * self.lines.capacity()
    }

    /// Makes the array at least `len` values long; new values are zero.
    ///
    /// # Errors
    /// [`Shortage`]; the array is then as it was.
    #[inline(always)]
    pub(crate) fn grow(&mut self, len: usize) -> Result<(), Shortage> {
        let lines = len
            .saturating_mul(size_of::<T>())
            .div_ceil(size_of::<Line>());
        if lines > self.lines.len() {
            self.lengthen(lines)?;
        }
        Ok(())
    }

    /// Allocates, out of line.
    #[cold]
    #[inline(never)]
    fn lengthen(&mut self, lines: usize) -> Result<(), Shortage> {
        const WHAT: &str = "candidates and their fields";
        self.lines
            .try_reserve(lines - self.lines.len())
            .map_err(|_| Shortage::of::<Line>(lines, WHAT))?;
        self.lines.resize(lines, Line([0; 16]));
        Ok(())
    }
}

impl<T: Pod> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }
}

impl<T: Pod> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_begins_on_a_cache_line_and_keeps_its_values_when_it_grows() {
        let mut array = Aligned::<f32>::default();
        for len in [1, 5, 17, 1000] {
            array.grow(len).unwrap();
            assert!(array.len() >= len && array.len() % 16 == 0);
            assert_eq!(array.as_ptr() as usize % 64, 0);
            array[0] += 1.0;
        }
        assert_eq!(array[0], 4.0);
        assert_eq!(array[999], 0.0);
    }
}
