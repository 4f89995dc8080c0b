//! How many messages a step takes: one agreement for each call, and messages between neighbouring
//! ranks only.

use std::collections::HashSet;

use crate::common::{Counting, on_ranks, within};
use nearfield::kernels::SphDensity;
use nearfield_ranks::{Error, RankedEngine, transport::Transport};

/// Points of a row, 50 of each rank.
fn row(rank: usize) -> Vec<[f32; 3]> {
    let place = |k: usize| [0.5 * (50 * rank + k) as f32, 0.0, 0.0];
    (0..50).map(place).collect()
}

#[test]
fn a_step_has_an_agreement_for_each_call_and_talks_to_neighbours_only() {
    within(60, || {
        let ranks = 16;
        let found = on_ranks(ranks, |transport| {
            let (rank, (counting, counts)) = (transport.rank(), Counting::new(transport));
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(counting)?;
            let set = engine.add_point_set(&row(rank), None)?;
            let migration = engine.migrate(set, &row(rank))?;
            let mut mine = migration.bring(&mut engine, &row(rank))?;
            engine.find_neighbors()?;
            let kernel = SphDensity::with_support(1.0);
            let taken = || std::mem::take(&mut *counts.lock().unwrap());
            taken();
            let mut steps = Vec::new();
            // Nothing moves; then all points move on by a place, and some change their rank.
            for shift in [0.0, 0.0, 0.5, 0.5] {
                mine.iter_mut().for_each(|at| at[0] += shift);
                let migration = engine.migrate(set, &mine)?;
                let migrated = taken();
                let mut following = migration.follow();
                following.add(&mut mine);
                following.run(&mut engine)?;
                let followed = taken();
                engine.find_neighbors()?;
                let listed = taken();
                let masses = vec![1.0; mine.len()];
                engine.traverse(&kernel, set, set).sources(&masses).run()?;
                steps.push([migrated, followed, listed, taken()]);
            }
            Ok::<_, Error>(steps)
        });
        let mut partners = [0; 4];
        for (rank, steps) in found.iter().enumerate() {
            for (step, calls) in steps.iter().enumerate() {
                let collective = calls.each_ref().map(|counts| counts.collective);
                // The first points that leave may have other partners, on which all agree.
                let first = [1, 1, 3, 2][step];
                assert_eq!(collective, [first, 1, 1, 1], "rank {rank}, step {step}");
                if first == 3 {
                    continue;
                }
                let to: HashSet<_> = calls
                    .iter()
                    .flat_map(|counts| counts.posted.keys())
                    .collect();
                assert!(to.len() <= 2, "rank {rank}, step {step}: {calls:?}");
                partners[step] += to.len();
                let [migrated, _, listed, summed] = calls;
                assert_eq!(migrated.posted.len(), to.len());
                assert!(listed.posted.is_empty() && summed.posted.len() <= to.len());
                // Two halo points without their ids, behind two numbers and before one.
                for (messages, bytes) in migrated.posted.values() {
                    if step == 1 {
                        assert!(*messages == 1 && *bytes <= 24 + 3 * 12, "{bytes} bytes");
                    }
                    assert!(*messages <= first);
                }
            }
        }
        // The ranks that the curve makes neighbours on the row, each of the other.
        assert_eq!(partners, [30, 30, 0, 30]);
    });
}

#[test]
fn many_ranks_begin_without_a_message_for_each_pair_of_them() {
    within(60, || {
        let ranks = 64;
        let found = on_ranks(ranks, |transport| {
            let (rank, (counting, counts)) = (transport.rank(), Counting::new(transport));
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(counting)?;
            let ids: Vec<u64> = (0..50).map(|k| (50 * rank + k) as u64).collect();
            let set = engine.add_point_set(&row(rank), Some(&ids))?;
            let _ = engine.migrate(set, &row(rank))?;
            engine.find_neighbors()?;
            let counts = counts.lock().unwrap();
            Ok::<_, Error>(
                counts
                    .posted
                    .values()
                    .map(|(messages, _)| messages)
                    .sum::<usize>(),
            )
        });
        // Six rounds each time that numbers go around, and a few neighbours.
        assert!(found.iter().all(|messages| *messages < 64), "{found:?}");
    });
}
