//! Lists without the sources that are excluded, and of chosen targets only, in either precision and
//! around any box.
//!
//! Exclusions and choices name points, so distances do not matter to them: lists are found as
//! without filters, at the speed of the usual loops, and a sink in between ([`Named`]) drops
//! sources where the list lies. Half lists, order and images stay as they are.
//!
//! # Dropping
//!
//! The sources of a list are looked at a vector at a time by a loop that is compiled for the level
//! ([`Drop`]), and those that are left are compressed to the beginning of the list. Sinks make room
//! for a vector behind every list, so whole vectors are stored.
//!
//! Full lists in single precision with exclusions take the way of [`super::squared`] instead, which
//! prefetches what a target excludes. Here it is only known when the list is put.

use super::{list_spec::ListSpec, sink::ListSink};
use crate::{
    candidates::{scan::STREAMS, scratch::Scratch, walk::Walk},
    filter::{PairFilter, excluded::kept_lanes, exclusions::Excluded},
    simd::{Simd, Task, level::SimdLevel, vector::Compress, with_level},
};
use nearfield_grid::memory::Shortage;
use std::{ops::Range, ptr};

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`, where filters are by name.
    pub(super) fn named_lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        spec: ListSpec,
        sink: &mut impl ListSink,
    ) {
        let mut named = Named {
            filter: self.filter,
            level,
            rooms: [ptr::null_mut(); STREAMS],
            sink,
        };
        let Some(chosen) = self.filter.chosen else {
            return self.plain_lists(level, slots, scratch, spec, &mut named);
        };
        let index = self.targets.points().index();
        let mut next = slots.start;
        while next < slots.end && scratch.failed.is_none() {
            let range = chosen.next_range(next..slots.end, index);
            for &target in &index[next..range.start] {
                if !named.put_empty(target as usize) {
                    return;
                }
            }
            if !range.is_empty() {
                self.plain_lists(level, range.clone(), scratch, spec, &mut named);
            }
            next = range.end;
        }
    }
}

/// A sink that drops sources from lists before another takes them.
struct Named<'a, L> {
    /// The filters.
    filter: PairFilter<'a>,
    /// The SIMD level.
    level: SimdLevel,
    /// The last room of every stream.
    rooms: [*mut u32; STREAMS],
    /// The other sink.
    sink: &'a mut L,
}

impl<L: ListSink> Named<'_, L> {
    fn is_chosen(&self, target: usize) -> bool {
        self.filter.chosen.is_none_or(|chosen| chosen.has(target))
    }

    /// Hands on the list of a target that is not searched for; false if the sink takes no more.
    ///
    /// Every target is put, so that its list of an earlier search is gone.
    fn put_empty(&mut self, target: usize) -> bool {
        if self.sink.counts_only() {
            self.sink.count(target, 0);
            return true;
        }
        let takes = !self.sink.room(0, 0).is_null();
        if takes {
            // SAFETY: every target lies in one task, and is visited once there.
            unsafe { self.sink.put(0, target, 0) };
        }
        takes
    }
}

impl<L: ListSink> ListSink for Named<'_, L> {
    fn expect(&self, target: usize) {
        self.sink.expect(target);
    }

    fn room(&mut self, stream: usize, max: usize) -> *mut u32 {
        let room = self.sink.room(stream, max);
        self.rooms[stream] = room;
        room
    }

    unsafe fn put(&mut self, stream: usize, target: usize, count: usize) {
        let excluded = match self.filter.excluded {
            Some(excluded) => excluded.of(target),
            None => Excluded::None,
        };
        let left = if !self.is_chosen(target) {
            0
        } else if matches!(excluded, Excluded::None) {
            count
        } else {
            let mut left = 0;
            let (tags, len) = (self.rooms[stream], count);
            let task = Drop {
                excluded,
                list: RawList { tags, len },
                left: &mut left,
            };
            with_level(self.level, task);
            left
        };
        if self.sink.counts_only() {
            self.sink.count(target, left as u32);
        } else {
            // SAFETY: guaranteed by the caller; no more are left than there were.
            unsafe { self.sink.put(stream, target, left) };
        }
    }

    /// Excluded sources are told by the lists, so these are found where lengths are wanted too.
    fn counts_only(&self) -> bool {
        self.filter.excluded.is_none() && self.sink.counts_only()
    }

    fn count(&mut self, target: usize, count: u32) {
        let count = if self.is_chosen(target) { count } else { 0 };
        self.sink.count(target, count);
    }

    fn refused(&mut self) -> Option<Shortage> {
        self.sink.refused()
    }
}

/// A list in its room, which holds a vector more.
#[derive(Clone, Copy)]
struct RawList {
    /// The first source.
    tags: *mut u32,
    /// Number of sources.
    len: usize,
}

/// Drops excluded sources from a list, in place.
struct Drop<'a> {
    /// The sources that the target excludes.
    excluded: Excluded<'a>,
    /// The list.
    list: RawList,
    /// How many sources are left.
    left: &'a mut usize,
}

impl Task for Drop<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller guarantees the level; lists name points of the set, and there is room
        // for a vector behind them.
        *self.left = unsafe { drop_excluded::<S::Single>(&self.excluded, self.list) };
    }
}

/// Drops excluded sources from a list, whose entries are all written; returns how many are left.
///
/// # Safety
/// The processor has the vector's level, there is room for a vector behind the list, and all of its
/// sources are points of the set.
#[inline(always)]
unsafe fn drop_excluded<V: Compress>(excluded: &Excluded<'_>, list: RawList) -> usize {
    let RawList { tags, len } = list;
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
            let inside = !(u32::MAX.checked_shl((len - at) as u32).unwrap_or(0));
            let every = u32::MAX >> (32 - V::LANES as u32);
            let mask = kept_lanes::<V>(excluded, names, tags.add(at)) & inside & every;
            V::compress_u32(names, V::order(mask), tags.add(left));
            left += mask.count_ones() as usize;
            at += V::LANES;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{filter::exclusions::Exclusions, simd::LANES};

    #[test]
    fn excluded_sources_are_dropped_and_the_others_keep_their_order() {
        for len in [0, 1, 15, 16, 17, 33, 100] {
            let list: Vec<u32> = (0..len).map(|k| k * 37 % 101).collect();
            let of_points: Vec<u32> = (0..101).map(|point| point % 4).collect();
            let molecules = Exclusions::molecules(&of_points).unwrap();
            let few = [3, 37, 50, 74];
            let many: Vec<u32> = (0..101).filter(|name| name % 3 == 0).collect();
            for excluded in [
                Excluded::None,
                Excluded::Listed(&few),
                Excluded::Listed(&many),
                molecules.of(6),
            ] {
                let expected = list.iter().copied().filter(|source| !excluded.has(*source));
                let expected: Vec<u32> = expected.collect();
                for &level in SimdLevel::available() {
                    let (mut found, mut left) = (list.clone(), 0);
                    found.resize(list.len() + LANES, u32::MAX);
                    let (tags, len) = (found.as_mut_ptr(), list.len());
                    let task = Drop {
                        excluded,
                        list: RawList { tags, len },
                        left: &mut left,
                    };
                    with_level(level, task);
                    assert_eq!(found[..left], expected, "{len}, {}", level.name());
                }
            }
        }
    }
}
