//! Points that change their rank.
//!
//! Only points that leave are sent. Points that stay are merged by id with those that arrive, in
//! runs of consecutive points, so a step in which few points leave copies arrays in large pieces.
//! The remap outlives the routes of the set, so any number of arrays can [follow](crate::follow)
//! it.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    cell_classes::Special,
    error::{Failure, Refusal},
    plan::{Accepted, Placement, Plan},
    point_data::Rows,
    points::{self, Arrived, Points, order_by_id},
    routes::{Destinations, Route},
};
use nearfield_grid::{
    Bounds,
    memory::{Shortage, collected, make_room_for_one, with_room},
};
use std::ops::Range;

/// How the points of a set have moved between ranks, from [`RankedEngine::migrate`].
#[derive(Debug, Clone)]
#[must_use = "other arrays than the positions stay in the old order until they are brought along"]
pub struct Migration {
    /// Number of the caller's points before.
    pub(crate) before: usize,
    /// `None` if no point of any rank has moved.
    pub(crate) remap: Option<Remap>,
}

/// The permutation from the order before a migration to the order after it, with the points that
/// were sent and received.
#[derive(Debug, Clone)]
pub(crate) struct Remap {
    /// Points that have left, and those that have arrived, in the order of arrival.
    pub(crate) route: Route,
    pieces: Vec<Piece>,
    /// Number of the caller's points now.
    now: usize,
}

/// Consecutive points of the new order.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Points that stay, by their places before.
    Stay(Range<u32>),
    /// A point that has arrived.
    Came(u32),
}

/// The purpose of the memory, for messages.
const WHAT: &str = "the order after a migration";

/// The points with `ids` without those at the places `gone`, merged with those that arrive, by
/// ascending id.
fn merged(
    ids: &[u64],
    ascending: bool,
    gone: &[u32],
    came: &[u64],
) -> Result<Vec<Piece>, Shortage> {
    let mut pieces = Pieces(Vec::new());
    let order = order_by_id(came)?;
    if ascending {
        let (mut at, mut gone) = (0, gone.iter().copied().peekable());
        let mut stay = |pieces: &mut Pieces, end: u32| {
            while let Some(hole) = gone.next_if(|hole| *hole < end) {
                pieces.stay(at..hole)?;
                at = hole + 1;
            }
            pieces.stay(at..end)?;
            at = at.max(end);
            Ok(())
        };
        for item in order {
            let end = ids.partition_point(|id| *id < came[item as usize]);
            stay(&mut pieces, end as u32)?;
            pieces.push(Piece::Came(item))?;
        }
        stay(&mut pieces, ids.len() as u32)?;
        return Ok(pieces.0);
    }
    let mut order = order.into_iter().peekable();
    for index in order_by_id(ids)? {
        let before = |item: &u32| came[*item as usize] < ids[index as usize];
        while let Some(item) = order.next_if(before) {
            pieces.push(Piece::Came(item))?;
        }
        if gone.binary_search(&index).is_err() {
            pieces.stay(index..index + 1)?;
        }
    }
    for item in order {
        pieces.push(Piece::Came(item))?;
    }
    Ok(pieces.0)
}

/// Pieces being collected.
struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, piece: Piece) -> Result<(), Shortage> {
        make_room_for_one(&mut self.0, WHAT)?;
        self.0.push(piece);
        Ok(())
    }

    /// Appends points that stay, joined with the last piece if they follow it directly.
    fn stay(&mut self, range: Range<u32>) -> Result<(), Shortage> {
        match self.0.last_mut() {
            _ if range.is_empty() => Ok(()),
            Some(Piece::Stay(before)) if before.end == range.start => {
                before.end = range.end;
                Ok(())
            }
            _ => self.push(Piece::Stay(range)),
        }
    }
}

impl Remap {
    /// An array in the new order, from the array in the old order and the values that have arrived.
    pub(crate) fn join<V: Copy>(&self, values: &[V], came: &[V]) -> Result<Vec<V>, Shortage> {
        let mut joined = with_room(self.now, "an array of points that have moved")?;
        for piece in &self.pieces {
            match piece {
                Piece::Stay(range) => {
                    joined.extend_from_slice(&values[range.start as usize..range.end as usize]);
                }
                Piece::Came(item) => joined.push(came[*item as usize]),
            }
        }
        Ok(joined)
    }

    /// What points exclude in the new order, as [`join`](Self::join).
    fn join_rows(&self, rows: &Rows, came: &Rows) -> Result<Rows, Shortage> {
        let mut joined = Rows::default();
        if rows.is_empty() && came.is_empty() {
            return Ok(joined);
        }
        for piece in &self.pieces {
            match piece {
                Piece::Stay(range) => {
                    let mut stay = range.start as usize..range.end as usize;
                    stay.try_for_each(|index| joined.take_one(rows, index))?;
                }
                Piece::Came(item) => joined.take_one(came, *item as usize)?,
            }
        }
        Ok(joined)
    }

    /// The points outside the interior in the new order: `stay` are those by their old places,
    /// `came` those by the order of arrival.
    fn specials(&self, stay: &[Special], came: &[Special]) -> Result<Vec<Special>, Shortage> {
        let mut specials = Vec::new();
        let mut index = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Stay(range) => {
                    let first = stay.partition_point(|point| point.index < range.start);
                    let here = stay[first..].iter();
                    for point in here.take_while(|point| point.index < range.end) {
                        make_room_for_one(&mut specials, WHAT)?;
                        specials.push(Special {
                            index: index + point.index - range.start,
                            class: point.class,
                        });
                    }
                    index += range.end - range.start;
                }
                Piece::Came(item) => {
                    if let Ok(at) = came.binary_search_by_key(item, |point| point.index) {
                        make_room_for_one(&mut specials, WHAT)?;
                        specials.push(Special { index, ..came[at] });
                    }
                    index += 1;
                }
            }
        }
        Ok(specials)
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Gives the points of a set new positions and moves every point to its owner: from now on the
    /// caller's order on this rank is that of the points it owns, by ascending id
    /// ([`ids`](Self::ids)). [`Migration::bring`] moves the caller's arrays.
    ///
    /// If most points are on their owners already, only neighbouring ranks exchange messages.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn migrate(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<Migration, Error> {
        let at = set.0;
        let plan = match self.accept(set, positions)? {
            Accepted::Kept(plan) => plan,
            Accepted::Outgrown(domains) => {
                self.cut(*domains)?;
                self.plan_again(at)?
            }
        };
        let before = self.sets[at].home.len();
        let remap = match plan.placement {
            Placement::Away => {
                let remap = self.move_home(at, plan);
                // The engine may have other positions than the caller's arrays.
                remap.inspect_err(|error| self.sets[at].broken = Some(error.to_string()))?
            }
            home => {
                self.send_home(at, plan.destinations, home)?;
                None
            }
        };
        Ok(Migration { before, remap })
    }

    /// Plans again after domains were cut.
    fn plan_again(&mut self, at: usize) -> Result<Plan, Error> {
        let positions = std::mem::take(&mut self.sets[at].home.positions);
        let plan = self.plan_of(at, &positions);
        self.sets[at].home.positions = positions;
        let mut all = [self.placement(at, &plan).number()];
        let to = |plan: &Plan| plan.destinations.ranks();
        let links = &mut self.sets[at].links;
        let mut plan = links.agree(&mut self.comm, plan, to, &mut all)?;
        plan.placement = Placement::smallest(all[0]);
        Ok(plan)
    }

    /// Moves the points of a set to their owners, and sends halos.
    fn move_home(&mut self, at: usize, plan: Plan) -> Result<Option<Remap>, Error> {
        let Plan {
            special,
            mut destinations,
            ..
        } = plan;
        destinations.ghosts.clear();
        let (own, exchange) = (&self.sets[at], self.comm.begin());
        let (links, carried) = (&own.links, own.carried);
        let leaving = (&destinations, carried);
        let packed = points::post(&mut self.comm, exchange, links, &own.home, leaving);
        let came = points::receive(&mut self.comm, exchange, links, carried);
        let rank = self.rank();
        let found = packed.and(came).and_then(|[came, _]| {
            let merged = self.merge(at, destinations, came, &special)?;
            let destinations =
                Destinations::new(&merged.special, &self.division.cell_classes, rank)?;
            Ok::<_, Failure>((merged, destinations))
        });
        let own = &mut self.sets[at];
        if std::mem::take(&mut own.fresh) {
            own.links.renew();
        }
        let to = |(_, destinations): &(Merged<T>, Destinations)| destinations.ranks();
        let mut all = [Placement::new(true, own.knows_halo()).number()];
        let found = own.links.agree(&mut self.comm, found, to, &mut all)?;
        let (merged, destinations) = found;
        (own.home, own.ascending) = (merged.home, true);
        own.given = false;
        own.own_bounds = own.own_bounds.union(&merged.bounds);
        self.send_home(at, destinations, Placement::smallest(all[0]))?;
        Ok(Some(merged.remap))
    }

    /// Merges points that have arrived with those that stay.
    fn merge(
        &mut self,
        at: usize,
        destinations: Destinations,
        came: Arrived<T>,
        special: &[Special],
    ) -> Result<Merged<T>, Refusal> {
        let Arrived {
            points, sources, ..
        } = came;
        let (home, ascending) = (&self.sets[at].home, self.sets[at].ascending);
        let gone = destinations.gone()?;
        let pieces = merged(&home.ids, ascending, &gone, &points.ids)?;
        let now = home.len() - gone.len() + points.len();
        let places = collected(0..points.len() as u32, WHAT)?;
        let route = Route {
            sends: destinations.leaving,
            sources,
            places,
        };
        let remap = Remap { route, pieces, now };
        let home = Points {
            ids: remap.join(&home.ids, &points.ids)?,
            positions: remap.join(&home.positions, &points.positions)?,
            columns: (home.columns).join(&points.columns, |words, came| remap.join(words, came))?,
            excluded: remap.join_rows(&home.excluded, &points.excluded)?,
        };
        if let Some(twice) = home.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Refusal::new(format!("two points have the id {}", twice[0])));
        }
        let bounds = Bounds::of(T::positions(&points.positions), &self.division.domain);
        let came = match &self.division.domains {
            Some(domains) if self.comm.ranks() > 1 => self
                .division
                .cell_classes
                .classify(domains, &points.positions)?,
            _ => Vec::new(),
        };
        Ok(Merged {
            special: remap.specials(special, &came)?,
            bounds: bounds.map_err(Refusal::new)?,
            remap,
            home,
        })
    }
}

/// The outcome of a migration.
struct Merged<T> {
    /// How points have moved.
    remap: Remap,
    /// The points after it.
    home: Points<T>,
    /// Those of them outside the interior of this rank.
    special: Vec<Special>,
    /// The extent of those that have arrived.
    bounds: Bounds,
}
