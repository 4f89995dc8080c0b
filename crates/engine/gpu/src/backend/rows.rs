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
    error::{Error, ErrorKind, fits, reserved},
    handles::Event,
    launch::{Flat, Points, Traverse},
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
    /// Displacements and their squares, as long as `entries` and in double precision twice that,
    /// where these were measured for.
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
    /// and the number of neighbours of every sorted target. Returns the number of all neighbours
    /// and, if a share is searched for, how many of its targets come before each sorted target and
    /// behind the last; parts name targets by their rank in the share.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] for arrays that do not have one value per target,
    /// [`ErrorKind::OutOfMemory`] for ranks, and those of [`measure_lists`](Self::measure_lists).
    pub fn measure_rows(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        geometry: bool,
        lists: &mut DeviceLists,
        (targets, lengths): (&mut [u32], &mut [u32]),
    ) -> Result<(u64, Option<Vec<u32>>), Error> {
        fits("the order of targets", targets.len(), of.targets.len())?;
        fits("lengths of lists", lengths.len(), of.targets.len())?;
        lists.want(wanted(geometry));
        let pairs = self.measure_lists(of, kind, Strategy::Flat, lists)?;
        if of.targets.is_empty() {
            return Ok((0, None));
        }
        lists.order_of(self, &of.targets.layout(), targets)?;
        if of.is_empty() {
            lengths.fill(0);
            return Ok((pairs, None));
        }
        if of.share.is_none() {
            lists.lengths(self, lengths)?;
            return Ok((pairs, None));
        }
        let searching = of.searching();
        let mut chosen = numbers(searching)?;
        lists.order_of(self, &of.targets_layout(), &mut chosen)?;
        let mut counts = numbers(searching)?;
        lists.lengths(self, &mut counts)?;
        let ranks = spread(targets, (&chosen, &counts), lengths)?;
        Ok((pairs, Some(ranks)))
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

impl DeviceLists {
    /// From now on entries, and what is wanted beside them, take at most about this many bytes of
    /// the device. Lists that are [delivered](GpuBackend::deliver_lists) are divided for it, where
    /// a longer list is an exception; a [search](GpuBackend::search) for more is refused.
    pub fn limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// Copies the lists to the host: `start` and `count` hold one value per target in the caller's
    /// order, `entries` the [`pairs`](Self::pairs) entries.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn download(
        &self,
        backend: &GpuBackend,
        start: &mut [u64],
        count: &mut [u32],
        entries: &mut [u32],
    ) -> Result<(), Error> {
        self.list_starts.download(&backend.stream, 0, start)?;
        self.list_counts.download(&backend.stream, 0, count)?;
        self.entries.download(&backend.stream, 0, entries)
    }

    /// Returns true if something is written beside the entries.
    pub fn has_geometry(&self) -> bool {
        !self.geometry.are_none()
    }

    /// Refuses so many pairs if they exceed the [limit](Self::limit).
    ///
    /// # Errors
    /// [`ErrorKind::ListsLimit`].
    pub(super) fn admit(&self, pairs: u64) -> Result<(), Error> {
        let pair = (size_of::<u32>() + self.geometry.bytes_per_pair()) as u64;
        let needed = pairs.saturating_mul(pair);
        match self.limit {
            Some(limit) if needed > limit => {
                Err(Error::from(ErrorKind::ListsLimit { needed, limit }))
            }
            _ => Ok(()),
        }
    }

    /// Entries that the [limit](Self::limit) allows.
    pub(super) fn max_entries(&self) -> usize {
        let pair = size_of::<u32>() + self.geometry.bytes_per_pair();
        let entries = self.limit.map(|bytes| bytes / pair as u64);
        entries.map_or(usize::MAX, |entries| {
            usize::try_from(entries).unwrap_or(usize::MAX)
        })
    }

    /// Returns true if the neighbours of these points were counted last, as they are sorted now and
    /// in this way: they need not be [measured](GpuBackend::measure_lists) again.
    pub fn are_measured(&self, of: &PairOfPoints<'_>, kind: ListKind, strategy: Strategy) -> bool {
        self.counted == Some(self.origin(of, kind, strategy))
    }

    /// Number of neighbours of the lists that were [measured](GpuBackend::measure_lists) last; 0
    /// before.
    pub fn measured(&self) -> u64 {
        self.parts.last().copied().unwrap_or(0)
    }

    /// Copies the caller's indices of sorted points to the host, for which the lengths in that
    /// order make way.
    pub(super) fn order_of(
        &self,
        backend: &GpuBackend,
        points: &Points,
        to: &mut [u32],
    ) -> Result<(), Error> {
        let (stream, order) = (&backend.stream, self.list_counts.address());
        (backend.shared.grid).order_of_points(stream, points, order)?;
        self.list_counts.download(stream, 0, to)
    }

    /// Copies the number of neighbours of every target that was searched for to the host.
    pub(super) fn lengths(&self, backend: &GpuBackend, to: &mut [u32]) -> Result<(), Error> {
        self.counts.download(&backend.stream, 0, to)
    }
}

/// What is written of every pair beside its entry: of batches the displacement and its square, in
/// the precision of the search, for the host to round.
fn wanted(geometry: bool) -> GeometryQuantities {
    if geometry {
        HostPairs::WITHOUT_IMAGES
    } else {
        GeometryQuantities::NONE
    }
}

/// As many numbers, all 0.
fn numbers(len: usize) -> Result<Vec<u32>, Error> {
    let mut numbers = reserved(len, "ranks of targets")?;
    numbers.resize(len, 0);
    Ok(numbers)
}

/// Gives targets of a share, which has them in sorted order, their lengths, and all others 0.
/// Returns how many of the share come before each target and behind the last.
///
/// # Errors
/// [`ErrorKind::OtherLists`] if the share is in another order.
fn spread(
    targets: &[u32],
    (chosen, counts): (&[u32], &[u32]),
    lengths: &mut [u32],
) -> Result<Vec<u32>, Error> {
    let mut ranks = numbers(targets.len() + 1)?;
    let mut rank = 0;
    for (slot, target) in targets.iter().enumerate() {
        ranks[slot] = rank as u32;
        lengths[slot] = match (chosen.get(rank), counts.get(rank)) {
            (Some(next), Some(&count)) if next == target => {
                rank += 1;
                count
            }
            _ => 0,
        };
    }
    ranks[targets.len()] = rank as u32;
    if rank == chosen.len() {
        Ok(ranks)
    } else {
        Err(Error::from(ErrorKind::OtherLists))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_a_share_have_their_lengths_and_ranks() {
        let (targets, mut lengths) = ([4, 2, 0, 1, 3], [9; 5]);
        let ranks = spread(&targets, (&[2, 1, 3], &[7, 8, 5]), &mut lengths).unwrap();
        assert_eq!(lengths, [0, 7, 0, 8, 5]);
        assert_eq!(ranks, [0, 0, 1, 1, 2, 3]);
        let ranks = spread(&targets, (&[], &[]), &mut lengths).unwrap();
        assert_eq!((ranks, lengths), (vec![0; 6], [0; 5]));
        assert!(spread(&targets, (&[1, 2], &[1, 1]), &mut lengths).is_err());
    }
}
