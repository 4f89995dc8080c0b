//! Copies between the caller's arrays and memory that a device reaches, by all workers at once.
//!
//! An upload goes through memory of the host that the device reads directly. [`StagedUpload`] lets
//! the workers of the pool copy to there while the calling thread sends off what is complete, so
//! that copying and sending overlap. [`ScatterResults`] does the same on the way back. The
//! hand-offs between the threads are those of [`nearfield_balance::run`]; this module adds the
//! memory.
//!
//! Copies go past the caches of the processor, because a GPU reads lines that cores hold at half
//! the speed. Positions are checked while they are copied ([`RunningBounds`]), which costs nothing
//! compared with the copy, so their bounds are known, and NaN is found, without another pass over
//! them.
//!
//! **Invariant:** every number is copied by one thread and sent once, after it was copied; every
//! result is put by one thread.
//!
//! A piece is what goes over the bus at once, a stretch what one thread copies at once. Pieces are
//! few, because each is a transfer of its own, and there are several, so that the first is on its
//! way while the others are still copied. Stretches are short, so that workers that begin late
//! still find some.

use nearfield_balance::run::{Scatter, Staging};
use nearfield_cpu::CpuBackend;
use nearfield_grid::{Bounds, Domain, Positions, Precision, SharedMut, copy_past_caches};
use nearfield_pairs::Field;
use std::{
    ops::Range,
    sync::{Mutex, PoisonError},
};

/// Pieces in which numbers go to the device…
const UPLOAD_PIECES: usize = 6;
/// …unless they are shorter than this, in numbers.
const MIN_UPLOAD_PIECE: usize = 1 << 18;
/// Numbers that one thread copies at a time: those of whole points.
const COPIED: usize = 3 << 13;

/// Targets whose results one thread puts at a time.
const STRETCH: usize = 1 << 13;
/// Pieces in which results come…
const RESULT_PIECES: usize = 8;
/// …unless that would be of fewer targets.
const MIN_RESULT_PIECE: usize = 4 * STRETCH;

/// Arrays that workers pack one behind the other while another thread sends them off. `look` sees
/// all numbers of every array before they are copied, some whole points at a time where a point has
/// three.
pub(crate) struct StagedUpload<'a, L> {
    /// Where each array begins in the copy, and the array.
    from: Vec<(usize, Field<'a>)>,
    /// Memory that the device reads; as long as all arrays together.
    to: SharedMut<'a, f32>,
    /// Called by every worker, with no order between stretches.
    look: L,
    staging: Staging,
}

impl<'a, L: Fn(&[f32]) + Sync> StagedUpload<'a, L> {
    /// The arrays `from` one behind the other; `to` has room for them.
    pub(crate) fn new(from: &[Field<'a>], to: &'a mut [f32], look: L) -> Self {
        let len = from.iter().map(numbers_of).sum::<usize>();
        let piece = len.div_ceil(UPLOAD_PIECES).max(MIN_UPLOAD_PIECE);
        Self::in_pieces(from, to, look, piece)
    }

    /// The same in pieces of `piece` numbers.
    fn in_pieces(from: &[Field<'a>], to: &'a mut [f32], look: L, piece: usize) -> Self {
        let mut len = 0;
        let placed = from.iter().map(|&from| {
            let begin = len;
            len += numbers_of(&from);
            (begin, from)
        });
        let from = placed.collect();
        Self {
            from,
            to: SharedMut::new(&mut to[..len]),
            look,
            staging: Staging::new(len, COPIED, piece),
        }
    }

    /// Copies everything, and calls `send` with the place and the numbers of every piece in turn,
    /// as soon as it is complete. Once that fails the others are not sent.
    ///
    /// Also after a failure all stretches are copied and looked at: bounds are complete either way,
    /// and workers stop by themselves.
    ///
    /// # Errors
    /// The first error of `send`.
    pub(crate) fn send<E>(
        &self,
        cpu: &CpuBackend,
        mut send: impl FnMut(usize, &[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let copy = |stretch| self.copy(stretch);
        // This thread copies too.
        let others = self.staging.stretches().saturating_sub(1);
        let drive = || {
            self.staging.send_all(&copy, |piece| {
                // SAFETY: `Staging` sends a piece after its last stretch was written, and no
                // stretch is written twice.
                send(piece.start, unsafe {
                    self.to.slice_mut(piece.start, piece.end)
                })
            })
        };
        cpu.at_once(others, drive, || while self.staging.copy_next(&copy) {})
    }

    /// Copies the numbers of a stretch, which may be of several arrays.
    fn copy(&self, stretch: Range<usize>) {
        // SAFETY: `Staging` gives every stretch to one thread, and sends none before it is written.
        let to = unsafe { self.to.slice_mut(stretch.start, stretch.end) };
        for &(first, field) in &self.from {
            let low = stretch.start.max(first);
            let high = stretch.end.min(first + numbers_of(&field));
            if low >= high {
                continue;
            }
            let to = &mut to[low - stretch.start..high - stretch.start];
            if let Some(from) = field.packed() {
                let from = &from[low - first..high - first];
                (self.look)(from);
                copy_past_caches(to, from);
            } else {
                field.copy_to(low - first, to);
                (self.look)(to);
            }
        }
    }
}

/// Numbers of a field, which is as many as it takes where it is packed.
pub(crate) fn numbers_of(field: &Field<'_>) -> usize {
    field.len() * field.channels()
}

/// Results of a device on their way to the host, piece by piece.
pub(crate) trait ResultStream<'r> {
    /// Waits for the next piece: its first number, and all of them. None after the last one.
    ///
    /// # Errors
    /// [`DeviceLost`] when the device has failed.
    fn arrived(&mut self) -> Result<Option<(usize, &'r [f32])>, DeviceLost>;
}

/// The device has failed while results were coming; it knows why.
#[derive(Debug)]
pub(crate) struct DeviceLost;

/// Number of targets of a piece of the results of `targets` targets.
fn result_piece(targets: usize) -> usize {
    let piece = targets.div_ceil(RESULT_PIECES).max(MIN_RESULT_PIECE);
    piece.next_multiple_of(STRETCH)
}

/// Length of a piece of results that have `width` numbers for each of `targets` targets.
pub(crate) fn numbers_of_piece(targets: usize, width: usize) -> usize {
    result_piece(targets) * width
}

/// The caller's values, which workers write while another thread receives results.
pub(crate) struct ScatterResults<'v, V> {
    values: SharedMut<'v, V>,
    len: usize,
    /// Numbers of a target.
    width: usize,
    /// Targets of a piece.
    piece: usize,
}

impl<'v, V: Copy + Send> ScatterResults<'v, V> {
    /// For results that have `width` numbers for each of the values.
    pub(crate) fn new(values: &'v mut [V], width: usize) -> Self {
        Self {
            len: values.len(),
            piece: result_piece(values.len()),
            values: SharedMut::new(values),
            width,
        }
    }

    /// Hands over what arrives: `put` gets the first of some targets, their numbers and their
    /// values. Values are written while others are still coming or, if they are `all_or_none`, when
    /// all are there.
    ///
    /// # Errors
    /// [`DeviceLost`] if the device fails; some values are then written, unless they are
    /// `all_or_none`.
    pub(crate) fn hand_over<'r>(
        &self,
        cpu: &CpuBackend,
        arrivals: &mut dyn ResultStream<'r>,
        all_or_none: bool,
        put: impl Fn(usize, &[f32], &mut [V]) + Sync,
    ) -> Result<(), DeviceLost> {
        let scatter = Scatter::new(self.len, STRETCH, self.piece);
        let numbers = self.piece * self.width.max(1);
        let mut next = || {
            let arrived = arrivals.arrived()?;
            Ok(arrived.map(|(first, piece)| (first / numbers, piece)))
        };
        let put = |piece: &[f32], first: usize, stretch: Range<usize>| {
            let of_piece = stretch.start - first..stretch.end - first;
            let numbers = &piece[of_piece.start * self.width..of_piece.end * self.width];
            // SAFETY: `Scatter` gives every stretch to one thread.
            put(stretch.start, numbers, unsafe {
                self.values.slice_mut(stretch.start, stretch.end)
            });
        };
        if all_or_none {
            scatter.receive(&mut next)?;
        }
        let _span = tracing::debug_span!("engine.deliver").entered();
        // Where little comes, this thread is done with it before others begin.
        let others = if self.len <= MIN_RESULT_PIECE {
            0
        } else {
            self.len.div_ceil(STRETCH)
        };
        let receive = || {
            let received = scatter.receive(&mut next);
            scatter.put_all(&put);
            received
        };
        cpu.at_once(others, receive, || scatter.put_all(&put))
    }
}

/// Words of four bytes of a position: positions in `f64` travel as pairs of words.
pub(crate) fn words_of(precision: Precision) -> usize {
    match precision {
        Precision::Single => 3,
        Precision::Double => 6,
    }
}

/// Positions by their [words](words_of), one behind the other; words need not be aligned as their
/// pairs are.
///
/// # Errors
/// None for whole points.
pub(crate) fn positions_of(
    words: &[f32],
    precision: Precision,
) -> Result<Positions<'_>, nearfield_grid::Error> {
    match precision {
        Precision::Single => Ok(words.as_chunks::<3>().0.into()),
        Precision::Double => {
            let (bytes, points) = (bytemuck::cast_slice(words), words.len() / 6);
            Positions::strided_f64(bytes, 0, size_of::<[f64; 3]>(), points)
        }
    }
}

/// Bounds of positions that several threads look at.
///
/// None inside once a number was not finite. The lock is taken once per stretch, so workers rarely
/// meet there.
pub(crate) struct RunningBounds {
    precision: Precision,
    seen: Mutex<Option<Bounds>>,
}

impl RunningBounds {
    /// Of no positions yet.
    pub(crate) fn new(precision: Precision) -> Self {
        let seen = Mutex::new(Some(Bounds::EMPTY));
        Self { precision, seen }
    }

    /// Takes some whole points in, by their [words](words_of).
    pub(crate) fn look(&self, words: &[f32]) {
        let found = positions_of(words, self.precision)
            .and_then(|positions| Bounds::of(positions, &Domain::OPEN));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = seen.zip(found.ok()).map(|(all, more)| all.union(&more));
    }

    /// Bounds of all; None where some are not finite.
    pub(crate) fn bounds(self) -> Option<Bounds> {
        self.seen
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_number_is_sent_once_and_in_order() {
        let cpu = CpuBackend::new(3).unwrap();
        for len in [0, 1, COPIED, 3 * COPIED + 17, 10 * COPIED] {
            let from: Vec<f32> = (0..len).map(|k| k as f32).collect();
            let (head, tail) = from.split_at(len / 3);
            for piece in [1, COPIED, 2 * COPIED + 1, 100 * COPIED] {
                for from in [&[&from[..]][..], &[head, &[], tail]] {
                    let mut to = vec![-1.0; len + 5];
                    let fields: Vec<Field> = from.iter().map(|&from| from.into()).collect();
                    let upload = StagedUpload::in_pieces(&fields, &mut to, |_| (), piece);
                    let mut sent = Vec::new();
                    let send = |first: usize, numbers: &[f32]| {
                        assert_eq!(first, sent.len());
                        sent.extend_from_slice(numbers);
                        Ok::<(), ()>(())
                    };
                    upload.send(&cpu, send).unwrap();
                    let from = from.concat();
                    assert_eq!(sent, from, "{len} in pieces of {piece}");
                    assert_eq!((&to[..len], &to[len..]), (&from[..], &[-1.0; 5][..]));
                }
            }
        }
    }

    #[test]
    fn strided_numbers_are_packed_on_the_way() {
        let cpu = CpuBackend::new(3).unwrap();
        let points = 2 * COPIED / 3 + 5;
        let of = |point: usize, channel: usize| (7 * point + channel) as f32;
        for (channels, stride, offset) in [(1, 5, 0), (3, 4, 1), (2, 2, 1), (5, 9, 3)] {
            // A byte of the offset keeps the values from being aligned.
            let mut bytes = vec![0xff; 4 * (points * stride + offset) + 1];
            for (point, channel) in (0..points).flat_map(|p| (0..channels).map(move |c| (p, c))) {
                let at = 1 + 4 * (offset + point * stride + channel);
                bytes[at..at + 4].copy_from_slice(&of(point, channel).to_ne_bytes());
            }
            let strided =
                Field::strided(&bytes, 1 + 4 * offset, 4 * stride, points, channels).unwrap();
            let packed = [-5.0f32; 7];
            let from = [Field::from(&packed), strided, Field::from(&packed)];
            let mut to = vec![-1.0; 14 + points * channels];
            let seen = AtomicUsize::new(0);
            let look = |numbers: &[f32]| {
                seen.fetch_add(numbers.len(), Ordering::Relaxed);
            };
            let upload = StagedUpload::in_pieces(&from, &mut to, look, COPIED + 1);
            upload.send(&cpu, |_, _| Ok::<(), ()>(())).unwrap();
            assert_eq!(seen.into_inner(), to.len());
            let values = (0..points * channels).map(|k| of(k / channels, k % channels));
            let expected: Vec<f32> = packed.into_iter().chain(values).chain(packed).collect();
            assert!(to == expected, "{strided:?}");
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
            let upload = StagedUpload::in_pieces(&[Field::from(&from)], &mut to, look, COPIED);
            let sent = upload.send(&cpu, |first, _| {
                if refused && first > 0 {
                    Err("refused")
                } else {
                    Ok(())
                }
            });
            assert_eq!(sent.is_err(), refused);
            assert_eq!(
                seen.load(Ordering::Relaxed) as f32,
                from.iter().sum::<f32>()
            );
            assert_eq!(to, from);
        }
    }

    /// Pieces of numbers; some come before the device fails or has no more.
    struct SomePieces<'r> {
        numbers: &'r [f32],
        piece: usize,
        next: usize,
        come: usize,
        fails: bool,
    }

    impl<'r> ResultStream<'r> for SomePieces<'r> {
        fn arrived(&mut self) -> Result<Option<(usize, &'r [f32])>, DeviceLost> {
            let first = self.next * self.piece;
            if self.next >= self.come || first >= self.numbers.len() {
                return if self.fails {
                    Err(DeviceLost)
                } else {
                    Ok(None)
                };
            }
            self.next += 1;
            let end = (first + self.piece).min(self.numbers.len());
            Ok(Some((first, &self.numbers[first..end])))
        }
    }

    /// Scatters the results of `targets` targets, two numbers each.
    fn scatter(targets: usize, come: usize, fails: bool) -> (Vec<f32>, bool) {
        let cpu = CpuBackend::new(3).unwrap();
        let numbers: Vec<f32> = (0..2 * targets).map(|k| (k % 4096) as f32).collect();
        let mut values = vec![-1.0; targets];
        let mut arrivals = SomePieces {
            numbers: &numbers,
            piece: numbers_of_piece(targets, 2),
            next: 0,
            come,
            fails,
        };
        let put = |_: usize, from: &[f32], to: &mut [f32]| {
            for (to, from) in to.iter_mut().zip(from.as_chunks::<2>().0) {
                *to = from[0] + from[1];
            }
        };
        let scatter = ScatterResults::new(&mut values, 2);
        let received = scatter.hand_over(&cpu, &mut arrivals, false, put);
        (values, received.is_ok())
    }

    #[test]
    fn every_result_is_handed_over() {
        for targets in [0, 1, STRETCH, 3 * STRETCH + 17, 20 * STRETCH] {
            let (found, complete) = scatter(targets, usize::MAX, false);
            let of = |k: usize| (k % 4096) as f32;
            let expected: Vec<f32> = (0..targets).map(|t| of(2 * t) + of(2 * t + 1)).collect();
            assert!(complete && found == expected, "{targets}");
        }
    }

    #[test]
    fn no_thread_waits_for_results_that_do_not_come() {
        for fails in [false, true] {
            let (found, complete) = scatter(10 * MIN_RESULT_PIECE, 2, fails);
            assert_eq!(complete, !fails);
            let come = 2 * result_piece(10 * MIN_RESULT_PIECE);
            assert!(found[come..].iter().all(|&value| value == -1.0));
        }
    }
}
