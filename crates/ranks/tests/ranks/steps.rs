//! Queries, another radius, times of a step, and domains that follow the times of the ranks.

use crate::common::{at, dealt, on_ranks, within};
use nearfield::{Engine, ListOrder, RadiusRule, kernels::SphDensity};
use nearfield_ranks::{Error, ErrorKind, RankedEngine, RankedSet, transport::Transport};
use nearfield_testkit::Cloud;
use std::time::Duration;

/// By position, the ids that one engine finds; point k has the id k.
fn queried(
    radius: f32,
    periodic: [Option<f64>; 3],
    points: &[[f32; 3]],
    positions: &[[f32; 3]],
) -> Vec<Vec<u64>> {
    let builder = Engine::builder(radius).list_order(ListOrder::Ascending);
    let mut engine = builder.threads(1).periodic(periodic).build().unwrap();
    let set = engine.add_point_set(points).unwrap();
    let lists = engine.query(positions, set).unwrap();
    let ids = lists.iter();
    ids.map(|list| list.iter().map(|j| u64::from(*j)).collect())
        .collect()
}

#[test]
fn positions_anywhere_are_answered_by_the_ranks_that_know() {
    within(60, || {
        let points = Cloud::by_name("lattice", 1500, 3).unwrap();
        // Among the points, on one of them, at their edge, and far out.
        let mut positions: Vec<[f32; 3]> = (0..150)
            .map(|k| [0.618, 0.414, 0.732].map(|step| 14.0 * (k as f32 * step).fract() - 1.0))
            .collect();
        positions.extend([points[7], [-1.9, 3.0, 3.0], [500.0, -3.0, 1e6], [-1e7; 3]]);
        for periodic in [[None; 3], [Some(12.5), None, Some(3.0)]] {
            let expected = queried(2.0, periodic, &points, &positions);
            for ranks in [1, 3, 8] {
                on_ranks(ranks, |transport| {
                    let rank = transport.rank();
                    let builder = RankedEngine::builder(2.0).threads(1).periodic(periodic);
                    let mut engine = builder.build::<f32>(transport)?;
                    let mine = dealt(points.len(), rank, ranks);
                    let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
                    let set = engine.add_point_set(&at(&points, &mine), Some(&ids))?;
                    // One rank asks for nothing; halos are under way in one round.
                    for _round in 0..2 {
                        let asked = match rank {
                            1 => Vec::new(),
                            _ => dealt(positions.len(), rank, ranks),
                        };
                        let found = engine.query(&at(&positions, &asked), set)?;
                        for (k, index) in asked.iter().enumerate() {
                            assert_eq!(found.of(k), expected[*index], "position {index}");
                        }
                        let here = engine.ids(set)?.iter().map(|id| *id as usize);
                        let here = at(&points, &here.collect::<Vec<_>>());
                        let _ = engine.migrate(set, &here)?;
                    }
                    Ok(())
                });
            }
        }
    });
}

#[test]
fn positions_that_cannot_be_used_are_refused_on_all_ranks() {
    within(20, || {
        let errors = on_ranks(3, |transport| {
            let rank = transport.rank();
            let mut engine = RankedEngine::builder(1.0).threads(1).build(transport)?;
            let set = engine.add_point_set(&[[rank as f32, 0.0, 0.0]], None)?;
            let position = [if rank == 2 { f32::NAN } else { 0.5 }, 0.0, 0.0];
            let error = engine.query(&[position], set).unwrap_err();
            let found = engine.query(&[[0.5, 0.0, 0.0]], set)?;
            assert_eq!(found.of(0), [0, 1]);
            Ok(error)
        });
        assert!(errors.iter().all(|error| *error == errors[0]));
        let ErrorKind::Refused { rank, message, .. } = errors[0].kind() else {
            panic!("{:?}", errors[0]);
        };
        assert_eq!(*rank, 2);
        assert!(
            message.contains("position: point 0 has x = NaN"),
            "{message}"
        );
    });
}

#[test]
fn another_radius_is_that_of_one_engine_and_a_bad_one_changes_nothing() {
    within(60, || {
        let points = Cloud::by_name("lattice", 1200, 3).unwrap();
        on_ranks(4, |transport| {
            let mine = dealt(points.len(), transport.rank(), 4);
            let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
            let builder = RankedEngine::builder(1.5)
                .threads(1)
                .radii(RadiusRule::Gather);
            let mut engine = builder.build::<f32>(transport)?;
            let set = engine.add_point_set(&at(&points, &mine), Some(&ids))?;
            let own = 1.25 + 0.25 * engine.rank() as f32 / 3.0;
            engine.set_radii(set, &vec![own; mine.len()])?;
            let count = |engine: &mut RankedEngine| -> Result<Vec<u32>, Error> {
                engine.find_neighbors()?;
                let lists = engine.lists_by_id(set, set)?;
                let counts = engine.count_neighbors(set, set)?;
                assert!((0..counts.len()).all(|k| lists.of(k).len() == counts[k] as usize));
                Ok(counts)
            };
            let before = count(&mut engine)?;
            for (radius, text) in [
                (f32::NAN, "NaN"),
                // The lowest rank whose points have larger ones is named, with one of these.
                (1.4, "rank 2: point 0 has the radius 1.4166666, more than"),
            ] {
                let error = engine.set_radius(radius).unwrap_err();
                assert!(error.to_string().contains(text), "{error}");
                assert_eq!(count(&mut engine)?, before);
            }
            // Cells grow, and the points keep their radii.
            engine.set_radius(2.5)?;
            assert_eq!(count(&mut engine)?, before);
            engine.set_radii(set, &vec![2.5; mine.len()])?;
            let expected = queried(2.5, [None; 3], &points, &at(&points, &mine));
            let found = count(&mut engine)?;
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(*found as usize, expected.len() - 1, "itself is left out");
            }
            Ok(())
        });
    });
}

#[test]
fn a_step_tells_where_its_time_went() {
    within(60, || {
        let points = Cloud::by_name("lattice", 20_000, 1).unwrap();
        let hidden = on_ranks(2, |transport| {
            let mine = dealt(points.len(), transport.rank(), 2);
            let mut engine = RankedEngine::builder(2.0).threads(1).build(transport)?;
            let set = engine.add_point_set(&at(&points, &mine), None)?;
            let moved = engine.migrate(set, &at(&points, &mine))?;
            let positions = moved.bring(&mut engine, &at(&points, &mine))?;
            engine.find_neighbors()?;
            let (kernel, masses) = (SphDensity::with_support(2.0), vec![1.0; positions.len()]);
            for _ in 0..3 {
                engine.update(set, &positions)?;
                let begun = engine.last_step();
                assert_eq!((begun.interior, begun.border), Default::default());
                engine.find_neighbors()?;
                engine.traverse(&kernel, set, set).sources(&masses).run()?;
            }
            let step = engine.last_step();
            assert!(
                step.interior > Duration::ZERO && step.border > Duration::ZERO,
                "{step:?}"
            );
            assert!(
                step.halo >= step.waiting && step.halo > Duration::ZERO,
                "{step:?}"
            );
            assert!(step.agreement > Duration::ZERO, "{step:?}");
            Ok(step.hidden())
        });
        assert!(
            hidden.iter().all(|hidden| (0.0..=1.0).contains(hidden)),
            "{hidden:?}"
        );
    });
}

#[test]
fn sets_may_move_while_halos_of_others_are_under_way() {
    within(60, || {
        let fluid = Cloud::by_name("lattice", 1000, 1).unwrap();
        let wall: Vec<[f32; 3]> = (0..300)
            .map(|k| [(k % 20) as f32 * 0.5, (k / 20) as f32 * 0.5, -0.5])
            .collect();
        // Half of the fluid changes its place with the other half, so that all of it leaves.
        let turned: Vec<[f32; 3]> = (fluid.iter())
            .map(|[x, y, z]| [9.0 - x, 9.0 - y, 9.0 - z])
            .collect();
        let builder = Engine::builder(1.5).list_order(ListOrder::Ascending);
        let mut one = builder.threads(1).build().unwrap();
        let sets = [&turned, &wall].map(|points| one.add_point_set(points).unwrap());
        one.find_neighbors().unwrap();
        for ranks in [2, 5] {
            on_ranks(ranks, |transport| {
                let rank = transport.rank();
                let mut engine = RankedEngine::builder(1.5)
                    .threads(1)
                    .build::<f32>(transport)?;
                let mut names = Vec::new();
                for points in [&fluid, &wall] {
                    let mine = dealt(points.len(), rank, ranks);
                    let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
                    let set = engine.add_point_set(&at(points, &mine), Some(&ids))?;
                    let _ = engine.migrate(set, &at(points, &mine))?;
                    names.push(set);
                }
                let here = |engine: &RankedEngine, set: usize, points: &[[f32; 3]]| {
                    let ids = engine.ids(names[set]).unwrap().iter();
                    at(points, &ids.map(|id| *id as usize).collect::<Vec<_>>())
                };
                // The halo of either set is under way when the other one travels far.
                let walls = here(&engine, 1, &wall);
                engine.update(names[1], &walls)?;
                let away = here(&engine, 0, &turned);
                engine.update(names[0], &away)?;
                engine.update(names[1], &walls)?;
                let _ = engine.migrate(names[0], &away)?;
                engine.update(names[1], &walls)?;
                engine.find_neighbors()?;
                for (t, s) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let expected = one.neighbors(sets[t], sets[s]).unwrap();
                    let found = engine.lists_by_id(names[t], names[s])?;
                    for (k, id) in engine.ids(names[t])?.iter().enumerate() {
                        let expected = expected.of(*id as usize).iter();
                        assert!(
                            found
                                .of(k)
                                .iter()
                                .copied()
                                .eq(expected.map(|j| u64::from(*j)))
                        );
                    }
                }
                Ok(())
            });
        }
    });
}

/// The time that a rank would take if each pair and each point took as long everywhere.
fn emulated(engine: &mut RankedEngine, set: RankedSet, slowness: f64) -> Result<f64, Error> {
    engine.find_neighbors()?;
    let lists = engine.neighbors(set, set)?;
    let pairs: usize = (0..lists.len()).map(|k| lists.count_of(k)).sum();
    Ok(slowness * 1e-8 * (pairs + 20 * lists.len()) as f64)
}

/// The slowest rank by the mean after ten steps, and before.
fn settled(
    ranks: usize,
    radius: f32,
    points: &[[f32; 3]],
    slowness: impl Fn(usize) -> f64 + Sync,
) -> [f64; 2] {
    let found = on_ranks(ranks, |transport| {
        let rank = transport.rank();
        let mine = dealt(points.len(), rank, ranks);
        let mut engine = RankedEngine::builder(radius).threads(1).build(transport)?;
        let set = engine.add_point_set(&at(points, &mine), None)?;
        let mut positions = at(points, &mine);
        let mut times = Vec::new();
        for _ in 0..=10 {
            let moved = engine.migrate(set, &positions)?;
            positions = moved.bring(&mut engine, &positions)?;
            let time = emulated(&mut engine, set, slowness(rank))?;
            times.push(time);
            engine.balance_by(Duration::from_secs_f64(time))?;
        }
        Ok([times[0], times[10]])
    });
    [1, 0].map(|step| {
        let times = found.iter().map(|times| times[step]);
        let (sum, max) = (times.clone().sum::<f64>(), times.fold(0.0, f64::max));
        max * ranks as f64 / sum
    })
}

#[test]
fn unbalanced_clouds_are_in_balance_after_ten_steps() {
    within(120, || {
        let clouds = [("pool-spray", 2.0), ("clusters", 0.7), ("plummer", 0.05)];
        for (name, radius) in clouds {
            let points = Cloud::by_name(name, 40_000, 5).unwrap();
            let [after, before] = settled(16, radius, &points, |_| 1.0);
            println!("{name}: {before:.3} became {after:.3}");
            assert!(after < 1.08, "{name}: {before:.3} became {after:.3}");
        }
    });
}

#[test]
fn ranks_of_unequal_speed_get_unequal_shares() {
    within(60, || {
        let points = Cloud::by_name("lattice", 30_000, 5).unwrap();
        let [after, before] = settled(6, 2.0, &points, |rank| 1.0 + 0.4 * rank as f64);
        assert!(
            before > 1.4 && after < 1.08,
            "{before:.3} became {after:.3}"
        );
    });
}
