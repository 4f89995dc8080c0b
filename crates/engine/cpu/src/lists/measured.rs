//! Lists whose lengths are counted before anything is allocated.
//!
//! [`CpuBackend::search`] finds all lists in one pass and leaves gaps between the chunks that its
//! workers claim. Where memory is limited, two passes are taken instead. The first counts, so that
//! the bytes needed are known exactly before any are allocated for entries. The second writes every
//! list to the entries that the counts assign to it. The second pass may also be done for a range
//! of targets at a time, into storage that is used again for the next range; targets come in sorted
//! order, so those of a range are near each other.
//!
//! **Invariant:** the sets stay borrowed between the passes, so both find the same neighbours.
//!
//! # Cost
//!
//! The counting pass does everything but store the indices, so it costs nearly as much as finding
//! the lists.
//!
//! # Rows of a range
//!
//! [`MeasuredLists::write_range`] writes the lists of consecutive sorted targets as
//! [rows](ListRows), into storage that the next range uses again.

use super::{
    list_spec::ListSpec,
    neighbor_lists::{LaidOut, ListOrder, NeighborLists},
    rows::ListRows,
    sink::{CountLists, Shown},
};
use crate::{
    candidates::walk::Walk,
    error::{Error, ErrorKind},
    pool::CpuBackend,
    sets::PairOfSets,
};
use nearfield_grid::{SharedMut, memory::zeroed};
use nearfield_pairs::ListKind;
use std::ops::Range;
use tracing::field::Empty;

/// Lists of a pair of sets whose lengths are known, made by [`CpuBackend::measure`].
///
/// Four bytes per target are held until it is dropped.
#[derive(Debug)]
pub struct MeasuredLists<'a> {
    /// The backend that measured.
    backend: &'a CpuBackend,
    /// The sets.
    sets: PairOfSets<'a>,
    /// Full or half.
    kind: ListKind,
    /// Length of the list of each sorted target.
    lengths: Vec<u32>,
    /// All lengths together.
    pairs: u64,
}

impl CpuBackend {
    /// Counts the neighbours of every target, so that the bytes of the lists are known before
    /// any are written. Holds four bytes per target.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory);
    /// [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength) when radii are not those of the
    /// sets; [`ErrorKind::HalfRule`](crate::ErrorKind::HalfRule) for half lists of one set by a
    /// rule that is not symmetric; and
    /// [`ErrorKind::RadiiPrecision`](crate::ErrorKind::RadiiPrecision) for radii that were sorted
    /// in another precision.
    pub fn measure<'a>(
        &'a self,
        sets: PairOfSets<'a>,
        kind: ListKind,
    ) -> Result<MeasuredLists<'a>, Error> {
        sets.check_whole()?;
        let targets = sets.targets.points().len();
        let span = tracing::debug_span!("cpu.measure", targets, pairs = Empty).entered();
        let mut lengths = zeroed(targets, "the lengths of neighbour lists")?;
        let shared = SharedMut::new(&mut lengths);
        let walk = Walk::of_lists(sets, kind)?;
        let index = sets.targets.points().index();
        self.for_each_task(targets, &|slots, scratch| {
            let mut next = Next::new(index, slots.clone());
            let mut sink = CountLists::new(|target: usize, count: u32| {
                if let Some(slot) = next.slot(target) {
                    // SAFETY: every sorted target is visited once.
                    unsafe { shared.write(slot, count) };
                }
            });
            let spec = ListSpec::lengths(kind);
            walk.lists(self.level(), slots, scratch, spec, &mut sink);
        })?;
        let measured = self.measured_before(sets, kind, lengths)?;
        span.record("pairs", measured.pairs);
        Ok(measured)
    }

    /// Lists that were measured before, by the lengths that
    /// [`into_lengths`](MeasuredLists::into_lengths) returned. The sets must be as they were then;
    /// otherwise lists that are written are cut to these lengths, or end with stale entries.
    ///
    /// # Errors
    /// [`ErrorKind::ListsLength`] for another number of lengths than of targets.
    pub fn measured_before<'a>(
        &'a self,
        sets: PairOfSets<'a>,
        kind: ListKind,
        lengths: Vec<u32>,
    ) -> Result<MeasuredLists<'a>, Error> {
        sets.check_whole()?;
        let (found, expected) = (lengths.len(), sets.targets.points().len());
        if found != expected {
            return Err(ErrorKind::ListsLength { found, expected }.into());
        }
        let pairs = lengths.iter().map(|&length| u64::from(length)).sum();
        Ok(MeasuredLists {
            backend: self,
            sets,
            kind,
            lengths,
            pairs,
        })
    }

    /// Finds the list of every sorted target in `slots` once and calls `put` with both.
    ///
    /// The order of calls is not specified; every slot comes once.
    fn for_each_list(
        &self,
        sets: PairOfSets<'_>,
        spec: ListSpec,
        slots: Range<usize>,
        put: impl Fn(usize, &[u32]) + Sync + Send,
    ) -> Result<(), Error> {
        let walk = Walk::of_lists(sets, spec.kind)?;
        let index = sets.targets.points().index();
        self.for_each_task(slots.len(), &|task, scratch| {
            let task = slots.start + task.start..slots.start + task.end;
            let mut next = Next::new(index, task.clone());
            let mut sink = Shown::new(|target: usize, list: &[u32]| {
                if let Some(slot) = next.slot(target) {
                    put(slot, list);
                }
            });
            walk.lists(self.level(), task, scratch, spec, &mut sink);
        })
    }
}

/// Finds the sorted targets of a task by the caller's indices.
struct Next<'a> {
    /// The caller's index of every slot.
    index: &'a [u32],
    /// The slots of the task.
    task: Range<usize>,
    /// The one that is expected.
    next: usize,
}

impl<'a> Next<'a> {
    /// The sorted targets of `task`.
    fn new(index: &'a [u32], task: Range<usize>) -> Self {
        let next = task.start;
        Self { index, task, next }
    }

    /// The sorted target that has the index `target`. Targets come in sorted order, which makes
    /// this fast, but it is right in any order.
    #[inline(always)]
    fn slot(&mut self, target: usize) -> Option<usize> {
        let is_here = |&slot: &usize| self.index[slot] as usize == target;
        let slots = (self.next..self.task.end).chain(self.task.start..self.next);
        let slot = slots.into_iter().find(is_here)?;
        self.next = slot + 1;
        Some(slot)
    }
}

impl<'a> MeasuredLists<'a> {
    /// The backend that measured.
    pub(super) fn backend(&self) -> &'a CpuBackend {
        self.backend
    }

    /// The sets that were measured.
    pub fn sets(&self) -> PairOfSets<'a> {
        self.sets
    }

    /// Which pairs the lists hold.
    pub fn kind(&self) -> ListKind {
        self.kind
    }

    /// Length of the list of each target, in sorted order.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// These lengths, without the sets.
    pub fn into_lengths(self) -> Vec<u32> {
        self.lengths
    }

    /// All lengths together.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The lists that were measured, in an order.
    fn spec(&self, order: ListOrder) -> ListSpec {
        let kind = self.kind;
        ListSpec { kind, order }
    }

    /// The caller's index of each target, in sorted order.
    pub fn targets(&self) -> &'a [u32] {
        let points = self.sets.targets.points();
        &points.index()[..points.len()]
    }

    /// Writes all lists without gaps, reusing the memory of `lists` where it is large enough.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); the contents of the lists are
    /// then unspecified.
    pub fn write(&self, order: ListOrder, lists: &mut NeighborLists) -> Result<(), Error> {
        let _span = tracing::debug_span!("cpu.write", targets = self.lengths.len()).entered();
        lists.work_on(self.backend);
        self.lay_out(lists)?;
        let index = self.targets();
        let LaidOut {
            starts, storage, ..
        } = lists.laid_out();
        let storage = SharedMut::new(storage);
        let slots = 0..self.lengths.len();
        self.backend
            .for_each_list(self.sets, self.spec(order), slots, |slot, list| {
                let begin = starts[index[slot] as usize] as usize;
                // SAFETY: `lay_out` put the lists one behind the other, as long as they were
                // measured, and every sorted target is visited once.
                let row = unsafe { storage.slice_mut(begin, begin + self.lengths[slot] as usize) };
                fill(row, list);
            })
    }

    /// Gives every target room for exactly its list.
    pub(super) fn lay_out(&self, lists: &mut NeighborLists) -> Result<(), Error> {
        let lengths = self.lengths.iter().copied();
        lists.lay_out(self.targets().iter().copied().zip(lengths), self.pairs)
    }

    /// Writes the lists of the sorted targets `slots`, cut to those there are, into `rows`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); the contents of `rows` are then
    /// unspecified.
    pub fn write_range(
        &self,
        slots: Range<usize>,
        order: ListOrder,
        rows: &mut ListRows,
    ) -> Result<(), Error> {
        let end = slots.end.min(self.lengths.len());
        let slots = slots.start.min(end)..end;
        let _span = tracing::debug_span!("cpu.write", targets = slots.len()).entered();
        rows.lay_out(&self.lengths[slots.clone()])?;
        let (offsets, indices) = rows.laid_out();
        let storage = SharedMut::new(indices);
        self.backend
            .for_each_list(self.sets, self.spec(order), slots.clone(), |slot, list| {
                let row = slot - slots.start;
                let (begin, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                // SAFETY: offsets are monotone and end within the storage, and every sorted
                // target is visited once.
                fill(unsafe { storage.slice_mut(begin, end) }, list);
            })
    }
}

/// Copies a list to `row`, which is as long as the list was when it was measured.
fn fill(row: &mut [u32], list: &[u32]) {
    debug_assert_eq!(
        row.len(),
        list.len(),
        "the sets are borrowed, so nothing changed"
    );
    let len = row.len().min(list.len());
    row[..len].copy_from_slice(&list[..len]);
}
