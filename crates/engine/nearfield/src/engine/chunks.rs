//! Neighbour lists handed out in chunks that stay within the memory limit.
//!
//! A first pass counts the neighbours of every target. The second writes lists for as many targets
//! at a time as the limit holds, always into the same storage, whose size is decided before the
//! first chunk. Targets come in sorted order, so the points of a chunk are near each other, and a
//! caller that reads its own arrays by the indices finds them in a cache.
//!
//! **Invariant:** every target is in exactly one chunk, and no chunk exceeds the storage.

use crate::{
    Engine, Error, ErrorKind, PointSetId,
    backend::{JobKind, support::Feature},
    engine::jobs::job,
};
use nearfield_cpu::{ListOrder, ListRows, MeasuredLists};
use std::ops::Range;

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
    /// Number of neighbours of every target, in sorted order.
    measured: MeasuredLists<'e>,
    order: ListOrder,
    /// Most targets of a chunk.
    max_targets: usize,
    /// Most neighbours of a chunk.
    ///
    /// At least the longest list, so every chunk has a target.
    max_pairs: u64,
    /// First sorted target of the next chunk.
    next: usize,
    /// The storage of all chunks, reserved once.
    rows: ListRows,
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
    /// Neighbours are counted first, which takes four bytes per target on top of the limit, so this
    /// takes about twice as long as a search into lists.
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
    /// An engine that was asked for a GPU alone, or for an emulated one, refuses this with
    /// [`ErrorKind::Unsupported`].
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::NoRadii`], [`ErrorKind::ListTooLong`] when the
    /// list of a single target exceeds the limit, and [`ErrorKind::Cpu`] when memory is short.
    pub fn list_chunks(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<ListChunks<'_>, Error> {
        let kind = JobKind::OfCpu("list_chunks");
        self.assign_to_cpu(&Feature::ListChunks, job(kind, targets, sources))?;
        let of = self.pair_of_sets(targets, sources)?;
        let measured = self.backend.measure(of, self.settings.lists)?;
        let (max_targets, max_pairs) = match self.settings.memory_limit {
            Some(limit) => split(&measured, targets, limit)?,
            None => (measured.lengths().len(), measured.pairs()),
        };
        let mut rows = ListRows::default();
        rows.reserve(max_targets, max_pairs)?;
        Ok(ListChunks {
            measured,
            order: self.settings.order,
            max_targets,
            max_pairs,
            next: 0,
            rows,
        })
    }
}

impl ListChunks<'_> {
    /// Writes and hands out the next chunk; `None` after the last.
    ///
    /// Searches for the chunk's targets on all workers of the engine. After an error the same chunk
    /// is tried again by the next call.
    ///
    /// # Errors
    /// [`ErrorKind::Cpu`] when memory is short.
    pub fn next_chunk(&mut self) -> Result<Option<ListChunk<'_>>, Error> {
        let slots = self.cut();
        if slots.is_empty() {
            return Ok(None);
        }
        self.measured
            .write_range(slots.clone(), self.order, &mut self.rows)?;
        self.next = slots.end;
        Ok(Some(ListChunk {
            targets: &self.measured.targets()[slots],
            offsets: self.rows.offsets(),
            indices: self.rows.indices(),
        }))
    }

    /// Neighbours in all chunks together, those handed out included.
    pub fn pairs(&self) -> u64 {
        self.measured.pairs()
    }

    /// Bytes of the storage that all chunks share.
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// The sorted targets of the next chunk.
    ///
    /// As many targets as fit, in order. Looks at one length per target, so cutting costs nothing
    /// beside writing the lists.
    fn cut(&self) -> Range<usize> {
        let lengths = &self.measured.lengths()[self.next..];
        let mut room = self.max_pairs;
        let taken = lengths
            .iter()
            .take(self.max_targets)
            .take_while(|length| {
                let fits = u64::from(**length) <= room;
                room = room.saturating_sub(u64::from(**length));
                fits
            })
            .count();
        self.next..self.next + taken
    }
}

/// Splits `limit` bytes: most targets and most neighbours of a chunk, at least the longest list,
/// so that chunks of about average lists use up both.
///
/// A chunk of t targets and p neighbours takes row·(t + 1) + entry·p bytes, because it has an
/// offset more than targets. With p = t·average that is about t·(row + entry·average), which gives
/// t; the rest of the limit is for entries. If that is less than the longest list needs, entries
/// are given exactly the longest list and targets the rest: at least one, because a single target
/// with that list was found to fit.
///
/// # Errors
/// [`ErrorKind::ListTooLong`] naming the target with the longest list.
fn split(measured: &MeasuredLists<'_>, set: PointSetId, limit: u64) -> Result<(usize, u64), Error> {
    let targets = measured.lengths().len();
    let lengths = measured.lengths().iter().enumerate();
    let Some((slot, &longest)) = lengths.max_by_key(|(_, length)| **length) else {
        return Ok((0, 0));
    };
    let needed = ListRows::bytes_for(1, u64::from(longest));
    if needed > limit {
        return Err(ErrorKind::ListTooLong {
            set,
            point: measured.targets()[slot],
            neighbors: longest,
            needed,
            limit,
        }
        .into());
    }
    let row = ListRows::bytes_for(1, 0) - ListRows::bytes_for(0, 0);
    let entry = ListRows::bytes_for(0, 1) - ListRows::bytes_for(0, 0);
    let average = row + entry * measured.pairs() / targets as u64;
    let rows = (limit / average).saturating_sub(1).max(1);
    let entries_beside = |rows: u64| limit.saturating_sub(row * (rows + 1)) / entry;
    let (rows, pairs) = match entries_beside(rows) {
        pairs if pairs >= u64::from(longest) => (rows, pairs),
        _ => (
            (limit - entry * u64::from(longest)) / row - 1,
            u64::from(longest),
        ),
    };
    let rows = usize::try_from(rows).unwrap_or(targets);
    Ok((rows.min(targets), pairs.min(measured.pairs())))
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
