//! The ways of a set's values between the caller's arrays and the ranks that need them.
//!
//! A rank sends the values of a point straight to all ranks that see it: to the owner, and to the
//! ranks for which the point is one of the halo. So points whose caller is not their owner take one
//! message, and if all callers own their points only halos travel. Results go back the same way,
//! from the owner to the caller.
//!
//! Points that stay on their rank are copied from array to array ([`Routes::own`]), without a
//! message.
//!
//! **Invariant:** what rank a sends to rank b is, point by point and in order, what b expects of a:
//! owned points first, halo points behind, each in the order of the caller's arrays. The number of
//! values is known on both ends, so an exchange needs no message without values.

use crate::{
    communicator::Communicator,
    domains::Domains,
    scalar::Scalar,
    transport::{Fault, Tag},
};
use nearfield_grid::memory::{Shortage, make_room_for_one};

/// Points that go to a rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Send {
    /// The rank.
    pub(crate) rank: usize,
    /// Places in the caller's arrays, those that the rank owns first.
    pub(crate) indices: Vec<u32>,
    /// How many it owns.
    pub(crate) owned: usize,
}

/// Points that come from a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Source {
    /// The rank.
    pub(crate) rank: usize,
    /// How many.
    pub(crate) points: usize,
    /// How many of them are owned here; the others are halo points.
    pub(crate) owned: usize,
}

/// Which points of a message travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those that the receiver owns.
    Owned,
    /// Those and the halo.
    All,
}

/// Both ends of a set's values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    /// By rank, ascending.
    pub(crate) sends: Vec<Send>,
    /// By rank, ascending.
    pub(crate) sources: Vec<Source>,
    /// The local index of every point that comes, source after source.
    pub(crate) places: Vec<u32>,
}

/// This rank's `positions` by the rank that gets them.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn sends<T: Scalar>(
    domains: &Domains,
    positions: &[[T; 3]],
    ranks: usize,
) -> Result<Vec<Send>, Shortage> {
    let what = "points that go to other ranks";
    let mut owned = vec![Vec::new(); ranks];
    let mut seen = vec![Vec::new(); ranks];
    domains.for_each(positions, |index, owner, all| {
        let index = index as u32;
        make_room_for_one(&mut owned[owner as usize], what)?;
        owned[owner as usize].push(index);
        for rank in all.iter().filter(|rank| **rank != owner) {
            make_room_for_one(&mut seen[*rank as usize], what)?;
            seen[*rank as usize].push(index);
        }
        Ok(())
    })?;
    let both = owned.into_iter().zip(seen).enumerate();
    let send = |(rank, (mut indices, seen)): (usize, (Vec<u32>, Vec<u32>))| {
        let owned = indices.len();
        let room = indices.try_reserve_exact(seen.len());
        room.map_err(|_| Shortage::of::<u32>(owned + seen.len(), what))?;
        indices.extend_from_slice(&seen);
        Ok(Send {
            rank,
            indices,
            owned,
        })
    };
    let sends: Result<Vec<Send>, Shortage> = both.map(send).collect();
    Ok(sends?
        .into_iter()
        .filter(|send| !send.indices.is_empty())
        .collect())
}

impl Send {
    /// The places in the caller's arrays of the points that travel.
    fn part(&self, part: Part) -> &[u32] {
        match part {
            Part::Owned => &self.indices[..self.owned],
            Part::All => &self.indices,
        }
    }
}

impl Source {
    /// How many points travel.
    fn part(&self, part: Part) -> usize {
        match part {
            Part::Owned => self.owned,
            Part::All => self.points,
        }
    }
}

impl Routes {
    /// Sends values of the caller's points to other ranks; `pack` appends those of a
    /// point to a message.
    pub(crate) fn post(
        &self,
        comm: &mut Communicator,
        tag: Tag,
        part: Part,
        pack: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), Fault> {
        for send in &self.sends {
            let indices = send.part(part);
            if !indices.is_empty() && send.rank != comm.rank() {
                let mut message = Vec::new();
                for index in indices {
                    pack(*index as usize, &mut message);
                }
                comm.post(send.rank, tag, message)?;
            }
        }
        Ok(())
    }

    /// Calls `copy` with the place in the caller's arrays and the local index of every point that
    /// stays on this rank.
    pub(crate) fn own(&self, rank: usize, part: Part, mut copy: impl FnMut(usize, usize)) {
        let send = self.sends.iter().find(|send| send.rank == rank);
        let mut first = 0;
        for source in &self.sources {
            if let Some(send) = send.filter(|_| source.rank == rank) {
                let places = &self.places[first..];
                for (index, place) in send.part(part).iter().zip(places) {
                    copy(*index as usize, *place as usize);
                }
            }
            first += source.points;
        }
    }

    /// Waits for the values of local points that other ranks gave, of `width` bytes each; `take`
    /// gets the local index and the bytes.
    pub(crate) fn collect(
        &self,
        comm: &mut Communicator,
        tag: Tag,
        part: Part,
        width: usize,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), Fault> {
        let mut first = 0;
        for source in &self.sources {
            let points = source.part(part);
            if points != 0 && width != 0 && source.rank != comm.rank() {
                let message = comm.receive_exactly(source.rank, tag, points * width)?;
                let places = &self.places[first..first + points];
                for (place, value) in places.iter().zip(message.chunks_exact(width)) {
                    take(*place as usize, value);
                }
            }
            first += source.points;
        }
        Ok(())
    }

    /// Sends results of owned points to their callers on other ranks; `pack` appends those of a
    /// local point.
    pub(crate) fn post_back(
        &self,
        comm: &mut Communicator,
        tag: Tag,
        pack: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), Fault> {
        let mut first = 0;
        for source in &self.sources {
            if source.owned != 0 && source.rank != comm.rank() {
                let mut message = Vec::new();
                for place in &self.places[first..first + source.owned] {
                    pack(*place as usize, &mut message);
                }
                comm.post(source.rank, tag, message)?;
            }
            first += source.points;
        }
        Ok(())
    }

    /// Waits for the results of the caller's points on other ranks; `take` gets the place in the
    /// caller's arrays and the rest of the message, and returns how many bytes of it were those of
    /// the point, or none if there are too few.
    pub(crate) fn collect_back(
        &self,
        comm: &mut Communicator,
        tag: Tag,
        mut take: impl FnMut(usize, &[u8]) -> Option<usize>,
    ) -> Result<(), Fault> {
        let me = comm.rank();
        let others = |send: &&Send| send.owned != 0 && send.rank != me;
        for send in self.sends.iter().filter(others) {
            let message = comm.receive(send.rank, tag)?;
            let mut at = 0;
            for index in send.part(Part::Owned) {
                let rest = message.get(at..).unwrap_or_default();
                match take(*index as usize, rest) {
                    Some(used) => at += used,
                    None => return Err(comm.wrong_length(message.len(), at + 1)),
                }
            }
            if at != message.len() {
                return Err(comm.wrong_length(message.len(), at));
            }
        }
        Ok(())
    }
}
