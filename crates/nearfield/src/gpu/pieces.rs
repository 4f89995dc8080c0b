//! Copying numbers to where the GPU reads them, piece by piece, while complete pieces are sent off.

use nearfield_gpu as gpu;
use nearfield_grid::SharedMut;
use rayon::prelude::*;
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

/// Looks at a piece that is not complete before this thread lets others run.
const LOOKS: usize = 1 << 12;

/// Numbers that workers copy while another thread sends them off.
pub(super) struct Pieces<'a> {
    /// Arrays that are put one behind the other, and where each of them begins.
    from: Vec<(usize, &'a [f32])>,
    to: SharedMut<'a, f32>,
    len: usize,
    /// Numbers of a piece, a multiple of [`COPIED`].
    size: usize,
    /// The next stretch of [`COPIED`] numbers to be copied.
    next: AtomicUsize,
    /// Stretches of every piece that have been.
    copied: Vec<AtomicUsize>,
}

impl<'a> Pieces<'a> {
    /// The arrays `from` one behind the other; `to` has room for them.
    pub(super) fn new(from: &[&'a [f32]], to: &'a mut [f32]) -> Self {
        let len = from.iter().map(|from| from.len()).sum::<usize>();
        Self::of_size(from, to, len.div_ceil(PIECES).max(PIECE))
    }

    /// The same in pieces of `size` numbers, rounded up to whole stretches.
    fn of_size(from: &[&'a [f32]], to: &'a mut [f32], size: usize) -> Self {
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
            len,
            size,
            next: AtomicUsize::new(0),
            copied: (0..pieces).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Copies everything, on the workers of the pool that this is called in; in order, so that the first
    /// piece is complete early. `look` sees all numbers of every array before they are copied, some whole
    /// points at a time where a point has three.
    pub(super) fn fill(&self, look: impl Fn(&[f32]) + Sync) {
        let workers = (0..rayon::current_num_threads())
            .into_par_iter()
            .with_max_len(1);
        workers.for_each(|_| {
            loop {
                let stretch = self.next.fetch_add(1, Ordering::Relaxed);
                let begin = stretch * COPIED;
                if begin >= self.len {
                    return;
                }
                let end = (begin + COPIED).min(self.len);
                // SAFETY: everybody has stretches of their own, and nobody reads a piece before it is complete.
                let to = unsafe { self.to.slice_mut(begin, end) };
                self.copy(begin, to, &look);
                self.copied[begin / self.size].fetch_add(1, Ordering::Release);
            }
        });
    }

    /// Copies the numbers from number `begin` on.
    fn copy(&self, begin: usize, to: &mut [f32], look: impl Fn(&[f32])) {
        let end = begin + to.len();
        for &(first, from) in &self.from {
            let (low, high) = (begin.max(first), end.min(first + from.len()));
            if low < high {
                let from = &from[low - first..high - first];
                look(from);
                gpu::copy_for_gpu(&mut to[low - begin..high - begin], from);
            }
        }
    }

    /// Calls `send` with the place and the numbers of every piece in turn, as soon as it is complete. Once that
    /// fails the others are not sent.
    pub(super) fn for_each<E>(
        &self,
        mut send: impl FnMut(usize, &[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (piece, copied) in self.copied.iter().enumerate() {
            let first = piece * self.size;
            let end = (first + self.size).min(self.len);
            let mut looks = 0;
            while copied.load(Ordering::Acquire) < (end - first).div_ceil(COPIED) {
                hint::spin_loop();
                looks += 1;
                if looks % LOOKS == 0 {
                    thread::yield_now();
                }
            }
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
                    let pieces = Pieces::of_size(from, &mut to, size);
                    let mut sent = Vec::new();
                    std::thread::scope(|scope| {
                        scope.spawn(|| pieces.fill(|_| ()));
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
        let mut to = [0.0; 3];
        let pieces = Pieces::new(&[&[1.0, 2.0, 3.0]], &mut to);
        pieces.fill(|_| ());
        assert_eq!(pieces.for_each(|_, _| Err("refused")), Err("refused"));
    }
}
