//! The parallel stable sort by (cell, index).
//!
//! # Dense tables: two passes of counting
//!
//! The first pass divides the points into buckets, each a range of cells. Every chunk of the input
//! counts its points per bucket; a prefix sum over (bucket, chunk) tells each chunk where its
//! points of each bucket go; then chunks scatter at once without meeting, and points of one bucket
//! keep their order. The second pass is a counting sort inside each bucket, which fits the
//! first-level cache and writes the cell table as it goes.
//!
//! Two passes are faster than one, although they move the points twice. A single counting sort
//! would write to as many streams as there are cells, far more than a processor keeps open, and
//! every store would wait for memory. At most 2,048 buckets keep all write streams in the
//! second-level cache.
//!
//! # Nearly sorted and shuffled input
//!
//! In the steady state of a simulation points are nearly sorted: consecutive points lie in the
//! same or the next bucket. Items then carry an index only, and coordinates are read from the
//! caller's array at the end, which is a stream too. Input in random order pays for one scatter:
//! items carry their position, so the caller's array is read once in order, and the next cache
//! lines of all streams are prefetched. A sample of 256 points tells which it is ([`Order`]). The
//! result is the same either way.
//!
//! # Hashed tables
//!
//! The same bucket pass with splitters drawn from a sample of the keys, then `radsort` inside the
//! buckets (comparisons for keys of 128 bits, where buckets are small, for long buckets, and where
//! memory is too short for the copies that `radsort` makes).
//!
//! # Invariants
//!
//! Both sorts are stable, so points of a cell come in the caller's order. Both passes are
//! independent of the number of threads, so the order is too. Memory is reserved before the
//! caller's state changes, so a refusal leaves the grid as it was.
//!
//! # Memory
//!
//! A sort holds an item per point: 8 bytes when nearly sorted, 20 when shuffled, 32 in double
//! precision. Keys are written
//! into the room of the sorted indices, which is free until the last pass. Histograms take four
//! bytes per bucket and chunk, 2 MiB at most on 64 threads.

pub(crate) mod keys;
pub(crate) mod permutation;
pub(crate) mod widest;

use crate::{
    Error, SharedMut,
    error::reserve,
    parallel::{self, PoolLoops},
    table::hashed::WideKey,
};
use rayon::prelude::*;
use std::ops::Range;

/// Buckets of the bucket pass: enough to make a bucket of a million points fit the first-level
/// cache, few enough that all write streams stay in the second.
const MAX_BUCKETS: usize = 2048;

/// Minimum number of points that a bucket should hold.
const FULL_BUCKET: usize = 512;

/// Items ahead of the one just written that are fetched for writing: no processor foresees as many
/// streams as there are buckets.
const AHEAD: usize = 6;

/// Bytes of a cache line.
const LINE: usize = 64;

/// One point on its way to its sorted position.
///
/// Eight bytes, or twenty with the position, 32 in double precision.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Item<P> {
    /// Number of its cell.
    key: u32,
    /// The caller's index.
    index: u32,
    /// Its position, if that is carried.
    position: P,
}

/// A coordinate of the points that are sorted.
///
/// Positions go through the sort in the precision they are stored in, so that each is read from the
/// caller's array once, and that of shuffled points in one stream.
pub(crate) trait Coordinate: Copy + Default + Send + Sync {
    /// Scratch for points in random order, in the memory of `items`.
    ///
    /// Scratch is kept for one precision at a time: an engine has one.
    fn shuffled(items: Vec<Item<[Self; 3]>>) -> SortScratch;
    /// The items of that scratch.
    fn items(scratch: &mut SortScratch) -> Option<&mut Vec<Item<[Self; 3]>>>;
}

impl Coordinate for f32 {
    fn shuffled(items: Vec<Item<[Self; 3]>>) -> SortScratch {
        SortScratch::Shuffled(items)
    }

    fn items(scratch: &mut SortScratch) -> Option<&mut Vec<Item<[Self; 3]>>> {
        match scratch {
            SortScratch::Shuffled(items) => Some(items),
            _ => None,
        }
    }
}

impl Coordinate for f64 {
    fn shuffled(items: Vec<Item<[Self; 3]>>) -> SortScratch {
        SortScratch::ShuffledDouble(items)
    }

    fn items(scratch: &mut SortScratch) -> Option<&mut Vec<Item<[Self; 3]>>> {
        match scratch {
            SortScratch::ShuffledDouble(items) => Some(items),
            _ => None,
        }
    }
}

/// The part of its position, in coordinates of type `T`, that an item carries.
pub(crate) trait Carried<T>: Copy + Default + Send + Sync {
    /// Points come in random order, so that every store is far from the one before.
    const SCATTERED: bool;

    /// Takes what is carried when the item is made; `fetch` reads the caller's array.
    fn carry(fetch: impl FnOnce() -> [T; 3]) -> Self;
    /// The position, when the item has arrived.
    fn deliver(self, fetch: impl FnOnce() -> [T; 3]) -> [T; 3];
}

/// Nothing: it is fetched from the caller's array at the end, which is the cheapest where that is
/// nearly sorted, as in the steady state.
impl<T> Carried<T> for () {
    const SCATTERED: bool = false;

    #[inline(always)]
    fn carry(_: impl FnOnce() -> [T; 3]) -> Self {}

    #[inline(always)]
    fn deliver(self, fetch: impl FnOnce() -> [T; 3]) -> [T; 3] {
        fetch()
    }
}

/// All of it, so that input in random order is read in one stream.
impl<T: Coordinate> Carried<T> for [T; 3] {
    const SCATTERED: bool = true;

    #[inline(always)]
    fn carry(fetch: impl FnOnce() -> [T; 3]) -> Self {
        fetch()
    }

    #[inline(always)]
    fn deliver(self, _: impl FnOnce() -> [T; 3]) -> [T; 3] {
        self
    }
}

/// Buffers that are kept between sorts.
#[derive(Debug, Clone)]
pub(crate) enum SortScratch {
    NearlySorted(Vec<Item<()>>),
    Shuffled(Vec<Item<[f32; 3]>>),
    ShuffledDouble(Vec<Item<[f64; 3]>>),
}

impl Default for SortScratch {
    fn default() -> Self {
        Self::NearlySorted(Vec::new())
    }
}

impl SortScratch {
    /// Makes room for `len` points that are, or are not, in random order.
    pub(crate) fn reserve<T: Coordinate>(&mut self, len: usize, order: Order) -> Result<(), Error> {
        const WHAT: &str = "points being sorted";
        match order {
            Order::NearlySorted => match self {
                Self::NearlySorted(items) => reserve(items, len, WHAT)?,
                _ => {
                    let mut items = Vec::new();
                    reserve(&mut items, len, WHAT)?;
                    *self = Self::NearlySorted(items);
                }
            },
            Order::Shuffled => match T::items(self) {
                Some(items) => reserve(items, len, WHAT)?,
                None => {
                    let mut items = Vec::new();
                    reserve(&mut items, len, WHAT)?;
                    *self = T::shuffled(items);
                }
            },
        }
        Ok(())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::NearlySorted(items) => items.capacity() * size_of::<Item<()>>(),
            Self::Shuffled(items) => items.capacity() * size_of::<Item<[f32; 3]>>(),
            Self::ShuffledDouble(items) => items.capacity() * size_of::<Item<[f64; 3]>>(),
        }
    }
}

/// How the caller's points follow each other. Only what sorting costs depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    NearlySorted,
    Shuffled,
}

/// Points looked at to tell the order.
const SAMPLE: usize = 1 << 8;

impl Order {
    /// The order of `len` points by a sample of them: `key` gives the cell number, below `cells`.
    pub(crate) fn of(len: usize, cells: usize, key: impl Fn(usize) -> u32) -> Self {
        let step = (len / SAMPLE).max(1);
        let near = cells.div_ceil(buckets_for(len)) as u32;
        let sampled = (1..len).step_by(step);
        let jumps = (sampled.clone())
            .filter(|&i| key(i).abs_diff(key(i - 1)) > near)
            .count();
        if 4 * jumps > sampled.count() {
            Self::Shuffled
        } else {
            Self::NearlySorted
        }
    }
}

/// Number of buckets of the bucket pass.
fn buckets_for(len: usize) -> usize {
    (len / FULL_BUCKET).clamp(1, MAX_BUCKETS)
}

/// The arrays for sorted points.
pub(crate) struct Sorted<'a, T> {
    /// x of every slot.
    pub(crate) x: &'a mut [T],
    /// y of every slot.
    pub(crate) y: &'a mut [T],
    /// z of every slot.
    pub(crate) z: &'a mut [T],
    /// The caller's index of every slot.
    pub(crate) index: &'a mut [u32],
}

/// Sorts `len` points by the keys that `fill_keys` finds for a range of them (below `starts.len() -
/// 1`) and by index; `starts` becomes the first sorted point of each key and, behind the last,
/// `len`. `scratch` has room for them.
///
/// Results depend on keys and indices alone.
pub(crate) fn by_counting<T: Coordinate>(
    len: usize,
    position: impl Fn(usize) -> [T; 3] + Sync,
    fill_keys: impl Fn(Range<usize>, &mut [u32]) + Sync,
    scratch: &mut SortScratch,
    starts: &mut [u32],
    sorted: Sorted<'_, T>,
) {
    if let SortScratch::NearlySorted(items) = scratch {
        sort_items(len, position, fill_keys, items, starts, sorted);
    } else if let Some(items) = T::items(scratch) {
        sort_items(len, position, fill_keys, items, starts, sorted);
    } else {
        debug_assert!(false, "room was reserved for another precision");
    }
}

/// [`by_counting`] with items that carry `P`.
fn sort_items<T: Coordinate, P: Carried<T>>(
    len: usize,
    position: impl Fn(usize) -> [T; 3] + Sync,
    fill_keys: impl Fn(Range<usize>, &mut [u32]) + Sync,
    items: &mut Vec<Item<P>>,
    starts: &mut [u32],
    sorted: Sorted<'_, T>,
) {
    let cells = starts.len() - 1;
    let width = cells.div_ceil(buckets_for(len)).next_power_of_two();
    let shift = width.trailing_zeros();
    let buckets = ((cells - 1) >> shift) + 1;

    items.resize(len, Item::default());
    // The room for the sorted indices is free until the last pass, so it holds the keys.
    // First pass: keys and histograms, chunk by chunk, then the scatter of items into buckets.
    let keys = SharedMut::new(sorted.index);
    let mut plan = BucketPlan::count(len, buckets, |range, histogram| {
        // SAFETY: chunks are disjoint.
        let keys = unsafe { keys.slice_mut(range.start, range.end) };
        fill_keys(range, keys);
        for key in keys {
            histogram[(*key >> shift) as usize] += 1;
        }
    });
    let keys = &*sorted.index;
    let places = SharedMut::new(items);
    plan.scatter(
        |index| (keys[index] >> shift) as usize,
        |index, place| {
            let item = Item {
                key: keys[index],
                index: index as u32,
                position: P::carry(|| position(index)),
            };
            if P::SCATTERED {
                places.expect(place + AHEAD);
            }
            // SAFETY: the plan gives every point its own place.
            unsafe { places.write(place, item) };
        },
    );
    starts[cells] = len as u32;
    sort_buckets(&plan, items, &mut starts[..cells], shift, position, sorted);
}

/// Counting sort inside each bucket, which also turns `starts` into the cell table: counts become
/// first positions, and after the last item each stands at the end of its cell, which is the start
/// of the next.
fn sort_buckets<T: Coordinate, P: Carried<T>>(
    plan: &BucketPlan,
    items: &[Item<P>],
    starts: &mut [u32],
    shift: u32,
    position: impl Fn(usize) -> [T; 3] + Sync,
    sorted: Sorted<'_, T>,
) {
    let (x, y, z) = (
        SharedMut::new(sorted.x),
        SharedMut::new(sorted.y),
        SharedMut::new(sorted.z),
    );
    let indices = SharedMut::new(sorted.index);
    starts
        .par_chunks_mut(1 << shift)
        .with_min_len(4)
        .enumerate()
        .run(|(bucket, starts)| {
            let range = plan.bucket(bucket);
            let items = &items[range.clone()];
            let first = (bucket << shift) as u32;
            if P::SCATTERED {
                // Fetched while the cells are counted.
                for place in range.clone().step_by(LINE / size_of::<T>()) {
                    x.expect(place);
                    y.expect(place);
                    z.expect(place);
                    indices.expect(place);
                }
            }
            // Second pass: the cells of this bucket, whose items are in the first-level cache.
            count_cells(items, first, range.start as u32, starts);
            for item in items {
                let cursor = &mut starts[(item.key - first) as usize];
                let place = *cursor as usize;
                *cursor += 1;
                let position = item.position.deliver(|| position(item.index as usize));
                // SAFETY: buckets own disjoint ranges, and the counts give each item its own
                // place within the bucket's.
                unsafe {
                    x.write(place, position[0]);
                    y.write(place, position[1]);
                    z.write(place, position[2]);
                    indices.write(place, item.index);
                }
            }
            // Every cursor now stands at the end of its cell, which is the start of the next.
            starts.copy_within(..starts.len() - 1, 1);
            starts[0] = range.start as u32;
        });
}

/// Sets `starts` to the first place of each cell of a bucket that begins at `base`.
fn count_cells<P>(items: &[Item<P>], first: u32, base: u32, starts: &mut [u32]) {
    starts.fill(0);
    for item in items {
        starts[(item.key - first) as usize] += 1;
    }
    let mut next = base;
    for start in starts {
        let count = *start;
        *start = next;
        next += count;
    }
}

/// Keys of points, and those sorted; kept between sorts for the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct WideScratch<K> {
    /// Keys in the caller's order.
    pub(crate) keys: Vec<K>,
    /// Keys with indices, sorted.
    sorted: Vec<(K, u32)>,
}

impl<K> WideScratch<K> {
    /// Makes room for `len` points.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Error> {
        reserve(&mut self.keys, len, "cell keys")?;
        reserve(&mut self.sorted, len, "sorted cells")
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<K>() * self.keys.capacity() + size_of::<(K, u32)>() * self.sorted.capacity()
    }
}

/// Indices of the keys of a scratch with their keys, stably sorted by key.
///
/// Keys are 64 or 128 bits wide.
pub(crate) fn by_radix<K: WideKey>(scratch: &mut WideScratch<K>) -> &[(K, u32)] {
    let WideScratch { keys, sorted } = scratch;
    let keys = keys.as_slice();
    sorted.resize(keys.len(), (K::default(), 0));
    let splitters = splitters(keys);
    let bucket_of = |key: K| splitters.partition_point(|&splitter| splitter <= key);
    let mut plan = BucketPlan::count(keys.len(), splitters.len() + 1, |range, histogram| {
        for &key in &keys[range] {
            histogram[bucket_of(key)] += 1;
        }
    });
    let places = SharedMut::new(sorted);
    plan.scatter(
        |index| bucket_of(keys[index]),
        // SAFETY: the plan gives every point its own place.
        |index, place| unsafe { places.write(place, (keys[index], index as u32)) },
    );
    let mut rest = sorted.as_mut_slice();
    let mut slices = Vec::with_capacity(splitters.len() + 1);
    for bucket in 0..=splitters.len() {
        let (slice, behind) = rest.split_at_mut(plan.bucket(bucket).len());
        slices.push(slice);
        rest = behind;
    }
    let by_bytes = !K::COMPARED && has_room_for_buckets::<K>();
    slices.into_par_iter().run(|slice| {
        if by_bytes && slice.len() <= MAX_BY_BYTES {
            radsort::sort_by_key(slice, |&(key, _)| key);
        } else {
            // Indices tell equal keys apart, so the order is that of a stable sort.
            slice.sort_unstable();
        }
    });
    sorted
}

/// Longest bucket of wide keys that is sorted byte by byte, which takes a copy of it. Only a cell
/// with very many points makes a longer one, and equal keys are in order already.
const MAX_BY_BYTES: usize = 32 * FULL_BUCKET;

/// Returns true if every worker can copy a bucket: `radsort` would end the process where memory is
/// short.
fn has_room_for_buckets<K>() -> bool {
    let items = MAX_BY_BYTES * parallel::threads();
    Vec::<(K, u32)>::new().try_reserve_exact(items).is_ok()
}

/// Keys that cut `keys` into buckets of similar size, drawn from an evenly spaced sample. Equal
/// keys stay in one bucket, so a cell with very many points makes a large bucket, which one worker
/// sorts.
fn splitters<K: WideKey>(keys: &[K]) -> Vec<K> {
    let buckets = (keys.len() / (8 * FULL_BUCKET)).min(255);
    let mut sample: Vec<K> = keys
        .iter()
        .step_by((keys.len() / (16 * buckets.max(1))).max(1))
        .copied()
        .collect();
    sample.sort_unstable();
    let mut splitters: Vec<K> = (1..=buckets)
        .map(|cut| sample[cut * (sample.len() - 1) / (buckets + 1)])
        .collect();
    splitters.dedup();
    splitters
}

/// The position at which each chunk of the input puts its points of each bucket. A prefix sum over
/// buckets, and within a bucket over chunks, makes all positions disjoint and the scatter stable.
struct BucketPlan {
    /// Number of points.
    len: usize,
    /// Points of a chunk of the input.
    chunk: usize,
    /// Number of buckets.
    buckets: usize,
    /// `cursors[chunk * buckets + bucket]`: first place of that chunk's points of that bucket.
    cursors: Vec<u32>,
    /// First place of each bucket, and `len` behind the last.
    bounds: Vec<u32>,
}

impl BucketPlan {
    /// Counts with `fill(range, histogram)` for each chunk of `0..len`.
    fn count(len: usize, buckets: usize, fill: impl Fn(Range<usize>, &mut [u32]) + Sync) -> Self {
        let chunks = (4 * parallel::threads()).min(len.div_ceil(1 << 12)).max(1);
        let chunk = len.div_ceil(chunks).max(1);
        let mut cursors = vec![0u32; chunks * buckets];
        cursors
            .par_chunks_mut(buckets)
            .enumerate()
            .run(|(number, histogram)| {
                let begin = (number * chunk).min(len);
                fill(begin..(begin + chunk).min(len), histogram);
            });
        let mut bounds = vec![0u32; buckets + 1];
        let mut next = 0;
        for bucket in 0..buckets {
            bounds[bucket] = next;
            for number in 0..chunks {
                let cursor = &mut cursors[number * buckets + bucket];
                next += std::mem::replace(cursor, next);
            }
        }
        bounds[buckets] = next;
        Self {
            len,
            chunk,
            buckets,
            cursors,
            bounds,
        }
    }

    /// Places of a bucket.
    fn bucket(&self, bucket: usize) -> Range<usize> {
        self.bounds[bucket] as usize..self.bounds[bucket + 1] as usize
    }

    /// Calls `put(index, place)` once for every point of `0..len`, where `place` is the next free
    /// one of its bucket; points of one bucket keep their order.
    ///
    /// Cursors of a chunk are its own, so chunks run at once.
    fn scatter(
        &mut self,
        bucket_of: impl Fn(usize) -> usize + Sync,
        put: impl Fn(usize, usize) + Sync,
    ) {
        let (len, chunk) = (self.len, self.chunk);
        self.cursors
            .par_chunks_mut(self.buckets)
            .enumerate()
            .run(|(number, cursors)| {
                let begin = (number * chunk).min(len);
                for index in begin..(begin + chunk).min(len) {
                    let cursor = &mut cursors[bucket_of(index)];
                    put(index, *cursor as usize);
                    *cursor += 1;
                }
            });
    }
}
