//! Neighbour lists handed out in chunks that stay within the memory limit.
//!
//! A first pass counts the neighbours of every target. The second writes lists for as many targets
//! at a time as the limit holds, always into the same storage, whose size is decided before the
//! first chunk. Targets come in sorted order, so the points of a chunk are near each other, and a
//! caller that reads its own arrays by the indices finds them in a cache.
//!
//! A GPU counts and writes in the same order, into page-locked memory that it lends. Between chunks
//! it holds nothing of them, and other jobs may use it. If it fails, the CPU backend finds the
//! lists that have not been handed out yet.
//!
//! **Invariant:** every target is in exactly one chunk, and no chunk exceeds the storage.

use crate::{
    Device, Engine, Error, ErrorKind, PointSetId,
    backend::{
        Fault, Job, JobKind,
        chunk_plan::{self, ChunkBytes},
        rows::{MeasuredRows, RowRange, RowsOf},
        support::Feature,
    },
    engine::jobs::{Assigned, job},
};
use nearfield_cpu::{ListOrder, ListRows, MeasuredLists};
use nearfield_grid::memory::zeroed;

/// The lists of a pair of sets, chunk by chunk; made by [`Engine::list_chunks`].
///
/// One storage is used for all chunks, so a chunk must be done with before the next is asked for:
///
/// ```
/// use nearfield::prelude::*;
/// # let positions = [[0.0f32; 3], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0]];
/// let mut engine = Engine::builder(0.6).memory_limit(1 << 20).build()?;
/// let points = engine.add_point_set(&positions)?;
/// let mut chunks = engine.list_chunks(points, points)?;
/// let mut pairs = 0;
/// while let Some(chunk) = chunks.next_chunk()? {
///     for (target, neighbors) in chunk.iter() {
///         println!("{target}: {neighbors:?}");
///         pairs += neighbors.len();
///     }
/// }
/// assert_eq!(pairs, 4);
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug)]
pub struct ListChunks<'e> {
    engine: &'e Engine,
    /// Who finds the lists, and how long they are.
    measured: Measured<'e>,
    at: Position,
}

/// How far chunks have been handed out, and their storage.
#[derive(Debug)]
struct Position {
    targets: PointSetId,
    sources: PointSetId,
    /// By slot, whether a device that has failed had handed the list out; empty unless one has.
    handed_out: Vec<bool>,
    /// Most targets of a chunk.
    max_targets: usize,
    /// Most neighbours of a chunk.
    ///
    /// At least the longest list, so every chunk has a target.
    max_pairs: u64,
    /// First sorted target of the next chunk, and the number of its first entry.
    next: usize,
    next_entry: u64,
    /// The storage of all chunks, reserved once.
    rows: ListRows,
}

/// [Chunks](ListChunks) between two of them, which borrow no engine: for bindings of languages
/// without borrows.
#[derive(Debug)]
pub struct PausedChunks {
    measured: PausedMeasured,
    at: Position,
}

/// [`Measured`] without the engine.
#[derive(Debug)]
enum PausedMeasured {
    Cpu(Vec<u32>),
    Device(MeasuredRows),
}

/// Number of neighbours of every target, in sorted order, by the backend that finds the lists.
#[derive(Debug)]
enum Measured<'e> {
    Cpu(MeasuredLists<'e>),
    Device(MeasuredRows),
}

impl Measured<'_> {
    fn lengths(&self) -> &[u32] {
        match self {
            Self::Cpu(lists) => lists.lengths(),
            Self::Device(rows) => &rows.lengths,
        }
    }

    /// The caller's index of every sorted target.
    fn targets(&self) -> &[u32] {
        match self {
            Self::Cpu(lists) => lists.targets(),
            Self::Device(rows) => &rows.targets,
        }
    }

    fn pairs(&self) -> u64 {
        match self {
            Self::Cpu(lists) => lists.pairs(),
            Self::Device(rows) => rows.pairs,
        }
    }
}

/// Lists of some targets of a set.
///
/// Lists lie one after the other without gaps. Indices are those of the caller.
#[derive(Debug, Clone, Copy)]
pub struct ListChunk<'a> {
    targets: &'a [u32],
    offsets: &'a [u64],
    indices: &'a [u32],
}

impl Engine {
    /// The neighbour lists of `targets` among `sources` in chunks, each within
    /// [`Builder::memory_limit`](crate::Builder::memory_limit) (all lists in one chunk without a
    /// limit), whether the pair of sets is active or not. Nothing is kept in the engine.
    ///
    /// Neighbours are counted first, which takes four bytes per target on top of the limit (eight
    /// where a GPU counts), so this takes about twice as long as a search into lists.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let row: Vec<[f32; 3]> = (0..100).map(|x| [x as f32, 0.0, 0.0]).collect();
    /// let mut engine = Engine::builder(1.0).memory_limit(400).build()?;
    /// let points = engine.add_point_set(&row)?;
    /// assert!(engine.find_neighbors().is_err(), "all lists together need more");
    /// let mut chunks = engine.list_chunks(points, points)?;
    /// assert_eq!(chunks.pairs(), 198);
    /// let (mut targets, mut count) = (0, 0);
    /// while let Some(chunk) = chunks.next_chunk()? {
    ///     assert!(chunk.bytes() <= 400);
    ///     (targets, count) = (targets + chunk.len(), count + 1);
    /// }
    /// assert!(targets == 100 && count > 1);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// Dropping the chunks early is fine. The engine is borrowed meanwhile, so its sets cannot
    /// change while chunks are handed out.
    ///
    /// A GPU does it if the engine was asked for one alone; an engine that shares its jobs leaves
    /// it to the CPU pool.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::NoRadii`], [`ErrorKind::ListTooLong`] when the
    /// list of a single target exceeds the limit, and [`ErrorKind::Cpu`] when memory is short.
    pub fn list_chunks(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<ListChunks<'_>, Error> {
        self.list_chunks_within(targets, sources, self.settings.memory_limit)
    }

    /// As [`list_chunks`](Self::list_chunks), with a limit of these bytes in the place of the
    /// engine's; all lists in one chunk without one.
    ///
    /// # Errors
    /// As there.
    pub fn list_chunks_within(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        limit: Option<u64>,
    ) -> Result<ListChunks<'_>, Error> {
        let pair = self.pair(targets, sources)?;
        self.in_place()?;
        let job = job(JobKind::Chunks, targets, sources);
        let measured =
            match self.assign_pair(&Feature::ListChunks, pair.map(|slot| slot as usize))? {
                Assigned::Cpu(reason) => {
                    let measured = self.measured(targets, sources)?;
                    self.was_done(job, Device::Cpu, reason);
                    Measured::Cpu(measured)
                }
                Assigned::Device(device) => {
                    let input = self.input();
                    let count = device.alone(&input, |device| {
                        device.measure_rows(&input, job, RowsOf::Lists)
                    });
                    let (measured, instead) = match count? {
                        Ok(rows) => (Measured::Device(rows), None),
                        Err(fault) => {
                            let measured = self.measured(targets, sources)?;
                            (Measured::Cpu(measured), Some(fault.to_string()))
                        }
                    };
                    self.ran(job, instead);
                    measured
                }
            };
        let (max_targets, max_pairs) = match limit {
            Some(limit) => split(&measured, targets, limit)?,
            None => (measured.lengths().len(), measured.pairs()),
        };
        let at = Position {
            targets,
            sources,
            handed_out: Vec::new(),
            max_targets,
            max_pairs,
            next: 0,
            next_entry: 0,
            rows: ListRows::default(),
        };
        let mut chunks = ListChunks {
            engine: self,
            measured,
            at,
        };
        chunks.make_room()?;
        Ok(chunks)
    }

    /// Goes on with chunks that were [paused](ListChunks::pause). The sets and settings of the
    /// engine must be as they were then: lists of other points would be of no use, so bindings
    /// refuse to resume after a change.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::Cpu`] if the sets are others.
    pub fn resume_chunks(&self, paused: PausedChunks) -> Result<ListChunks<'_>, Error> {
        let PausedChunks { measured, at } = paused;
        self.pair(at.targets, at.sources)?;
        self.in_place()?;
        let measured = match measured {
            PausedMeasured::Cpu(lengths) => {
                let of = self.pair_of_sets(at.targets, at.sources)?;
                let before = (self.backend).measured_before(of, self.settings.lists, lengths);
                Measured::Cpu(before?)
            }
            PausedMeasured::Device(rows) => Measured::Device(rows),
        };
        Ok(ListChunks {
            engine: self,
            measured,
            at,
        })
    }

    /// The lengths of all lists, by the CPU backend.
    fn measured(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<MeasuredLists<'_>, Error> {
        let of = self.pair_of_sets(targets, sources)?;
        Ok(self.backend.measure(of, self.settings.lists)?)
    }
}

impl ListChunks<'_> {
    /// Writes and hands out the next chunk; `None` after the last.
    ///
    /// Searches for the chunk's targets on the GPU, or on all workers of the engine. After an error
    /// the same chunk is tried again by the next call.
    ///
    /// # Errors
    /// [`ErrorKind::Cpu`] when memory is short.
    pub fn next_chunk(&mut self) -> Result<Option<ListChunk<'_>>, Error> {
        let mut range = self.cut();
        if range.slots.is_empty() {
            return Ok(None);
        }
        if let Some(fault) = self.write(&range)? {
            self.take_over(fault)?;
            range = self.cut();
            self.write(&range)?;
        }
        (self.at.next, self.at.next_entry) = (range.slots.end, range.entries.end);
        Ok(Some(ListChunk {
            targets: &self.measured.targets()[range.slots],
            offsets: self.at.rows.offsets(),
            indices: self.at.rows.indices(),
        }))
    }

    /// Ends the borrow of the engine between two chunks, until [`Engine::resume_chunks`].
    pub fn pause(self) -> PausedChunks {
        PausedChunks {
            measured: match self.measured {
                Measured::Cpu(lists) => PausedMeasured::Cpu(lists.into_lengths()),
                Measured::Device(rows) => PausedMeasured::Device(rows),
            },
            at: self.at,
        }
    }

    /// Neighbours in all chunks together, those handed out included.
    pub fn pairs(&self) -> u64 {
        self.measured.pairs()
    }

    /// Bytes of the storage that all chunks share.
    pub fn bytes(&self) -> usize {
        self.at.rows.bytes()
    }

    /// Makes the storage of all chunks.
    fn make_room(&mut self) -> Result<(), Error> {
        let (engine, targets, pairs) = (self.engine, self.at.max_targets, self.at.max_pairs);
        if let (Measured::Device(_), Some(device)) = (&self.measured, engine.second_backend()) {
            let rows = &mut self.at.rows;
            let lent = device.alone(&engine.input(), |device| {
                device.lend_rows(rows, targets, pairs)
            });
            match lent? {
                Ok(()) => return Ok(()),
                Err(fault) => self.take_over(fault)?,
            }
        }
        Ok(self.at.rows.reserve(targets, pairs)?)
    }

    /// Writes the lists of a range; the fault of the device, if one failed.
    fn write(&mut self, range: &RowRange) -> Result<Option<Fault>, Error> {
        let (engine, rows) = (self.engine, &mut self.at.rows);
        let order = engine.settings.order;
        match (&self.measured, engine.second_backend()) {
            (Measured::Cpu(lists), _) => {
                lists.write_range(range.slots.clone(), order, rows)?;
                Ok(None)
            }
            (Measured::Device(measured), Some(device)) => {
                let input = engine.input();
                let written = device.alone(&input, |device| {
                    device.write_rows(&input, measured, range, rows)
                });
                if order == ListOrder::Ascending && matches!(written, Ok(Ok(()))) {
                    tracing::debug_span!("cpu.sort_lists").in_scope(|| rows.sort(&engine.backend));
                }
                Ok(written?.err())
            }
            // An engine that is borrowed keeps its device.
            (Measured::Device(_), None) => Ok(Some(Fault::Behind)),
        }
    }

    /// Goes on with the CPU backend, which finds the lists that have not been handed out.
    fn take_over(&mut self, fault: Fault) -> Result<(), Error> {
        const WHAT: &str = "marks of targets";
        let measured = self.engine.measured(self.at.targets, self.at.sources)?;
        let points = measured.targets().len();
        let mut done = zeroed(points, WHAT)?;
        for &target in &self.measured.targets()[..self.at.next] {
            if let Some(done) = done.get_mut(target as usize) {
                *done = 1u8;
            }
        }
        let mut handed_out = nearfield_grid::memory::with_room(points, WHAT)?;
        handed_out.extend((measured.targets().iter()).map(|&target| done[target as usize] == 1));
        self.measured = Measured::Cpu(measured);
        (self.at.handed_out, self.at.next, self.at.next_entry) = (handed_out, 0, 0);
        let job: Job = job(JobKind::Chunks, self.at.targets, self.at.sources);
        (self.engine).was_done(job, Device::Cpu, fault.to_string().into());
        Ok(())
    }

    /// The sorted targets of the next chunk.
    ///
    /// As many targets as fit, in order. Looks at one length per target, so cutting costs nothing
    /// beside writing the lists.
    fn cut(&self) -> RowRange {
        let at = &self.at;
        let done = |slot: usize| at.handed_out.get(slot) == Some(&true);
        let next = (at.next, at.next_entry);
        let most = (at.max_targets, at.max_pairs);
        chunk_plan::cut(self.measured.lengths(), next, most, done)
    }
}

/// Splits `limit` bytes: most targets and most neighbours of a chunk.
///
/// # Errors
/// [`ErrorKind::ListTooLong`] naming the target with the longest list.
fn split(measured: &Measured<'_>, set: PointSetId, limit: u64) -> Result<(usize, u64), Error> {
    let fixed = ListRows::bytes_for(0, 0);
    let bytes = ChunkBytes {
        fixed,
        row: ListRows::bytes_for(1, 0) - fixed,
        entry: ListRows::bytes_for(0, 1) - fixed,
    };
    let most = chunk_plan::split(measured.lengths(), measured.pairs(), limit, bytes);
    most.map_err(|long| {
        let kind = ErrorKind::ListTooLong {
            set,
            point: measured.targets()[long.slot],
            neighbors: long.length,
            needed: long.needed,
            limit,
        };
        kind.into()
    })
}

impl<'a> ListChunk<'a> {
    /// Number of targets.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no targets, which no chunk handed out is.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The targets, by their index in their set: neighbours in space, in the order of
    /// [`Engine::z_sort`].
    pub fn targets(&self) -> &'a [u32] {
        self.targets
    }

    /// Neighbours of target number `k` of this chunk, [`targets`](Self::targets)`[k]`.
    ///
    /// # Panics
    /// When there is no target number `k`, as indexing a slice does.
    pub fn of(&self, k: usize) -> &'a [u32] {
        &self.indices[self.offsets[k] as usize..self.offsets[k + 1] as usize]
    }

    /// Where the neighbours of each target begin in [`indices`](Self::indices), and the end of the
    /// last: one number more than there are targets.
    pub fn offsets(&self) -> &'a [u64] {
        self.offsets
    }

    /// The neighbours of all targets, one list behind the other; there may be room behind the last.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// Every target with its neighbours.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &'a [u32])> {
        let chunk = *self;
        (0..self.len()).map(move |k| (chunk.targets[k], chunk.of(k)))
    }

    /// Number of neighbours together.
    pub fn pairs(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Bytes of the chunk's lists, which the memory limit bounds.
    pub fn bytes(&self) -> u64 {
        ListRows::bytes_for(self.len(), self.pairs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::emulated::EmulatedDevice;
    use nearfield_testkit::cloud::Cloud;

    /// All chunks: their targets, and their lists.
    fn chunks_of(engine: &Engine, set: PointSetId) -> Vec<(Vec<u32>, Vec<Vec<u32>>)> {
        let mut chunks = engine.list_chunks(set, set).unwrap();
        let mut found = Vec::new();
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            let lists = chunk.iter().map(|(_, list)| list.to_vec()).collect();
            found.push((chunk.targets().to_vec(), lists));
        }
        assert!(chunks.next_chunk().unwrap().is_none());
        found
    }

    #[test]
    fn chunks_that_were_paused_go_on_where_they_were() {
        let points = Cloud::Clusters.points(3_000, 4);
        for device in [Device::Cpu, Device::Emulated(Default::default())] {
            let mut engine = (Engine::builder(1.0).memory_limit(20_000).device(device))
                .build()
                .unwrap();
            let set = engine.add_point_set(&points).unwrap();
            let expected = chunks_of(&engine, set);
            let mut paused = engine.list_chunks(set, set).unwrap().pause();
            let mut found = Vec::new();
            loop {
                let mut chunks = engine.resume_chunks(paused).unwrap();
                let Some(chunk) = chunks.next_chunk().unwrap() else {
                    break;
                };
                let lists = chunk.iter().map(|(_, list)| list.to_vec()).collect();
                found.push((chunk.targets().to_vec(), lists));
                paused = chunks.pause();
            }
            assert!(found == expected && found.len() > 2, "{device}");
            // Lengths of other points are refused.
            let paused = engine.list_chunks(set, set).unwrap().pause();
            engine.update(set, &points[..10]).unwrap();
            if device == Device::Cpu {
                assert!(engine.resume_chunks(paused).is_err());
            }
        }
    }

    #[test]
    fn chunks_are_handed_out_once_whatever_becomes_of_the_device() {
        let points = Cloud::Clusters.points(6_000, 4);
        let chunks = |ranges: Option<usize>| {
            let spec = nearfield_balance::EmulatedSpec::default();
            let mut engine = Engine::builder(1.0)
                .device(Device::Emulated(spec))
                .memory_limit(40_000)
                .list_order(ListOrder::Ascending)
                .build()
                .unwrap();
            let device = EmulatedDevice::new(spec).unwrap();
            device.fail_after(ranges.unwrap_or(usize::MAX));
            engine.accelerator = Some(Box::new(device));
            let set = engine.add_point_set(&points).unwrap();
            if ranges.is_none() {
                engine.accelerator = None;
            }
            let found = chunks_of(&engine, set);
            (found, engine.report().jobs[0].device)
        };
        let (expected, on) = chunks(None);
        assert_eq!(on, Device::Cpu);
        assert!(expected.len() > 4, "{}", expected.len());
        for ranges in [0, 1, 3, usize::MAX] {
            let (found, on) = chunks(Some(ranges));
            assert!(found == expected, "{ranges}");
            assert_eq!(on == Device::Cpu, ranges != usize::MAX);
        }
    }
}
