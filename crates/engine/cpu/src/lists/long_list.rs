//! The list of one target whose candidates come in batches.
//!
//! Around a box much smaller than the radius a target has millions of candidates, which are held a
//! batch at a time. Room for all of them would be many times the length of the list, so the list is
//! counted first and then selected into room of exactly its length. One point in a box 200 times
//! smaller than the radius gives its 33.5 million pairs in less than 400 MB. All other lists are
//! selected in one go, into room for all candidates.
//!
//! # Two walks
//!
//! The first walk counts into scratch that every batch overwrites. The second selects each batch
//! behind the one before. Between them the group is rewound to its first batch, which is gathered
//! again: the grid did not change, so both walks find the same neighbours.
//!
//! # Limits
//!
//! A list of more than 2³² − 1 entries has no count and is refused with the number. Sinks that
//! want lengths only are served by the first walk.

use super::{sink::ListSink, wanted::Listed};
use crate::{
    candidates::{
        arrays::Candidates,
        groups::{Group, Groups},
        mode::{HALF, Mode, with_double_mode, with_mode},
        scan::select,
        scratch::Scratch,
        walk::Walk,
    },
    simd::{LANES, Simd, Task},
};
use nearfield_grid::memory::Shortage;
use std::slice;

/// Hands the list of the target of `group` to `sink`, and walks through all of its batches. The
/// first was gathered into `scratch`.
///
/// # Safety
/// The processor has the level `S`.
#[cold]
#[inline(never)]
pub(super) unsafe fn long_list<S: Simd>(
    groups: &mut Groups<'_>,
    group: Group,
    listed: Listed,
    scratch: &mut Scratch,
    sink: &mut impl ListSink,
) {
    let walk = groups.walk();
    let slot = group.slots.start;
    let mut counted = 0;
    let first = group.clone();
    let walked = for_each_batch::<S>(groups, first, scratch, |batch, scratch| {
        if let Err(shortage) = (scratch.scribble).grow(scratch.candidates.len() + 2 * LANES) {
            scratch.failed = Some(shortage);
            return;
        }
        let to = scratch.scribble.as_mut_ptr();
        // SAFETY: the caller guarantees the level; `scribble` has room for all candidates of a
        // batch, and every batch overwrites the one before.
        counted += unsafe { select_batch::<S>(walk, batch, listed.half, scratch, to) };
    });
    if !walked {
        return;
    }
    let target = walk.targets.points().index()[slot] as usize;
    let Ok(length) = u32::try_from(counted) else {
        scratch.failed = Some(Shortage::of::<u32>(
            counted,
            "one neighbour list, of more than 4294967295 entries",
        ));
        return;
    };
    if sink.counts_only() {
        sink.count(target, length);
        return;
    }
    let to = sink.room(0, counted);
    if to.is_null() {
        return;
    }
    groups.rewind(&group);
    let Some(first) = groups.next(S::LEVEL, scratch) else {
        return;
    };
    let mut found = 0;
    let walked = for_each_batch::<S>(groups, first, scratch, |batch, scratch| {
        // SAFETY: the caller guarantees the level; the sink made room for the whole list and a
        // vector, and all batches together have the neighbours that were counted.
        found += unsafe { select_batch::<S>(walk, batch, listed.half, scratch, to.add(found)) };
    });
    if walked {
        debug_assert_eq!(found, counted, "the sets are borrowed, so nothing changed");
        if listed.sort {
            // SAFETY: the list is the first `found` entries of the room, and written.
            unsafe { slice::from_raw_parts_mut(to, found) }.sort_unstable();
        }
        // SAFETY: the target is put once, here.
        unsafe { sink.put(0, target, found) };
    }
}

/// Calls `each` with the batch that was gathered into `scratch` and with all that follow; false
/// where memory was refused.
fn for_each_batch<S: Simd>(
    groups: &mut Groups<'_>,
    mut batch: Group,
    scratch: &mut Scratch,
    mut each: impl FnMut(&Group, &mut Scratch),
) -> bool {
    loop {
        each(&batch, scratch);
        if scratch.failed.is_some() {
            return false;
        }
        if batch.is_last() {
            return true;
        }
        match groups.next(S::LEVEL, scratch) {
            Some(next) => batch = next,
            None => return false,
        }
    }
}

/// A batch of one target, selected by functions of the level.
struct SelectBatch<'a, 'b> {
    /// The search.
    walk: &'a Walk<'b>,
    /// The batch.
    batch: &'a Group,
    /// Half lists.
    half: bool,
    /// The worker's buffers, with the candidates.
    scratch: &'a mut Scratch,
    /// Where neighbours go.
    to: *mut u32,
    /// Number of neighbours.
    found: &'a mut usize,
}

/// Writes the neighbours among a batch of candidates to `to` and returns how many they are.
///
/// # Safety
/// The processor has the level `S`, and `to` has room for all neighbours and [`LANES`] more.
unsafe fn select_batch<S: Simd>(
    walk: &Walk<'_>,
    batch: &Group,
    half: bool,
    scratch: &mut Scratch,
    to: *mut u32,
) -> usize {
    let mut found = 0;
    let task = SelectBatch {
        walk,
        batch,
        half,
        scratch,
        to,
        found: &mut found,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { S::call(task) };
    found
}

impl Task for SelectBatch<'_, '_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, batch, to) = (self.walk, self.batch, self.to);
        let candidates = &self.scratch.candidates;
        // SAFETY: the caller guarantees the level and the room; the mode is what the candidates
        // carry.
        let found = unsafe {
            match (walk.double().is_some(), self.half) {
                (false, false) => with_mode!(batch.mode, MODE =>
                    walk.select_batch::<S, MODE>(batch, candidates, to)),
                (false, true) => with_mode!(batch.mode, MODE =>
                    walk.select_batch::<S, { MODE | HALF }>(batch, candidates, to)),
                (true, false) => with_double_mode!(batch.mode, MODE =>
                    walk.select_batch::<S, MODE>(batch, candidates, to)),
                (true, true) => with_double_mode!(batch.mode, MODE =>
                    walk.select_batch::<S, { MODE | HALF }>(batch, candidates, to)),
            }
        };
        *self.found = found;
    }
}

impl Walk<'_> {
    /// Writes the neighbours among a batch of candidates to `to` and returns how many they are.
    ///
    /// # Safety
    /// The processor has the level `S`, `to` has room for all neighbours and [`LANES`] more, and
    /// `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn select_batch<S: Simd, const MODE: Mode>(
        &self,
        batch: &Group,
        candidates: &Candidates,
        to: *mut u32,
    ) -> usize {
        let args = [self.select_args::<MODE>(batch, 0)];
        // SAFETY: guaranteed by the caller.
        let [found] = unsafe { select::<S::Single, MODE, 1>(&args, candidates, [to]) };
        found
    }
}
