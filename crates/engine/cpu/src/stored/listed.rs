//! The pairs of one target's stored list, as arrays that kernels read.
//!
//! Kernels read the same arrays in either precision and for every kind of box, so laying them out
//! is compiled once per precision and SIMD level, and not again for every kernel.
//!
//! # Lanes behind the last
//!
//! Blocks of sixteen are read whole, so the arrays are a vector longer than there are pairs, and
//! the squared distances behind the last are infinite. A kernel is evaluated there and its
//! contribution dropped.
//!
//! **Invariant:** `len` pairs are written, and room for [`LANES`] more is there, unless memory was
//! refused.

use crate::{candidates::aligned::Aligned, simd::LANES};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::Pair;

/// Pairs of a target and up to [`LANES`] sources.
pub(super) struct Block {
    /// Displacements, an array per axis.
    pub(super) d: [[f32; LANES]; 3],
    /// Their squares.
    pub(super) d2: [f32; LANES],
    /// True within the radius.
    pub(super) near: [bool; LANES],
}

/// Pairs of one target in the order of its list. Pairs beyond the radius are left out, or set
/// infinitely far away.
#[derive(Debug, Default)]
pub(crate) struct ListedPairs {
    /// Number of pairs.
    pub(super) len: usize,
    /// Source of every pair.
    sources: Aligned<u32>,
    /// Displacements along each axis.
    d: [Aligned<f32>; 3],
    /// Squared distances.
    pub(super) d2: Aligned<f32>,
    /// Scratch for lists in which sources repeat.
    pub(super) seen: Vec<u32>,
    /// Memory that was refused; the pairs are then incomplete.
    pub(super) failed: Option<Shortage>,
}

impl ListedPairs {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let d: usize = self.d.iter().map(Aligned::bytes).sum();
        self.sources.bytes() + d + self.d2.bytes() + size_of::<u32>() * self.seen.capacity()
    }

    /// Source of every pair.
    #[inline(always)]
    pub(crate) fn sources(&self) -> &[u32] {
        &self.sources[..self.len]
    }

    /// Pointers to the displacements, an array per axis, and to their squares.
    pub(crate) fn pointers(&mut self) -> ([*const f32; 3], *mut f32) {
        let [x, y, z] = &self.d;
        let d = [x.as_ptr(), y.as_ptr(), z.as_ptr()];
        (d, self.d2.as_mut_ptr())
    }

    /// Displacements and squared distances from pair `first` on, [`LANES`] of them; infinitely far
    /// away behind the last.
    #[inline(always)]
    pub(crate) fn block(&self, first: usize) -> ([&[f32; LANES]; 3], &[f32; LANES]) {
        let [x, y, z] = &self.d;
        let d = [lanes(x, first), lanes(y, first), lanes(z, first)];
        (d, lanes(&self.d2, first))
    }

    /// Forgets all pairs.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes room for a vector behind the last pair.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn make_room_behind(&mut self) -> Result<(), Shortage> {
        match self.grow(self.len) {
            true => Ok(()),
            false => self.take_failed().map_or(Ok(()), Err),
        }
    }

    /// Returns true if memory was refused.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The memory that was refused, once.
    pub(crate) fn take_failed(&mut self) -> Option<Shortage> {
        self.failed.take()
    }

    /// Makes room for `len` pairs and a vector more; false where there is none.
    #[inline(always)]
    pub(super) fn grow(&mut self, len: usize) -> bool {
        let room = len + 2 * LANES;
        room <= self.sources.len() || self.lengthen(room)
    }

    /// Allocates, out of line; false when memory is short.
    #[cold]
    #[inline(never)]
    fn lengthen(&mut self, room: usize) -> bool {
        let [x, y, z] = &mut self.d;
        // The sources last: their length tells whether there is room.
        let grown = (self.d2.grow(room))
            .and_then(|()| x.grow(room))
            .and_then(|()| y.grow(room))
            .and_then(|()| z.grow(room))
            .and_then(|()| self.sources.grow(room));
        self.failed = grown.err();
        self.failed.is_none()
    }

    /// Adds a pair.
    #[inline(always)]
    pub(crate) fn push(&mut self, source: u32, pair: Pair) {
        if !self.grow(self.len) {
            return;
        }
        self.sources[self.len] = source;
        for axis in 0..3 {
            self.d[axis][self.len] = pair.d[axis];
        }
        self.d2[self.len] = pair.d2;
        self.len += 1;
    }

    /// Adds the pairs with up to [`LANES`] sources, behind whole blocks.
    #[inline(always)]
    pub(super) fn push_block(&mut self, sources: &[u32], block: &Block) {
        let lanes = self.len..self.len + LANES;
        for axis in 0..3 {
            self.d[axis][lanes.clone()].copy_from_slice(&block.d[axis]);
        }
        let to = &mut self.d2[lanes];
        for lane in 0..LANES {
            to[lane] = if block.near[lane] {
                block.d2[lane]
            } else {
                f32::INFINITY
            };
        }
        self.sources[self.len..self.len + sources.len()].copy_from_slice(sources);
        self.len += sources.len();
    }
}

/// [`LANES`] values from `first` on.
#[inline(always)]
fn lanes(values: &[f32], first: usize) -> &[f32; LANES] {
    const NONE: [f32; LANES] = [f32::INFINITY; LANES];
    values[first..].first_chunk().unwrap_or(&NONE)
}
