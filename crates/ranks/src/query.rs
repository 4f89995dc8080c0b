//! Neighbours of arbitrary positions.
//!
//! The rank that owns the cell of a position has every point within the radius of it, either as an
//! owned point or in its halo. So positions go to these ranks, are searched for there, and the ids
//! of the neighbours come back.

use crate::{
    Error, IdLists, RankedEngine, RankedSet, Scalar,
    communicator::Links,
    error::{Failure, Refusal},
    lists::Spans,
    points::{self, Points},
    routes::{Destinations, Route, add, to},
};
use nearfield_grid::memory::{Shortage, collected, copied, make_room};

impl<T: Scalar> RankedEngine<T> {
    /// Global ids of the neighbours in `sources` of arbitrary positions: list i has those of
    /// position i, ascending, one entry per image. A point at the position itself is a neighbour of
    /// it. Each rank gives any positions, or none; lists are full.
    ///
    /// Positions far from all points may need other cells, and then space is divided anew.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if a position on one cannot
    /// be used, memory is short, or points have radii of their own.
    pub fn query(&mut self, positions: &[[T; 3]], sources: RankedSet) -> Result<IdLists, Error> {
        self.restore()?;
        let extent = self.placed(sources).map(|set| set.has_radii);
        let extent = extent.and_then(|has_radii| {
            if has_radii {
                return Err(Refusal::new(
                    "positions have no radii of their own, but points have: query a set without",
                ));
            }
            self.extent("position", &[], positions)
        });
        let (_, lattice) = self.agree_extent(usize::MAX, extent)?;
        if !self.division.has(&lattice) {
            self.cut(self.undivided(lattice))?;
        }
        let settled = self.settle();
        let asked =
            settled.and_then(|()| Ok((self.by_owner(positions)?, Self::numbered(positions)?)));
        let mut links = Links::new();
        let ranks = |(destinations, _): &(Destinations, Points<T>)| destinations.ranks();
        let (destinations, asked) = links.agree(&mut self.comm, asked, ranks, &mut [])?;
        let exchange = self.comm.begin();
        let packed = points::post(
            &mut self.comm,
            exchange,
            &links,
            &asked,
            (&destinations, false),
        );
        let arrived = points::receive::<T>(&mut self.comm, exchange, &links, false);
        let (me, sends) = (self.rank(), destinations.leaving);
        let found = packed.and(arrived).and_then(|[mut arrived, _]| {
            points::stay(&mut arrived, &asked, to(&sends, me), me)?;
            let asked = &arrived.points.positions;
            let places = collected(0..asked.len() as u32, "positions of a query")?;
            let room = Spans::with_room(positions.len())?;
            let found = self.search(asked, sources)?;
            let route = Route {
                places,
                sources: arrived.sources,
                sends,
            };
            Ok::<_, Failure>((found, room, route))
        });
        let (found, mut spans, route) = self.comm.agree(found, &mut [])?;
        let put = spans.bring(&mut self.comm, &route, &found);
        let written = put.and_then(|()| Ok(spans.in_order()?));
        self.comm.agree(written, &mut [])
    }

    /// Positions by the ranks that own their cells.
    fn by_owner(&self, positions: &[[T; 3]]) -> Result<Destinations, Refusal> {
        let Some(domains) = &self.division.domains else {
            return Err(Refusal::new("there are no points: add a point set"));
        };
        let mut destinations = Destinations::default();
        for (index, at) in (0..).zip(positions) {
            let cell = T::cell(domains.lattice(), *at);
            let owner = domains.owner(domains.brick(cell)) as usize;
            add(&mut destinations.leaving, owner, index)?;
        }
        Ok(destinations)
    }

    /// The positions as points whose ids are their places.
    fn numbered(positions: &[[T; 3]]) -> Result<Points<T>, Shortage> {
        let what = "positions of a query";
        let mut points = Points {
            positions: copied(positions, what)?,
            ..Points::default()
        };
        make_room(&mut points.ids, positions.len(), what)?;
        points.ids.extend(0..positions.len() as u64);
        Ok(points)
    }

    /// By position, the ids of the points of this rank and its halo within the radius, ascending.
    fn search(&self, positions: &[[T; 3]], sources: RankedSet) -> Result<Spans, Refusal> {
        let set = self.placed(sources)?;
        let mut found = Spans::with_room(positions.len())?;
        if positions.is_empty() {
            return Ok(found);
        }
        let parts = [(set.names.owned, set.owned()), (set.names.halo, &set.halo)];
        let lists = parts.map(|(name, _)| self.engine.query(T::positions(positions), name));
        let [owned, halo] = lists;
        let (owned, halo) = (owned?, halo?);
        let mut ids = Vec::new();
        for k in 0..positions.len() {
            ids.clear();
            for (list, (_, points)) in [owned.of(k), halo.of(k)].into_iter().zip(&parts) {
                let all = ids.len() + list.len();
                make_room(&mut ids, all, "lists of global ids")?;
                ids.extend(list.iter().map(|at| points.ids[*at as usize]));
            }
            ids.sort_unstable();
            found.put(k, ids.iter().copied())?;
        }
        Ok(found)
    }
}
