//! Results that arrive piece by piece, put where they belong by many threads.

use super::sync::{AtomicBool, AtomicUsize, Ordering, Slot, wait_until};
use std::ops::Range;

/// Which pieces of some results have arrived, and which stretches have been put.
#[derive(Debug)]
pub struct Scatter<P> {
    len: usize,
    stretch: usize,
    /// Results of a piece: whole stretches.
    piece: usize,
    arrived: Vec<Slot<P>>,
    /// The next stretch to be put.
    next: AtomicUsize,
    /// Nothing arrives any more.
    ended: AtomicBool,
}

impl<P: Copy> Scatter<P> {
    /// `len` results that arrive `piece` at a time, whole stretches, and are put `stretch` at a
    /// time.
    pub fn new(len: usize, stretch: usize, piece: usize) -> Self {
        let piece = piece.max(stretch).next_multiple_of(stretch);
        Self {
            len,
            stretch,
            piece,
            arrived: (0..len.div_ceil(piece)).map(|_| Slot::new()).collect(),
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Takes pieces in until `arrived` gives none; it says which piece came, counted from 0.
    ///
    /// # Errors
    /// That of `arrived`; threads that put stop at the first stretch that has not arrived.
    pub fn receive<E>(
        &self,
        mut arrived: impl FnMut() -> Result<Option<(usize, P)>, E>,
    ) -> Result<(), E> {
        let received = loop {
            match arrived() {
                Ok(Some((number, piece))) => {
                    if let Some(slot) = self.arrived.get(number) {
                        slot.set(piece);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.ended.store(true, Ordering::Release);
        received
    }

    /// Puts stretches by `put` until none is left to this thread: a piece, where it begins, and the
    /// results of it that are to be put. Stretches are handed out in order, so that the first piece
    /// is done with when the second arrives.
    pub fn put_all(&self, put: &impl Fn(P, usize, Range<usize>)) {
        loop {
            let begin = self.stretch * self.next.fetch_add(1, Ordering::Relaxed);
            if begin >= self.len {
                return;
            }
            let slot = &self.arrived[begin / self.piece];
            wait_until(|| slot.get().is_some() || self.ended.load(Ordering::Acquire));
            let Some(piece) = slot.get() else {
                return;
            };
            let end = (begin + self.stretch).min(self.len);
            put(piece, begin / self.piece * self.piece, begin..end);
        }
    }
}
