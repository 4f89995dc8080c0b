//! A pair kernel evaluated for the targets of a group.
//!
//! Either for all candidates, those that are no neighbours masked out, or, when the kernel asks for
//! it, for the neighbours alone, which are packed together first. Both ways contributions are kept
//! in [`LANES`] partial results that are combined in a fixed order at the end, so a sum does not
//! depend on the SIMD level or the number of threads.
//!
//! The loops are written for the compiler's vectoriser: contributions go to a local block (which
//! overlaps with none of the inputs), trip counts are visibly multiples of the vector length, and
//! nothing in them can panic.

use crate::{
    candidates::Candidates,
    group::Group,
    simd::{self, LANES, Select, Simd, Task, squared},
    traverse::{Traversal, target_value},
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{Channels, Pair, PairKernel};
use std::mem::MaybeUninit;

/// Contributions computed before they are added up.
const BLOCK: usize = 4 * LANES;

/// Output channels a kernel may have.
pub(crate) const MOST_OUTPUTS: usize = 16;

/// Where the results of all targets go.
pub(crate) struct Results<'a, T> {
    pub(crate) values: &'a SharedMut<'a, T>,
    /// Whether to combine with what is there instead of overwriting it.
    pub(crate) combine: bool,
}

/// A group to be evaluated, with room for the channels of its candidates.
pub(crate) struct Evaluate<'a, K: PairKernel> {
    pub(crate) shared: &'a Traversal<'a, K>,
    pub(crate) group: &'a Group,
    pub(crate) candidates: &'a Candidates,
    /// Source channels of the candidates.
    pub(crate) gathered: simd::Channels,
    /// Displacement, its square and source channels of the neighbours of one target.
    pub(crate) packed: simd::Channels,
}

impl<K: PairKernel> Task for Evaluate<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        self.gather_channels();
        let walk = &self.shared.walk;
        let points = walk.targets.points();
        let r2 = walk.r2();
        for (k, slot) in self.group.slots.clone().enumerate() {
            let index = points.index()[slot] as usize;
            let value = target_value::<K::Target>(self.shared.fields, index);
            let target = Select {
                target: points.position(slot),
                r2,
                own_tag: if walk.same_set { slot as u32 } else { u32::MAX },
                own_place: self.group.place_of(k),
            };
            // SAFETY: the caller's promise; the flag matches the candidates.
            let sums = unsafe {
                match (K::PACKED, self.candidates.shifted()) {
                    (true, false) => self.packed::<S, false>(&target, value),
                    (true, true) => self.packed::<S, true>(&target, value),
                    (false, false) => self.masked::<false>(&target, value),
                    (false, true) => self.masked::<true>(&target, value),
                }
            };
            self.put(index, sums);
        }
    }
}

impl<K: PairKernel> Evaluate<'_, K> {
    /// Copies the source channels of the candidates next to each other.
    #[inline(always)]
    fn gather_channels(&self) {
        let tags = &self.candidates.tags()[..self.candidates.len()];
        for (channel, sorted) in self.shared.channels.iter().enumerate() {
            for (k, &slot) in tags.iter().enumerate() {
                // SAFETY: tags are sorted points of the source set, and `sorted` has them all;
                // there is room for the channels of all candidates.
                unsafe {
                    let value = *sorted.get_unchecked(slot as usize);
                    self.gathered.at(channel, k).write(value);
                }
            }
        }
    }

    /// Evaluates the kernel for the neighbours of a target, packed together.
    ///
    /// # Safety
    /// The processor has the level `S`, and `SHIFTED` says whether the candidates are.
    #[inline(always)]
    unsafe fn packed<S: Simd, const SHIFTED: bool>(
        &self,
        target: &Select,
        value: K::Target,
    ) -> [f32; MOST_OUTPUTS] {
        let (gathered, packed) = (self.gathered, self.packed);
        // SAFETY: the caller's promises; there is room for all candidates and a vector.
        let count = unsafe { S::pack::<SHIFTED>(target, self.candidates, gathered, packed) };
        for tail in count..count + LANES {
            // SAFETY: there is room for a vector behind the last neighbour.
            unsafe { packed.at(3, tail).write(f32::INFINITY) };
        }
        Self::reduce(count, |k| {
            // SAFETY: `k` is below the count rounded up to whole vectors, which there is room for;
            // what lies behind the count is infinitely far away.
            let (pair, source) = unsafe {
                let d = [*packed.at(0, k), *packed.at(1, k), *packed.at(2, k)];
                let d2 = *packed.at(3, k);
                let source = K::Source::read(|channel| *packed.at(4 + channel, k));
                (Pair { d, d2 }, source)
            };
            Masked {
                near: pair.d2 <= target.r2,
                value: self.shared.kernel.pair(pair, value, source),
            }
        })
    }

    /// Evaluates the kernel for all candidates and drops those that are no neighbours.
    ///
    /// # Safety
    /// `SHIFTED` says whether the candidates are.
    #[inline(always)]
    unsafe fn masked<const SHIFTED: bool>(
        &self,
        target: &Select,
        value: K::Target,
    ) -> [f32; MOST_OUTPUTS] {
        let [x, y, z] = self.candidates.axes();
        let [sx, sy, sz] = self.candidates.shifts();
        let tags = self.candidates.tags();
        let itself = target.own_place as u32;
        Self::reduce(self.candidates.len(), |k| {
            // SAFETY: `k` is below the number of candidates rounded up to whole vectors, and all
            // arrays of the candidates, and the gathered channels, are padded by a vector.
            let (d, source) = unsafe {
                let mut d = [
                    *x.get_unchecked(k) - target.target[0],
                    *y.get_unchecked(k) - target.target[1],
                    *z.get_unchecked(k) - target.target[2],
                ];
                if SHIFTED {
                    d[0] += *sx.get_unchecked(k);
                    d[1] += *sy.get_unchecked(k);
                    d[2] += *sz.get_unchecked(k);
                }
                (d, K::Source::read(|channel| *self.gathered.at(channel, k)))
            };
            let d2 = squared(d);
            let other = match SHIFTED {
                true => k as u32 != itself,
                // SAFETY: as above.
                false => unsafe { *tags.get_unchecked(k) != target.own_tag },
            };
            Masked {
                near: (d2 <= target.r2) & other,
                value: self.shared.kernel.pair(Pair { d, d2 }, value, source),
            }
        })
    }

    /// Combines `contribution(k)` for all k below `count` rounded up to whole vectors.
    #[inline(always)]
    fn reduce(count: usize, contribution: impl Fn(usize) -> Masked<K>) -> [f32; MOST_OUTPUTS] {
        let mut partial = [[0.0f32; LANES]; MOST_OUTPUTS];
        for lanes in &mut partial[..K::Output::COUNT] {
            *lanes = [K::REDUCE.identity(); LANES];
        }
        let vectors = count.div_ceil(LANES);
        for first in (0..vectors).step_by(BLOCK / LANES) {
            let len = (vectors - first).min(BLOCK / LANES) * LANES;
            let mut block = [MaybeUninit::<f32>::uninit(); BLOCK * MOST_OUTPUTS];
            for lane in 0..len {
                contribution(first * LANES + lane).write(|channel, value| {
                    // SAFETY: a kernel has at most MOST_OUTPUTS channels, and `lane` is below
                    // BLOCK.
                    unsafe { block.get_unchecked_mut(channel * BLOCK + lane) }.write(value);
                });
            }
            for channel in 0..K::Output::COUNT {
                let sums = &mut partial[channel];
                for begin in (0..len).step_by(LANES) {
                    for lane in 0..LANES {
                        // SAFETY: the loop above wrote `len` lanes, a multiple of LANES.
                        let value = unsafe { block[channel * BLOCK + begin + lane].assume_init() };
                        sums[lane] = K::REDUCE.combine(sums[lane], value);
                    }
                }
            }
        }
        let mut sums = [0.0; MOST_OUTPUTS];
        for channel in 0..K::Output::COUNT {
            sums[channel] = fold_lanes::<K>(partial[channel]);
        }
        sums
    }

    /// Stores the result of the target with the caller's number `index`.
    #[inline(always)]
    fn put(&self, index: usize, mut sums: [f32; MOST_OUTPUTS]) {
        let results = &self.shared.results;
        if results.combine {
            // SAFETY: every target lies in one task, and is visited once there.
            let old = unsafe { results.values.slice_mut(index, index + 1) }[0];
            old.write(|channel, value| {
                sums[channel] = K::REDUCE.combine(value, sums[channel]);
            });
        }
        let value = K::Output::read(|channel| sums[channel]);
        // SAFETY: as above.
        unsafe { results.values.write(index, value) };
    }
}

/// A contribution that counts only when its candidate is a neighbour.
struct Masked<K: PairKernel> {
    near: bool,
    value: K::Output,
}

impl<K: PairKernel> Masked<K> {
    #[inline(always)]
    fn write(self, mut channel: impl FnMut(usize, f32)) {
        self.value.write(|k, value| {
            channel(
                k,
                if self.near {
                    value
                } else {
                    K::REDUCE.identity()
                },
            );
        });
    }
}

/// Combines the partial results of one channel, always in the same order.
#[inline(always)]
pub(crate) fn fold_lanes<K: PairKernel>(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = K::REDUCE.combine(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
