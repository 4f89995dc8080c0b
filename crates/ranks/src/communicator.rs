//! A transport, and the two things that every call of the engine does with it: agree, and exchange
//! messages with partners.
//!
//! # Agreement
//!
//! Ranks agree before anything irrevocable: a minimum over all ranks tells whether some rank
//! refuses, and only then does its text go around. Numbers that a call needs from all ranks anyway
//! travel in the same reduction.
//!
//! # Partners
//!
//! A rank knows whom it sends to, but not from whom it gets. [`Links`] keep a symmetric set of
//! partners, which exchange a message each time, an empty one if there is nothing to say. A rank
//! that has to send to another one says so in the agreement before the exchange, and then all ranks
//! tell all others their partners. As long as partners stay the same, messages go between them
//! only.
//!
//! **Invariant:** rank a has b among its partners if and only if b has a.

use crate::{
    error::{Error, Refusal},
    transport::{Fault, FaultCause, Reduction, Tag, Transport},
};
use std::time::{Duration, Instant};

/// Positions on their way to owners and halos.
pub(crate) const PLACE: Tag = Tag(Tag::FIRST_FREE);
/// Points that change their rank.
pub(crate) const MIGRATE: Tag = Tag(Tag::FIRST_FREE + 1);
/// Fields of targets and sources.
pub(crate) const FIELDS: Tag = Tag(Tag::FIRST_FREE + 2);
/// Results on their way to the caller's order.
pub(crate) const RESULTS: Tag = Tag(Tag::FIRST_FREE + 3);
/// Ids on their way to the rank that checks them.
pub(crate) const IDS: Tag = Tag(Tag::FIRST_FREE + 4);
/// Positions of the first set on their way; those of the others have the tags behind it. The halo
/// of one set may still be under way when the points of another one travel.
const SETS: u16 = Tag::FIRST_FREE + 1000;
/// Messages of the program to rank 0.
pub(crate) const TOGETHER: Tag = Tag(Tag::FIRST_FREE + 100);

/// This rank among all ranks.
pub(crate) struct Communicator {
    transport: Box<dyn Transport>,
    /// Time spent in waiting for messages, since the beginning.
    pub(crate) waited: Duration,
    /// Time spent in collective operations, which is time spent in waiting for the slowest rank.
    pub(crate) agreed: Duration,
}

impl Communicator {
    /// The rank behind a transport.
    pub(crate) fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            waited: Duration::ZERO,
            agreed: Duration::ZERO,
        }
    }

    /// The number of this rank.
    pub(crate) fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.transport.ranks()
    }

    /// Returns `local` if no rank refuses, and the refusal of the lowest rank on all of them
    /// otherwise. `minima` become the minima over all ranks.
    pub(crate) fn agree<R>(
        &mut self,
        local: Result<R, Refusal>,
        minima: &mut [f64],
    ) -> Result<R, Error> {
        let mut values = vec![match &local {
            Ok(_) => f64::INFINITY,
            Err(_) => self.rank() as f64,
        }];
        values.extend_from_slice(minima);
        self.reduce(&mut values, Reduction::Min)?;
        minima.copy_from_slice(&values[1..]);
        match local {
            Ok(value) if values[0] == f64::INFINITY => Ok(value),
            local => {
                let refusal = local.err().map(|refusal| refusal.to_bytes());
                let all = self.transport.gather(&refusal.unwrap_or_default())?;
                let rank = values[0] as usize;
                Err(Refusal::read(rank, &all[rank]))
            }
        }
    }

    /// Sums over all ranks.
    pub(crate) fn sum(&mut self, values: &mut [f64]) -> Result<(), Fault> {
        self.reduce(values, Reduction::Sum)
    }

    /// Reduces, and notes how long that took.
    fn reduce(&mut self, values: &mut [f64], by: Reduction) -> Result<(), Fault> {
        let _span = tracing::debug_span!("ranks.agree").entered();
        let begin = Instant::now();
        let reduced = self.transport.reduce(values, by);
        self.agreed += begin.elapsed();
        reduced
    }

    /// Minima over all ranks.
    pub(crate) fn min(&mut self, values: &mut [f64]) -> Result<(), Fault> {
        self.reduce(values, Reduction::Min)
    }

    /// Ends the work of all ranks; returns the fault that holds.
    pub(crate) fn fail(&mut self, fault: Fault) -> Fault {
        self.transport.fail(fault)
    }

    /// The messages of all ranks, by rank, on every rank.
    pub(crate) fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        self.transport.gather(message)
    }

    /// A number of every rank, by rank.
    pub(crate) fn gather_number(&mut self, number: u64) -> Result<Vec<u64>, Fault> {
        let all = self.transport.gather(&number.to_ne_bytes())?;
        all.iter()
            .map(|bytes| match bytes.first_chunk() {
                Some(bytes) => Ok(u64::from_ne_bytes(*bytes)),
                None => Err(self.wrong_length(bytes.len(), 8)),
            })
            .collect()
    }

    /// Sends a message and returns at once.
    pub(crate) fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault> {
        self.transport.post(to, tag, message)
    }

    /// Waits for a message.
    pub(crate) fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault> {
        let _span = tracing::debug_span!("ranks.wait", from).entered();
        let begin = Instant::now();
        let received = self.transport.receive(from, tag);
        self.waited += begin.elapsed();
        received
    }

    /// Waits for a message that must have `bytes` bytes.
    pub(crate) fn receive_exactly(
        &mut self,
        from: usize,
        tag: Tag,
        bytes: usize,
    ) -> Result<Vec<u8>, Fault> {
        let message = self.receive(from, tag)?;
        if message.len() != bytes {
            return Err(self.wrong_length(message.len(), bytes));
        }
        Ok(message)
    }

    /// Ends the work of all ranks because of a message that has another length than expected.
    pub(crate) fn wrong_length(&mut self, found: usize, expected: usize) -> Fault {
        let cause = FaultCause::Message { found, expected };
        let rank = self.rank();
        self.transport.fail(Fault { rank, cause })
    }
}

/// The ranks that a kind of exchange goes between.
#[derive(Debug)]
pub(crate) struct Links {
    /// Tells their messages from those of other links.
    pub(crate) tag: Tag,
    /// Ascending.
    partners: Vec<usize>,
    /// True if all ranks find their partners anew at the next exchange.
    renew: bool,
}

impl Links {
    /// No partners yet, of an exchange that ends before another one begins.
    pub(crate) fn new() -> Self {
        Self::tagged(PLACE)
    }

    /// No partners yet, of the points of a set.
    pub(crate) fn of_set(at: usize) -> Self {
        // Far more sets than an engine has memory for would use a tag twice.
        Self::tagged(Tag(SETS + (at % 20_000) as u16))
    }

    fn tagged(tag: Tag) -> Self {
        Self {
            tag,
            partners: Vec::new(),
            renew: true,
        }
    }

    /// Finds partners anew at the next exchange, because the ones there are may be too many. To be
    /// called on all ranks.
    pub(crate) fn renew(&mut self) {
        self.renew = true;
    }

    /// The partners, ascending.
    pub(crate) fn partners(&self) -> &[usize] {
        &self.partners
    }

    /// Agrees on `local`, whose messages go to the ranks that `to` returns, and sees to it that
    /// these are partners. `minima` become the minima over all ranks.
    pub(crate) fn agree<R>(
        &mut self,
        comm: &mut Communicator,
        local: Result<R, Refusal>,
        to: impl Fn(&R) -> Vec<usize>,
        minima: &mut [f64],
    ) -> Result<R, Error> {
        let needed = local.as_ref().map(to).unwrap_or_default();
        let known = |rank: &usize| self.partners.binary_search(rank).is_ok();
        let settled = !self.renew && needed.iter().all(known);
        let mut lowest = vec![if settled { 1.0 } else { 0.0 }];
        lowest.extend_from_slice(minima);
        let value = comm.agree(local, &mut lowest)?;
        minima.copy_from_slice(&lowest[1..]);
        if lowest[0] == 0.0 {
            let mine: Vec<u64> = needed.iter().map(|rank| *rank as u64).collect();
            let all = comm.transport.gather(bytemuck::cast_slice(&mine))?;
            let (me, mut partners) = (comm.rank(), needed);
            for (rank, theirs) in all.iter().enumerate() {
                let (theirs, _) = theirs.as_chunks();
                if theirs.iter().any(|to| u64::from_ne_bytes(*to) == me as u64) {
                    partners.push(rank);
                }
            }
            partners.sort_unstable();
            partners.dedup();
            self.partners = partners;
            self.renew = false;
        }
        Ok(value)
    }
}
