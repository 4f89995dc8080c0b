//! The ways of a set's values between the caller's arrays and the ranks that need them.
//!
//! Values go straight from the rank that gives a point to its owner, and to the ranks whose halo it
//! is in. These are two [ways](Way). Once every caller owns its points the first one is not there:
//! the owner works on the caller's arrays, and halos alone travel. Results go back on the first
//! way.
//!
//! Points that stay on their rank are copied from array to array ([`Way::own`]), without a message.
//!
//! **Invariants:** rank a sends to rank b, point by point and in order, the values that b expects
//! of a. The number of values is known on both ends, so an exchange needs no message without
//! values. All ranks have the first way, or none has it.

use crate::{
    communicator::{Communicator, Exchange, RESULTS, message},
    error::{Failure, Refusal},
    seen::{Class, Seen, Special},
    transport::Tag,
};
use nearfield_grid::memory::{Shortage, copied, filled, make_room_for_one, with_room};
use std::collections::BTreeMap;

/// Points that go to a rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Send {
    /// The rank.
    pub(crate) rank: usize,
    /// Places in the caller's arrays.
    pub(crate) indices: Vec<u32>,
}

/// Points that come from a rank, or go there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parcel {
    /// The rank.
    pub(crate) rank: usize,
    /// How many.
    pub(crate) points: usize,
}

/// Both ends of values that travel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    /// By rank, ascending.
    pub(crate) sends: Vec<Send>,
    /// In any order.
    pub(crate) sources: Vec<Parcel>,
    /// Where every value that comes is put, source after source.
    pub(crate) places: Vec<u32>,
}

/// The ways of a set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    /// From callers to owners; none if every caller owns its points, in the order of its arrays.
    pub(crate) owned: Option<Way>,
    /// From callers to halos.
    pub(crate) halo: Way,
}

/// Where the points of a caller are needed, apart from those that this rank alone needs.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// Points that other ranks own.
    pub(crate) leaving: Vec<Send>,
    /// Points that are in the halo of a rank.
    pub(crate) seen: Vec<Send>,
    /// Points that this rank owns and others see, ascending.
    pub(crate) border: Vec<u32>,
    /// Those, and the points of this rank that are near them, if these are wanted.
    pub(crate) near: Vec<u32>,
}

/// A list of departures that points of a class belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    /// Owned by this rank and seen by others.
    Border,
    /// Those, and others of this rank that are near them, if these are wanted.
    Near,
    /// Owned by that rank.
    Leaving(u32),
    /// In the halo of that rank.
    Seen(u32),
}

impl List {
    /// Those of a class, as `rank` sees it.
    pub(crate) fn of(class: &Class, rank: usize) -> impl Iterator<Item = Self> {
        let (owner, is_own) = (class.owner, class.owner as usize == rank);
        let is_border = is_own && class.ranks.len() > 1;
        let border = is_border.then_some(Self::Border);
        let near = (is_border || is_own && class.near).then_some(Self::Near);
        let leaving = (!is_own).then_some(Self::Leaving(owner));
        let viewers = class.ranks.iter().filter(move |viewer| **viewer != owner);
        let seen = viewers.map(|viewer| Self::Seen(*viewer));
        border.into_iter().chain(near).chain(leaving).chain(seen)
    }
}

/// The purpose of the memory, for messages.
const WHAT: &str = "points that go to other ranks";

impl Departures {
    /// By rank, the points of a survey that have to go there. Classes are far fewer than points, so
    /// what a class is for is looked at once.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn new(special: &[Special], seen: &Seen, rank: usize) -> Result<Self, Shortage> {
        let classes = special.iter().map(|point| point.class as usize + 1).max();
        let mut numbers: Vec<usize> = filled(classes.unwrap_or(0), 0, WHAT)?;
        for point in special {
            numbers[point.class as usize] += 1;
        }
        let present = || (0..).zip(&numbers).filter(|(_, number)| **number != 0);
        let mut totals: BTreeMap<List, usize> = BTreeMap::new();
        for (class, number) in present() {
            for list in List::of(seen.class(class), rank) {
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
            slots[class as usize] = List::of(seen.class(class), rank).map(slot).collect();
        }
        for point in special {
            for slot in &slots[point.class as usize] {
                lists[*slot].push(point.index);
            }
        }
        let mut departures = Self::default();
        for (list, indices) in totals.into_keys().zip(lists) {
            let send = |rank: u32, indices| Send {
                rank: rank as usize,
                indices,
            };
            match list {
                List::Border => departures.border = indices,
                List::Near => departures.near = indices,
                List::Leaving(owner) => departures.leaving.push(send(owner, indices)),
                List::Seen(viewer) => departures.seen.push(send(viewer, indices)),
            }
        }
        Ok(departures)
    }

    /// The ranks that get points.
    pub(crate) fn ranks(&self) -> Vec<usize> {
        let both = self.leaving.iter().chain(&self.seen);
        let mut ranks: Vec<usize> = both.map(|send| send.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The way to the owners: what leaves, and the other ones of `points` points, which stay.
    ///
    /// # Errors
    /// [`Shortage`].
    pub(crate) fn with_own(&self, points: usize, rank: usize) -> Result<Vec<Send>, Shortage> {
        let left = self.leaving.iter().map(|send| send.indices.len()).sum();
        let mut gone: Vec<u32> = with_room(left, WHAT)?;
        for send in &self.leaving {
            gone.extend_from_slice(&send.indices);
        }
        gone.sort_unstable();
        let mut indices = with_room(points - gone.len(), WHAT)?;
        let mut first = 0;
        for end in gone.into_iter().chain([points as u32]) {
            indices.extend(first..end);
            first = end + 1;
        }
        let mut sends = copies(&self.leaving)?;
        let at = sends.partition_point(|send| send.rank < rank);
        sends.insert(at, Send { rank, indices });
        Ok(sends)
    }
}

/// Adds a point that goes to a rank. A rank has few partners, however many ranks there are.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn add(sends: &mut Vec<Send>, rank: usize, index: u32) -> Result<(), Shortage> {
    let at = match sends.binary_search_by_key(&rank, |send| send.rank) {
        Ok(at) => at,
        Err(at) => {
            make_room_for_one(sends, WHAT)?;
            let indices = Vec::new();
            sends.insert(at, Send { rank, indices });
            at
        }
    };
    let indices = &mut sends[at].indices;
    make_room_for_one(indices, WHAT)?;
    indices.push(index);
    Ok(())
}

/// The same points once more.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn copies(sends: &[Send]) -> Result<Vec<Send>, Shortage> {
    let copy = |send: &Send| {
        Ok(Send {
            rank: send.rank,
            indices: copied(&send.indices, WHAT)?,
        })
    };
    sends.iter().map(copy).collect()
}

/// The points that go to a rank.
pub(crate) fn to(sends: &[Send], rank: usize) -> &[u32] {
    let at = sends.binary_search_by_key(&rank, |send| send.rank);
    at.map_or(&[], |at| &sends[at].indices)
}

impl Way {
    /// Sends values of the caller's points to other ranks; `pack` appends those of a point, of
    /// `width` bytes, to a message. A rank whose message there is no memory for gets an empty one,
    /// and this rank refuses.
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

    /// Waits for values that other ranks gave, of `width` bytes each; `take` gets the place and the
    /// bytes. If one of them refuses, this rank knows no more.
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
    /// which have `bytes` bytes. A rank whose message there is no memory for gets an empty one, and
    /// this rank refuses.
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
    /// caller's arrays and the rest of the message, and returns how many bytes of it were those of
    /// the point, or none if there are too few. If another rank refuses, this one knows no more.
    pub(crate) fn collect_back(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut take: impl FnMut(usize, &[u8]) -> Option<usize>,
    ) -> Result<(), Failure> {
        let me = comm.rank();
        let others = |send: &&Send| !send.indices.is_empty() && send.rank != me;
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
