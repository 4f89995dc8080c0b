//! Lists and counts of neighbours.
//!
//! Every rank finds the lists of the points it owns, and of its halo, which are incomplete and are
//! never handed out. Lists ascend by global id, on any number of ranks.

use crate::{
    Error, RankedEngine, RankedSet, Scalar, communicator::RESULTS, error::Refusal, routes::Part,
    set::Set,
};
use nearfield::NeighborLists;
use nearfield_grid::memory::{filled, make_room};

/// Lists of the points that a rank owns, from [`RankedEngine::neighbors`].
///
/// Sources have *local indices*: their places among the points of the set that this rank sees, by
/// ascending global id. [`source_id`](Self::source_id) and [`is_halo`](Self::is_halo) say more of
/// them.
#[derive(Debug, Clone, Copy)]
pub struct RankedLists<'a> {
    lists: &'a NeighborLists,
    /// Local indices of the targets.
    targets: &'a [u32],
    target_ids: &'a [u64],
    source_ids: &'a [u64],
    source_is_owned: &'a [bool],
}

impl<'a> RankedLists<'a> {
    /// Number of lists: of points that this rank owns.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns true if this rank owns no points of the targets.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Global id of the k-th target; ids ascend.
    ///
    /// # Panics
    /// If `k` is not below [`len`](Self::len), like all methods that take a `k`.
    pub fn target_id(&self, k: usize) -> u64 {
        self.target_ids[self.targets[k] as usize]
    }

    /// Local indices of the neighbours of the k-th target, ascending; one entry per image.
    pub fn of(&self, k: usize) -> &'a [u32] {
        self.lists.of(self.targets[k] as usize)
    }

    /// Global ids of the neighbours of the k-th target, ascending; one entry per image.
    pub fn ids_of(&self, k: usize) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let ids = self.source_ids;
        self.of(k).iter().map(move |source| ids[*source as usize])
    }

    /// Global id of the source with a local index.
    pub fn source_id(&self, source: u32) -> u64 {
        self.source_ids[source as usize]
    }

    /// Whether the source with a local index belongs to another rank.
    pub fn is_halo(&self, source: u32) -> bool {
        !self.source_is_owned[source as usize]
    }
}

/// Lists in the caller's order, with global ids, from [`RankedEngine::lists_by_id`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdLists {
    /// Where each list begins, and the end of the last: one more than there are points.
    pub offsets: Vec<u64>,
    /// Global ids of neighbours, list after list, each ascending.
    pub ids: Vec<u64>,
}

impl IdLists {
    /// Global ids of the neighbours of the caller's point `index`.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn of(&self, index: usize) -> &[u64] {
        &self.ids[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Writes the lists of all active pairs of sets that are out of date.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if memory is short on one, or
    /// a set has no positions or radii.
    pub fn find_neighbors(&mut self) -> Result<(), Error> {
        let found = self.find_locally();
        self.comm.agree(found, &mut [])
    }

    /// Writes lists, without agreeing.
    pub(crate) fn find_locally(&mut self) -> Result<(), Refusal> {
        for set in 0..self.sets.len() {
            self.placed(RankedSet(set))?;
        }
        Ok(self.engine.find_neighbors()?)
    }

    /// The lists of the points of `targets` that this rank owns; costs nothing. Not collective.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank if there are no lists of the
    /// sets as they are.
    pub fn neighbors(
        &self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<RankedLists<'_>, Error> {
        self.lists(targets, sources)
            .map_err(|refusal| Refusal::read(self.rank(), &refusal.to_bytes()))
    }

    fn lists(&self, targets: RankedSet, sources: RankedSet) -> Result<RankedLists<'_>, Refusal> {
        let (targets, sources) = (self.placed(targets)?, self.placed(sources)?);
        Ok(RankedLists {
            lists: self.engine.neighbors(targets.id, sources.id)?,
            targets: &targets.local.owned,
            target_ids: &targets.local.ids,
            source_ids: &sources.local.ids,
            source_is_owned: &sources.local.is_owned,
        })
    }

    /// The lists of the points of `targets` that this rank gave, in the caller's order.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors), on all ranks.
    pub fn lists_by_id(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<IdLists, Error> {
        let checked = self.lists(targets, sources).map(drop);
        self.comm.agree(checked, &mut [])?;
        let (of, from) = (&self.sets[targets.0], &self.sets[sources.0]);
        let lists = self.engine.neighbors(of.id, from.id);
        let lists = self.comm.agree(lists.map_err(Refusal::from), &mut [])?;
        of.routes
            .post_back(&mut self.comm, RESULTS, |place, message| {
                let list = lists.of(place);
                message.extend_from_slice(&(list.len() as u64).to_ne_bytes());
                for source in list {
                    let id = from.local.ids[*source as usize];
                    message.extend_from_slice(&id.to_ne_bytes());
                }
            })?;
        // Points arrive owner after owner; first where each list is, then all in order.
        let points = of.home.ids.len();
        let mut spans = vec![0..0; points];
        let mut arrived: Vec<u64> = Vec::new();
        of.routes
            .own(self.comm.rank(), Part::Owned, |index, place| {
                let begin = arrived.len();
                let ids = lists
                    .of(place)
                    .iter()
                    .map(|source| from.local.ids[*source as usize]);
                arrived.extend(ids);
                spans[index] = begin..arrived.len();
            });
        of.routes
            .collect_back(&mut self.comm, RESULTS, |index, rest| {
                let (numbers, _) = rest.as_chunks();
                let (count, ids) = numbers.split_first()?;
                let count = u64::from_ne_bytes(*count) as usize;
                let begin = arrived.len();
                arrived.extend(ids.get(..count)?.iter().map(|id| u64::from_ne_bytes(*id)));
                spans[index] = begin..arrived.len();
                Some(8 + 8 * count)
            })?;
        let written = || {
            let mut lists = IdLists::default();
            make_room(&mut lists.offsets, points + 1, "offsets of lists")?;
            make_room(&mut lists.ids, arrived.len(), "lists of global ids")?;
            lists.offsets.push(0);
            for span in spans {
                lists.ids.extend_from_slice(&arrived[span]);
                lists.offsets.push(lists.ids.len() as u64);
            }
            Ok(lists)
        };
        self.comm.agree(written(), &mut [])
    }

    /// Number of neighbours in `sources` of every point of `targets` that this rank gave, in the
    /// caller's order. Half lists do not matter here.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused), as
    /// [`find_neighbors`](Self::find_neighbors).
    pub fn count_neighbors(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<Vec<u32>, Error> {
        let counted = || {
            let (of, from) = (self.placed(targets)?, self.placed(sources)?);
            let room = filled(of.home.ids.len(), 0, "counts of neighbours")?;
            Ok((self.engine.count_neighbors(of.id, from.id)?, room))
        };
        let counted = counted();
        let (local, mut counts) = self.comm.agree(counted, &mut [])?;
        let of: &Set<T> = &self.sets[targets.0];
        of.routes
            .post_back(&mut self.comm, RESULTS, |place, message| {
                message.extend_from_slice(&local[place].to_ne_bytes());
            })?;
        of.routes
            .own(self.comm.rank(), Part::Owned, |index, place| {
                counts[index] = local[place];
            });
        of.routes
            .collect_back(&mut self.comm, RESULTS, |index, rest| {
                counts[index] = u32::from_ne_bytes(*rest.first_chunk()?);
                Some(4)
            })?;
        Ok(counts)
    }
}
