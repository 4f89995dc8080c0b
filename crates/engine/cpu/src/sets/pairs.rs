//! Visits the pairs of a range of sorted targets, with image and geometry of each, group by group.
//!
//! Candidates are gathered and tested by the vector loops that find lists; for those that pass,
//! displacement and square are computed once more by the same operations, and the image is that of
//! the piece that the candidate was gathered from. In double precision the pair is decided as lists
//! decide it. So pairs come in the order of lists, at a small multiple of their cost.
//!
//! The loop that tests candidates is the one of lists, which need no geometry: it writes the
//! numbers of the neighbours alone. Their geometry is computed here, once per neighbour and not for
//! the candidates that are none.
//!
//! # Batches
//!
//! A target with a great many images comes in several batches of candidates. The visitor sees it
//! once, with the pairs of all batches.
//!
//! [`PairOfSets::for_each_neighbor`] does the same for one target without buffers.

use super::PairOfSets;
use crate::{
    candidates::{
        aligned::Aligned,
        groups::Group,
        mode::{EXACT, Mode, SHIFTED, Tag, has, with_exact_mode, with_mode},
        near::Near,
        scan::{Numbers, Select, scan},
        scratch::Scratch,
        walk::Walk,
    },
    contract::{Image, difference_f64, rounded, squared, squared_f64},
    error::Error,
    pool::CpuBackend,
    simd::{LANES, Simd, Task, with_level},
};
use nearfield_pairs::{ListKind, Pair};
use std::{
    ops::{ControlFlow, Range},
    slice,
};

/// Takes the pairs of one target after the other.
pub trait VisitPairs {
    /// A sorted target, before its first pair; every target comes once, with or without pairs.
    /// [`ControlFlow::Break`] ends the visit.
    fn target(&mut self, slot: usize) -> ControlFlow<()>;

    /// A neighbour of the target: the caller's index, the image and the geometry, in double
    /// precision rounded to `f32`.
    fn pair(&mut self, source: u32, image: Image, pair: Pair);
}

/// Buffers of a visit, kept for the next.
#[derive(Debug, Default)]
pub struct PairScratch(Scratch);

impl CpuBackend {
    /// Visits the pairs of the sorted targets `slots` on the calling thread: targets in sorted
    /// order, each with all of its pairs. `scratch` may serve any sets and any precision.
    ///
    /// The visitor's methods are compiled into the vector loops, so they should be short and
    /// `#[inline(always)]`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), after some pairs;
    /// [`ErrorKind::Sets`](crate::ErrorKind::Sets),
    /// [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength) and
    /// [`ErrorKind::RadiiInDouble`](crate::ErrorKind::RadiiInDouble) for sets that cannot be
    /// searched so.
    pub fn visit_pairs(
        &self,
        sets: PairOfSets<'_>,
        slots: Range<usize>,
        scratch: &mut PairScratch,
        to: &mut impl VisitPairs,
    ) -> Result<(), Error> {
        let mut walk = Walk::new(sets, Tag::Slot, ListKind::Full)?;
        walk.images = true;
        let scratch = &mut scratch.0;
        let task = VisitTask {
            walk: &walk,
            slots,
            scratch,
            to,
        };
        with_level(self.level(), task);
        scratch
            .failed
            .take()
            .map_or(Ok(()), |shortage| Err(shortage.into()))
    }
}

/// A visit; a [`Task`], so that everything inside is compiled for the level.
pub(crate) struct VisitTask<'a, V> {
    /// The search, whose candidates are tagged by slot.
    pub(crate) walk: &'a Walk<'a>,
    /// The targets.
    pub(crate) slots: Range<usize>,
    /// The worker's buffers, which say if memory was refused.
    pub(crate) scratch: &'a mut Scratch,
    /// Where pairs go.
    pub(crate) to: &'a mut V,
}

impl<V: VisitPairs> Task for VisitTask<'_, V> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, scratch, to) = (self.walk, self.scratch, self.to);
        let mut passed = std::mem::take(&mut scratch.passed);
        let mut groups = walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, scratch) {
            if let Err(shortage) = passed.grow(scratch.candidates.len() + LANES) {
                scratch.failed = Some(shortage);
                break;
            }
            // SAFETY: the caller guarantees the level, the mode is what candidates carry, and there
            // is room for all of them.
            let flow = unsafe {
                if walk.double().is_some() {
                    with_exact_mode!(group.mode, MODE =>
                        walk.visit::<S, MODE>(&group, scratch, &mut passed, to))
                } else {
                    with_mode!(group.mode, MODE =>
                        walk.visit::<S, MODE>(&group, scratch, &mut passed, to))
                }
            };
            if flow.is_break() {
                break;
            }
        }
        scratch.passed = passed;
    }
}

impl Walk<'_> {
    /// Visits the pairs of a group.
    ///
    /// # Safety
    /// The processor has the level `S`, `MODE` says what candidates carry, and `passed` has room
    /// for all of them and [`LANES`] more.
    #[inline(always)]
    unsafe fn visit<S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        scratch: &Scratch,
        passed: &mut Aligned<u32>,
        to: &mut impl VisitPairs,
    ) -> ControlFlow<()> {
        let index = self.sources.points().index();
        for slot in group.slots.clone() {
            if group.begins() {
                to.target(slot)?;
            }
            // SAFETY: guaranteed by the caller.
            let numbers = unsafe { self.neighbors::<S, MODE>(group, slot, scratch, passed) };
            let target = self.targets.points().position(slot);
            let exact = self.exact_select(slot);
            let candidates = &scratch.candidates;
            let (axes, shifts, tags) = (candidates.axes(), candidates.shifts(), candidates.tags());
            let mut pieces = scratch.pieces.iter();
            let (mut image, mut end) = ([0; 3], 0);
            for &number in numbers {
                let number = number as usize;
                if has(MODE, SHIFTED) {
                    // Numbers ascend, so that pieces are passed one after the other.
                    while number >= end {
                        let Some(piece) = pieces.next() else { break };
                        (image, end) = (piece.image, piece.end);
                    }
                }
                let pair = if has(MODE, EXACT) {
                    let (x, s) = (candidates.exact_axes(), candidates.exact_shifts());
                    let source = [x[0][number], x[1][number], x[2][number]];
                    let vector = if has(MODE, SHIFTED) {
                        [s[0][number], s[1][number], s[2][number]]
                    } else {
                        [0.0; 3]
                    };
                    let d = difference_f64(exact.target, source, vector);
                    rounded(d, squared_f64(d))
                } else {
                    let mut d = [0.0; 3];
                    for axis in 0..3 {
                        d[axis] = axes[axis][number] - target[axis];
                        if has(MODE, SHIFTED) {
                            d[axis] += shifts[axis][number];
                        }
                    }
                    Pair { d, d2: squared(d) }
                };
                to.pair(index[tags[number] as usize], image, pair);
            }
        }
        ControlFlow::Continue(())
    }

    /// Numbers of the candidates that are neighbours of a target of the group, ascending.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit).
    #[inline(always)]
    unsafe fn neighbors<'b, S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        slot: usize,
        scratch: &Scratch,
        passed: &'b mut Aligned<u32>,
    ) -> &'b [u32] {
        let select = Select {
            target: self.targets.points().position(slot),
            r2: self.r2(slot),
            own_tag: if self.same_set { slot as u32 } else { u32::MAX },
            own_candidate: group.candidate_of(slot - group.slots.start),
            exact: self.exact_select(slot),
            near: Near::default(),
        };
        let begin = passed.as_mut_ptr();
        let to = [Numbers { end: begin }];
        // SAFETY: guaranteed by the caller; the end lies in the same array as the beginning.
        unsafe {
            let [kept] = scan::<S::Single, _, MODE, 1>(&[select], &scratch.candidates, to);
            slice::from_raw_parts(begin, kept.end.offset_from(begin) as usize)
        }
    }
}
