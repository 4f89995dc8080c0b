//! Kernels evaluated in double precision: neighbours are packed as they are decided, and what is
//! packed is evaluated as in single precision.

use super::{Decide, Receive, rounded};
use crate::{
    aligned::Aligned,
    evaluate::{Batches, MAX_OUTPUTS, Neighbors, ReducePacked},
    group::Scratch,
    simd::{Channels, LANES, Mode, SHIFTED, Simd, Task, has},
    traverse::{Traversal, room, target_value},
};
use nearfield_pairs::{Channels as _, PairKernel};
use std::ops::Range;

/// Neighbours being packed for a kernel: displacement, its square, and the source channels.
struct Packed<'a> {
    to: Channels,
    /// In the order of the sorted sources.
    channels: &'a [Vec<f32>],
}

impl Receive for Packed<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, at: usize, slot: usize, d: [f64; 3], d2: f64) {
        let pair = rounded(d, d2);
        // SAFETY: the caller's promise.
        unsafe {
            for axis in 0..3 {
                self.to.at(axis, at).write(pair.d[axis]);
            }
            self.to.at(3, at).write(pair.d2);
            for (channel, values) in self.channels.iter().enumerate() {
                let value = *values.get_unchecked(slot);
                self.to.at(4 + channel, at).write(value);
            }
        }
    }
}

/// A kernel evaluated for a range of targets.
pub(crate) struct TraverseInDouble<'a, K: PairKernel> {
    pub(crate) traversal: &'a Traversal<'a, K>,
    pub(crate) slots: Range<usize>,
    pub(crate) scratch: &'a mut Scratch,
}

impl<K: PairKernel> Task for TraverseInDouble<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let shared = self.traversal;
        let mut packed = std::mem::take(&mut self.scratch.packed);
        let mut places = std::mem::take(&mut self.scratch.places);
        let mut batches = Batches::default();
        let mut groups = shared.walk.groups(self.slots);
        // SAFETY: the caller's promise.
        while let Some((group, mode)) = unsafe { groups.next::<S>(self.scratch) } {
            let stride = (self.scratch.candidates.len() + LANES).next_multiple_of(LANES);
            let made = places
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
                mode,
                packed,
                places: &mut places,
                batches: &mut batches,
            };
            // SAFETY: the caller's promise.
            unsafe { S::call(evaluate) };
        }
        self.scratch.packed = packed;
        self.scratch.places = places;
    }
}

/// A group to be evaluated.
struct EvaluateInDouble<'a, K: PairKernel> {
    shared: &'a Traversal<'a, K>,
    decide: Decide<'a>,
    mode: Mode,
    packed: Channels,
    places: &'a mut Aligned<u32>,
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
            // SAFETY: the caller's promise; the mode matches the candidates, and there are places
            // and room for all of them and LANES more.
            unsafe {
                let count = match has(self.mode, SHIFTED) {
                    true => self
                        .decide
                        .target::<S, SHIFTED, _>(slot, self.places, &mut to),
                    false => self.decide.target::<S, 0, _>(slot, self.places, &mut to),
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
