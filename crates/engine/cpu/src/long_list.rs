//! The list of one target whose candidates come in batches.
//!
//! Around a box much smaller than the radius a target has millions of candidates, of which a batch at
//! a time is held. Its list is counted first, so that room for exactly the list can be asked for, and
//! then selected into it. All other lists are selected in one go, into room for all candidates.

use crate::{
    double::Decide,
    group::{Group, Groups, Scratch, Walk},
    search::ListSink,
    simd::{HALF, LANES, Mode, SHIFTED, Simd, has, with_mode},
};
use nearfield_grid::memory::Shortage;

/// Hands the list of the target of `group` to `sink`, of which the first batch was gathered into
/// `scratch`, and walks through all other batches.
///
/// # Safety
/// The processor has the level `S`, and the mode is what the candidates carry.
#[cold]
#[inline(never)]
pub(crate) unsafe fn long_list<S: Simd>(
    groups: &mut Groups<'_>,
    (group, mode): (Group, Mode),
    half: bool,
    scratch: &mut Scratch,
    sink: &mut impl ListSink,
) {
    let walk = groups.walk();
    let mut counted = 0;
    // SAFETY: the caller's promise. What is counted is written over by the next batch.
    let walked = unsafe {
        for_each_batch::<S>(
            groups,
            (group.clone(), mode),
            scratch,
            |batch, mode, scratch| {
                if let Err(shortage) = (scratch.scribble).grow(scratch.candidates.len() + 2 * LANES)
                {
                    scratch.failed = Some(shortage);
                    return;
                }
                let to = scratch.scribble.as_mut_ptr();
                counted += select::<S>(walk, batch, mode, half, scratch, to);
            },
        )
    };
    if !walked {
        return;
    }
    let target = walk.targets.points().index()[group.slots.start] as usize;
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
    // SAFETY: the caller's promise.
    let Some((group, mode)) = (unsafe { groups.next::<S>(scratch) }) else {
        return;
    };
    let mut found = 0;
    // SAFETY: the caller's promise; the sink made room for the whole list and a vector, of which no
    // batch reaches beyond what was counted. The target is put once, here.
    unsafe {
        let walked = for_each_batch::<S>(groups, (group, mode), scratch, |batch, mode, scratch| {
            found += select::<S>(walk, batch, mode, half, scratch, to.add(found));
        });
        if walked {
            debug_assert_eq!(found, counted, "the sets are borrowed, so nothing changed");
            sink.put(0, target, found);
        }
    }
}

/// Calls `each` with the batch that was gathered into `scratch` and with all that follow; false where
/// memory was refused.
///
/// # Safety
/// The processor has the level `S`.
unsafe fn for_each_batch<S: Simd>(
    groups: &mut Groups<'_>,
    (mut batch, mut mode): (Group, Mode),
    scratch: &mut Scratch,
    mut each: impl FnMut(&Group, Mode, &mut Scratch),
) -> bool {
    loop {
        each(&batch, mode, scratch);
        if scratch.failed.is_some() {
            return false;
        }
        if batch.is_last() {
            return true;
        }
        // SAFETY: the caller's promise.
        match unsafe { groups.next::<S>(scratch) } {
            Some(next) => (batch, mode) = next,
            None => return false,
        }
    }
}

/// A batch of one target, selected by functions of the level.
struct SelectBatch<'a, 'b> {
    walk: &'a Walk<'b>,
    batch: &'a Group,
    mode: Mode,
    half: bool,
    scratch: &'a mut Scratch,
    to: *mut u32,
    found: &'a mut usize,
}

/// Writes the neighbours among a batch of candidates to `to` and returns how many they are.
///
/// # Safety
/// The processor has the level `S`, the mode is what the candidates carry, and `to` has room for all
/// neighbours and [`LANES`] more.
unsafe fn select<S: Simd>(
    walk: &Walk<'_>,
    batch: &Group,
    mode: Mode,
    half: bool,
    scratch: &mut Scratch,
    to: *mut u32,
) -> usize {
    let mut found = 0;
    let task = SelectBatch {
        walk,
        batch,
        mode,
        half,
        scratch,
        to,
        found: &mut found,
    };
    // SAFETY: the caller's promise.
    unsafe { S::call(task) };
    found
}

impl crate::simd::Task for SelectBatch<'_, '_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, batch, to) = (self.walk, self.batch, self.to);
        if walk.double().is_none() {
            let candidates = &self.scratch.candidates;
            let args = [walk.select_args(batch, 0)];
            // SAFETY: the caller's promise; the mode is what the candidates carry.
            let [found] = unsafe {
                with_mode!(self.mode, MODE => match self.half {
                    false => S::select::<MODE, 1>(&args, candidates, [to]),
                    true => S::select::<{ MODE | HALF }, 1>(&args, candidates, [to]),
                })
            };
            *self.found = found;
            return;
        }
        let mut places = std::mem::take(&mut self.scratch.places);
        if let Err(shortage) = places.grow(self.scratch.candidates.len() + LANES) {
            self.scratch.failed = Some(shortage);
            return;
        }
        if let Some(decide) = Decide::new(walk, batch, self.scratch) {
            let slot = batch.slots.start;
            // SAFETY: as above; there are places for all candidates and LANES more.
            *self.found = unsafe {
                match (has(self.mode, SHIFTED), self.half) {
                    (false, false) => decide.list::<S, 0>(slot, &mut places, to),
                    (true, false) => decide.list::<S, SHIFTED>(slot, &mut places, to),
                    (false, true) => decide.list::<S, HALF>(slot, &mut places, to),
                    (true, true) => decide.list::<S, { SHIFTED | HALF }>(slot, &mut places, to),
                }
            };
        }
        self.scratch.places = places;
    }
}
