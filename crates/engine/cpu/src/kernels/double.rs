//! Kernels evaluated in double precision: neighbours are packed as they are decided in `f64`, and
//! the kernel reads them as it reads packed neighbours of single precision.
//!
//! # Precision
//!
//! Displacements and squared distances are computed and compared in `f64`, and rounded to `f32`
//! when the pair is decided; kernels compute in `f32`. Far from the origin, where `f32`
//! coordinates of neighbours may be equal, the rounded displacement still has 24 bits.
//!
//! # The loop
//!
//! Each target's neighbours are packed by [`Decide`], source by source, and the packed arrays are
//! reduced as in single precision. The group's candidates are gathered once and filtered per
//! target.

use super::{
    evaluate::Traversal,
    fields::{room, target_value},
    reduce::{Batches, MAX_OUTPUTS, Neighbors, ReducePacked},
};
use crate::{
    candidates::{
        aligned::Aligned,
        mode::{SHIFTED, has},
        scan::Channels,
        scratch::Scratch,
    },
    contract::{Image, rounded},
    double::decide::{Decide, Receive},
    simd::{LANES, Simd, Task},
};
use nearfield_pairs::{Channels as _, PairKernel};
use std::ops::Range;

/// Neighbours being packed for a kernel: displacement, its square, and the source channels.
struct Packed<'a> {
    /// Where they go.
    to: Channels,
    /// In the order of the sorted sources.
    channels: &'a [Vec<f32>],
}

impl Receive for Packed<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, number: usize, slot: usize, _: Image, d: [f64; 3], d2: f64) {
        let pair = rounded(d, d2);
        // SAFETY: guaranteed by the caller.
        unsafe {
            for axis in 0..3 {
                self.to.at(axis, number).write(pair.d[axis]);
            }
            self.to.at(3, number).write(pair.d2);
            for (channel, values) in self.channels.iter().enumerate() {
                let value = *values.get_unchecked(slot);
                self.to.at(4 + channel, number).write(value);
            }
        }
    }
}

/// A kernel evaluated for a range of targets.
///
/// Pairs are evaluated from either side in double precision, also for symmetric kernels: deciding
/// costs more than evaluating.
pub(super) struct TraverseInDouble<'a, K: PairKernel> {
    /// The traversal.
    pub(super) traversal: &'a Traversal<'a, K>,
    /// The targets.
    pub(super) slots: Range<usize>,
    /// The worker's buffers.
    pub(super) scratch: &'a mut Scratch,
}

impl<K: PairKernel> Task for TraverseInDouble<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let shared = self.traversal;
        let mut packed = std::mem::take(&mut self.scratch.packed);
        let mut passed = std::mem::take(&mut self.scratch.passed);
        let mut batches = Batches::default();
        let mut groups = shared.walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, self.scratch) {
            let stride = (self.scratch.candidates.len() + LANES).next_multiple_of(LANES);
            let made = passed
                .grow(stride)
                .and_then(|()| room(&mut packed, 4 + K::Source::COUNT, stride));
            let packed = match made {
                Ok(packed) => packed,
                Err(shortage) => {
                    self.scratch.failed = Some(shortage);
                    break;
                }
            };
            let Some(decide) = Decide::new(&shared.walk, &group, self.scratch) else {
                continue;
            };
            let evaluate = EvaluateInDouble {
                shared,
                decide,
                packed,
                passed: &mut passed,
                batches: &mut batches,
            };
            // SAFETY: the caller guarantees the level.
            unsafe { S::call(evaluate) };
        }
        self.scratch.packed = packed;
        self.scratch.passed = passed;
    }
}

/// A group to be evaluated; a task of its own.
struct EvaluateInDouble<'a, K: PairKernel> {
    /// The traversal.
    shared: &'a Traversal<'a, K>,
    /// The group.
    decide: Decide<'a>,
    /// Room for the neighbours of one target.
    packed: Channels,
    /// Room for the numbers of candidates that pass the filter.
    passed: &'a mut Aligned<u32>,
    /// Sums of earlier batches.
    batches: &'a mut Batches,
}

impl<K: PairKernel> Task for EvaluateInDouble<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let index = self.shared.walk.targets.points().index();
        for slot in self.decide.group.slots.clone() {
            let target = index[slot] as usize;
            let value = target_value::<K::Target>(self.shared.fields, target);
            let mut to = Packed {
                to: self.packed,
                channels: self.shared.channels,
            };
            let mut sums = [0.0; MAX_OUTPUTS];
            // SAFETY: the caller guarantees the level; the mode matches the candidates, and
            // `passed` and `packed` have room for all of them and LANES more.
            unsafe {
                let count = if has(self.decide.group.mode, SHIFTED) {
                    (self.decide).target::<S, SHIFTED, _>(slot, self.passed, &mut to)
                } else {
                    self.decide.target::<S, 0, _>(slot, self.passed, &mut to)
                };
                let reduce = ReducePacked {
                    kernel: self.shared.kernel,
                    count,
                    neighbors: &Neighbors::of(self.packed),
                    value,
                    sums: &mut sums,
                };
                S::call(reduce);
            }
            let Some(sums) = self.batches.add::<K>(self.decide.group, sums) else {
                continue;
            };
            let value = K::Output::read(|channel| sums[channel]);
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { self.shared.results.put::<K>(target, value) };
        }
    }
}
