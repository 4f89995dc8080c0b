//! Lists that another backend wrote, in memory borrowed from it.
//!
//! A GPU writes starts, counts and entries directly. They are data of a device, so nothing about
//! them is taken for granted: [`Inside::check`] refuses lists that reach beyond the entries,
//! because safe code would read outside the storage, and `are_apart` finds lists that overlap
//! before they are sorted in parallel.
//!
//! # Cost
//!
//! All starts and counts are checked in parallel, while the entries are still being copied. The
//! check for overlaps costs a bit set and two passes, and is done only before sorting lists of
//! another backend.

use super::{
    neighbor_lists::NeighborLists,
    storage::{BufferProvider, Storage},
};
use crate::error::{Error, ErrorKind};
use nearfield_grid::parallel::PoolLoops;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

impl NeighborLists {
    /// Takes lists that another backend has found, into memory borrowed from it. `fill` writes
    /// start and count of the list of every target, in the caller's order, and all `pairs` entries.
    /// Starts and counts that arrive before the entries it may have [checked](Inside::check)
    /// meanwhile.
    ///
    /// # Errors
    /// Those of `provider` and `fill`, and [`ErrorKind::ListsOutside`]; the lists are then empty.
    pub fn receive<P: BufferProvider>(
        &mut self,
        targets: usize,
        pairs: u64,
        provider: &P,
        fill: impl FnOnce(
            &mut [u64],
            &mut [u32],
            &mut [u32],
            Inside,
        ) -> Result<Option<CheckedLists>, P::Error>,
    ) -> Result<(), P::Error> {
        self.forget();
        self.foreign = true;
        self.borrow(targets, pairs as usize, provider)?;
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
            return Err(Error::from(ErrorKind::ListsOutside).into());
        }
        self.pairs = pairs;
        Ok(())
    }

    /// Makes room in borrowed memory. A buffer that is too small is replaced by one that is as
    /// [roomy](BufferProvider::roomy) as the provider wants it.
    pub(super) fn borrow<P: BufferProvider>(
        &mut self,
        targets: usize,
        entries: usize,
        provider: &P,
    ) -> Result<(), P::Error> {
        let roomy = |len: usize| provider.roomy(len);
        if !self.start.is_borrowed_with(targets) {
            self.start = Storage::default();
            self.start = provider.starts(roomy(targets))?.into();
        }
        if !self.count.is_borrowed_with(targets) {
            self.count = Storage::default();
            self.count = provider.words(roomy(targets))?.into();
        }
        if !self.indices.is_borrowed_with(entries) {
            self.indices = Storage::default();
            self.indices = provider.words(roomy(entries))?.into();
        }
        self.start.resize(targets, "list starts")?;
        self.count.resize(targets, "list counts")?;
        let room = self.indices.capacity().max(entries);
        Ok(self.indices.resize(room, "lists")?)
    }

    /// Returns true if all lists lie in the storage and no two of them overlap, or rather false if
    /// that cannot be shown.
    ///
    /// Every list marks its first entry in a bit set. Two lists that begin together find the mark
    /// set; after that, lists that overlap have the first entry of one behind that of the other. A
    /// bit per entry is a thirty-second of the storage, and both passes run in parallel.
    pub(super) fn are_apart(&self) -> bool {
        /// Bits of a word of the set.
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
        // Lists that begin together are seen here.
        let mark = |begin: usize, end: Option<usize>| {
            end.is_some_and(|end| end <= len) && {
                let bit = 1 << (begin % BITS);
                begins[begin / BITS].fetch_or(bit, Ordering::Relaxed) & bit == 0
            }
        };
        // No list may hold the first entry of another behind its own.
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

    /// Sorts every list that lies in the storage, one after the other, so that overlaps do no harm.
    pub(super) fn sort_one_by_one(&mut self) {
        for (&start, &count) in self.start.iter().zip(self.count.iter()) {
            let begin = start as usize;
            let list = begin.checked_add(count as usize).map(|end| begin..end);
            if let Some(list) = list.and_then(|list| self.indices.get_mut(list)) {
                list.sort_unstable();
            }
        }
    }
}

/// The entries that lists of another backend have to lie in.
///
/// A value that the filling function gets and may use up once, so that the check cannot be
/// forgotten: without it the lists are checked afterwards.
#[derive(Debug)]
pub struct Inside {
    /// Number of entries.
    pairs: u64,
}

/// The result of [`Inside::check`]. Starts and counts must not be written after it.
#[derive(Debug)]
pub struct CheckedLists(bool);

impl Inside {
    /// Checks that all lists lie inside the entries, by the workers of the pool that this is called
    /// in.
    pub fn check(self, start: &[u64], count: &[u32]) -> CheckedLists {
        let inside = |(&start, &count): (&u64, &u32)| {
            start
                .checked_add(u64::from(count))
                .is_some_and(|end| end <= self.pairs)
        };
        let all = (start, count).into_par_iter().with_min_len(1 << 14);
        CheckedLists(all.map(inside).combined(|| true, |a, b| a && b))
    }
}
