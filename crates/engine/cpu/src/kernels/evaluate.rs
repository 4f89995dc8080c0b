//! A pair kernel evaluated for the targets of a group.
//!
//! Either for vectors of candidates, those that are not neighbours masked out, or, when the kernel
//! asks for it ([`PairKernel::PACKED`]), for the neighbours alone, which are packed together first.
//! On a lattice with r = 2 spacings 32 of 81 candidates are neighbours, so masking wins where
//! evaluating a pair costs less than packing it.
//!
//! # The masked loop
//!
//! A first loop finds the vectors of candidates that hold a neighbour ([`single`](super::single)).
//! For these, a vector at a time: displacement, squared distance, the kernel, and a select of the
//! contribution or the identity. Everything is straight-line code over local arrays, which the
//! compiler keeps in registers. The mask compares `d² ≤ r²` exactly as the lists do, so a sum has
//! the terms of the list and no others.
//!
//! # The packed loop
//!
//! The scan stores displacement, squared distance and source channels of the neighbours next to
//! each other, and the kernel then runs over neighbours only. It costs a compressing store per
//! channel and vector, and saves the kernel for candidates that are none.
//!
//! # Double precision
//!
//! Displacements and squared distances are computed and compared in `f64`, by half vectors, and
//! rounded to `f32` as they are packed; kernels compute in `f32`. Far from the origin, where `f32`
//! coordinates of neighbours may be equal, the rounded displacement still has 24 bits.

use super::{
    fields::{gather_channels, room, target_value},
    pack::{Pack, pack_at},
    reduce::{
        Batches, MAX_OUTPUTS, MaskedContribution, Neighbors, ReducePacked, Results, reduce_some,
    },
    single::Single,
};
use crate::{
    candidates::{
        arrays::Candidates,
        groups::Group,
        mode::{ANY, Mode, SHIFTED, carries, with_mode},
        near::Near,
        scan::{Channels as Arrays, ExactSelect, PackNeighbors, Select},
        scratch::Scratch,
        walk::Walk,
    },
    simd::{LANES, Simd, Task, TaskOn},
};
use nearfield_pairs::{Channels, Field, PairKernel};
use std::ops::Range;

/// The state that all tasks of a traversal share.
///
/// Channels of sources are sorted once per traversal; target values are read from the caller's
/// arrays once per target.
pub(super) struct Traversal<'a, K: PairKernel> {
    /// The kernel.
    pub(super) kernel: &'a K,
    /// The search.
    pub(super) walk: Walk<'a>,
    /// Target fields.
    pub(super) fields: &'a [Field<'a>],
    /// Source channels in the order of the sorted points.
    pub(super) channels: &'a [Vec<f32>],
    /// Where results go.
    pub(super) results: Results<'a, K::Output>,
}

/// A range of targets.
pub(super) struct TraverseTask<'a, K: PairKernel> {
    /// The traversal.
    pub(super) traversal: &'a Traversal<'a, K>,
    /// The targets.
    pub(super) slots: Range<usize>,
    /// The worker's buffers.
    pub(super) scratch: &'a mut Scratch,
}

impl<K: PairKernel> Task for TraverseTask<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let shared = self.traversal;
        let mut gathered = std::mem::take(&mut self.scratch.gathered);
        let mut packed = std::mem::take(&mut self.scratch.packed);
        let mut batches = Batches::default();
        let mut groups = shared.walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, self.scratch) {
            let candidates = &self.scratch.candidates;
            let stride = (candidates.len() + LANES).next_multiple_of(LANES);
            let double = shared.walk.double().is_some();
            let packs = K::PACKED || double;
            let own = if packs { 4 + K::Source::COUNT } else { 0 };
            let made = room(&mut gathered, K::Source::COUNT, stride)
                .and_then(|gathered| Ok((gathered, room(&mut packed, own, stride)?)));
            let (gathered, packed) = match made {
                Ok(made) => made,
                Err(shortage) => {
                    self.scratch.failed = Some(shortage);
                    break;
                }
            };
            let evaluate = Evaluate {
                shared,
                group: &group,
                candidates,
                gathered,
                packed,
                pack: pack_at(S::LEVEL, group.mode, double),
                batches: &mut batches,
            };
            // SAFETY: the caller guarantees the level.
            unsafe { S::call_on(evaluate, shared.kernel) };
        }
        self.scratch.gathered = gathered;
        self.scratch.packed = packed;
    }
}

/// A group to be evaluated, with room for the channels of its candidates. It is a task of its own,
/// so that the compiler vectorises its loops by themselves.
struct Evaluate<'a, K: PairKernel> {
    /// The traversal.
    shared: &'a Traversal<'a, K>,
    /// The group.
    group: &'a Group,
    /// Its candidates.
    candidates: &'a Candidates,
    /// Source channels of the candidates.
    gathered: Arrays,
    /// Displacement, its square and source channels of the neighbours of one target.
    packed: Arrays,
    /// What packs them.
    pack: Pack,
    /// Sums of earlier batches.
    batches: &'a mut Batches,
}

impl<K: PairKernel> TaskOn<K> for Evaluate<'_, K> {
    #[inline(always)]
    unsafe fn run_on<S: Simd>(self, kernel: &K) {
        if self.candidates.len() == 0 && self.group.is_whole() {
            return self.put_nothing();
        }
        if !self.group.kept {
            let channels = self.shared.channels;
            // SAFETY: the caller guarantees the level; candidates are called by the slots of the
            // source set; there is room for all of them and LANES more.
            unsafe { gather_channels::<S::Single>(channels, self.candidates, self.gathered) };
        }
        let walk = &self.shared.walk;
        let points = walk.targets.points();
        for (k, slot) in self.group.slots.clone().enumerate() {
            let index = points.index()[slot] as usize;
            let value = target_value::<K::Target>(self.shared.fields, index);
            let mut target = Select {
                target: points.position(slot),
                r2: walk.r2(slot),
                own_tag: if walk.same_set { slot as u32 } else { u32::MAX },
                own_candidate: self.group.candidate_of(k),
                exact: ExactSelect::NONE,
                near: Near::default(),
            };
            // SAFETY: the caller guarantees the level; the mode matches the candidates.
            let sums = unsafe {
                // The constant first: the loops below are then compiled only where they are used.
                if K::PACKED || walk.double().is_some() {
                    if walk.double().is_some() {
                        target.exact = walk.exact_select(slot);
                    }
                    self.packed::<S>(kernel, &target, value)
                } else if S::IS_SCALAR {
                    self.masked::<S, ANY>(kernel, &target, value)
                } else {
                    with_mode!(self.group.mode, MODE => self.masked::<S, MODE>(kernel, &target, value))
                }
            };
            let Some(sums) = self.batches.add::<K>(self.group, sums) else {
                continue;
            };
            let value = K::Output::read(|channel| sums[channel]);
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { self.shared.results.put::<K>(index, value) };
        }
    }
}

impl<K: PairKernel> Evaluate<'_, K> {
    /// Hands on the results of targets that nothing is near, such as water far from walls.
    #[inline(always)]
    fn put_nothing(&self) {
        let index = self.shared.walk.targets.points().index();
        for &target in &index[self.group.slots.clone()] {
            let value = K::Output::read(|_| K::REDUCE.identity());
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { self.shared.results.put::<K>(target as usize, value) };
        }
    }

    /// Evaluates the kernel for the neighbours of a target, packed together.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn packed<S: Simd>(
        &self,
        kernel: &K,
        target: &Select,
        value: K::Target,
    ) -> [f32; MAX_OUTPUTS] {
        let to = PackNeighbors {
            gathered: Arrays {
                count: K::Source::COUNT,
                ..self.gathered
            },
            packed: self.packed,
            count: 0,
        };
        let mut sums = [0.0; MAX_OUTPUTS];
        // SAFETY: the caller guarantees the level, which `pack` was chosen by, as by the mode of
        // the candidates; there is room for all of them and LANES more.
        unsafe {
            let reduce = ReducePacked {
                count: (self.pack)(target, self.candidates, to),
                neighbors: &Neighbors::of(self.packed),
                value,
                sums: &mut sums,
            };
            S::call_on(reduce, kernel);
        }
        sums
    }

    /// Evaluates the kernel for the vectors of candidates that hold neighbours, and drops those
    /// that are none. Positions, tags and channels are read with unchecked indices: a bounds check
    /// in the loop would stop the vectoriser.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` is the candidates' mode, or [`ANY`].
    #[inline(always)]
    unsafe fn masked<S: Simd, const MODE: Mode>(
        &self,
        kernel: &K,
        target: &Select,
        value: K::Target,
    ) -> [f32; MAX_OUTPUTS] {
        let (mode, tags) = (self.group.mode, self.candidates.tags());
        let itself = target.own_candidate as u32;
        let single = Single::new(target.target, target.r2, self.candidates);
        let near = |first, end| {
            // SAFETY: the caller guarantees the level and the mode, and the sum asks for as many
            // vectors as a word has bits.
            unsafe { single.near_vectors::<S::Single, MODE>(mode, first, end) }
        };
        // By value, for the compiler to keep them.
        let (gathered, own_tag) = (self.gathered, target.own_tag);
        let contribution = |k: usize| {
            // SAFETY: `k` is below the number of candidates rounded up to whole vectors, and all
            // arrays of the candidates, and the gathered channels, are padded by a vector.
            let ((pair, within), other, source) = unsafe {
                let other = if carries::<MODE>(mode, SHIFTED) {
                    k as u32 != itself
                } else {
                    *tags.get_unchecked(k) != own_tag
                };
                let source = K::Source::read(|channel| *gathered.at(channel, k));
                (single.pair::<MODE>(mode, k), other, source)
            };
            MaskedContribution {
                near: within & other,
                value: kernel.pair(pair, value, source),
            }
        };
        // SAFETY: the caller guarantees the level.
        unsafe { reduce_some::<K, S>(self.candidates.len(), near, contribution) }
    }
}
