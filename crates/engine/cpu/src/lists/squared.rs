//! Lists whose filters compare distances, in single precision.
//!
//! The scan of the candidates keeps the squared distance of every neighbour beside its tag, and
//! each list is narrowed where it was written, a vector at a time: by the cut-offs of the types, by
//! exclusions, and to the k nearest ([`super::near_few`]). Four lists are written at once, as by
//! other searches. That takes a fraction of the time of visiting all pairs with their displacements
//! ([`super::filtered`]), which serves what this does not: half lists, radii of sources, targets
//! with more candidates than are held at once, and double precision.
//!
//! The loops are compiled for every level and for candidates with and without image vectors, once
//! for all sinks.
//!
//! # Narrowing in place
//!
//! A list is read a vector at a time, and the lanes that are kept are stored as a whole vector
//! behind those kept before. No more are kept than were read, so a store never reaches an entry
//! that is still to be read. Lanes behind the last entry are filled with the first source, so that
//! types and molecules are looked up of points that there are, and are masked before anything is
//! stored.
//!
//! # Types
//!
//! A type is looked up by the caller's index, four bytes a point, and its cut-off in the row of the
//! target's type. Both are gathers from small arrays. They cost less than carrying cut-offs with
//! the candidates would: those depend on the target's type too, so they would be written anew for
//! each type among the targets of a group, for all candidates and not for neighbours only.
//!
//! # Memory that is far away
//!
//! What a target has is prefetched when its group begins: the place of its list, its type, where
//! its exclusions are. The exclusions themselves are prefetched before its candidates are tested.
//! In the order of cells all of it is in the cache anyway; in random order a target without
//! prefetching would wait for memory three times.
//!
//! **Invariant:** lists have the sources, and the order, of those that are collected from visits.

use super::{near_few::nearest, sink::ListSink};
use crate::{
    candidates::{
        aligned::Aligned,
        groups::Group,
        mode::{Mode, SHIFTED},
        scan::{Block, Keep, STREAMS, scan},
        scratch::Scratch,
        walk::Walk,
    },
    filter::{excluded::kept_lanes, visit::Target},
    simd::{LANES, Simd, Task, level::SimdLevel, vector::Compress, with_level},
};
use nearfield_grid::memory::Shortage;
use std::{ops::Range, slice};

impl Walk<'_> {
    /// Returns true if [`squared_lists`](Self::squared_lists) finds the lists of a filtered search.
    pub(super) fn is_squared(&self, half: bool) -> bool {
        let single = self.double().is_none() && self.radii.sources.is_none();
        // Which targets there are needs no look at lists.
        let narrows = self.filter.narrows();
        narrows && single && !half && !self.may_be_long()
    }

    /// Hands the list of every sorted target in `slots` to `sink`; `sort` for ascending ones.
    pub(super) fn squared_lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        sort: bool,
        sink: &mut impl ListSink,
    ) {
        let mut lists = InOrder { sink, sort };
        let index = self.targets.points().index();
        let mut next = slots.start;
        while next < slots.end && scratch.failed.is_none() {
            let range = match self.filter.chosen {
                None => next..slots.end,
                Some(chosen) => chosen.next_range(next..slots.end, index),
            };
            for &target in &index[next..range.start] {
                if !lists.put_empty(target as usize) {
                    return;
                }
            }
            next = range.end;
            if range.is_empty() {
                continue;
            }
            let mut full = false;
            let task = SquaredTask {
                walk: self,
                slots: range,
                scratch,
                to: &mut lists,
                full: &mut full,
            };
            with_level(level, task);
            if full {
                return;
            }
        }
    }
}

/// A sink, as an object, so that loops are compiled once for all sinks.
trait TakeLists {
    /// As [`ListSink::expect`].
    fn expect(&self, target: usize);

    /// As [`ListSink::room`].
    fn room(&mut self, stream: usize, max: usize) -> *mut u32;

    /// Takes the list of `target`, the first entries of the last room of the stream.
    ///
    /// # Safety
    /// As for [`ListSink::put`].
    unsafe fn put(&mut self, stream: usize, target: usize, list: &mut [u32]);
}

/// A sink for lists in an order.
struct InOrder<'a, L> {
    /// The sink.
    sink: &'a mut L,
    /// Lists ascend.
    sort: bool,
}

impl<L: ListSink> InOrder<'_, L> {
    /// Puts an empty list; false if the sink takes no more.
    fn put_empty(&mut self, target: usize) -> bool {
        let takes = !self.room(0, 0).is_null();
        if takes {
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { self.put(0, target, &mut []) };
        }
        takes
    }
}

impl<L: ListSink> TakeLists for InOrder<'_, L> {
    fn expect(&self, target: usize) {
        self.sink.expect(target);
    }

    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        self.sink.room(stream, max)
    }

    unsafe fn put(&mut self, stream: usize, target: usize, list: &mut [u32]) {
        if self.sink.counts_only() {
            return self.sink.count(target, list.len() as u32);
        }
        if self.sort {
            list.sort_unstable();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.sink.put(stream, target, list.len()) };
    }
}

/// Lists of a range of targets.
struct SquaredTask<'a> {
    /// The search.
    walk: &'a Walk<'a>,
    /// The targets.
    slots: Range<usize>,
    /// The worker's buffers.
    scratch: &'a mut Scratch,
    /// Where lists go.
    to: &'a mut dyn TakeLists,
    /// Set where no more lists are taken.
    full: &'a mut bool,
}

impl Task for SquaredTask<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, scratch) = (self.walk, self.scratch);
        let mut room = std::mem::take(&mut scratch.passed);
        let mut groups = walk.groups(self.slots);
        while let Some(group) = groups.next(S::LEVEL, scratch) {
            let search = GroupLists {
                walk,
                group: &group,
                scratch: &mut *scratch,
                room: &mut room,
                to: &mut *self.to,
            };
            // SAFETY: the caller guarantees the level, and candidates carry image vectors or
            // nothing.
            let found = unsafe {
                match group.mode {
                    SHIFTED => search.run::<S, SHIFTED>(),
                    _ => search.run::<S, 0>(),
                }
            };
            match found {
                Ok(true) => {}
                Ok(false) => {
                    *self.full = true;
                    break;
                }
                Err(shortage) => {
                    scratch.failed = Some(shortage);
                    break;
                }
            }
        }
        scratch.passed = room;
    }
}

/// The lists of one group.
struct GroupLists<'a, 'w> {
    /// The search.
    walk: &'a Walk<'w>,
    /// The group, whose candidates are all held.
    group: &'a Group,
    /// The worker's buffers, with the candidates.
    scratch: &'a mut Scratch,
    /// Squares of the neighbours of a few targets.
    room: &'a mut Aligned<u32>,
    /// Where lists go.
    to: &'a mut dyn TakeLists,
}

impl GroupLists<'_, '_> {
    /// Finds the lists, [`STREAMS`] targets at a time; false if no more are taken.
    ///
    /// # Safety
    /// The processor has the level `S`, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn run<S: Simd, const MODE: Mode>(self) -> Result<bool, Shortage> {
        let (stride, targets) = (
            self.scratch.candidates.len() + LANES,
            self.group.slots.len(),
        );
        self.room.grow(STREAMS.min(targets) * stride)?;
        let mut search = self;
        for &target in &search.walk.targets.points().index()[search.group.slots.clone()] {
            search.walk.filter.expect(target as usize);
            search.to.expect(target as usize);
        }
        let (mut first, mut taken) = (0, true);
        while taken && first < targets {
            // SAFETY: guaranteed by the caller; there is room for as many targets.
            unsafe {
                if first + STREAMS <= targets {
                    taken = search.some::<S, MODE, STREAMS>(first, stride)?;
                    first += STREAMS;
                } else {
                    taken = search.some::<S, MODE, 1>(first, stride)?;
                    first += 1;
                }
            }
        }
        Ok(taken)
    }

    /// The lists of `TARGETS` targets from number `first` on.
    ///
    /// # Safety
    /// As for [`run`](Self::run); the group has as many, and there is room for `stride` squares of
    /// each.
    #[inline(always)]
    unsafe fn some<S: Simd, const MODE: Mode, const TARGETS: usize>(
        &mut self,
        first: usize,
        stride: usize,
    ) -> Result<bool, Shortage> {
        let (walk, squares) = (self.walk, self.room.as_mut_ptr().cast::<f32>());
        let mut args = [walk.select_args::<MODE>(self.group, first); TARGETS];
        let tags = std::ptr::null_mut();
        let mut found = [TagsAndSquares { tags, squares }; TARGETS];
        for t in 0..TARGETS {
            args[t] = walk.select_args::<MODE>(self.group, first + t);
            found[t].tags = self.to.room(t, stride - LANES);
            found[t].squares = squares.wrapping_add(t * stride);
            if found[t].tags.is_null() {
                return Ok(false);
            }
        }
        let first_slot = self.group.slots.start + first;
        let indices = &walk.targets.points().index()[first_slot..first_slot + TARGETS];
        for &index in indices {
            // It arrives while candidates are tested.
            walk.filter.expect_excluded(index as usize);
        }
        // SAFETY: the caller guarantees the level, the mode and the room.
        let ends =
            unsafe { scan::<S::Single, _, MODE, TARGETS>(&args, &self.scratch.candidates, found) };
        for t in 0..TARGETS {
            let index = indices[t] as usize;
            let target = Target::new(&walk.filter, first_slot + t, index);
            let TagsAndSquares { tags, squares } = found[t];
            let mut len = 0;
            if target.is_chosen() {
                // SAFETY: the scan wrote as many tags and squares.
                len = unsafe { ends[t].tags.offset_from(tags) } as usize;
                if target.narrows() {
                    let list = List { tags, squares, len };
                    // SAFETY: guaranteed by the caller; a vector more has room behind the list.
                    len = unsafe { narrow::<S::Single>(&target, list) };
                }
                if let Some(k) = walk.filter.nearest {
                    // SAFETY: as many tags and squares are left.
                    let (tags, squares) = unsafe {
                        (
                            slice::from_raw_parts_mut(tags, len),
                            slice::from_raw_parts(squares, len),
                        )
                    };
                    let room = &mut self.scratch.filter.few;
                    len = nearest(S::LEVEL, k.get() as usize, tags, squares, room)?;
                }
            }
            // SAFETY: as many tags are left.
            let list = unsafe { slice::from_raw_parts_mut(tags, len) };
            // SAFETY: the list is the first entries of the room; every target lies in one task, and
            // is visited once there.
            unsafe { self.to.put(t, index, list) };
        }
        Ok(true)
    }
}

/// Keeps tags and squared distances, each in an array of its own.
#[derive(Clone, Copy)]
struct TagsAndSquares {
    /// Where the next tag goes.
    tags: *mut u32,
    /// Where the next square goes.
    squares: *mut f32,
}

impl<V: Compress> Keep<V> for TagsAndSquares {
    const GEOMETRY: bool = true;

    #[inline(always)]
    unsafe fn keep(&mut self, block: &Block<V>, _: [V; 3], d2: V, order: V::Order, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            V::compress_u32(block.tags, order, self.tags);
            d2.compress(order, self.squares);
            self.tags = self.tags.add(count);
            self.squares = self.squares.add(count);
        }
    }
}

/// A list that was found, with its squares.
struct List {
    /// Its tags, and room for a vector behind them.
    tags: *mut u32,
    /// Its squares, and room for a vector.
    squares: *mut f32,
    /// Its length.
    len: usize,
}

/// Drops sources beyond the cut-off and excluded ones; returns how many are left.
///
/// # Safety
/// The processor has the vector's level, and the list is as its fields say, of sources that there
/// are.
#[inline(always)]
unsafe fn narrow<V: Compress>(target: &Target<'_>, list: List) -> usize {
    let List { tags, squares, len } = list;
    if len == 0 {
        return 0;
    }
    let (mut at, mut left) = (0, 0);
    // SAFETY: the caller guarantees level and room. A vector is stored no farther than the one that
    // was loaded, because no more are left than were looked at.
    unsafe {
        // Lanes behind the last name a source too.
        for lane in 0..V::LANES {
            *tags.add(len + lane) = *tags;
        }
        while at < len {
            let names = V::load_u32(tags.add(at));
            let d2 = V::load(squares.add(at));
            let mut mask = !(u32::MAX.checked_shl((len - at) as u32).unwrap_or(0));
            if let Some(r2) = target.cutoffs_of::<V>(tags.add(at)) {
                mask &= d2.le(r2);
            }
            mask &= kept_lanes::<V>(&target.excluded(), names, tags.add(at));
            let order = V::order(mask & lanes::<V>());
            V::compress_u32(names, order, tags.add(left));
            d2.compress(order, squares.add(left));
            left += (mask & lanes::<V>()).count_ones() as usize;
            at += V::LANES;
        }
    }
    left
}

/// A bit for every lane of a vector.
#[inline(always)]
fn lanes<V: Compress>() -> u32 {
    u32::MAX >> (32 - V::LANES as u32)
}
