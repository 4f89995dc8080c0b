//! Half lists of one set: every pair evaluated once, for both points.
//!
//! As in fused traversals that evaluate pairs once ([`crate::kernels`]), tasks add to points of
//! other tasks in a [`Window`] of their own. Points are in the caller's order here. Where that is
//! local in memory, as [`z_sort`](nearfield_grid::Grid::permutation) makes it, windows are small;
//! where it is not, there are only a few of them, each for most points.
//!
//! # The loop
//!
//! The pairs of a target's list are laid out first ([`super::layout`]). Sixteen pairs at a time,
//! the values of the sources are read from the caller's arrays, the kernel computes both
//! contributions, the target's go to sixteen partial results, and the sources' are added to the
//! window one by one. Two sources of a block may be the same point, in two images, so these
//! additions are not vectors.
//!
//! # Tasks
//!
//! A list names points all over the set, so the size of windows depends on how local the caller's
//! order is. A sample of the lists tells how many pages a task of a given size touches, and
//! [`together::task_size`] chooses.
//!
//! # Where it pays
//!
//! Half lists have half the entries of full ones, so half the pairs are laid out. The additions to
//! the window are the cost. For kernels that compute little per pair full lists are about as fast.

use super::{layout::Lists, listed::ListedPairs};
use crate::{
    candidates::scratch::Scratch,
    error::Error,
    kernels::{
        fields::{Fields, target_value},
        reduce::{MAX_OUTPUTS, Results, fold_lanes},
        together::{self, in_pages, put_together},
        window::{Window, WindowSums},
    },
    lists::neighbor_lists::NeighborLists,
    pool::CpuBackend,
    simd::{LANES, Simd, Task, level::SimdLevel, with_level},
};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::{Channels, Pair, PairKernel};
use std::{mem::MaybeUninit, ops::Range};

/// Blocks of targets that are sampled before tasks are made.
const SAMPLE_BLOCKS: usize = 4;
/// Targets of each.
const SAMPLE_TARGETS: usize = 1 << 7;

/// A traversal of half lists.
pub(super) struct HalfLists<'a, K: PairKernel> {
    /// The kernel.
    pub(super) kernel: &'a K,
    /// The half lists.
    pub(super) lists: &'a NeighborLists,
    /// Lays out the pairs of a target.
    pub(super) pairs: &'a dyn Lists,
    /// Values of the points.
    pub(super) fields: Fields<'a>,
    /// Where results go.
    pub(super) results: Results<'a, K::Output>,
}

impl<K: PairKernel> HalfLists<'_, K> {
    /// Runs the traversal.
    pub(super) fn run(&self, backend: &CpuBackend) -> Result<(), Error> {
        let len = self.lists.len();
        let task = together::task_size(len, |size| held(self.lists, size))?;
        let windows = backend.map_tasks(len, task, &|targets, scratch| {
            self.window(backend, targets, scratch)
        })?;
        put_together::<K>(backend, len, windows, &|targets, sums| {
            for (at, target) in targets.enumerate() {
                let first = at * K::Output::COUNT;
                let value = K::Output::read(|channel| sums[first + channel]);
                // SAFETY: every target lies in one task.
                unsafe { self.results.put::<K>(target, value) };
            }
        })
    }

    /// Contributions of a range of targets to themselves and to their sources.
    fn window(
        &self,
        backend: &CpuBackend,
        targets: Range<usize>,
        scratch: &mut Scratch,
    ) -> WindowSums {
        let (len, memory) = (self.lists.len(), backend.take_window());
        let (listed, failed) = (&mut scratch.listed, &mut scratch.failed);
        let mut window = match Window::new::<K>(len, &mut scratch.pages, memory) {
            Ok(window) => window,
            Err(shortage) => {
                *failed = Some(shortage);
                return WindowSums::default();
            }
        };
        let task = HalfTask {
            shared: self,
            level: backend.level(),
            targets,
            listed: &mut *listed,
            window: &mut window,
        };
        with_level(backend.level(), task);
        *failed = listed.take_failed();
        window.close().unwrap_or_else(|shortage| {
            *failed = Some(shortage);
            WindowSums::default()
        })
    }
}

/// Estimates the number of points that the window of a task of `size` targets holds, from four
/// blocks of targets spread over the set.
fn held(lists: &NeighborLists, size: usize) -> Result<usize, Shortage> {
    let mut all = 0;
    for block in 0..SAMPLE_BLOCKS {
        let first = block * (lists.len() / SAMPLE_BLOCKS);
        let targets =
            (first..(first + size).min(lists.len())).step_by(size.div_ceil(SAMPLE_TARGETS));
        let reached = targets.flat_map(|target| {
            let sources = lists.of(target).iter().map(|&source| source as usize);
            sources.chain([target])
        });
        all += in_pages(reached.map(|point| point..point + 1))?;
    }
    Ok(all / SAMPLE_BLOCKS)
}

/// A range of targets.
///
/// A task, so that the loop is compiled for the SIMD level.
struct HalfTask<'a, 'b, K: PairKernel> {
    /// The traversal.
    shared: &'a HalfLists<'a, K>,
    /// The SIMD level.
    level: SimdLevel,
    /// The targets.
    targets: Range<usize>,
    /// Room for the pairs of one target.
    listed: &'a mut ListedPairs,
    /// The sums of the task.
    window: &'a mut Window<'b>,
}

impl<K: PairKernel> Task for HalfTask<'_, '_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let HalfTask {
            shared,
            level,
            targets,
            listed,
            window,
        } = self;
        for target in targets {
            shared.pairs.lay_out(level, target, listed);
            if listed.has_failed() {
                break;
            }
            let mut sums = Sums {
                shared,
                own: shared.values(target),
                partial: [[K::REDUCE.identity(); LANES]; MAX_OUTPUTS],
                window: &mut *window,
            };
            // Sixteen pairs of the target at a time.
            for (block, sources) in listed.sources().chunks(LANES).enumerate() {
                let (d, d2) = listed.block(block * LANES);
                sums.add(sources, d, d2);
            }
            sums.finish(target);
        }
    }
}

impl<K: PairKernel> HalfLists<'_, K> {
    /// The values of a point, as a target and as a source.
    #[inline(always)]
    fn values(&self, point: usize) -> (K::Target, K::Source) {
        (
            target_value::<K::Target>(self.fields.targets, point),
            target_value::<K::Source>(self.fields.sources, point),
        )
    }
}

/// The sums of one target and of its sources.
///
/// Sixteen partial results per channel, folded in a fixed order at the end.
struct Sums<'a, 'b, K: PairKernel> {
    /// The traversal.
    shared: &'a HalfLists<'a, K>,
    /// Values of the target.
    own: (K::Target, K::Source),
    /// Partial sums of the target.
    partial: [[f32; LANES]; MAX_OUTPUTS],
    /// The sums of the task.
    window: &'a mut Window<'b>,
}

impl<K: PairKernel> Sums<'_, '_, K> {
    /// Adds the pairs with up to [`LANES`] sources, leaving out those that are infinitely far
    /// away. Values of lanes without a source are the target's own, so the kernel is evaluated for
    /// something harmless there.
    #[inline(always)]
    fn add(&mut self, sources: &[u32], d: [&[f32; LANES]; 3], d2: &[f32; LANES]) {
        let mut near = [false; LANES];
        for lane in 0..LANES {
            near[lane] = d2[lane] < f32::INFINITY;
        }
        let mut others = [self.own; LANES];
        for (other, &source) in others.iter_mut().zip(sources) {
            *other = self.shared.values(source as usize);
        }
        let mut to_target = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
        let mut to_source = [[MaybeUninit::<f32>::uninit(); LANES]; MAX_OUTPUTS];
        for lane in 0..LANES {
            let pair = Pair {
                d: [d[0][lane], d[1][lane], d[2][lane]],
                d2: d2[lane],
            };
            let (on_target, on_source) = self.shared.kernel.symmetric(pair, self.own, others[lane]);
            let kept = |value: f32| {
                if near[lane] {
                    value
                } else {
                    K::REDUCE.identity()
                }
            };
            on_target.write(|channel, value| {
                to_target[channel][lane].write(kept(value));
            });
            on_source.write(|channel, value| {
                to_source[channel][lane].write(kept(value));
            });
        }
        for channel in 0..K::Output::COUNT {
            for lane in 0..LANES {
                // SAFETY: all lanes of the kernel's channels were written just now.
                let value = unsafe { to_target[channel][lane].assume_init() };
                let sum = &mut self.partial[channel][lane];
                *sum = K::REDUCE.combine(*sum, value);
            }
        }
        // One channel after the other: values of one lane next to each other would be gathered from
        // vectors just stored, which waits for the stores. Sources that are not near add nothing.
        let sums = self.window.pointers::<K>(sources);
        for channel in 0..K::Output::COUNT {
            for lane in 0..sources.len().min(LANES) {
                // SAFETY: `sums` points to a sum per channel for every source; all lanes of the
                // kernel's channels were written above.
                unsafe {
                    let value = to_source[channel][lane].assume_init();
                    let sum = sums[lane].add(channel);
                    sum.write(K::REDUCE.combine(sum.read(), value));
                }
            }
        }
    }

    /// Adds the sums of the target itself.
    #[inline(always)]
    fn finish(self, target: usize) {
        let sums = self.window.sums::<K>(target);
        for channel in 0..K::Output::COUNT {
            let value = fold_lanes::<K>(self.partial[channel]);
            sums[channel] = K::REDUCE.combine(sums[channel], value);
        }
    }
}
