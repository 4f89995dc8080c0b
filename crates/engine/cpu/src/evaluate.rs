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
    group::{Batch, Group},
    simd::{
        self, LANES, Mode, RADII, SHIFTED, Select, Simd, Task, Vector, has, squared, with_mode,
    },
    traverse::{Traversal, target_value},
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{Channels, Pair, PairKernel, Reduce};
use std::mem::MaybeUninit;

/// Output channels a kernel may have.
pub(crate) const MAX_OUTPUTS: usize = 16;

/// Where the results of all targets go.
pub(crate) struct Results<'a, T> {
    pub(crate) values: &'a SharedMut<'a, T>,
    /// Whether to combine with what is there instead of overwriting it.
    pub(crate) combine: bool,
}

impl<T: Channels> Results<'_, T> {
    /// Takes the value of target `index`.
    ///
    /// # Safety
    /// There is such a target, and nobody else puts its value meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn put<K: PairKernel<Output = T>>(&self, index: usize, value: T) {
        let mut sums = [0.0; MAX_OUTPUTS];
        value.write(|channel, value| sums[channel] = value);
        if self.combine {
            // SAFETY: the caller's promise.
            let old = unsafe { self.values.slice_mut(index, index + 1) }[0];
            old.write(|channel, value| {
                sums[channel] = K::REDUCE.combine(value, sums[channel]);
            });
        }
        let value = T::read(|channel| sums[channel]);
        // SAFETY: the caller's promise.
        unsafe { self.values.write(index, value) };
    }
}

/// Neighbours of one target, or candidates of which those infinitely far away do not count.
pub(crate) struct Neighbors {
    pub(crate) d: [*const f32; 3],
    pub(crate) d2: *mut f32,
    /// Of the sources.
    pub(crate) channels: simd::Channels,
}

impl Neighbors {
    /// Displacement and square in channels 0 to 3, then the source channels.
    #[inline(always)]
    pub(crate) fn of(packed: simd::Channels) -> Self {
        let at = |channel: usize| packed.data.wrapping_add(channel * packed.stride);
        Self {
            d: [at(0), at(1), at(2)].map(<*mut f32>::cast_const),
            d2: at(3),
            channels: simd::Channels {
                data: at(4),
                stride: packed.stride,
                count: packed.count - 4,
            },
        }
    }
}

/// [`Evaluate::reduce_packed`] as a function of its own, for those who call it once per target anyway.
pub(crate) struct ReducePacked<'a, K: PairKernel> {
    pub(crate) kernel: &'a K,
    pub(crate) count: usize,
    pub(crate) neighbors: &'a Neighbors,
    pub(crate) value: K::Target,
    pub(crate) sums: &'a mut [f32; MAX_OUTPUTS],
}

impl<K: PairKernel> Task for ReducePacked<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (kernel, count, neighbors) = (self.kernel, self.count, self.neighbors);
        // SAFETY: whoever made the task promises it.
        *self.sums =
            unsafe { Evaluate::<K>::reduce_packed::<S>(kernel, count, neighbors, self.value) };
    }
}

/// The sums of a target whose candidates come in batches, up to the last of them.
#[derive(Debug, Default)]
pub(crate) struct Batches([f32; MAX_OUTPUTS]);

impl Batches {
    /// Adds the sums of what was gathered of a group's candidates; all of them once there are no more.
    #[inline(always)]
    pub(crate) fn add<K: PairKernel>(
        &mut self,
        group: &Group,
        sums: [f32; MAX_OUTPUTS],
    ) -> Option<[f32; MAX_OUTPUTS]> {
        match group.batch {
            Batch::Whole => Some(sums),
            Batch::Part { first, last } => self.add_part::<K>(first, last, sums),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_part<K: PairKernel>(
        &mut self,
        first: bool,
        last: bool,
        sums: [f32; MAX_OUTPUTS],
    ) -> Option<[f32; MAX_OUTPUTS]> {
        if first {
            self.0 = sums;
        } else {
            for (all, part) in self.0.iter_mut().zip(sums) {
                *all = K::REDUCE.combine(*all, part);
            }
        }
        last.then_some(self.0)
    }
}

/// A group to be evaluated, with room for the channels of its candidates.
pub(crate) struct Evaluate<'a, K: PairKernel> {
    pub(crate) shared: &'a Traversal<'a, K>,
    pub(crate) group: &'a Group,
    pub(crate) candidates: &'a Candidates,
    pub(crate) mode: Mode,
    /// Source channels of the candidates.
    pub(crate) gathered: simd::Channels,
    /// Displacement, its square and source channels of the neighbours of one target.
    pub(crate) packed: simd::Channels,
    pub(crate) batches: &'a mut Batches,
}

impl<K: PairKernel> Task for Evaluate<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: tags are sorted points of the source set; there is room for all candidates.
        unsafe { simd::gather_channels(self.shared.channels, self.candidates, self.gathered) };
        let walk = &self.shared.walk;
        let points = walk.targets.points();
        for (k, slot) in self.group.slots.clone().enumerate() {
            let index = points.index()[slot] as usize;
            let value = target_value::<K::Target>(self.shared.fields, index);
            let target = Select {
                target: points.position(slot),
                r2: walk.r2(slot),
                own_tag: if walk.same_set { slot as u32 } else { u32::MAX },
                own_place: self.group.place_of(k),
            };
            // SAFETY: the caller's promise; the mode matches the candidates.
            let sums = unsafe {
                match K::PACKED {
                    true => with_mode!(self.mode, MODE => self.packed::<S, MODE>(&target, value)),
                    false => with_mode!(self.mode, MODE => self.masked::<S, MODE>(&target, value)),
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
    /// Evaluates the kernel for the neighbours of a target, packed together.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn packed<S: Simd, const MODE: Mode>(
        &self,
        target: &Select,
        value: K::Target,
    ) -> [f32; MAX_OUTPUTS] {
        let (gathered, packed) = (self.gathered, self.packed);
        // SAFETY: the caller's promises; there is room for all candidates and LANES more.
        unsafe {
            let count = S::pack::<MODE>(target, self.candidates, gathered, packed);
            Self::reduce_packed::<S>(self.shared.kernel, count, &Neighbors::of(packed), value)
        }
    }

    /// Evaluates the kernel for `count` neighbours of a target.
    ///
    /// # Safety
    /// The processor has the level `S`, and there is room for LANES more neighbours.
    #[inline(always)]
    pub(crate) unsafe fn reduce_packed<S: Simd>(
        kernel: &K,
        count: usize,
        neighbors: &Neighbors,
        value: K::Target,
    ) -> [f32; MAX_OUTPUTS] {
        // SAFETY: the caller's promise.
        unsafe {
            for part in 0..LANES / <S::Vector as Vector>::LANES {
                let tail = count + part * <S::Vector as Vector>::LANES;
                S::Vector::splat(f32::INFINITY).store(neighbors.d2.add(tail));
            }
        }
        let contribution = |k: usize| {
            // SAFETY: `k` is below the count rounded up to whole vectors, which there is room for;
            // what lies behind the count is infinitely far away.
            let (pair, source) = unsafe {
                let [x, y, z] = neighbors.d;
                let d = [*x.add(k), *y.add(k), *z.add(k)];
                let d2 = *neighbors.d2.add(k);
                let source = K::Source::read(|channel| *neighbors.channels.at(channel, k));
                (Pair { d, d2 }, source)
            };
            Masked {
                near: pair.d2 < f32::INFINITY,
                value: kernel.pair(pair, value, source),
            }
        };
        // SAFETY: the caller's promise.
        unsafe { Self::reduce::<S>(count, contribution) }
    }

    /// Evaluates the kernel for all candidates and drops those that are no neighbours.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn masked<S: Simd, const MODE: Mode>(
        &self,
        target: &Select,
        value: K::Target,
    ) -> [f32; MAX_OUTPUTS] {
        let [x, y, z] = self.candidates.axes();
        let [sx, sy, sz] = self.candidates.shifts();
        let tags = self.candidates.tags();
        let source_r2 = self.candidates.r2s();
        let itself = target.own_place as u32;
        let contribution = |k: usize| {
            // SAFETY: `k` is below the number of candidates rounded up to whole vectors, and all
            // arrays of the candidates, and the gathered channels, are padded by a vector.
            let (d, source) = unsafe {
                let mut d = [
                    *x.get_unchecked(k) - target.target[0],
                    *y.get_unchecked(k) - target.target[1],
                    *z.get_unchecked(k) - target.target[2],
                ];
                if has(MODE, SHIFTED) {
                    d[0] += *sx.get_unchecked(k);
                    d[1] += *sy.get_unchecked(k);
                    d[2] += *sz.get_unchecked(k);
                }
                (d, K::Source::read(|channel| *self.gathered.at(channel, k)))
            };
            let d2 = squared(d);
            let other = match has(MODE, SHIFTED) {
                true => k as u32 != itself,
                // SAFETY: as above.
                false => unsafe { *tags.get_unchecked(k) != target.own_tag },
            };
            let r2 = match has(MODE, RADII) {
                // SAFETY: as above.
                true => target.r2.max(unsafe { *source_r2.get_unchecked(k) }),
                false => target.r2,
            };
            Masked {
                near: (d2 <= r2) & other,
                value: self.shared.kernel.pair(Pair { d, d2 }, value, source),
            }
        };
        // SAFETY: the caller's promise.
        unsafe { Self::reduce::<S>(self.candidates.len(), contribution) }
    }

    /// Combines `contribution(k)` for all k below `count` rounded up to whole vectors.
    ///
    /// The contributions of a block of candidates go to a local array, which the compiler keeps in
    /// vector registers, and from there to partial results that are vectors themselves: left to
    /// the compiler, adding sixteen numbers to sixteen others came out in pairs.
    ///
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn reduce<S: Simd>(
        count: usize,
        contribution: impl Fn(usize) -> Masked<K>,
    ) -> [f32; MAX_OUTPUTS] {
        let width = <S::Vector as Vector>::LANES;
        let mut sums = [0.0; MAX_OUTPUTS];
        // SAFETY: the caller's promise; a kernel has at most MAX_OUTPUTS channels, so every value
        // has a place in the block, all LANES of its channels are written before they are read,
        // and a block holds a whole number of vectors.
        unsafe {
            let mut partial = [[S::Vector::splat(K::REDUCE.identity()); LANES]; MAX_OUTPUTS];
            for first in 0..count.div_ceil(LANES) {
                let mut block = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
                for lane in 0..LANES {
                    contribution(first * LANES + lane).write(|channel, value| {
                        block.get_unchecked_mut(channel)[lane].write(value);
                    });
                }
                for channel in 0..K::Output::COUNT {
                    for part in 0..LANES / width {
                        let values = block[channel].as_ptr().add(part * width);
                        let values = S::Vector::load(values.cast());
                        let sum = &mut partial[channel][part];
                        *sum = combine_lanes::<K, _>(*sum, values);
                    }
                }
            }
            for channel in 0..K::Output::COUNT {
                let mut lanes = [0.0; LANES];
                for part in 0..LANES / width {
                    partial[channel][part].store(lanes.as_mut_ptr().add(part * width));
                }
                sums[channel] = fold_lanes::<K>(lanes);
            }
        }
        sums
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

/// Combines sums with values, lane by lane, as [`Reduce::combine`] does.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
pub(crate) unsafe fn combine_lanes<K: PairKernel, V: Vector>(sums: V, values: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        match K::REDUCE {
            Reduce::Sum => sums.add(values),
            Reduce::Min => values.min(sums),
            Reduce::Max => values.max(sums),
        }
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
