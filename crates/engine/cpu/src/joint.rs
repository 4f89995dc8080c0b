//! Lists that two backends find together, each those of its own targets, in one storage.
//!
//! The other backend writes from the front of the storage on, start and count of its lists where they
//! stay. This backend writes behind, with starts and counts aside, because the other backend may copy whole
//! arrays over them; they are put in their places once it has, which may be long before its entries are
//! there, or when both have ended.

use crate::{
    Error, NeighborLists,
    lists::{Block, ListWriter, out_of_memory, written},
    storage::Lender,
};
use nearfield_grid::{memory::make_room, parallel::PoolLoops};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Targets that one thread looks at together when lists are joined.
const MIN_LEN: usize = 1 << 12;

/// This backend's lists, kept between steps for their memory.
#[derive(Debug, Default)]
pub struct ShareOfLists {
    start: Vec<u64>,
    count: Vec<u32>,
    /// Entries of the room that were claimed.
    used: u64,
    overflow: Vec<Block>,
    /// Entries of the lists that were put in their places, once they are.
    put: Option<u64>,
}

/// Where both backends write.
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
    pub(crate) fn fill(
        &mut self,
        targets: usize,
        room: &mut [u32],
        streams: usize,
        write: impl FnOnce(&ListWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.put = None;
        const WHAT: &str = "a part of the lists";
        make_room(&mut self.start, targets, WHAT)?;
        make_room(&mut self.count, targets, WHAT)?;
        self.start.resize(targets, 0);
        self.count.resize(targets, 0);
        let written = written((&mut self.start, &mut self.count), room, streams, write)?;
        (self.used, self.overflow) = (written.used, written.overflow);
        written
            .failed
            .map_or(Ok(()), |entries| Err(out_of_memory(entries)))
    }

    /// Puts starts and lengths of the lists of targets that were `taken` in their places, behind the room
    /// of `theirs` entries, once all those of the other backend are there. No target is taken any more then.
    ///
    /// Lists that did not find room where they should are left to [`NeighborLists::join`], and so are all
    /// others then.
    pub fn put(&mut self, places: (&mut [u64], &mut [u32]), taken: &[AtomicBool], theirs: usize) {
        if self.overflow.is_empty() {
            self.put = Some(self.put_in(places, taken, |start| theirs as u64 + start));
        }
    }

    /// Whether that has been done since lists were written last.
    pub fn is_put(&self) -> bool {
        self.put.is_some()
    }

    /// The same by what `place` makes of starts; returns how many entries these lists have together.
    fn put_in(
        &self,
        (start, count): (&mut [u64], &mut [u32]),
        taken: &[AtomicBool],
        place: impl Fn(u64) -> u64 + Sync,
    ) -> u64 {
        // In the caller's order, as everything here lies.
        let found = self.start.par_iter().zip(&self.count);
        (found.zip(start.par_iter_mut().zip(count)).zip(taken))
            .with_min_len(MIN_LEN)
            .map(|(((&my_start, &my_count), (start, count)), taken)| {
                if !taken.load(Ordering::Relaxed) {
                    return 0;
                }
                taken.store(false, Ordering::Relaxed);
                *start = place(my_start);
                *count = my_count;
                u64::from(my_count)
            })
            .combined(|| 0, |a, b| a + b)
    }
}

impl NeighborLists {
    /// Room for lists of `targets` points of two backends, `theirs` and `ours` entries, in memory that
    /// the other backend lends. There are no lists until [`join`](Self::join).
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
        self.foreign = true;
        self.borrow(targets, theirs + ours, lender)?;
        let (theirs, rest) = self.indices.split_at_mut(theirs);
        Ok(JointLists {
            start: &mut self.start,
            count: &mut self.count,
            theirs,
            ours: rest,
        })
    }

    /// Puts both backends' lists together: those of `ours` for the targets that were `taken`, unless they
    /// have been [put in their places](ShareOfLists::put) before, all others as the other backend has left
    /// them in the first `theirs` entries, of which it wrote `written`. No target is taken any more then.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when lists that did not fit into the room find none; there are no lists
    /// then.
    pub fn join(
        &mut self,
        ours: &mut ShareOfLists,
        taken: &[AtomicBool],
        (theirs, written): (usize, u64),
    ) -> Result<(), Error> {
        let own = match ours.put.take() {
            Some(own) => own,
            None => {
                let theirs = theirs as u64;
                let overflow = std::mem::take(&mut ours.overflow);
                let moved = match overflow.is_empty() {
                    true => None,
                    false => Some(self.take_in(theirs + ours.used, overflow)?),
                };
                let places = (&mut *self.start, &mut *self.count);
                // Starts in overflow blocks are resolved to places in the whole storage.
                ours.put_in(places, taken, |start| match &moved {
                    Some(moved) if moved.is_block(start) => moved.resolve(start),
                    _ => theirs + start,
                })
            }
        };
        self.pairs = written + own;
        Ok(())
    }
}
