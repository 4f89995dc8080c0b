//! Lists in sorted order, some targets at a time: for callers that hold one part, not all lists.
//!
//! The lists are counted once, and the host gets the order of the targets and the length of each
//! list ([`GpuBackend::measure_rows`]). It cuts them into parts as it likes, and every part is
//! written and copied when its turn comes ([`GpuBackend::deliver_rows`]): neither the device nor
//! the host holds more than two parts. A part comes with displacements and squared distances where
//! these were asked for.
//!
//! ```text
//!   backend's stream:  write 0 │ write 1 │         │ write 2 │
//!   stream of copies:          │ copy 0  │ copy 1  │         │ copy 2 │
//!   host:                                │ use 0   │ use 1            │ use 2
//! ```
//!
//! Two parts take turns over the halves of the storage on the device and over two places of the
//! host. A part begins to be written when the host has done with the part before the last, so while
//! the host uses one, the next is written and copied.
//!
//! # Order
//!
//! Sorted order is that of the last sort. Sorting the same positions again gives the same order
//! where the table of the targets is dense; in a [sparse](super::DevicePoints::is_sparse) one the
//! bricks of cells come in another order each time, and lengths of an earlier sort are of no use.
//!
//! # Invariant
//!
//! No copy is under way when a call returns or panics: the host's memory is the caller's again.

use super::{
    delivery::{ListPart, failed},
    gpu::GpuBackend,
    lists::DeviceLists,
    pair_arrays::{GeometryQuantities, HostPairs},
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind, fits},
    handles::Event,
    launch::{Flat, Traverse},
    memory::Queue,
    traversal::Strategy,
};
use nearfield_pairs::ListKind;
use std::ops::ControlFlow;

/// Memory of the host for one part: page-locked memory is copied to at full speed, and meanwhile.
#[derive(Debug)]
pub struct HostRows<'a> {
    /// The caller's indices of the neighbours, one list behind the other; at least as many as the
    /// longest part has.
    pub entries: &'a mut [u32],
    /// Displacements and their squares, as long as `entries`, where these were measured for.
    pub pairs: Option<HostPairs<'a>>,
}

/// Waits for copies when it is dropped.
struct Copies(Queue);

impl Drop for Copies {
    fn drop(&mut self) {
        // A call that ends well has waited already, and another has an error to return.
        let _ = self.0.synchronize();
    }
}

/// What writing a part takes.
#[derive(Clone, Copy)]
struct Writing<'a> {
    of: PairOfPoints<'a>,
    flat: &'a Flat,
    /// Entries of a half of the storage.
    room: usize,
    copies: &'a Queue,
}

impl GpuBackend {
    /// Counts the neighbours of every target, for lists that are [delivered](Self::deliver_rows)
    /// in parts, with the geometry of their pairs if `geometry` says so. Writes the caller's index
    /// and the number of neighbours of every sorted target, and returns the number of all
    /// neighbours.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for arrays that do not have one value per target, and those of
    /// [`measure_lists`](Self::measure_lists).
    pub fn measure_rows(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        geometry: bool,
        lists: &mut DeviceLists,
        (targets, lengths): (&mut [u32], &mut [u32]),
    ) -> Result<u64, Error> {
        fits("the order of targets", targets.len(), of.targets.len())?;
        fits("lengths of lists", lengths.len(), of.targets.len())?;
        lists.want(wanted(geometry));
        let pairs = self.measure_lists(of, kind, Strategy::Flat, lists)?;
        if of.targets.is_empty() {
            return Ok(0);
        }
        lists.rows(self, &of, targets, lengths)?;
        if of.is_empty() {
            lengths.fill(0);
        }
        Ok(pairs)
    }

    /// Writes the lists of `parts`, which are some of those that were
    /// [measured](Self::measure_rows), and calls `receive` with the number of each and the memory
    /// that holds it, in turn; the next part is on its way meanwhile. Parts take turns over `to`; a
    /// single one needs only the first.
    ///
    /// Lists are counted anew if another job has counted since. Returns what `receive` returned
    /// last.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] if a part is longer than the memory, [`ErrorKind::OutOfMemory`]
    /// with the bytes that two parts take on the device, and those of
    /// [`measure_lists`](Self::measure_lists). Parts that were received before are good.
    pub fn deliver_rows(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        lists: &mut DeviceLists,
        parts: &[ListPart],
        mut to: [HostRows<'_>; 2],
        receive: &mut dyn FnMut(usize, &HostRows<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let longest = parts.iter().map(ListPart::len).max().unwrap_or(0);
        if of.is_empty() || longest == 0 {
            let mut numbers = 0..parts.len();
            return Ok(numbers.try_for_each(|number| receive(number, &to[number % 2])));
        }
        let halves = parts.len().clamp(1, 2);
        lists.want(wanted(to[0].pairs.is_some()));
        if !lists.are_measured(&of, kind, Strategy::Flat) {
            self.measure_lists(of, kind, Strategy::Flat, lists)?;
        }
        lists.reserve_entries(self, halves * longest)?;
        let copies = self.beside(&mut lists.copies)?;
        let kernels = self.traversal(lists.traversal(&of)?)?;
        let Traverse::Flat(flat) = &kernels.traverse else {
            return Err(Error::from(ErrorKind::OtherLists));
        };
        let copies = Copies(copies);
        copies.0.join(&self.stream).map_err(failed)?;
        let writing = Writing {
            of,
            flat,
            room: lists.room() / halves,
            copies: &copies.0,
        };
        let mut next = Some(self.start_part(writing, lists, parts, 0, &mut to)?);
        let mut flow = ControlFlow::Continue(());
        let mut number = 0;
        while let Some(copied) = next.take() {
            if number + 1 < parts.len() {
                next = Some(self.start_part(writing, lists, parts, number + 1, &mut to)?);
            }
            copied.synchronize().map_err(failed)?;
            flow = receive(number, &to[number % halves]);
            if flow.is_break() {
                break;
            }
            number += 1;
        }
        copies.0.synchronize()?;
        // The next job of the backend may use the same buffers.
        self.stream.join(&copies.0).map_err(failed)?;
        Ok(flow)
    }

    /// Starts to write a part and to copy it to the host; the event is behind its copies.
    fn start_part(
        &self,
        writing: Writing<'_>,
        lists: &DeviceLists,
        parts: &[ListPart],
        number: usize,
        to: &mut [HostRows<'_>; 2],
    ) -> Result<Event, Error> {
        let Writing {
            of,
            flat,
            room,
            copies,
        } = writing;
        let (part, HostRows { entries, pairs }) = (&parts[number], &mut to[number % 2]);
        let (half, len, found) = (number % 2 * room, part.len(), entries.len());
        let entries = entries.get_mut(..len).ok_or_else(|| {
            Error::from(ErrorKind::FieldLength {
                what: "entries of lists",
                found,
                expected: len,
            })
        })?;
        if len > 0 {
            self.write_part(of, lists, flat, part, half)?;
            let written = self.stream.record_event().map_err(failed)?;
            copies.wait(&written).map_err(failed)?;
            lists.entries.copy_to(copies, half, entries)?;
            if let Some(pairs) = pairs {
                lists.geometry.copy_to(copies, half, pairs, 0..len)?;
            }
        }
        copies.record_event().map_err(failed)
    }
}

/// What is written of every pair beside its entry.
fn wanted(geometry: bool) -> GeometryQuantities {
    if geometry {
        HostPairs::WITHOUT_IMAGES
    } else {
        GeometryQuantities::NONE
    }
}
