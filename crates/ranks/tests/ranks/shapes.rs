//! Points and ranks that go badly together: empty ranks, more ranks than bricks, points on corners.

use crate::common::{dealt, neighbors_by_id, on_ranks, within};
use nearfield::{Engine, ListOrder};
use nearfield_ranks::{Error, RankedEngine, RankedSet, transport::threads::ThreadTransport};
use nearfield_testkit::{Cloud, random};

/// An engine whose rank gives the points with these numbers.
fn engine(
    transport: ThreadTransport,
    radius: f32,
    points: &[[f32; 3]],
    mine: &[usize],
) -> Result<(RankedEngine, RankedSet), Error> {
    let mut engine = RankedEngine::builder(radius).threads(1).build(transport)?;
    let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
    let set = engine.add_point_set(&crate::common::at(points, mine), Some(&ids))?;
    Ok((engine, set))
}

/// Checks the lists of all points if rank k gives the points `share(k)`; returns how many points
/// each rank owns.
fn check(
    ranks: usize,
    radius: f32,
    points: &[[f32; 3]],
    share: impl Fn(usize) -> Vec<usize> + Sync,
) -> Vec<usize> {
    let expected = neighbors_by_id(radius, points);
    on_ranks(ranks, |transport| {
        let mine = share(nearfield_ranks::transport::Transport::rank(&transport));
        let (mut engine, set) = engine(transport, radius, points, &mine)?;
        engine.find_neighbors()?;
        let lists = engine.lists_by_id(set, set)?;
        for (k, index) in mine.iter().enumerate() {
            assert_eq!(lists.of(k), expected[*index], "point {index}");
        }
        // The lists of owned points, where they were found.
        let lists = engine.neighbors(set, set)?;
        for k in 0..lists.len() {
            let id = lists.target_id(k);
            assert!(
                lists.ids_of(k).eq(expected[id as usize].iter().copied()),
                "point {id}"
            );
            let owned = lists.owned_of(k).map(|at| lists.owned_id(at));
            let halo = lists.halo_of(k).map(|at| lists.halo_id(at));
            let mut apart: Vec<u64> = owned.chain(halo).collect();
            apart.sort_unstable();
            assert_eq!(apart, expected[id as usize], "point {id}");
            assert_eq!(lists.count_of(k), apart.len());
        }
        let [owned, _] = engine.points(set)?;
        assert_eq!(owned, lists.len());
        Ok(owned)
    })
}

#[test]
fn any_rank_may_give_any_points() {
    within(60, || {
        let points = Cloud::by_name("lattice", 1000, 1).unwrap();
        for ranks in [1, 3, 8] {
            let all = || (0..points.len()).collect::<Vec<_>>();
            let first = |rank| if rank == 0 { all() } else { Vec::new() };
            let last = |rank| if rank + 1 == ranks { all() } else { Vec::new() };
            let reversed = |rank| dealt(points.len(), rank, ranks).into_iter().rev().collect();
            for owned in [
                check(ranks, 2.0, &points, first),
                check(ranks, 2.0, &points, last),
                check(ranks, 2.0, &points, reversed),
            ] {
                assert_eq!(owned.iter().sum::<usize>(), points.len());
                // Bricks of some fifty points, and equal work.
                let mean = points.len() / ranks;
                assert!(
                    owned.iter().all(|owned| owned.abs_diff(mean) < 150),
                    "{owned:?}"
                );
            }
        }
    });
}

#[test]
fn ranks_without_points_take_part() {
    within(60, || {
        // More ranks than points, than bricks and than cells.
        let few = [[0.0; 3], [0.5, 0.0, 0.0], [0.25, 0.25, 0.0]];
        for ranks in [2, 5, 12] {
            let owned = check(ranks, 1.0, &few, |rank| dealt(few.len(), rank, ranks));
            assert_eq!(owned.iter().sum::<usize>(), few.len());
            check(ranks, 1.0, &[], |_| Vec::new());
            // All in one place, which cannot be divided.
            let owned = check(ranks, 1.0, &[[7.0; 3]; 40], |rank| dealt(40, rank, ranks));
            assert_eq!(owned.iter().filter(|owned| **owned > 0).count(), 1);
        }
    });
}

#[test]
fn points_on_corners_of_domains_have_one_owner() {
    within(60, || {
        // Cells have the edge 1 and begin a twelfth before 0: points around every corner of many.
        let edge = 1.0 + f32::powi(2.0, -20);
        let step = [0.0, f32::EPSILON, -f32::EPSILON];
        let mut points = Vec::new();
        for corner in 0..6 * 6 * 6 {
            let at = [corner % 6, corner / 6 % 6, corner / 36];
            for step in step {
                points.push(at.map(|k| (k as f32 - 1.0 / 12.0) * edge * (1.0 + 4.0 * step)));
            }
        }
        for ranks in [2, 7, 12] {
            let owned = check(ranks, 1.0, &points, |rank| dealt(points.len(), rank, ranks));
            assert_eq!(owned.iter().sum::<usize>(), points.len());
        }
    });
}

#[test]
fn uneven_clouds_and_far_points_are_divided() {
    within(60, || {
        let mut points = Cloud::by_name("clusters", 2000, 3).unwrap();
        // An outlier, for which the bricks have to grow.
        points.push([1e9, -1e9, 1e9]);
        points.push([1e9, -1e9, 1e9]);
        let owned = check(5, 1.0, &points, |rank| dealt(points.len(), rank, 5));
        assert_eq!(owned.iter().sum::<usize>(), points.len());
    });
}

#[test]
fn numbers_are_made_where_no_ids_are_given() {
    within(20, || {
        let ids = on_ranks(3, |transport| {
            let mut engine = RankedEngine::builder(1.0)
                .threads(1)
                .build::<f32>(transport)?;
            let points = vec![[engine.rank() as f32; 3]; engine.rank() + 1];
            let set = engine.add_point_set(&points, None)?;
            Ok(engine.ids(set)?.to_vec())
        });
        assert_eq!(ids, [vec![0], vec![1, 2], vec![3, 4, 5]]);
    });
}

#[test]
fn pairs_of_sets_that_are_switched_off_have_no_lists() {
    within(20, || {
        let points = Cloud::by_name("lattice", 300, 1).unwrap();
        on_ranks(3, |transport| {
            let mine = dealt(
                points.len(),
                nearfield_ranks::transport::Transport::rank(&transport),
                3,
            );
            let (mut engine, fluid) = engine(transport, 2.0, &points, &mine)?;
            let wall = engine.add_point_set(&[[1.0, 1.0, 1.0]], None)?;
            engine.set_active(wall, fluid, false)?;
            engine.find_neighbors()?;
            assert!(engine.neighbors(wall, fluid).is_err());
            assert!(engine.lists_by_id(wall, fluid).is_err());
            // Every rank gave one point of the wall, all at the same place.
            let expected = neighbors_by_id(2.0, &points);
            assert!(expected.iter().any(|list| list.len() > 10));
            let lists = engine.lists_by_id(fluid, wall)?;
            for (k, index) in mine.iter().enumerate() {
                let d2: f32 = points[*index].iter().map(|x| (x - 1.0) * (x - 1.0)).sum();
                if (d2 - 4.0).abs() > 1e-3 {
                    let all = if d2 < 4.0 { vec![0, 1, 2] } else { vec![] };
                    assert_eq!(lists.of(k), all, "point {index}");
                }
            }
            Ok(())
        });
    });
}

#[test]
fn all_pairs_of_sets_are_switched_also_those_of_later_sets() {
    within(20, || {
        let points = Cloud::by_name("lattice", 300, 1).unwrap();
        on_ranks(3, |transport| {
            let rank = nearfield_ranks::transport::Transport::rank(&transport);
            let mine = dealt(points.len(), rank, 3);
            let (mut engine, fluid) = engine(transport, 2.0, &points, &mine)?;
            engine.set_all_active(false)?;
            let wall = engine.add_point_set(&[[1.0, 1.0, 1.0]], None)?;
            engine.set_active(fluid, wall, true)?;
            engine.find_neighbors()?;
            let off = [(fluid, fluid), (wall, fluid), (wall, wall)];
            assert!(
                off.iter()
                    .all(|(of, among)| engine.neighbors(*of, *among).is_err())
            );
            let lists = engine.lists_by_id(fluid, wall)?;
            engine.set_all_active(true)?;
            engine.set_active(wall, wall, false)?;
            engine.find_neighbors()?;
            assert!(engine.neighbors(wall, wall).is_err());
            assert!(engine.neighbors(wall, fluid).is_ok());
            assert_eq!(engine.lists_by_id(fluid, wall)?, lists);
            let expected = neighbors_by_id(2.0, &points);
            let found = engine.lists_by_id(fluid, fluid)?;
            for (k, index) in mine.iter().enumerate() {
                assert_eq!(found.of(k), expected[*index], "point {index}");
            }
            Ok(())
        });
    });
}

#[test]
fn space_is_divided_anew_by_the_work_there_is() {
    within(60, || {
        // The first positions are even, the next ones gather in a corner.
        let even = Cloud::by_name("lattice", 4000, 1).unwrap();
        let dense: Vec<[f32; 3]> = even
            .iter()
            .map(|at| at.map(|x| if x < 12.0 { x } else { 0.3 * x }))
            .collect();
        let expected = neighbors_by_id(1.5, &dense);
        let found = on_ranks(4, |transport| {
            let rank = nearfield_ranks::transport::Transport::rank(&transport);
            let mine = dealt(even.len(), rank, 4);
            let (mut engine, set) = engine(transport, 1.5, &even, &mine)?;
            engine.update(set, &crate::common::at(&dense, &mine))?;
            let before = owned_pairs(&mut engine, set)?;
            engine.rebalance()?;
            let after = owned_pairs(&mut engine, set)?;
            let lists = engine.lists_by_id(set, set)?;
            for (k, index) in mine.iter().enumerate() {
                assert_eq!(lists.of(k), expected[*index], "point {index}");
            }
            Ok([before, after])
        });
        let imbalance = |k: usize| {
            let pairs = found.iter().map(|found| found[k] as f64);
            let (sum, max) = (pairs.clone().sum::<f64>(), pairs.fold(0.0, f64::max));
            max * 4.0 / sum
        };
        // These fill a few bricks, which are not divided.
        assert!(imbalance(0) > 2.5, "{found:?}");
        assert!(imbalance(1) < 1.75, "{found:?}");
    });
}

/// Number of pairs whose target this rank owns.
fn owned_pairs(engine: &mut RankedEngine, set: RankedSet) -> Result<usize, Error> {
    engine.find_neighbors()?;
    let lists = engine.neighbors(set, set)?;
    Ok((0..lists.len()).map(|k| lists.count_of(k)).sum())
}

#[test]
fn a_moving_cloud_migrates_and_stays_exact() {
    within(120, || {
        let start = Cloud::by_name("pool-spray", 1500, 5).unwrap();
        let start: Vec<[f32; 3]> = start.iter().map(|at| at.map(|x| 0.5 * x)).collect();
        let mut random = random::Random::new(11);
        let velocities: Vec<[f32; 3]> = (start.iter())
            .map(|_| std::array::from_fn(|_| random.between(-0.2, 0.2) as f32))
            .collect();
        let box_length = 14.0;
        for ranks in [1, 2, 5] {
            // Lists and sums of one engine at every step, on the same path.
            let mut positions = start.clone();
            let builder = Engine::builder(1.5)
                .list_order(ListOrder::Ascending)
                .threads(1);
            let builder = builder.periodic([Some(box_length), None, Some(box_length)]);
            let mut one = builder.build().unwrap();
            let set = one.add_point_set(&positions).unwrap();
            let mut steps = Vec::new();
            for _ in 0..100 {
                step(&mut positions, &velocities);
                one.update(set, &positions).unwrap();
                one.find_neighbors().unwrap();
                let lists = one.neighbors(set, set).unwrap().to_csr().unwrap();
                let sums = one.traverse(&crate::common::Uneven, set, set);
                let masses: Vec<f32> = (0..start.len()).map(|k| 1.0 + k as f32 * 0.01).collect();
                let sums = sums.targets(&masses).sources((&velocities, &masses));
                steps.push((lists, sums.over_lists().run().unwrap()));
            }
            on_ranks(ranks, |transport| {
                let builder = RankedEngine::builder(1.5).threads(1).deterministic(true);
                let builder = builder.periodic([Some(box_length), None, Some(box_length)]);
                let mut engine = builder.build::<f32>(transport)?;
                let mine = dealt(start.len(), engine.rank(), ranks);
                let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
                let mut positions = crate::common::at(&start, &mine);
                let mut moving = crate::common::at(&velocities, &mine);
                let set = engine.add_point_set(&positions, Some(&ids))?;
                for (number, (lists, sums)) in steps.iter().enumerate() {
                    step(&mut positions, &moving);
                    let moved = engine.migrate(set, &positions)?;
                    positions = moved.bring(&mut engine, &positions)?;
                    moving = moved.bring(&mut engine, &moving)?;
                    engine.find_neighbors()?;
                    let found = engine.lists_by_id(set, set)?;
                    let ids = engine.ids(set)?.to_vec();
                    assert!(ids.is_sorted());
                    assert_eq!(
                        engine.points(set)?[0],
                        ids.len(),
                        "callers own their points"
                    );
                    for (k, id) in ids.iter().map(|id| *id as usize).enumerate() {
                        assert_eq!(moving[k], velocities[id], "step {number}");
                        let list = &lists.indices
                            [lists.offsets[id] as usize..lists.offsets[id + 1] as usize];
                        let list = list.iter().map(|j| u64::from(*j));
                        assert!(list.eq(found.of(k).iter().copied()), "step {number}");
                    }
                    let masses: Vec<f32> = ids.iter().map(|id| 1.0 + *id as f32 * 0.01).collect();
                    let found = engine.traverse(&crate::common::Uneven, set, set);
                    let found = found.targets(&masses).sources((&moving, &masses)).run()?;
                    for (k, id) in ids.iter().map(|id| *id as usize).enumerate() {
                        let (found, sum) = (found[k], sums[id]);
                        assert_eq!(found.map(f32::to_bits), sum.map(f32::to_bits));
                    }
                    // Every 30 steps space is divided anew, and callers are not the owners.
                    if number % 30 == 29 {
                        engine.rebalance()?;
                    }
                }
                Ok(())
            });
        }
    });
}

/// Moves points; every point has the same path wherever it is computed.
fn step(positions: &mut [[f32; 3]], velocities: &[[f32; 3]]) {
    for (at, velocity) in positions.iter_mut().zip(velocities) {
        for (x, v) in at.iter_mut().zip(velocity) {
            *x += v;
        }
    }
}
