//! Which ranks need the points of a rank, as send lists on the device.
//!
//! The host knows the lists of every class, and the device splits the special points of a survey by
//! class. So the host only reads how long the lists are. All lists are in one array: the border,
//! the points that leave, and then those that go to each rank.

use super::{
    classes::ClassTable,
    kernels::{DeviceClasses, Masks},
    places::{Places, SendLists},
};
use crate::{
    cell_classes::CellClasses,
    error::Refusal,
    routes::{List, Peer},
};
use nearfield::device::{DeviceBuffer, DeviceEngine};
use nearfield_grid::memory::filled;
use std::{collections::BTreeSet, sync::Arc};

/// The list of owned points in the halo of other ranks.
const BORDER: usize = 0;
/// The list of all points that others own.
const LEFT: usize = 1;
/// The first list of points that are sent to a rank.
const OF_RANKS: usize = 2;

/// A table of classes on host and device, and the lists of each class.
pub(super) struct Table {
    pub(super) host: ClassTable,
    pub(super) device: DeviceClasses,
    pub(super) lists: ListTable,
}

/// The lists that points of each class are in.
pub(super) struct ListTable {
    /// The lists after the first two, ascending: those to owners, then those to halos.
    of_ranks: Vec<List>,
    pub(super) masks: Masks,
}

impl ListTable {
    /// The lists of the classes that are known so far on `rank`.
    ///
    /// # Errors
    /// When memory is short.
    pub(super) fn new(
        engine: &DeviceEngine,
        cell_classes: &CellClasses,
        rank: usize,
    ) -> Result<Self, Refusal> {
        let classes = cell_classes.classes();
        let to_ranks = |list: &List| matches!(list, List::Leaving(_) | List::Ghost(_));
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
                    List::Leaving(_) | List::Ghost(_) => {
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

    /// Returns true if all known classes have their lists.
    pub(super) fn covers(&self, cell_classes: &CellClasses) -> bool {
        self.masks.classes == cell_classes.classes().len()
    }
}

/// Which ranks need the points of a rank, without the points that only this rank needs.
pub(super) struct Destinations {
    /// Points that other ranks own, rank by rank.
    pub(super) leaving: SendLists,
    /// The same, ascending.
    pub(super) left: Places,
    /// Points in the halos of other ranks, rank by rank.
    pub(super) ghosts: SendLists,
    /// Owned points in the halo of other ranks, ascending.
    pub(super) border: Places,
}

impl Destinations {
    /// No points.
    pub(super) fn none(engine: &DeviceEngine) -> Result<Self, Refusal> {
        let none = Places::none(engine)?;
        Ok(Self {
            leaving: SendLists::new(Vec::new(), none.clone()),
            left: none.clone(),
            ghosts: SendLists::new(Vec::new(), none.clone()),
            border: none,
        })
    }

    /// The lists in an array, which begin at these places; the last place is the end of all lists.
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
        let lists = |lists: std::ops::Range<usize>| {
            let to = lists.clone().filter_map(|list| {
                let points = begin(list + 1) - begin(list);
                let (List::Leaving(rank) | List::Ghost(rank)) = table.of_ranks[list - OF_RANKS]
                else {
                    return None;
                };
                (points != 0).then_some(Peer {
                    rank: rank as usize,
                    points,
                })
            });
            SendLists::new(to.collect(), places(lists))
        };
        Self {
            leaving: lists(OF_RANKS..halos),
            left: places(LEFT..LEFT + 1),
            ghosts: lists(halos..end),
            border: places(BORDER..BORDER + 1),
        }
    }

    /// The ranks that points are sent to.
    pub(super) fn ranks(&self) -> Vec<usize> {
        let both = self.leaving.to.iter().chain(&self.ghosts.to);
        let mut ranks: Vec<usize> = both.map(|peer| peer.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}
