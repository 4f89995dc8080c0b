//! Lists of a bounded number of targets and pairs at a time, for searches whose lists do not fit.
//!
//! Neighbours are counted first, and the host reads the length of every list, from which chunks are
//! cut as those of an [`Engine`](crate::Engine) are (`chunk_plan`). All chunks are written into one
//! storage, without waiting: their lengths are known, so they are never provisional.
//!
//! **Invariant:** a chunk is written for the points and filters that were counted. After a change
//! the next chunk is refused, so no list is missing or stands in two chunks.

use super::{
    engine::{DeviceEngine, no_lists},
    filters::with_nearest,
    lists::DeviceListsView,
};
use crate::{
    Error, ErrorKind, ListOrder, PointSetId,
    backend::chunk_plan::{self, ChunkBytes},
    error::MissingLists,
};
use nearfield_gpu::{
    DeviceView, ErrorKind as GpuErrorKind, GeometryQuantities, ListPart, PairViews, PartialLists,
};
use nearfield_grid::OfProcess;

/// The lists of a pair of sets, chunk by chunk; made by [`DeviceEngine::list_chunks`].
///
/// ```no_run
/// use nearfield::device::DeviceEngine;
/// # use nearfield::{Error, PointSetId};
/// # fn of(engine: &mut DeviceEngine, atoms: PointSetId) -> Result<(), Error> {
/// let mut chunks = engine.list_chunks(atoms, atoms)?;
/// while let Some(chunk) = chunks.next_chunk(engine)? {
///     // Kernels of your own on the stream of the engine read the lists at once.
///     assert_eq!(chunk.targets.len(), chunk.lists.count.len());
/// }
/// # Ok(())
/// # }
/// ```
///
/// All chunks are in one storage, which the next chunk overwrites in the order of the stream.
/// Between chunks the engine may do other work; if one of the sets, or what filters read of it,
/// changes, the next chunk is refused.
#[derive(Debug)]
pub struct DeviceListChunks {
    sets: [PointSetId; 2],
    storage: OfProcess<PartialLists>,
    /// Neighbours of every sorted target that is searched for.
    lengths: Vec<u32>,
    pairs: u64,
    /// Most targets and most pairs of a chunk.
    most: (usize, u64),
    /// First target of the next chunk, and the number of its first entry.
    next: (usize, u64),
}

/// Lists of some targets of a set. The arrays are on the stream of the engine and valid, not
/// provisional, until the next chunk.
#[derive(Debug)]
pub struct DeviceListChunk<'a> {
    /// The caller's index of every target.
    pub targets: DeviceView<'a, u32>,
    /// Start, length and entries of the list of each of these. Lists lie one behind the other, and
    /// there is no room behind the last.
    pub lists: DeviceListsView<'a>,
    /// What was asked for of every pair, parallel to the entries.
    pub pairs: PairViews<'a>,
}

impl DeviceEngine {
    /// Bytes that the lists of a pair of sets may take, if there is a
    /// [limit](super::DeviceEngineBuilder::memory_limit).
    pub fn memory_limit(&self) -> Option<u64> {
        self.settings.memory_limit
    }

    /// The neighbour lists of `targets` among `sources` in chunks, each within
    /// [`memory_limit`](super::DeviceEngineBuilder::memory_limit), where a target takes 16 bytes
    /// and not 12; all lists in one chunk without a limit. Lists are those of
    /// [`find_neighbors`](Self::find_neighbors); every target that is searched for is in exactly
    /// one chunk, in the order of the cells.
    ///
    /// Waits for the device, to count neighbours; the host then holds four bytes a target. Sets are
    /// looked at as by [`finish`](Self::finish), so chunks are not provisional. If points had left
    /// their cells meanwhile, the next `finish` says [`Progress::Repeat`](super::Progress::Repeat)
    /// for what was computed before.
    ///
    /// # Errors
    /// As [`find_neighbors`](Self::find_neighbors) and [`finish`](Self::finish), and
    /// [`ErrorKind::ListTooLong`] when the list of a single target exceeds the limit.
    pub fn list_chunks(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<DeviceListChunks, Error> {
        let limit = self.settings.memory_limit;
        self.list_chunks_within(targets, sources, GeometryQuantities::NONE, limit)
    }

    /// As [`list_chunks`](Self::list_chunks), with these numbers of every pair beside the lists,
    /// and a limit of bytes in the place of the engine's; all lists in one chunk without one.
    ///
    /// # Errors
    /// As there.
    pub fn list_chunks_within(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        quantities: GeometryQuantities,
        limit: Option<u64>,
    ) -> Result<DeviceListChunks, Error> {
        self.known(targets)?;
        self.known(sources)?;
        while !self.settle_all()? || !self.settle_data()? {}
        let mut storage = PartialLists::default();
        let ascending = self.settings.order == ListOrder::Ascending;
        storage.want(quantities, ascending, self.filters.has_nearest());
        let of = self.pair(targets, sources)?;
        let nearest = self.filters.nearest(&self.backend, of)?;
        let of = with_nearest(of, &nearest);
        let lengths = (self.backend).measure_parts(of, self.settings.lists, &mut storage)?;
        let pairs = lengths.iter().map(|&length| u64::from(length)).sum();
        let bytes = ChunkBytes {
            fixed: size_of::<u64>() as u64,
            row: (size_of::<u64>() + 2 * size_of::<u32>()) as u64,
            entry: storage.bytes_per_pair() as u64,
        };
        let most = match limit {
            None => (lengths.len(), pairs),
            Some(limit) => match chunk_plan::split(&lengths, pairs, limit, bytes) {
                Ok(most) => most,
                Err(long) => {
                    let point = self.backend.target_of_part(of, long.slot, &storage)?;
                    return Err(ErrorKind::ListTooLong {
                        set: targets,
                        point,
                        neighbors: long.length,
                        needed: long.needed,
                        limit,
                    }
                    .into());
                }
            },
        };
        let room = usize::try_from(most.1).unwrap_or(usize::MAX);
        (self.backend).reserve_parts(&mut storage, most.0, room)?;
        Ok(DeviceListChunks {
            sets: [targets, sources],
            storage: OfProcess::new(storage),
            lengths,
            pairs,
            most,
            next: (0, 0),
        })
    }
}

impl DeviceListChunks {
    /// Writes and hands out the next chunk; `None` after the last. `engine` is the one that made
    /// the chunks. Does not wait for the device, unless images are asked for.
    ///
    /// # Errors
    /// [`ErrorKind::OtherEngine`], [`ErrorKind::NoLists`] if a set or its filters have changed
    /// since the chunks were made, and [`ErrorKind::Gpu`]. The same chunk is tried again by the
    /// next call.
    pub fn next_chunk(
        &mut self,
        engine: &DeviceEngine,
    ) -> Result<Option<DeviceListChunk<'_>>, Error> {
        let [targets, sources] = self.sets;
        engine.known(targets)?;
        engine.known(sources)?;
        let range = chunk_plan::cut(&self.lengths, self.next, self.most, |_| false);
        if range.slots.is_empty() {
            return Ok(None);
        }
        let (slots, entries) = (range.slots, range.entries);
        let next = (slots.end, entries.end);
        let of = engine.pair(targets, sources)?;
        let nearest = engine.filters.nearest(&engine.backend, of)?;
        let of = with_nearest(of, &nearest);
        let (kind, part) = (engine.settings.lists, ListPart { slots, entries });
        let storage = &mut *self.storage;
        let missing = |set| no_lists(targets, sources, MissingLists::Changed { set });
        let written = (engine.backend).write_part_of_lists(of, kind, &part, storage);
        written.map_err(|error| match error.kind() {
            GpuErrorKind::OtherLists => missing(targets),
            _ => error.into(),
        })?;
        self.next = next;
        let views = storage.views().ok_or_else(|| missing(targets))?;
        Ok(Some(DeviceListChunk {
            targets: views.targets,
            lists: DeviceListsView {
                start: views.start,
                count: views.count,
                entries: views.entries,
            },
            pairs: views.pairs,
        }))
    }

    /// The sets whose lists these are: the one that searches, and the one that is searched.
    pub fn sets(&self) -> [PointSetId; 2] {
        self.sets
    }

    /// Neighbours in all chunks together, those handed out included.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Bytes held on the device: storage of a chunk, and what the search needs for all targets.
    pub fn bytes(&self) -> usize {
        self.storage.bytes()
    }
}
