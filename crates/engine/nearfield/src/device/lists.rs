//! Neighbour lists that stay on the device.
//!
//! Storage is kept between searches, with room for more neighbours than there were. A search that
//! finds too little room writes no entry out of place, and the engine makes room when it is asked
//! for the outcome.

use nearfield_gpu::{DeviceLists, DeviceView};

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
