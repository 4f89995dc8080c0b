//! The hand-offs between the thread that drives a device and the workers of the CPU pool, under
//! every interleaving of their threads that has at most `LOOM_MAX_PREEMPTIONS` preemptions (all of
//! them when it is not set). Production runs the same loops.
//!
//! Run by `scripts/loom`; without `--cfg loom` there is nothing here.
#![cfg(loom)]

use loom::{cell::UnsafeCell, sync::Arc, thread};
use nearfield_balance::run::{Scatter, Staging, hand_over};
use std::ops::Range;

/// Memory that loom watches: two accesses that no hand-off puts in order fail the model.
struct Watched(Vec<UnsafeCell<usize>>);

// SAFETY: its cells are loom's, which checks that accesses are in order.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, at: usize, value: usize) {
        // SAFETY: loom fails the model when another access is not ordered before or after this one.
        self.0[at].with_mut(|cell| unsafe { *cell += value });
    }

    fn get(&self, at: usize) -> usize {
        // SAFETY: as in `add`.
        self.0[at].with(|cell| unsafe { *cell })
    }
}

/// The hand-off of `StagedUpload`: one thread sends, others copy.
fn upload(helpers: usize, fails_at: Option<usize>) {
    const LEN: usize = 5;
    loom::model(move || {
        // Stretches of one element, pieces of two.
        let staging = Arc::new(Staging::new(LEN, 1, 2));
        let copy = Arc::new(Watched::new(LEN));
        let helpers: Vec<_> = (0..helpers)
            .map(|_| {
                let (staging, copy) = (staging.clone(), copy.clone());
                thread::spawn(move || {
                    let write = |range: Range<usize>| range.for_each(|at| copy.add(at, at + 1));
                    while staging.copy_next(&write) {}
                })
            })
            .collect();
        let mut sent = Vec::new();
        let write = |range: Range<usize>| range.for_each(|at| copy.add(at, at + 1));
        let result = staging.send_all(&write, |piece| {
            if fails_at == Some(piece.start) {
                return Err("refused");
            }
            sent.extend(piece.map(|at| copy.get(at)));
            Ok(())
        });
        assert_eq!(result.is_err(), fails_at.is_some());
        let expected: Vec<usize> = (1..=fails_at.unwrap_or(LEN)).collect();
        assert_eq!(sent, expected);
        for helper in helpers {
            helper.join().unwrap();
        }
        // Every element was copied once, by any thread.
        while staging.copy_next(&write) {}
        assert!((0..LEN).all(|at| copy.get(at) == at + 1));
    });
}

#[test]
fn a_piece_is_sent_when_its_last_stretch_is_copied() {
    upload(1, None);
    upload(2, None);
}

#[test]
fn a_send_that_fails_leaves_nothing_uncopied() {
    upload(1, Some(0));
    upload(1, Some(2));
}

/// The hand-off of `ScatterResults`: one thread receives and writes, another writes. `come` pieces
/// arrive. (Two threads that wait for a third may let each other run for ever in a model.)
fn scatter(come: usize, fails: bool) {
    const LEN: usize = 5;
    loom::model(move || {
        let results = Arc::new(Watched::new(LEN));
        let values = Arc::new(Watched::new(LEN));
        let scatter = Arc::new(Scatter::new(LEN, 1, 2));
        let put_all = |scatter: Arc<Scatter<usize>>, results: Arc<Watched>, to: Arc<Watched>| {
            scatter.put_all(&|piece: usize, first: usize, range: Range<usize>| {
                assert_eq!(first, 2 * piece);
                range.for_each(|at| to.add(at, results.get(at)));
            });
        };
        let theirs = (scatter.clone(), results.clone(), values.clone());
        let helper = thread::spawn(move || put_all(theirs.0, theirs.1, theirs.2));
        let mut next = 0;
        let received = scatter.receive(|| {
            if next == come {
                return if fails { Err("lost") } else { Ok(None) };
            }
            let piece = next;
            next += 1;
            (2 * piece..(2 * piece + 2).min(LEN)).for_each(|at| results.add(at, 10 + at));
            Ok(Some((piece, piece)))
        });
        assert_eq!(received.is_err(), fails);
        put_all(scatter, results.clone(), values.clone());
        helper.join().unwrap();
        for at in 0..LEN {
            let expected = if at < 2 * come { 10 + at } else { 0 };
            assert_eq!(values.get(at), expected);
        }
    });
}

#[test]
fn every_result_is_put_once_after_it_has_arrived() {
    scatter(3, false);
}

#[test]
fn no_thread_waits_for_results_that_do_not_come() {
    scatter(1, true);
    scatter(0, true);
    scatter(2, false);
}

#[test]
fn a_value_is_handed_over_or_the_wait_ends() {
    for gives in [true, false] {
        loom::model(move || {
            let places = Arc::new(Watched::new(1));
            let (give, awaited) = hand_over();
            let theirs = places.clone();
            let cpu = thread::spawn(move || {
                let handed = awaited.wait();
                if handed.is_some() {
                    theirs.add(0, 1);
                }
                handed
            });
            if gives {
                places.add(0, 1);
                give.give(7);
            } else {
                drop(give);
            }
            let handed = cpu.join().unwrap();
            assert_eq!(handed, gives.then_some(7));
            assert_eq!(places.get(0), 2 * usize::from(gives));
        });
    }
}

#[test]
fn a_value_for_nobody_is_dropped() {
    loom::model(|| {
        let (give, awaited) = hand_over();
        let cpu = thread::spawn(move || drop(awaited));
        give.give(Arc::new(1));
        cpu.join().unwrap();
    });
}
