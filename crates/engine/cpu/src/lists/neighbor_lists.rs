//! The lists themselves: start and count per target over one storage of indices.
//!
//! **Invariant:** the list of target i is `storage[start[i] .. start[i] + count[i]]`. Lists of this
//! crate do not overlap. Lists that another backend wrote lie inside the storage, which is checked
//! when they are received, but they may overlap; [`NeighborLists::sort`] therefore checks that
//! first.
//!
//! # Steady state
//!
//! A search writes into the storage of the one before. In a simulation the number of pairs changes
//! little, so nothing is allocated; a storage that proves too small grows by an eighth more than
//! needed.
//!
//! # Order inside a list
//!
//! Lists hold sources in the order in which the grid's runs give them: row by row, along x, by
//! index. [`ListOrder::Ascending`] is for programs that compare lists or need the same list from
//! any backend: the CPU backend selects lists from candidates that ascend, and those of another
//! backend are sorted by [`NeighborLists::sort`].

use super::{
    storage::Storage,
    writer::{Block, Bookkeeping, ListWriter, MovedBlocks, Room, entries, out_of_memory, written},
};
use crate::{
    error::{Error, ErrorKind},
    pool::{CpuBackend, workers::Workers},
    simd::{level::SimdLevel, sort::sort_list},
};
use nearfield_grid::{
    Csr, SharedMut,
    memory::{with_room, zeroed},
    parallel::PoolLoops,
};
use rayon::prelude::*;
use std::sync::Weak;

/// Lists that a worker sorts at a time.
const SORT_TASK: usize = 1 << 10;

/// Lists ahead of the one being sorted that are prefetched: neighbouring targets of the caller have
/// lists far apart in the storage where the caller's points are in random order.
const AHEAD: usize = 8;

/// Entries per cache line.
const LINE: usize = 16;

/// Maximum number of cache lines of a list that are prefetched.
const MAX_LINES: usize = 16;

/// Neighbours of every target, in the caller's order and numbering.
///
/// Storage is reused by the next search. A list of a target is a slice, so a loop over the
/// neighbours of all targets reads the storage in long stretches.
#[derive(Debug, Default)]
pub struct NeighborLists {
    /// First entry of every list.
    pub(super) start: Storage<u64>,
    /// Length of every list.
    pub(super) count: Storage<u32>,
    /// The storage.
    pub(super) indices: Storage<u32>,
    /// Number of neighbours together.
    pub(super) pairs: u64,
    /// Another backend wrote them, so that they may overlap.
    pub(super) foreign: bool,
    /// The workers of the backend that they belong to, if any.
    workers: Weak<Workers>,
}

/// Order of the neighbours inside a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListOrder {
    /// As they were found: the same for every number of threads and every SIMD level, but not for
    /// another cell size or backend.
    #[default]
    Unspecified,
    /// By the caller's index: every list is the same, byte for byte, however it was found.
    Ascending,
}

/// The places of lists whose lengths are known, and the storage that they are written to.
pub(super) struct LaidOut<'a> {
    /// Where each list begins in the storage.
    ///
    /// By the index of the target.
    pub(super) starts: &'a [u64],
    /// Length of each list, by the index of the target.
    pub(super) counts: &'a [u32],
    /// The entries of all lists, and behind the last list room for longer ones.
    pub(super) storage: &'a mut [u32],
}

impl NeighborLists {
    /// Number of targets.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Returns true if there are no targets.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Neighbours of target `i`: indices of sources, one per periodic image within the radius.
    ///
    /// # Panics
    /// When there is no target `i`, as indexing a slice does.
    #[inline]
    pub fn of(&self, i: usize) -> &[u32] {
        let start = self.start[i] as usize;
        &self.indices[start..start + self.count[i] as usize]
    }

    /// Number of neighbours of target `i`.
    ///
    /// # Panics
    /// When there is no target `i`, as indexing a slice does.
    #[inline]
    pub fn count(&self, i: usize) -> usize {
        self.count[i] as usize
    }

    /// All lists in the caller's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|i| self.of(i))
    }

    /// Number of neighbours together.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// First entry of each list in [`storage`](Self::storage), one value per target.
    pub fn starts(&self) -> &[u64] {
        &self.start
    }

    /// Length of each list, one value per target.
    pub fn counts(&self) -> &[u32] {
        &self.count
    }

    /// The storage the lists lie in; entries that belong to no list are unspecified.
    ///
    /// Together with [`starts`](Self::starts) and [`counts`](Self::counts) it is the form in which
    /// other languages take lists.
    pub fn storage(&self) -> &[u32] {
        &self.indices
    }

    /// Bytes held, room kept for the next search included.
    pub fn bytes(&self) -> usize {
        self.bookkeeping_bytes() + self.entry_bytes()
    }

    /// Bytes of the starts and counts.
    pub fn bookkeeping_bytes(&self) -> usize {
        size_of::<u64>() * self.start.capacity() + size_of::<u32>() * self.count.capacity()
    }

    /// Bytes of the storage the lists lie in, room kept for the next search included.
    pub fn entry_bytes(&self) -> usize {
        size_of::<u32>() * self.indices.capacity()
    }

    /// Gives [`sort`](Self::sort) and [`to_csr`](Self::to_csr) to the workers of `backend`, as long
    /// as it lives; without a backend the calling thread does them. [`CpuBackend::search`] calls
    /// this.
    pub fn work_on(&mut self, backend: &CpuBackend) {
        self.workers = backend.workers();
    }

    /// Does `work` on the workers of the backend, or on the calling thread without one.
    fn on_workers<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.workers.upgrade() {
            Some(workers) => workers.install_for(self.len(), work),
            None => work(),
        }
    }

    /// The lists one after the other, with monotone offsets.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    ///
    /// The copy runs on the workers of the backend that found the lists.
    pub fn to_csr(&self) -> Result<Csr, Error> {
        /// The name of the memory in messages.
        const WHAT: &str = "neighbour lists one after the other";
        let mut offsets = with_room(self.len() + 1, WHAT)?;
        let mut next = 0u64;
        offsets.push(next);
        for &count in self.count.iter() {
            next += u64::from(count);
            offsets.push(next);
        }
        let mut indices = zeroed(next as usize, WHAT)?;
        let rows = SharedMut::new(&mut indices);
        self.on_workers(|| {
            (0..self.len())
                .into_par_iter()
                .with_min_len(1 << 10)
                .run(|i| {
                    let (begin, end) = (offsets[i] as usize, offsets[i + 1] as usize);
                    // SAFETY: offsets are monotone, so rows do not overlap.
                    let row = unsafe { rows.slice_mut(begin, end) };
                    row.copy_from_slice(self.of(i));
                });
        });
        Ok(Csr { offsets, indices })
    }

    /// The lists of a copy that [`to_csr`](Self::to_csr) made, perhaps in another process.
    ///
    /// # Errors
    /// [`ErrorKind::Csr`] if the offsets do not start with 0, fall, or end elsewhere than the
    /// indices; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn from_csr(csr: Csr) -> Result<Self, Error> {
        let Csr {
            offsets: mut start,
            indices,
        } = csr;
        let mut count = with_room(start.len(), "neighbour lists")?;
        let lengths = start.windows(2).map_while(|row| {
            let length = row[1].checked_sub(row[0])?;
            u32::try_from(length).ok()
        });
        count.extend(lengths);
        let pairs = indices.len() as u64;
        let whole = start.first() == Some(&0) && start.pop() == Some(pairs);
        if !whole || count.len() != start.len() {
            return Err(ErrorKind::Csr { pairs }.into());
        }
        Ok(Self {
            start: start.into(),
            count: count.into(),
            indices: indices.into(),
            pairs,
            ..Self::default()
        })
    }

    /// Brings every list into [`ListOrder::Ascending`]. The contents of lists of another backend
    /// that overlap are unspecified afterwards.
    ///
    /// Lists are sorted where they lie, in the caller's order, by the workers of the backend; those
    /// of the CPU backend need it only if they were not found in that order.
    pub fn sort(&mut self) {
        if self.foreign && !self.on_workers(|| self.are_apart()) {
            return self.sort_one_by_one();
        }
        let workers = self.workers.upgrade();
        let storage = SharedMut::new(&mut self.indices);
        let (start, count) = (&*self.start, &*self.count);
        let level = SimdLevel::detect();
        let sort = || {
            let tasks = (0..start.len().div_ceil(SORT_TASK)).into_par_iter();
            tasks.run(|task| {
                let begin = task * SORT_TASK;
                let targets = begin..(begin + SORT_TASK).min(start.len());
                let lists = targets.map(|target| {
                    if let (Some(&next), Some(&count)) =
                        (start.get(target + AHEAD), count.get(target + AHEAD))
                    {
                        for line in (0..count as usize).step_by(LINE).take(MAX_LINES) {
                            storage.expect(next as usize + line);
                        }
                    }
                    let begin = start[target] as usize;
                    // SAFETY: lists lie in the storage and do not overlap: lists of this crate by
                    // construction, lists of another backend because `are_apart` has just checked
                    // it. Every target comes once.
                    unsafe { storage.slice_mut(begin, begin + count[target] as usize) }
                });
                lists.for_each(|list| sort_list(level, list));
            });
        };
        match workers {
            Some(workers) => workers.install_for(start.len(), sort),
            None => sort(),
        }
    }

    /// Bytes held after a search that finds `pairs` neighbours of `targets` points and writes them
    /// without gaps: the larger of the bytes needed and the bytes held already.
    pub fn bytes_after(&self, targets: usize, pairs: u64) -> u64 {
        let max = |held: usize, needed: u64| needed.max(held as u64);
        size_of::<u64>() as u64 * max(self.start.capacity(), targets as u64)
            + size_of::<u32>() as u64 * max(self.count.capacity(), targets as u64)
            + size_of::<u32>() as u64 * max(self.indices.capacity(), pairs)
    }

    /// Gives back the room behind the last list.
    ///
    /// Gaps between lists stay; only the room behind the last one is given back.
    pub fn shrink(&mut self) {
        let ends = self.start.iter().zip(self.count.iter());
        let end = ends.map(|(&start, &count)| start + u64::from(count)).max();
        self.indices.shrink_to(end.unwrap_or(0) as usize);
        self.start.shrink_to(self.start.len());
        self.count.shrink_to(self.count.len());
    }

    /// Gives back all memory; no lists are left.
    ///
    /// The next search allocates again, as a first one does.
    pub fn release(&mut self) {
        let workers = std::mem::take(&mut self.workers);
        *self = Self {
            workers,
            ..Self::default()
        };
    }

    /// Gives every target room for exactly its list, one list after the other. `targets` are pairs
    /// of a target's index and its number of neighbours; the numbers add up to `pairs`.
    pub(super) fn lay_out(
        &mut self,
        targets: impl ExactSizeIterator<Item = (u32, u32)>,
        pairs: u64,
    ) -> Result<(), Error> {
        self.pairs = 0;
        self.foreign = false;
        self.prepare(targets.len(), pairs)?;
        let mut next = 0;
        for (target, count) in targets {
            self.start[target as usize] = next;
            self.count[target as usize] = count;
            next += u64::from(count);
        }
        self.pairs = pairs;
        Ok(())
    }

    /// For writing lists that were laid out.
    pub(super) fn laid_out(&mut self) -> LaidOut<'_> {
        LaidOut {
            starts: &self.start,
            counts: &self.count,
            storage: &mut self.indices,
        }
    }

    /// Room for lists of `targets` points with about `expected` neighbours together.
    pub(super) fn prepare(&mut self, targets: usize, expected: u64) -> Result<(), Error> {
        self.start.resize(targets, "list starts")?;
        self.count.resize(targets, "list counts")?;
        if (self.indices.len() as u64) < expected {
            self.grow(expected, 0)?;
        }
        Ok(())
    }

    /// Gives every one of `targets` points a list without entries.
    pub(super) fn find_none(&mut self, targets: usize) -> Result<(), Error> {
        (self.pairs, self.foreign) = (0, false);
        self.prepare(targets, 0)?;
        self.start.fill(0);
        self.count.fill(0);
        Ok(())
    }

    /// Fills the lists with `write`, which is handed the shared writer. False if the lists did not
    /// fit into a storage that must not grow. Then, and after an error, there are no lists.
    pub(super) fn fill(
        &mut self,
        room: Room,
        write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        self.foreign = false;
        let bookkeeping = Bookkeeping {
            start: &mut self.start,
            count: &mut self.count,
        };
        let written = match written(bookkeeping, &mut self.indices, room, write) {
            Ok(written) => written,
            Err(error) => {
                self.forget();
                return Err(error);
            }
        };
        if let Some(entries) = written.failed {
            self.forget();
            return Err(out_of_memory(entries));
        }
        if written.full {
            self.forget();
            return Ok(false);
        }
        if !written.overflow.is_empty() {
            let base = self.take_in(written.used, written.overflow)?;
            let starts = self.start.iter_mut();
            starts.for_each(|start| *start = base.resolve(*start));
        }
        let counts = || self.count.par_iter().map(|&count| u64::from(count));
        self.pairs =
            self.on_workers(|| counts().with_min_len(1 << 14).combined(|| 0, |a, b| a + b));
        Ok(true)
    }

    /// Makes the storage at least `least` entries long and at most `most`; the lists are lost.
    /// False if it is not long enough and cannot be made so.
    pub(super) fn fit(&mut self, least: u64, wanted: u64, most: u64) -> Result<bool, Error> {
        let held = self.indices.capacity() as u64;
        if held <= most && self.indices.len() as u64 >= least {
            return Ok(true);
        }
        if wanted > most {
            return Ok(false);
        }
        self.forget();
        self.grow(wanted, 0)?;
        Ok(self.indices.capacity() as u64 <= most)
    }

    /// Moves overflow blocks behind the first `used` entries of a grown storage; returns where they
    /// are now.
    pub(super) fn take_in(
        &mut self,
        used: u64,
        overflow: Vec<Block>,
    ) -> Result<MovedBlocks, Error> {
        let more: u64 = overflow
            .iter()
            .map(|block| block.entries.len() as u64)
            .sum();
        if let Err(error) = self.grow(used + more + (used + more) / 8, used) {
            self.forget();
            return Err(error);
        }
        let blocks = overflow.iter().map(|block| block.id as usize + 1);
        let mut base = zeroed(blocks.max().unwrap_or(0), "blocks of neighbour lists")?;
        let mut next = used as usize;
        for Block { id, entries } in &overflow {
            base[*id as usize] = next as u64;
            self.indices[next..next + entries.len()].copy_from_slice(entries);
            next += entries.len();
        }
        Ok(MovedBlocks(base))
    }

    /// Makes the storage `room` entries long, keeping the first `keep`.
    fn grow(&mut self, room: u64, keep: u64) -> Result<(), Error> {
        if keep == 0 {
            // Nothing is kept, so old and new need not be held at once.
            self.indices = Storage::default();
        }
        let fresh = Storage::from(entries(room)?);
        let old = std::mem::replace(&mut self.indices, fresh);
        self.indices[..keep as usize].copy_from_slice(&old[..keep as usize]);
        Ok(())
    }

    /// Leaves no lists rather than half-written ones.
    pub(super) fn forget(&mut self) {
        self.start.clear();
        self.count.clear();
        self.pairs = 0;
    }
}
