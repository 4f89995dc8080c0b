//! Adds up the windows of all tasks.
//!
//! The sums of every page are combined in the order of the tasks: no races, no atomics, and the
//! same sums whatever the number of threads. Workers take 32 pages at a time, and find the windows
//! that hold a page in a table by page.
//!
//! # Why pages and not whole arrays
//!
//! A window as large as the set would cost points × tasks in memory and in additions. Pages of 128
//! points are small enough that a window holds little more than the points its task reaches, and
//! large enough that the table of pages and the look-ups cost little compared with the sums.
//!
//! # The size of tasks
//!
//! More tasks balance better, and every task holds the surroundings of its targets: for small
//! tasks that is many times the targets themselves. [`task_size`] starts from 256 tasks and
//! doubles their size while all windows together would exceed eight times the points. How much a
//! window of a given size holds is estimated from a sample by the caller.

use super::window::{PAGE, WHAT, WindowSums};
use crate::{error::Error, pool::CpuBackend};
use nearfield_grid::{
    memory::{Shortage, collected, filled, zeroed},
    parallel::PoolLoops,
};
use nearfield_pairs::{Channels, PairKernel, Reduce};
use rayon::prelude::*;
use std::{mem, ops::Range};

/// Number of tasks that points are divided into, within [`TARGETS`].
const TASKS: usize = 1 << 8;
/// Minimum and maximum number of targets of a task.
const TARGETS: [usize; 2] = [1 << 8, 1 << 11];
/// Tasks are made larger if all windows together hold more than this many times the points, and
/// more than [`MAX_HELD`] points.
const MAX_TIMES: usize = 8;
/// See [`MAX_TIMES`].
const MAX_HELD: usize = 1 << 22;
/// The purpose of the memory for the estimate of a task's size, for messages.
pub(crate) const SAMPLED: &str = "a sample of candidates";
/// Pages that are added up at a time.
const AT_A_TIME: usize = 1 << 5;

/// Returns the targets of a task on `points` points; `held` tells how many points the window of a
/// task of a given size holds.
pub(crate) fn task_size(
    points: usize,
    held: impl Fn(usize) -> Result<usize, Shortage>,
) -> Result<usize, Shortage> {
    let max = points.saturating_mul(MAX_TIMES).max(MAX_HELD);
    let mut size = (points / TASKS).clamp(TARGETS[0], TARGETS[1]);
    while size < points && points.div_ceil(size).saturating_mul(held(size)?) > max {
        size *= 2;
    }
    Ok(size)
}

/// Returns the number of points of all pages that hold any of the `points`, which come in any
/// order.
///
/// Overlapping ranges count once: pages are sorted by their start and walked.
pub(crate) fn in_pages(points: impl Iterator<Item = Range<usize>>) -> Result<usize, Shortage> {
    let pages = points
        .filter(|points| !points.is_empty())
        .map(|points| points.start / PAGE..points.end.div_ceil(PAGE));
    let mut pages = collected(pages, SAMPLED)?;
    pages.sort_unstable_by_key(|pages| pages.start);
    let (mut held, mut end) = (0, 0);
    for pages in pages {
        held += pages.end.saturating_sub(pages.start.max(end));
        end = end.max(pages.end);
    }
    Ok(held * PAGE)
}

/// Takes the sums of a range of points, which begins with a page: whole pages as the tasks laid
/// them out, also of the last one. A trait object, so that adding up is not compiled for every
/// kernel.
type Put<'a> = dyn Fn(Range<usize>, &[f32]) + Sync + 'a;

/// Adds up the windows of all tasks on `points` points and hands the sums of every point to `put`.
///
/// The memory of the windows goes back to the backend.
pub(crate) fn put_together<K: PairKernel>(
    backend: &CpuBackend,
    points: usize,
    windows: Vec<WindowSums>,
    put: &Put<'_>,
) -> Result<(), Error> {
    let sums = Sums {
        channels: K::Output::COUNT,
        reduce: K::REDUCE,
    };
    sums.put_together(backend, points, &windows, put)?;
    backend.keep_windows(windows);
    Ok(())
}

/// The sums of a kernel: as much of it as [`put_together`] depends on, so that the loop is compiled
/// once for all kernels.
#[derive(Clone, Copy)]
struct Sums {
    /// Output channels of the kernel.
    channels: usize,
    /// How they are combined.
    reduce: Reduce,
}

impl Sums {
    /// The loop over pages.
    fn put_together(
        self,
        backend: &CpuBackend,
        points: usize,
        windows: &[WindowSums],
        put: &Put<'_>,
    ) -> Result<(), Error> {
        let Sums { channels, reduce } = self;
        let held = PagesHeld::of(windows, points.div_ceil(PAGE))?;
        backend.install_for(points, || {
            let chunks = (0..points.div_ceil(AT_A_TIME * PAGE)).into_par_iter();
            let done = chunks.with_max_len(1).map(|chunk| {
                let first = chunk * AT_A_TIME * PAGE;
                let slots = first..(first + AT_A_TIME * PAGE).min(points);
                let room = slots.len().next_multiple_of(PAGE) * channels;
                let mut sums = filled(room, reduce.identity(), WHAT)?;
                if channels > 0 {
                    for (page, sums) in sums.chunks_mut(PAGE * channels).enumerate() {
                        for theirs in held.sums(chunk * AT_A_TIME + page, windows, channels) {
                            for (sum, &value) in sums.iter_mut().zip(theirs) {
                                *sum = reduce.combine(*sum, value);
                            }
                        }
                    }
                }
                put(slots, &sums);
                Ok(())
            });
            done.combined(|| Ok(()), Result::and)
        })
    }
}

/// Which windows hold a page of the points, in the order of the tasks.
///
/// A counting sort of all pages of all windows by page number, stable in the order of the tasks;
/// so the windows of a page are one contiguous range.
struct PagesHeld {
    /// The first element of `held` of every page, and the end behind the last page.
    start: Vec<u32>,
    /// The pages of all windows, sorted.
    held: Vec<HeldPage>,
}

/// A page of a window.
#[derive(Clone, Copy, Default)]
struct HeldPage {
    /// Number of the window.
    window: u32,
    /// Number of the page in the window.
    page: u32,
}

impl PagesHeld {
    /// Sorts the pages of all windows by page, stably: a counting sort.
    fn of(windows: &[WindowSums], pages: usize) -> Result<Self, Shortage> {
        // Counted one element further on. While pages are filled in, starts move on, each to the
        // start of the next page.
        let mut start = zeroed::<u32>(pages + 1, WHAT)?;
        for &page in windows.iter().flat_map(|window| &window.pages) {
            start[page as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut start {
            sum += mem::replace(start, sum);
        }
        let mut held = filled(sum as usize, HeldPage::default(), WHAT)?;
        for (window, sums) in windows.iter().enumerate() {
            for (number, &page) in sums.pages.iter().enumerate() {
                let next = &mut start[page as usize + 1];
                held[*next as usize] = HeldPage {
                    window: window as u32,
                    page: number as u32,
                };
                *next += 1;
            }
        }
        Ok(Self { start, held })
    }

    /// The sums of a page.
    fn sums<'a>(
        &'a self,
        page: usize,
        windows: &'a [WindowSums],
        channels: usize,
    ) -> impl Iterator<Item = &'a [f32]> {
        let [from, to] = [page, page + 1].map(|page| self.start[page] as usize);
        self.held[from..to].iter().map(move |held| {
            let room = PAGE * channels;
            &windows[held.window as usize].sums[held.page as usize * room..][..room]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernels::window::{PageTable, Window},
        simd::LANES,
    };
    use nearfield_grid::SharedMut;
    use nearfield_pairs::SphForce;

    type Kernel = SphForce;
    const CHANNELS: usize = <<Kernel as PairKernel>::Output as Channels>::COUNT;

    #[test]
    fn sums_of_all_tasks_arrive_at_their_points() {
        let (points, backend) = (100 * PAGE + 17, CpuBackend::new(2).unwrap());
        // Every task adds 1 to points all over the place; twice, with memory that was used before.
        let reached = |task: usize| (0..1000).map(move |k| (task * 7919 + k * k * 31) % points);
        for tasks in [0, 1, 9] {
            let mut table = PageTable::default();
            let windows = (0..tasks).map(|task| {
                let window = Window::new::<Kernel>(points, &mut table, backend.take_window());
                let mut window = window.unwrap();
                for point in reached(task) {
                    window.sums::<Kernel>(point)[CHANNELS - 1] += 1.0;
                }
                let some: Vec<u32> = reached(task).map(|point| point as u32).collect();
                for some in some.chunks(LANES) {
                    for &sums in &window.pointers::<Kernel>(some)[..some.len()] {
                        // SAFETY: there are sums of all channels.
                        unsafe { *sums += 2.0 };
                    }
                }
                window.close().unwrap()
            });
            let windows = windows.collect();
            let mut found = vec![[f32::NAN; 2]; points];
            let put = SharedMut::new(&mut found);
            put_together::<Kernel>(&backend, points, windows, &|slots, sums| {
                for (slot, sums) in slots.zip(sums.chunks(CHANNELS)) {
                    // SAFETY: every point is put once.
                    unsafe { put.write(slot, [sums[0], sums[CHANNELS - 1]]) };
                }
            })
            .unwrap();
            let mut expected = vec![[0.0; 2]; points];
            for point in (0..tasks).flat_map(reached) {
                expected[point][0] += 2.0;
                expected[point][1] += 1.0;
            }
            assert_eq!(found, expected, "{tasks} tasks");
        }
    }

    #[test]
    fn windows_hold_whole_pages_once() {
        let held = |points: &[Range<usize>]| in_pages(points.iter().cloned()).unwrap() / PAGE;
        assert_eq!(held(&[]), 0);
        assert_eq!(held(&[5..5, 3..4]), 1);
        assert_eq!(held(&[3 * PAGE..3 * PAGE + 1, 0..1, 1..2]), 2);
        assert_eq!(
            held(&[0..10 * PAGE, PAGE..2 * PAGE, 9 * PAGE..11 * PAGE]),
            11
        );
    }

    #[test]
    fn there_are_many_tasks_unless_windows_hold_too_much() {
        let points = 1_000_000;
        // A window holds parts of layers of cells a twelfth of all points apart.
        assert_eq!(task_size(points, |size| Ok(2 * size + 12_000)), Ok(1 << 11));
        let all = task_size(points, |_| Ok(points)).unwrap();
        assert!(points.div_ceil(all) <= MAX_TIMES);
        assert_eq!(task_size(1_000, |_| Ok(1_000)), Ok(1 << 8));
    }
}
