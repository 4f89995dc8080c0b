//! Points that change their rank, and arrays of the caller that follow them.
//!
//! Only points that leave are in messages. Points that stay are merged by id with those that come,
//! in runs that stay together, so a step in which few points leave copies arrays in large pieces.
//! The plan outlives the set's own routes, so any number of arrays can follow.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::MIGRATE,
    error::Refusal,
    points::{self, Arrived, Points, order_by_id},
    routes::{Departures, Way},
    seen::Special,
};
use nearfield_grid::{
    Bounds,
    memory::{Shortage, copied, make_room, make_room_for_one, with_room, zeroed},
};
use std::ops::Range;

/// The way that the points of a set took, made by [`RankedEngine::migrate`].
#[derive(Debug, Clone)]
#[must_use = "arrays beside the positions are in their old order until they are brought along"]
pub struct Migration {
    /// Points of the caller before.
    before: usize,
    /// None if every point, of all ranks, is where it was.
    moved: Option<Moved>,
}

/// The new order, and where it comes from.
#[derive(Debug, Clone)]
struct Moved {
    /// Points that have left, and those that have come, in the order of their coming.
    way: Way,
    pieces: Vec<Piece>,
    /// Points of the caller now.
    now: usize,
}

/// Consecutive points of the new order.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Points that stay, by their places before.
    Stay(Range<u32>),
    /// A point that has come.
    Came(u32),
}

/// The purpose of the memory, for messages.
const WHAT: &str = "the order after a migration";

/// The points with `ids`, less those that leave, merged with those that come, by ascending id.
fn merged(
    ids: &[u64],
    ascending: bool,
    departures: &Departures,
    came: &[u64],
) -> Result<Vec<Piece>, Shortage> {
    let left = departures
        .leaving
        .iter()
        .map(|send| send.indices.len())
        .sum();
    let mut gone: Vec<u32> = with_room(left, WHAT)?;
    departures
        .leaving
        .iter()
        .for_each(|send| gone.extend_from_slice(&send.indices));
    gone.sort_unstable();
    let mut pieces = Pieces(Vec::new());
    let order = order_by_id(came)?;
    if ascending {
        let (mut at, mut gone) = (0, gone.into_iter().peekable());
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

/// Pieces in the making.
struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, piece: Piece) -> Result<(), Shortage> {
        make_room_for_one(&mut self.0, WHAT)?;
        self.0.push(piece);
        Ok(())
    }

    /// Points that stay, joined with those before if they follow on them.
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

impl Moved {
    /// An array in the new order, of the one before and of the values that have come.
    fn join<V: Copy>(&self, values: &[V], came: &[V]) -> Result<Vec<V>, Shortage> {
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

    /// Points outside of the interior in the new order: `stay` by their places before, `came` by
    /// the order of their coming.
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

impl Migration {
    /// An array with one element per point in the order before the migration, brought into the
    /// order after it. Collective: all ranks bring the same arrays in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the array has another length on some
    /// rank, or memory is short there.
    pub fn bring<T: Scalar, V: bytemuck::Pod>(
        &self,
        engine: &mut RankedEngine<T>,
        values: &[V],
    ) -> Result<Vec<V>, Error> {
        let (found, expected) = (values.len(), self.before);
        let room = || {
            if found != expected {
                return Err(Refusal::new(format!(
                    "{found} values for {expected} points: bring arrays in the order before"
                )));
            }
            let came = self
                .moved
                .as_ref()
                .map_or(0, |moved| moved.way.places.len());
            Ok(zeroed(came, "an array of points that have come")?)
        };
        let comm = &mut engine.comm;
        let mut came: Vec<V> = comm.agree(room(), &mut [])?;
        let joined = match &self.moved {
            None => copied(values, "an array of points"),
            Some(moved) => {
                let pack = |index: usize, message: &mut Vec<u8>| {
                    message.extend_from_slice(bytemuck::bytes_of(&values[index]));
                };
                moved.way.post(comm, MIGRATE, size_of::<V>(), pack)?;
                let take = |place: usize, bytes: &[u8]| {
                    came[place] = bytemuck::pod_read_unaligned(bytes);
                };
                moved.way.collect(comm, MIGRATE, size_of::<V>(), take)?;
                moved.join(values, &came)
            }
        };
        comm.agree(joined.map_err(Refusal::from), &mut [])
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Gives the points of a set new positions and makes the owner of every point its caller: from
    /// now on the caller's order on this rank is that of the points it owns, by ascending id
    /// ([`ids`](Self::ids)). [`Migration::bring`] takes arrays of the caller along.
    ///
    /// Where most points are on the rank that owns them, messages go between neighbouring ranks
    /// only.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn migrate(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<Migration, Error> {
        if let Some(domains) = self.accept(set, positions)? {
            self.cut(domains)?;
        }
        let migrated = self.migrate_home(set.0);
        // The engine may have other positions than the caller's arrays.
        self.sets[set.0].broken = migrated.as_ref().err().map(Error::to_string);
        migrated
    }

    /// Makes owners the callers of a set's points, and brings halos.
    fn migrate_home(&mut self, at: usize) -> Result<Migration, Error> {
        self.discard(at)?;
        let before = self.sets[at].home.len();
        let surveyed = self.survey(at);
        let ranks = [self.rank(), self.ranks()];
        let found = surveyed.and_then(|special| {
            let mut departures = Departures::new(&special, &self.seen, ranks)?;
            departures.seen.clear();
            Ok((special, departures))
        });
        let own = &mut self.sets[at];
        let leaves = |(_, departures): &(_, Departures)| !departures.leaving.is_empty();
        let stay = own.ascending && !found.as_ref().is_ok_and(leaves);
        let mut all_stay = [if stay { 1.0 } else { 0.0 }];
        let to = |(_, departures): &(_, Departures)| departures.ranks();
        let found = own.links.agree(&mut self.comm, found, to, &mut all_stay)?;
        let (special, departures) = found;
        if all_stay[0] == 1.0 {
            self.place_set(at, Some(special))?;
            return Ok(Migration {
                before,
                moved: None,
            });
        }
        let radii = own.has_radii;
        points::post(&mut self.comm, &own.links, &own.home, &departures, radii)?;
        let [came, _] = points::receive(&mut self.comm, &own.links, radii)?;
        let moved = self.merge(at, departures, came, &special);
        let (moved, home, special, bounds) = self.comm.agree(moved, &mut [])?;
        let own = &mut self.sets[at];
        if std::mem::take(&mut own.fresh) {
            own.links.renew();
        }
        (own.home, own.ascending) = (home, true);
        own.own_bounds = own.own_bounds.union(&bounds);
        self.place_set(at, Some(special))?;
        Ok(Migration {
            before,
            moved: Some(moved),
        })
    }

    /// The points of a set that are not inside this rank's domain.
    fn survey(&mut self, at: usize) -> Result<Vec<Special>, Refusal> {
        let set = &self.sets[at];
        match &self.domains {
            Some(domains) if self.comm.ranks() > 1 => {
                let seen = &mut self.seen;
                Ok(seen.survey(domains, &set.home.positions, &set.own_bounds)?)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The plan of a migration, the points after it, those of them that are not inside this rank's
    /// domain, and the extent of those that have come.
    fn merge(
        &mut self,
        at: usize,
        departures: Departures,
        came: Arrived<T>,
        special: &[Special],
    ) -> Result<(Moved, Points<T>, Vec<Special>, Bounds), Refusal> {
        let Arrived {
            points,
            sources,
            short,
        } = came;
        if let Some(shortage) = short {
            return Err(shortage.into());
        }
        let (home, ascending) = (&self.sets[at].home, self.sets[at].ascending);
        let pieces = merged(&home.ids, ascending, &departures, &points.ids)?;
        let left: usize = departures
            .leaving
            .iter()
            .map(|send| send.indices.len())
            .sum();
        let now = home.len() - left + points.len();
        let mut places = Vec::new();
        make_room(&mut places, points.len(), WHAT)?;
        places.extend(0..points.len() as u32);
        let way = Way {
            sends: departures.leaving,
            sources,
            places,
        };
        let moved = Moved { way, pieces, now };
        let home = Points {
            ids: moved.join(&home.ids, &points.ids)?,
            positions: moved.join(&home.positions, &points.positions)?,
            radii: if home.radii.is_empty() && points.radii.is_empty() {
                Vec::new()
            } else {
                moved.join(&home.radii, &points.radii)?
            },
        };
        if let Some(twice) = home.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Refusal::new(format!("two points have the id {}", twice[0])));
        }
        let bounds = Bounds::of(T::positions(&points.positions), &self.domain);
        let came = match &self.domains {
            Some(domains) if self.comm.ranks() > 1 => {
                self.seen.classify(domains, &points.positions)?
            }
            _ => Vec::new(),
        };
        let special = moved.specials(special, &came)?;
        Ok((moved, home, special, bounds.map_err(Refusal::new)?))
    }
}
