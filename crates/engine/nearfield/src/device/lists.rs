//! Neighbour lists that stay on the device.
//!
//! Storage is kept between searches, with room for more neighbours than there were. A search that
//! finds too little room writes no entry out of place, and the engine makes room when it is asked
//! for the outcome.

use crate::{
    Error, ErrorKind, ListKind, PointSetId,
    backend::limit::{GEOMETRY, LISTS},
    balance::Strategy,
};
use nearfield_gpu::{
    DeviceLists, DeviceNearest, DeviceView, Error as GpuError, ErrorKind as GpuErrorKind,
    GpuBackend, NamedPoints, PairOfPoints, SlotsOfLists,
};

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

/// Lists of points that were named.
#[derive(Debug, Default)]
pub(super) struct NamedLists {
    pub(super) points: NamedPoints,
    pub(super) storage: DeviceLists,
    pub(super) nearest: DeviceNearest,
    /// The set that searches and the one that is searched, of the last search.
    pub(super) sets: Option<[PointSetId; 2]>,
    /// Number of points of the set that searches.
    pub(super) of_points: usize,
    /// How many points were named.
    pub(super) targets: usize,
    /// Of the sets as they are.
    pub(super) current: bool,
    /// Not looked at since they were written.
    pub(super) provisional: bool,
}

impl NamedLists {
    /// Lists of a set, or of all, are not those of its points any more.
    pub(super) fn outdate(&mut self, set: Option<PointSetId>) {
        let concerned = |sets: [PointSetId; 2]| set.is_none_or(|set| sets.contains(&set));
        if self.sets.is_some_and(concerned) {
            self.current = false;
        }
    }

    /// Starts to bring to the host whether the lists fitted and all points were there.
    pub(super) fn ask(&mut self, backend: &GpuBackend) -> Result<(), GpuError> {
        if self.provisional {
            self.storage.ask(backend)?;
        }
        backend.ask_about_indices(&mut self.points)
    }

    /// Looks whether the lists fitted into their storage, which is freed if not.
    ///
    /// # Errors
    /// As [`DeviceEngine::finish`](super::DeviceEngine::finish).
    pub(super) fn settle(&mut self, backend: &GpuBackend) -> Result<bool, GpuError> {
        if !std::mem::take(&mut self.provisional) {
            return Ok(true);
        }
        let settled = settle_lists(backend, &mut self.storage);
        self.current &= matches!(settled, Ok(true));
        settled
    }

    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.points.bytes() + self.storage.bytes() + self.nearest.bytes()
    }
}

/// Bytes of the start and the length of a list.
const BYTES_PER_LIST: u64 = (size_of::<u64>() + size_of::<u32>()) as u64;

/// Finds lists in the storage there is, or if there is none waits for how much is needed.
///
/// # Errors
/// [`ErrorKind::MemoryLimit`] for lists that would take more than `limit` bytes, and those of
/// [`GpuBackend::search`].
pub(super) fn search(
    backend: &GpuBackend,
    of: PairOfPoints<'_>,
    (kind, strategy): (ListKind, Strategy),
    storage: &mut DeviceLists,
    limit: Option<u64>,
) -> Result<(), Error> {
    let targets = of
        .share
        .map_or(0, |share| share.len())
        .max(of.targets.len());
    let places = BYTES_PER_LIST * targets as u64;
    storage.limit(limit.map(|limit| limit.saturating_sub(places)));
    let searched = if storage.has_room() {
        backend.search_again(of, kind, strategy, storage)
    } else {
        backend.search(of, kind, strategy, storage)
    };
    let refused = |needed| {
        let what = if storage.has_geometry() {
            GEOMETRY
        } else {
            LISTS
        };
        let limit = limit.unwrap_or(u64::MAX);
        Error::from(ErrorKind::MemoryLimit {
            what,
            needed: places + needed,
            limit,
        })
    };
    match (searched, limit) {
        (Err(error), _) => Err(match error.kind() {
            GpuErrorKind::ListsLimit { needed, .. } => refused(*needed),
            _ => error.into(),
        }),
        (Ok(()), Some(limit)) if places > limit => Err(refused(0)),
        (Ok(()), _) => Ok(()),
    }
}

/// Waits for lists and looks whether they fitted into their storage, which is freed if not.
///
/// # Errors
/// As [`DeviceEngine::finish`](super::DeviceEngine::finish).
pub(super) fn settle_lists(
    backend: &GpuBackend,
    storage: &mut DeviceLists,
) -> Result<bool, GpuError> {
    match storage.finish(backend) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), GpuErrorKind::ListsOverflow { .. }) => {
            storage.outgrown();
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
