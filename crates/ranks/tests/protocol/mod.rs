//! What every transport keeps to: one list of cases, which each kind of transport runs.
//!
//! A case is what one rank does, with assertions on what this rank sees. It gives its transport up
//! in the end, or by a panic on purpose.

use nearfield_ranks::transport::{Fault, FaultCause, Reduction, Tag, Transport};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A transport of any kind.
pub(crate) type Rank = Box<dyn Transport>;

/// One case: how it is named, the fewest ranks that it makes sense on, and what a rank does.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) min_ranks: usize,
    pub(crate) run: fn(Rank),
}

/// All cases.
pub(crate) const CASES: [Case; 9] = [
    case("messages arrive in order by sender and tag", 1, in_order),
    case(
        "reductions and gatherings are the same on every rank",
        1,
        collective,
    ),
    case("long messages arrive whole, and empty ones too", 2, long),
    case("all post much before any receives", 2, much),
    case("a panic of a rank is a fault on every rank", 2, panics),
    case(
        "a rank that leaves is a fault on every rank that needs it",
        2,
        leaves,
    ),
    case(
        "messages of a rank that has left still arrive",
        2,
        last_words,
    ),
    case(
        "of two faults at a time all ranks see the same",
        2,
        two_faults,
    ),
    case("ranks that reduce different numbers are told", 2, different),
];

const fn case(name: &'static str, min_ranks: usize, run: fn(Rank)) -> Case {
    Case {
        name,
        min_ranks,
        run,
    }
}

const TAG: Tag = Tag(Tag::FIRST_FREE);
const OTHER: Tag = Tag(Tag::FIRST_FREE + 1);

fn in_order(mut rank: Rank) {
    let (me, ranks) = (rank.rank(), rank.ranks());
    for to in 0..ranks {
        for number in 0..5u8 {
            rank.post(to, TAG, vec![me as u8, number]).unwrap();
            rank.post(to, OTHER, vec![number]).unwrap();
        }
    }
    // The last sender first, and the second tag before the first.
    for from in (0..ranks).rev() {
        for number in 0..5u8 {
            assert_eq!(rank.receive(from, OTHER), Ok(vec![number]));
        }
        for number in 0..5u8 {
            assert_eq!(rank.receive(from, TAG), Ok(vec![from as u8, number]));
        }
        assert_eq!(rank.poll(from, TAG), Ok(None));
    }
    // No rank leaves before the others have looked.
    rank.gather(&[]).unwrap();
}

fn collective(mut rank: Rank) {
    let (me, ranks) = (rank.rank(), rank.ranks());
    // 0.1 + 0.2 + … depends on the order of summation: pairs, pairs of pairs and so on.
    let number = |rank: usize| 0.1 * (rank + 1) as f64;
    let mut sums: Vec<f64> = (0..ranks).map(number).collect();
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|pair| pair.iter().sum()).collect();
    }
    let sum = sums[0];
    let (mut low, mut total) = ([me as f64, -(me as f64)], [number(me)]);
    rank.reduce(&mut low, Reduction::Min).unwrap();
    rank.reduce(&mut total, Reduction::Sum).unwrap();
    assert_eq!((low, total), ([0.0, -((ranks - 1) as f64)], [sum]));
    let all: Vec<Vec<u8>> = (0..ranks).map(|rank| vec![rank as u8; rank]).collect();
    assert_eq!(rank.gather(&vec![me as u8; me]), Ok(all));
}

fn long(mut rank: Rank) {
    let (me, ranks) = (rank.rank(), rank.ranks());
    let message = |from: usize, len: usize| -> Vec<u8> {
        let byte = |k: usize| (k * 7 + k / 251 + from) as u8;
        (0..len).map(byte).collect()
    };
    // From eager messages to those that wait for their receiver.
    let lengths = [0, 1, 999, 1000, 1001, 100_000, 3_000_017];
    let next = (me + 1) % ranks;
    for len in lengths {
        rank.post(next, TAG, message(me, len)).unwrap();
    }
    let before = (me + ranks - 1) % ranks;
    for len in lengths {
        let found = rank.receive(before, TAG).unwrap();
        assert!(
            found == message(before, len),
            "{} bytes of {len}",
            found.len()
        );
    }
}

fn much(mut rank: Rank) {
    let ranks = rank.ranks();
    for to in 0..ranks {
        for number in 0..200u8 {
            rank.post(to, TAG, vec![number; 20_000]).unwrap();
        }
    }
    for from in 0..ranks {
        for number in 0..200u8 {
            let found = rank.receive(from, TAG).unwrap();
            assert!(found.len() == 20_000 && found[19_999] == number);
        }
    }
}

/// The rank that a case is lost with.
fn last(rank: &Rank) -> usize {
    rank.ranks() - 1
}

fn panics(mut rank: Rank) {
    let (me, lost) = (rank.rank(), last(&rank));
    let fault = Fault {
        rank: lost,
        cause: FaultCause::Panicked,
    };
    if me == lost {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _leaves = rank;
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        return;
    }
    // All wait for themselves or each other, and not for the rank that is lost.
    assert_eq!(rank.receive((me + 1) % lost, TAG), Err(fault.clone()));
    // The fault stays, also for what needs nothing of that rank.
    assert_eq!(rank.post(me, TAG, vec![]), Err(fault.clone()));
    assert_eq!(rank.poll(me, TAG), Err(fault));
}

fn leaves(mut rank: Rank) {
    let lost = last(&rank);
    let fault = Fault {
        rank: lost,
        cause: FaultCause::Left,
    };
    if rank.rank() != lost {
        let reduced = rank.reduce(&mut [1.0], Reduction::Sum);
        assert_eq!(reduced, Err(fault), "the cause, not who passed it on");
    }
}

fn last_words(mut rank: Rank) {
    let lost = last(&rank);
    let fault = Fault {
        rank: lost,
        cause: FaultCause::Left,
    };
    if rank.rank() == lost {
        for to in 0..lost {
            rank.post(to, TAG, vec![5]).unwrap();
        }
        return;
    }
    // Unless another rank has found it gone before.
    match rank.receive(lost, TAG) {
        Ok(words) => assert_eq!(words, [5]),
        Err(found) => assert_eq!((rank.ranks() > 2, found), (true, fault.clone())),
    }
    let found = loop {
        match rank.poll(lost, TAG) {
            Ok(found) => assert_eq!(found, None),
            Err(found) => break found,
        }
    };
    assert_eq!(found, fault);
    assert_eq!(rank.post(0, TAG, vec![]), Err(fault));
}

fn two_faults(mut rank: Rank) {
    let (me, lost) = (rank.rank(), last(&rank));
    let cause = FaultCause::Failed("no memory".to_owned());
    let found = if me == 0 || me == lost {
        rank.fail(Fault { rank: me, cause })
    } else {
        rank.receive(me, TAG).unwrap_err()
    };
    assert!([0, lost].contains(&found.rank), "{found}");
    let FaultCause::Failed(text) = &found.cause else {
        panic!("{found}");
    };
    assert_eq!(text, "no memory");
    // Every later call has the same one, whatever this rank has reported.
    assert_eq!(rank.receive(0, TAG), Err(found.clone()));
    let other = Fault {
        rank: me,
        cause: FaultCause::Panicked,
    };
    assert_eq!(rank.fail(other), found);
}

fn different(mut rank: Rank) {
    let me = rank.rank();
    let mut values = vec![0.0; if me == 0 { 1 } else { 2 }];
    let fault = rank.reduce(&mut values, Reduction::Sum).unwrap_err();
    let cause = FaultCause::Message {
        found: 16,
        expected: 8,
    };
    assert_eq!(fault, Fault { rank: 0, cause });
}
