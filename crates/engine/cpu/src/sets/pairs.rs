//! Visits the pairs of a range of sorted targets, with image and geometry of each, group by group.
//!
//! Candidates are gathered and tested by the vector loops that find lists, four targets at a time.
//! Tags, displacements and squares of those that pass are compressed to arrays side by side, and
//! the visitor sees them target by target, as slices of one image each. So pairs come in the order
//! of lists, and a visitor that copies them has loops without a branch.
//!
//! # Images
//!
//! Where candidates carry image vectors, their numbers are kept too. Numbers ascend, and all
//! candidates of a piece have one image, so the slices of an image end where the numbers pass the
//! end of its piece.
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
        mode::{Mode, SHIFTED, Tag, has, with_exact_mode, with_mode},
        piece::Pieces,
        scan::{GEOMETRY_ARRAYS, Geometry, STREAMS, Select, scan},
        scratch::Scratch,
        walk::Walk,
    },
    contract::Image,
    error::Error,
    pool::CpuBackend,
    simd::{LANES, Simd, Task},
};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::{ListKind, Pair};
use std::ops::{ControlFlow, Range};

/// Neighbours of a target that are seen through one image, as arrays of the same length.
#[derive(Debug, Clone, Copy)]
pub struct PairsOfImage<'a> {
    /// The image.
    pub image: Image,
    /// The caller's index of every source.
    pub sources: &'a [u32],
    /// Displacements from the target along each axis, in double precision rounded to `f32`.
    pub d: [&'a [f32]; 3],
    /// Their squares, rounded alike.
    pub d2: &'a [f32],
}

impl<'a> PairsOfImage<'a> {
    /// Source and geometry of every pair.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Pair)> + use<'a> {
        let [x, y, z] = self.d;
        let d = x.iter().zip(y).zip(z).map(|((&x, &y), &z)| [x, y, z]);
        let pairs = d.zip(self.d2).map(|(d, &d2)| Pair { d, d2 });
        self.sources.iter().copied().zip(pairs)
    }

    /// Source and geometry of a pair.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> (u32, Pair) {
        let d = self.d.map(|d| d[place]);
        let d2 = self.d2[place];
        (self.sources[place], Pair { d, d2 })
    }
}

/// Takes the pairs of one target after the other.
pub trait VisitPairs {
    /// A sorted target, before its first pair; every target comes once, with or without pairs.
    /// [`ControlFlow::Break`] ends the visit.
    fn target(&mut self, slot: usize) -> ControlFlow<()>;

    /// Neighbours of the target, at least one. There may be more of the same image in later calls.
    fn pairs(&mut self, pairs: PairsOfImage<'_>);
}

/// Buffers of a visit, kept for the next.
#[derive(Debug, Default)]
pub struct PairScratch(Scratch);

impl CpuBackend {
    /// Visits the pairs of the sorted targets `slots` on the calling thread: targets in sorted
    /// order, each with all of its pairs in the order of its list. `scratch` may serve any sets and
    /// any precision.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), after some pairs;
    /// [`ErrorKind::Sets`](crate::ErrorKind::Sets),
    /// [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength) and
    /// [`ErrorKind::RadiiPrecision`](crate::ErrorKind::RadiiPrecision) for sets that cannot be
    /// searched so.
    pub fn visit_pairs(
        &self,
        sets: PairOfSets<'_>,
        slots: Range<usize>,
        scratch: &mut PairScratch,
        to: &mut dyn VisitPairs,
    ) -> Result<(), Error> {
        let walk = Walk::with_images(sets)?;
        let scratch = &mut scratch.0;
        walk.visit_pairs(self.level(), slots, scratch, to);
        scratch
            .failed
            .take()
            .map_or(Ok(()), |shortage| Err(shortage.into()))
    }
}

impl<'a> Walk<'a> {
    /// The walk of a visit, whose candidates are called by the caller's index.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn with_images(sets: PairOfSets<'a>) -> Result<Self, Error> {
        let mut walk = Self::new(sets, Tag::Index, ListKind::Full)?;
        walk.images = true;
        Ok(walk)
    }
}

/// A visit; a [`Task`], so that the vector loops are compiled for the level. The visitor is a trait
/// object, so that they are compiled once.
pub(crate) struct VisitTask<'a> {
    /// The search, [with images](Walk::with_images).
    pub(crate) walk: &'a Walk<'a>,
    /// The targets.
    pub(crate) slots: Range<usize>,
    /// The worker's buffers, which say if memory was refused.
    pub(crate) scratch: &'a mut Scratch,
    /// Where pairs go.
    pub(crate) to: &'a mut dyn VisitPairs,
}

impl Task for VisitTask<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, scratch, to) = (self.walk, self.scratch, self.to);
        let mut passed = std::mem::take(&mut scratch.passed);
        let mut groups = walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, scratch) {
            // SAFETY: the caller guarantees the level, and the mode is what candidates carry.
            let visited = unsafe {
                if walk.double().is_some() {
                    with_exact_mode!(group.mode, MODE =>
                        walk.visit::<S, MODE>(&group, scratch, &mut passed, to))
                } else {
                    with_mode!(group.mode, MODE =>
                        walk.visit::<S, MODE>(&group, scratch, &mut passed, to))
                }
            };
            match visited {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(shortage) => {
                    scratch.failed = Some(shortage);
                    break;
                }
            }
        }
        scratch.passed = passed;
    }
}

impl Walk<'_> {
    /// Visits the pairs of a group, [`STREAMS`] targets at a time.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` is the candidates' mode.
    #[inline(always)]
    unsafe fn visit<S: Simd, const MODE: Mode>(
        &self,
        group: &Group,
        scratch: &Scratch,
        passed: &mut Aligned<u32>,
        to: &mut dyn VisitPairs,
    ) -> Result<ControlFlow<()>, Shortage> {
        let (targets, mut first) = (group.slots.len(), 0);
        let at_a_time = targets.min(STREAMS);
        passed.grow(at_a_time * GEOMETRY_ARRAYS * (scratch.candidates.len() + LANES))?;
        while first < targets {
            // SAFETY: guaranteed by the caller; there is room for as many targets.
            let (taken, flow) = unsafe {
                if first + STREAMS <= targets {
                    let flow =
                        self.visit_some::<S, MODE, STREAMS>(group, first, scratch, passed, to);
                    (STREAMS, flow)
                } else {
                    let flow = self.visit_some::<S, MODE, 1>(group, first, scratch, passed, to);
                    (1, flow)
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
            first += taken;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The arguments for target `k` of a group, which knows itself by the name of its candidates.
    #[inline(always)]
    fn visit_args<const MODE: Mode>(&self, group: &Group, k: usize) -> Select<'_> {
        let mut args = self.select_args::<MODE>(group, k);
        if self.tag == Tag::Slot && self.same_set {
            args.own_tag = (group.slots.start + k) as u32;
        }
        args
    }

    /// Visits the pairs of `TARGETS` targets of a group from number `first` on.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit); the group has as many, and in `passed` there is room for all
    /// arrays of theirs.
    #[inline(always)]
    unsafe fn visit_some<S: Simd, const MODE: Mode, const TARGETS: usize>(
        &self,
        group: &Group,
        first: usize,
        scratch: &Scratch,
        passed: &mut Aligned<u32>,
        to: &mut dyn VisitPairs,
    ) -> ControlFlow<()> {
        let stride = scratch.candidates.len() + LANES;
        let mut args = [self.visit_args::<MODE>(group, first); TARGETS];
        let data = passed.as_mut_ptr();
        let mut found = [Geometry::<MODE>::new(data, stride); TARGETS];
        for t in 1..TARGETS {
            args[t] = self.visit_args::<MODE>(group, first + t);
            found[t] = Geometry::new(data.wrapping_add(t * GEOMETRY_ARRAYS * stride), stride);
        }
        // SAFETY: the caller guarantees the level, the mode and the room.
        found = unsafe { scan::<S::Single, _, MODE, TARGETS>(&args, &scratch.candidates, found) };
        for t in 0..TARGETS {
            if group.begins() {
                to.target(group.slots.start + first + t)?;
            }
            // SAFETY: the scan has ended, and the next one begins after the visitor has seen this.
            let (all, numbers) = unsafe {
                let all = PairsOfImage {
                    image: [0; 3],
                    sources: found[t].tags(),
                    d: found[t].displacements(),
                    d2: found[t].squares(),
                };
                (all, found[t].numbers())
            };
            if has(MODE, SHIFTED) {
                show_by_image(all, numbers, &scratch.pieces, to);
            } else if !all.sources.is_empty() {
                to.pairs(all);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Shows pairs image by image. `numbers` are those of the candidates, ascending, and each is below
/// the end of its piece.
fn show_by_image(
    all: PairsOfImage<'_>,
    numbers: &[u32],
    Pieces { pieces, images, .. }: &Pieces,
    to: &mut dyn VisitPairs,
) {
    let mut begin = 0;
    for same in pieces.chunk_by(|a, b| a.image == b.image) {
        let (Some(last), rest @ [_, ..]) = (same.last(), &numbers[begin..]) else {
            break;
        };
        let end = begin + rest.partition_point(|&number| (number as usize) < last.end);
        if begin < end {
            to.pairs(PairsOfImage {
                image: images[last.image].given,
                sources: &all.sources[begin..end],
                d: all.d.map(|d| &d[begin..end]),
                d2: &all.d2[begin..end],
            });
        }
        begin = end;
    }
}
