//! Finds the list of every target of a range and hands it to a sink.
//!
//! For every group the candidates are scanned once per four targets, in either precision. The scan
//! writes tags straight to the lists.
//!
//! The loops for half lists, image vectors and radii are compiled separately
//! ([`crate::candidates::mode`]), so a plain search has none of their operations.
//!
//! # Streams
//!
//! The lists of four targets are written at once, each to its own chunk of the storage. A store to
//! the cache line of the store before it waits for that one; four lists in turn hide the wait. The
//! remaining one to three targets of a group go one by one.
//!
//! # Double precision
//!
//! The same loops compare proxies there, with an inner bound beside the outer one, or the positions
//! in `f64` that candidates carry ([`crate::candidates::near`]). The modes are compiled for either
//! precision, so that searches in `f32` test no flag.
//!
//! # Counting
//!
//! Where only lengths are asked for, nothing is stored: the bits of the masks are counted.
//!
//! # Order
//!
//! The targets of a group are announced to the sink before the first is selected, so that it can
//! prefetch the starts and counts of all, which lie at the caller's indices.

use super::{
    ascending::ascend,
    long_list::long_list,
    neighbor_lists::ListOrder,
    sink::ListSink,
    wanted::{Listed, Wanted},
};
use crate::{
    candidates::{
        groups::Group,
        mode::{EXACT, HALF, Mode, PROXIES, has, with_double_mode, with_mode},
        near::Near,
        scan::{Block, ExactSelect, Keep, STREAMS, Select, scan, select},
        scratch::Scratch,
        walk::Walk,
    },
    simd::{Simd, Task, level::SimdLevel, sort::sort_list, vector::Compress, with_level},
};
use nearfield_pairs::ListKind;
use std::{ops::Range, slice};

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`. Memory that was refused is noted
    /// in `scratch`.
    pub(super) fn lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        wanted: Wanted,
        sink: &mut impl ListSink,
    ) {
        let task = ListTask {
            walk: self,
            slots,
            scratch,
            half: wanted.kind == ListKind::Half && self.same_set,
            ascending: wanted.order == ListOrder::Ascending,
            sink,
        };
        with_level(level, task);
        if let Some(shortage) = sink.refused() {
            scratch.failed = Some(shortage);
        }
    }
}

/// Counts the neighbours and keeps none.
#[derive(Clone, Copy)]
struct Length(u32);

impl<V: Compress> Keep<V> for Length {
    #[inline(always)]
    unsafe fn keep(&mut self, _: &Block<V>, _: [V; 3], _: V, _: V::Order, count: usize) {
        self.0 += count as u32;
    }
}

/// Lists of a range of targets: a task, so that everything inside is compiled for the level.
struct ListTask<'a, L> {
    /// The search.
    walk: &'a Walk<'a>,
    /// The targets.
    slots: Range<usize>,
    /// The worker's buffers.
    scratch: &'a mut Scratch,
    /// Half lists of one set.
    half: bool,
    /// Lists ascend.
    ascending: bool,
    /// Where lists go.
    sink: &'a mut L,
}

impl<L: ListSink> Task for ListTask<'_, L> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, sink, scratch, half) = (self.walk, self.sink, self.scratch, self.half);
        let mut groups = walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, scratch) {
            // SAFETY: the caller guarantees the level; the modes are what the candidates carry.
            unsafe {
                // Lists that do not ascend by themselves are sorted one by one.
                let mut sort = self.ascending;
                if sort && group.is_whole() {
                    match ascend::<S>(walk, &group, scratch) {
                        Ok(ascends) => sort = !ascends,
                        Err(shortage) => {
                            scratch.failed = Some(shortage);
                            break;
                        }
                    }
                }
                if !group.is_whole() {
                    long_list::<S>(&mut groups, group, Listed { half, sort }, scratch, sink);
                } else if walk.double().is_some() && half {
                    with_double_mode!(group.mode, MODE =>
                        walk.put::<S, { MODE | HALF }>(&group, sort, scratch, sink));
                } else if walk.double().is_some() {
                    with_double_mode!(group.mode, MODE =>
                        walk.put::<S, MODE>(&group, sort, scratch, sink));
                } else if half {
                    with_mode!(group.mode, MODE =>
                        walk.put::<S, { MODE | HALF }>(&group, sort, scratch, sink));
                } else {
                    with_mode!(group.mode, MODE =>
                        walk.put::<S, MODE>(&group, sort, scratch, sink));
                }
            }
        }
    }
}

impl Walk<'_> {
    /// Selects the neighbours of every target of a group, [`STREAMS`] targets at a time.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn put<S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        sort: bool,
        scratch: &Scratch,
        sink: &mut impl ListSink,
    ) {
        for &target in &self.targets.points().index()[group.slots.clone()] {
            sink.expect(target as usize);
        }
        let mut k = 0;
        // SAFETY: the caller guarantees the level and the mode.
        unsafe {
            while k + STREAMS <= group.slots.len() {
                self.put_some::<S, MODE, STREAMS>(group, k, sort, scratch, sink);
                k += STREAMS;
            }
            while k < group.slots.len() {
                self.put_some::<S, MODE, 1>(group, k, sort, scratch, sink);
                k += 1;
            }
        }
    }

    /// Selects the neighbours of `TARGETS` targets of a group from number `first` on.
    ///
    /// # Safety
    /// As for [`put`](Self::put); the group has as many.
    #[inline(always)]
    unsafe fn put_some<S: Simd, const MODE: Mode, const TARGETS: usize>(
        &self,
        group: &Group,
        first: usize,
        sort: bool,
        scratch: &Scratch,
        sink: &mut impl ListSink,
    ) {
        let candidates = &scratch.candidates;
        let mut args = [self.select_args::<MODE>(group, first); TARGETS];
        for t in 1..TARGETS {
            args[t] = self.select_args::<MODE>(group, first + t);
        }
        let target_of = |t: usize| self.targets.points().index()[group.slots.start + first + t];
        if sink.counts_only() {
            // SAFETY: the caller guarantees the level and the mode; nothing is written.
            let found = unsafe {
                scan::<S::Single, _, MODE, TARGETS>(&args, candidates, [Length(0); TARGETS])
            };
            for t in 0..TARGETS {
                sink.count(target_of(t) as usize, found[t].0);
            }
            return;
        }
        let mut lists = [std::ptr::null_mut(); TARGETS];
        for t in 0..TARGETS {
            lists[t] = sink.room(t, candidates.len());
            if lists[t].is_null() {
                return;
            }
        }
        // SAFETY: the caller guarantees the level and the mode; sinks make room for all candidates
        // and a vector; every target lies in one task and is visited once there.
        unsafe {
            let counts = select::<S::Single, MODE, TARGETS>(&args, candidates, lists);
            for t in 0..TARGETS {
                if sort {
                    sort_list::<S>(slice::from_raw_parts_mut(lists[t], counts[t]));
                }
                sink.put(t, target_of(t) as usize, counts[t]);
            }
        }
    }

    /// The arguments for selecting the neighbours of target `k` of a group. Lists name candidates
    /// by the caller's index, so that is the name by which a target knows itself.
    #[inline(always)]
    pub(crate) fn select_args<const MODE: Mode>(&self, group: &Group, k: usize) -> Select<'_> {
        let points = self.targets.points();
        let slot = group.slots.start + k;
        Select {
            target: points.position(slot),
            r2: self.r2(slot),
            own_tag: if self.same_set {
                points.index()[slot]
            } else {
                u32::MAX
            },
            own_candidate: group.candidate_of(k),
            exact: if has(MODE, EXACT) {
                self.exact_select(slot)
            } else {
                ExactSelect::NONE
            },
            near: if has(MODE, PROXIES) {
                self.near(slot, group.max_r2)
            } else {
                Near::default()
            },
        }
    }
}
