//! Lists without the sources that are excluded, and of chosen targets only.
//!
//! Exclusions and choices name points, so distances do not matter to them: lists are found as
//! without filters, at the speed of the usual loops, and a sink in between ([`Named`]) drops
//! sources where the list lies. Half lists, order and images stay as they are.
//!
//! # Dropping
//!
//! The sources of a list are looked at sixteen at a time by loops that are compiled for the level
//! ([`Drop`]). Lists of exclusions are short, and most blocks hold no source between the first
//! and the last of them. Longer ones are searched by halves.

use super::{sink::ListSink, wanted::Wanted};
use crate::{
    candidates::{scan::STREAMS, scratch::Scratch, walk::Walk},
    filter::{PairFilter, exclusions::Excluded},
    simd::{LANES, Simd, Task, level::SimdLevel, with_level},
};
use nearfield_grid::memory::Shortage;
use std::{ops::Range, ptr, slice};

/// Lists of exclusions up to this length are compared by the vector.
const FEW: usize = 16;

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`, where filters are by name.
    pub(super) fn named_lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        wanted: Wanted,
        sink: &mut impl ListSink,
    ) {
        let mut named = Named {
            filter: self.filter,
            level,
            rooms: [ptr::null_mut(); STREAMS],
            sink,
        };
        let Some(chosen) = self.filter.chosen else {
            return self.plain_lists(level, slots, scratch, wanted, &mut named);
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
                self.plain_lists(level, range.clone(), scratch, wanted, &mut named);
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
            let task = Drop {
                excluded,
                // SAFETY: `count` entries of the room were written, and only this sink has it.
                list: unsafe { slice::from_raw_parts_mut(self.rooms[stream], count) },
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

/// Drops excluded sources from a list, in place.
struct Drop<'a> {
    /// The sources that the target excludes.
    excluded: Excluded<'a>,
    /// The list.
    list: &'a mut [u32],
    /// How many sources are left.
    left: &'a mut usize,
}

impl Task for Drop<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        *self.left = match self.excluded {
            Excluded::None => self.list.len(),
            Excluded::Molecule { of, own } => drop_molecule(self.list, of, own),
            Excluded::Listed(names) if names.len() <= FEW => drop_few(self.list, names),
            Excluded::Listed(names) => drop_many(self.list, names),
        };
    }
}

/// Sources of a list; those behind the last are the first once more.
type Block = [u32; LANES];

/// The block of a list from `at` on.
#[inline(always)]
fn block(list: &[u32], at: usize) -> Block {
    match list[at..].first_chunk() {
        Some(block) => *block,
        None => {
            let mut block = [list[at]; LANES];
            block[..list.len() - at].copy_from_slice(&list[at..]);
            block
        }
    }
}

/// Moves the sources of a block without a mark to the end of those that were kept.
#[inline(always)]
fn keep(list: &mut [u32], at: usize, block: &Block, marks: &Block, mut kept: usize) -> usize {
    let end = list.len().min(at + LANES);
    for lane in 0..end - at {
        // Not behind the block, which was copied.
        list[kept] = block[lane];
        kept += usize::from(marks[lane] == 0);
    }
    kept
}

/// Drops sources of the molecule `own`.
#[inline(always)]
fn drop_molecule(list: &mut [u32], of: &[u32], own: u32) -> usize {
    let (mut at, mut kept) = (0, 0);
    while at < list.len() {
        let block = block(list, at);
        let mut marks = [0; LANES];
        for lane in 0..LANES {
            let molecule = of.get(block[lane] as usize).copied();
            marks[lane] = u32::from(molecule == Some(own));
        }
        kept = keep(list, at, &block, &marks, kept);
        at += LANES;
    }
    kept
}

/// Drops the sources `names`, a few.
#[inline(always)]
fn drop_few(list: &mut [u32], names: &[u32]) -> usize {
    let [Some(&first), Some(&last)] = [names.first(), names.last()] else {
        return list.len();
    };
    let (mut at, mut kept) = (0, 0);
    while at < list.len() {
        let block = block(list, at);
        let mut near = 0;
        for lane in 0..LANES {
            near |= u32::from(block[lane].wrapping_sub(first) <= last - first);
        }
        let mut marks = [0; LANES];
        if near != 0 {
            for &name in names {
                for lane in 0..LANES {
                    marks[lane] |= u32::from(block[lane] == name);
                }
            }
        }
        kept = keep(list, at, &block, &marks, kept);
        at += LANES;
    }
    kept
}

/// Drops the sources `names`, ascending.
#[inline(always)]
fn drop_many(list: &mut [u32], names: &[u32]) -> usize {
    let mut kept = 0;
    for at in 0..list.len() {
        let source = list[at];
        list[kept] = source;
        kept += usize::from(names.binary_search(&source).is_err());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::exclusions::Exclusions;

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
                    let task = Drop {
                        excluded,
                        list: &mut found,
                        left: &mut left,
                    };
                    with_level(level, task);
                    assert_eq!(found[..left], expected, "{len}, {}", level.name());
                }
            }
        }
    }
}
