//! How ranks reach each other: the interface between the engine and a message library.
//!
//! The engine needs little: messages of bytes between two ranks, and three small collective
//! operations for set-up and for agreeing on errors. In [`threads`] ranks are threads of one
//! process; in the module `mpi`, of the feature of that name, they are processes on any number of
//! machines.
//!
//! # Rules
//!
//! * [`Transport::post`] returns at once, whether or not the other rank waits. So ranks may all
//!   post first and receive afterwards, in any order, without a deadlock.
//! * Messages of one rank with one [`Tag`] arrive in the order in which they were posted.
//! * Every wait ends: either the message arrives, or a rank is lost and the wait returns a
//!   [`Fault`]. There is no time limit: a transport notices lost ranks, and a slow rank is not
//!   lost.
//! * After a fault all calls on all ranks return a fault that names the same rank.
//!
//! # Collective operations
//!
//! [`Transport::reduce`] and [`Transport::gather`] are written here once over messages. Both go up
//! a tree to rank 0 (rank 1 to 0, 3 to 2, then 2 to 0, and so on) and come down the same way. They
//! take twice as many messages in sequence as the number of ranks has binary digits, and two
//! messages per rank. The tree depends only on the number of ranks, so sums have the same bits on
//! every rank and in every run. A transport whose library is faster overrides them and must keep
//! that promise.

pub(crate) mod contexts;
mod fault;
mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod threads;

pub use fault::{Fault, FaultCause};
pub use memory::{Announced, DeviceMemory};

use std::any::Any;

/// Tells messages between the same two ranks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u16);

impl Tag {
    /// Parts of a reduction on their way to rank 0, and its result on the way back.
    const REDUCE: Self = Self(0);
    /// Parts of a gather operation on their way to rank 0, and all of them on the way back.
    const GATHER: Self = Self(1);
    /// The first tag that no collective operation of this module uses.
    pub const FIRST_FREE: u16 = 2;
}

/// How a reduction combines the numbers of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The smallest.
    Min,
    /// The sum, in an order that depends on the number of ranks only.
    Sum,
    /// Sums of this many first numbers, and minima of the others.
    SumsThenMin(usize),
}

impl Reduction {
    /// Folds `part` into `whole`, element by element.
    fn fold(self, whole: &mut [f64], part: impl Iterator<Item = f64>) {
        let sums = match self {
            Self::Min => 0,
            Self::Sum => whole.len(),
            Self::SumsThenMin(sums) => sums,
        };
        for (at, (whole, part)) in whole.iter_mut().zip(part).enumerate() {
            *whole = if at < sums {
                *whole + part
            } else {
                whole.min(part)
            };
        }
    }
}

/// An object that a message carries between ranks of one process, instead of bytes.
pub type Handed = Box<dyn Any + Send>;

/// One rank's end of a message transport between ranks; the module's documentation has the rules.
///
/// Dropping it leaves the set of ranks. That is a fault only if another rank waits for this one or
/// the thread is panicking.
pub trait Transport: Send {
    /// The number of this rank: 0, 1, 2 and so on.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// Sends `message` to rank `to` and returns at once. The message may be empty, and `to` may be
    /// this rank. A rank that has left takes no messages. That is not a fault: it may have finished
    /// its work.
    ///
    /// # Errors
    /// A fault of any rank that is already known.
    fn post(&mut self, to: usize, tag: Tag, message: Vec<u8>) -> Result<(), Fault>;

    /// Waits for the next message of rank `from` with this tag.
    ///
    /// # Errors
    /// A fault of any rank, or `from` has left without sending this message.
    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Fault>;

    /// The next message of rank `from` with this tag if it has arrived, and otherwise `None`.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    fn poll(&mut self, from: usize, tag: Tag) -> Result<Option<Vec<u8>>, Fault>;

    /// Returns true if ranks are in one process, so that messages can carry [objects](Handed).
    fn hands_over(&self) -> bool {
        false
    }

    /// Returns `Ok` if messages can be sent from GPU memory and received into it. Then
    /// [`DeviceMemory`] can be handed over between processes, and arrives as [`Announced`].
    ///
    /// # Errors
    /// The reason why not, as the end of a sentence about messages from GPU memory.
    fn takes_device_memory(&self) -> Result<(), String> {
        Err(
            "ranks of one process hand arrays of their GPUs over without it: leave it out"
                .to_owned(),
        )
    }

    /// As [`post`](Self::post), with an object that is handed over.
    ///
    /// # Errors
    /// As there; on all ranks if messages [cannot carry objects](Self::hands_over), unless it is
    /// [`DeviceMemory`] and the transport [takes it](Self::takes_device_memory).
    fn hand_over(
        &mut self,
        to: usize,
        tag: Tag,
        message: Vec<u8>,
        with: Handed,
    ) -> Result<(), Fault> {
        let _ = (to, tag, message, with);
        let rank = self.rank();
        let why = "something is to be handed over to a rank in another process";
        let cause = FaultCause::Failed(why.to_owned());
        Err(self.fail(Fault { rank, cause }))
    }

    /// As [`receive`](Self::receive), with the object that was handed over.
    ///
    /// # Errors
    /// As there.
    fn receive_handed(
        &mut self,
        from: usize,
        tag: Tag,
    ) -> Result<(Vec<u8>, Option<Handed>), Fault> {
        Ok((self.receive(from, tag)?, None))
    }

    /// Waits until [announced](Announced) bytes have arrived in memory of exactly their size.
    ///
    /// # Errors
    /// As [`receive`](Self::receive). The memory may then still be written to, and is never freed.
    fn receive_into(&mut self, parts: Vec<(Announced, DeviceMemory)>) -> Result<(), Fault> {
        if parts.is_empty() {
            return Ok(());
        }
        let rank = self.rank();
        let why = "bytes were announced by a transport that does not know memory of GPUs";
        let cause = FaultCause::Failed(why.to_owned());
        Err(self.fail(Fault { rank, cause }))
    }

    /// Ends the work of all ranks: their calls return this fault, or an earlier one. Returns the
    /// fault that counts.
    fn fail(&mut self, fault: Fault) -> Fault;

    /// Replaces every number by the reduction over all ranks. All ranks give as many.
    ///
    /// # Errors
    /// A fault of any rank.
    fn reduce(&mut self, values: &mut [f64], by: Reduction) -> Result<(), Fault> {
        let (rank, ranks) = (self.rank(), self.ranks());
        // A rank stands for those from it to the next multiple of twice `below`.
        let mut below = 1;
        while below < ranks && rank & below == 0 {
            if rank + below < ranks {
                let part = self.receive(rank + below, Tag::REDUCE)?;
                if part.len() != size_of_val(values) {
                    let cause = wrong_length(&part, size_of_val(values));
                    return Err(self.fail(Fault { rank, cause }));
                }
                by.fold(values, numbers(&part));
            }
            below *= 2;
        }
        if rank != 0 {
            self.post(rank - below, Tag::REDUCE, bytes_of(values))?;
            let whole = self.receive(rank - below, Tag::REDUCE)?;
            read_into(values, &whole).map_err(|cause| self.fail(Fault { rank, cause }))?;
        }
        while below > 1 {
            below /= 2;
            if rank + below < ranks {
                self.post(rank + below, Tag::REDUCE, bytes_of(values))?;
            }
        }
        Ok(())
    }

    /// The messages of all ranks, by rank, on every rank. Their lengths may differ.
    ///
    /// For small data, such as numbers, because every rank gets everything.
    ///
    /// # Errors
    /// A fault of any rank.
    fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        let (rank, ranks) = (self.rank(), self.ranks());
        // The messages of this rank and those that it stands for, by rank, each behind its length.
        let mut part = (message.len() as u64).to_ne_bytes().to_vec();
        part.extend_from_slice(message);
        let mut below = 1;
        while below < ranks && rank & below == 0 {
            if rank + below < ranks {
                part.extend(self.receive(rank + below, Tag::GATHER)?);
            }
            below *= 2;
        }
        let whole = if rank == 0 {
            part
        } else {
            self.post(rank - below, Tag::GATHER, part)?;
            self.receive(rank - below, Tag::GATHER)?
        };
        while below > 1 {
            below /= 2;
            if rank + below < ranks {
                self.post(rank + below, Tag::GATHER, whole.clone())?;
            }
        }
        split(&whole, ranks).ok_or_else(|| {
            let cause = wrong_length(&whole, size_of::<u64>() * ranks);
            self.fail(Fault { rank, cause })
        })
    }
}

/// The messages of a gather operation, if there is one for each rank.
fn split(whole: &[u8], ranks: usize) -> Option<Vec<Vec<u8>>> {
    let (mut rest, mut all) = (whole, Vec::with_capacity(ranks));
    for _ in 0..ranks {
        let (len, behind) = rest.split_first_chunk()?;
        let len = usize::try_from(u64::from_ne_bytes(*len)).ok()?;
        let (message, behind) = behind.split_at_checked(len)?;
        all.push(message.to_vec());
        rest = behind;
    }
    rest.is_empty().then_some(all)
}

/// The numbers as a message.
fn bytes_of(values: &[f64]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// The numbers of a message, whose bytes need not be aligned.
fn numbers(message: &[u8]) -> impl Iterator<Item = f64> {
    let (numbers, _) = message.as_chunks();
    numbers.iter().map(|bytes| f64::from_ne_bytes(*bytes))
}

/// Copies the numbers of a message if there are as many as `values`.
fn read_into(values: &mut [f64], message: &[u8]) -> Result<(), FaultCause> {
    if message.len() != size_of_val(values) {
        return Err(wrong_length(message, size_of_val(values)));
    }
    (values.iter_mut().zip(numbers(message))).for_each(|(value, number)| *value = number);
    Ok(())
}

/// The cause of a fault: a message does not have the expected length.
fn wrong_length(message: &[u8], expected: usize) -> FaultCause {
    FaultCause::Message {
        found: message.len(),
        expected,
    }
}
