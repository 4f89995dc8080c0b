//! Lists on their way to the host: written in parts, and every part copied while the next is
//! written.
//!
//! The device holds two parts at a time, so lists may be larger than its memory. Parts are
//! consecutive ranges of sorted targets. Two streams take turns over the two halves of the storage
//! of entries:
//!
//! 1. The backend's stream waits until the copy of the part before the last has ended, writes a
//!    part into the half that this copy has freed, and records an event.
//! 2. The stream of copies waits for that event, copies the half, and records an event of its own.
//!
//! Starts and lengths of all lists are known from the scan of the counts. They leave first, so the
//! host can place them while entries arrive. If two of the longest parts do not fit into memory,
//! the lists are divided into four times as many parts, up to 4,096, before the request is refused.
//!
//! No copy is under way when a call returns, successful or not: the host's memory is the caller's
//! again.

use super::{gpu::GpuBackend, lists::DeviceLists, walk::PairOfPoints};
use crate::{
    error::{Error, ErrorKind},
    launch::{Outlet, TraversalKernels},
    memory::Queue,
    traversal::{Strategy, Work},
};
use cudarc::driver::{CudaEvent, CudaStream, sys::CUevent_flags};
use nearfield_grid::HostLists;
use nearfield_pairs::ListKind;
use std::ops::Range;

/// Entries of a part, about: enough for a copy to run at full speed.
const PART: u64 = 4 << 20;
/// Parts of lists that fit into the device's memory anyway.
const PARTS: usize = 16;
/// Most parts, where memory is short.
const MAX_PARTS: usize = 1 << 12;

/// Sorted targets whose lists are written together, and where those lists lie.
#[derive(Debug, Clone)]
struct Part {
    slots: Range<usize>,
    entries: Range<u64>,
}

/// The stream that copies, and the mark since which stages are timed, if they are.
#[derive(Clone, Copy)]
struct Observed<'a> {
    copies: &'a Queue,
    begin: Option<&'a CudaEvent>,
}

/// When lists of a share were written and copied, in milliseconds of the device since a mark.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivered {
    /// Whose lists these are: targets of the share, as its bounds count them.
    pub slots: Range<usize>,
    /// From when to when they were written.
    pub compute: [f32; 2],
    /// From when to when they were copied.
    pub download: [f32; 2],
}

impl GpuBackend {
    /// Counts the neighbours of every target, and says how many there are together.
    ///
    /// # Errors
    /// Those of compiling and running programs.
    pub fn measure_lists(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<u64, Error> {
        lists.prepare(self, of.targets.len())?;
        if of.is_empty() {
            return Ok(0);
        }
        lists.count(self, of, kind, strategy)?;
        // The bounds of the parts are copied together with the total.
        let step = step_of(of.searching(), PARTS);
        let parts = of.searching().div_ceil(step);
        lists.parts = lists.bounds(self, step, parts)?;
        Ok(lists.parts[parts])
    }

    /// Writes the lists that were [measured](Self::measure_lists) into memory of the host, which
    /// has room for exactly them, and waits until they are there. In [page-locked
    /// memory](crate::HostBuffer) the copies run beside the search. When all starts and lengths
    /// have arrived, before the entries, `placed` gets them.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] when other points were measured, [`ErrorKind::FieldLength`] when
    /// the memory has another size, [`ErrorKind::OutOfMemory`] when not even a small part of the
    /// lists fits, and those of running programs.
    pub fn deliver_lists<'a>(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
        (to, placed): (HostLists<'a>, impl FnOnce(&'a mut [u64], &'a mut [u32])),
    ) -> Result<(), Error> {
        self.deliver_since(of, kind, strategy, lists, to, (None, placed))
            .map(|_| ())
    }

    /// As [`deliver_lists`](Self::deliver_lists), for the lists of a share; says when what was
    /// done. Starts and lengths of other lists become 0.
    ///
    /// # Errors
    /// As there.
    pub fn deliver_share<'a>(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
        to: HostLists<'a>,
        (begin, placed): (&CudaEvent, impl FnOnce(&'a mut [u64], &'a mut [u32])),
    ) -> Result<Vec<Delivered>, Error> {
        self.deliver_since(of, kind, strategy, lists, to, (Some(begin), placed))
    }

    fn deliver_since<'a>(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
        to: HostLists<'a>,
        (begin, placed): (
            Option<&CudaEvent>,
            impl FnOnce(&'a mut [u64], &'a mut [u32]),
        ),
    ) -> Result<Vec<Delivered>, Error> {
        let targets = of.targets.len();
        for (what, found, expected) in [
            ("starts of lists", to.start.len(), targets),
            ("lengths of lists", to.count.len(), targets),
        ] {
            if found != expected {
                return Err(Error::from(ErrorKind::FieldLength {
                    what,
                    found,
                    expected,
                }));
            }
        }
        if of.is_empty() {
            to.start.fill(0);
            to.count.fill(0);
            placed(to.start, to.count);
            return Ok(Vec::new());
        }
        lists.check_counted(&of)?;
        let copies = self.beside(&mut lists.copies)?;
        let HostLists {
            start,
            count,
            entries,
        } = to;
        let to = HostLists {
            start: &mut *start,
            count: &mut *count,
            entries,
        };
        let under_way = self.deliver(
            of,
            kind,
            strategy,
            lists,
            to,
            Observed {
                copies: &copies,
                begin,
            },
        );
        let arrived = under_way.and_then(|(places, stages)| {
            places.synchronize().map_err(failed)?;
            Ok(stages)
        });
        if arrived.is_ok() {
            placed(start, count);
        }
        // After this nothing may be written to the host's memory, also after an error.
        let waited = copies.synchronize();
        let stages = arrived?;
        waited?;
        let Some(begin) = begin else {
            return Ok(Vec::new());
        };
        let _span = tracing::debug_span!("gpu.read_times").entered();
        let times = stages.iter().map(|stage| stage.times(begin));
        let mut times = times.collect::<Result<Vec<Delivered>, Error>>()?;
        for part in 1..times.len() {
            let before = times[part - 1].download[1];
            let download = &mut times[part].download;
            download[0] = download[0].max(before);
        }
        Ok(times)
    }

    /// Asks for everything; says when all starts and lengths have arrived, and when what else.
    fn deliver(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
        to: HostLists<'_>,
        Observed { copies, begin }: Observed<'_>,
    ) -> Result<(CudaEvent, Vec<Stage>), Error> {
        if of.share.is_some() {
            lists.clear_places(self, of.targets.len())?;
        }
        let traversal = of.traversal(strategy, Work::Lists(kind), kind == ListKind::Half)?;
        let kernels = self
            .shared
            .traversals
            .get(&self.shared.modules, &traversal)?;
        let TraversalKernels::Flat(flat) = &*kernels else {
            return self.deliver_at_once(of, kind, strategy, lists, to, copies);
        };
        let parts = self.divided(of, to.entries.len() as u64, lists)?;
        let room = lists.entries.capacity() / 2;
        self.shared.grid.lists_in_order(
            &self.stream,
            &of.targets_layout(),
            (lists.starts.address(), lists.counts.address()),
            (lists.list_starts.address(), lists.list_counts.address()),
        )?;
        copies.join(&self.stream).map_err(failed)?;
        lists.list_starts.copy_to(copies, 0, to.start)?;
        lists.list_counts.copy_to(copies, 0, to.count)?;
        let placed = copies.record_event(None).map_err(failed)?;
        let mark = |stream: &CudaStream| match begin {
            Some(_) => stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)),
            None => stream.record_event(None),
        };
        let mut stages: Vec<Stage> = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            // Where the part before the last was.
            let half = number % 2 * room;
            if let Some(before) = number.checked_sub(2).map(|before| &stages[before]) {
                self.stream.wait(&before.copied).map_err(failed)?;
            }
            let before = mark(&self.stream).map_err(failed)?;
            let outlet = Outlet {
                starts: lists.starts.address(),
                entries: lists.entries.address() + (half * size_of::<u32>()) as u64,
                list_starts: lists.list_starts.address(),
                list_counts: lists.list_counts.address(),
                base: part.entries.start,
                capacity: part.entries.end,
                first: part.slots.start as u32,
                behind: part.slots.end as u32,
                ..Outlet::default()
            };
            let long = part.entries.end - part.entries.start;
            lists.write(self, of, flat, outlet, part.slots.len(), long)?;
            let written = mark(&self.stream).map_err(failed)?;
            copies.wait(&written).map_err(failed)?;
            let place = part.entries.start as usize..part.entries.end as usize;
            let Some(place) = to.entries.get_mut(place) else {
                return Err(Error::from(ErrorKind::FieldLength {
                    what: "entries of lists",
                    found: to.entries.len(),
                    expected: part.entries.end as usize,
                }));
            };
            lists.entries.copy_to(copies, half, place)?;
            stages.push(Stage {
                slots: part.slots.clone(),
                compute: [before, written],
                copied: mark(copies).map_err(failed)?,
            });
        }
        // The next job of the backend may use the same buffers.
        self.stream.join(copies).map_err(failed)?;
        Ok((placed, stages))
    }

    /// As [`deliver`](Self::deliver), for strategies that do not go by targets and so write all
    /// lists at once.
    fn deliver_at_once(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
        to: HostLists<'_>,
        copies: &Queue,
    ) -> Result<(CudaEvent, Vec<Stage>), Error> {
        let pairs = to.entries.len();
        lists.entries.reserve(&self.stream, pairs)?;
        let before = self.mark()?;
        lists.fill(self, of, kind, strategy, pairs as u64)?;
        let written = self.mark()?;
        self.wait()?;
        lists.list_starts.copy_to(copies, 0, to.start)?;
        lists.list_counts.copy_to(copies, 0, to.count)?;
        let placed = copies.record_event(None).map_err(failed)?;
        lists.entries.copy_to(copies, 0, to.entries)?;
        let stage = Stage {
            slots: 0..of.searching(),
            compute: [before, written],
            copied: (copies.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))).map_err(failed)?,
        };
        Ok((placed, vec![stage]))
    }

    /// Divides the lists into parts so small that two of them fit the device.
    fn divided(
        &self,
        of: PairOfPoints<'_>,
        pairs: u64,
        lists: &mut DeviceLists,
    ) -> Result<Vec<Part>, Error> {
        let targets = of.searching();
        let step = step_of(targets, PARTS);
        let mut parts = together(&lists.parts, step, targets, pairs);
        let mut wanted = PARTS;
        loop {
            let longest = parts
                .iter()
                .map(|part| part.entries.end - part.entries.start);
            let room = 2 * longest.max().unwrap_or(0) as usize;
            match lists.reserve_entries(self, room) {
                Err(error)
                    if error.is_out_of_memory() && wanted < MAX_PARTS && parts.len() < targets =>
                {
                    wanted *= 4;
                    let step = step_of(targets, wanted);
                    let starts = lists.bounds(self, step, targets.div_ceil(step))?;
                    parts = together(&starts, step, targets, u64::MAX);
                }
                reserved => return reserved.map(|_| parts),
            }
        }
    }
}

/// Targets of a part where there are to be `parts`.
fn step_of(targets: usize, parts: usize) -> usize {
    targets.div_ceil(parts).max(1)
}

/// Parts of at most about [`PART`] entries, of `pairs` in all, from those that begin at `starts`
/// and are `step` targets long.
fn together(starts: &[u64], step: usize, targets: usize, pairs: u64) -> Vec<Part> {
    let all = starts.len().saturating_sub(1);
    let wanted = (pairs / PART).clamp(1, all.max(1) as u64) as usize;
    let bounds: Vec<usize> = (0..all).step_by(all.div_ceil(wanted).max(1)).collect();
    let ends = bounds.iter().skip(1).copied().chain([all]);
    (bounds.iter().zip(ends))
        .map(|(&begin, end)| Part {
            slots: begin * step..(end * step).min(targets),
            entries: starts[begin]..starts[end],
        })
        .collect()
}

/// A part on its way: marks in both streams.
struct Stage {
    slots: Range<usize>,
    compute: [CudaEvent; 2],
    copied: CudaEvent,
}

impl Stage {
    fn times(&self, begin: &CudaEvent) -> Result<Delivered, Error> {
        let since = |event: &CudaEvent| {
            let elapsed = begin.elapsed_ms(event);
            elapsed.map_err(|error| Error::driver("cuEventElapsedTime", error))
        };
        let compute = [since(&self.compute[0])?, since(&self.compute[1])?];
        Ok(Delivered {
            slots: self.slots.clone(),
            compute,
            // A copy begins when its lists are written, or when the copy before it has ended.
            download: [compute[1], since(&self.copied)?],
        })
    }
}

fn failed(error: cudarc::driver::DriverError) -> Error {
    Error::driver("copying lists to the host", error)
}
