//! Bytes from and to the memory of GPUs: their numbers, and those that were announced.
//!
//! **Invariant:** announced bytes are received once: by the holder of the announcement, or into
//! host memory after it was dropped.

use super::{
    super::{Announced, DeviceMemory, Handed},
    calls::{Group, Memory, Transfer, knows_gpus},
};
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Weak},
};

/// Numbers are MPI tags, so they restart after this one. Messages of one rank with one number
/// arrive in order, should so many be under way.
const NUMBERS: u64 = 32_000;

/// Numbered bytes on their way to this rank.
struct Coming {
    from: usize,
    number: i32,
    bytes: usize,
    /// The length of their parts.
    part: usize,
}

/// The same, held by a receiver.
struct Held {
    coming: Coming,
    /// Dropped with it.
    _held: Arc<()>,
}

/// The state of a transport that sends and receives GPU memory.
pub(super) struct Direct {
    /// Whether MPI is CUDA-aware, by its own answer or the program's; `None` if it cannot be asked.
    known: Option<bool>,
    /// True once announcements count as dropped.
    leaves: bool,
    /// By rank, the number of transfers to it so far.
    sent: Vec<u64>,
    /// By rank, the bytes that its next message announces.
    announced: HashMap<usize, Coming>,
    /// Announcements that receivers hold.
    held: Vec<(Weak<()>, Coming)>,
    /// Transfers to this rank, and those of them whose announcement was dropped.
    receiving: Vec<Transfer>,
    dropped: Vec<Transfer>,
}

impl Direct {
    /// The initial state, among this number of ranks.
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            known: knows_gpus(),
            leaves: false,
            sent: vec![0; ranks],
            announced: HashMap::new(),
            held: Vec::new(),
            receiving: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Assumes that MPI is CUDA-aware.
    pub(super) fn assume(&mut self) {
        self.known = Some(true);
    }

    /// Treats all announcements as dropped from now on.
    pub(super) fn leave(&mut self) {
        self.leaves = true;
    }

    /// Returns `Ok` if MPI is CUDA-aware, and otherwise the reason why this is not known or not so.
    pub(super) fn is_known(&self) -> Result<(), &'static str> {
        let why = match self.known {
            Some(true) => return Ok(()),
            Some(false) => "says that it does not know GPUs (MPIX_Query_cuda_support)",
            None => "cannot be asked whether it knows GPUs (it has no MPIX_Query_cuda_support)",
        };
        Err(why)
    }

    /// Starts to send. Returns the announcement for the receiver too.
    pub(super) fn send(
        &mut self,
        group: &Group,
        to: usize,
        memory: DeviceMemory,
        part: usize,
    ) -> Result<(Vec<u8>, Transfer), String> {
        let number = self.sent[to] % NUMBERS;
        self.sent[to] += 1;
        let said = [number, memory.bytes() as u64, part as u64];
        let sending = group.send_direct(to, number as i32, memory, part)?;
        Ok((bytemuck::cast_slice(&said).to_vec(), sending))
    }

    /// Notes the bytes that the next message of a rank announces.
    pub(super) fn announce(&mut self, from: usize, said: &[u8]) -> Result<(), String> {
        let (numbers, rest) = said.as_chunks();
        let numbers: Vec<u64> = (numbers.iter().map(|bytes| u64::from_ne_bytes(*bytes))).collect();
        let ([number, bytes, part], []) = (&numbers[..], rest) else {
            return Err(format!("an announcement has {} bytes", said.len()));
        };
        let coming = Coming {
            from,
            number: *number as i32,
            bytes: *bytes as usize,
            part: (*part as usize).max(1),
        };
        self.announced.insert(from, coming);
        Ok(())
    }

    /// The announcement of the message of a rank that has just arrived.
    pub(super) fn announced_by(&mut self, from: usize) -> Option<Announced> {
        let coming = self.announced.remove(&from)?;
        let held = Arc::new(());
        let bytes = coming.bytes;
        let copy = Coming { ..coming };
        self.held.push((Arc::downgrade(&held), copy));
        let by = Held {
            coming,
            _held: held,
        };
        Some(Announced::new(bytes, Box::new(by)))
    }

    /// Starts to receive.
    pub(super) fn receive(
        &mut self,
        group: &Group,
        announced: Announced,
        memory: DeviceMemory,
    ) -> Result<(), String> {
        let (bytes, room) = (announced.bytes(), memory.bytes());
        let by: Handed = announced.by();
        let held = by.downcast::<Held>();
        let held = held.map_err(|_| "another transport has announced bytes".to_owned())?;
        if bytes != room {
            return Err(format!("{bytes} bytes come, and there is room for {room}"));
        }
        let token = Arc::downgrade(&held._held);
        self.held.retain(|(other, _)| !other.ptr_eq(&token));
        let Coming {
            from, number, part, ..
        } = held.coming;
        let begun = group.receive_direct(from, number, Memory::Device(memory), part)?;
        self.receiving.push(begun);
        Ok(())
    }

    /// Returns true if everything that receivers asked for has arrived.
    pub(super) fn has_received(&self) -> bool {
        self.receiving.is_empty()
    }

    /// Returns true if nothing is under way to this rank.
    pub(super) fn is_idle(&self) -> bool {
        self.receiving.is_empty() && self.dropped.is_empty() && self.held.is_empty()
    }

    /// Drops transfers that have ended, and receives bytes whose announcement was dropped.
    pub(super) fn progress(&mut self, group: &Group) -> Result<(), String> {
        let leaves = self.leaves;
        let is_held = |(held, _): &(Weak<()>, Coming)| !leaves && held.strong_count() != 0;
        if !self.held.iter().all(is_held) {
            let (held, dropped) = mem::take(&mut self.held).into_iter().partition(is_held);
            self.held = held;
            let dropped: Vec<(Weak<()>, Coming)> = dropped;
            for (_, coming) in dropped {
                let mut memory = Vec::new();
                let room = memory.try_reserve_exact(coming.bytes);
                room.map_err(|_| format!("no memory for a message of {} bytes", coming.bytes))?;
                memory.resize(coming.bytes, 0);
                let memory = Memory::Host(memory);
                let begun =
                    group.receive_direct(coming.from, coming.number, memory, coming.part)?;
                self.dropped.push(begun);
            }
        }
        group.settle(&mut self.dropped)?;
        group.settle(&mut self.receiving)
    }
}
