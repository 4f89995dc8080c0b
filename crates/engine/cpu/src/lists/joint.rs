//! Lists that two backends write into one storage, each for its own targets.
//!
//! The other backend writes from the front of the storage on, start and count of its lists where
//! they stay. This backend writes entries behind its room, and starts and counts to arrays of its
//! own, because the other backend copies whole arrays of them. They are merged when its starts and
//! counts have arrived, which may be long before its entries have, or when both backends have
//! ended.
//!
//! # Marks
//!
//! Each backend searches for its own bricks, and marks the targets that it took by the caller's
//! index. The marks, not the plan, decide whose list a target gets: points may have moved since
//! the plan was made, and a target belongs to the backend that searched for its present cell.

use super::{
    neighbor_lists::NeighborLists,
    storage::BufferProvider,
    writer::{Beyond, Block, Bookkeeping, ListWriter, Room, out_of_memory, written},
};
use crate::error::Error;
use nearfield_grid::{memory::make_room, parallel::PoolLoops};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Targets that one thread looks at together when lists are joined.
const MIN_LEN: usize = 1 << 12;

/// This backend's lists, kept between steps for their memory.
#[derive(Debug, Default)]
pub struct ShareOfLists {
    /// First entry of every list, within this backend's room.
    start: Vec<u64>,
    /// Length of every list.
    count: Vec<u32>,
    /// Entries of the room that were claimed.
    used: u64,
    /// Lists that did not fit.
    overflow: Vec<Block>,
    /// Entries of the lists that were merged, once they are.
    merged: Option<u64>,
}

/// Where both backends write.
///
/// Both backends write at the same time, each to its own part.
#[derive(Debug)]
pub struct JointLists<'a> {
    /// First entry of every list of the other backend, in the caller's order.
    pub start: &'a mut [u64],
    /// Lengths of its lists.
    pub count: &'a mut [u32],
    /// Its entries.
    pub theirs: &'a mut [u32],
    /// This backend's entries.
    pub ours: &'a mut [u32],
}

impl ShareOfLists {
    /// Fills `room` by `write`.
    pub(super) fn fill(
        &mut self,
        targets: usize,
        room: &mut [u32],
        streams: usize,
        write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.merged = None;
        /// The name of the memory in messages.
        const WHAT: &str = "a part of the lists";
        make_room(&mut self.start, targets, WHAT)?;
        make_room(&mut self.count, targets, WHAT)?;
        self.start.resize(targets, 0);
        self.count.resize(targets, 0);
        let bookkeeping = Bookkeeping {
            start: &mut self.start,
            count: &mut self.count,
        };
        let beyond = Beyond::Overflow;
        let written = written(bookkeeping, room, Room { streams, beyond }, write)?;
        (self.used, self.overflow) = (written.used, written.overflow);
        written
            .failed
            .map_or(Ok(()), |entries| Err(out_of_memory(entries)))
    }

    /// Writes starts and lengths of the lists of targets that were `taken` to `start` and `count`,
    /// behind the room of `theirs` entries, and clears `taken`. All starts and counts of the other
    /// backend must have arrived.
    ///
    /// If some lists did not find room, nothing is done, and [`NeighborLists::join`] merges all.
    pub fn put(
        &mut self,
        start: &mut [u64],
        count: &mut [u32],
        taken: &[AtomicBool],
        theirs: usize,
    ) {
        if self.overflow.is_empty() {
            let lists = Bookkeeping { start, count };
            self.merged = Some(self.merge(lists, taken, |start| theirs as u64 + start));
        }
    }

    /// Returns true if the lists that were written last have been [merged](Self::put).
    pub fn is_put(&self) -> bool {
        self.merged.is_some()
    }

    /// Merges the lists of `taken` targets, their starts mapped by `start_of`, into `lists`;
    /// returns how many entries they have together.
    fn merge(
        &self,
        lists: Bookkeeping<'_>,
        taken: &[AtomicBool],
        start_of: impl Fn(u64) -> u64 + Sync,
    ) -> u64 {
        let Bookkeeping { start, count } = lists;
        // In the caller's order, as everything here lies.
        let found = self.start.par_iter().zip(&self.count);
        (found.zip(start.par_iter_mut().zip(count)).zip(taken))
            .with_min_len(MIN_LEN)
            .map(|(((&my_start, &my_count), (start, count)), taken)| {
                if !taken.load(Ordering::Relaxed) {
                    return 0;
                }
                taken.store(false, Ordering::Relaxed);
                *start = start_of(my_start);
                *count = my_count;
                u64::from(my_count)
            })
            .combined(|| 0, |a, b| a + b)
    }
}

impl NeighborLists {
    /// Makes room for lists of `targets` points of two backends, `theirs` and `ours` entries, in
    /// memory borrowed from the other backend. There are no lists until [`join`](Self::join).
    ///
    /// # Errors
    /// Those of `provider`.
    pub fn begin_joint<P: BufferProvider>(
        &mut self,
        targets: usize,
        theirs: usize,
        ours: usize,
        provider: &P,
    ) -> Result<JointLists<'_>, P::Error> {
        self.forget();
        self.foreign = true;
        self.borrow(targets, theirs + ours, provider)?;
        let (theirs, rest) = self.indices.split_at_mut(theirs);
        Ok(JointLists {
            start: &mut self.start,
            count: &mut self.count,
            theirs,
            ours: rest,
        })
    }

    /// Puts both backends' lists together. Targets that were `taken` have the lists of `ours`,
    /// unless these have been [merged](ShareOfLists::put) before; all others have those that the
    /// other backend has left in the first `theirs` entries, where it wrote `written` of them.
    /// Clears `taken`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) when lists that did not fit into
    /// the room find none; there are no lists then.
    pub fn join(
        &mut self,
        ours: &mut ShareOfLists,
        taken: &[AtomicBool],
        theirs: usize,
        written: u64,
    ) -> Result<(), Error> {
        let own = match ours.merged.take() {
            Some(own) => own,
            None => {
                let theirs = theirs as u64;
                let overflow = std::mem::take(&mut ours.overflow);
                let moved = if overflow.is_empty() {
                    None
                } else {
                    Some(self.take_in(theirs + ours.used, overflow)?)
                };
                let lists = Bookkeeping {
                    start: &mut self.start,
                    count: &mut self.count,
                };
                // Starts in overflow blocks are resolved to entries of the whole storage.
                ours.merge(lists, taken, |start| match &moved {
                    Some(moved) if moved.is_block(start) => moved.resolve(start),
                    _ => theirs + start,
                })
            }
        };
        self.pairs = written + own;
        Ok(())
    }
}
