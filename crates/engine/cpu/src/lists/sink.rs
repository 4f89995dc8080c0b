//! Sinks: destinations of lists as they are found.
//!
//! A search asks a sink for room, writes there, and tells how much it wrote. Four streams are open
//! at a time, see [`crate::candidates::scan`]. The sinks are lists in shared storage
//! ([`StoreLists`]), lengths only ([`CountLists`]), and lists that are shown once ([`Shown`]).
//! Sinks that keep nothing still need room for a list, because vectors store whole; it is reused
//! for every list of a stream.
//!
//! # Null
//!
//! A sink that is refused memory returns a null pointer; the loop then leaves the group, and the
//! refusal becomes the error of the job. No partial list is put.

use super::writer::{Chunk, ListWriter};
use crate::{candidates::scan::STREAMS, simd::LANES};
use nearfield_grid::memory::{self, Shortage};

/// Takes lists as they are found, in [`STREAMS`] streams.
pub(super) trait ListSink {
    /// Most searches use it: it gets loops of its own for the usual modes.
    const IS_USUAL: bool = false;

    /// Says that the list of `target` comes soon.
    #[inline(always)]
    fn expect(&self, _target: usize) {}

    /// Room in a stream for a list of at most `max` entries and [`LANES`] entries that vectors
    /// overwrite behind it, or null when memory is short.
    fn room(&mut self, stream: usize, max: usize) -> *mut u32;

    /// Takes the list of `target`: the first `count` entries of the last [`room`](Self::room) of
    /// the stream.
    ///
    /// # Safety
    /// `count` is at most the `max` of that room, there is such a target, and every target is put
    /// once, by one worker.
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize);

    /// Returns true if the sink wants lengths only.
    fn counts_only(&self) -> bool {
        false
    }

    /// Takes the length of the list of `target`, if the sink wants [lengths
    /// only](Self::counts_only).
    fn count(&mut self, _target: usize, _count: u32) {}

    /// The memory that was refused when a room was null. None for a sink that keeps its own
    /// account.
    fn refused(&mut self) -> Option<Shortage> {
        None
    }
}

/// Writes lists into shared storage.
pub(super) struct StoreLists<'a> {
    /// The writer that all workers share.
    pub(super) writer: &'a ListWriter<'a>,
    /// The worker's chunk for every stream.
    pub(super) chunks: [Chunk; STREAMS],
}

impl ListSink for StoreLists<'_> {
    const IS_USUAL: bool = true;

    #[inline(always)]
    fn expect(&self, target: usize) {
        self.writer.expect(target);
    }

    #[inline(always)]
    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        self.writer.room(&mut self.chunks[stream], max + LANES)
    }

    #[inline(always)]
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.writer.put(&mut self.chunks[stream], target, count) }
    }
}

/// Rooms for the lists of all streams, one list each.
#[derive(Default)]
struct Rooms {
    /// A room per stream.
    lists: [Vec<u32>; STREAMS],
    /// Memory that was refused.
    refused: Option<Shortage>,
}

impl Rooms {
    /// Room for a list of at most `max` entries and a vector, or null when memory is short.
    #[inline(always)]
    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        if self.lists[stream].len() < max + LANES && !self.grow(stream, max + LANES) {
            return std::ptr::null_mut();
        }
        self.lists[stream].as_mut_ptr()
    }

    /// Allocates, out of line; false when memory is short.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, stream: usize, len: usize) -> bool {
        let room = &mut self.lists[stream];
        // Nothing is kept, so old and new need not be held at once.
        *room = Vec::new();
        match memory::zeroed(len.saturating_add(len / 8), "one neighbour list") {
            Ok(fresh) => *room = fresh,
            Err(shortage) => self.refused = Some(shortage),
        }
        room.len() >= len
    }
}

/// Passes the lengths of lists to `put`.
///
/// Used for counts, for the first pass of measured lists, and for the sample of a first search.
pub(super) struct CountLists<F> {
    /// Buffers for lists that are not kept.
    rooms: Rooms,
    /// Takes target and length.
    put: F,
}

impl<F: FnMut(usize, u32)> CountLists<F> {
    /// A sink that shows what it gets to `put`.
    pub(super) fn new(put: F) -> Self {
        Self {
            rooms: Rooms::default(),
            put,
        }
    }
}

impl<F: FnMut(usize, u32)> ListSink for CountLists<F> {
    const IS_USUAL: bool = true;

    #[inline(always)]
    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        self.rooms.room(stream, max)
    }

    #[inline(always)]
    unsafe fn put(&mut self, _: usize, target: usize, count: usize) {
        (self.put)(target, count as u32);
    }

    fn counts_only(&self) -> bool {
        true
    }

    fn count(&mut self, target: usize, count: u32) {
        (self.put)(target, count);
    }

    fn refused(&mut self) -> Option<Shortage> {
        self.rooms.refused.take()
    }
}

/// Lists that are shown to `put` and not kept.
///
/// Used for the second pass of measured lists, which copies each list to its place.
pub(super) struct Shown<F> {
    /// Room for one list per stream.
    rooms: Rooms,
    /// Takes target and list.
    put: F,
}

impl<F: FnMut(usize, &[u32])> Shown<F> {
    pub(super) fn new(put: F) -> Self {
        Self {
            rooms: Rooms::default(),
            put,
        }
    }
}

impl<F: FnMut(usize, &[u32])> ListSink for Shown<F> {
    #[inline(always)]
    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        self.rooms.room(stream, max)
    }

    #[inline(always)]
    unsafe fn put(&mut self, stream: usize, target: usize, count: usize) {
        (self.put)(target, &self.rooms.lists[stream][..count]);
    }

    fn refused(&mut self) -> Option<Shortage> {
        self.rooms.refused.take()
    }
}
