//! Finds the list of every target of a range and hands it to a sink.
//!
//! For every group the candidates are scanned once per four targets, in either precision. The scan
//! writes tags straight to the lists.
//!
//! The loops for half lists, image vectors and radii are compiled separately
//! ([`crate::candidates::mode`]), so a plain search has none of their operations. Those of the
//! usual modes are part of the loop over groups ([`Here`]) where the sink asks for it, which saves
//! a tenth of the time of short lists; the others are functions of their own ([`Finder`]), which
//! all sinks share.
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
        arrays::Candidates,
        groups::Group,
        mode::{EXACT, HALF, Mode, PROXIES, SHIFTED, has, with_double_mode, with_mode},
        near::Near,
        scan::{Block, ExactSelect, Keep, STREAMS, Select, scan, select},
        scratch::Scratch,
        walk::Walk,
    },
    simd::{
        Simd, Task, WithLevel, at_level, level::SimdLevel, sort::sort_list, vector::Compress,
        with_level,
    },
};
use nearfield_pairs::ListKind;
use std::{marker::PhantomData, ops::Range, ptr, slice};

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
            let listed = Listed { half, sort };
            if !group.is_whole() {
                long_list(S::LEVEL, &mut groups, group, listed, scratch, sink);
                continue;
            }
            let (single, mode) = (walk.double().is_none(), group.mode);
            macro_rules! here {
                ($mode:expr) => {{
                    let find = Here::<S, { $mode }>(PhantomData);
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

/// A scan of a group's candidates for `TARGETS` targets.
trait Find<const TARGETS: usize>: Copy {
    /// Finds the neighbours of the targets from number `first` of the group on; stores them in
    /// `lists`, or counts them only. Returns how many each target has.
    ///
    /// # Safety
    /// The processor has the level, candidates carry what the mode says, and where neighbours are
    /// stored, each list has room for all candidates and [`LANES`](crate::simd::LANES) more.
    unsafe fn find(
        self,
        walk: &Walk<'_>,
        group: &Group,
        first: usize,
        candidates: &Candidates,
        lists: [*mut u32; TARGETS],
        store: bool,
    ) -> [usize; TARGETS];
}

/// A scan that becomes part of the function that it is called in.
#[derive(Clone, Copy)]
struct Here<S, const MODE: Mode>(PhantomData<S>);

impl<S: Simd, const MODE: Mode, const TARGETS: usize> Find<TARGETS> for Here<S, MODE> {
    #[inline(always)]
    unsafe fn find(
        self,
        walk: &Walk<'_>,
        group: &Group,
        first: usize,
        candidates: &Candidates,
        lists: [*mut u32; TARGETS],
        store: bool,
    ) -> [usize; TARGETS] {
        let mut targets = [walk.select_args::<MODE>(group, first); TARGETS];
        for t in 1..TARGETS {
            targets[t] = walk.select_args::<MODE>(group, first + t);
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            if store {
                return select::<S::Single, MODE, TARGETS>(&targets, candidates, lists);
            }
            let lengths = [Length(0); TARGETS];
            let lengths = scan::<S::Single, _, MODE, TARGETS>(&targets, candidates, lengths);
            let mut counts = [0; TARGETS];
            for t in 0..TARGETS {
                counts[t] = lengths[t].0 as usize;
            }
            counts
        }
    }
}

/// A scan that is a function of its own.
#[derive(Clone, Copy)]
pub(super) struct Finder<const TARGETS: usize>(
    unsafe fn(&Walk<'_>, &Group, usize, &Candidates, &mut Found<TARGETS>),
);

/// The neighbours of some targets.
struct Found<const TARGETS: usize> {
    /// Where they are stored.
    lists: [*mut u32; TARGETS],
    /// How many they are.
    counts: [usize; TARGETS],
}

impl<const TARGETS: usize> Find<TARGETS> for Finder<TARGETS> {
    #[inline(always)]
    unsafe fn find(
        self,
        walk: &Walk<'_>,
        group: &Group,
        first: usize,
        candidates: &Candidates,
        lists: [*mut u32; TARGETS],
        _: bool,
    ) -> [usize; TARGETS] {
        let counts = [0; TARGETS];
        let mut found = Found { lists, counts };
        // SAFETY: guaranteed by the caller.
        unsafe { (self.0)(walk, group, first, candidates, &mut found) };
        found.counts
    }
}

impl<const TARGETS: usize> Finder<TARGETS> {
    /// The scan at a level for candidates of a mode, in single or double precision, for half lists
    /// or full ones, which stores neighbours or counts them.
    #[inline(never)]
    pub(super) fn of(level: SimdLevel, mode: Mode, single: bool, half: bool, store: bool) -> Self {
        macro_rules! of_mode {
            ($mode:expr) => {
                match store {
                    true => at_level(level, Scans::<{ $mode }, TARGETS, true>),
                    false => at_level(level, Scans::<{ $mode }, TARGETS, false>),
                }
            };
        }
        match (single, half) {
            (true, false) => with_mode!(mode, MODE => of_mode!(MODE)),
            (true, true) => with_mode!(mode, MODE => of_mode!(MODE | HALF)),
            (false, false) => with_double_mode!(mode, MODE => of_mode!(MODE)),
            (false, true) => with_double_mode!(mode, MODE => of_mode!(MODE | HALF)),
        }
    }

    /// As [`Find::find`].
    ///
    /// # Safety
    /// As for [`Find::find`].
    pub(super) unsafe fn scan(
        self,
        walk: &Walk<'_>,
        group: &Group,
        candidates: &Candidates,
        lists: [*mut u32; TARGETS],
    ) -> [usize; TARGETS] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.find(walk, group, 0, candidates, lists, true) }
    }
}

/// The scans of a mode, one for each level.
struct Scans<const MODE: Mode, const TARGETS: usize, const STORE: bool>;

impl<const MODE: Mode, const TARGETS: usize, const STORE: bool> WithLevel
    for Scans<MODE, TARGETS, STORE>
{
    type Output = Finder<TARGETS>;

    fn at<S: Simd>(self) -> Finder<TARGETS> {
        Finder(scan_at::<S, MODE, TARGETS, STORE>)
    }
}

/// One of the [`Scans`].
///
/// # Safety
/// As for [`Find::find`].
unsafe fn scan_at<S: Simd, const MODE: Mode, const TARGETS: usize, const STORE: bool>(
    walk: &Walk<'_>,
    group: &Group,
    first: usize,
    candidates: &Candidates,
    found: &mut Found<TARGETS>,
) {
    let task = Scan::<'_, '_, MODE, TARGETS, STORE> {
        walk,
        group,
        first,
        candidates,
        found,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { S::call(task) };
}

/// The scan of a group's candidates for some of its targets.
struct Scan<'a, 'w, const MODE: Mode, const TARGETS: usize, const STORE: bool> {
    /// The search.
    walk: &'a Walk<'w>,
    /// The group.
    group: &'a Group,
    /// The first target.
    first: usize,
    /// The candidates, which carry what `MODE` says.
    candidates: &'a Candidates,
    /// What is found.
    found: &'a mut Found<TARGETS>,
}

impl<const MODE: Mode, const TARGETS: usize, const STORE: bool> Task
    for Scan<'_, '_, MODE, TARGETS, STORE>
{
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (here, lists) = (Here::<S, MODE>(PhantomData), self.found.lists);
        // SAFETY: guaranteed by the caller of the finder.
        self.found.counts = unsafe {
            here.find(
                self.walk,
                self.group,
                self.first,
                self.candidates,
                lists,
                STORE,
            )
        };
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
