//! Lists of a range of sorted targets as compressed rows: an offset per target, and the lists one
//! behind the other.
//!
//! A program that streams lists to a file, or that has little memory, holds one range at a time.
//! [`ListRows::reserve`] and [`ListRows::borrow`] make room for the largest range beforehand, so
//! that nothing can fail in the middle.
//!
//! A GPU writes the entries of a range into memory that it lends. Offsets are made here, of lengths
//! that the host has, so nothing that a device writes leads outside of the entries.

use super::storage::{BufferProvider, Storage};
use crate::{
    error::{Error, ErrorKind},
    pool::CpuBackend,
};
use nearfield_grid::{SharedMut, parallel};

/// Name of the memory in messages.
const WHAT: &str = "a chunk of neighbour lists";
/// Rows that a worker sorts at a time.
const SORT_TASK: usize = 1 << 8;

/// Lists of a range of sorted targets, one after the other; written by
/// [`MeasuredLists::write_range`](super::measured::MeasuredLists::write_range), or by another
/// backend, and reused for the next range.
#[derive(Debug, Default)]
pub struct ListRows {
    /// One offset per target and one behind the last.
    offsets: Vec<u64>,
    /// The lists.
    indices: Storage<u32>,
}

impl ListRows {
    /// First entry of every list and one offset behind the last.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The lists, one after the other; there may be room for longer ones behind the last offset.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of::<u64>() * self.offsets.capacity() + size_of::<u32>() * self.indices.capacity()
    }

    /// Bytes that lists of `targets` with `pairs` neighbours together take.
    pub fn bytes_for(targets: usize, pairs: u64) -> u64 {
        size_of::<u64>() as u64 * (targets as u64 + 1) + size_of::<u32>() as u64 * pairs
    }

    /// Makes room for ranges of up to `targets` with up to `pairs` neighbours together, so that
    /// writing them allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn reserve(&mut self, targets: usize, pairs: u64) -> Result<(), Error> {
        self.reserve_offsets(targets, pairs)?;
        let room = usize::try_from(pairs).unwrap_or(usize::MAX);
        if self.indices.capacity() < room {
            // Nothing is kept, so old and new need not be held at once.
            self.indices = Storage::default();
            let mut own = Vec::new();
            own.try_reserve_exact(room)
                .map_err(|_| short(targets, pairs))?;
            self.indices = own.into();
        }
        Ok(())
    }

    /// As [`reserve`](Self::reserve), with entries in memory that is borrowed from another backend.
    ///
    /// # Errors
    /// As there, and those of `provider`.
    pub fn borrow<P: BufferProvider>(
        &mut self,
        targets: usize,
        pairs: u64,
        provider: &P,
    ) -> Result<(), P::Error> {
        self.reserve_offsets(targets, pairs)?;
        let room = usize::try_from(pairs).unwrap_or(usize::MAX);
        if !self.indices.is_borrowed_with(room) {
            self.indices = Storage::default();
            self.indices = provider.words(room)?.into();
        }
        Ok(())
    }

    /// The storage may be replaced after this, so no lists lie in it.
    fn reserve_offsets(&mut self, targets: usize, pairs: u64) -> Result<(), Error> {
        self.offsets.clear();
        if self.offsets.capacity() <= targets {
            self.offsets = Vec::new();
            self.offsets
                .try_reserve_exact(targets.saturating_add(1))
                .map_err(|_| short(targets, pairs))?;
        }
        Ok(())
    }

    /// Gives the lists of consecutive targets these lengths.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub(super) fn lay_out(&mut self, lengths: &[u32]) -> Result<(), Error> {
        let pairs: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        self.reserve(lengths.len(), pairs)?;
        self.offsets.push(0);
        self.offsets
            .extend(lengths.iter().scan(0u64, |next, &length| {
                *next += u64::from(length);
                Some(*next)
            }));
        let room = self.indices.len().max(pairs as usize);
        let made = self.indices.resize(room, WHAT);
        made.inspect_err(|_| self.offsets.clear())
    }

    /// For writing lists that were [laid out](Self::lay_out): the offsets, and the storage.
    pub(super) fn laid_out(&mut self) -> (&[u64], &mut [u32]) {
        (&self.offsets, &mut self.indices)
    }

    /// Takes lists of these lengths that another backend has found: `fill` writes their entries,
    /// one list behind the other, into room that was made before. Room that is too small is
    /// replaced by memory of the lists' own.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], and those of `fill`; the contents are then unspecified.
    pub fn receive<E: From<Error>>(
        &mut self,
        lengths: &[u32],
        fill: impl FnOnce(&mut [u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.lay_out(lengths)?;
        let pairs = self.offsets.last().copied().unwrap_or(0) as usize;
        fill(&mut self.indices[..pairs])
    }

    /// Brings the entries of every list into ascending order.
    pub fn sort(&mut self, cpu: &CpuBackend) {
        let (lists, offsets) = (self.offsets.len().saturating_sub(1), &self.offsets);
        let storage = SharedMut::new(&mut self.indices);
        cpu.install_for(lists, || {
            parallel::tasks(lists.div_ceil(SORT_TASK), &|task| {
                let begin = task * SORT_TASK;
                for list in begin..(begin + SORT_TASK).min(lists) {
                    let (begin, end) = (offsets[list] as usize, offsets[list + 1] as usize);
                    // SAFETY: `lay_out` made the offsets monotone, with an end within the storage,
                    // and every list is sorted by one task.
                    unsafe { storage.slice_mut(begin, end) }.sort_unstable();
                }
            });
        });
    }
}

/// There is no room for the lists of a range.
fn short(targets: usize, pairs: u64) -> Error {
    Error::from(ErrorKind::OutOfMemory {
        bytes: usize::try_from(ListRows::bytes_for(targets, pairs)).unwrap_or(usize::MAX),
        what: WHAT,
    })
}
