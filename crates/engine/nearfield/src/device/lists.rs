//! Neighbour lists that stay on the device.
//!
//! Storage is kept between searches, with room for more neighbours than there were. A search that
//! finds too little room writes no entry out of place, and the engine makes room when it is asked
//! for the outcome.

use crate::{Error, ListKind, balance::Strategy};
use nearfield_gpu::{DeviceLists, DeviceView, GpuBackend, PairOfPoints, SlotsOfLists};

/// Lists of one pair of sets: the neighbours of target i are `count[i]` entries from `start[i]` on,
/// as indices in the caller's order. The arrays are those of the engine, on its stream; they are
/// provisional until [`DeviceEngine::finish`](super::DeviceEngine::finish).
///
/// Length of `start` and `count`: one per target. Entries of a target follow each other, in the
/// [order](super::DeviceEngineBuilder::list_order) that the engine was built with; no order of the
/// lists among each other is guaranteed. Targets and entries are numbered from 0.
#[derive(Debug)]
pub struct DeviceListsView<'a> {
    /// Where the list of every target begins.
    pub start: DeviceView<'a, u64>,
    /// Its length.
    pub count: DeviceView<'a, u32>,
    /// Entries of all lists, and room behind them.
    pub entries: DeviceView<'a, u32>,
}

impl<'a> DeviceListsView<'a> {
    /// Views of the arrays; none before the first search.
    pub(super) fn of(lists: &'a DeviceLists) -> Option<Self> {
        let (start, count, entries) = lists.views()?;
        Some(Self {
            start,
            count,
            entries,
        })
    }
}

/// What traversals keep beside the lists of a pair of sets.
#[derive(Debug, Default)]
pub(super) struct OverLists {
    /// The entries as traversals read them.
    pub(super) slots: SlotsOfLists,
    /// Full lists, where those of the engine are half ones of one set.
    pub(super) whole: DeviceLists,
    /// These have not been looked at since they were written.
    provisional: bool,
}

impl OverLists {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.slots.bytes() + self.whole.bytes()
    }

    /// The full lists, if they have not been looked at since they were written.
    pub(super) fn provisional(&mut self) -> Option<&mut DeviceLists> {
        self.provisional.then_some(&mut self.whole)
    }

    /// The full lists, which are written anew.
    pub(super) fn write_whole(&mut self) -> &mut DeviceLists {
        self.provisional = true;
        &mut self.whole
    }

    /// They are looked at.
    pub(super) fn settle(&mut self) {
        self.provisional = false;
    }
}

/// Finds lists in the storage there is, or if there is none waits for how much is needed.
pub(super) fn search(
    backend: &GpuBackend,
    of: PairOfPoints<'_>,
    kind: ListKind,
    strategy: Strategy,
    storage: &mut DeviceLists,
) -> Result<(), Error> {
    let searched = if storage.has_room() {
        backend.search_again(of, kind, strategy, storage)
    } else {
        backend.search(of, kind, strategy, storage)
    };
    searched.map_err(Error::from)
}
