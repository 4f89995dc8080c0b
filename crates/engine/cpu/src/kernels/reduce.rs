//! Contributions of pairs, combined into the sums of a target.
//!
//! Contributions are kept in [`LANES`] partial results that are combined in a fixed order at the
//! end, whatever the width of the vectors: a level of four lanes keeps four vectors per channel,
//! one of sixteen keeps one. So a sum does not depend on the SIMD level or the number of threads,
//! and an SPH run gives the same frames on any machine.
//!
//! The loops are written for the compiler's vectoriser. Contributions go to a local block, which
//! overlaps with none of the inputs. Trip counts are visibly multiples of the vector length.
//! Nothing in them can panic. A kernel is evaluated for every lane of a vector, also beyond the
//! radius, and its contribution is replaced by the identity there: a select costs one instruction,
//! a branch would stop the vectors.
//!
//! In debug builds and at the scalar level the same code runs lane by lane, with the same result.

use super::single::VECTORS;
use crate::{
    candidates::{
        groups::{Batch, Group},
        scan::Channels as Arrays,
    },
    simd::{
        LANES, Simd, TaskOn,
        vector::{Compress, Vector},
    },
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{Channels, Pair, PairKernel, Reduce};
use std::mem::MaybeUninit;

/// Maximum number of output channels of a kernel.
pub(crate) const MAX_OUTPUTS: usize = 16;

/// The array for the results of all targets.
pub(crate) struct Results<'a, T> {
    /// One value per target, in the caller's order.
    pub(crate) values: &'a SharedMut<'a, T>,
    /// Combine with the values in the array instead of overwriting them.
    pub(crate) combine: bool,
}

impl<T: Channels> Results<'_, T> {
    /// Takes the value of target `index`.
    ///
    /// # Safety
    /// There is such a target, and no other thread puts its value meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn put<K: PairKernel<Output = T>>(&self, index: usize, value: T) {
        let mut sums = [0.0; MAX_OUTPUTS];
        value.write(|channel, value| sums[channel] = value);
        if self.combine {
            // SAFETY: guaranteed by the caller.
            let old = unsafe { self.values.slice_mut(index, index + 1) }[0];
            old.write(|channel, value| {
                sums[channel] = K::REDUCE.combine(value, sums[channel]);
            });
        }
        let value = T::read(|channel| sums[channel]);
        // SAFETY: guaranteed by the caller.
        unsafe { self.values.write(index, value) };
    }
}

/// Neighbours of one target, as arrays. Those that are infinitely far away do not count.
pub(crate) struct Neighbors {
    /// Displacements along each axis.
    pub(crate) d: [*const f32; 3],
    /// Squared distances.
    pub(crate) d2: *mut f32,
    /// Of the sources.
    pub(crate) channels: Arrays,
}

impl Neighbors {
    /// Displacement and square in channels 0 to 3, then the source channels.
    #[inline(always)]
    pub(crate) fn of(packed: Arrays) -> Self {
        let at = |channel: usize| packed.data.wrapping_add(channel * packed.stride);
        Self {
            d: [at(0), at(1), at(2)].map(<*mut f32>::cast_const),
            d2: at(3),
            channels: Arrays {
                data: at(4),
                stride: packed.stride,
                count: packed.count - 4,
            },
        }
    }
}

/// [`reduce_packed`] as a function of its own on the kernel, for callers that call it once per
/// target anyway.
pub(crate) struct ReducePacked<'a, K: PairKernel> {
    /// Number of neighbours.
    pub(crate) count: usize,
    /// The neighbours.
    pub(crate) neighbors: &'a Neighbors,
    /// The target's value.
    pub(crate) value: K::Target,
    /// Where the sums go.
    pub(crate) sums: &'a mut [f32; MAX_OUTPUTS],
}

impl<K: PairKernel> TaskOn<K> for ReducePacked<'_, K> {
    #[inline(always)]
    unsafe fn run_on<S: Simd>(self, kernel: &K) {
        let (count, neighbors) = (self.count, self.neighbors);
        // SAFETY: the processor has the level; the maker of the task made room for LANES neighbours
        // more than there are.
        *self.sums = unsafe { reduce_packed::<K, S>(kernel, count, neighbors, self.value) };
    }
}

/// The sums of a target whose candidates come in batches, up to the current batch.
#[derive(Debug, Default)]
pub(crate) struct Batches([f32; MAX_OUTPUTS]);

impl Batches {
    /// Adds the sums of a batch of candidates; returns the sums of all batches after the last.
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

    /// Adds a batch, out of line.
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

/// Evaluates the kernel for `count` neighbours of a target.
///
/// # Safety
/// The processor has the level `S`, and there is room for LANES more neighbours.
#[inline(always)]
pub(crate) unsafe fn reduce_packed<K: PairKernel, S: Simd>(
    kernel: &K,
    count: usize,
    neighbors: &Neighbors,
    value: K::Target,
) -> [f32; MAX_OUTPUTS] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for part in 0..LANES / S::Single::LANES {
            let tail = count + part * S::Single::LANES;
            S::Single::splat(f32::INFINITY).store(neighbors.d2.add(tail));
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
        MaskedContribution {
            near: pair.d2 < f32::INFINITY,
            value: kernel.pair(pair, value, source),
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe { reduce::<K, S>(count, contribution) }
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
pub(super) unsafe fn reduce<K: PairKernel, S: Simd>(
    count: usize,
    contribution: impl Fn(usize) -> MaskedContribution<K>,
) -> [f32; MAX_OUTPUTS] {
    let width = S::Single::LANES;
    let lanes = loop_lanes(LANES);
    let mut sums = [0.0; MAX_OUTPUTS];
    // SAFETY: the caller guarantees the level; a kernel has at most MAX_OUTPUTS channels, so every
    // value has an element of the block, all LANES of its channels are written before they are
    // read, and a block holds a whole number of vectors.
    unsafe {
        let mut partial = [[S::Single::splat(K::REDUCE.identity()); LANES]; MAX_OUTPUTS];
        for first in 0..count.div_ceil(LANES) {
            let mut block = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
            // The kernel for sixteen neighbours, into a local block by channel.
            for lane in 0..lanes {
                contribution(first * LANES + lane).write(|channel, value| {
                    block
                        .get_unchecked_mut(channel)
                        .get_unchecked_mut(lane)
                        .write(value);
                });
            }
            for channel in 0..K::Output::COUNT {
                // From the block to the partial results, a vector at a time.
                for part in 0..LANES / width {
                    let values = block[channel].as_ptr().add(part * width);
                    let values = S::Single::load(values.cast());
                    let sum = &mut partial[channel][part];
                    *sum = combine_lanes::<K, _>(*sum, values);
                }
            }
        }
        for channel in 0..K::Output::COUNT {
            sums[channel] = fold::<K, _>(partial[channel]);
        }
    }
    sums
}

/// The partial results of a target, in memory, for vectors of candidates that are not all there.
/// A vector adds to the lanes that it would add to if all of them were.
#[repr(align(64))]
pub(super) struct Partial([[MaybeUninit<f32>; LANES]; MAX_OUTPUTS]);

impl Partial {
    /// Memory for partial results, to be [cleared](Self::clear).
    pub(super) const NONE: Self = Self([[MaybeUninit::uninit(); LANES]; MAX_OUTPUTS]);

    /// Forgets all contributions to the channels of the kernel. In place, because the partial
    /// results are a kilobyte, which a constructor would copy once per target.
    #[inline(always)]
    pub(super) fn clear<K: PairKernel>(&mut self) {
        for channel in &mut self.0[..K::Output::COUNT] {
            *channel = [MaybeUninit::new(K::REDUCE.identity()); LANES];
        }
    }

    /// Combines the lanes from `lane` on with `values`.
    ///
    /// # Safety
    /// The processor has the vector's level, the kernel has the channel, its channels have been
    /// [cleared](Self::clear), and a vector from `lane` ends within [`LANES`].
    #[inline(always)]
    pub(super) unsafe fn add<K: PairKernel, V: Compress>(
        &mut self,
        channel: usize,
        lane: usize,
        values: V,
    ) {
        // For the compiler, which keeps partial results of one vector in a register.
        let lane = if V::LANES == LANES { 0 } else { lane };
        // SAFETY: guaranteed by the caller; channels that were cleared are initialised.
        unsafe {
            let sum = self.0.get_unchecked_mut(channel).as_mut_ptr();
            let sum = sum.add(lane).cast::<f32>();
            combine_lanes::<K, V>(V::load(sum), values).store(sum);
        }
    }

    /// The sum of a channel.
    ///
    /// # Safety
    /// The processor has the vector's level, the kernel has the channel, and its channels have been
    /// [cleared](Self::clear).
    #[inline(always)]
    pub(super) unsafe fn fold<K: PairKernel, V: Compress>(&self, channel: usize) -> f32 {
        // SAFETY: the caller guarantees level and channel; those that were cleared are initialised.
        unsafe {
            let lanes = self.0.get_unchecked(channel).as_ptr().cast::<f32>();
            let mut parts = [V::splat(0.0); LANES];
            for (part, values) in parts[..LANES / V::LANES].iter_mut().enumerate() {
                *values = V::load(lanes.add(part * V::LANES));
            }
            fold::<K, V>(parts)
        }
    }
}

/// Combines `contribution(k)` for all k of some of the vectors of `count` candidates, as [`reduce`]
/// does for all of them; `near` says for which of at most [`VECTORS`] vectors from one candidate to
/// another, by a bit for each.
///
/// # Safety
/// The processor has the level `S`.
#[inline(always)]
pub(super) unsafe fn reduce_some<K: PairKernel, S: Simd>(
    count: usize,
    near: impl Fn(usize, usize) -> u64,
    contribution: impl Fn(usize) -> MaskedContribution<K>,
) -> [f32; MAX_OUTPUTS] {
    let width = S::Single::LANES;
    let lanes = loop_lanes(width);
    let mut sums = [0.0; MAX_OUTPUTS];
    let mut partial = Partial::NONE;
    partial.clear::<K>();
    // SAFETY: the caller guarantees the level; a kernel has at most MAX_OUTPUTS channels, so every
    // value has an element of the block, all lanes of a vector are written before they are read,
    // and a block holds a whole number of vectors.
    unsafe {
        let mut begin = 0;
        while begin < count {
            let end = (begin + VECTORS * width).min(count);
            let mut near = near(begin, end);
            while near != 0 {
                let first = begin + near.trailing_zeros() as usize * width;
                near &= near - 1;
                let mut block = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
                for lane in 0..lanes {
                    contribution(first + lane).write(|channel, value| {
                        block
                            .get_unchecked_mut(channel)
                            .get_unchecked_mut(lane)
                            .write(value);
                    });
                }
                for channel in 0..K::Output::COUNT {
                    let values = S::Single::load(block[channel].as_ptr().cast());
                    partial.add::<K, _>(channel, first % LANES, values);
                }
            }
            begin = end;
        }
        for channel in 0..K::Output::COUNT {
            sums[channel] = partial.fold::<K, S::Single>(channel);
        }
    }
    sums
}

/// The number of lanes, as a number that the compiler does not know. It would otherwise unroll a
/// loop over them before it is vectorised, and what vectorises straight-line code leaves many
/// kernels scalar.
#[inline(always)]
fn loop_lanes(lanes: usize) -> usize {
    let unknown = std::hint::black_box(lanes);
    // SAFETY: the number is a multiple of itself, and not zero.
    unsafe { std::hint::assert_unchecked(unknown.is_multiple_of(lanes) && unknown >= lanes) };
    unknown
}

/// A contribution that counts only if its candidate is a neighbour.
pub(super) struct MaskedContribution<K: PairKernel> {
    /// The candidate is a neighbour.
    pub(super) near: bool,
    /// The contribution, if it is.
    pub(super) value: K::Output,
}

impl<K: PairKernel> MaskedContribution<K> {
    /// Hands out the channels, each replaced by the identity if the candidate is not a neighbour.
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
pub(crate) unsafe fn combine_lanes<K: PairKernel, V: Compress>(sums: V, values: V) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match K::REDUCE {
            Reduce::Sum => sums.add(values),
            Reduce::Min => values.min(sums),
            Reduce::Max => values.max(sums),
        }
    }
}

/// The partial results of one channel, in the first vectors that hold [`LANES`] of them, combined
/// as [`fold_lanes`] does.
///
/// Whole vectors are added as long as there are several, then the halves of one. Every sum is that
/// of two numbers that [`fold_lanes`] adds too, so the bits are the same. Left to the compiler,
/// some of the sixteen were added one by one. Minima and maxima are left to [`fold_lanes`], whose
/// comparisons decide between zeros and about numbers that are none.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn fold<K: PairKernel, V: Compress>(mut parts: [V; LANES]) -> f32 {
    // SAFETY: guaranteed by the caller; there is room for the lanes.
    unsafe {
        if !matches!(K::REDUCE, Reduce::Sum) {
            let mut lanes = [0.0; LANES];
            for (part, values) in parts[..LANES / V::LANES].iter().enumerate() {
                values.store(lanes.as_mut_ptr().add(part * V::LANES));
            }
            return fold_lanes::<K>(lanes);
        }
        let mut half = LANES / V::LANES / 2;
        while half > 0 {
            for part in 0..half {
                parts[part] = parts[part].add(parts[part + half]);
            }
            half /= 2;
        }
        let (mut sums, mut half) = (parts[0], V::LANES / 2);
        while half > 0 {
            sums = sums.add(sums.swap(half as u32));
            half /= 2;
        }
        sums.first()
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
