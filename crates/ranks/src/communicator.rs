//! A transport, and the two things that every call of the engine does with it: agree, and exchange
//! messages with partners.
//!
//! # Agreement
//!
//! Ranks agree before they do anything that cannot be undone. One reduction (a minimum over all
//! ranks) tells whether some rank refuses; only then is the text of the refusal sent. Other numbers
//! that a call needs from all ranks travel in the same reduction.
//!
//! # Exchanges
//!
//! Every exchange of messages has a number, which all ranks count up alike and every message
//! carries. A message that a rank did not use, because its call failed or newer points came first,
//! has a smaller number than the exchange that the rank waits for, and is dropped.
//!
//! A rank that refuses its input in a call whose messages other ranks wait for sends all of them an
//! empty message instead ([`Communicator::refuse`]). They go on to the agreement at the end of the
//! call, so one agreement suffices.
//!
//! # Partners
//!
//! A rank knows which ranks it sends to, but not which ranks send to it. [`Links`] hold a symmetric
//! set of partners, which exchange a message each time, an empty one if there is nothing to send. A
//! rank that has to send to a new one says so in the agreement before the exchange, and then every
//! rank tells those that it sends to. While partners stay the same, only they exchange messages.
//!
//! **Invariant:** rank a has b among its partners if and only if b has a.

use crate::{
    error::{Error, Failure, Refusal},
    transport::{Announced, DeviceMemory, Fault, FaultCause, Handed, Reduction, Tag, Transport},
};
use bytemuck::{Pod, Zeroable};
use nearfield_grid::memory::{Shortage, make_room, with_room};
use std::{
    cmp::Ordering,
    time::{Duration, Instant},
};

/// Positions on their way to owners and halos.
pub(crate) const PLACE: Tag = Tag(Tag::FIRST_FREE);
/// Arrays of points that change their rank.
pub(crate) const MIGRATE: Tag = Tag(Tag::FIRST_FREE + 1);
/// Fields of targets and sources.
pub(crate) const FIELDS: Tag = Tag(Tag::FIRST_FREE + 2);
/// Results on their way to the caller's order.
pub(crate) const RESULTS: Tag = Tag(Tag::FIRST_FREE + 3);
/// Numbers for single ranks.
const AROUND: Tag = Tag(Tag::FIRST_FREE + 4);
/// Positions of the first set; the next sets have the next tags. The halo of one set may still be
/// under way when the points of another one are sent.
const SETS: u16 = Tag::FIRST_FREE + 1000;
/// Messages of the program to rank 0.
const TOGETHER: Tag = Tag(Tag::FIRST_FREE + 100);

/// The number of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exchange(u64);

/// The message of a rank that refuses; nothing is handed over with it.
const REFUSED: [u8; 1] = [0];

/// Bytes of the number of an exchange, at the end of a message.
const NUMBER: usize = size_of::<u64>();

/// A value for another rank. It is packed, so it has no padding, whatever the value is.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub(crate) struct Item<V = u64> {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) value: V,
}

/// An empty message with room for `bytes` bytes.
///
/// # Errors
/// [`Shortage`].
pub(crate) fn message(bytes: usize) -> Result<Vec<u8>, Shortage> {
    with_room(bytes + NUMBER, "a message to another rank")
}

/// This rank among all ranks.
pub(crate) struct Communicator {
    transport: Box<dyn Transport>,
    /// Exchanges so far.
    exchanges: u64,
    /// Time spent waiting for messages so far.
    pub(crate) waited: Duration,
    /// Time spent in collective operations so far: waiting for the slowest rank.
    pub(crate) agreed: Duration,
    /// True if a rank has refused since [`Self::has_refused`] was called; the same on all ranks.
    refused: bool,
}

impl Communicator {
    /// The rank behind a transport.
    pub(crate) fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            exchanges: 0,
            waited: Duration::ZERO,
            agreed: Duration::ZERO,
            refused: false,
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
        local: Result<R, impl Into<Failure>>,
        minima: &mut [f64],
    ) -> Result<R, Error> {
        self.agree_on(local, &mut [], minima)
    }

    /// The same, and `sums` become sums over all ranks. Both are right even if a rank refuses.
    pub(crate) fn agree_on<R>(
        &mut self,
        local: Result<R, impl Into<Failure>>,
        sums: &mut [f64],
        minima: &mut [f64],
    ) -> Result<R, Error> {
        let local = match local.map_err(Into::into) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Lost(fault)) => return Err(fault.into()),
        };
        let refuses = match &local {
            Err(refusal) if !refusal.is_echo() => self.rank() as f64,
            _ => f64::INFINITY,
        };
        let exchanges = self.exchanges as f64;
        let mut values = [&*sums, &[refuses, exchanges, -exchanges], &*minima].concat();
        self.reduce(&mut values, Reduction::SumsThenMin(sums.len()))?;
        let (summed, values) = values.split_at(sums.len());
        if values[1] != -values[2] {
            return Err(self.other_calls().into());
        }
        sums.copy_from_slice(summed);
        minima.copy_from_slice(&values[3..]);
        let refused = values[0] != f64::INFINITY;
        match local {
            Ok(value) if !refused => Ok(value),
            Err(_) if !refused => Err(self.other_calls().into()),
            local => {
                self.refused = true;
                let own = local.err().filter(|refusal| !refusal.is_echo());
                let own = own.map(|refusal| refusal.to_bytes()).unwrap_or_default();
                let (all, rank) = (self.transport.gather(&own)?, values[0] as usize);
                match all.get(rank) {
                    Some(refusal) => Err(Refusal::read(rank, refusal)),
                    None => Err(self.other_calls().into()),
                }
            }
        }
    }

    /// Returns true if a rank has refused since the last call; the same on all ranks.
    pub(crate) fn has_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Sums over all ranks.
    pub(crate) fn sum(&mut self, values: &mut [f64]) -> Result<(), Fault> {
        self.reduce(values, Reduction::Sum)
    }

    /// Reduces, and adds the time to [`Self::agreed`].
    pub(crate) fn reduce(&mut self, values: &mut [f64], by: Reduction) -> Result<(), Fault> {
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

    /// Sums and minima over all ranks, in one reduction.
    pub(crate) fn sum_and_min(
        &mut self,
        sums: &mut [f64],
        minima: &mut [f64],
    ) -> Result<(), Fault> {
        let mut values = [&*sums, &*minima].concat();
        self.reduce(&mut values, Reduction::SumsThenMin(sums.len()))?;
        let (summed, smallest) = values.split_at(sums.len());
        sums.copy_from_slice(summed);
        minima.copy_from_slice(smallest);
        Ok(())
    }

    /// The messages of all ranks, by rank, on rank 0; none on the others.
    pub(crate) fn bring_to_first(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        let exchange = self.begin();
        if self.rank() != 0 {
            self.post(0, TOGETHER, exchange, message)?;
            return Ok(Vec::new());
        }
        let mut all = vec![message];
        for rank in 1..self.ranks() {
            all.push(self.receive(rank, TOGETHER, exchange)?);
        }
        Ok(all)
    }

    /// Ends the work of all ranks because this one cannot continue.
    pub(crate) fn give_up(&mut self, reason: impl ToString) -> Fault {
        let (rank, cause) = (self.rank(), FaultCause::Failed(reason.to_string()));
        self.fail(Fault { rank, cause })
    }

    /// Ends the work of all ranks; returns the fault that holds.
    pub(crate) fn fail(&mut self, fault: Fault) -> Fault {
        self.transport.fail(fault)
    }

    /// The messages of all ranks, by rank, on every rank.
    #[cfg(feature = "dam-break")]
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

    /// Begins an exchange. All ranks must call it, whether or not they take part.
    pub(crate) fn begin(&mut self) -> Exchange {
        self.exchanges += 1;
        Exchange(self.exchanges)
    }

    /// Returns an error if messages cannot be sent from GPU memory and received into it.
    pub(crate) fn takes_device_memory(&self) -> Result<(), Refusal> {
        self.transport.takes_device_memory().map_err(|why| {
            Refusal::new(format!(
                "messages from the memory of GPUs were asked for: {why}"
            ))
        })
    }

    /// Waits until announced bytes have arrived in memory of the device.
    pub(crate) fn receive_into(
        &mut self,
        parts: Vec<(Announced, DeviceMemory)>,
    ) -> Result<(), Fault> {
        let _span = tracing::debug_span!("ranks.wait").entered();
        let begin = Instant::now();
        let received = self.transport.receive_into(parts);
        self.waited += begin.elapsed();
        received
    }

    /// Returns true if messages can hand over objects.
    pub(crate) fn hands_over(&self) -> bool {
        self.transport.hands_over()
    }

    /// Sends a message of an exchange and returns at once.
    pub(crate) fn post(
        &mut self,
        to: usize,
        tag: Tag,
        exchange: Exchange,
        message: Vec<u8>,
    ) -> Result<(), Fault> {
        self.post_with(to, tag, exchange, (message, None))
    }

    /// The same with an object that is handed over.
    pub(crate) fn post_with(
        &mut self,
        to: usize,
        tag: Tag,
        exchange: Exchange,
        (mut message, with): (Vec<u8>, Option<Handed>),
    ) -> Result<(), Fault> {
        message.extend_from_slice(&exchange.0.to_ne_bytes());
        match with {
            Some(with) => self.transport.hand_over(to, tag, message, with),
            None => self.transport.post(to, tag, message),
        }
    }

    /// Refuses this rank's part of an exchange: sends an empty message to all other ranks, those
    /// that wait for one of this rank among them. Returns the failure of this rank.
    pub(crate) fn refuse(&mut self, (tag, exchange): (Tag, Exchange), refusal: Refusal) -> Failure {
        let me = self.rank();
        let told = (0..self.ranks())
            .filter(|rank| *rank != me)
            .try_for_each(|rank| self.post(rank, tag, exchange, Vec::new()));
        told.map_or_else(Failure::Lost, |()| Failure::Refused(refusal))
    }

    /// Waits for a message of an exchange. Messages of earlier exchanges, which this rank did not
    /// use, are dropped.
    pub(crate) fn receive(
        &mut self,
        from: usize,
        tag: Tag,
        exchange: Exchange,
    ) -> Result<Vec<u8>, Fault> {
        Ok(self.receive_with(from, tag, exchange)?.0)
    }

    /// The same with the object that was handed over.
    pub(crate) fn receive_with(
        &mut self,
        from: usize,
        tag: Tag,
        exchange: Exchange,
    ) -> Result<(Vec<u8>, Option<Handed>), Fault> {
        let _span = tracing::debug_span!("ranks.wait", from).entered();
        let begin = Instant::now();
        let received = loop {
            let (mut message, with) = match self.transport.receive_handed(from, tag) {
                Ok(received) => received,
                Err(fault) => break Err(fault),
            };
            let Some(number) = message.last_chunk() else {
                break Err(self.wrong_length(message.len(), NUMBER));
            };
            let found = Exchange(u64::from_ne_bytes(*number));
            match found.cmp(&exchange) {
                Ordering::Less => {}
                Ordering::Equal => {
                    message.truncate(message.len() - NUMBER);
                    break Ok((message, with));
                }
                Ordering::Greater => break Err(self.other_calls()),
            }
        };
        self.waited += begin.elapsed();
        received
    }

    /// Waits for a message of an exchange that must have `bytes` bytes. Returns `None` if its
    /// sender refuses.
    pub(crate) fn receive_exactly(
        &mut self,
        from: usize,
        tag: Tag,
        exchange: Exchange,
        bytes: usize,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let message = self.receive(from, tag, exchange)?;
        if message.is_empty() {
            return Ok(None);
        }
        if message.len() != bytes {
            return Err(self.wrong_length(message.len(), bytes));
        }
        Ok(Some(message))
    }

    /// Brings every item to its rank; returns those for this one, in any order. If memory is short
    /// on a rank, items may be missing on others, so all ranks must agree on the result.
    ///
    /// There are as many rounds as the number of ranks has binary digits. In the k-th a rank sends
    /// to the rank 2ᵏ behind it the items whose distance to their rank has that bit (J. Bruck et
    /// al., "Efficient algorithms for all-to-all communications in multiport message-passing
    /// systems", IEEE Transactions on Parallel and Distributed Systems 8, 1997,
    /// <https://doi.org/10.1109/71.642949>). So the number of messages does not grow with the
    /// square of the number of ranks.
    pub(crate) fn bring_around<V: Pod>(
        &mut self,
        mut items: Vec<Item<V>>,
    ) -> Result<Vec<Item<V>>, Failure> {
        let (me, ranks, exchange) = (self.rank(), self.ranks(), self.begin());
        let mut short = Ok(());
        let mut step = 1;
        while step < ranks {
            let far = |item: &Item<V>| ((item.to as usize + ranks - me) % ranks) & step != 0;
            let bytes = size_of::<Item<V>>() * items.iter().filter(|item| far(item)).count();
            let mut going = message(bytes).unwrap_or_else(|shortage| {
                short = Err(shortage);
                Vec::new()
            });
            if bytes != 0 && going.capacity() != 0 {
                let leave = items.iter().filter(|item| far(item));
                leave.for_each(|item| going.extend_from_slice(bytemuck::bytes_of(item)));
            }
            items.retain(|item| !far(item));
            self.post((me + step) % ranks, AROUND, exchange, going)?;
            let came = self.receive((me + ranks - step) % ranks, AROUND, exchange)?;
            if came.len() % size_of::<Item<V>>() != 0 {
                return Err(self.wrong_length(came.len(), size_of::<Item<V>>()).into());
            }
            let came = came.chunks_exact(size_of::<Item<V>>());
            let all = items.len() + came.len();
            match make_room(&mut items, all, "numbers of other ranks") {
                Ok(()) => items.extend(came.map(bytemuck::pod_read_unaligned::<Item<V>>)),
                Err(shortage) => short = Err(shortage),
            }
            step *= 2;
        }
        short?;
        Ok(items)
    }

    /// Ends the work of all ranks because a message does not have the expected length.
    pub(crate) fn wrong_length(&mut self, found: usize, expected: usize) -> Fault {
        let cause = FaultCause::Message { found, expected };
        let rank = self.rank();
        self.transport.fail(Fault { rank, cause })
    }

    /// Ends the work of all ranks because they are at different calls.
    fn other_calls(&mut self) -> Fault {
        let (rank, cause) = (self.rank(), FaultCause::Calls);
        self.transport.fail(Fault { rank, cause })
    }
}

/// Why a message was not taken.
pub(crate) enum Untaken {
    /// It must have at least this number of bytes: ranks are at different calls.
    Length {
        /// Bytes.
        least: usize,
    },
    /// Memory is short here.
    Refused(Refusal),
}

impl<T> From<T> for Untaken
where
    Refusal: From<T>,
{
    fn from(refusal: T) -> Self {
        Self::Refused(refusal.into())
    }
}

/// The ranks that a kind of exchange goes between.
#[derive(Debug)]
pub(crate) struct Links {
    /// Tells their messages from those of other links.
    pub(crate) tag: Tag,
    /// Ascending.
    partners: Vec<usize>,
    /// True if all ranks look for their partners again at the next exchange.
    renew: bool,
}

impl Links {
    /// Links without partners, for an exchange that ends before another one begins.
    pub(crate) fn new() -> Self {
        Self::tagged(PLACE)
    }

    /// Links without partners, for the points of set `at`.
    pub(crate) fn of_set(at: usize) -> Self {
        // A tag is used twice only with more sets than an engine has memory for.
        Self::tagged(Tag(SETS + (at % 20_000) as u16))
    }

    fn tagged(tag: Tag) -> Self {
        Self {
            tag,
            partners: Vec::new(),
            renew: true,
        }
    }

    /// Looks for partners again at the next exchange, because there may be too many now. All ranks
    /// must call it.
    pub(crate) fn renew(&mut self) {
        self.renew = true;
    }

    /// Sends every partner the message that `pack` makes for it, an empty one if there is nothing
    /// to say. A partner is told if `pack` refuses.
    pub(crate) fn post_each(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut pack: impl FnMut(usize) -> Result<Vec<u8>, Refusal>,
    ) -> Result<(), Failure> {
        let pack = |partner| pack(partner).map(|message| (message, None));
        self.post_each_with(comm, exchange, pack)
    }

    /// The same with what is handed over.
    pub(crate) fn post_each_with(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut pack: impl FnMut(usize) -> Result<(Vec<u8>, Option<Handed>), Refusal>,
    ) -> Result<(), Failure> {
        let (me, mut posted) = (comm.rank(), Ok(()));
        for partner in self.partners.iter().filter(|rank| **rank != me) {
            let message = pack(*partner).unwrap_or_else(|refusal| {
                posted = Err(refusal);
                (REFUSED.to_vec(), None)
            });
            comm.post_with(*partner, self.tag, exchange, message)?;
        }
        Ok(posted?)
    }

    /// Waits for the message of every partner and gives it to `take`, with the rank, unless it is
    /// empty. All messages have come if a partner or `take` refuses.
    pub(crate) fn receive_each(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Untaken>,
    ) -> Result<(), Failure> {
        self.receive_each_with(comm, exchange, |partner, message, _| take(partner, message))
    }

    /// The same where `take` also gets what was handed over.
    pub(crate) fn receive_each_with(
        &self,
        comm: &mut Communicator,
        exchange: Exchange,
        mut take: impl FnMut(usize, &[u8], Option<Handed>) -> Result<(), Untaken>,
    ) -> Result<(), Failure> {
        let (me, mut received) = (comm.rank(), Ok(()));
        for partner in self.partners.iter().filter(|rank| **rank != me) {
            let (message, with) = comm.receive_with(*partner, self.tag, exchange)?;
            if message == REFUSED && with.is_none() {
                received = received.and(Err(Refusal::echo(*partner)));
            } else if !message.is_empty() {
                match take(*partner, &message, with) {
                    Ok(()) => {}
                    // A refusal of this rank says more than that another one refuses.
                    Err(Untaken::Refused(refusal)) => received = Err(refusal),
                    Err(Untaken::Length { least }) => {
                        return Err(comm.wrong_length(message.len(), least).into());
                    }
                }
            }
        }
        Ok(received?)
    }

    /// Agrees on `local`, whose messages go to the ranks that `to` returns, and makes these ranks
    /// partners. `minima` become the minima over all ranks.
    pub(crate) fn agree<R>(
        &mut self,
        comm: &mut Communicator,
        local: Result<R, impl Into<Failure>>,
        to: impl Fn(&R) -> Vec<usize>,
        minima: &mut [f64],
    ) -> Result<R, Error> {
        let needed = local.as_ref().map_or_else(|_| Vec::new(), to);
        let known = |rank: &usize| self.partners.binary_search(rank).is_ok();
        let settled = !self.renew && needed.iter().all(known);
        let mut lowest = vec![if settled { 1.0 } else { 0.0 }];
        lowest.extend_from_slice(minima);
        let value = comm.agree(local, &mut lowest)?;
        minima.copy_from_slice(&lowest[1..]);
        if lowest[0] == 0.0 {
            let from = comm.rank() as u32;
            let tell = |to: &usize| Item {
                to: *to as u32,
                from,
                value: 0,
            };
            let senders = comm.bring_around(needed.iter().map(tell).collect());
            let senders = comm.agree(senders, &mut [])?;
            let mut partners = needed;
            partners.extend(senders.iter().map(|item| item.from as usize));
            partners.sort_unstable();
            partners.dedup();
            self.partners = partners;
            self.renew = false;
        }
        Ok(value)
    }
}
