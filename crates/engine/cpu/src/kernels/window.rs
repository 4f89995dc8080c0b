//! Sums for the points that one task reaches.
//!
//! Where pairs are evaluated once for both points, a task adds to points of other tasks. It does so
//! in a [`Window`] of its own, which holds pages of 128 consecutive points, opened when the first
//! of their points is reached. The points within the radius of a few thousand targets are a handful
//! of stretches far apart in memory, parts of this layer of cells and of the next, and most points
//! between them are never touched. So a window is small however wide a layer is, and tasks can be
//! small too, which lets many workers share the work evenly.
//!
//! Sums are either reached point by point ([`Window::sums`], [`Window::pointers`]); the channels of
//! a point then lie next to each other. Or they are reached page by page ([`Window::page_of`]), and
//! the page belongs to the caller, who may keep each channel separately. A task does one or the
//! other.
//!
//! [`together`](super::together) adds the windows up when all tasks are done.
//!
//! # Failure
//!
//! A window that is refused memory must not abort in the middle of a loop that writes sums without
//! checks. Its first page always has room, see [`Window::new`]; sums that have no page of their
//! own go there, the refusal is noted, and [`Window::close`] returns it.
//!
//! # Between tasks
//!
//! The table of pages has an entry per page of the whole set, and is kept in the worker's scratch.
//! Closing a window resets the entries it used, not the whole table, so a task costs what it
//! reaches.

use crate::{candidates::arrays::Chunk, simd::LANES};
use nearfield_grid::memory::{Shortage, make_room, make_room_for_one};
use nearfield_pairs::{Channels, PairKernel};

/// The name of the memory in messages.
pub(super) const WHAT: &str = "sums of pairs that are evaluated once";

/// Points of a page.
pub(super) const PAGE: usize = 1 << 7;
/// Marks a page that is not open.
const NONE: u32 = u32::MAX;

/// The sums of one task while it works.
pub(crate) struct Window<'a> {
    /// From pages of the points to pages of the window.
    table: &'a mut PageTable,
    /// The value of a sum without contributions.
    identity: f32,
    /// The pages and their sums.
    held: WindowSums,
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

/// The sums of a task.
#[derive(Debug, Default)]
pub(crate) struct WindowSums {
    /// Pages in the order in which they were opened.
    pub(super) pages: Vec<u32>,
    /// Their sums.
    pub(super) sums: Vec<f32>,
}

impl WindowSums {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * self.pages.capacity() + size_of::<f32>() * self.sums.capacity()
    }
}

impl<'a> Window<'a> {
    /// A window on `points` points, in the memory of `held`.
    pub(crate) fn new<K: PairKernel>(
        points: usize,
        table: &'a mut PageTable,
        mut held: WindowSums,
    ) -> Result<Self, Shortage> {
        let pages = points.div_ceil(PAGE).max(table.pages.len());
        make_room(&mut table.pages, pages, WHAT)?;
        table.pages.resize(pages, NONE);
        held.pages.clear();
        held.sums.clear();
        // The first page always has room: it takes the sums that have none.
        make_room(&mut held.pages, 1, WHAT)?;
        make_room(&mut held.sums, PAGE * K::Output::COUNT, WHAT)?;
        Ok(Self {
            table,
            identity: K::REDUCE.identity(),
            held,
            failed: None,
        })
    }

    /// Opens a page, out of line.
    #[cold]
    #[inline(never)]
    fn open(&mut self, page: usize, channels: usize) -> u32 {
        let opened = self.held.pages.len() as u32;
        let room = self.held.sums.len() + PAGE * channels;
        let more = room - self.held.sums.len();
        let grown = make_room_for_one(&mut self.held.pages, WHAT).and_then(|()| {
            (self.held.sums.try_reserve(more)).map_err(|_| Shortage::of::<f32>(room, WHAT))
        });
        if let Err(shortage) = grown {
            // The first page has room, see `new`. Its sums are of no use from now on.
            debug_assert!(opened > 0);
            self.failed = Some(shortage);
            return 0;
        }
        self.held.pages.push(page as u32);
        self.held.sums.resize(room, self.identity);
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
    ///
    /// The slice holds one value per output channel.
    #[inline(always)]
    pub(crate) fn sums<K: PairKernel>(&mut self, point: usize) -> &mut [f32] {
        let page = self.page(point, K::Output::COUNT);
        let at = (page * PAGE + point % PAGE) * K::Output::COUNT;
        &mut self.held.sums[at..][..K::Output::COUNT]
    }

    /// The [`PAGE`] sums of each channel of the points of a page, in the order that the caller
    /// gives them.
    #[inline(always)]
    pub(crate) fn page_of<K: PairKernel>(&mut self, point: usize) -> &mut [f32] {
        let (page, room) = (self.page(point, K::Output::COUNT), PAGE * K::Output::COUNT);
        &mut self.held.sums[page * room..][..room]
    }

    /// Pointers to the sums of up to [`LANES`] points, which may be the same point several times.
    ///
    /// Pages are opened first and pointers taken afterwards, because opening a page may move the
    /// sums.
    #[inline(always)]
    pub(crate) fn pointers<K: PairKernel>(&mut self, points: &[u32]) -> [*mut f32; LANES] {
        let mut pages = [0; LANES];
        for (page, &point) in pages.iter_mut().zip(points) {
            *page = self.page(point as usize, K::Output::COUNT);
        }
        // Only now, as sums move when a page is opened.
        let sums = self.held.sums.as_mut_ptr();
        let mut pointers = [std::ptr::null_mut(); LANES];
        for ((pointer, page), &point) in pointers.iter_mut().zip(pages).zip(points) {
            let at = page * PAGE + point as usize % PAGE;
            // SAFETY: the page is open, so there are sums for all of its points.
            *pointer = unsafe { sums.add(at * K::Output::COUNT) };
        }
        pointers
    }

    /// Closes all pages and returns the sums.
    ///
    /// # Errors
    /// The memory that was refused meanwhile.
    ///
    /// The table is left as it was before the window was opened.
    pub(crate) fn close(self) -> Result<WindowSums, Shortage> {
        for &page in &self.held.pages {
            self.table.pages[page as usize] = NONE;
        }
        self.failed.map_or(Ok(self.held), Err)
    }
}

/// The lanes of a [`Chunk`] whose points lie in one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InPage {
    /// A point of the page.
    pub(crate) point: usize,
    /// Number in the page of the point of the first lane.
    pub(crate) first: usize,
    /// The lanes, a bit per lane, all within the page.
    pub(crate) lanes: u32,
}

/// Divides a chunk of vectors of `width` lanes where a page ends. A whole vector from the first
/// lane of either part lies in its page: the lanes of the first part are moved up as far as the
/// vector would reach beyond the end. The second part has no lanes where the page does not end.
#[inline(always)]
pub(crate) fn by_page(chunk: Chunk, width: usize) -> [InPage; 2] {
    let at = chunk.slot % PAGE;
    let beyond = (at + width).saturating_sub(PAGE);
    let all = u32::MAX >> (32 - width);
    let before = InPage {
        point: chunk.slot,
        first: at - beyond,
        lanes: chunk.lanes << beyond & all,
    };
    let after = InPage {
        point: chunk.slot + width,
        first: 0,
        lanes: (u64::from(chunk.lanes & all) >> (width - beyond)) as u32,
    };
    [before, after]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_of_a_chunk_is_in_the_page_of_its_point() {
        for width in [1, 4, 8, 16] {
            for slot in (0..3 * PAGE).step_by(3).chain(2 * PAGE - 17..2 * PAGE + 3) {
                for lanes in [1, 0b1010_0110_1101_0011, 0xffff] {
                    let lanes = lanes & (u32::MAX >> (32 - width));
                    let mut found = Vec::new();
                    for part in by_page(Chunk { slot, lanes }, width) {
                        assert!(part.first + width <= PAGE, "{slot}: {part:?}");
                        let page = part.point / PAGE * PAGE;
                        let lanes = (0..32).filter(|lane| part.lanes >> lane & 1 == 1);
                        found.extend(lanes.map(|lane| page + part.first + lane));
                    }
                    let lanes = (0..width).filter(|lane| lanes >> lane & 1 == 1);
                    let expected: Vec<_> = lanes.map(|lane| slot + lane).collect();
                    assert_eq!(found, expected, "{width} lanes from {slot}");
                }
            }
        }
    }
}
