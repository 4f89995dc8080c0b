//! Results of the device into the caller's values, piece by piece, while more are coming.

use super::pieces::until;
use nearfield_cpu::CpuBackend;
use nearfield_gpu::{self as gpu, Arrivals};
use nearfield_grid::SharedMut;
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tracing::span::EnteredSpan;

/// Targets whose results one thread hands over at a time.
const STRETCH: usize = 1 << 13;

/// Pieces in which results come…
const PIECES: usize = 8;
/// …unless that would be of fewer targets.
const LEAST: usize = 4 * STRETCH;

/// Values that workers write while another thread receives results.
pub(super) struct Landing<'v, 'r, T, V> {
    values: SharedMut<'v, V>,
    len: usize,
    /// Numbers of a target.
    width: usize,
    /// Targets of a piece, whole stretches.
    size: usize,
    /// What has arrived.
    pieces: Vec<OnceLock<&'r [T]>>,
    /// The next stretch to be handed over.
    next: AtomicUsize,
    /// Nothing comes any more.
    ended: AtomicBool,
}

impl<'v, 'r, T: Send + Sync, V: Copy + Send> Landing<'v, 'r, T, V> {
    /// Of results that have `width` numbers for each of the values.
    pub(super) fn new(values: &'v mut [V], width: usize) -> Self {
        let size = values.len().div_ceil(PIECES).max(LEAST);
        Self::of_size(values, width, size)
    }

    /// The same in pieces of `size` targets, rounded up to whole stretches.
    fn of_size(values: &'v mut [V], width: usize, size: usize) -> Self {
        let (len, size) = (values.len(), size.max(1).next_multiple_of(STRETCH));
        Self {
            values: SharedMut::new(values),
            len,
            width,
            size,
            pieces: (0..len.div_ceil(size)).map(|_| OnceLock::new()).collect(),
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Numbers of a piece.
    pub(super) fn piece(&self) -> usize {
        self.size * self.width
    }

    /// Waits until everything has been computed, which ends the stage `computing`, and hands over what arrives.
    /// `put` gets the numbers of some targets and their values. Values are written while others are still coming, or,
    /// if they are `all_or_none`, when all are there.
    pub(super) fn hand_over(
        &self,
        (cpu, computing): (&CpuBackend, EnteredSpan),
        arrivals: &mut Arrivals<'r, T>,
        all_or_none: bool,
        put: impl Fn(&[T], &mut [V]) + Sync,
    ) -> Result<(), gpu::Error> {
        // Workers that wait for the device would keep others from their cores.
        arrivals.computed()?;
        drop(computing);
        if all_or_none {
            self.receive(|| arrivals.arrived())?;
        }
        let _span = tracing::debug_span!("engine.deliver").entered();
        // Where little comes, this thread is done with it before others begin.
        let others = match self.len <= LEAST {
            true => 0,
            false => self.len.div_ceil(STRETCH),
        };
        let put_all = || self.put_all(&put);
        let receive = || {
            let received = self.receive(|| arrivals.arrived());
            put_all();
            received
        };
        cpu.at_once(others, receive, put_all)
    }

    /// Takes pieces in, until there are no more.
    fn receive<E>(
        &self,
        mut arrived: impl FnMut() -> Result<Option<(usize, &'r [T])>, E>,
    ) -> Result<(), E> {
        let received = loop {
            match arrived() {
                Ok(Some((first, numbers))) => {
                    if let Some(piece) = self.pieces.get(first / self.piece()) {
                        // Every piece comes once.
                        let _ = piece.set(numbers);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.ended.store(true, Ordering::Release);
        received
    }

    /// Writes values until none are left to this thread, in order, so that the first piece is done with when
    /// the second comes.
    fn put_all(&self, put: &(impl Fn(&[T], &mut [V]) + Sync)) {
        loop {
            let begin = STRETCH * self.next.fetch_add(1, Ordering::Relaxed);
            if begin >= self.len {
                return;
            }
            let end = (begin + STRETCH).min(self.len);
            let piece = &self.pieces[begin / self.size];
            let came = || piece.get().is_some();
            until(|| came() || self.ended.load(Ordering::Acquire));
            let Some(numbers) = piece.get() else {
                return;
            };
            let first = begin % self.size;
            let numbers = &numbers[first * self.width..(first + end - begin) * self.width];
            // SAFETY: everybody has stretches of their own.
            put(numbers, unsafe { self.values.slice_mut(begin, end) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lands results of so many targets, two numbers each, in pieces, of which `most` come before it `ends`.
    fn land(
        targets: usize,
        size: usize,
        (most, ends): (usize, Result<(), &'static str>),
    ) -> (Vec<f32>, bool) {
        let numbers: Vec<f32> = (0..2 * targets).map(|k| k as f32).collect();
        let mut values = vec![-1.0; targets];
        let landing = Landing::of_size(&mut values, 2, size);
        let mut coming = numbers.chunks(landing.piece()).enumerate();
        let arrived = || match coming.next() {
            Some((number, _)) if number >= most => ends.map(|()| None),
            Some((number, piece)) => Ok(Some((number * landing.piece(), piece))),
            None => Ok(None),
        };
        let put = |from: &[f32], to: &mut [f32]| {
            for (to, from) in to.iter_mut().zip(from.as_chunks::<2>().0) {
                *to = from[0] + from[1];
            }
        };
        let received = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| landing.put_all(&put));
            }
            landing.receive(arrived)
        });
        drop(landing);
        (values, received.is_ok())
    }

    #[test]
    fn every_result_is_handed_over() {
        for targets in [0, 1, STRETCH, 3 * STRETCH + 17, 20 * STRETCH] {
            for size in [1, STRETCH + 1, 5 * STRETCH, 100 * STRETCH] {
                let (found, complete) = land(targets, size, (usize::MAX, Ok(())));
                let expected: Vec<f32> = (0..targets).map(|t| (4 * t + 1) as f32).collect();
                assert!(
                    complete && found == expected,
                    "{targets} in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn nobody_waits_for_what_does_not_come() {
        for end in [Ok(()), Err("lost")] {
            let (found, complete) = land(4 * STRETCH, STRETCH, (2, end));
            assert_eq!(complete, end.is_ok());
            assert!(found[2 * STRETCH..].iter().all(|&value| value == -1.0));
        }
    }
}
