//! Lists that two lanes find together, each those of its own targets, in one storage.
//!
//! The other lane writes from the front of the storage on, start and count of its lists where they
//! stay. This lane writes behind, with starts and counts aside, because the other lane may copy whole
//! arrays over them; they are put in their places when both have ended.

use crate::{
    Error, NeighborLists,
    lists::{Block, ListWriter, out_of_memory, written},
    storage::Lender,
};
use rayon::prelude::*;
use std::sync::atomic::AtomicBool;

/// Targets that one thread looks at together when lists are joined.
const MIN_LEN: usize = 1 << 12;

/// This lane's lists, kept between steps for their memory.
#[derive(Debug, Default)]
pub struct ShareOfLists {
    start: Vec<u64>,
    count: Vec<u32>,
    /// Entries of the room that were claimed.
    used: u64,
    overflow: Vec<Block>,
}

/// Where both lanes write.
#[derive(Debug)]
pub struct JointLists<'a> {
    /// First entry of every list of the other lane, in the caller's order.
    pub start: &'a mut [u64],
    /// Lengths of its lists.
    pub count: &'a mut [u32],
    /// Its entries.
    pub theirs: &'a mut [u32],
    /// This lane's entries.
    pub ours: &'a mut [u32],
}

impl ShareOfLists {
    /// Fills `room` by `write`.
    pub(crate) fn fill(
        &mut self,
        targets: usize,
        room: &mut [u32],
        streams: usize,
        write: impl FnOnce(&ListWriter<'_>),
    ) -> Result<(), Error> {
        self.start.resize(targets, 0);
        self.count.resize(targets, 0);
        let written = written((&mut self.start, &mut self.count), room, streams, write);
        (self.used, self.overflow) = (written.used, written.overflow);
        written
            .failed
            .map_or(Ok(()), |entries| Err(out_of_memory(entries)))
    }
}

impl NeighborLists {
    /// Room for lists of `targets` points of two lanes, `theirs` and `ours` entries, in memory that
    /// the other lane lends. There are no lists until [`join`](Self::join).
    ///
    /// # Errors
    /// What `lender` says.
    pub fn begin_joint<L: Lender>(
        &mut self,
        targets: usize,
        (theirs, ours): (usize, usize),
        lender: &L,
    ) -> Result<JointLists<'_>, L::Error> {
        self.forget();
        self.borrow(targets, theirs + ours, lender)?;
        let (theirs, rest) = self.indices.split_at_mut(theirs);
        Ok(JointLists {
            start: &mut self.start,
            count: &mut self.count,
            theirs,
            ours: rest,
        })
    }

    /// Puts both lanes' lists together: those of `ours` for the targets that were `taken`, all others
    /// as the other lane has left them in the first `theirs` entries, of which it wrote `written`. No
    /// target is taken any more then.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when lists that did not fit into the room find none; there are no lists
    /// then.
    pub fn join(
        &mut self,
        ours: &mut ShareOfLists,
        taken: &mut [AtomicBool],
        (theirs, written): (usize, u64),
    ) -> Result<(), Error> {
        let theirs = theirs as u64;
        let overflow = std::mem::take(&mut ours.overflow);
        let moved = match overflow.is_empty() {
            true => None,
            false => Some(self.take_in(theirs + ours.used, overflow)?),
        };
        // In the caller's order, as everything here lies.
        let found = ours.start.par_iter().zip(&ours.count);
        let places = (&mut *self.start).into_par_iter().zip(&mut *self.count);
        let own: u64 = (found.zip(places).zip(taken).with_min_len(MIN_LEN))
            .map(|(((&my_start, &my_count), (start, count)), taken)| {
                if !std::mem::take(taken.get_mut()) {
                    return 0;
                }
                // Starts in overflow blocks are resolved to places in the whole storage.
                *start = match &moved {
                    Some(moved) if moved.is_block(my_start) => moved.resolve(my_start),
                    _ => theirs + my_start,
                };
                *count = my_count;
                u64::from(my_count)
            })
            .sum();
        self.pairs = written + own;
        Ok(())
    }
}
