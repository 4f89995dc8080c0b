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

use super::{list_spec::GroupSelection, scans::Finder, sink::ListSink};
use crate::{
    candidates::{
        groups::{Group, Groups},
        scratch::Scratch,
    },
    simd::{LANES, level::SimdLevel},
};
use nearfield_grid::memory::Shortage;
use std::slice;

/// Hands the list of the target of `group` to `sink`, and walks through all of its batches. The
/// first was gathered into `scratch`.
#[cold]
#[inline(never)]
pub(super) fn long_list(
    level: SimdLevel,
    groups: &mut Groups<'_>,
    group: Group,
    listed: GroupSelection,
    scratch: &mut Scratch,
    sink: &mut impl ListSink,
) {
    let walk = groups.walk();
    let slot = group.slots.start;
    let single = walk.double().is_none();
    let find = |batch: &Group, scratch: &Scratch, to: *mut u32| {
        let finder = Finder::<1>::of(level, batch.mode, single, listed.half, true);
        // SAFETY: the caller has room for the batch, or for the number counted before.
        let [found] = unsafe { finder.scan(walk, batch, &scratch.candidates, [to]) };
        found
    };
    let mut counted = 0;
    let first = group.clone();
    let walked = for_each_batch(level, groups, first, scratch, |batch, scratch| {
        if let Err(shortage) = (scratch.scribble).grow(scratch.candidates.len() + 2 * LANES) {
            scratch.failed = Some(shortage);
            return;
        }
        // `scribble` has room for all candidates of a batch, and every batch overwrites the one
        // before.
        let to = scratch.scribble.as_mut_ptr();
        counted += find(batch, scratch, to);
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
    let Some(first) = groups.next(level, scratch) else {
        return;
    };
    let mut found = 0;
    let walked = for_each_batch(level, groups, first, scratch, |batch, scratch| {
        // The sink made room for the whole list and a vector, and all batches together have the
        // neighbours that were counted.
        found += find(batch, scratch, to.wrapping_add(found));
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
fn for_each_batch(
    level: SimdLevel,
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
        match groups.next(level, scratch) {
            Some(next) => batch = next,
            None => return false,
        }
    }
}
