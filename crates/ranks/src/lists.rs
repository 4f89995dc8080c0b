//! Lists and counts of neighbours.
//!
//! The neighbours of a point are in two lists: those among the points that its rank owns, and, for
//! a point at the border, those in the halo. Both lists ascend by global id, and so does their
//! merge, on any number of ranks.
//!
//! If points exclude each other or only the nearest count, the lists of a point at the border are
//! those among [all points around it](crate::complete) instead, and the nearest come first.
//!
//! In half lists a pair of one set is in the list of the point with the smaller id. Among owned
//! points the engine ensures this. The list of the halo is cut: only its end, behind the point's
//! own id, counts.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    complete::Complete,
    error::{Failure, Refusal},
    set::Set,
    spans::Spans,
};
use nearfield::{ListKind, NeighborLists};
use nearfield_grid::memory::filled;
use std::time::Instant;

/// Lists of the points that a rank owns, from [`RankedEngine::neighbors`].
///
/// Neighbours are owned by this rank too, or in its halo. Both kinds are numbered by ascending
/// global id, and owned points as in the caller's arrays once callers own their points
/// ([`RankedEngine::migrate`]).
#[derive(Debug, Clone, Copy)]
pub struct RankedLists<'a> {
    owned: &'a NeighborLists,
    at_border: AtBorder<'a>,
    /// The targets at the border, ascending.
    border: &'a [u32],
    /// Ids of targets, of sources and of the halo of the sources.
    ids: [&'a [u64]; 3],
    /// True for half lists, of whose halo part only the ids above the point's own count.
    half: bool,
}

/// Where the neighbours of targets at the border are.
#[derive(Debug, Clone, Copy)]
enum AtBorder<'a> {
    /// In the lists among owned points: there is no halo.
    Owned,
    /// There, and in these lists of the border among the halo.
    Halo(&'a NeighborLists),
    /// In these lists among all points around the border, of targets and of sources.
    Around(&'a NeighborLists, [&'a Complete; 2]),
}

/// The neighbours of a point: places among owned points, then in the halo; both lists are ascending
/// or nearest first.
#[derive(Debug, Clone, Copy)]
enum Row<'a> {
    /// Of either kind.
    Parts([&'a [u32]; 2]),
    /// Of both, among the points around the border.
    Around(&'a [u32], &'a Complete),
}

impl<'a> Row<'a> {
    /// Every neighbour, or those of one kind: false and the place for an owned point, true and the
    /// place for one of the halo.
    fn iter(self) -> impl Iterator<Item = (bool, u32)> + use<'a> {
        let (parts, around) = match self {
            Self::Parts(parts) => (parts, None),
            Self::Around(list, complete) => ([&[][..]; 2], Some((list, complete))),
        };
        let of = |halo: bool| move |at: &u32| (halo, *at);
        let parts = parts[0]
            .iter()
            .map(of(false))
            .chain(parts[1].iter().map(of(true)));
        let around = around
            .into_iter()
            .flat_map(|(list, complete)| list.iter().map(|at| complete.origin(*at as usize)));
        parts.chain(around)
    }

    fn len(self) -> usize {
        match self {
            Self::Parts([owned, halo]) => owned.len() + halo.len(),
            Self::Around(list, _) => list.len(),
        }
    }
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

    /// The neighbours of the k-th target that this rank owns, ascending, or the nearest first if
    /// only these count; one entry per image. It looks the target up among those at the border.
    pub fn owned_of(&self, k: usize) -> impl Iterator<Item = u32> + use<'a> {
        let owned = self.row(k).iter().filter(|(halo, _)| !halo);
        owned.map(|(_, at)| at)
    }

    /// The neighbours of the k-th target in the halo, as [`owned_of`](Self::owned_of).
    pub fn halo_of(&self, k: usize) -> impl Iterator<Item = u32> + use<'a> {
        let halo = self.row(k).iter().filter(|(halo, _)| *halo);
        halo.map(|(_, at)| at)
    }

    /// The neighbours of the k-th target.
    fn row(&self, k: usize) -> Row<'a> {
        let place = || self.border.binary_search(&(k as u32)).ok();
        match self.at_border {
            AtBorder::Owned => Row::Parts([self.owned.of(k), &[]]),
            AtBorder::Halo(lists) => {
                let halo = place().map_or(&[][..], |at| self.behind(k, lists.of(at)));
                Row::Parts([self.owned.of(k), halo])
            }
            AtBorder::Around(lists, [targets, sources]) => match place() {
                Some(at) => Row::Around(lists.of(targets.border[at] as usize), sources),
                None => Row::Parts([self.owned.of(k), &[]]),
            },
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

    /// Global ids of all neighbours of the k-th target, ascending, or the nearest first if only
    /// these count; one entry per image.
    pub fn ids_of(&self, k: usize) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let (row, [_, owned, halo]) = (self.row(k), self.ids);
        let (parts, around) = match row {
            Row::Parts(parts) => (parts, None),
            Row::Around(..) => ([&[][..]; 2], Some(row.iter())),
        };
        Ids {
            left: row.len(),
            parts: Merged([(parts[0], owned), (parts[1], halo)]),
            around: around.map(|around| {
                around.map(move |(is_halo, at)| match is_halo {
                    true => halo[at as usize],
                    false => owned[at as usize],
                })
            }),
        }
    }

    /// Number of neighbours of the k-th target.
    pub fn count_of(&self, k: usize) -> usize {
        self.row(k).len()
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
}

/// The ids of a list: of two that are merged, or of one that is in its order.
struct Ids<'a, I> {
    left: usize,
    parts: Merged<'a>,
    around: Option<I>,
}

impl<I: Iterator<Item = u64>> Iterator for Ids<'_, I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let next = match &mut self.around {
            Some(around) => around.next(),
            None => self.parts.next(),
        };
        self.left -= usize::from(next.is_some());
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<I: Iterator<Item = u64>> ExactSizeIterator for Ids<'_, I> {}

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

impl From<(Vec<u64>, Vec<u64>)> for IdLists {
    /// Offsets and ids.
    fn from((offsets, ids): (Vec<u64>, Vec<u64>)) -> Self {
        Self { offsets, ids }
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
        let (at, from) = (of.names, among.names);
        let at_border = if !of.meets(among) {
            AtBorder::Owned
        } else if of.lists_around(targets == sources) {
            let lists = self.engine.neighbors(at.complete, from.complete)?;
            AtBorder::Around(lists, [&of.complete, &among.complete])
        } else {
            AtBorder::Halo(self.engine.neighbors(at.border, from.halo)?)
        };
        Ok(RankedLists {
            owned,
            at_border,
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
        let written = lists.and_then(|lists| Ok(lists.in_order()?.into()));
        self.comm.agree(written, &mut [])
    }

    /// The lists of the points of `targets` that this rank owns, with global ids.
    fn owned_by_id(&self, targets: RankedSet, sources: RankedSet) -> Result<Spans<u64>, Refusal> {
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
                let (engine, at, from) = (&self.engine, of.names, among.names);
                let begin = Instant::now();
                if of.lists_around(targets == sources) {
                    let all = engine.count_neighbors(at.complete, from.complete)?;
                    for (place, around) in of.border.iter().zip(&of.complete.border) {
                        owned[*place as usize] = all[*around as usize];
                    }
                } else {
                    let more = engine.count_neighbors(at.border, from.halo)?;
                    for (place, more) in of.border.iter().zip(more) {
                        owned[*place as usize] += more;
                    }
                }
                self.clock.border(begin.elapsed());
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
