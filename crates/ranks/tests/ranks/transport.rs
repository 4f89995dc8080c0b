//! Ranks as threads keep to the protocol of transports, and each learns what became of the others.

use crate::common::{Counting, within};
use nearfield_ranks::transport::{Fault, FaultCause, Tag, Transport, threads};
use std::sync::Arc;

#[test]
fn ranks_as_threads_keep_to_the_protocol() {
    within(60, || {
        for case in &crate::protocol::CASES {
            for ranks in [1, 2, 3, 5, 12] {
                if ranks >= case.min_ranks {
                    let ended = threads::run(ranks, |transport| (case.run)(Box::new(transport)));
                    assert_eq!(ended, vec![Ok(()); ranks], "{}", case.name);
                }
            }
        }
    });
}

/// The fault of a transport whose ranks are told apart by processes.
fn cannot_hand_over(rank: usize) -> Fault {
    let why = "something is to be handed over to a rank in another process";
    let cause = FaultCause::Failed(why.to_owned());
    Fault { rank, cause }
}

#[test]
fn threads_hand_things_over_in_the_order_of_their_messages() {
    const TAG: Tag = Tag(Tag::FIRST_FREE);
    within(20, || {
        let ended = threads::run(2, |mut rank| {
            assert!(rank.hands_over());
            let other = 1 - rank.rank();
            let given = Arc::new(rank.rank());
            rank.post(other, TAG, vec![1])?;
            rank.hand_over(other, TAG, vec![2], Box::new(given.clone()))?;
            // It is dropped if it is not taken.
            rank.hand_over(other, TAG, vec![3], Box::new(given))?;
            let (message, with) = rank.receive_handed(other, TAG)?;
            assert!(message == [1] && with.is_none());
            let (message, with) = rank.receive_handed(other, TAG)?;
            let with = with.and_then(|with| with.downcast::<Arc<usize>>().ok());
            assert_eq!(
                (&message[..], with.map(|with| **with)),
                (&[2][..], Some(other))
            );
            assert_eq!(rank.receive(other, TAG)?, [3]);
            assert!(!rank.in_bytes().hands_over());
            Ok::<_, Fault>(())
        });
        assert_eq!(ended, vec![Ok(Ok(())); 2]);
        let ended = threads::run(2, |rank| {
            let (number, (mut rank, _)) = (rank.rank(), Counting::new(rank));
            if number == 1 {
                assert!(!rank.hands_over());
                return rank.hand_over(0, TAG, Vec::new(), Box::new(()));
            }
            rank.receive(1, TAG).map(drop)
        });
        assert_eq!(ended, vec![Ok(Err(cannot_hand_over(1))); 2]);
    });
}

#[test]
fn what_a_rank_returned_or_that_it_panicked_is_known_in_the_end() {
    within(20, || {
        let found = threads::run(4, |mut rank| {
            if rank.rank() == 1 {
                panic!("on purpose");
            }
            rank.receive(1, Tag(Tag::FIRST_FREE))
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
