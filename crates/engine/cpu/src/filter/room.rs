//! Buffers of filters, one set per worker.
//!
//! They are part of the worker's scratch and are used for one target after the other, so a search
//! in its steady state allocates nothing. Everything in them is written before it is read.
//!
//! Buffers grow to what the longest list of the worker's targets takes, and with the k nearest to a
//! few times k pairs besides. They are given back with the worker's scratch when memory is short.

use super::nearest::Nearest;
use nearfield_grid::memory::{Shortage, make_room};

/// The name of the memory in messages.
pub(crate) const WHAT: &str = "the neighbours of a point";

/// Buffers of filters, kept for the next task.
#[derive(Debug, Default)]
pub(crate) struct FilterRoom {
    /// Places of pairs that are kept.
    pub(super) kept: Vec<u32>,
    /// The caller's indices of sources, in double precision.
    pub(super) indices: Vec<u32>,
    /// Squared distances in double precision.
    pub(super) squares: Vec<f64>,
    /// Pairs of which the nearest are wanted.
    pub(super) nearest: Nearest,
    /// Pairs that are kept, for a taker that knows nothing of filters.
    pub(super) packed: PackedPairs,
    /// The nearest pairs of a target.
    pub(super) selected: PackedPairs,
    /// For the nearest of a list.
    pub(crate) few: FewRoom,
    /// For a taker that collects a list.
    pub(crate) list: Vec<u32>,
}

impl FilterRoom {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.kept.capacity() + self.indices.capacity() + self.list.capacity();
        size_of::<u32>() * words
            + size_of::<f64>() * self.squares.capacity()
            + self.few.bytes()
            + self.nearest.bytes()
            + self.packed.bytes()
            + self.selected.bytes()
    }
}

/// Pairs of one image next to each other.
#[derive(Debug, Default)]
pub(super) struct PackedPairs {
    /// Sources by index.
    pub(super) sources: Vec<u32>,
    /// Displacements along each axis.
    pub(super) d: [Vec<f32>; 3],
    /// Squared distances.
    pub(super) d2: Vec<f32>,
}

impl PackedPairs {
    /// Bytes held.
    fn bytes(&self) -> usize {
        let d: usize = self.d.iter().map(Vec::capacity).sum();
        size_of::<u32>() * (self.sources.capacity() + d + self.d2.capacity())
    }

    /// Empties the arrays and makes room for `len` pairs.
    pub(super) fn clear(&mut self, len: usize) -> Result<(), Shortage> {
        self.sources.clear();
        self.d2.clear();
        make_room(&mut self.sources, len, WHAT)?;
        make_room(&mut self.d2, len, WHAT)?;
        for d in &mut self.d {
            d.clear();
            make_room(d, len, WHAT)?;
        }
        Ok(())
    }
}

/// Buffers for the nearest of a list, as long as [`prepare`](Self::prepare) says at least.
#[derive(Debug, Default)]
pub(crate) struct FewRoom {
    /// Keys that are sorted.
    pub(crate) keys: Vec<u32>,
    /// Sources of a part of a long list.
    pub(crate) tags: Vec<u32>,
    /// Their squared distances.
    pub(crate) squares: Vec<f32>,
    /// Squared distances and sources in their exact order.
    pub(crate) exact: Vec<u64>,
}

impl FewRoom {
    /// Bytes held.
    fn bytes(&self) -> usize {
        let words = self.keys.capacity() + self.tags.capacity() + self.squares.capacity();
        size_of::<u32>() * words + size_of::<u64>() * self.exact.capacity()
    }

    /// Makes all buffers `len` long at least.
    pub(crate) fn prepare(&mut self, len: usize) -> Result<(), Shortage> {
        if self.exact.len() < len {
            make_room(&mut self.keys, len, WHAT)?;
            make_room(&mut self.tags, len, WHAT)?;
            make_room(&mut self.squares, len, WHAT)?;
            make_room(&mut self.exact, len, WHAT)?;
            self.keys.resize(len, 0);
            self.tags.resize(len, 0);
            self.squares.resize(len, 0.0);
            self.exact.resize(len, 0);
        }
        Ok(())
    }
}
