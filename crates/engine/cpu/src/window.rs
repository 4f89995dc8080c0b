//! Sums for the points that one task reaches, and how the tasks' sums are put together.
//!
//! Where pairs are evaluated once for both points, a task adds to points of other tasks. It does so in
//! a [`Window`] of its own, which holds pages of consecutive points, opened when the first of their
//! points is reached: what lies within the radius of a few thousand points is a handful of pieces far
//! apart in memory, parts of this layer of cells and of the next, and most of what lies between is never
//! touched. So tasks can be small, which lets many workers share the work evenly.
//!
//! When all tasks are done, the sums of every page are added up in the order of the tasks: no races, no
//! atomics, and the same sums whatever the number of threads.

use crate::{CpuBackend, Error, simd::LANES};
use nearfield_grid::{
    memory::{Shortage, filled, make_room, make_room_for_one, zeroed},
    parallel::PoolLoops,
};
use nearfield_pairs::{Channels, PairKernel, Reduce};
use rayon::prelude::*;
use std::{mem, ops::Range};

/// What windows are called where there is no memory for them.
const WHAT: &str = "sums of pairs that are evaluated once";

/// Points of a page.
const PAGE: usize = 1 << 7;
/// Pages that are put together at a time.
const AT_A_TIME: usize = 1 << 5;
/// Where no page is open.
const NONE: u32 = u32::MAX;

/// Tasks that points are divided into…
const TASKS: usize = 1 << 8;
/// …unless they have fewer or more targets than this…
const TARGETS: [usize; 2] = [1 << 8, 1 << 11];
/// …or all windows together hold more than so many times the points…
const MAX_TIMES: usize = 8;
/// …and more than so many. Then tasks are larger.
const MOST: usize = 1 << 22;

/// The sums of one task while it works; the channels of a point lie next to each other.
pub(crate) struct Window<'a> {
    table: &'a mut PageTable,
    identity: f32,
    share: Share,
    /// Memory that was refused; the sums are then of no use.
    failed: Option<Shortage>,
}

/// Which page of a window holds a page of the points; kept between tasks for the memory.
#[derive(Debug, Default)]
pub(crate) struct PageTable {
    /// [`NONE`] everywhere when no window is open.
    pages: Vec<u32>,
}

impl PageTable {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * self.pages.capacity()
    }
}

/// What a task has summed.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Pages in the order in which they were opened.
    pages: Vec<u32>,
    /// Their sums.
    sums: Vec<f32>,
}

impl Share {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * self.pages.capacity() + size_of::<f32>() * self.sums.capacity()
    }
}

impl<'a> Window<'a> {
    /// A window on so many points; `share` is there for its memory.
    pub(crate) fn new<K: PairKernel>(
        points: usize,
        table: &'a mut PageTable,
        mut share: Share,
    ) -> Result<Self, Shortage> {
        let pages = points.div_ceil(PAGE).max(table.pages.len());
        make_room(&mut table.pages, pages, WHAT)?;
        table.pages.resize(pages, NONE);
        share.pages.clear();
        share.sums.clear();
        // The first page is there in any case: it takes what there is no memory for.
        make_room(&mut share.pages, 1, WHAT)?;
        make_room(&mut share.sums, PAGE * K::Output::COUNT, WHAT)?;
        Ok(Self {
            table,
            identity: K::REDUCE.identity(),
            share,
            failed: None,
        })
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, page: usize, channels: usize) -> u32 {
        let opened = self.share.pages.len() as u32;
        let room = self.share.sums.len() + PAGE * channels;
        let more = room - self.share.sums.len();
        let grown = make_room_for_one(&mut self.share.pages, WHAT).and_then(|()| {
            (self.share.sums.try_reserve(more)).map_err(|_| Shortage::of::<f32>(room, WHAT))
        });
        if let Err(shortage) = grown {
            // Room for the first was made before. What goes there now goes astray.
            debug_assert!(opened > 0);
            self.failed = Some(shortage);
            return 0;
        }
        self.share.pages.push(page as u32);
        self.share.sums.resize(room, self.identity);
        self.table.pages[page] = opened;
        opened
    }

    /// The page of a point, opened if it was not.
    #[inline(always)]
    fn page(&mut self, point: usize, channels: usize) -> usize {
        let page = self.table.pages[point / PAGE];
        let page = match page {
            NONE => self.open(point / PAGE, channels),
            page => page,
        };
        page as usize
    }

    /// The sums of a point.
    #[inline(always)]
    pub(crate) fn sums<K: PairKernel>(&mut self, point: usize) -> &mut [f32] {
        let page = self.page(point, K::Output::COUNT);
        let at = (page * PAGE + point % PAGE) * K::Output::COUNT;
        &mut self.share.sums[at..][..K::Output::COUNT]
    }

    /// Where the sums of up to [`LANES`] points are; they may be the same.
    #[inline(always)]
    pub(crate) fn places<K: PairKernel>(&mut self, points: &[u32]) -> [*mut f32; LANES] {
        let mut pages = [0; LANES];
        for (page, &point) in pages.iter_mut().zip(points) {
            *page = self.page(point as usize, K::Output::COUNT);
        }
        // Only now, as sums move when a page is opened.
        let sums = self.share.sums.as_mut_ptr();
        let mut places = [std::ptr::null_mut(); LANES];
        for ((place, page), &point) in places.iter_mut().zip(pages).zip(points) {
            let at = page * PAGE + point as usize % PAGE;
            // SAFETY: the page is open, so there are sums for all of its points.
            *place = unsafe { sums.add(at * K::Output::COUNT) };
        }
        places
    }

    /// What was summed.
    ///
    /// # Errors
    /// The memory that was refused meanwhile.
    pub(crate) fn close(self) -> Result<Share, Shortage> {
        for &page in &self.share.pages {
            self.table.pages[page as usize] = NONE;
        }
        self.failed.map_or(Ok(self.share), Err)
    }
}

/// Targets of a task on so many points, by how many points a window holds for so many targets.
pub(crate) fn task_size(points: usize, held: impl Fn(usize) -> usize) -> usize {
    let most = points.saturating_mul(MAX_TIMES).max(MOST);
    let mut size = (points / TASKS).clamp(TARGETS[0], TARGETS[1]);
    while size < points && points.div_ceil(size).saturating_mul(held(size)) > most {
        size *= 2;
    }
    size
}

/// Points of all pages that hold any of the `points`, which come in any order.
pub(crate) fn in_pages(points: impl Iterator<Item = Range<usize>>) -> usize {
    let mut pages: Vec<_> = points
        .filter(|points| !points.is_empty())
        .map(|points| points.start / PAGE..points.end.div_ceil(PAGE))
        .collect();
    pages.sort_unstable_by_key(|pages| pages.start);
    let (mut held, mut end) = (0, 0);
    for pages in pages {
        held += pages.end.saturating_sub(pages.start.max(end));
        end = end.max(pages.end);
    }
    held * PAGE
}

/// What hands the sums of a range of points on.
type Put<'a> = dyn Fn(Range<usize>, &[f32]) + Sync + 'a;

/// Puts the shares of all tasks on so many points together and hands the sums of every point to `put`.
pub(crate) fn put_together<K: PairKernel>(
    backend: &CpuBackend,
    points: usize,
    shares: Vec<Share>,
    put: &Put<'_>,
) -> Result<(), Error> {
    let sums = (K::Output::COUNT, K::REDUCE);
    put_shares_together(backend, points, &shares, sums, put)?;
    backend.keep_windows(shares);
    Ok(())
}

/// [`put_together`] for any kernel with so many outputs, combined in such a way.
fn put_shares_together(
    backend: &CpuBackend,
    points: usize,
    shares: &[Share],
    (channels, reduce): (usize, Reduce),
    put: &Put<'_>,
) -> Result<(), Error> {
    let held = PagesHeld::of(shares, points.div_ceil(PAGE))?;
    backend.install(|| {
        let chunks = (0..points.div_ceil(AT_A_TIME * PAGE)).into_par_iter();
        chunks.with_max_len(1).run(|chunk| {
            let first = chunk * AT_A_TIME * PAGE;
            let slots = first..(first + AT_A_TIME * PAGE).min(points);
            let mut sums = vec![reduce.identity(); slots.len() * channels];
            if channels > 0 {
                for (page, sums) in sums.chunks_mut(PAGE * channels).enumerate() {
                    for theirs in held.sums(chunk * AT_A_TIME + page, shares, channels) {
                        for (sum, &value) in sums.iter_mut().zip(theirs) {
                            *sum = reduce.combine(*sum, value);
                        }
                    }
                }
            }
            put(slots, &sums);
        });
    });
    Ok(())
}

/// Which shares hold a page of the points, in the order of the tasks.
struct PagesHeld {
    /// Where those of a page begin, and behind the last page where they end.
    start: Vec<u32>,
    /// The share, and where the page is in it.
    of: Vec<(u32, u32)>,
}

impl PagesHeld {
    fn of(shares: &[Share], pages: usize) -> Result<Self, Shortage> {
        // One place on: there they are moved on while pages are put down, to the beginning of the next.
        let mut start = zeroed::<u32>(pages + 1, WHAT)?;
        for &page in shares.iter().flat_map(|share| &share.pages) {
            start[page as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut start {
            sum += mem::replace(start, sum);
        }
        let mut of = filled(sum as usize, (0, 0), WHAT)?;
        for (number, share) in shares.iter().enumerate() {
            for (place, &page) in share.pages.iter().enumerate() {
                let next = &mut start[page as usize + 1];
                of[*next as usize] = (number as u32, place as u32);
                *next += 1;
            }
        }
        Ok(Self { start, of })
    }

    /// The sums of a page.
    fn sums<'a>(
        &'a self,
        page: usize,
        shares: &'a [Share],
        channels: usize,
    ) -> impl Iterator<Item = &'a [f32]> {
        let [from, to] = [page, page + 1].map(|page| self.start[page] as usize);
        self.of[from..to].iter().map(move |&(share, place)| {
            let room = PAGE * channels;
            &shares[share as usize].sums[place as usize * room..][..room]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_grid::SharedMut;
    use nearfield_pairs::SphForce;

    type Kernel = SphForce;
    const CHANNELS: usize = <<Kernel as PairKernel>::Output as Channels>::COUNT;

    #[test]
    fn whatever_tasks_add_to_ends_at_its_point() {
        let (points, backend) = (100 * PAGE + 17, CpuBackend::new(2).unwrap());
        // Every task adds 1 to points all over the place; twice, with memory that was used before.
        let reached = |task: usize| (0..1000).map(move |k| (task * 7919 + k * k * 31) % points);
        for tasks in [0, 1, 9] {
            let mut table = PageTable::default();
            let shares = (0..tasks).map(|task| {
                let window = Window::new::<Kernel>(points, &mut table, backend.take_window());
                let mut window = window.unwrap();
                for point in reached(task) {
                    window.sums::<Kernel>(point)[CHANNELS - 1] += 1.0;
                }
                let some: Vec<u32> = reached(task).map(|point| point as u32).collect();
                for some in some.chunks(LANES) {
                    for &place in &window.places::<Kernel>(some)[..some.len()] {
                        // SAFETY: there are sums of all channels.
                        unsafe { *place += 2.0 };
                    }
                }
                window.close().unwrap()
            });
            let shares = shares.collect();
            let mut found = vec![[f32::NAN; 2]; points];
            let put = SharedMut::new(&mut found);
            put_together::<Kernel>(&backend, points, shares, &|slots, sums| {
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
        let held = |points: &[Range<usize>]| in_pages(points.iter().cloned()) / PAGE;
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
        // Layers of cells a twelfth of all points apart, of which a window holds parts.
        assert_eq!(task_size(points, |size| 2 * size + 12_000), 1 << 11);
        let all = task_size(points, |_| points);
        assert!(points.div_ceil(all) <= MAX_TIMES);
        assert_eq!(task_size(1_000, |_| 1_000), 1 << 8);
    }
}
