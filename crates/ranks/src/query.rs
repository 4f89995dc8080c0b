//! Neighbours of arbitrary positions.
//!
//! The rank that owns the cell of a position has every point within the radius of it, either as an
//! owned point or in its halo. So positions go to these ranks, are searched for there, and the ids
//! of the neighbours come back.

use crate::{
    Error, IdLists, RankedEngine, RankedSet, Scalar,
    cell_classes::Special,
    communicator::Links,
    error::{Failure, Refusal},
    filters::check_radii,
    point_data::{Carried, Column},
    points::{self, Points},
    routes::{Destinations, Route, add, to},
    spans::Spans,
};
use nearfield::{NeighborLists, PointSetId, Radii, lists::QueryScratch};
use nearfield_grid::memory::{Shortage, collected, copied, make_room, make_room_for_one};

/// The purpose of the memory, for messages.
const WHAT: &str = "positions of a query";

impl<T: Scalar> RankedEngine<T> {
    /// Global ids of the neighbours in `sources` of arbitrary positions: list i has those of
    /// position i, ascending, one entry per image. A point at the position itself is a neighbour of
    /// it. Each rank gives any positions, or none; lists are full.
    ///
    /// Positions far from all points may need other cells, and then space is divided anew.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if a position on one cannot
    /// be used, memory is short, or the radius of a target counts by the rule of the engine.
    pub fn query(&mut self, positions: &[[T; 3]], sources: RankedSet) -> Result<IdLists, Error> {
        self.query_with(positions, None, sources)
    }

    /// As [`query`](Self::query), with a search radius for every position. They are given where the
    /// radius of the target counts, by the rules [`Gather`](nearfield::RadiusRule::Gather) and
    /// [`Symmetric`](nearfield::RadiusRule::Symmetric), in `f32` or `f64` as those of
    /// [`set_radii`](Self::set_radii).
    ///
    /// # Errors
    /// As [`query`](Self::query), and naming rank and position of a radius that is not positive or
    /// larger than that of the engine.
    pub fn query_with_radii<'a>(
        &mut self,
        positions: &[[T; 3]],
        radii: impl Into<Radii<'a>>,
        sources: RankedSet,
    ) -> Result<IdLists, Error> {
        self.query_with(positions, Some(radii.into()), sources)
    }

    fn query_with(
        &mut self,
        positions: &[[T; 3]],
        radii: Option<Radii<'_>>,
        sources: RankedSet,
    ) -> Result<IdLists, Error> {
        self.restore()?;
        let extent = self.placed(sources).map(drop);
        let extent = extent.and_then(|()| {
            self.check_query(positions.len(), radii)?;
            self.extent("position", &[], positions)
        });
        let carried = Carried::radii::<T>(radii.is_some());
        let (_, lattice) = self.agree_extent(usize::MAX, extent)?;
        if !self.division.has(&lattice) {
            self.cut(self.undivided(lattice))?;
        }
        let settled = self.settle();
        let asked = settled
            .and_then(|()| Ok((self.by_owner(positions)?, Self::numbered(positions, radii)?)));
        let mut links = Links::new();
        let ranks = |(destinations, _): &(Destinations, Points<T>)| destinations.ranks();
        let (destinations, asked) = links.agree(&mut self.comm, asked, ranks, &mut [])?;
        let exchange = self.comm.begin();
        let packed = points::post(
            &mut self.comm,
            exchange,
            &links,
            &asked,
            (&destinations, carried),
        );
        let arrived = points::receive::<T>(&mut self.comm, exchange, &links, carried);
        let (me, sends) = (self.rank(), destinations.leaving);
        let found = packed.and(arrived).and_then(|[mut arrived, _]| {
            points::stay(&mut arrived, &asked, to(&sends, me), me)?;
            let asked = &arrived.points;
            let places = collected(0..asked.len() as u32, WHAT)?;
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
        let written = put.and_then(|()| Ok(spans.in_order()?.into()));
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

    /// The positions as points whose ids are their places, with their radii if they have any.
    fn numbered(positions: &[[T; 3]], radii: Option<Radii<'_>>) -> Result<Points<T>, Shortage> {
        let mut points = Points {
            positions: copied(positions, WHAT)?,
            ..Points::default()
        };
        if let Some(radii) = radii {
            for (column, words) in Column::of_radii::<T>(radii)? {
                points.columns.put(column, words);
            }
        }
        make_room(&mut points.ids, positions.len(), WHAT)?;
        points.ids.extend(0..positions.len() as u64);
        Ok(points)
    }

    /// Refuses radii of positions that do not count, or that cannot be used, and none where they
    /// count.
    fn check_query(&self, positions: usize, radii: Option<Radii<'_>>) -> Result<(), Refusal> {
        let rule = self.settings.rule;
        match radii {
            None if rule.needs_targets() => Err(Refusal::new(format!(
                "the radius of the target counts by the rule {rule}: give every position one, with \
                 query_with_radii"
            ))),
            Some(_) if !rule.needs_targets() => Err(Refusal::new(format!(
                "the radius of a position does not count by the rule {rule}: call query, or choose \
                 another rule with RankedBuilder::radii"
            ))),
            Some(radii) => {
                let by = (rule, self.division.radius);
                check_radii(radii, by, positions, ("position", &[]))
            }
            None => Ok(()),
        }
    }

    /// By position, the ids of the points of this rank and its halo within the radius, ascending,
    /// or the nearest first if only these count.
    fn search(&mut self, asked: &Points<T>, sources: RankedSet) -> Result<Spans<u64>, Refusal> {
        let mut found = Spans::with_room(asked.len())?;
        if asked.len() == 0 {
            return Ok(found);
        }
        if self.settings.nearest {
            self.search_nearest(asked, sources, &mut found)?;
            return Ok(found);
        }
        let set = self.placed(sources)?;
        let parts = [(set.names.owned, set.owned()), (set.names.halo, &set.halo)];
        let lists = parts.map(|(name, _)| self.ask(asked, name));
        let [owned, halo] = lists;
        let (owned, halo) = (owned?, halo?);
        let mut ids = Vec::new();
        for k in 0..asked.len() {
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

    /// The nearest of each position. They are among the owned points, unless the position is at the
    /// border.
    fn search_nearest(
        &mut self,
        asked: &Points<T>,
        sources: RankedSet,
        found: &mut Spans<u64>,
    ) -> Result<(), Refusal> {
        let places = self.at_border(&asked.positions)?;
        let set = self.placed(sources)?;
        for (places, around) in places.into_iter().zip([false, true]) {
            let mut here = Points::default();
            here.take(asked, &places)?;
            let names = set.names;
            let lists = self.ask(&here, if around { names.complete } else { names.owned })?;
            let origin = |at: u32| match around {
                true => set.complete.origin(at as usize),
                false => (false, at),
            };
            let id = |at: &u32| match origin(*at) {
                (true, at) => set.halo.ids[at as usize],
                (false, at) => set.owned().ids[at as usize],
            };
            for (k, place) in places.iter().enumerate() {
                found.put(*place as usize, lists.of(k).iter().map(id))?;
            }
        }
        Ok(())
    }

    /// The places of positions in the interior of this rank, and of those at its border.
    fn at_border(&mut self, positions: &[[T; 3]]) -> Result<[Vec<u32>; 2], Refusal> {
        let division = &mut self.division;
        let special = match &division.domains {
            Some(domains) if self.comm.ranks() > 1 => {
                division.cell_classes.classify(domains, positions)?
            }
            _ => Vec::new(),
        };
        let seen = |point: &&Special| division.cell_classes.class(point.class).ranks.len() > 1;
        let at_border = special.iter().filter(seen).map(|point| point.index);
        let mut at_border = at_border.peekable();
        let mut places = [(); 2].map(|()| Vec::new());
        for place in 0..positions.len() as u32 {
            let places = &mut places[usize::from(at_border.next_if_eq(&place).is_some())];
            make_room_for_one(places, WHAT)?;
            places.push(place);
        }
        Ok(places)
    }

    /// Neighbours of positions in a part of a set.
    fn ask(&self, asked: &Points<T>, part: PointSetId) -> Result<NeighborLists, Refusal> {
        let (radii, mut scratch) = (asked.columns.radii()?, QueryScratch::default());
        let radii = (self.settings.rule.needs_targets()).then(|| T::radii(&radii));
        let positions = T::positions(&asked.positions);
        self.engine
            .query_into(positions, radii, part, &mut scratch)?;
        Ok(scratch.into_lists())
    }
}
