//! Send lists and receive places: how values of a set travel between callers, owners and halos.
//!
//! Values go directly from the rank that gives a point to its owner, and to the ranks that have the
//! point in their halo. These are two [routes](Route). Once every caller owns its points the first
//! one does not exist: the owner works on the caller's arrays, and only halos travel. Results go
//! back along the first route.
//!
//! Points that stay on their rank are copied from array to array ([`Route::own`]) without a
//! message.
//!
//! **Invariants:** rank a sends to rank b, point by point and in order, the values that b expects
//! from a. Both know the number of values, so an exchange needs no empty messages. Either all ranks
//! have the first route, or none has it.

use crate::{
    cell_classes::{CellClasses, Class, Special},
    communicator::{Communicator, Exchange, RESULTS, message},
    error::{Failure, Refusal},
    transport::Tag,
};
use nearfield_grid::memory::{Shortage, copied, filled, make_room_for_one, with_room};
use std::collections::BTreeMap;

/// The points that are sent to a rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SendList {
    /// The rank.
    pub(crate) rank: usize,
    /// Places in the caller's arrays.
    pub(crate) indices: Vec<u32>,
}

/// A rank that points are sent to or received from, and their number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Peer {
    /// The rank.
    pub(crate) rank: usize,
    /// Number of points.
    pub(crate) points: usize,
}

/// Both ends of an exchange of values on one rank: what it sends, and what it receives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Route {
    /// By rank, ascending.
    pub(crate) sends: Vec<SendList>,
    /// In any order.
    pub(crate) sources: Vec<Peer>,
    /// The place of every value that is received, source after source.
    pub(crate) places: Vec<u32>,
}

/// The routes of a set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    /// From callers to owners; `None` if every caller owns its points, in the order of its arrays.
    pub(crate) owned: Option<Route>,
    /// From callers to halos.
    pub(crate) halo: Route,
}

/// Which ranks need the points of a caller, without the points that only this rank needs.
#[derive(Debug, Default)]
pub(crate) struct Destinations {
    /// Points that other ranks own.
    pub(crate) leaving: Vec<SendList>,
    /// Points in the halo of another rank.
    pub(crate) ghosts: Vec<SendList>,
    /// Owned points in the halo of other ranks, ascending.
    pub(crate) border: Vec<u32>,
    /// Those and the owned points near them, if these are wanted.
    pub(crate) near: Vec<u32>,
}

/// A list that the points of a class belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    /// Owned by this rank, and in the halo of others.
    Border,
    /// Those and the owned points near them, if these are wanted.
    Near,
    /// Owned by that rank.
    Leaving(u32),
    /// In the halo of that rank.
    Ghost(u32),
}

impl List {
    /// The lists of a class on `rank`.
    pub(crate) fn of(class: &Class, rank: usize) -> impl Iterator<Item = Self> {
        let (owner, is_own) = (class.owner, class.owner as usize == rank);
        let is_border = is_own && class.ranks.len() > 1;
        let border = is_border.then_some(Self::Border);
        let near = (is_border || is_own && class.near).then_some(Self::Near);
        let leaving = (!is_own).then_some(Self::Leaving(owner));
        let viewers = class.ranks.iter().filter(move |viewer| **viewer != owner);
        let ghosts = viewers.map(|viewer| Self::Ghost(*viewer));
        border.into_iter().chain(near).chain(leaving).chain(ghosts)
    }
}

/// The purpose of the memory, for messages.
const WHAT: &str = "points that go to other ranks";

impl Destinations {
    /// Splits the points of a survey by rank. There are far fewer classes than points, so the lists
    /// of each class are looked up once.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn new(
        special: &[Special],
        cell_classes: &CellClasses,
        rank: usize,
    ) -> Result<Self, Shortage> {
        let classes = special.iter().map(|point| point.class as usize + 1).max();
        let mut numbers: Vec<usize> = filled(classes.unwrap_or(0), 0, WHAT)?;
        for point in special {
            numbers[point.class as usize] += 1;
        }
        let present = || (0..).zip(&numbers).filter(|(_, number)| **number != 0);
        let mut totals: BTreeMap<List, usize> = BTreeMap::new();
        for (class, number) in present() {
            for list in List::of(cell_classes.class(class), rank) {
                *totals.entry(list).or_default() += number;
            }
        }
        let mut lists = Vec::new();
        for total in totals.values() {
            lists.push(with_room::<u32>(*total, WHAT)?);
        }
        let mut slots = filled(numbers.len(), Vec::new(), WHAT)?;
        for (class, _) in present() {
            let slot = |list: List| totals.range(..list).count();
            slots[class as usize] = List::of(cell_classes.class(class), rank)
                .map(slot)
                .collect();
        }
        for point in special {
            for slot in &slots[point.class as usize] {
                lists[*slot].push(point.index);
            }
        }
        let mut destinations = Self::default();
        for (list, indices) in totals.into_keys().zip(lists) {
            let send = |rank: u32, indices| SendList {
                rank: rank as usize,
                indices,
            };
            match list {
                List::Border => destinations.border = indices,
                List::Near => destinations.near = indices,
                List::Leaving(owner) => destinations.leaving.push(send(owner, indices)),
                List::Ghost(viewer) => destinations.ghosts.push(send(viewer, indices)),
            }
        }
        Ok(destinations)
    }

    /// The ranks that points are sent to.
    pub(crate) fn ranks(&self) -> Vec<usize> {
        let both = self.leaving.iter().chain(&self.ghosts);
        let mut ranks: Vec<usize> = both.map(|send| send.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The points that other ranks own, ascending.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn gone(&self) -> Result<Vec<u32>, Shortage> {
        let left = self.leaving.iter().map(|send| send.indices.len()).sum();
        let mut gone: Vec<u32> = with_room(left, WHAT)?;
        for send in &self.leaving {
            gone.extend_from_slice(&send.indices);
        }
        gone.sort_unstable();
        Ok(gone)
    }

    /// The send lists to the owners: the points that leave, and for this rank the rest of `points`
    /// points, which stay.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn with_own(&self, points: usize, rank: usize) -> Result<Vec<SendList>, Shortage> {
        let gone = self.gone()?;
        let mut indices = with_room(points - gone.len(), WHAT)?;
        let mut first = 0;
        for end in gone.into_iter().chain([points as u32]) {
            indices.extend(first..end);
            first = end + 1;
        }
        let mut sends = copies(&self.leaving)?;
        let at = sends.partition_point(|send| send.rank < rank);
        sends.insert(at, SendList { rank, indices });
        Ok(sends)
    }
}

/// Adds a point to the list of a rank. A rank has few partners, however many ranks there are.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn add(sends: &mut Vec<SendList>, rank: usize, index: u32) -> Result<(), Shortage> {
    let at = match sends.binary_search_by_key(&rank, |send| send.rank) {
        Ok(at) => at,
        Err(at) => {
            make_room_for_one(sends, WHAT)?;
            let indices = Vec::new();
            sends.insert(at, SendList { rank, indices });
            at
        }
    };
    let indices = &mut sends[at].indices;
    make_room_for_one(indices, WHAT)?;
    indices.push(index);
    Ok(())
}

/// Copies send lists.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn copies(sends: &[SendList]) -> Result<Vec<SendList>, Shortage> {
    let copy = |send: &SendList| {
        Ok(SendList {
            rank: send.rank,
            indices: copied(&send.indices, WHAT)?,
        })
    };
    sends.iter().map(copy).collect()
}

/// The points that are sent to a rank.
pub(crate) fn to(sends: &[SendList], rank: usize) -> &[u32] {
    let at = sends.binary_search_by_key(&rank, |send| send.rank);
    at.map_or(&[], |at| &sends[at].indices)
}

impl Route {
    /// Sends values of the caller's points to other ranks; `pack` appends those of a point, of
    /// `width` bytes, to a message. If memory is short for the message of a rank, that rank gets an
    /// empty one, and this rank refuses.
    pub(crate) fn post(
        &self,
        comm: &mut Communicator,
        on: (Tag, Exchange),
        width: usize,
        pack: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), Failure> {
        let (me, mut posted) = (comm.rank(), Ok(()));
        for send in &self.sends {
            if send.rank == me || send.indices.is_empty() || width == 0 {
                continue;
            }
            let message = message(width * send.indices.len()).map(|mut message| {
                for index in &send.indices {
                    pack(*index as usize, &mut message);
                }
                message
            });
            let message = message.unwrap_or_else(|shortage| {
                posted = Err(shortage);
                Vec::new()
            });
            comm.post(send.rank, on.0, on.1, message)?;
        }
        Ok(posted?)
    }

    /// Calls `copy` with the place in the caller's arrays and the place at the other end of every
    /// point that stays on this rank.
    pub(crate) fn own(&self, rank: usize, mut copy: impl FnMut(usize, usize)) {
        let mut first = 0;
        for source in &self.sources {
            if source.rank == rank {
                let places = &self.places[first..first + source.points];
                for (index, place) in to(&self.sends, rank).iter().zip(places) {
                    copy(*index as usize, *place as usize);
                }
            }
            first += source.points;
        }
    }

    /// Waits for values from other ranks, of `width` bytes each; `take` gets the place and the
    /// bytes. If one of them refuses, this rank does not know why.
    pub(crate) fn collect(
        &self,
        comm: &mut Communicator,
        on: (Tag, Exchange),
        width: usize,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), Failure> {
        let mut first = 0;
        for source in &self.sources {
            let points = source.points;
            if points != 0 && width != 0 && source.rank != comm.rank() {
                let bytes = points * width;
                let Some(message) = comm.receive_exactly(source.rank, on.0, on.1, bytes)? else {
                    return Err(Refusal::echo(source.rank).into());
                };
                let places = &self.places[first..];
                for (place, value) in places.iter().zip(message.chunks_exact(width)) {
                    take(*place as usize, value);
                }
            }
            first += points;
        }
        Ok(())
    }

    /// Sends results back to callers on other ranks; `pack` appends those of a point by its place,
    /// which have `bytes` bytes. If memory is short for the message of a rank, that rank gets an
    /// empty one, and this rank refuses.
    pub(crate) fn post_back(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        bytes: impl Fn(usize) -> usize,
        pack: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), Failure> {
        let (mut first, mut packed) = (0, Ok(()));
        for source in &self.sources {
            let places = self.places[first..first + source.points].iter();
            let places = places.map(|place| *place as usize);
            if source.points != 0 && source.rank != comm.rank() {
                let message = message(places.clone().map(&bytes).sum()).map(|mut message| {
                    places.for_each(|place| pack(place, &mut message));
                    message
                });
                let message = message.unwrap_or_else(|shortage| {
                    packed = Err(shortage);
                    Vec::new()
                });
                comm.post(source.rank, RESULTS, exchange, message)?;
            }
            first += source.points;
        }
        Ok(packed?)
    }

    /// Waits for the results of the caller's points on other ranks; `take` gets the place in the
    /// caller's arrays and the rest of the message, and returns the number of bytes that it used,
    /// or `None` if there are too few. If another rank refuses, this one does not know why.
    pub(crate) fn collect_back(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut take: impl FnMut(usize, &[u8]) -> Option<usize>,
    ) -> Result<(), Failure> {
        let me = comm.rank();
        let others = |send: &&SendList| !send.indices.is_empty() && send.rank != me;
        for send in self.sends.iter().filter(others) {
            let message = comm.receive(send.rank, RESULTS, exchange)?;
            if message.is_empty() {
                return Err(Refusal::echo(send.rank).into());
            }
            let mut at = 0;
            for index in &send.indices {
                let rest = message.get(at..).unwrap_or_default();
                match take(*index as usize, rest) {
                    Some(used) => at += used,
                    None => return Err(comm.wrong_length(message.len(), at + 1).into()),
                }
            }
            if at != message.len() {
                return Err(comm.wrong_length(message.len(), at).into());
            }
        }
        Ok(())
    }
}
