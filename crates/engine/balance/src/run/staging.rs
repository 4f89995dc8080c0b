//! Copying an array stretch by stretch, by many threads, while one sends complete pieces.

use super::sync::{AtomicUsize, Ordering, wait_until};
use std::ops::Range;

/// Which stretches of an array are copied, and which pieces are complete.
#[derive(Debug)]
pub struct Staging {
    len: usize,
    stretch: usize,
    /// Elements of a piece: whole stretches.
    piece: usize,
    /// The next stretch to be copied.
    next: AtomicUsize,
    /// By piece, the stretches that have been copied.
    copied: Vec<AtomicUsize>,
}

impl Staging {
    /// `len` elements, copied `stretch` at a time and sent about `piece` at a time.
    pub fn new(len: usize, stretch: usize, piece: usize) -> Self {
        let piece = piece.max(stretch).next_multiple_of(stretch);
        Self {
            len,
            stretch,
            piece,
            next: AtomicUsize::new(0),
            copied: (0..len.div_ceil(piece))
                .map(|_| AtomicUsize::new(0))
                .collect(),
        }
    }

    /// Number of stretches.
    pub fn stretches(&self) -> usize {
        self.len.div_ceil(self.stretch)
    }

    /// Copies the next stretch by `copy`; false when there is none left. Stretches are handed out
    /// in order, so that the first piece is complete early.
    pub fn copy_next(&self, copy: &impl Fn(Range<usize>)) -> bool {
        let begin = self.stretch * self.next.fetch_add(1, Ordering::Relaxed);
        if begin >= self.len {
            return false;
        }
        copy(begin..(begin + self.stretch).min(self.len));
        self.copied[begin / self.piece].fetch_add(1, Ordering::Release);
        true
    }

    /// Calls `send` for every piece in order once it is complete, and copies meanwhile. All
    /// stretches are copied even where `send` fails, as long as other threads call
    /// [`copy_next`](Self::copy_next) until it returns false.
    ///
    /// # Errors
    /// The first of `send`; later pieces are not sent.
    pub fn send_all<E>(
        &self,
        copy: &impl Fn(Range<usize>),
        mut send: impl FnMut(Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, copied) in self.copied.iter().enumerate() {
            let piece = number * self.piece..((number + 1) * self.piece).min(self.len);
            let stretches = piece.len().div_ceil(self.stretch);
            let complete = || copied.load(Ordering::Acquire) >= stretches;
            while !complete() && self.copy_next(copy) {}
            wait_until(complete);
            send(piece)?;
        }
        Ok(())
    }
}
