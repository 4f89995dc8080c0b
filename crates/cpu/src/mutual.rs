//! Pairs of one set evaluated once for both points (Newton's third law).
//!
//! Every group meets only its own targets and the points after them, so half the candidates are
//! tested and half the contributions computed. What a pair contributes to its target is summed in
//! registers, what it contributes to its source in an array beside the candidates, which is added
//! to a buffer when the group is done.
//!
//! There are no races and no atomics: every task has a buffer of its own, which covers its targets
//! (the *own* part) and as far behind them as their candidates reach (the *spill*). When all tasks
//! are done, the spills are added to the own parts they overlap with, in the order of the tasks.
//! Tasks are cut by the points alone, so sums do not depend on the number of threads.

use crate::{
    CpuLane,
    candidates::Candidates,
    evaluate::{MOST_OUTPUTS, Results, combine_lanes, fold_lanes},
    group::{Group, Scratch, Walk},
    simd::{self, LANES, Mode, RADII, Simd, Task, Vector, has, squared, with_level},
    traverse::room,
};
use nearfield_pairs::{Channels, Pair, PairKernel};
use rayon::prelude::*;
use std::{mem::MaybeUninit, ops::Range};

/// Targets of a task at least.
const TASK: usize = 1 << 13;

/// Spills may be this share of all points; beyond, buffers would outgrow what they save.
const MOST_SPILL: usize = 8;

/// A traversal of one set that evaluates every pair once.
pub(crate) struct Mutual<'a, K: PairKernel> {
    pub(crate) kernel: &'a K,
    /// With [`ahead`](Walk::ahead) set and candidates tagged by slot.
    pub(crate) walk: Walk<'a>,
    /// Source channels, then target channels, in the order of the sorted points.
    pub(crate) channels: &'a [Vec<f32>],
    pub(crate) results: Results<'a, K::Output>,
}

/// What the targets of one task contribute, the channels of a point next to each other.
struct Share {
    slots: Range<usize>,
    own: Vec<f32>,
    spill: Vec<f32>,
}

/// How far behind a target its candidates reach at most, roughly, or `None` when that is too far
/// for pairs to be evaluated once.
pub(crate) fn spill(walk: &Walk<'_>) -> Option<usize> {
    let points = walk.sources.points();
    let mut sweep = walk.sources.sweep();
    let lattice = walk.sources.lattice();
    let mut most = 0;
    for slot in (0..points.len()).step_by(TASK / 4) {
        let runs = sweep.runs_ahead(lattice.cell(points.position(slot)), 0, slot);
        most = most.max(runs.last().map_or(slot, |run| run.slots.end) - slot);
    }
    (most <= (points.len() / MOST_SPILL).max(TASK)).then_some(most)
}

impl<K: PairKernel> Mutual<'_, K> {
    /// Runs the traversal; `spill` is what [`spill()`] said.
    pub(crate) fn run(&self, lane: &CpuLane, spill: usize) {
        let len = self.walk.targets.points().len();
        let task = TASK.max(spill);
        let shares = lane.map_tasks(len, task, |slots, scratch| self.share(lane, slots, scratch));
        let (slots, (mut own, spills)): (Vec<_>, (Vec<_>, Vec<_>)) = shares
            .into_iter()
            .map(|share| (share.slots, (share.own, share.spill)))
            .unzip();
        let longest = spills.iter().map(Vec::len).max().unwrap_or(0);
        let reach = longest.div_ceil(task * K::Output::COUNT.max(1));
        lane.install(|| {
            own.par_iter_mut().enumerate().for_each(|(number, own)| {
                for before in number.saturating_sub(reach)..number {
                    let begin = slots[number].start - slots[before].end;
                    let rest = spills[before].get(begin * K::Output::COUNT..);
                    combine::<K>(own, rest.unwrap_or_default());
                }
                self.put(slots[number].clone(), own);
            });
        });
    }

    /// What the targets `slots` contribute to themselves and to the points after them.
    fn share(&self, lane: &CpuLane, slots: Range<usize>, scratch: &mut Scratch) -> Share {
        let mut buffer = std::mem::take(&mut scratch.buffer);
        buffer.clear();
        buffer.resize(slots.len() * K::Output::COUNT, K::REDUCE.identity());
        let task = MutualTask {
            mutual: self,
            slots: slots.clone(),
            scratch,
            buffer: &mut buffer,
        };
        with_level(lane.level(), task);
        let own = slots.len() * K::Output::COUNT;
        let share = Share {
            own: buffer[..own].to_vec(),
            spill: buffer[own..].to_vec(),
            slots,
        };
        scratch.buffer = buffer;
        share
    }

    /// Hands the sums of the targets `slots` to the caller's array.
    fn put(&self, slots: Range<usize>, sums: &[f32]) {
        let index = self.walk.targets.points().index();
        for (at, slot) in slots.enumerate() {
            let first = at * K::Output::COUNT;
            let value = K::Output::read(|channel| sums[first + channel]);
            // SAFETY: every target lies in one task.
            unsafe { self.results.put::<K>(index[slot] as usize, value) };
        }
    }
}

/// Adds `values` to the first of `sums`, or as the kernel combines.
fn combine<K: PairKernel>(sums: &mut [f32], values: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = K::REDUCE.combine(*sum, *value);
    }
}

/// A range of targets.
struct MutualTask<'a, K: PairKernel> {
    mutual: &'a Mutual<'a, K>,
    slots: Range<usize>,
    scratch: &'a mut Scratch,
    /// Sums from the first target on.
    buffer: &'a mut Vec<f32>,
}

impl<K: PairKernel> Task for MutualTask<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut gathered = std::mem::take(&mut self.scratch.gathered);
        let mut sums = std::mem::take(&mut self.scratch.packed);
        let first = self.slots.start;
        let mut groups = self.mutual.walk.groups(self.slots);
        // SAFETY: the caller's promise.
        while let Some((group, mode)) = unsafe { groups.next::<S>(self.scratch) } {
            let candidates = &self.scratch.candidates;
            // The candidates come in the order of the sorted points.
            let end = candidates.tags()[candidates.len() - 1] as usize + 1;
            let needed = (end - first) * K::Output::COUNT;
            if needed > self.buffer.len() {
                self.buffer.resize(needed, K::REDUCE.identity());
            }
            let stride = (candidates.len() + LANES).next_multiple_of(LANES);
            let evaluate = EvaluateMutual {
                mutual: self.mutual,
                group: &group,
                candidates,
                mode,
                gathered: room(&mut gathered, K::Source::COUNT + K::Target::COUNT, stride),
                sums: room(&mut sums, K::Output::COUNT, stride),
                buffer: self.buffer,
                first,
            };
            // SAFETY: the caller's promise.
            unsafe { S::call(evaluate) };
        }
        self.scratch.gathered = gathered;
        self.scratch.packed = sums;
    }
}

/// A group to be evaluated.
struct EvaluateMutual<'a, K: PairKernel> {
    mutual: &'a Mutual<'a, K>,
    group: &'a Group,
    candidates: &'a Candidates,
    mode: Mode,
    /// Source and target channels of the candidates.
    gathered: simd::Channels,
    /// Sums of the candidates.
    sums: simd::Channels,
    /// Sums of the sorted points from `first` on.
    buffer: &'a mut [f32],
    first: usize,
}

impl<K: PairKernel> Task for EvaluateMutual<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise; the mode is what the candidates carry; there is room for
        // the channels of all candidates, the targets first among them, and LANES more.
        unsafe {
            simd::gather_channels(self.mutual.channels, self.candidates, self.gathered);
            self.clear_sums::<S>();
            for place in 0..self.group.slots.len() {
                // Domains are open here, so candidates carry no image vectors.
                match has(self.mode, RADII) {
                    false => self.target::<S, 0>(place),
                    true => self.target::<S, RADII>(place),
                }
            }
        }
        self.add_sums();
    }
}

impl<K: PairKernel> EvaluateMutual<'_, K> {
    /// # Safety
    /// The processor has the level `S`.
    #[inline(always)]
    unsafe fn clear_sums<S: Simd>(&self) {
        for channel in 0..K::Output::COUNT {
            let mut k = 0;
            while k < self.candidates.len() {
                // SAFETY: there is room for all candidates and LANES more.
                unsafe {
                    S::Vector::splat(K::REDUCE.identity()).store(self.sums.at(channel, k));
                }
                k += S::Vector::LANES;
            }
        }
    }

    /// Evaluates the pairs of the target at `place` among the candidates with those after it.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn target<S: Simd, const MODE: Mode>(&self, place: usize) {
        let width = <S::Vector as Vector>::LANES;
        let slot = self.group.slots.start + place;
        let position = self.mutual.walk.targets.points().position(slot);
        let r2 = self.mutual.walk.r2(slot);
        let [x, y, z] = self.candidates.axes();
        let source_r2 = self.candidates.r2s();
        let kernel = self.mutual.kernel;
        // SAFETY: targets are candidates.
        let own = unsafe { self.values(place) };
        // SAFETY: `k` is below the number of candidates rounded up to whole blocks, and all arrays
        // of the candidates are padded by LANES. A kernel has at most MOST_OUTPUTS channels, all
        // LANES of its channels are written before they are read, and a block holds a whole number
        // of vectors.
        unsafe {
            let mut partial = [[S::Vector::splat(K::REDUCE.identity()); LANES]; MOST_OUTPUTS];
            for block in place / LANES..self.candidates.len().div_ceil(LANES) {
                let mut to_target = [[MaybeUninit::<f32>::uninit(); LANES]; MOST_OUTPUTS];
                let mut to_source = [[MaybeUninit::<f32>::uninit(); LANES]; MOST_OUTPUTS];
                for lane in 0..LANES {
                    let k = block * LANES + lane;
                    let d = [
                        *x.get_unchecked(k) - position[0],
                        *y.get_unchecked(k) - position[1],
                        *z.get_unchecked(k) - position[2],
                    ];
                    let d2 = squared(d);
                    let r2 = match has(MODE, RADII) {
                        true => r2.max(*source_r2.get_unchecked(k)),
                        false => r2,
                    };
                    let near = (d2 <= r2) & (k as u32 > place as u32);
                    let pair = Pair { d, d2 };
                    let (on_target, on_source) = kernel.mutual(pair, own, self.values(k));
                    on_target.write(|channel, value| {
                        let value = if near { value } else { K::REDUCE.identity() };
                        to_target.get_unchecked_mut(channel)[lane].write(value);
                    });
                    on_source.write(|channel, value| {
                        let value = if near { value } else { K::REDUCE.identity() };
                        to_source.get_unchecked_mut(channel)[lane].write(value);
                    });
                }
                for channel in 0..K::Output::COUNT {
                    for part in 0..LANES / width {
                        let values = to_target[channel].as_ptr().add(part * width);
                        let sum = &mut partial[channel][part];
                        *sum = combine_lanes::<K, _>(*sum, S::Vector::load(values.cast()));
                        let values = to_source[channel].as_ptr().add(part * width);
                        let sum = self.sums.at(channel, block * LANES + part * width);
                        combine_lanes::<K, _>(S::Vector::load(sum), S::Vector::load(values.cast()))
                            .store(sum);
                    }
                }
            }
            for channel in 0..K::Output::COUNT {
                let mut lanes = [0.0; LANES];
                for part in 0..LANES / width {
                    partial[channel][part].store(lanes.as_mut_ptr().add(part * width));
                }
                let sum = self.sums.at(channel, place);
                *sum = K::REDUCE.combine(*sum, fold_lanes::<K>(lanes));
            }
        }
    }

    /// Target and source values of candidate `k`.
    ///
    /// # Safety
    /// `k` is below the number of candidates rounded up to whole blocks.
    #[inline(always)]
    unsafe fn values(&self, k: usize) -> (K::Target, K::Source) {
        // SAFETY: the channels are padded by LANES.
        unsafe {
            let target =
                K::Target::read(|channel| *self.gathered.at(K::Source::COUNT + channel, k));
            let source = K::Source::read(|channel| *self.gathered.at(channel, k));
            (target, source)
        }
    }

    /// Adds the sums of the candidates to the buffer.
    #[inline(always)]
    fn add_sums(self) {
        let tags = &self.candidates.tags()[..self.candidates.len()];
        for (k, &slot) in tags.iter().enumerate() {
            let first = (slot as usize - self.first) * K::Output::COUNT;
            for channel in 0..K::Output::COUNT {
                // SAFETY: there is a sum per candidate and channel.
                let value = unsafe { *self.sums.at(channel, k) };
                let sum = &mut self.buffer[first + channel];
                *sum = K::REDUCE.combine(*sum, value);
            }
        }
    }
}
