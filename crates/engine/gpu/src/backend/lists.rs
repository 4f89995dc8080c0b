//! Neighbour lists on the device.
//!
//! Neighbours are counted, a scan finds where every list begins, and a second pass writes the lists.
//! Where the counting walk leaves masks (masks.cuh), the second pass takes the lists from these;
//! otherwise it walks and tests once more. Both write the same entries in the same order.

use super::{
    gpu::GpuBackend,
    walk::{PairOfPoints, Scratch},
};
use crate::{
    error::{Error, ErrorKind},
    launch::{Flat, Outlet, SCAN_TILE, Status, TraversalKernels, scan_tiles},
    memory::{Buffer, HostBuffer, HostCopy, Queue},
    traversal::{Strategy, Work},
};
use cudarc::driver::CudaView;
use nearfield_pairs::ListKind;

/// Lists of one pair of sets: start and count per target in the caller's order over one storage of
/// entries, the lists of sorted targets one behind the other.
#[derive(Debug)]
pub struct DeviceLists {
    pub(super) counts: Buffer<u32>,
    /// Masks of the targets that were counted last, if `masked`.
    masks: Buffer<u32>,
    masked: bool,
    /// The caller's indices of the sorted sources, for lists from masks.
    indices: Buffer<u32>,
    pub(super) starts: Buffer<u64>,
    pub(super) entries: Buffer<u32>,
    pub(super) list_starts: Buffer<u64>,
    pub(super) list_counts: Buffer<u32>,
    tiles: Buffer<u64>,
    status: Buffer<Status>,
    /// Entries of all lists together, and the status, as the host reads them.
    answer: Option<(HostCopy<u64>, HostCopy<Status>)>,
    /// The answer is that of the last search, or on its way.
    asked: bool,
    scratch: Scratch,
    /// Where [parts](super::delivery) of the lists begin, in memory that the device writes to.
    pub(super) bounds: Option<HostBuffer<u64>>,
    /// Where they begin, and the end of the last, of lists that were measured.
    pub(super) parts: Vec<u64>,
    /// On which lists are copied to the host, once they have been.
    pub(super) copies: Option<Queue>,
    /// Targets rounded up to whole tiles of the scan, behind whose starts the total stands.
    scanned: usize,
    targets: usize,
    pairs: u64,
    /// Identity of the last counts: see [`counting`].
    counted: Option<[u64; 3]>,
    /// The status is that of searches that the host has not looked at.
    unlooked: bool,
}

impl Default for DeviceLists {
    fn default() -> Self {
        Self {
            counts: Buffer::new("counts of neighbours"),
            masks: Buffer::new("masks of candidates"),
            masked: false,
            indices: Buffer::new("indices of sorted points"),
            starts: Buffer::new("starts of lists"),
            entries: Buffer::new("entries of lists"),
            list_starts: Buffer::new("starts of lists"),
            list_counts: Buffer::new("lengths of lists"),
            tiles: Buffer::new("tiles of a scan"),
            status: Buffer::new("the status"),
            scratch: Scratch::default(),
            answer: None,
            asked: false,
            bounds: None,
            parts: Vec::new(),
            copies: None,
            scanned: 0,
            targets: 0,
            pairs: 0,
            counted: None,
            unlooked: false,
        }
    }
}

impl GpuBackend {
    /// Writes the neighbours of every target into `lists`: counts them, adds up where every list
    /// begins, and writes each entry once.
    ///
    /// # Errors
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
        lists.prepare(self, targets)?;
        if of.is_empty() {
            lists.entries.reserve(&self.stream, 0)?;
            lists.targets = targets;
            return lists.hold_nothing(self, targets);
        }
        lists.count(self, of, kind, strategy)?;
        let pairs = lists.total(self)?;
        let room = usize::try_from(pairs).map_err(|_| {
            Error::from(ErrorKind::OutOfMemory {
                bytes: usize::MAX,
                what: "entries of lists".to_owned(),
            })
        })?;
        // Room to grow, for later searches that do not wait.
        lists.reserve_entries(self, room + room / 16)?;
        lists.fill(self, of, kind, strategy, pairs)?;
        lists.targets = targets;
        lists.pairs = pairs;
        Ok(())
    }
}

impl GpuBackend {
    /// As [`search`](Self::search) into the room there is, without waiting for the device. The
    /// lists are provisional until [`DeviceLists::finish`] has looked whether they fitted.
    ///
    /// # Errors
    /// Those of running programs.
    pub fn search_again(
        &self,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        lists: &mut DeviceLists,
    ) -> Result<(), Error> {
        let targets = of.targets.len();
        lists.prepare(self, targets)?;
        if of.is_empty() {
            lists.hold_nothing(self, targets)?;
        } else {
            lists.count(self, of, kind, strategy)?;
            lists.unlooked = true;
            let room = lists.entries.capacity() as u64;
            lists.fill(self, of, kind, strategy, room)?;
        }
        lists.targets = targets;
        Ok(())
    }
}

/// Identifies counts: the numbers of the sorts of targets and sources, and the number of targets
/// searched for.
fn counting(of: &PairOfPoints<'_>) -> [u64; 3] {
    let searching = of.searching() as u64;
    [of.targets.last_sort(), of.sources.last_sort(), searching]
}

impl DeviceLists {
    /// Waits for the device and looks how long the lists are that were written since it last did.
    ///
    /// # Errors
    /// [`ErrorKind::ListsOverflow`] when they did not fit, and [`ErrorKind::Driver`].
    pub fn finish(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        self.ask(backend)?;
        self.asked = false;
        let unlooked = std::mem::take(&mut self.unlooked);
        let mut pairs = self.pairs;
        if let Some((total, status)) = &mut self.answer {
            if self.scanned > 0 {
                self.pairs = total.read()?[0];
                pairs = self.pairs;
            }
            if unlooked {
                pairs = pairs.max(status.read()?[0].pairs);
            }
        }
        let room = self.entries.capacity() as u64;
        if pairs > room {
            return Err(Error::from(ErrorKind::ListsOverflow { pairs, room }));
        }
        backend.wait()
    }

    /// Starts to bring to the host how long the lists are, where [`finish`](Self::finish) reads it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn ask(&mut self, backend: &GpuBackend) -> Result<(), Error> {
        if self.asked || self.starts.capacity() <= self.scanned || self.status.capacity() == 0 {
            return Ok(());
        }
        let (total, status) = match &mut self.answer {
            Some(answer) => answer,
            none => none.insert((backend.host_copy(1)?, backend.host_copy(1)?)),
        };
        let (queue, last) = (&backend.stream, self.scanned);
        self.starts.start_host_copy(queue, last, total, 1)?;
        self.status.start_host_copy(queue, 0, status, 1)?;
        self.asked = true;
        Ok(())
    }

    /// Whether there is storage for entries, from an earlier search.
    pub fn has_room(&self) -> bool {
        self.entries.capacity() > 0
    }

    /// The storage has turned out too small: makes the next search find out how much is needed.
    pub fn outgrown(&mut self) {
        self.entries.release();
    }

    /// Start and length of every list in the caller's order, and the storage of the entries; None
    /// before the first search.
    pub fn views(&self) -> Option<(CudaView<'_, u64>, CudaView<'_, u32>, CudaView<'_, u32>)> {
        let entries = self.entries.view(self.entries.capacity())?;
        Some((
            self.list_starts.view(self.targets)?,
            self.list_counts.view(self.targets)?,
            entries,
        ))
    }

    /// Number of targets.
    pub fn len(&self) -> usize {
        self.targets
    }

    /// Whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.targets == 0
    }

    /// Number of neighbours together.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.counts.bytes()
            + self.starts.bytes()
            + self.entries.bytes()
            + self.masks.bytes()
            + self.indices.bytes()
            + self.list_starts.bytes()
            + self.list_counts.bytes()
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

    /// Room for lists of so many targets, which hold nothing yet.
    pub(super) fn prepare(&mut self, backend: &GpuBackend, targets: usize) -> Result<(), Error> {
        (self.targets, self.pairs, self.scanned, self.counted) = (0, 0, 0, None);
        self.asked = false;
        self.reserve(backend, targets)
    }

    /// Lists of targets without any neighbour, for which nothing was counted.
    fn hold_nothing(&mut self, backend: &GpuBackend, targets: usize) -> Result<(), Error> {
        (self.scanned, self.pairs) = (0, 0);
        self.clear_places(backend, targets)
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

    pub(super) fn count(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
    ) -> Result<(), Error> {
        self.asked = false;
        if !self.count_by_masks(backend, of, kind, strategy)? {
            backend.count_into(of, kind, strategy, &mut self.counts, &mut self.scratch)?;
        }
        let items = of.searching();
        let scanned = scan_tiles(items) * SCAN_TILE;
        if of.share.is_some() {
            // A share is shorter than the set, and another one every time.
            self.counts.zero(&backend.stream, items..scanned)?;
        }
        let stream = &backend.stream;
        let (tiles, status) = (self.tiles.address(), self.status.address());
        let tiles_in_all = scan_tiles(items);
        backend
            .shared
            .grid
            .reset(stream, status, tiles, tiles_in_all, self.unlooked)?;
        let (counts, starts) = (self.counts.address(), self.starts.address());
        backend
            .shared
            .grid
            .list_scan(stream, counts, starts, items, tiles, status)?;
        (self.scanned, self.counted) = (scanned, Some(counting(&of)));
        Ok(())
    }

    /// Counts the neighbours of every target and writes masks, from which lists are then made. False
    /// if the traversal has none, or if there is no memory for them: lists then take two walks.
    fn count_by_masks(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
    ) -> Result<bool, Error> {
        self.masked = false;
        let traversal = of.traversal(strategy, Work::Lists(kind), kind == ListKind::Half)?;
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
        let (traversals, modules) = (&backend.shared.traversals, &backend.shared.modules);
        let kernels = traversals.get(modules, &traversal)?;
        let TraversalKernels::Flat(flat) = &*kernels else {
            return Ok(false);
        };
        let Some(masks) = flat.masks() else {
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
        match self.entries.reserve(&backend.stream, room) {
            Err(error) if error.is_out_of_memory() && self.masks.capacity() > 0 => {
                self.masked = false;
                self.masks.release();
                self.entries.reserve(&backend.stream, room)
            }
            reserved => reserved,
        }
    }

    /// Writes the lists of `targets` targets from the first of the outlet on, which holds
    /// everything but masks; `entries` is about how many they have together.
    pub(super) fn write(
        &self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        flat: &Flat,
        outlet: Outlet,
        targets: usize,
        entries: u64,
    ) -> Result<(), Error> {
        let (walk, stream) = (of.walk(), &backend.stream);
        let mut outlet = outlet;
        if let Some(masks) = flat.masks().filter(|_| self.masked) {
            outlet.masks = self.masks.address();
            outlet.indices = self.indices.address();
            masks.expand(stream, &walk, &outlet, targets, entries)?;
        }
        // Behind masks it looks only at blocks where these are not complete.
        flat.run_part(stream, &walk, &outlet, targets)
    }

    /// Refuses points other than those that were counted last: the buffers are as long as their
    /// targets were many.
    pub(super) fn check_counted(&self, of: &PairOfPoints<'_>) -> Result<(), Error> {
        if self.counted == Some(counting(of)) {
            Ok(())
        } else {
            Err(Error::from(ErrorKind::OtherLists))
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
        let what = (step as u32, parts as u32, self.scanned as u32);
        let starts = self.starts.address();
        backend
            .shared
            .grid
            .list_bounds(&backend.stream, starts, what, place)?;
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

    pub(super) fn fill(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        kind: ListKind,
        strategy: Strategy,
        pairs: u64,
    ) -> Result<(), Error> {
        let traversal = of.traversal(strategy, Work::Lists(kind), kind == ListKind::Half)?;
        if traversal.strategy != Strategy::Flat {
            // As where they are counted.
            self.clear_places(backend, of.targets.len())?;
        }
        let kernels = backend
            .shared
            .traversals
            .get(&backend.shared.modules, &traversal)?;
        let outlet = Outlet {
            starts: self.starts.address(),
            entries: self.entries.address(),
            list_starts: self.list_starts.address(),
            list_counts: self.list_counts.address(),
            capacity: pairs,
            behind: of.searching() as u32,
            ..Outlet::default()
        };
        match &*kernels {
            TraversalKernels::Flat(flat) => {
                self.write(backend, of, flat, outlet, of.searching(), pairs)
            }
            _ => backend.traverse(&kernels, of, &outlet, &mut self.scratch),
        }
    }
}
