//! Ranks as threads keep to the protocol of transports, and each learns what became of the others.

mod common;
mod protocol;

use common::within;
use nearfield_ranks::transport::{Fault, FaultCause, Tag, Transport, threads};

#[test]
fn ranks_as_threads_keep_to_the_protocol() {
    within(60, || {
        for case in &protocol::CASES {
            for ranks in [1, 2, 3, 5, 12] {
                if ranks >= case.min_ranks {
                    let ended = threads::run(ranks, |transport| (case.run)(Box::new(transport)));
                    assert_eq!(ended, vec![Ok(()); ranks], "{}", case.name);
                }
            }
        }
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
