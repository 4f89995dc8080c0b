//! Neighbour lists: start and count per point over one index storage that is reused between steps.
//!
//! Workers claim chunks of the storage and write every list once, where it stays. Only when the
//! storage turns out too small do lists go to overflow blocks, which are moved behind the storage
//! after it has grown; in the steady state that does not happen.

use crate::{
    CpuBackend, Error,
    pool::Workers,
    storage::{Lender, Storage},
};
use nearfield_grid::{
    Csr, SharedMut,
    memory::{make_room, make_room_for_one, zeroed},
    parallel::PoolLoops,
    prefetch_for_writing,
};
use rayon::prelude::*;
use std::sync::{
    Mutex, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Neighbours of every target, in the caller's order and numbering.
#[derive(Debug, Default)]
pub struct NeighborLists {
    pub(crate) start: Storage<u64>,
    pub(crate) count: Storage<u32>,
    pub(crate) indices: Storage<u32>,
    pub(crate) pairs: u64,
    /// Whether another backend wrote them, so that they may overlap.
    pub(crate) foreign: bool,
    /// Of the backend that they belong to, if any.
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

/// Entries a worker claims at a time for one of its streams, at most…
const CHUNK: u64 = 1 << 15;
/// …at least…
const SMALL_CHUNK: u64 = 1 << 8;
/// …and in between so that what the last chunks of all streams leave empty is at most one part in
/// this many of the storage.
const CHUNKS_PER_STREAM: u64 = 16;

/// Entries of a list for which no more room than it needs is asked for.
const LONG: u64 = 1 << 18;

/// Marks a start that counts from the beginning of an overflow block: bit 63, then the block's
/// number, then 40 bits of offset.
const OVERFLOW: u64 = 1 << 63;
const OFFSET_BITS: u32 = 40;

impl NeighborLists {
    /// Number of targets.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Whether there are no targets.
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

    /// From now on the workers of `backend` do what all lists are needed for, such as
    /// [`sort`](Self::sort) and [`to_csr`](Self::to_csr), as long as it lives; the calling thread
    /// does otherwise. [`CpuBackend::search`] sees to it by itself.
    pub fn work_on(&mut self, backend: &CpuBackend) {
        self.workers = backend.workers();
    }

    /// Does `work` on the workers that there are.
    fn on_workers<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.workers.upgrade() {
            Some(workers) => workers.install(work),
            None => work(),
        }
    }

    /// The lists one after the other, with monotone offsets.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_csr(&self) -> Result<Csr, Error> {
        const WHAT: &str = "neighbour lists one after the other";
        let mut offsets = Vec::new();
        make_room(&mut offsets, self.len() + 1, WHAT)?;
        let mut next = 0u64;
        offsets.push(next);
        for &count in self.count.iter() {
            next += u64::from(count);
            offsets.push(next);
        }
        let mut indices = zeroed(next as usize, WHAT)?;
        let place = SharedMut::new(&mut indices);
        self.on_workers(|| {
            (0..self.len())
                .into_par_iter()
                .with_min_len(1 << 10)
                .run(|i| {
                    let (begin, end) = (offsets[i] as usize, offsets[i + 1] as usize);
                    // SAFETY: offsets are monotone, so rows do not overlap.
                    let row = unsafe { place.slice_mut(begin, end) };
                    row.copy_from_slice(self.of(i));
                });
        });
        Ok(Csr { offsets, indices })
    }

    /// Brings every list into [`ListOrder::Ascending`]. Where another backend wrote lists that overlap,
    /// what they hold afterwards is unspecified.
    pub fn sort(&mut self) {
        let workers = self.workers.upgrade();
        let apart = || !self.foreign || self.are_apart();
        let apart = match &workers {
            Some(workers) => workers.install(apart),
            None => apart(),
        };
        if !apart {
            return self.sort_one_by_one();
        }
        let storage = SharedMut::new(&mut self.indices);
        let lists = (&*self.start, &*self.count).into_par_iter();
        let sort = || {
            lists.with_min_len(1 << 10).run(|(&start, &count)| {
                let begin = start as usize;
                // SAFETY: lists lie in the storage and do not overlap: those of this crate by
                // construction, those of another backend as was just seen.
                unsafe { storage.slice_mut(begin, begin + count as usize) }.sort_unstable();
            });
        };
        match workers {
            Some(workers) => workers.install(sort),
            None => sort(),
        }
    }

    /// Whether all lists lie in the storage and no two of them overlap.
    fn are_apart(&self) -> bool {
        const BITS: usize = u64::BITS as usize;
        let len = self.indices.len();
        let mut begins: Vec<AtomicU64> = Vec::new();
        if begins.try_reserve_exact(len.div_ceil(BITS)).is_err() {
            // Sorting them one by one needs no proof.
            return false;
        }
        begins.resize_with(len.div_ceil(BITS), AtomicU64::default);
        let apart = AtomicBool::new(true);
        let each = |holds: &(dyn Fn(usize, Option<usize>) -> bool + Sync)| {
            let lists = (&*self.start, &*self.count).into_par_iter();
            lists.with_min_len(1 << 12).run(|(&start, &count)| {
                let begin = start as usize;
                if count > 0 && !holds(begin, begin.checked_add(count as usize)) {
                    apart.store(false, Ordering::Relaxed);
                }
            });
            apart.load(Ordering::Relaxed)
        };
        // Every list marks its first entry; two that begin together are seen here.
        let mark = |begin: usize, end: Option<usize>| {
            end.is_some_and(|end| end <= len) && {
                let bit = 1 << (begin % BITS);
                begins[begin / BITS].fetch_or(bit, Ordering::Relaxed) & bit == 0
            }
        };
        // Then none may have the first entry of another behind its own.
        let alone = |begin: usize, end: Option<usize>| {
            let (first, end) = (begin + 1, end.unwrap_or(begin + 1));
            (first / BITS..end.div_ceil(BITS)).all(|word| {
                let from = first.saturating_sub(word * BITS).min(BITS) as u32;
                let to = (end - word * BITS).min(BITS) as u32;
                let below = |bits: u32| 1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
                begins[word].load(Ordering::Relaxed) & below(to) & !below(from) == 0
            })
        };
        each(&mark) && each(&alone)
    }

    /// Sorts what there is of every list in turn.
    fn sort_one_by_one(&mut self) {
        for (&start, &count) in self.start.iter().zip(self.count.iter()) {
            let begin = start as usize;
            let list = begin.checked_add(count as usize).map(|end| begin..end);
            if let Some(list) = list.and_then(|list| self.indices.get_mut(list)) {
                list.sort_unstable();
            }
        }
    }

    /// Bytes held after a search that finds `pairs` neighbours of `targets` points and writes them
    /// without gaps: what is needed, or what is held already where that is more.
    pub fn bytes_after(&self, targets: usize, pairs: u64) -> u64 {
        let most = |held: usize, needed: u64| needed.max(held as u64);
        size_of::<u64>() as u64 * most(self.start.capacity(), targets as u64)
            + size_of::<u32>() as u64 * most(self.count.capacity(), targets as u64)
            + size_of::<u32>() as u64 * most(self.indices.capacity(), pairs)
    }

    /// Gives back the room behind the last list.
    pub fn shrink(&mut self) {
        let ends = self.start.iter().zip(self.count.iter());
        let end = ends.map(|(&start, &count)| start + u64::from(count)).max();
        self.indices.shrink_to(end.unwrap_or(0) as usize);
        self.start.shrink_to(self.start.len());
        self.count.shrink_to(self.count.len());
    }

    /// Gives back all memory; no lists are left.
    pub fn release(&mut self) {
        let workers = std::mem::take(&mut self.workers);
        *self = Self {
            workers,
            ..Self::default()
        };
    }

    /// Takes lists that another backend has found, into memory that it lends: `fill` writes start and
    /// count of the list of every target, in the caller's order, and all entries, of which there
    /// are `pairs`. Starts and counts that are there before the entries it may have
    /// [checked](Inside::check) meanwhile.
    ///
    /// # Errors
    /// What `lender` and `fill` say, and [`Error::ListsOutside`]; the lists are then empty.
    pub fn receive<L: Lender>(
        &mut self,
        targets: usize,
        pairs: u64,
        lender: &L,
        fill: impl FnOnce(
            &mut [u64],
            &mut [u32],
            &mut [u32],
            Inside,
        ) -> Result<Option<Checked>, L::Error>,
    ) -> Result<(), L::Error> {
        self.forget();
        self.foreign = true;
        self.borrow(targets, pairs as usize, lender)?;
        let entries = &mut self.indices[..pairs as usize];
        let inside = match fill(&mut self.start, &mut self.count, entries, Inside { pairs }) {
            Ok(checked) => {
                checked.unwrap_or_else(|| Inside { pairs }.check(&self.start, &self.count))
            }
            Err(error) => {
                self.forget();
                return Err(error);
            }
        };
        if !inside.0 {
            self.forget();
            return Err(Error::ListsOutside.into());
        }
        self.pairs = pairs;
        Ok(())
    }

    /// Room in lent memory, an eighth more than is needed where it has to be lent anew.
    pub(crate) fn borrow<L: Lender>(
        &mut self,
        targets: usize,
        entries: usize,
        lender: &L,
    ) -> Result<(), L::Error> {
        let roomy = |len: usize| len + len / 8;
        if !self.start.is_lent_with(targets) {
            self.start = Storage::default();
            self.start = lender.starts(roomy(targets))?.into();
        }
        if !self.count.is_lent_with(targets) {
            self.count = Storage::default();
            self.count = lender.words(roomy(targets))?.into();
        }
        if !self.indices.is_lent_with(entries) {
            self.indices = Storage::default();
            self.indices = lender.words(roomy(entries))?.into();
        }
        self.start.resize(targets, "list starts")?;
        self.count.resize(targets, "list counts")?;
        let room = self.indices.capacity().max(entries);
        Ok(self.indices.resize(room, "lists")?)
    }

    /// Gives every target, taken as (its index, its number of neighbours), room for exactly its
    /// list, one list after the other.
    pub(crate) fn lay_out(
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

    /// Starts, counts and the storage, for writing lists that were laid out.
    pub(crate) fn laid_out(&mut self) -> (&[u64], &[u32], &mut [u32]) {
        (&self.start, &self.count, &mut self.indices)
    }

    /// Room for lists of `targets` points with about `expected` neighbours together.
    pub(crate) fn prepare(&mut self, targets: usize, expected: u64) -> Result<(), Error> {
        self.start.resize(targets, "list starts")?;
        self.count.resize(targets, "list counts")?;
        if (self.indices.len() as u64) < expected {
            self.grow(expected, 0)?;
        }
        Ok(())
    }

    /// Gives so many targets lists without entries.
    pub(crate) fn find_none(&mut self, targets: usize) -> Result<(), Error> {
        (self.pairs, self.foreign) = (0, false);
        self.prepare(targets, 0)?;
        self.start.fill(0);
        self.count.fill(0);
        Ok(())
    }

    /// Fills the lists with `write`, which is handed the shared writer of `streams` streams.
    pub(crate) fn fill(
        &mut self,
        streams: usize,
        write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.foreign = false;
        let places = (&mut *self.start, &mut *self.count);
        let written = match written(places, &mut self.indices, streams, write) {
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
        if !written.overflow.is_empty() {
            let base = self.take_in(written.used, written.overflow)?;
            let starts = self.start.iter_mut();
            starts.for_each(|start| *start = base.resolve(*start));
        }
        let counts = || self.count.par_iter().map(|&count| u64::from(count));
        self.pairs =
            self.on_workers(|| counts().with_min_len(1 << 14).combined(|| 0, |a, b| a + b));
        Ok(())
    }

    /// Moves overflow blocks behind the first `used` entries of a grown storage; says where they are
    /// now.
    pub(crate) fn take_in(&mut self, used: u64, overflow: Vec<Block>) -> Result<Moved, Error> {
        let more: u64 = overflow.iter().map(|(_, block)| block.len() as u64).sum();
        if let Err(error) = self.grow(used + more + (used + more) / 8, used) {
            self.forget();
            return Err(error);
        }
        let blocks = overflow.iter().map(|(id, _)| *id as usize + 1);
        let mut base = zeroed(blocks.max().unwrap_or(0), "blocks of neighbour lists")?;
        let mut next = used as usize;
        for (id, block) in &overflow {
            base[*id as usize] = next as u64;
            self.indices[next..next + block.len()].copy_from_slice(block);
            next += block.len();
        }
        Ok(Moved(base))
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
    pub(crate) fn forget(&mut self) {
        self.start.clear();
        self.count.clear();
        self.pairs = 0;
    }
}

/// The entries that lists of another backend have to lie in.
#[derive(Debug)]
pub struct Inside {
    pairs: u64,
}

/// Whether lists lie where they should, starts and counts of which are not written any more.
#[derive(Debug)]
pub struct Checked(bool);

impl Inside {
    /// Looks at all starts and counts, by the workers of the pool that this is called in.
    pub fn check(self, start: &[u64], count: &[u32]) -> Checked {
        let inside = |(&start, &count): (&u64, &u32)| {
            start
                .checked_add(u64::from(count))
                .is_some_and(|end| end <= self.pairs)
        };
        let all = (start, count).into_par_iter().with_min_len(1 << 14);
        Checked(all.map(inside).combined(|| true, |a, b| a && b))
    }
}

/// An overflow block with its number.
pub(crate) type Block = (u64, Vec<u32>);

/// Where overflow blocks have come to lie.
#[derive(Debug, Default)]
pub(crate) struct Moved(Vec<u64>);

impl Moved {
    /// Whether a list was in an overflow block.
    pub(crate) fn is_block(&self, start: u64) -> bool {
        start & OVERFLOW != 0
    }

    /// The start of a list that may have been in an overflow block.
    pub(crate) fn resolve(&self, start: u64) -> u64 {
        match start & OVERFLOW {
            0 => start,
            _ => {
                let id = (start & !OVERFLOW) >> OFFSET_BITS;
                self.0[id as usize] + (start & ((1 << OFFSET_BITS) - 1))
            }
        }
    }
}

/// What workers have written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Entries of the storage that were claimed.
    pub(crate) used: u64,
    /// What did not fit.
    pub(crate) overflow: Vec<Block>,
    /// Entries that there was no memory for.
    pub(crate) failed: Option<u64>,
}

/// Lets `write` fill starts, counts and a storage in `streams` streams.
pub(crate) fn written(
    (start, count): (&mut [u64], &mut [u32]),
    storage: &mut [u32],
    streams: usize,
    write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
) -> Result<Written, Error> {
    let capacity = storage.len() as u64;
    let share = capacity / (CHUNKS_PER_STREAM * streams.max(1) as u64);
    let writer = ListWriter {
        start: SharedMut::new(start),
        count: SharedMut::new(count),
        storage: SharedMut::new(storage),
        capacity,
        chunk: share.clamp(SMALL_CHUNK, CHUNK),
        next: AtomicU64::new(0),
        overflow: Mutex::default(),
        failed: AtomicU64::new(0),
    };
    write(&writer)?;
    let failed = writer.failed.load(Ordering::Relaxed);
    Ok(Written {
        used: writer.next.load(Ordering::Relaxed).min(capacity),
        overflow: (writer.overflow.into_inner()).unwrap_or_else(PoisonError::into_inner),
        failed: (failed > 0).then_some(failed),
    })
}

/// `room` zeros, straight from the system so that untouched pages cost nothing.
fn entries(room: u64) -> Result<Vec<u32>, Error> {
    Ok(zeroed(room as usize, "neighbour lists")?)
}

pub(crate) fn out_of_memory(entries: u64) -> Error {
    Error::OutOfMemory {
        bytes: (entries as usize).saturating_mul(size_of::<u32>()),
        what: "neighbour lists",
    }
}

/// Entries ahead of the last list that are fetched before they are written: far enough for memory
/// to answer, near enough to stay in the first-level cache.
const AHEAD: usize = 256;

/// Entries per cache line.
const LINE: usize = 16;

/// What all workers share while lists are written.
pub(crate) struct ListWriter<'a> {
    start: SharedMut<'a, u64>,
    count: SharedMut<'a, u32>,
    storage: SharedMut<'a, u32>,
    capacity: u64,
    /// Entries to claim at a time.
    chunk: u64,
    next: AtomicU64,
    overflow: Mutex<Vec<Block>>,
    /// Entries of an overflow block that could not be allocated.
    failed: AtomicU64,
}

/// A worker's current chunk of the storage, or an overflow block.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Where the next list goes; `left` entries from there on are the worker's.
    to: *mut u32,
    left: usize,
    /// What `start` says about the next list.
    start: u64,
    /// The overflow block that `to` points into, and its number.
    block: Option<(u64, Vec<u32>)>,
}

// SAFETY: `to` points into a part of the storage, or of `block`, that this chunk alone uses.
unsafe impl Send for Chunk {}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            to: std::ptr::null_mut(),
            left: 0,
            start: 0,
            block: None,
        }
    }
}

impl ListWriter<'_> {
    /// Gives `chunk` room for one list of `most` entries; false when memory is short.
    #[cold]
    #[inline(never)]
    fn refill(&self, chunk: &mut Chunk, most: usize) -> bool {
        self.retire(chunk);
        let most = most as u64;
        if self.claim(chunk, self.chunk.max(2 * most)) {
            return true;
        }
        let size = if most > LONG {
            // Most of the storage, perhaps: no more than that is asked for.
            if self.claim(chunk, most) {
                return true;
            }
            most
        } else {
            CHUNK.max(4 * most)
        };
        let Ok(mut block) = entries(size) else {
            self.failed.fetch_max(size, Ordering::Relaxed);
            return false;
        };
        let mut overflow = self.overflow.lock().unwrap_or_else(PoisonError::into_inner);
        let id = overflow.len() as u64;
        if make_room_for_one(&mut overflow, "blocks of neighbour lists").is_err() {
            self.failed.fetch_max(size, Ordering::Relaxed);
            return false;
        }
        overflow.push((id, Vec::new()));
        (chunk.to, chunk.left) = (block.as_mut_ptr(), block.len());
        chunk.start = OVERFLOW | id << OFFSET_BITS;
        chunk.block = Some((id, block));
        true
    }

    /// Gives `chunk` the next `size` entries of the storage; false when they are not there.
    fn claim(&self, chunk: &mut Chunk, size: u64) -> bool {
        let begin = self.next.fetch_add(size, Ordering::Relaxed);
        if begin.saturating_add(size) <= self.capacity {
            // SAFETY: claimed chunks are disjoint and inside the storage.
            let room = unsafe {
                self.storage
                    .slice_mut(begin as usize, (begin + size) as usize)
            };
            (chunk.to, chunk.left, chunk.start) = (room.as_mut_ptr(), room.len(), begin);
            return true;
        }
        // Put the claim back if nobody came after it, so that smaller ones may still fit.
        let _ =
            self.next
                .compare_exchange(begin + size, begin, Ordering::Relaxed, Ordering::Relaxed);
        false
    }

    /// Hands a full overflow block over.
    pub(crate) fn retire(&self, chunk: &mut Chunk) {
        if let Some((id, mut block)) = chunk.block.take() {
            block.truncate(block.len() - chunk.left);
            let mut overflow = self.overflow.lock().unwrap_or_else(PoisonError::into_inner);
            overflow[id as usize] = (id, block);
        }
        *chunk = Chunk::default();
    }

    /// Fetches where the start and count of `target` will be written: far from those of the last
    /// target when the caller's points are in random order.
    #[inline(always)]
    pub(crate) fn expect(&self, target: usize) {
        self.start.expect(target);
        self.count.expect(target);
    }

    /// Room for one list and its scribble, `most` entries together; null when memory is short.
    #[inline(always)]
    pub(crate) fn room(&self, chunk: &mut Chunk, most: usize) -> *mut u32 {
        if chunk.left < most && !self.refill(chunk, most) {
            return std::ptr::null_mut();
        }
        chunk.to
    }

    /// Takes the list of `target`, the `count` entries at [`room`](Self::room).
    ///
    /// # Safety
    /// The room was asked for with at least `count`, there is such a target, and each target is
    /// put once, by one worker.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, chunk: &mut Chunk, target: usize, count: usize) {
        // SAFETY: each target is written once.
        unsafe {
            self.start.write(target, chunk.start);
            self.count.write(target, count as u32);
        }
        chunk.to = chunk.to.wrapping_add(count);
        chunk.left -= count;
        chunk.start += count as u64;
        let mut line = 0;
        while line < count {
            prefetch_for_writing(chunk.to.wrapping_add(AHEAD + line));
            line += LINE;
        }
    }
}
