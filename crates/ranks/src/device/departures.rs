//! Where the points of a rank are needed, as lists of places on the device.
//!
//! The host knows which lists the points of a class are in, and the device splits the special
//! points of a survey by that: so the host learns how long lists are, and no more. All lists are in
//! one array: the border, the points that leave, and then those that go to each rank.

use super::{
    classes::ClassTable,
    kernels::{DeviceClasses, Masks},
    places::{Parcels, Places},
};
use crate::{
    error::Refusal,
    routes::{List, Parcel},
    seen::Seen,
};
use nearfield::device::{DeviceBuffer, DeviceEngine};
use nearfield_grid::memory::filled;
use std::{collections::BTreeSet, sync::Arc};

/// The list of the points that this rank owns and others see.
const BORDER: usize = 0;
/// The list of all points that others own.
const LEFT: usize = 1;
/// The first list of points that go to a rank.
const OF_RANKS: usize = 2;

/// A table of classes on both sides, and the lists that these are in.
pub(super) struct Table {
    pub(super) host: ClassTable,
    pub(super) device: DeviceClasses,
    pub(super) lists: ListTable,
}

/// The lists that points of each class are in.
pub(super) struct ListTable {
    /// Those behind the first two, ascending: owners first, then those with the point in their
    /// halo.
    of_ranks: Vec<List>,
    pub(super) masks: Masks,
}

impl ListTable {
    /// The lists of the classes that are known to `rank`.
    ///
    /// # Errors
    /// When memory is short.
    pub(super) fn new(engine: &DeviceEngine, seen: &Seen, rank: usize) -> Result<Self, Refusal> {
        let classes = seen.classes();
        let to_ranks = |list: &List| matches!(list, List::Leaving(_) | List::Seen(_));
        let lists = classes.iter().flat_map(|class| List::of(class, rank));
        let of_ranks: BTreeSet<List> = lists.filter(to_ranks).collect();
        let of_ranks: Vec<List> = of_ranks.into_iter().collect();
        let words = (OF_RANKS + of_ranks.len()).div_ceil(32);
        let mut masks = filled(words * classes.len(), 0u32, "lists of classes")?;
        for (class, mask) in classes.iter().zip(masks.chunks_exact_mut(words)) {
            let mut put = |list: usize| mask[list / 32] |= 1 << (list % 32);
            for list in List::of(class, rank) {
                match list {
                    List::Border => put(BORDER),
                    // Not wanted on the device.
                    List::Near => {}
                    List::Leaving(_) | List::Seen(_) => {
                        put(OF_RANKS + of_ranks.partition_point(|other| *other < list));
                    }
                }
                if let List::Leaving(_) = list {
                    put(LEFT);
                }
            }
        }
        Ok(Self {
            masks: Masks {
                masks: engine.queue().array("lists of classes", &masks)?,
                classes: classes.len(),
                words,
                lists: OF_RANKS + of_ranks.len(),
            },
            of_ranks,
        })
    }

    /// Whether all classes that are known have their lists.
    pub(super) fn covers(&self, seen: &Seen) -> bool {
        self.masks.classes == seen.classes().len()
    }
}

/// Where the points of a rank are needed, apart from those that it alone needs.
pub(super) struct Departures {
    /// Points that other ranks own, rank by rank.
    pub(super) leaving: Parcels,
    /// The same, ascending.
    pub(super) left: Places,
    /// Points that are in halos, rank by rank.
    pub(super) seen: Parcels,
    /// Points that this rank owns and others see, ascending.
    pub(super) border: Places,
}

impl Departures {
    /// No points.
    pub(super) fn none(engine: &DeviceEngine) -> Result<Self, Refusal> {
        let none = Places::none(engine)?;
        Ok(Self {
            leaving: Parcels::new(Vec::new(), none.clone()),
            left: none.clone(),
            seen: Parcels::new(Vec::new(), none.clone()),
            border: none,
        })
    }

    /// The lists of an array, which begin at these places; behind the last is the end of all.
    pub(super) fn new(table: &ListTable, indices: &Arc<DeviceBuffer<u32>>, begins: &[u32]) -> Self {
        let begin = |list: usize| begins[list] as usize;
        let places = |lists: std::ops::Range<usize>| Places {
            indices: indices.clone(),
            first: begin(lists.start),
            count: begin(lists.end) - begin(lists.start),
        };
        let owners = |list: &List| matches!(list, List::Leaving(_));
        let halos = OF_RANKS + table.of_ranks.partition_point(owners);
        let end = OF_RANKS + table.of_ranks.len();
        let parcels = |lists: std::ops::Range<usize>| {
            let to = lists.clone().filter_map(|list| {
                let points = begin(list + 1) - begin(list);
                let (List::Leaving(rank) | List::Seen(rank)) = table.of_ranks[list - OF_RANKS]
                else {
                    return None;
                };
                (points != 0).then_some(Parcel {
                    rank: rank as usize,
                    points,
                })
            });
            Parcels::new(to.collect(), places(lists))
        };
        Self {
            leaving: parcels(OF_RANKS..halos),
            left: places(LEFT..LEFT + 1),
            seen: parcels(halos..end),
            border: places(BORDER..BORDER + 1),
        }
    }

    /// The ranks that get points.
    pub(super) fn ranks(&self) -> Vec<usize> {
        let both = self.leaving.to.iter().chain(&self.seen.to);
        let mut ranks: Vec<usize> = both.map(|parcel| parcel.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}
