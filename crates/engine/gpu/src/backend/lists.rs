//! Neighbour lists on the device.
//!
//! # Algorithm
//!
//! The first pass counts the neighbours of every sorted target; a prefix sum over the counts gives
//! the start of every list and the number of all entries; the second pass writes every entry to its
//! final place. So the storage has exactly the length that is needed, no list has a limit, and
//! lists of sorted targets lie one behind the other: neighbours of neighbours are near in memory.
//!
//! With one or two cells to a radius the counting walk of `flat` also leaves a bit per candidate
//! (masks.cuh), and the second pass takes the lists from these masks. Blocks of targets whose masks
//! are not complete are left to a third, which walks and tests once more, as the second does
//! elsewhere and where memory is short. All write the same entries in the same order.
//!
//! Lists may come with the geometry of their pairs, in arrays that the same kernels write
//! (`pair_arrays`). Programs of such lists have no walk through rings: what masks do not give,
//! warps find.
//!
//! # With and without waiting
//!
//! [`GpuBackend::search`] waits between the two traversals for the number of entries, and reserves
//! storage with a sixteenth more. [`GpuBackend::search_again`] never waits: it writes into the
//! storage that is there, and entries behind its end are not written. [`DeviceLists::finish`] later
//! reads how long the lists were; if they did not fit, the caller searches anew. So a step whose
//! lists grow a little costs no wait, and one that overflows is repeated, never truncated.
//!
//! # Invariant
//!
//! Lists are written only for what was counted: the same sorts of the same sets, the same kind of
//! list and the same strategy (`CountsOrigin`). Counts of other points would give starts that the
//! entries do not fit.

use super::{
    filter::FilterOrigin,
    gpu::GpuBackend,
    lattice::next_number,
    pair_arrays::{GeometryQuantities, PairBuffers, PairOrder, PairViews},
    walk::{CountsTo, PairOfPoints, Scratch, goes_by_cells},
};
use crate::{
    error::{Error, ErrorKind},
    handles::DeviceView,
    launch::{Flat, ListArrays, Outlet, PairArrays, SCAN_TILE, Scan, Status, Traverse, scan_tiles},
    memory::{HostBuffer, HostCopy, Queue, kept_buffers},
    traversal::{Strategy, Traversal, Work},
};
use cudarc::driver::sys::CUdeviceptr;
use nearfield_pairs::ListKind;

kept_buffers! {
    /// Lists of one pair of sets: start and count per target in the caller's order over one storage
    /// of entries, the lists of sorted targets one behind the other.
    pub struct DeviceLists {
        /// Neighbours of every sorted target, padded by zeros to whole tiles of the scan.
        pub(super) counts: u32 = "counts of neighbours",
        /// A bit for every candidate of the targets that were counted last, if `masked`.
        masks: u32 = "masks of candidates",
        /// The caller's indices of the sorted sources, for lists from masks.
        indices: u32 = "indices of sorted points",
        /// Entries before every sorted target, and all of them at the padded end.
        pub(super) starts: u64 = "starts of lists",
        /// The caller's indices of the neighbours.
        pub(super) entries: u32 = "entries of lists",
        /// Starts in the caller's order.
        pub(super) list_starts: u64 = "starts of lists",
        /// Lengths in the caller's order.
        pub(super) list_counts: u32 = "lengths of lists",
        /// Sums of the blocks that copy lists to arrays of the caller.
        pub(super) columns: u64 = "sums of lists",
        /// State of the tiles of the scan.
        tiles: u64 = "tiles of a scan",
        /// Its status, whose `pairs` is the largest total since the host looked.
        status: Status = "the status",
    }
    with {
        /// The geometry of pairs, where it is wanted.
        pub(super) geometry: PairBuffers,
        /// The order that lists are brought into.
        order: PairOrder,
        /// The masks are those of the last counts, so lists are made without a second walk.
        masked: bool,
        /// Entries of all lists together, and the status, as the host reads them.
        answer: Option<(HostCopy<u64>, HostCopy<Status>)>,
        /// The answer is that of the last search, or on its way.
        asked: bool,
        /// Of the traversals.
        scratch: Scratch,
        /// Bytes that entries, and what is wanted beside them, may take.
        pub(super) limit: Option<u64>,
        /// Lists that are delivered also stay on the device.
        pub(super) keep: bool,
        /// Where [parts](super::delivery) of the lists begin, in memory that the device writes to.
        bounds: Option<HostBuffer<u64>>,
        /// Where they begin, and the end of the last, of lists that were measured.
        pub(super) parts: Vec<u64>,
        /// On which lists are copied to the host, once they have been.
        pub(super) copies: Option<Queue>,
        /// Targets rounded up to whole tiles of the scan, behind whose starts the total stands.
        scanned: usize,
        /// Targets that lists were made for.
        targets: usize,
        /// Entries of all lists, as the host last read them.
        pairs: u64,
        /// Which points were counted, and how; None before there are counts.
        pub(super) counted: Option<CountsOrigin>,
        /// Number that no other counts of the process have.
        search: u64,
        /// The status is that of searches that the host has not looked at.
        unlooked: bool,
    }
}

/// Identity of counts: the points they belong to, and how they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountsOrigin {
    /// Numbers of the sorts of targets and sources.
    sorts: [u64; 2],
    /// Number of targets searched for.
    searching: usize,
    kind: ListKind,
    strategy: Strategy,
    /// Lists come with the geometry of their pairs.
    geometry: bool,
    filter: FilterOrigin,
    /// How many of the nearest are kept; 0 for all.
    nearest: u32,
}

/// Where lists and the geometry of their pairs are written.
///
/// Both begin with the entry that the outlet names as the first of its storage, so a part of the
/// lists has a part of every array.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteTo {
    /// Everything but masks.
    pub(super) outlet: Outlet,
    pub(super) arrays: PairArrays,
}

impl GpuBackend {
    /// Writes the neighbours of every target into `lists`: counts them, adds up where every list
    /// begins, and writes each entry once.
    ///
    /// # Errors
    /// [`ErrorKind::ListsLimit`] for more entries than the [limit](DeviceLists::limit) allows,
    /// [`ErrorKind::OutOfMemory`] with the bytes that the entries take, and those of compiling and
    /// running programs; the lists are then empty.
    pub fn search(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<(), Error> {
        let targets = of.targets.len();
        lists.prepare(self, targets.max(of.searching()))?;
        if of.is_empty() {
            lists.reserve_entries(self, 0)?;
            lists.targets = targets;
            return lists.clear_places(self, targets);
        }
        lists.count(self, of, kind, strategy)?;
        let pairs = lists.total(self)?;
        lists.admit(pairs)?;
        // Room to grow, for later searches that do not wait. Impossible lengths are refused there.
        let room = usize::try_from(pairs).unwrap_or(usize::MAX);
        let with_more = room.saturating_add(room / 16);
        lists.reserve_entries(self, with_more.min(lists.max_entries()))?;
        lists.fill(self, of, pairs)?;
        (lists.targets, lists.pairs, lists.search) = (targets, pairs, next_number());
        Ok(())
    }

    /// As [`search`](Self::search) into the room there is, without waiting for the device. The
    /// lists are provisional until [`DeviceLists::finish`] has looked whether they fitted.
    ///
    /// # Errors
    /// The errors of running programs.
    pub fn search_again(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<(), Error> {
        let targets = of.targets.len();
        lists.prepare(self, targets.max(of.searching()))?;
        if of.is_empty() {
            lists.clear_places(self, targets)?;
        } else {
            lists.count(self, of, kind, strategy)?;
            lists.unlooked = true;
            let room = lists.room() as u64;
            lists.fill(self, of, room)?;
            lists.search = next_number();
        }
        lists.targets = targets;
        Ok(())
    }
}

impl DeviceLists {
    /// From the next search on these numbers of every pair are written beside the lists;
    /// [`GeometryQuantities::NONE`] for lists alone.
    pub fn want(&mut self, wanted: GeometryQuantities) {
        self.geometry.want(wanted, self.order);
    }

    /// From the next search on lists ascend by the caller's index, and pairs of one source by their
    /// images. Lists that are [delivered](GpuBackend::deliver_lists) in parts never do.
    pub fn ascend(&mut self, ascending: bool) {
        self.order_by(if ascending {
            PairOrder::Ascending
        } else {
            PairOrder::Any
        });
    }

    /// From the next search on the pairs of every list are nearest first: by squared distance, then
    /// by the caller's index and by image; also in lists that are
    /// [delivered](GpuBackend::deliver_lists).
    pub fn nearest_first(&mut self, nearest: bool) {
        self.order_by(if nearest {
            PairOrder::NearestFirst
        } else {
            PairOrder::Any
        });
    }

    /// From the next search on lists that are [delivered](GpuBackend::deliver_lists) stay on the
    /// device too, if there is memory for all of their entries, and serve kernels like those of
    /// [`GpuBackend::search`].
    pub fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// All lists were written for these points, and are there.
    pub(super) fn are_whole(&mut self, of: &PairOfPoints<'_>) {
        (self.targets, self.search) = (of.targets.len(), next_number());
    }

    fn order_by(&mut self, order: PairOrder) {
        self.order = order;
        self.want(self.geometry.wanted());
    }

    /// Waits for the device and looks how long the lists are that were written since it last did.
    ///
    /// # Errors
    /// [`ErrorKind::ListsOverflow`] when they did not fit, [`ErrorKind::FarImages`] when images
    /// were wanted that have no 32-bit numbers, and [`ErrorKind::Driver`].
    pub fn finish(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        self.ask(backend)?;
        self.asked = false;
        let unlooked = std::mem::take(&mut self.unlooked);
        let searched = self.scanned > 0 || unlooked;
        let (mut pairs, mut far) = (self.pairs, 0);
        if let Some((total, status)) = &mut self.answer {
            if self.scanned > 0 {
                self.pairs = total.read()?[0];
                pairs = self.pairs;
            }
            if searched {
                let status = status.read()?[0];
                pairs = if unlooked {
                    pairs.max(status.pairs)
                } else {
                    pairs
                };
                far = far_images(&status);
            }
        }
        let room = self.room() as u64;
        if pairs > room {
            return Err(Error::from(ErrorKind::ListsOverflow { pairs, room }));
        }
        if far > 0 {
            return Err(Error::from(ErrorKind::FarImages { pairs: far }));
        }
        backend.wait()
    }

    /// Starts to bring to the host how long the lists are, where [`finish`](Self::finish) reads it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn ask(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        // Nothing was written for lists without targets or sources.
        let searched = self.scanned > 0 || self.unlooked;
        let kept = self.starts.capacity() > self.scanned && self.status.capacity() > 0;
        if self.asked || !searched || !kept {
            return Ok(());
        }
        let (total, status) = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert((backend.host_copy_of(1)?, backend.host_copy_of(1)?)),
        };
        let (queue, last) = (&backend.stream, self.scanned);
        self.starts.start_host_copy(queue, last, total, 1)?;
        self.status.start_host_copy(queue, 0, status, 1)?;
        self.asked = true;
        Ok(())
    }

    /// Returns true if the lists were found of these points as they are sorted now.
    pub fn are_of(&self, of: &PairOfPoints<'_>) -> bool {
        self.targets == of.targets.len() && self.counted(of).is_ok()
    }

    /// Returns true if there is storage for entries and what is wanted beside them, from an earlier
    /// search.
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Entries there is room for, also in all arrays that are wanted beside them.
    pub(super) fn room(&self) -> usize {
        self.entries.capacity().min(self.geometry.room())
    }

    /// The storage has turned out too small: frees it, and makes the next search find out how much
    /// is needed.
    pub fn outgrown(&mut self) {
        self.counted = None;
        self.entries.release();
        self.geometry.release();
    }

    /// Start and length of every list in the caller's order, and the storage of the entries, as
    /// far as there is also room for what is wanted beside them; None before the first search.
    pub fn views(
        &self,
    ) -> Option<(
        DeviceView<'_, u64>,
        DeviceView<'_, u32>,
        DeviceView<'_, u32>,
    )> {
        let entries = self.entries.view(self.room())?;
        Some((
            DeviceView(self.list_starts.view(self.targets)?),
            DeviceView(self.list_counts.view(self.targets)?),
            DeviceView(entries),
        ))
    }

    /// The geometry of the pairs, parallel to the storage of the entries; None before the first
    /// search.
    pub fn pair_views(&self) -> Option<PairViews<'_>> {
        (self.entries.capacity() > 0).then(|| self.geometry.views(self.room()))
    }

    /// Number of targets.
    pub fn len(&self) -> usize {
        self.targets
    }

    /// Returns true if there are no targets.
    pub fn is_empty(&self) -> bool {
        self.targets == 0
    }

    /// Number of neighbours together.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held() + self.geometry.held()
    }

    /// Room for lists of `targets` targets, which hold nothing yet.
    pub(super) fn prepare(&mut self, backend: &GpuBackend, targets: usize) -> Result<(), Error> {
        (self.targets, self.pairs, self.scanned, self.counted) = (0, 0, 0, None);
        self.asked = false;
        self.reserve(backend, targets)
    }

    /// Makes all lists empty, so that those of targets that are not searched for are something.
    pub(super) fn clear_places(
        &mut self,
        backend: &GpuBackend,
        targets: usize,
    ) -> Result<(), Error> {
        self.list_starts.zero(&backend.stream, 0..targets)?;
        self.list_counts.zero(&backend.stream, 0..targets)
    }

    /// Makes room for everything but entries.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] and [`ErrorKind::Driver`].
    fn reserve(&mut self, backend: &GpuBackend, targets: usize) -> Result<(), Error> {
        let stream = &backend.stream;
        let padded = backend.tiles_for(&mut self.tiles, targets)? * SCAN_TILE;
        self.counts.reserve(stream, padded)?;
        self.starts.reserve(stream, padded + 1)?;
        self.list_starts.reserve(stream, targets)?;
        self.list_counts.reserve(stream, targets)?;
        self.status.reserve(stream, 1)?;
        // The scan also reads these elements behind the last target.
        self.counts.zero(stream, targets..padded)
    }

    /// Counts the neighbours of every target and adds up where every list begins.
    ///
    /// # Errors
    /// The errors of [`PairOfPoints::traversal`] and of compiling and running a program.
    pub(super) fn count(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
    ) -> Result<(), Error> {
        self.asked = false;
        self.geometry.set_precision(of.precision());
        if !self.count_by_masks(backend, of, kind, strategy)? {
            if goes_by_cells(strategy) {
                self.counts.zero(&backend.stream, 0..of.searching())?;
            }
            let to = CountsTo {
                address: self.counts.address(),
                in_order: false,
            };
            backend.count_into(of, kind, strategy, to, &mut self.scratch)?;
        }
        let items = of.searching();
        let scanned = scan_tiles(items) * SCAN_TILE;
        if of.share.is_some() {
            // A share is shorter than the set, and another one every time.
            self.counts.zero(&backend.stream, items..scanned)?;
        }
        let scan = Scan {
            counts: self.counts.address(),
            starts: self.starts.address(),
            items,
            tiles: self.tiles.address(),
            status: self.status.address(),
            keep: self.unlooked,
        };
        backend.shared.grid.list_scan(&backend.stream, &scan)?;
        let counted = self.origin(&of, kind, strategy);
        (self.scanned, self.counted) = (scanned, Some(counted));
        // Until all lists are written.
        self.search = 0;
        Ok(())
    }

    /// Counts the neighbours of every target and writes masks, from which lists are then made.
    /// False if the traversal has none, or if there is no memory for them: lists then take two
    /// walks.
    fn count_by_masks(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
    ) -> Result<bool, Error> {
        self.masked = false;
        let traversal = of.traversal(strategy, self.work(kind), kind == ListKind::Half)?;
        if !traversal.has_masks() {
            return Ok(false);
        }
        let words = traversal.mask_words().saturating_mul(of.searching());
        let (masks, indices) = (&mut self.masks, &mut self.indices);
        let reserved = masks
            .reserve(&backend.stream, words)
            .and_then(|_| indices.reserve(&backend.stream, of.sources.len()));
        match reserved {
            Err(error) if error.is_out_of_memory() => return Ok(false),
            reserved => reserved?,
        };
        let kernels = backend.traversal(traversal)?;
        let Traverse::Flat(Flat {
            masks: Some(masks), ..
        }) = &kernels.traverse
        else {
            return Ok(false);
        };
        let outlet = Outlet {
            counts: self.counts.address(),
            masks: self.masks.address(),
            indices: self.indices.address(),
            ..Outlet::default()
        };
        masks.count(&backend.stream, &of.walk(), &outlet)?;
        self.masked = true;
        Ok(true)
    }

    /// Room for entries; masks make way for them where memory is short. Returns true if memory was
    /// allocated.
    pub(super) fn reserve_entries(
        &mut self,
        backend: &GpuBackend,
        room: usize,
    ) -> Result<bool, Error> {
        match self.reserve_storage(backend, room) {
            Err(error) if error.is_out_of_memory() && self.masks.capacity() > 0 => {
                self.masked = false;
                self.masks.release();
                self.reserve_storage(backend, room)
            }
            reserved => reserved,
        }
    }

    /// Room for entries and what is wanted beside them. Returns true if memory was allocated.
    fn reserve_storage(&mut self, backend: &GpuBackend, room: usize) -> Result<bool, Error> {
        let grown = self.entries.reserve(&backend.stream, room)?;
        Ok(self.geometry.reserve(&backend.stream, room)? || grown)
    }

    /// Writes the lists of `targets` targets from the first of the outlet on, which holds
    /// everything but masks, and the geometry of their pairs to `arrays`; `entries` is about how
    /// many they have together.
    pub(super) fn write(
        &self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        flat: &Flat,
        to: WriteTo,
        targets: usize,
        entries: u64,
    ) -> Result<(), Error> {
        let (walk, stream) = (of.walk(), &backend.stream);
        let WriteTo { mut outlet, arrays } = to;
        if let Some(masks) = flat.masks.as_ref().filter(|_| self.masked) {
            outlet.masks = self.masks.address();
            outlet.indices = self.indices.address();
            masks.expand(stream, &walk, &outlet, &arrays, (targets, entries))?;
        }
        // Behind masks it looks only at blocks where these are not complete.
        flat.write(stream, &walk, &outlet, &arrays, targets)
    }

    /// The origin of counts of these points as they are sorted now.
    pub(super) fn origin(
        &self,
        of: &PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
    ) -> CountsOrigin {
        CountsOrigin {
            sorts: [of.targets.last_sort(), of.sources.last_sort()],
            searching: of.searching(),
            kind,
            strategy,
            geometry: !self.geometry.are_none(),
            filter: of.filter.origin(),
            nearest: of.filter.k(),
        }
    }

    /// The job of a traversal that writes lists, with the geometry of their pairs if it is wanted.
    fn work(&self, kind: ListKind) -> Work {
        if self.geometry.are_none() {
            Work::Lists(kind)
        } else {
            Work::Geometry(kind)
        }
    }

    /// The last counts, if they are of these points as they are sorted now: the buffers are as long
    /// as their targets were many.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] for other points.
    fn counted(&self, of: &PairOfPoints<'_>) -> Result<CountsOrigin, Error> {
        let same =
            |counted: &CountsOrigin| *counted == self.origin(of, counted.kind, counted.strategy);
        let counted = self.counted.filter(same);
        counted.ok_or_else(|| Error::from(ErrorKind::OtherLists))
    }

    /// The number of the last search, which found full lists of these points as they are sorted
    /// now.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`] for other points, for half lists of one set, and for lists that
    /// were only counted or written part by part.
    pub(super) fn search_of(&self, of: &PairOfPoints<'_>) -> Result<u64, Error> {
        let counted = self.counted(of)?;
        if self.search == 0 || counted.kind == ListKind::Half && of.same_set {
            return Err(Error::from(ErrorKind::OtherLists));
        }
        Ok(self.search)
    }

    /// Where the device has the number of entries of all lists.
    pub(super) fn total_address(&self) -> CUdeviceptr {
        self.starts.address() + (self.scanned * size_of::<u64>()) as u64
    }

    /// Starts and lengths in sorted order, as they were counted.
    pub(super) fn sorted(&self) -> ListArrays {
        ListArrays {
            starts: self.starts.address(),
            counts: self.counts.address(),
        }
    }

    /// Starts and lengths in the caller's order.
    pub(super) fn ordered(&self) -> ListArrays {
        ListArrays {
            starts: self.list_starts.address(),
            counts: self.list_counts.address(),
        }
    }

    /// Where every `step`th list begins, and behind these the number of neighbours of all targets
    /// together; waits for it.
    pub(super) fn bounds(
        &mut self,
        backend: &GpuBackend,
        step: usize,
        parts: usize,
    ) -> Result<Vec<u64>, Error> {
        let mut bounds = backend.host_room(self.bounds.take(), parts + 1)?;
        let place = bounds.place().as_ptr() as u64;
        let (starts, scanned) = (self.starts.address(), self.scanned as u32);
        let (grid, stream) = (&backend.shared.grid, &backend.stream);
        grid.list_bounds(stream, starts, step as u32, parts as u32, scanned, place)?;
        backend.wait()?;
        let found = bounds[..=parts].to_vec();
        self.bounds = Some(bounds);
        Ok(found)
    }

    /// Neighbours of all targets together.
    pub(super) fn total(&self, backend: &GpuBackend) -> Result<u64, Error> {
        let mut total = [0];
        self.starts
            .download(&backend.stream, self.scanned, &mut total)?;
        Ok(total[0])
    }

    /// Writes the entries of the lists that were counted last, with their starts and lengths in the
    /// caller's order. Entries from number `capacity` on are not written.
    pub(super) fn fill(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        capacity: u64,
    ) -> Result<(), Error> {
        let kernels = backend.traversal(self.traversal(&of)?)?;
        let outlet = Outlet {
            capacity,
            behind: of.searching() as u32,
            ..self.outlet()
        };
        let arrays = self.arrays(0);
        let all = WriteTo { outlet, arrays };
        if let Traverse::Flat(flat) = &kernels.traverse {
            if of.share.is_some() {
                self.clear_places(backend, of.targets.len())?;
            }
            self.write(backend, of, flat, all, of.searching(), capacity)?;
        } else {
            // As where they are counted.
            self.clear_places(backend, of.targets.len())?;
            backend.traverse_into(&kernels, of, (&outlet, &arrays), &mut self.scratch)?;
        }
        match self.order {
            PairOrder::Any => Ok(()),
            PairOrder::Ascending => all.ascend(backend, of.precision()),
            PairOrder::NearestFirst => all.order_by_distance(backend, of, None),
        }
    }

    /// Returns true if lists are nearest first.
    pub(super) fn are_nearest_first(&self) -> bool {
        self.order == PairOrder::NearestFirst
    }

    /// The arrays for the geometry of pairs from pair `first` on.
    pub(super) fn arrays(&self, first: usize) -> PairArrays {
        let far = self.status.address() + std::mem::offset_of!(Status, outside) as u64;
        self.geometry.layout(first, far)
    }

    /// Number of pairs of the last search whose images have no 32-bit numbers; waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub(super) fn far_images(&self, backend: &GpuBackend) -> Result<u32, Error> {
        let mut status = [Status::default()];
        self.status.download(&backend.stream, 0, &mut status)?;
        Ok(far_images(&status[0]))
    }

    /// The traversal that writes the lists that were counted.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`], and those of [`PairOfPoints::traversal`].
    pub(super) fn traversal(&self, of: &PairOfPoints<'_>) -> Result<Traversal, Error> {
        let CountsOrigin { kind, strategy, .. } = self.counted(of)?;
        let traversal = of.traversal(strategy, self.work(kind), kind == ListKind::Half)?;
        let flat = traversal.strategy == Strategy::Flat;
        Ok(Traversal {
            // With geometry threads of their own write lists from masks alone.
            by_warps: traversal.by_warps || (flat && !self.masked && !self.geometry.are_none()),
            ..traversal
        })
    }

    /// The arrays that lists are written to, without a range of targets or of entries.
    pub(super) fn outlet(&self) -> Outlet {
        Outlet {
            starts: self.starts.address(),
            entries: self.entries.address(),
            list_starts: self.list_starts.address(),
            list_counts: self.list_counts.address(),
            ..Outlet::default()
        }
    }
}

/// Pairs whose images have no 32-bit numbers, of the status of lists: kernels count them in a field
/// that is of use to sorts only. A later search remembers in `failed` that there were some.
fn far_images(status: &Status) -> u32 {
    status.outside.max(status.failed)
}
