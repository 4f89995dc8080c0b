//! Lists that stay on the device, some targets at a time: for searches whose lists do not fit.
//!
//! The lists are counted once ([`GpuBackend::measure_parts`]), and the host reads how long each is,
//! four bytes a target. It cuts them into parts of consecutive sorted targets, and every part is
//! written into the same storage ([`GpuBackend::write_part_of_lists`]) without waiting: its length
//! is known. A part is a set of lists of its own, with the caller's index of each target, the start
//! of its list counted from the beginning of the storage, and its length.
//!
//! **Invariant:** a part is written only for the sorts, the filters and the shares that were
//! measured ([`DeviceLists::are_measured`]), so its lists have the lengths that the host knows and
//! end within the storage.

use super::{
    delivery::ListPart,
    gpu::GpuBackend,
    lists::DeviceLists,
    pair_arrays::{GeometryQuantities, PairViews},
    walk::PairOfPoints,
};
use crate::{
    error::{Error, ErrorKind, reserved},
    handles::DeviceView,
    launch::{ListsToSort, PartOfLists, Traverse},
    memory::Buffer,
    traversal::Strategy,
};
use nearfield_pairs::ListKind;

/// Lists of some targets, and how long all lists are.
#[derive(Debug)]
pub struct PartialLists {
    lists: DeviceLists,
    ascending: bool,
    /// The caller's index of every target of the part.
    targets: Buffer<u32>,
    /// Where their lists begin, and the end of the last.
    starts: Buffer<u64>,
    counts: Buffer<u32>,
    /// Number of targets and of pairs of the part that was written last.
    part: Option<(usize, usize)>,
}

impl Default for PartialLists {
    fn default() -> Self {
        Self {
            lists: DeviceLists::default(),
            ascending: false,
            targets: Buffer::new("targets of lists"),
            starts: Buffer::new("starts of lists"),
            counts: Buffer::new("lengths of lists"),
            part: None,
        }
    }
}

/// The arrays of a part; the geometry of pairs is parallel to `entries`.
#[derive(Debug)]
pub struct PartViews<'a> {
    /// The caller's index of every target.
    pub targets: DeviceView<'a, u32>,
    /// Where its list begins in `entries`.
    pub start: DeviceView<'a, u64>,
    /// How long it is.
    pub count: DeviceView<'a, u32>,
    /// The caller's indices of the neighbours, one list behind the other.
    pub entries: DeviceView<'a, u32>,
    /// What was wanted of every pair.
    pub pairs: PairViews<'a>,
}

impl GpuBackend {
    /// Counts the neighbours of every sorted target that is searched for, and waits for the
    /// numbers.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], and those of [`measure_lists`](Self::measure_lists).
    pub fn measure_parts(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        to: &mut PartialLists,
    ) -> Result<Vec<u32>, Error> {
        to.part = None;
        self.measure_lists(of, kind, Strategy::Flat, &mut to.lists)?;
        let targets = if of.is_empty() { 0 } else { of.searching() };
        let mut lengths = reserved(targets, "lengths of lists")?;
        lengths.resize(targets, 0);
        if targets > 0 {
            to.lists.lengths(self, &mut lengths)?;
        }
        Ok(lengths)
    }

    /// The caller's index of target number `slot` of those that were
    /// [measured](Self::measure_parts), for messages. Waits for the device.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] for a number that there is not, and [`ErrorKind::Driver`].
    pub fn target_of_part(
        &self,
        of: PairOfPoints<'_>,
        slot: usize,
        of_lists: &PartialLists,
    ) -> Result<u32, Error> {
        let mut order = reserved(of.searching(), "the order of targets")?;
        order.resize(of.searching(), 0);
        of_lists
            .lists
            .order_of(self, &of.targets_layout(), &mut order)?;
        let target = order.get(slot).copied();
        target.ok_or_else(|| Error::from(ErrorKind::OtherLists))
    }

    /// Makes room for parts of at most so many targets and pairs.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] with the bytes, and [`ErrorKind::Driver`].
    pub fn reserve_parts(
        &self,
        to: &mut PartialLists,
        targets: usize,
        pairs: usize,
    ) -> Result<(), Error> {
        let stream = &self.stream;
        to.lists.reserve_entries(self, pairs)?;
        to.targets.reserve(stream, targets)?;
        to.starts.reserve(stream, targets.saturating_add(1))?;
        to.counts.reserve(stream, targets)?;
        Ok(())
    }

    /// Writes the lists of a part of what was [measured](Self::measure_parts), for which there is
    /// [room](Self::reserve_parts). Does not wait, unless images are wanted: whether they have
    /// numbers of 32 bits is known then.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] if other points or filters were measured or there is no such room,
    /// [`ErrorKind::FarImages`], and those of running programs.
    pub fn write_part_of_lists(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        part: &ListPart,
        to: &mut PartialLists,
    ) -> Result<(), Error> {
        to.part = None;
        let (targets, len) = (part.slots.len(), part.len());
        let room = to.lists.room() >= len && to.targets.capacity() >= targets;
        let within = part.slots.end <= of.searching();
        if !(room && within && to.lists.are_measured(&of, kind, Strategy::Flat)) {
            return Err(Error::from(ErrorKind::OtherLists));
        }
        let kernels = self.traversal(to.lists.traversal(&of)?)?;
        let Traverse::Flat(flat) = &kernels.traverse else {
            return Err(Error::from(ErrorKind::OtherLists));
        };
        if len > 0 {
            self.write_part(of, &to.lists, flat, part, 0)?;
        }
        let places = PartOfLists {
            at: of.targets_layout().at,
            all_starts: to.lists.sorted().starts,
            first: part.slots.start as u32,
            count: targets as u32,
            base: part.entries.start,
            targets: to.targets.address(),
            starts: to.starts.address(),
            counts: to.counts.address(),
        };
        self.shared.slots()?.part(&self.stream, &places)?;
        if to.ascending && len > 0 {
            let lists = ListsToSort {
                starts: to.starts.address(),
                count: targets as u32,
                entries: to.lists.outlet().entries,
                capacity: len as u64,
                arrays: to.lists.arrays(0),
            };
            let kernels = self.shared.ascend(of.precision())?;
            kernels.ascend(&self.stream, &lists)?;
        }
        if len > 0 && to.lists.geometry.wanted().images {
            match to.lists.far_images(self)? {
                0 => {}
                pairs => return Err(Error::from(ErrorKind::FarImages { pairs })),
            }
        }
        to.part = Some((targets, len));
        Ok(())
    }
}

impl PartialLists {
    /// From the next count on lists are in this order, and these numbers of every pair are written
    /// beside them.
    pub fn want(&mut self, quantities: GeometryQuantities, ascending: bool, nearest_first: bool) {
        self.lists.nearest_first(nearest_first);
        if !nearest_first {
            // Arrays of the geometry have what pairs are ordered by.
            self.lists.ascend(ascending);
        }
        self.lists.want(quantities);
        self.ascending = ascending && !nearest_first;
    }

    /// Bytes that a pair takes: its entry, and what is written beside it.
    pub fn bytes_per_pair(&self) -> usize {
        size_of::<u32>() + self.lists.geometry.bytes_per_pair()
    }

    /// The part that was written last.
    pub fn views(&self) -> Option<PartViews<'_>> {
        let (targets, pairs) = self.part?;
        Some(PartViews {
            targets: DeviceView(self.targets.view(targets)?),
            start: DeviceView(self.starts.view(targets)?),
            count: DeviceView(self.counts.view(targets)?),
            entries: DeviceView(self.lists.entries.view(pairs)?),
            pairs: self.lists.geometry.views(pairs),
        })
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        let places = self.targets.bytes() + self.starts.bytes() + self.counts.bytes();
        self.lists.bytes() + places
    }
}

#[cfg(test)]
mod tests {
    //! The kernel on the CPU, as in `stored_on_host`.

    use crate::backend::stored_on_host::kernels;
    use std::sync::PoisonError;

    type RunPart = unsafe extern "C" fn(
        *const [f32; 4],
        *const u64,
        u32,
        u32,
        u64,
        *mut u32,
        *mut u64,
        *mut u32,
    );

    #[test]
    fn a_part_of_the_lists_names_its_targets_and_begins_at_0() {
        let Some(library) = kernels::<f32>(0) else {
            return;
        };
        let library = library.lock().unwrap_or_else(PoisonError::into_inner);
        let lengths: Vec<u32> = (0..900u32).map(|k| k * 7919 % 37).collect();
        let at: Vec<[f32; 4]> = (0..900)
            .map(|slot| [0.0, 0.0, 0.0, f32::from_bits(899 - slot)])
            .collect();
        // Longer than 32 bits tell.
        let mut all_starts = vec![5u64 << 32];
        for &length in &lengths {
            all_starts.push(all_starts.last().unwrap() + u64::from(length));
        }
        for (first, count) in [(0, 900), (256, 1), (3, 511), (899, 1)] {
            let base = all_starts[first];
            let (mut targets, mut counts) = (vec![0; count], vec![0; count]);
            let mut starts = vec![u64::MAX; count + 1];
            // SAFETY: declared so in stored.cpp; all arrays have a value per list of the part, and
            // starts one more.
            unsafe {
                library.get::<RunPart>(b"run_part").unwrap()(
                    at.as_ptr(),
                    all_starts.as_ptr(),
                    first as u32,
                    count as u32,
                    base,
                    targets.as_mut_ptr(),
                    starts.as_mut_ptr(),
                    counts.as_mut_ptr(),
                );
            }
            assert_eq!(counts, lengths[first..first + count]);
            let named: Vec<u32> = (first..first + count)
                .map(|slot| 899 - slot as u32)
                .collect();
            assert_eq!(targets, named);
            let shifted = all_starts[first..=first + count]
                .iter()
                .map(|start| start - base);
            assert_eq!(starts, shifted.collect::<Vec<u64>>());
        }
    }
}
