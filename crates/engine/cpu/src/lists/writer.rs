//! Writes lists from many threads into one storage, each list once.
//!
//! A worker holds a [`Chunk`] of the storage per stream. A list is written behind the last one of
//! its stream, in room for all candidates of the group; when its length is known the chunk moves on
//! by that much. A chunk that is used up is followed by another, claimed by one atomic addition.
//! When the storage is used up, chunks are allocated as overflow blocks, and starts of lists in
//! them carry the block's number until [`MovedBlocks::resolve`] replaces it. Under a memory limit
//! there are no such blocks: the search stops, and the lists are counted first ([`Beyond`]).
//!
//! Storing to memory that is not in a cache waits for it, so the writer prefetches the storage 256
//! entries ahead, and starts and counts when a group begins.
//!
//! **Invariant:** claimed chunks are disjoint, so no entry has two writers; every target is put
//! once, so neither has a start or a count.
//!
//! # Numbers
//!
//! A chunk has 256 to 32,768 entries, by the size of the storage and the number of streams. The
//! longest list a group may have must fit a chunk, so a chunk is at least twice as long as the
//! list it is claimed for. Overflow blocks have at least 32,768 entries, so that a storage that is
//! far too small does not make many.

use crate::error::{Error, ErrorKind};
use nearfield_grid::{
    SharedMut,
    memory::{make_room_for_one, zeroed},
    prefetch_for_writing,
};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Maximum number of entries that a worker claims at a time for one of its streams.
const CHUNK: u64 = 1 << 15;
/// The minimum number.
pub(super) const SMALL_CHUNK: usize = 1 << 8;
/// Between both, chunks are so small that the last chunks of all streams leave at most one part in
/// this many of the storage empty.
const CHUNKS_PER_STREAM: u64 = 16;

/// Entries of a list for which no more room than it needs is asked for.
const LONG: u64 = 1 << 18;

/// Marks a start that counts from the beginning of an overflow block: bit 63, then the block's
/// number, then 40 bits of offset.
const OVERFLOW: u64 = 1 << 63;
/// Bits of an offset in an overflow block.
const OFFSET_BITS: u32 = 40;

/// An overflow block.
#[derive(Debug)]
pub(super) struct Block {
    /// Its number.
    pub(super) id: u64,
    /// Its lists.
    pub(super) entries: Vec<u32>,
}

/// First entry of every overflow block in the storage that they were moved to.
#[derive(Debug, Default)]
pub(super) struct MovedBlocks(pub(super) Vec<u64>);

impl MovedBlocks {
    /// Returns true if a list was in an overflow block.
    pub(super) fn is_block(&self, start: u64) -> bool {
        start & OVERFLOW != 0
    }

    /// The start of a list that may have been in an overflow block.
    pub(super) fn resolve(&self, start: u64) -> u64 {
        if !self.is_block(start) {
            return start;
        }
        let id = (start & !OVERFLOW) >> OFFSET_BITS;
        self.0[id as usize] + (start & ((1 << OFFSET_BITS) - 1))
    }
}

/// The fate of lists that do not fit into the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    /// They go to overflow blocks.
    Overflow,
    /// They are dropped, and the search is of no use.
    Stop,
}

/// Result of [`written`].
#[derive(Debug, Default)]
pub(super) struct WriteOutcome {
    /// Entries of the storage that were claimed.
    pub(super) used: u64,
    /// The blocks of lists that did not fit.
    pub(super) overflow: Vec<Block>,
    /// Number of entries for which memory was refused.
    pub(super) failed: Option<u64>,
    /// Lists were dropped, because they did not fit into the storage.
    pub(super) full: bool,
}

/// Starts and counts of lists, in the caller's order.
pub(super) struct Bookkeeping<'a> {
    /// First entry of every list.
    pub(super) start: &'a mut [u64],
    /// Length of every list.
    pub(super) count: &'a mut [u32],
}

/// How a storage is written to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Streams of all workers together.
    pub(super) streams: usize,
    /// Lists that do not fit.
    pub(super) beyond: Beyond,
}

/// Lets `write` fill starts, counts and a storage.
pub(super) fn written(
    lists: Bookkeeping<'_>,
    storage: &mut [u32],
    Room { streams, beyond }: Room,
    write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
) -> Result<WriteOutcome, Error> {
    let capacity = storage.len() as u64;
    let share = capacity / (CHUNKS_PER_STREAM * streams.max(1) as u64);
    let writer = ListWriter {
        start: SharedMut::new(lists.start),
        count: SharedMut::new(lists.count),
        storage: SharedMut::new(storage),
        capacity,
        chunk: share.clamp(SMALL_CHUNK as u64, CHUNK),
        next: AtomicU64::new(0),
        overflow: Mutex::default(),
        failed: AtomicU64::new(0),
        beyond,
        full: AtomicBool::new(false),
    };
    write(&writer)?;
    let (failed, full) = (writer.failed.load(Ordering::Relaxed), writer.is_full());
    Ok(WriteOutcome {
        used: writer.next.load(Ordering::Relaxed).min(capacity),
        overflow: (writer.overflow.into_inner()).unwrap_or_else(PoisonError::into_inner),
        failed: (failed > 0).then_some(failed),
        full,
    })
}

/// `room` zeros, straight from the system so that untouched pages cost nothing.
pub(super) fn entries(room: u64) -> Result<Vec<u32>, Error> {
    Ok(zeroed(room as usize, "neighbour lists")?)
}

/// The error of memory for `entries` entries.
pub(super) fn out_of_memory(entries: u64) -> Error {
    Error::from(ErrorKind::OutOfMemory {
        bytes: (entries as usize).saturating_mul(size_of::<u32>()),
        what: "neighbour lists",
    })
}

/// Entries ahead of the last list that are fetched before they are written: far enough for memory
/// to answer, near enough to stay in the first-level cache.
const AHEAD: usize = 256;

/// Entries per cache line.
const LINE: usize = 16;

/// The state that all workers share while lists are written.
///
/// Shared by reference; everything that changes is atomic, under a lock, or written by one worker
/// only.
pub(super) struct ListWriter<'a> {
    /// First entry of every list.
    start: SharedMut<'a, u64>,
    /// Length of every list.
    count: SharedMut<'a, u32>,
    /// The storage.
    storage: SharedMut<'a, u32>,
    /// Its entries.
    capacity: u64,
    /// Entries to claim at a time.
    chunk: u64,
    /// The first entry that is not claimed.
    next: AtomicU64,
    /// Overflow blocks that were handed over.
    overflow: Mutex<Vec<Block>>,
    /// Entries of an overflow block that could not be allocated.
    failed: AtomicU64,
    /// The fate of lists that do not fit.
    beyond: Beyond,
    /// Lists did not fit and were dropped.
    full: AtomicBool,
}

/// A worker's current chunk of the storage, or an overflow block.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Where the next list goes; `left` entries from there on are the worker's.
    to: *mut u32,
    /// Entries left.
    left: usize,
    /// The start of the next list.
    start: u64,
    /// The overflow block that `to` points into, and its number.
    block: Option<Block>,
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
    /// Returns true if lists were dropped, so that the search is of no use and may end.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Gives `chunk` room for one list of `max` entries; false when memory is short, or when the
    /// storage is used up and there must be no overflow blocks.
    ///
    /// Out of line: it happens once per some thousands of lists.
    #[cold]
    #[inline(never)]
    fn refill(&self, chunk: &mut Chunk, max: usize) -> bool {
        self.retire(chunk);
        let max = max as u64;
        if self.claim(chunk, self.chunk.max(2 * max)) {
            return true;
        }
        if self.beyond == Beyond::Stop {
            let fits = self.claim(chunk, max);
            self.full.fetch_or(!fits, Ordering::Relaxed);
            return fits;
        }
        let size = if max > LONG {
            // Most of the storage, perhaps: no more than that is asked for.
            if self.claim(chunk, max) {
                return true;
            }
            max
        } else {
            CHUNK.max(4 * max)
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
        overflow.push(Block {
            id,
            entries: Vec::new(),
        });
        (chunk.to, chunk.left) = (block.as_mut_ptr(), block.len());
        chunk.start = OVERFLOW | id << OFFSET_BITS;
        chunk.block = Some(Block { id, entries: block });
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
        // The claim is put back if no other came after it, so that smaller ones may still fit.
        let _ =
            self.next
                .compare_exchange(begin + size, begin, Ordering::Relaxed, Ordering::Relaxed);
        false
    }

    /// Hands a full overflow block over.
    ///
    /// Called when a worker has no more tasks.
    pub(super) fn retire(&self, chunk: &mut Chunk) {
        if let Some(Block { id, mut entries }) = chunk.block.take() {
            entries.truncate(entries.len() - chunk.left);
            let mut overflow = self.overflow.lock().unwrap_or_else(PoisonError::into_inner);
            overflow[id as usize] = Block { id, entries };
        }
        *chunk = Chunk::default();
    }

    /// Prefetches the start and count of `target`, which lie far from those of the last target when
    /// the caller's points are in random order.
    #[inline(always)]
    pub(super) fn expect(&self, target: usize) {
        self.start.expect(target);
        self.count.expect(target);
    }

    /// Room for one list and the vector behind it, `max` entries together; null when memory is
    /// short.
    #[inline(always)]
    pub(super) fn room(&self, chunk: &mut Chunk, max: usize) -> *mut u32 {
        if chunk.left < max && !self.refill(chunk, max) {
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
    pub(super) unsafe fn put(&self, chunk: &mut Chunk, target: usize, count: usize) {
        // SAFETY: the caller guarantees that there is such a target and that it is put once.
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
