//! Messages between ranks as threads, and what a lost rank means for the others.

mod common;

use common::within;
use nearfield_ranks::transport::{Fault, FaultCause, Reduction, Tag, Transport, threads};

const TAG: Tag = Tag(Tag::FIRST_FREE);
const OTHER: Tag = Tag(Tag::FIRST_FREE + 1);

#[test]
fn messages_arrive_in_order_by_sender_and_tag() {
    within(20, || {
        let received = threads::run(3, |mut rank| {
            let me = rank.rank();
            for to in 0..3 {
                for number in 0..5u8 {
                    rank.post(to, TAG, vec![me as u8, number])?;
                    rank.post(to, OTHER, vec![number])?;
                }
            }
            // The last sender first, and the second tag before the first.
            let mut received = Vec::new();
            for from in (0..3).rev() {
                for number in 0..5u8 {
                    assert_eq!(rank.receive(from, OTHER)?, [number]);
                }
                for number in 0..5u8 {
                    assert_eq!(rank.receive(from, TAG)?, [from as u8, number]);
                    received.push((from, number));
                }
                assert_eq!(rank.poll(from, TAG)?, None);
            }
            // No rank leaves before the others have looked.
            rank.gather(&[])?;
            Ok::<_, Fault>(received.len())
        });
        assert_eq!(received, vec![Ok(Ok(15)); 3]);
    });
}

#[test]
fn reductions_and_gatherings_are_the_same_on_every_rank() {
    within(20, || {
        for ranks in [1, 2, 5, 12] {
            // 0.1 + 0.2 + … depends on the order of summation.
            let number = |rank: usize| 0.1 * (rank + 1) as f64;
            let sum = (1..ranks).fold(number(0), |sum, rank| sum + number(rank));
            let found = threads::run(ranks, |mut rank| {
                let me = rank.rank();
                let (mut low, mut total) = ([me as f64, -(me as f64)], [number(me)]);
                rank.reduce(&mut low, Reduction::Min)?;
                rank.reduce(&mut total, Reduction::Sum)?;
                let all = rank.gather(&vec![me as u8; me])?;
                Ok::<_, Fault>((low, total, all))
            });
            let all: Vec<Vec<u8>> = (0..ranks).map(|rank| vec![rank as u8; rank]).collect();
            let expected = ([0.0, -((ranks - 1) as f64)], [sum], all);
            assert_eq!(found, vec![Ok(Ok(expected)); ranks]);
        }
    });
}

#[test]
fn a_panic_of_a_rank_is_a_fault_on_every_rank() {
    within(20, || {
        let found = threads::run(4, |mut rank| {
            if rank.rank() == 1 {
                panic!("on purpose");
            }
            // Ranks 2 and 3 wait for each other's messages, which never come, and not for rank 1.
            let waits_for = [2, 0, 3, 2][rank.rank()];
            rank.receive(waits_for, TAG)
        });
        let fault = Fault {
            rank: 1,
            cause: FaultCause::Panicked,
        };
        assert_eq!(found[1], Err(fault.clone()));
        for rank in [0, 2, 3] {
            assert_eq!(found[rank], Ok(Err(fault.clone())));
        }
    });
}

#[test]
fn a_rank_that_leaves_is_a_fault_on_every_rank_that_needs_it() {
    within(20, || {
        let found = threads::run(4, |mut rank| match rank.rank() {
            2 => Ok(0.0),
            _ => {
                let mut sum = [1.0];
                rank.reduce(&mut sum, Reduction::Sum)?;
                Ok(sum[0])
            }
        });
        let fault = Fault {
            rank: 2,
            cause: FaultCause::Left,
        };
        assert_eq!(found[2], Ok(Ok(0.0)));
        for rank in [0, 1, 3] {
            assert_eq!(
                found[rank],
                Ok(Err(fault.clone())),
                "the cause, not who passed it on"
            );
        }
    });
}

#[test]
fn messages_of_a_rank_that_has_left_still_arrive() {
    within(20, || {
        let mut ranks = threads::set(2);
        let (mut second, mut first) = (ranks.remove(1), ranks.remove(0));
        second.post(0, TAG, vec![5]).unwrap();
        drop(second);
        assert_eq!(first.poll(1, TAG), Ok(Some(vec![5])));
        let fault = Fault {
            rank: 1,
            cause: FaultCause::Left,
        };
        assert_eq!(first.poll(1, TAG), Err(fault.clone()));
        // The fault stays, also for what needs nothing of rank 1.
        assert_eq!(first.post(0, TAG, vec![]), Err(fault));
    });
}

#[test]
fn a_fault_that_a_rank_reports_ends_the_waits_of_all() {
    within(20, || {
        let fault = Fault {
            rank: 0,
            cause: FaultCause::Failed("no memory".to_owned()),
        };
        let found = threads::run(3, |mut rank| match rank.rank() {
            0 => Err(rank.fail(fault.clone())),
            _ => rank.receive(1, TAG).map(drop),
        });
        assert_eq!(found, vec![Ok(Err(fault.clone())); 3]);
    });
}

#[test]
fn ranks_that_reduce_different_numbers_are_told() {
    within(20, || {
        let found = threads::run(2, |mut rank| {
            let mut values = vec![0.0; 1 + rank.rank()];
            rank.reduce(&mut values, Reduction::Sum)
        });
        for found in found {
            let fault = found.unwrap().unwrap_err();
            assert!(
                matches!(
                    fault.cause,
                    FaultCause::Message {
                        found: 16,
                        expected: 8
                    }
                ),
                "{fault}"
            );
        }
    });
}
