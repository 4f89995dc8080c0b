//! The scans of a group's candidates for its targets, one for each mode and level.
//!
//! Code that is generic over a scan ([`Find`]) either inlines it ([`Here`]), as the loops over
//! groups do with the usual modes, or calls it through a pointer that is chosen once per group
//! ([`Finder`]). A pointer costs 2 to 3 % of a search of short lists (`docs/measurements/cpu.md`),
//! and saves the code of a scan in every loop that may meet its mode: sixteen modes, three levels,
//! and a sink for each use of lists.

use crate::{
    candidates::{
        arrays::Candidates,
        groups::Group,
        mode::{EXACT, HALF, Mode, PROXIES, has, with_double_mode, with_mode},
        near::Near,
        scan::{Block, ExactSelect, Keep, Select, scan, select},
        walk::Walk,
    },
    simd::{Simd, Task, WithLevel, at_level, level::SimdLevel, vector::Compress},
};
use std::marker::PhantomData;

impl Walk<'_> {
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
pub(super) trait Find<const TARGETS: usize>: Copy {
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

/// A scan that is inlined into its caller.
#[derive(Clone, Copy)]
pub(super) struct Here<S, const MODE: Mode>(PhantomData<S>);

impl<S, const MODE: Mode> Here<S, MODE> {
    /// The scan.
    pub(super) const SCAN: Self = Self(PhantomData);
}

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

/// A scan that is a separate function.
#[derive(Clone, Copy)]
pub(super) struct Finder<const TARGETS: usize>(
    unsafe fn(&Walk<'_>, &Group, usize, &Candidates, &mut TargetLists<TARGETS>),
);

/// The neighbours of some targets.
pub(super) struct TargetLists<const TARGETS: usize> {
    /// Storage of each list.
    lists: [*mut u32; TARGETS],
    /// Length of each list.
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
        let mut found = TargetLists { lists, counts };
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
    found: &mut TargetLists<TARGETS>,
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
    /// The candidates, whose mode is `MODE`.
    candidates: &'a Candidates,
    /// What is found.
    found: &'a mut TargetLists<TARGETS>,
}

impl<const MODE: Mode, const TARGETS: usize, const STORE: bool> Task
    for Scan<'_, '_, MODE, TARGETS, STORE>
{
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (here, lists) = (Here::<S, MODE>::SCAN, self.found.lists);
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
