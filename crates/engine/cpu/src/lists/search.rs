//! Searches on the pool: lists, lists of a share, and counts.
//!
//! A search checks the sets, estimates the room of a first search from a sample, and deals tasks
//! of 1,024 sorted targets out to the workers. Sorted targets of a task are near each other, so
//! the candidates of one group are still in the cache for the next.
//!
//! # First search and later ones
//!
//! A first search knows nothing of the number of pairs. It searches for 512 targets spread over
//! the set, or one in 64 of a small one, and takes the mean times the number of targets, a tenth
//! more, and slack for the chunks of all streams. Later searches use the storage there is. Sets
//! that are empty, or farther apart than the radius reaches, are not searched at all.
//!
//! # Shares
//!
//! A share writes into a room that another backend left for it, behind that backend's own; both
//! run at the same time. See [`super::joint`].

use super::{
    joint::ShareOfLists,
    list_spec::ListSpec,
    neighbor_lists::{ListOrder, NeighborLists},
    sink::{CountLists, StoreLists},
    writer::{Beyond, Chunk, ListWriter, Room, SMALL_CHUNK},
};
use crate::{
    candidates::{scan::STREAMS, walk::Walk},
    error::{Error, check_outputs},
    pool::{CpuBackend, tasks::TASK},
    sets::PairOfSets,
    simd::LANES,
};
use nearfield_grid::SharedMut;
use nearfield_pairs::ListKind;
use std::sync::Mutex;
use tracing::field::Empty;

/// Targets whose neighbours are counted to size the storage of a first search.
const SAMPLE: usize = 512;

/// Targets up to which chunks have few lists.
const FEW: usize = 1 << 14;

/// Share of the targets that are counted for it where these are few…
const SAMPLED_ONE_IN: usize = 64;
/// …and the fewest that are.
const MIN_SAMPLE: usize = 8;

/// Entries that a stream may leave empty at the end of its last chunk, roughly.
const STREAM_SLACK: usize = 4096;

/// Maximum number of entries that lists of few points can need in a storage, with what the streams
/// of a task leave empty: every source in every list once. No bound where points have images, or
/// are many.
///
/// The room that is kept for the ends of chunks would be a thousand times what sets of a few points
/// need, and an engine may have a million pairs of such sets.
fn max_entries(sets: &PairOfSets<'_>) -> u64 {
    let (targets, sources) = (sets.targets.points().len(), sets.sources.points().len());
    if targets > TASK || sources > TASK || sets.targets.lattice().repeats() {
        return u64::MAX;
    }
    let streams = targets.min(STREAMS);
    (2 * targets * sources + streams * SMALL_CHUNK.max(2 * sources + 4 * LANES)) as u64
}

impl CpuBackend {
    /// Writes the neighbours of every target into `lists`, reusing its memory, each list in the
    /// given order.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), after which the lists are empty;
    /// [`ErrorKind::Sets`](crate::ErrorKind::Sets),
    /// [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength),
    /// [`ErrorKind::HalfRule`](crate::ErrorKind::HalfRule) and
    /// [`ErrorKind::RadiiPrecision`](crate::ErrorKind::RadiiPrecision) for sets that cannot be
    /// searched so.
    pub fn search(
        &self,
        sets: PairOfSets<'_>,
        kind: ListKind,
        order: ListOrder,
        lists: &mut NeighborLists,
    ) -> Result<(), Error> {
        let targets = sets.targets.points().len();
        let span = tracing::debug_span!("cpu.search", targets, work = Empty, pairs = Empty);
        let span = span.entered();
        sets.check_whole()?;
        let walk = Walk::of_lists(sets, kind)?;
        walk.record_work(&span);
        if sets.have_no_pair() {
            // Most pairs of many sets: waking workers would take all of the time.
            return lists.find_none(targets);
        }
        let expected = if lists.storage().is_empty() {
            let pairs = self.expected_pairs(&walk, targets, kind)?;
            // Chunks of few targets are hardly longer than what a group claims, so that ends are
            // left empty. Overflow blocks would cost more than the search.
            let ends = if targets <= FEW { pairs / 2 } else { 0 };
            (pairs + ends).min(max_entries(&sets))
        } else {
            0
        };
        lists.work_on(self);
        lists.prepare(targets, expected)?;
        lists.fill(self.room(targets, Beyond::Overflow), |writer| {
            self.write(&walk, ListSpec { kind, order }, writer)
        })?;
        span.record("pairs", lists.pairs());
        Ok(())
    }

    /// As [`search`](Self::search), into at most `max_entries` entries of storage, the gaps between
    /// the chunks of workers included. False if the lists do not fit, or are not expected to; there
    /// are no lists then, and they may still fit [without gaps](Self::measure).
    ///
    /// The expected number of pairs is that of the existing lists, or that of a sample. So the same
    /// search may fit into lists that held others before, and not into fresh ones.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_within(
        &self,
        sets: PairOfSets<'_>,
        kind: ListKind,
        order: ListOrder,
        max_entries: u64,
        lists: &mut NeighborLists,
    ) -> Result<bool, Error> {
        let targets = sets.targets.points().len();
        let span = tracing::debug_span!("cpu.search", targets, work = Empty, pairs = Empty);
        let span = span.entered();
        sets.check_whole()?;
        let walk = Walk::of_lists(sets, kind)?;
        walk.record_work(&span);
        if sets.have_no_pair() {
            lists.find_none(targets)?;
            return Ok(lists.storage().len() as u64 <= max_entries);
        }
        let last = lists.pairs();
        let (least, wanted) = if last > 0 {
            (last + last / 16, last + last / 10 + self.slack() as u64)
        } else {
            let expected = self.expected_pairs(&walk, targets, kind)?;
            (expected, expected)
        };
        if !lists.fit(least, wanted, max_entries)? {
            return Ok(false);
        }
        lists.work_on(self);
        lists.prepare(targets, 0)?;
        let fits = lists.fill(self.room(targets, Beyond::Stop), |writer| {
            self.write(&walk, ListSpec { kind, order }, writer)
        })?;
        span.record("pairs", lists.pairs());
        Ok(fits)
    }

    /// Streams of all workers that a search of `targets` targets has tasks for.
    fn streams(&self, targets: usize) -> usize {
        // Of one task the number of workers need not be known.
        STREAMS
            * match targets.div_ceil(TASK) {
                0 | 1 => 1,
                tasks => self.threads().min(tasks),
            }
    }

    /// Room for the streams of all workers that are at work.
    fn room(&self, targets: usize, beyond: Beyond) -> Room {
        let streams = self.streams(targets);
        Room { streams, beyond }
    }

    /// Writes the lists of all targets of a walk. Chunks are handed on from task to task, so that
    /// no more than one per worker and stream is left part empty.
    ///
    /// The stack of chunks is shared, so a task continues the chunk that the last finished task
    /// left.
    fn write(&self, walk: &Walk<'_>, spec: ListSpec, writer: &ListWriter<'_>) -> Result<(), Error> {
        let chunks: Mutex<Vec<[Chunk; STREAMS]>> = Mutex::default();
        let stack = || chunks.lock().unwrap_or_else(|error| error.into_inner());
        let done = self.for_each_task(walk.targets.points().len(), &|slots, scratch| {
            if writer.is_full() {
                return;
            }
            let chunks = stack().pop().unwrap_or_default();
            let mut sink = StoreLists { writer, chunks };
            walk.lists(self.level(), slots, scratch, spec, &mut sink);
            stack().push(sink.chunks);
        });
        for chunk in stack().iter_mut().flatten() {
            writer.retire(chunk);
        }
        done
    }

    /// Writes the lists of a [share](PairOfSets::share) into `room`, while another backend writes
    /// those of the other targets; [`NeighborLists::join`] puts both together. The order inside a
    /// list is unspecified.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_share(
        &self,
        sets: PairOfSets<'_>,
        kind: ListKind,
        room: &mut [u32],
        found: &mut ShareOfLists,
    ) -> Result<(), Error> {
        let targets = sets.targets.given();
        let span = tracing::debug_span!("cpu.search", targets, work = Empty).entered();
        let walk = Walk::of_lists(sets, kind)?;
        walk.record_work(&span);
        let order = ListOrder::Unspecified;
        found.fill(targets, room, self.streams(targets), |writer| {
            self.write(&walk, ListSpec { kind, order }, writer)
        })
    }

    /// Maximum number of entries that a share of lists leaves empty in the storage it writes to, in
    /// addition to a sixteenth of it: every worker claims room for the longest list it may meet.
    pub fn slack(&self) -> usize {
        self.threads() * STREAMS * STREAM_SLACK
    }

    /// Writes the number of neighbours of every target to `counts`, in the caller's order, without
    /// storing lists.
    ///
    /// # Errors
    /// [`ErrorKind::OutputLength`](crate::ErrorKind::OutputLength) when `counts` does not have one
    /// value per target, [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength) when radii are
    /// not those of the sets, and
    /// [`ErrorKind::RadiiPrecision`](crate::ErrorKind::RadiiPrecision) for radii that were sorted
    /// in another precision.
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); some counts are then those of
    /// before.
    pub fn count(&self, sets: PairOfSets<'_>, counts: &mut [u32]) -> Result<(), Error> {
        let (targets, sorted) = (sets.targets.given(), sets.targets.points().len());
        check_outputs(counts.len(), targets)?;
        let span = tracing::debug_span!("cpu.count", targets, work = Empty).entered();
        let walk = Walk::of_lists(sets, ListKind::Full)?;
        walk.record_work(&span);
        let spec = ListSpec::lengths(ListKind::Full);
        let counts = SharedMut::new(counts);
        self.for_each_task(sorted, &|slots, scratch| {
            let mut sink = CountLists::new(|target, count: u32| {
                // SAFETY: every target lies in one task, and is visited once there.
                unsafe { counts.write(target, count) };
            });
            walk.lists(self.level(), slots, scratch, spec, &mut sink);
        })
    }

    /// Estimates the number of pairs from a sample of the targets, with some room to spare.
    ///
    /// An estimate that is too low costs overflow blocks once; one that is too high costs address
    /// space, as untouched pages take no memory.
    fn expected_pairs(
        &self,
        walk: &Walk<'_>,
        targets: usize,
        kind: ListKind,
    ) -> Result<u64, Error> {
        let mut scratch = self.take_scratch();
        // A single target costs as much as its whole cell, so the sample of few targets is small.
        let sample = (targets / SAMPLED_ONE_IN).clamp(MIN_SAMPLE, SAMPLE);
        let (mut pairs, mut sampled, mut max_candidates) = (0u64, 0u64, 0);
        let mut sink = CountLists::new(|_, count: u32| {
            pairs += u64::from(count);
            sampled += 1;
        });
        for target in (0..targets).step_by((targets / sample).max(1)) {
            let slots = target..target + 1;
            let spec = ListSpec::lengths(kind);
            walk.lists(self.level(), slots, &mut scratch, spec, &mut sink);
            if let Some(shortage) = scratch.failed {
                return Err(shortage.into());
            }
            max_candidates = max_candidates.max(scratch.candidates.len());
        }
        self.keep_scratch(scratch);
        let mean = pairs as f64 / sampled.max(1) as f64;
        let slack = (self.streams(targets) * 24 * (max_candidates + LANES)) as u64;
        Ok((mean * targets as f64 * 1.1) as u64 + slack + (1 << 12))
    }
}
