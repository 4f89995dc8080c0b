//! Lists of the neighbours that filters keep.
//!
//! This is the way for what [`super::squared`] does not do: half lists, radii of sources, double
//! precision, and boxes so small that candidates come in batches. A pair costs several times what
//! it costs there, because its displacement is kept too.
//!
//! The pairs of a target come image by image and in the order of the candidates, as they do in
//! searches without filters. They are collected and handed to the sink when the target ends: a
//! visit does not know before how many they are.
//!
//! Of half lists a source is kept if its index is above the target's, or is the same in an image
//! that comes after the target's own.

use super::{list_spec::ListSpec, neighbor_lists::ListOrder, sink::ListSink};
use crate::{
    candidates::{scratch::Scratch, walk::Walk},
    filter::visit::TakePairs,
    sets::pairs::PairsOfImage,
    simd::level::SimdLevel,
};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::ListKind;
use std::ops::{ControlFlow, Range};

impl Walk<'_> {
    /// Hands the list of every sorted target in `slots` to `sink`, as
    /// [`lists`](Self::lists) does where there are no filters.
    pub(super) fn filtered_lists(
        &self,
        level: SimdLevel,
        slots: Range<usize>,
        scratch: &mut Scratch,
        spec: ListSpec,
        sink: &mut impl ListSink,
    ) {
        let mut list = std::mem::take(&mut scratch.filter.list);
        let mut collecting = Collecting {
            index: self.targets.points().index(),
            half: spec.kind == ListKind::Half && self.same_set,
            sort: spec.order == ListOrder::Ascending,
            list: &mut list,
            target: None,
            sink,
        };
        self.visit_kept(level, slots, scratch, &mut collecting);
        if scratch.failed.is_none() {
            // That the sink takes no more matters to the next target only.
            let _ = collecting.finish();
        }
        scratch.filter.list = list;
    }
}

/// The list of one target after the other.
struct Collecting<'a, L> {
    /// The caller's index of every sorted target.
    index: &'a [u32],
    /// Half lists of one set.
    half: bool,
    /// Lists ascend.
    sort: bool,
    /// The list so far.
    list: &'a mut Vec<u32>,
    /// The target.
    target: Option<u32>,
    /// Where lists go.
    sink: &'a mut L,
}

impl<L: ListSink> TakePairs for Collecting<'_, L> {
    fn reads_geometry(&self) -> bool {
        false
    }

    fn target(&mut self, slot: usize, _: bool) -> ControlFlow<()> {
        self.finish()?;
        let target = self.index[slot];
        self.sink.expect(target as usize);
        self.target = Some(target);
        ControlFlow::Continue(())
    }

    fn pairs(&mut self, all: PairsOfImage<'_>, kept: &[u32]) -> Result<(), Shortage> {
        let (list, sources) = (&mut *self.list, all.sources);
        if list.try_reserve(kept.len()).is_err() {
            let len = list.len() + kept.len();
            return Err(Shortage::of::<u32>(len, "one neighbour list"));
        }
        let kept = kept.iter().map(|&at| sources[at as usize]);
        match self.target {
            Some(target) if self.half => {
                list.extend(kept.filter(|&source| (source, all.image) > (target, [0; 3])));
            }
            _ => list.extend(kept),
        }
        Ok(())
    }
}

impl<L: ListSink> Collecting<'_, L> {
    /// Hands the list of the target to the sink. Breaks if it takes no more.
    fn finish(&mut self) -> ControlFlow<()> {
        let Some(target) = self.target.take() else {
            return ControlFlow::Continue(());
        };
        let (list, target) = (&mut *self.list, target as usize);
        if self.sink.counts_only() {
            self.sink.count(target, list.len() as u32);
            list.clear();
            return ControlFlow::Continue(());
        }
        if self.sort {
            list.sort_unstable();
        }
        let room = self.sink.room(0, list.len());
        if room.is_null() {
            return ControlFlow::Break(());
        }
        // SAFETY: the sink made room for the list, which lies elsewhere; every target lies in one
        // task, and is visited once there.
        unsafe {
            room.copy_from_nonoverlapping(list.as_ptr(), list.len());
            self.sink.put(0, target, list.len());
        }
        list.clear();
        ControlFlow::Continue(())
    }
}
