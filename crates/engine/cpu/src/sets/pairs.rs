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
        mode::{Mode, SHIFTED, Tag, has, with_mode},
        scan::{Numbers, Select, scan},
        scratch::Scratch,
        walk::Walk,
    },
    contract::{Image, rounded, squared},
    double::decide::{Decide, Receive},
    error::Error,
    pool::CpuBackend,
    simd::{LANES, Simd, Task, with_level},
};
use nearfield_grid::memory::{Shortage, make_room};
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
        let mut buffers = Buffers {
            passed: std::mem::take(&mut scratch.passed),
            found: Vec::new(),
        };
        let mut groups = walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, scratch) {
            if let Err(shortage) = buffers.make_room(walk, scratch.candidates.len()) {
                scratch.failed = Some(shortage);
                break;
            }
            // SAFETY: the caller guarantees the level, the mode is what candidates carry, and there
            // is room for all of them.
            let flow = with_mode!(group.mode, MODE => unsafe {
                walk.visit::<S, MODE>(&group, scratch, &mut buffers, to)
            });
            if flow.is_break() {
                break;
            }
        }
        scratch.passed = buffers.passed;
    }
}

/// Memory for a target's candidates on their way to neighbours. It has room for all candidates of
/// the group and a vector more, because vectors are stored whole and compressed.
struct Buffers {
    /// Numbers of candidates that passed.
    passed: Aligned<u32>,
    /// Double precision: sources as they are decided.
    found: Vec<Found>,
}

/// A sorted source, its image and the geometry of the pair.
type Found = (usize, Image, Pair);

/// Fills new memory for pairs; never read.
const NOTHING: Found = (
    0,
    [0; 3],
    Pair {
        d: [0.0; 3],
        d2: 0.0,
    },
);

impl Buffers {
    /// Makes room for the neighbours of a target among `candidates`.
    #[inline(always)]
    fn make_room(&mut self, walk: &Walk<'_>, candidates: usize) -> Result<(), Shortage> {
        self.passed.grow(candidates + LANES)?;
        if walk.double().is_some() && self.found.len() <= candidates {
            make_room(&mut self.found, candidates + 1, "the pairs of a target")?;
            self.found.resize(candidates + 1, NOTHING);
        }
        Ok(())
    }
}

impl Receive for &mut [Found] {
    #[inline(always)]
    unsafe fn put(&mut self, number: usize, slot: usize, image: Image, d: [f64; 3], d2: f64) {
        let pair = rounded(d, d2);
        // SAFETY: guaranteed by the caller.
        unsafe { *self.get_unchecked_mut(number) = (slot, image, pair) };
    }
}

impl Walk<'_> {
    /// Visits the pairs of a group.
    ///
    /// # Safety
    /// The processor has the level `S`, `MODE` says what candidates carry, and `buffers` have room
    /// for all of them.
    #[inline(always)]
    unsafe fn visit<S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        scratch: &Scratch,
        buffers: &mut Buffers,
        to: &mut impl VisitPairs,
    ) -> ControlFlow<()> {
        let index = self.sources.points().index();
        for slot in group.slots.clone() {
            if group.begins() {
                to.target(slot)?;
            }
            if let Some(decide) = Decide::new(self, group, scratch) {
                let mut found = &mut buffers.found[..];
                // SAFETY: guaranteed by the caller; radii of points do not count in double
                // precision, so the mode has no other bit.
                let count = unsafe {
                    if has(MODE, SHIFTED) {
                        decide.target::<S, SHIFTED, _>(slot, &mut buffers.passed, &mut found)
                    } else {
                        decide.target::<S, 0, _>(slot, &mut buffers.passed, &mut found)
                    }
                };
                for &(source, image, pair) in &buffers.found[..count] {
                    to.pair(index[source], image, pair);
                }
                continue;
            }
            // SAFETY: guaranteed by the caller.
            let numbers = unsafe { self.neighbors::<S, MODE>(group, slot, scratch, buffers) };
            let target = self.targets.points().position(slot);
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
                let mut d = [0.0; 3];
                for axis in 0..3 {
                    d[axis] = axes[axis][number] - target[axis];
                    if has(MODE, SHIFTED) {
                        d[axis] += shifts[axis][number];
                    }
                }
                let pair = Pair { d, d2: squared(d) };
                to.pair(index[tags[number] as usize], image, pair);
            }
        }
        ControlFlow::Continue(())
    }

    /// Numbers of the candidates that are neighbours of a target of the group, ascending; in single
    /// precision.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit).
    #[inline(always)]
    unsafe fn neighbors<'b, S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        slot: usize,
        scratch: &Scratch,
        buffers: &'b mut Buffers,
    ) -> &'b [u32] {
        let select = Select {
            target: self.targets.points().position(slot),
            r2: self.r2(slot),
            own_tag: if self.same_set { slot as u32 } else { u32::MAX },
            own_candidate: group.candidate_of(slot - group.slots.start),
        };
        let begin = buffers.passed.as_mut_ptr();
        let to = [Numbers::<true> { end: begin }];
        // SAFETY: guaranteed by the caller; the end lies in the same array as the beginning.
        unsafe {
            let [kept] = scan::<S::Single, _, MODE, 1>(&[select], &scratch.candidates, to);
            slice::from_raw_parts(begin, kept.end.offset_from(begin) as usize)
        }
    }
}
