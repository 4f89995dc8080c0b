//! Points of one set travel while the halo of another is under way.

use crate::common::{on_ranks, within};
use nearfield_ranks::{RankedEngine, transport::Transport};

/// Points of a sheet, all given by rank 0.
fn sheet(rank: usize, [width, height]: [usize; 2], low: [f32; 2]) -> (Vec<[f32; 3]>, Vec<u64>) {
    let all = if rank == 0 { width * height } else { 0 };
    let point = |at: usize| {
        let [x, y] = [at % width, at / width].map(|k| 0.07 * k as f32);
        [low[0] + x, low[1] + y, 0.0]
    };
    ((0..all).map(point).collect(), (0..all as u64).collect())
}

#[test]
fn a_set_is_added_and_moved_while_the_halo_of_another_is_under_way() {
    within(60, || {
        for ranks in [1, 2, 3, 5] {
            let counts = on_ranks(ranks, |transport| {
                let rank = transport.rank();
                let builder = RankedEngine::builder(0.25).threads(1);
                let mut engine = builder.build::<f32>(transport)?;
                let (mut water, ids) = sheet(rank, [15, 30], [0.0, 0.0]);
                let fluid = engine.add_point_set(&water, Some(&ids))?;
                water = engine.migrate(fluid, &water)?.bring(&mut engine, &water)?;
                let (mut stones, ids) = sheet(rank, [60, 4], [-0.3, -0.3]);
                let walls = engine.add_point_set(&stones, Some(&ids))?;
                stones = engine
                    .migrate(walls, &stones)?
                    .bring(&mut engine, &stones)?;
                let mut counts = Vec::new();
                for step in 0..4 {
                    water.iter_mut().for_each(|at| at[0] += 0.3);
                    water = engine.migrate(fluid, &water)?.bring(&mut engine, &water)?;
                    if step == 2 {
                        engine.rebalance()?;
                        stones = engine
                            .migrate(walls, &stones)?
                            .bring(&mut engine, &stones)?;
                    }
                    let found = engine.count_neighbors(fluid, walls)?;
                    let mut sum = [found.iter().map(|count| f64::from(*count)).sum()];
                    engine.sum(&mut sum)?;
                    counts.push(sum[0]);
                }
                let mut points = [water.len() as f64, stones.len() as f64];
                engine.sum(&mut points)?;
                assert_eq!(points, [450.0, 240.0]);
                Ok(counts)
            });
            let expected = on_ranks(1, |transport| {
                let builder = RankedEngine::builder(0.25).threads(1);
                let mut engine = builder.build::<f32>(transport)?;
                let (mut water, _) = sheet(0, [15, 30], [0.0, 0.0]);
                let (stones, _) = sheet(0, [60, 4], [-0.3, -0.3]);
                let fluid = engine.add_point_set(&water, None)?;
                let walls = engine.add_point_set(&stones, None)?;
                let mut counts = Vec::new();
                for _ in 0..4 {
                    water.iter_mut().for_each(|at| at[0] += 0.3);
                    engine.update(fluid, &water)?;
                    let found = engine.count_neighbors(fluid, walls)?;
                    counts.push(found.iter().map(|count| f64::from(*count)).sum());
                }
                Ok::<Vec<f64>, _>(counts)
            });
            assert!(
                expected[0].iter().all(|count| *count > 100.0),
                "{expected:?}"
            );
            for counts in counts {
                assert_eq!(counts, expected[0], "on {ranks} ranks");
            }
        }
    });
}
