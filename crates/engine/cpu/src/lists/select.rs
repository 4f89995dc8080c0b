//! Finds the list of every target of a range and hands it to a sink.
//!
//! For every group the candidates are scanned once per four targets, in either precision. The scan
//! writes tags straight to the lists.
//!
//! The loops for half lists, image vectors and radii are compiled separately
//! ([`crate::candidates::mode`]), so a plain search has none of their operations. Those of the
//! usual modes are part of the loop over groups ([`Here`]) where the sink asks for it, which saves
//! some hundredths of the time; the others are functions of their own ([`Finder`]), which all sinks
//! share.
//!
//! # Streams
//!
//! The lists of four targets are written at once, each to its own chunk of the storage. A store to
//! the cache line of the store before it waits for that one; four lists in turn hide the wait. The
//! remaining one to three targets of a group go one by one.
//!
//! # Double precision
//!
//! The same loops compare proxies there, with an inner bound in addition to the outer one, or the
//! positions in `f64` that candidates carry ([`crate::candidates::near`]). The modes are compiled
//! for either precision, so that searches in `f32` test no flag.
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
    list_spec::{GroupSelection, ListSpec},
    long_list::long_list,
    neighbor_lists::ListOrder,
    scans::{Find, Finder, Here},
    sink::ListSink,
};
use crate::{
    candidates::{
        groups::Group,
        mode::{PROXIES, SHIFTED},
        scan::STREAMS,
        scratch::Scratch,
        walk::Walk,
    },
    simd::{Simd, Task, level::SimdLevel, sort::sort_list, with_level},
};
use nearfield_pairs::ListKind;
use std::{ops::Range, ptr, slice};

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`. Memory that was refused is noted
    /// in `scratch`.
    pub(super) fn lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        spec: ListSpec,
        sink: &mut impl ListSink,
    ) {
        if self.filter.is_none() {
            self.plain_lists(level, slots, scratch, spec, sink);
        } else if self.is_squared(spec.kind == ListKind::Half && self.same_set) {
            let sort = spec.order == ListOrder::Ascending;
            self.squared_lists(level, slots, scratch, sort, sink);
        } else if self.filter.is_by_name() {
            self.named_lists(level, slots, scratch, spec, sink);
        } else {
            self.filtered_lists(level, slots, scratch, spec, sink);
        }
        if let Some(shortage) = sink.refused() {
            scratch.failed = Some(shortage);
        }
    }

    /// The same without filters.
    pub(super) fn plain_lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        spec: ListSpec,
        sink: &mut impl ListSink,
    ) {
        let task = ListTask {
            walk: self,
            slots,
            scratch,
            half: spec.kind == ListKind::Half && self.same_set,
            ascending: spec.order == ListOrder::Ascending,
            sink,
        };
        with_level(level, task);
    }
}

/// Lists of a range of targets: a task, so that the usual scans are compiled for the level inside.
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
            // Lists that do not ascend by themselves are sorted one by one.
            let mut sort = self.ascending;
            if sort && group.is_whole() {
                match ascend(S::LEVEL, walk, &group, scratch) {
                    Ok(ascends) => sort = !ascends,
                    Err(shortage) => {
                        scratch.failed = Some(shortage);
                        break;
                    }
                }
            }
            let listed = GroupSelection { half, sort };
            if !group.is_whole() {
                long_list(S::LEVEL, &mut groups, group, listed, scratch, sink);
                continue;
            }
            let (single, mode) = (walk.double().is_none(), group.mode);
            macro_rules! here {
                ($mode:expr) => {{
                    let find = Here::<S, { $mode }>::SCAN;
                    walk.put::<S>(find, find, &group, sort, scratch, sink);
                }};
            }
            if L::IS_USUAL && !half && single && mode == 0 {
                here!(0);
            } else if L::IS_USUAL && !half && single && mode == SHIFTED {
                here!(SHIFTED);
            } else if L::IS_USUAL && !half && !single && mode == PROXIES {
                here!(PROXIES);
            } else {
                let store = !sink.counts_only();
                let find = Finder::of(S::LEVEL, mode, single, half, store);
                let one = Finder::of(S::LEVEL, mode, single, half, store);
                walk.put::<S>(find, one, &group, sort, scratch, sink);
            }
        }
    }
}

impl Walk<'_> {
    /// Selects the neighbours of every target of a group, [`STREAMS`] targets at a time.
    #[inline(always)]
    fn put<S: Simd>(
        &self,
        four: impl Find<STREAMS>,
        one: impl Find<1>,
        group: &Group,
        sort: bool,
        scratch: &Scratch,
        sink: &mut impl ListSink,
    ) {
        for &target in &self.targets.points().index()[group.slots.clone()] {
            sink.expect(target as usize);
        }
        let mut k = 0;
        while k + STREAMS <= group.slots.len() {
            self.put_some::<S, STREAMS>(four, group, k, sort, scratch, sink);
            k += STREAMS;
        }
        while k < group.slots.len() {
            self.put_some::<S, 1>(one, group, k, sort, scratch, sink);
            k += 1;
        }
    }

    /// Selects the neighbours of `TARGETS` targets of a group from number `first` on; the group has
    /// as many.
    #[inline(always)]
    fn put_some<S: Simd, const TARGETS: usize>(
        &self,
        find: impl Find<TARGETS>,
        group: &Group,
        first: usize,
        sort: bool,
        scratch: &Scratch,
        sink: &mut impl ListSink,
    ) {
        let candidates = &scratch.candidates;
        let target_of = |t: usize| self.targets.points().index()[group.slots.start + first + t];
        let mut lists = [ptr::null_mut(); TARGETS];
        if sink.counts_only() {
            // SAFETY: nothing is written.
            let counts = unsafe { find.find(self, group, first, candidates, lists, false) };
            for t in 0..TARGETS {
                sink.count(target_of(t) as usize, counts[t] as u32);
            }
            return;
        }
        for t in 0..TARGETS {
            lists[t] = sink.room(t, candidates.len());
            if lists[t].is_null() {
                return;
            }
        }
        // SAFETY: sinks make room for all candidates and a vector; every target lies in one task
        // and is visited once there.
        unsafe {
            let counts = find.find(self, group, first, candidates, lists, true);
            for t in 0..TARGETS {
                if sort {
                    sort_list(S::LEVEL, slice::from_raw_parts_mut(lists[t], counts[t]));
                }
                sink.put(t, target_of(t) as usize, counts[t]);
            }
        }
    }
}
