//! Lists and counts of neighbours.
//!
//! The neighbours of a point are in two lists: those among the points that its rank owns, and, for
//! a point at the border, those in the halo. Both lists ascend by global id, and so does their
//! merge, on any number of ranks.
//!
//! In half lists a pair of one set is in the list of the point with the smaller id. Among owned
//! points the engine ensures this. The list of the halo is cut: only its end, behind the point's
//! own id, counts.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::Communicator,
    error::{Failure, Refusal},
    routes::Route,
    set::Set,
};
use nearfield::{ListKind, NeighborLists};
use nearfield_grid::memory::{filled, make_room};
use std::time::Instant;

/// Lists of the points that a rank owns, from [`RankedEngine::neighbors`].
///
/// Neighbours are owned by this rank too, or in its halo. Both kinds are numbered by ascending
/// global id, and owned points as in the caller's arrays once callers own their points
/// ([`RankedEngine::migrate`]).
#[derive(Debug, Clone, Copy)]
pub struct RankedLists<'a> {
    owned: &'a NeighborLists,
    /// Lists of the border, if there are any.
    halo: Option<&'a NeighborLists>,
    /// The targets at the border, ascending.
    border: &'a [u32],
    /// Ids of targets, of sources and of the halo of the sources.
    ids: [&'a [u64]; 3],
    /// True for half lists, of whose halo part only the ids above the point's own count.
    half: bool,
}

impl<'a> RankedLists<'a> {
    /// Number of lists: of points that this rank owns.
    pub fn len(&self) -> usize {
        self.ids[0].len()
    }

    /// Returns true if this rank owns no points of the targets.
    pub fn is_empty(&self) -> bool {
        self.ids[0].is_empty()
    }

    /// Global id of the k-th target; ids ascend.
    ///
    /// # Panics
    /// If `k` is not below [`len`](Self::len), like all methods that take a `k`.
    pub fn target_id(&self, k: usize) -> u64 {
        self.ids[0][k]
    }

    /// The neighbours of the k-th target that this rank owns, ascending; one entry per image.
    pub fn owned_of(&self, k: usize) -> &'a [u32] {
        self.owned.of(k)
    }

    /// The neighbours of the k-th target in the halo, ascending; one entry per image. It looks the
    /// target up among those at the border.
    pub fn halo_of(&self, k: usize) -> &'a [u32] {
        let Some(halo) = self.halo else { return &[] };
        match self.border.binary_search(&(k as u32)) {
            Ok(at) => self.behind(k, halo.of(at)),
            Err(_) => &[],
        }
    }

    /// The part of a list of the halo that counts.
    fn behind(&self, k: usize, list: &'a [u32]) -> &'a [u32] {
        if !self.half {
            return list;
        }
        let own = self.ids[0][k];
        &list[list.partition_point(|source| self.ids[2][*source as usize] < own)..]
    }

    /// Global ids of all neighbours of the k-th target, ascending; one entry per image.
    pub fn ids_of(&self, k: usize) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let [_, owned, halo] = self.ids;
        Merged([(self.owned_of(k), owned), (self.halo_of(k), halo)])
    }

    /// Number of neighbours of the k-th target.
    pub fn count_of(&self, k: usize) -> usize {
        self.owned_of(k).len() + self.halo_of(k).len()
    }

    /// Global id of an owned source.
    pub fn owned_id(&self, source: u32) -> u64 {
        self.ids[1][source as usize]
    }

    /// Global id of a source in the halo.
    pub fn halo_id(&self, source: u32) -> u64 {
        self.ids[2][source as usize]
    }
}

/// The ids of two ascending lists in ascending order; each list has the ids of its points.
struct Merged<'a>([(&'a [u32], &'a [u64]); 2]);

impl Iterator for Merged<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let id = |(list, ids): (&[u32], &[u64])| list.first().map(|at| ids[*at as usize]);
        let (first, next) = match [id(self.0[0]), id(self.0[1])] {
            [None, None] => return None,
            [Some(a), Some(b)] if b < a => (1, b),
            [Some(a), _] => (0, a),
            [None, Some(b)] => (1, b),
        };
        let list = &mut self.0[first].0;
        *list = &list[1..];
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0[0].0.len() + self.0[1].0.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Merged<'_> {}

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
    /// Updates the lists of all active pairs of sets that are out of date. Lists among owned points
    /// are computed while halos are under way.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if memory is short on one, or
    /// a set has no positions or radii.
    pub fn find_neighbors(&mut self) -> Result<(), Error> {
        self.restore()?;
        let found = self.find_locally();
        self.comm.agree(found, &mut [])
    }

    /// Writes lists, without agreeing.
    pub(crate) fn find_locally(&mut self) -> Result<(), Failure> {
        (0..self.sets.len()).try_for_each(|set| self.placed(RankedSet(set)).map(drop))?;
        self.switch_pairs()?;
        self.clock.interior(|| self.engine.find_neighbors())?;
        self.settle()?;
        self.switch_pairs()?;
        let begin = Instant::now();
        self.engine.find_neighbors()?;
        self.clock.border(begin.elapsed());
        Ok(())
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
            .map_err(|refusal| refusal.by(self.rank()))
    }

    fn lists(&self, targets: RankedSet, sources: RankedSet) -> Result<RankedLists<'_>, Refusal> {
        let (of, among) = (self.placed(targets)?, self.placed(sources)?);
        if !self.active.has([targets.0, sources.0]) {
            return Err(Refusal::new(format!(
                "point set {} does not search set {}: switch the pair on with set_active",
                targets.0, sources.0
            )));
        }
        let owned = self.engine.neighbors(of.names.owned, among.names.owned)?;
        let halo = if of.meets(among) {
            Some(self.engine.neighbors(of.names.border, among.names.halo)?)
        } else {
            None
        };
        Ok(RankedLists {
            owned,
            halo,
            border: &of.border,
            ids: [&of.owned().ids, &among.owned().ids, &among.halo.ids],
            half: self.settings.lists == ListKind::Half && targets == sources,
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
        let mut lists = self.owned_by_id(targets, sources).map_err(Failure::from);
        if let Some(route) = &self.sets[targets.0].routes.owned {
            // Callers that do not own their points get the lists from owners.
            let room = Spans::with_room(self.sets[targets.0].home.len());
            let packed = lists.and_then(|lists| Ok((lists, room?)));
            let (owned, mut arrived) = self.comm.agree(packed, &mut [])?;
            let brought = arrived.bring(&mut self.comm, route, &owned);
            lists = brought.map(|()| arrived);
        }
        let written = lists.and_then(|lists| Ok(lists.in_order()?));
        self.comm.agree(written, &mut [])
    }

    /// The lists of the points of `targets` that this rank owns, with global ids.
    fn owned_by_id(&self, targets: RankedSet, sources: RankedSet) -> Result<Spans, Refusal> {
        let lists = self.lists(targets, sources)?;
        let mut written = Spans::with_room(lists.len())?;
        for k in 0..lists.len() {
            written.put(k, lists.ids_of(k))?;
        }
        Ok(written)
    }

    /// Number of neighbours in `sources` of every point of `targets` that this rank gave, in the
    /// caller's order. These are full counts, also with half lists.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused), as
    /// [`find_neighbors`](Self::find_neighbors).
    pub fn count_neighbors(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<Vec<u32>, Error> {
        self.restore()?;
        let mut counted = || -> Result<_, Failure> {
            let (of, among) = (self.placed(targets)?, self.placed(sources)?);
            let room = filled(of.home.len(), 0, "counts of neighbours")?;
            let (owned, sources) = (of.names.owned, among.names.owned);
            let engine = &self.engine;
            let counts = self
                .clock
                .interior(|| engine.count_neighbors(owned, sources));
            Ok((counts?, room))
        };
        let counted = counted();
        let settled = self.settle();
        let counted = counted.and_then(|(mut owned, room)| {
            settled?;
            let (of, among) = (&self.sets[targets.0], &self.sets[sources.0]);
            if of.meets(among) {
                let (engine, names) = (&self.engine, (of.names.border, among.names.halo));
                let begin = Instant::now();
                let more = engine.count_neighbors(names.0, names.1)?;
                self.clock.border(begin.elapsed());
                for (place, more) in of.border.iter().zip(more) {
                    owned[*place as usize] += more;
                }
            }
            Ok((owned, room))
        });
        let (local, mut counts) = self.comm.agree(counted, &mut [])?;
        let of: &Set<T> = &self.sets[targets.0];
        let Some(route) = &of.routes.owned else {
            return Ok(local);
        };
        let (comm, width) = (&mut self.comm, size_of::<u32>());
        let exchange = comm.begin();
        let pack = |place: usize, message: &mut Vec<u8>| {
            message.extend_from_slice(&local[place].to_ne_bytes());
        };
        let packed = route.post_back(comm, exchange, |_| width, pack);
        route.own(comm.rank(), |index, place| {
            counts[index] = local[place];
        });
        let collected = route.collect_back(comm, exchange, |index, rest| {
            counts[index] = u32::from_ne_bytes(*rest.first_chunk()?);
            Some(width)
        });
        comm.agree(packed.and(collected), &mut [])?;
        Ok(counts)
    }
}

/// Lists in the order of their arrival, owner after owner.
pub(crate) struct Spans {
    /// The place of each list, by point of the caller.
    spans: Vec<std::ops::Range<usize>>,
    ids: Vec<u64>,
}

/// The purpose of the memory, for messages.
const WHAT: &str = "lists of global ids";

impl Spans {
    /// No list yet, for `points` points.
    pub(crate) fn with_room(points: usize) -> Result<Self, Refusal> {
        Ok(Self {
            spans: filled(points, 0..0, "offsets of lists")?,
            ids: Vec::new(),
        })
    }

    /// Takes the list of a point.
    pub(crate) fn put(
        &mut self,
        index: usize,
        ids: impl ExactSizeIterator<Item = u64>,
    ) -> Result<(), Refusal> {
        let begin = self.ids.len();
        let room = self.ids.try_reserve(ids.len());
        room.map_err(|_| nearfield_grid::memory::Shortage::of::<u64>(begin + ids.len(), WHAT))?;
        self.ids.extend(ids);
        self.spans[index] = begin..self.ids.len();
        Ok(())
    }

    /// The list of a point.
    fn of(&self, index: usize) -> &[u64] {
        &self.ids[self.spans[index].clone()]
    }

    /// Brings lists back to the ranks that asked for them, along the route of the questions.
    pub(crate) fn bring(
        &mut self,
        comm: &mut Communicator,
        route: &Route,
        lists: &Self,
    ) -> Result<(), Failure> {
        let exchange = comm.begin();
        let bytes = |place: usize| size_of::<u64>() * (1 + lists.of(place).len());
        let packed = route.post_back(comm, exchange, bytes, |place, message| {
            let list = lists.of(place);
            message.extend_from_slice(&(list.len() as u64).to_ne_bytes());
            message.extend_from_slice(bytemuck::cast_slice(list));
        });
        let mut put = Ok(());
        route.own(comm.rank(), |index, place| {
            if put.is_ok() {
                put = self.put(index, lists.of(place).iter().copied());
            }
        });
        let collected = route.collect_back(comm, exchange, |index, rest| {
            let (numbers, _) = rest.as_chunks();
            let (count, ids) = numbers.split_first()?;
            let count = u64::from_ne_bytes(*count) as usize;
            let ids = ids.get(..count)?.iter().map(|id| u64::from_ne_bytes(*id));
            if put.is_ok() {
                put = self.put(index, ids);
            }
            Some(8 + 8 * count)
        });
        packed.and(put.map_err(Failure::from)).and(collected)
    }

    /// All lists in the order of the points.
    pub(crate) fn in_order(self) -> Result<IdLists, Refusal> {
        let mut lists = IdLists::default();
        make_room(&mut lists.offsets, self.spans.len() + 1, "offsets of lists")?;
        lists.offsets.push(0);
        let mut end = 0;
        for span in &self.spans {
            end += span.len() as u64;
            lists.offsets.push(end);
        }
        if self.spans.is_sorted_by_key(|span| span.start) {
            lists.ids = self.ids;
            return Ok(lists);
        }
        make_room(&mut lists.ids, self.ids.len(), WHAT)?;
        for span in self.spans {
            lists.ids.extend_from_slice(&self.ids[span]);
        }
        Ok(lists)
    }
}
