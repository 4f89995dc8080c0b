//! Download of lists in parts: one part is copied to the host while the next is written.
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
//! host can place them while entries arrive. A part has about 4 Mi entries: enough for a copy to
//! run at full speed, and few enough that little is left to copy when the last part has been
//! written.
//!
//! ```text
//!   backend's stream:  write 0 │ write 1 │ wait for copy 0, write 2 │ …
//!   stream of copies:          │ copy 0  │ copy 1                   │ copy 2 │ …
//! ```
//!
//! If two of the longest parts do not fit into memory, or take more than the lists are
//! [limited](DeviceLists::limit) to, the lists are divided into four times as many parts, up to
//! 4,096, before the request is refused. Where the limit is still exceeded, parts take turns over
//! one half. Only `flat` can write a range of targets; the other strategies write all lists at once
//! and need room for all entries.
//!
//! # Geometry
//!
//! The geometry of pairs comes in the same parts. Each of its arrays has two halves as the entries
//! have, and a part is copied array by array behind its entries. A pair then takes 32 bytes on the
//! bus instead of 4, so the copies decide how long a delivery takes, and the kernels are hidden
//! behind them. The arrays are given back at the end: a program that asks for lists alone next has
//! their memory.
//!
//! # Lists that stay
//!
//! Lists that kernels are to run over afterwards are written whole: parts then lie one behind the
//! other, and none waits for the copy of another. Where there is no memory for all entries they
//! take turns as others do, and are gone at the end.
//!
//! # Invariant
//!
//! No copy is under way when a call returns, successful or not: the host's memory is the caller's
//! again.

use super::{
    gpu::{GpuBackend, elapsed},
    lists::{DeviceLists, WriteTo},
    pair_arrays::{GeometryQuantities, HostPairs},
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::{DriverError, Event, Stream},
    launch::{Flat, Outlet, Traverse},
    memory::Queue,
    traversal::Strategy,
};
use cudarc::driver::sys::CUevent_flags;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPart {
    /// Ranks of the targets, in the share if there is one.
    pub slots: Range<usize>,
    /// Numbers of their entries among those of all lists.
    pub entries: Range<u64>,
}

impl ListPart {
    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.end.saturating_sub(self.entries.start) as usize
    }
}

/// The stream that copies, and whether stages are timed.
#[derive(Clone, Copy)]
struct Observed<'a> {
    copies: &'a Queue,
    /// Events measure time, which makes them a little dearer.
    timed: bool,
}

impl Observed<'_> {
    /// An event behind what was started on a stream.
    fn mark(self, stream: &Stream) -> Result<Event, Error> {
        let flags = self.timed.then_some(CUevent_flags::CU_EVENT_DEFAULT);
        let event = stream.0.record_event(flags);
        event.map(Event).map_err(|error| failed(DriverError(error)))
    }
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
    /// Counts the neighbours of every target and returns their number. The lists that are
    /// [delivered](Self::deliver_lists) are of this kind and written by this strategy.
    ///
    /// # Errors
    /// The errors of compiling and running programs.
    pub fn measure_lists(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<u64, Error> {
        // Points that are named more than once are more than the set has.
        lists.prepare(self, of.targets.len().max(of.searching()))?;
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
    /// has room for exactly them, and waits until they are there. When all starts and lengths have
    /// arrived, before the entries, `placed` gets them. Starts and lengths of targets outside a
    /// share become 0.
    ///
    /// With a mark `since` it returns when each part was written and copied; the events that tell
    /// it are timed ones, which cost the device a little more than others. Without a mark it
    /// returns nothing.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] when other points were measured, [`ErrorKind::FieldLength`] when
    /// the memory has another size, [`ErrorKind::OutOfMemory`] when not even a small part of the
    /// lists fits, and those of running programs.
    pub fn deliver_lists<'a>(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        to: HostLists<'a>,
        since: Option<&Event>,
        placed: impl FnOnce(&'a mut [u64], &'a mut [u32]),
    ) -> Result<Vec<Delivered>, Error> {
        self.deliver_all(of, lists, (to, None), since, placed)
    }

    /// Counts the neighbours of every target, as [`measure_lists`](Self::measure_lists), for lists
    /// that are [delivered](Self::deliver_pairs) with the geometry of their pairs.
    ///
    /// # Errors
    /// As there.
    pub fn measure_pairs(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<u64, Error> {
        lists.want(HostPairs::WANTED);
        self.measure_lists(of, kind, strategy, lists)
    }

    /// As [`deliver_lists`](Self::deliver_lists), with the geometry of all pairs, of lists that
    /// were [measured](Self::measure_pairs) for it. Arrays for it are given back afterwards.
    ///
    /// # Errors
    /// As there, [`ErrorKind::FieldLength`] for arrays that do not have one value for each entry,
    /// and [`ErrorKind::FarImages`].
    pub fn deliver_pairs<'a>(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        to: HostLists<'a>,
        pairs: HostPairs<'_>,
        placed: impl FnOnce(&'a mut [u64], &'a mut [u32]),
    ) -> Result<(), Error> {
        let entries = to.entries.len();
        let images = pairs.images.as_ref().map_or(0, |images| images.len());
        fits("images of pairs", images, entries)?;
        let elements = lists.geometry.wide() * entries;
        fits(
            "displacements of pairs",
            pairs.displacements.len(),
            elements,
        )?;
        fits("squared distances of pairs", pairs.squares.len(), elements)?;
        let delivered = self.deliver_all(of, lists, (to, Some(pairs)), None, placed);
        let far = match delivered {
            Ok(_) if !of.is_empty() => lists.far_images(self),
            delivered => delivered.map(|_| 0),
        };
        lists.want(GeometryQuantities::NONE);
        match far? {
            0 => Ok(()),
            pairs => Err(Error::from(ErrorKind::FarImages { pairs })),
        }
    }

    /// Lists, and the geometry of their pairs where there is memory for it.
    fn deliver_all<'a>(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        (to, pairs): (HostLists<'a>, Option<HostPairs<'_>>),
        since: Option<&Event>,
        placed: impl FnOnce(&'a mut [u64], &'a mut [u32]),
    ) -> Result<Vec<Delivered>, Error> {
        let targets = of.targets.len();
        fits("starts of lists", to.start.len(), targets)?;
        fits("lengths of lists", to.count.len(), targets)?;
        if of.is_empty() {
            to.start.fill(0);
            to.count.fill(0);
            placed(to.start, to.count);
            return Ok(Vec::new());
        }
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
        let observed = Observed {
            copies: &copies,
            timed: since.is_some(),
        };
        let under_way = self.deliver(of, lists, (to, pairs), observed);
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
        let Some(since) = since else {
            return Ok(Vec::new());
        };
        let _span = tracing::debug_span!("gpu.read_times").entered();
        let times = stages.iter().map(|stage| stage.times(since));
        let mut times = times.collect::<Result<Vec<Delivered>, Error>>()?;
        for part in 1..times.len() {
            let before = times[part - 1].download[1];
            let download = &mut times[part].download;
            download[0] = download[0].max(before);
        }
        Ok(times)
    }

    /// Starts everything. Returns the event of the arrival of all starts and lengths, and the
    /// stages, whose copies may still be under way, also after an error.
    fn deliver(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        (to, mut pairs): (HostLists<'_>, Option<HostPairs<'_>>),
        observed: Observed<'_>,
    ) -> Result<(Event, Vec<Stage>), Error> {
        if of.share.is_some() {
            lists.clear_places(self, of.targets.len())?;
        }
        if lists.traversal(&of)?.strategy != Strategy::Flat {
            return self.deliver_at_once(of, lists, (to, pairs), observed);
        }
        let all = to.entries.len() as u64;
        let whole = lists.keep && pairs.is_none() && lists.make_whole(self, to.entries.len())?;
        let (parts, halves) = if whole {
            let targets = of.searching();
            let parts = together(&lists.parts, step_of(targets, PARTS), targets, all);
            let halves = parts.len();
            (parts, halves)
        } else {
            self.divided(of, all, lists)?
        };
        // Now it is known whether there is memory for masks.
        let kernels = self.traversal(lists.traversal(&of)?)?;
        let Traverse::Flat(flat) = &kernels.traverse else {
            return self.deliver_at_once(of, lists, (to, pairs), observed);
        };
        let room = lists.room() / halves.max(1);
        let (sorted, ordered) = (lists.sorted(), lists.ordered());
        let points = of.targets_layout();
        (self.shared.grid).lists_in_order(&self.stream, &points, sorted, ordered)?;
        let copies = observed.copies;
        copies.join(&self.stream).map_err(failed)?;
        let placed = lists.start_places(copies, to.start, to.count)?;
        let mut stages: Vec<Stage> = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            // Where the part before the last was.
            let half = if whole {
                part.entries.start as usize
            } else {
                number % halves * room
            };
            if let Some(before) = number.checked_sub(halves).map(|before| &stages[before]) {
                self.stream.wait(&before.copied).map_err(failed)?;
            }
            let before = observed.mark(&self.stream)?;
            self.write_part(of, lists, flat, part, half)?;
            let written = observed.mark(&self.stream)?;
            copies.wait(&written).map_err(failed)?;
            let range = part.entries.start as usize..part.entries.end as usize;
            let found = to.entries.len();
            let Some(place) = to.entries.get_mut(range.clone()) else {
                return Err(Error::from(ErrorKind::FieldLength {
                    what: "entries of lists",
                    found,
                    expected: part.entries.end as usize,
                }));
            };
            lists.entries.copy_to(copies, half, place)?;
            if let Some(pairs) = &mut pairs {
                lists.geometry.copy_to(copies, half, pairs, range)?;
            }
            stages.push(Stage {
                slots: part.slots.clone(),
                compute: [before, written],
                copied: observed.mark(copies)?,
            });
        }
        // The next job of the backend may use the same buffers.
        self.stream.join(copies).map_err(failed)?;
        if whole {
            lists.are_whole(&of);
        }
        Ok((placed, stages))
    }

    /// Starts to write the lists of a part, with the first entry at place `half` of the storage.
    pub(super) fn write_part(
        &self,
        of: PairOfPoints<'_>,
        lists: &DeviceLists,
        flat: &Flat,
        part: &ListPart,
        half: usize,
    ) -> Result<(), Error> {
        let outlet = lists.outlet();
        let outlet = Outlet {
            entries: outlet.entries + (half * size_of::<u32>()) as u64,
            base: part.entries.start,
            capacity: part.entries.end,
            first: part.slots.start as u32,
            behind: part.slots.end as u32,
            ..outlet
        };
        let arrays = lists.arrays(half);
        let to = WriteTo { outlet, arrays };
        lists.write(self, of, flat, to, part.slots.len(), part.len() as u64)?;
        if lists.are_nearest_first() {
            to.order_by_distance(self, of, None)?;
        }
        Ok(())
    }

    /// As [`deliver`](Self::deliver), for strategies that do not go by targets and so write all
    /// lists at once.
    fn deliver_at_once(
        &self,
        of: PairOfPoints<'_>,
        lists: &mut DeviceLists,
        (to, pairs): (HostLists<'_>, Option<HostPairs<'_>>),
        observed: Observed<'_>,
    ) -> Result<(Event, Vec<Stage>), Error> {
        let (entries, copies) = (to.entries.len(), observed.copies);
        lists.reserve_entries(self, entries)?;
        let before = observed.mark(&self.stream)?;
        lists.fill(self, of, entries as u64)?;
        let written = observed.mark(&self.stream)?;
        self.wait()?;
        let placed = lists.start_places(copies, to.start, to.count)?;
        lists.entries.copy_to(copies, 0, to.entries)?;
        match pairs {
            Some(mut pairs) => lists.geometry.copy_to(copies, 0, &mut pairs, 0..entries)?,
            None if lists.keep => lists.are_whole(&of),
            None => {}
        }
        let stage = Stage {
            slots: 0..of.searching(),
            compute: [before, written],
            copied: observed.mark(copies)?,
        };
        Ok((placed, vec![stage]))
    }

    /// Divides the lists into parts so small that two of them fit the device and the lists' limit,
    /// and makes room for these. Returns how many parts there is room for at a time: one, if there
    /// are no more or if two exceed the limit however small they are.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] when there are as many parts as may be, or as there are targets.
    pub(super) fn divided(
        &self,
        of: PairOfPoints<'_>,
        pairs: u64,
        lists: &mut DeviceLists,
    ) -> Result<(Vec<ListPart>, usize), Error> {
        let targets = of.searching();
        let step = step_of(targets, PARTS);
        let mut parts = together(&lists.parts, step, targets, pairs);
        let mut wanted = PARTS;
        loop {
            let longest = parts.iter().map(ListPart::len).max().unwrap_or(0);
            let divisible = wanted < MAX_PARTS && parts.len() < targets;
            let halves = parts.len().clamp(1, 2);
            let exceeds = longest.saturating_mul(halves) > lists.max_entries();
            if !(exceeds && divisible) {
                let halves = if exceeds { 1 } else { halves };
                match lists.reserve_entries(self, halves * longest) {
                    Err(error) if error.is_out_of_memory() && divisible => {}
                    reserved => return reserved.map(|_| (parts, halves)),
                }
            }
            wanted *= 4;
            let step = step_of(targets, wanted);
            let starts = lists.bounds(self, step, targets.div_ceil(step))?;
            parts = together(&starts, step, targets, u64::MAX);
        }
    }
}

/// Targets of a part where there are to be `parts`.
fn step_of(targets: usize, parts: usize) -> usize {
    targets.div_ceil(parts).max(1)
}

/// Parts of at most about [`PART`] entries, of `pairs` in all, from those that begin at `starts`
/// and are `step` targets long.
fn together(starts: &[u64], step: usize, targets: usize, pairs: u64) -> Vec<ListPart> {
    let all = starts.len().saturating_sub(1);
    let wanted = (pairs / PART).clamp(1, all.max(1) as u64) as usize;
    let bounds: Vec<usize> = (0..all).step_by(all.div_ceil(wanted).max(1)).collect();
    let ends = bounds.iter().skip(1).copied().chain([all]);
    (bounds.iter().zip(ends))
        .map(|(&begin, end)| ListPart {
            slots: begin * step..(end * step).min(targets),
            entries: starts[begin]..starts[end],
        })
        .collect()
}

/// A part on its way: marks in both streams.
struct Stage {
    /// Ranks of its targets.
    slots: Range<usize>,
    /// Before and after its lists were written, on the backend's stream.
    compute: [Event; 2],
    /// Behind its copy, on the stream of copies.
    copied: Event,
}

impl DeviceLists {
    /// Makes room for all entries; false if there is no memory for them.
    fn make_whole(&mut self, backend: &GpuBackend, entries: usize) -> Result<bool, Error> {
        match self.reserve_entries(backend, entries) {
            Err(error) if error.is_out_of_memory() => Ok(false),
            reserved => reserved.map(|_| true),
        }
    }

    /// Starts to copy starts and lengths to the host; the event is behind the copies.
    fn start_places(
        &self,
        copies: &Queue,
        start: &mut [u64],
        count: &mut [u32],
    ) -> Result<Event, Error> {
        self.list_starts.copy_to(copies, 0, start)?;
        self.list_counts.copy_to(copies, 0, count)?;
        copies.record_event().map_err(failed)
    }
}

impl Stage {
    /// Times of the stage, in milliseconds since a mark; waits for the stage.
    fn times(&self, since: &Event) -> Result<Delivered, Error> {
        let [before, written] = &self.compute;
        let compute = [elapsed(since, before)?, elapsed(since, written)?];
        Ok(Delivered {
            slots: self.slots.clone(),
            compute,
            // A copy begins when its lists are written, or when the copy before it has ended.
            download: [compute[1], elapsed(since, &self.copied)?],
        })
    }
}

/// A failed call of the driver while lists are delivered.
pub(super) fn failed(error: DriverError) -> Error {
    Error::of_call("copying lists to the host", error)
}
