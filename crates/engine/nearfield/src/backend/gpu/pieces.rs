//! Copying numbers to where the GPU reads them, piece by piece, while complete pieces are sent off.

use nearfield_cpu::CpuBackend;
use nearfield_gpu as gpu;
use nearfield_grid::SharedMut;
use std::{
    hint,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Pieces in which numbers go to the device…
const PIECES: usize = 6;
/// …unless they are shorter than so many numbers.
const PIECE: usize = 1 << 18;

/// Numbers that one thread copies at a time: those of whole points.
const COPIED: usize = 3 << 13;

/// Looks at what is not done before this thread lets others run.
const LOOKS: usize = 1 << 12;

/// Waits for another thread to be done with something that takes it microseconds.
pub(super) fn until(done: impl Fn() -> bool) {
    let mut looks = 0;
    while !done() {
        hint::spin_loop();
        looks += 1;
        if looks % LOOKS == 0 {
            thread::yield_now();
        }
    }
}

/// Numbers that workers copy while another thread sends them off. `look` sees all numbers of every array
/// before they are copied, some whole points at a time where a point has three.
pub(super) struct Pieces<'a, L> {
    /// Arrays that are put one behind the other, and where each of them begins.
    from: Vec<(usize, &'a [f32])>,
    to: SharedMut<'a, f32>,
    look: L,
    len: usize,
    /// Numbers of a piece, a multiple of [`COPIED`].
    size: usize,
    /// The next stretch of [`COPIED`] numbers to be copied.
    next: AtomicUsize,
    /// Stretches of every piece that have been.
    copied: Vec<AtomicUsize>,
}

impl<'a, L: Fn(&[f32]) + Sync> Pieces<'a, L> {
    /// The arrays `from` one behind the other; `to` has room for them.
    pub(super) fn new(from: &[&'a [f32]], to: &'a mut [f32], look: L) -> Self {
        let len = from.iter().map(|from| from.len()).sum::<usize>();
        Self::of_size(from, to, look, len.div_ceil(PIECES).max(PIECE))
    }

    /// The same in pieces of `size` numbers, rounded up to whole stretches.
    fn of_size(from: &[&'a [f32]], to: &'a mut [f32], look: L, size: usize) -> Self {
        let mut len = 0;
        let placed = from.iter().map(|&from| {
            let begin = len;
            len += from.len();
            (begin, from)
        });
        let from = placed.collect();
        let size = size.max(COPIED).next_multiple_of(COPIED);
        let pieces = len.div_ceil(size);
        Self {
            from,
            to: SharedMut::new(&mut to[..len]),
            look,
            len,
            size,
            next: AtomicUsize::new(0),
            copied: (0..pieces).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Copies everything, and calls `send` with the place and the numbers of every piece in turn, as soon as it
    /// is complete. Once that fails the others are not sent.
    pub(super) fn send<E>(
        &self,
        cpu: &CpuBackend,
        send: impl FnMut(usize, &[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        // This thread copies too.
        let others = self.len.div_ceil(COPIED).saturating_sub(1);
        cpu.at_once(others, || self.for_each(send), || while self.copy_next() {})
    }

    /// Copies the next stretch, if there is one; in order, so that the first piece is complete early.
    fn copy_next(&self) -> bool {
        let begin = COPIED * self.next.fetch_add(1, Ordering::Relaxed);
        if begin >= self.len {
            return false;
        }
        let end = (begin + COPIED).min(self.len);
        // SAFETY: everybody has stretches of their own, and nobody reads a piece before it is complete.
        let to = unsafe { self.to.slice_mut(begin, end) };
        for &(first, from) in &self.from {
            let (low, high) = (begin.max(first), end.min(first + from.len()));
            if low < high {
                let from = &from[low - first..high - first];
                (self.look)(from);
                gpu::copy_for_gpu(&mut to[low - begin..high - begin], from);
            }
        }
        self.copied[begin / self.size].fetch_add(1, Ordering::Release);
        true
    }

    /// Sends pieces as they are completed, and helps with that.
    fn for_each<E>(&self, mut send: impl FnMut(usize, &[f32]) -> Result<(), E>) -> Result<(), E> {
        for (piece, copied) in self.copied.iter().enumerate() {
            let first = piece * self.size;
            let end = (first + self.size).min(self.len);
            let complete = || copied.load(Ordering::Acquire) >= (end - first).div_ceil(COPIED);
            while !complete() && self.copy_next() {}
            until(complete);
            // SAFETY: complete pieces are not written any more.
            send(first, unsafe { self.to.slice_mut(first, end) })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_sent_once_and_in_order() {
        for len in [0, 1, COPIED, 3 * COPIED + 17, 10 * COPIED] {
            let from: Vec<f32> = (0..len).map(|k| k as f32).collect();
            let (head, tail) = from.split_at(len / 3);
            for size in [1, COPIED, 2 * COPIED + 1, 100 * COPIED] {
                for from in [&[&from[..]][..], &[head, &[], tail]] {
                    let mut to = vec![-1.0; len + 5];
                    let pieces = Pieces::of_size(from, &mut to, |_| (), size);
                    let mut sent = Vec::new();
                    std::thread::scope(|scope| {
                        scope.spawn(|| while pieces.copy_next() {});
                        let send = |first: usize, numbers: &[f32]| {
                            assert_eq!(first, sent.len());
                            sent.extend_from_slice(numbers);
                            Ok::<(), ()>(())
                        };
                        pieces.for_each(send).unwrap();
                    });
                    let from = from.concat();
                    assert_eq!(sent, from, "{len} in pieces of {size}");
                    assert_eq!((&to[..len], &to[len..]), (&from[..], &[-1.0; 5][..]));
                }
            }
        }
    }

    #[test]
    fn everything_is_looked_at_once_whatever_becomes_of_it() {
        let cpu = CpuBackend::new(3).unwrap();
        let from: Vec<f32> = (0..10 * COPIED).map(|k| (k % 7) as f32).collect();
        for refused in [false, true] {
            let (seen, mut to) = (AtomicUsize::new(0), vec![-1.0; from.len()]);
            let look = |numbers: &[f32]| {
                let sum: f32 = numbers.iter().sum();
                seen.fetch_add(sum as usize, Ordering::Relaxed);
            };
            let pieces = Pieces::of_size(&[&from], &mut to, look, COPIED);
            let sent = pieces.send(&cpu, |first, _| match refused && first > 0 {
                true => Err("refused"),
                false => Ok(()),
            });
            assert_eq!(sent.is_err(), refused);
            assert_eq!(
                seen.load(Ordering::Relaxed) as f32,
                from.iter().sum::<f32>()
            );
            assert_eq!(to, from);
        }
    }
}
