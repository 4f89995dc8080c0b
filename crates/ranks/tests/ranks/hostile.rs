//! Calls that fail on one rank, or come in an order that leaves messages behind, do not change what
//! later calls find.

use crate::common::{at, dealt, neighbors_by_id, on_ranks, within};
use nearfield::{Pair, PairKernel, RadiusRule};
use nearfield_ranks::{Error, RankedEngine, RankedSet, transport::Transport};
use nearfield_testkit::Cloud;

/// Fails unless the lists of this rank's points are those of one engine.
fn check(engine: &mut RankedEngine, set: RankedSet, expected: &[Vec<u64>]) -> Result<(), Error> {
    engine.find_neighbors()?;
    let lists = engine.lists_by_id(set, set)?;
    for (k, id) in engine.ids(set)?.iter().enumerate() {
        assert_eq!(lists.of(k), expected[*id as usize], "point {id}");
    }
    Ok(())
}

/// Points of a moving lattice on ranks, whose callers own them.
struct Cast {
    engine: RankedEngine,
    set: RankedSet,
    rank: usize,
}

const POINTS: usize = 512;
const RADIUS: f32 = 1.5;

/// Where the points are after a number of steps.
fn moved(step: usize) -> Vec<[f32; 3]> {
    let points = Cloud::by_name("lattice", POINTS, 3).unwrap();
    let shift = 0.37 * step as f32;
    let turn = |k: usize| 0.4 * ((k * (step + 1)) as f32 * 0.618).fract();
    let all = points.iter().enumerate();
    all.map(|(k, [x, y, z])| [x + shift, y + turn(k), z - turn(k)])
        .collect()
}

impl Cast {
    fn new(transport: impl Transport + 'static, ranks: usize) -> Result<Self, Error> {
        let rank = transport.rank();
        let mut engine = RankedEngine::builder(RADIUS).threads(1).build(transport)?;
        let (points, mine) = (moved(0), dealt(POINTS, rank, ranks));
        let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
        let set = engine.add_point_set(&at(&points, &mine), Some(&ids))?;
        let _ = engine.migrate(set, &at(&points, &mine))?;
        Ok(Self { engine, set, rank })
    }

    /// Positions of this rank's points after a number of steps.
    fn positions(&self, step: usize) -> Result<Vec<[f32; 3]>, Error> {
        let points = moved(step);
        let ids = self.engine.ids(self.set)?.iter();
        Ok(ids.map(|id| points[*id as usize]).collect())
    }

    fn masses(&self, step: usize) -> Result<Vec<f32>, Error> {
        let ids = self.engine.ids(self.set)?.iter();
        Ok(ids.map(|id| (1 + step) as f32 + *id as f32).collect())
    }
}

/// Adds up the masses of the neighbours.
struct Sum;

impl PairKernel for Sum {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, _: Pair, (): (), mass: f32) -> f32 {
        mass
    }
}

#[test]
fn a_refused_traversal_leaves_nothing_for_the_next_one() {
    within(60, || {
        let lists = neighbors_by_id(RADIUS, &moved(0));
        for ranks in [2, 5] {
            for home in [true, false] {
                on_ranks(ranks, |transport| {
                    let mut cast = Cast::new(transport, ranks)?;
                    if !home {
                        // Owners are others now: fields go to them, and results come back.
                        let (points, mine) = (moved(0), dealt(POINTS, cast.rank, ranks));
                        let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
                        cast.engine
                            .replace(cast.set, &at(&points, &mine), Some(&ids))?;
                    }
                    for step in 0..2 * ranks {
                        let mut masses = cast.masses(step)?;
                        let set = cast.set;
                        if cast.rank == step % ranks {
                            masses.push(7.0);
                        }
                        let traversal = cast.engine.traverse(&Sum, set, set).sources(&masses);
                        let error = traversal.run().unwrap_err().to_string();
                        let named = format!("rank {}: a field", step % ranks);
                        assert!(error.contains(&named), "{error}");
                        let masses = cast.masses(step + 1)?;
                        let traversal = cast.engine.traverse(&Sum, set, set).sources(&masses);
                        let sums = traversal.run()?;
                        for (sum, id) in sums.iter().zip(cast.engine.ids(set)?) {
                            let list = lists[*id as usize].iter();
                            let exact: f32 = list.map(|j| (2 + step) as f32 + *j as f32).sum();
                            assert!((sum - exact).abs() <= 1e-5 * exact, "point {id}");
                        }
                    }
                    Ok(())
                });
            }
        }
    });
}

#[test]
fn a_refused_array_leaves_nothing_for_the_next_one() {
    within(60, || {
        on_ranks(4, |transport| {
            let mut cast = Cast::new(transport, 4)?;
            for step in 1..9 {
                let (mut positions, mut names) = (cast.positions(step)?, cast.masses(0)?);
                let migration = cast.engine.migrate(cast.set, &positions)?;
                let mut fewer = names.clone();
                if cast.rank == step % 4 {
                    fewer.push(0.0);
                }
                let before = (positions.clone(), fewer.clone());
                let mut following = migration.follow();
                following.add(&mut positions).add(&mut fewer);
                let error = following.run(&mut cast.engine).unwrap_err().to_string();
                assert!(error.contains(&format!("rank {}: ", step % 4)), "{error}");
                assert_eq!((&positions, &fewer), (&before.0, &before.1));
                let mut following = migration.follow();
                following.add(&mut positions).add(&mut names);
                following.run(&mut cast.engine)?;
                assert_eq!(
                    (&names, &positions),
                    (&cast.masses(0)?, &cast.positions(step)?)
                );
            }
            Ok(())
        });
    });
}

#[test]
fn positions_that_are_never_searched_change_nothing() {
    within(60, || {
        let lists: Vec<_> = (0..8)
            .map(|step| neighbors_by_id(RADIUS, &moved(step)))
            .collect();
        for ranks in [2, 5] {
            on_ranks(ranks, |transport| {
                let mut cast = Cast::new(transport, ranks)?;
                for step in 0..8 {
                    // The halo is under way when newer positions come, twice; points leave their
                    // cells and come back.
                    for other in [step + 3, step] {
                        let positions = cast.positions(other)?;
                        let _ = cast.engine.migrate(cast.set, &positions)?;
                    }
                    let positions = cast.positions(step)?;
                    cast.engine.update(cast.set, &positions)?;
                    check(&mut cast.engine, cast.set, &lists[step])?;
                    // Nothing has changed since.
                    cast.engine.update(cast.set, &positions)?;
                    check(&mut cast.engine, cast.set, &lists[step])?;
                }
                Ok(())
            });
        }
    });
}

#[test]
fn a_refused_position_leaves_a_halo_under_way() {
    within(60, || {
        let lists = neighbors_by_id(RADIUS, &moved(2));
        on_ranks(3, |transport| {
            let mut cast = Cast::new(transport, 3)?;
            for migrates in [false, true] {
                let positions = cast.positions(2)?;
                let _ = cast.engine.migrate(cast.set, &positions)?;
                let mut bad = cast.positions(5)?;
                if cast.rank == 1 {
                    bad[3][2] = f32::NAN;
                }
                let refused = match migrates {
                    true => cast.engine.migrate(cast.set, &bad).map(drop),
                    false => cast.engine.update(cast.set, &bad),
                };
                assert!(refused.unwrap_err().to_string().contains("z = NaN"));
                // The positions before count, and their halo is still to come.
                check(&mut cast.engine, cast.set, &lists)?;
            }
            Ok(())
        });
    });
}

#[test]
fn a_set_of_another_engine_is_refused_also_by_one_rank_alone() {
    within(60, || {
        on_ranks(3, |transport| {
            let mut cast = Cast::new(transport, 3)?;
            let masses = cast.masses(0)?;
            let sum = |cast: &mut Cast, set: RankedSet| {
                let traversal = cast.engine.traverse(&Sum, cast.set, set).sources(&masses);
                traversal.run()
            };
            let own = cast.set;
            let good = sum(&mut cast, own)?;
            // The name of a second set, which only another engine has.
            let other = on_ranks(1, |transport| {
                let mut engine = RankedEngine::builder(1.0)
                    .threads(1)
                    .build::<f32>(transport)?;
                let _ = engine.add_point_set(&[], None)?;
                engine.add_point_set(&[], None)
            })[0];
            for who in [vec![0], vec![1], vec![2], vec![0, 1, 2]] {
                let set = if who.contains(&cast.rank) {
                    other
                } else {
                    cast.set
                };
                let error = sum(&mut cast, set).unwrap_err().to_string();
                assert!(error.contains("there is no point set 1"), "{error}");
                let error = cast.engine.count_neighbors(set, cast.set).unwrap_err();
                assert!(error.to_string().contains("there is no point set 1"));
                let positions = cast.positions(0)?;
                let error = cast.engine.update(set, &positions).unwrap_err();
                assert!(error.to_string().contains("there is no point set 1"));
                assert_eq!(sum(&mut cast, own)?, good);
            }
            Ok(())
        });
    });
}

#[test]
fn sets_may_grow_shrink_and_vanish_between_steps() {
    within(60, || {
        let sizes = [POINTS, 0, 1, POINTS - 1, 40, 0, POINTS];
        for ranks in [1, 2, 7] {
            on_ranks(ranks, |transport| {
                let mut cast = Cast::new(transport, ranks)?;
                let wall = cast.engine.add_point_set(&[], None)?;
                for (step, size) in sizes.into_iter().enumerate() {
                    let points = &moved(step)[..size];
                    let mine = dealt(size, cast.rank, ranks);
                    // The largest ids there are, in the order of the points.
                    let id = |index: usize| u64::MAX - (size - 1 - index) as u64;
                    let ids: Vec<u64> = mine.iter().map(|index| id(*index)).collect();
                    let engine = &mut cast.engine;
                    engine.replace(wall, &at(points, &mine), Some(&ids))?;
                    if step % 2 == 1 {
                        let _ = engine.migrate(wall, &at(points, &mine))?;
                    }
                    engine.find_neighbors()?;
                    let lists = engine.lists_by_id(wall, wall)?;
                    let expected = neighbors_by_id(RADIUS, points);
                    for (k, own) in engine.ids(wall)?.iter().enumerate() {
                        let index = size - 1 - (u64::MAX - own) as usize;
                        let list = expected[index].iter().map(|j| id(*j as usize));
                        assert!(lists.of(k).iter().copied().eq(list), "point {index}");
                    }
                    // Both sets are the same points at first.
                    if step == 0 {
                        let lists = engine.lists_by_id(cast.set, wall)?;
                        for (k, own) in engine.ids(cast.set)?.iter().enumerate() {
                            assert!(lists.of(k).contains(&id(*own as usize)));
                        }
                    }
                }
                Ok(())
            });
        }
    });
}

#[test]
fn replaced_points_have_no_radii() {
    within(60, || {
        on_ranks(3, |transport| {
            let rank = transport.rank();
            let builder = RankedEngine::builder(RADIUS).threads(1);
            let mut engine = builder.radii(RadiusRule::Gather).build(transport)?;
            let (points, mine) = (moved(0), dealt(POINTS, rank, 3));
            let mine = at(&points, &mine);
            let set = engine.add_point_set(&mine, None)?;
            for abroad in [true, false] {
                engine.set_radii(set, &vec![1.0; engine.ids(set)?.len()])?;
                engine.find_neighbors()?;
                // As many points as before, and none has a radius.
                let ids = engine.ids(set)?.to_vec();
                let here: Vec<[f32; 3]> = if abroad {
                    mine.clone()
                } else {
                    let by_id = |id: &u64| {
                        let (from, index) = (*id as usize / 171, *id as usize % 171);
                        points[3 * index + from]
                    };
                    ids.iter().map(by_id).collect()
                };
                engine.replace(set, &here, Some(&ids))?;
                let error = engine.find_neighbors().unwrap_err().to_string();
                assert!(error.contains("has no radii"), "{error}");
                engine.set_radii(set, &vec![RADIUS; here.len()])?;
                engine.find_neighbors()?;
                let _ = engine.migrate(set, &here)?;
            }
            Ok(())
        });
    });
}

#[test]
fn radii_are_compared_in_the_precision_of_the_positions() {
    within(60, || {
        on_ranks(2, |transport| {
            let x = transport.rank() as f64 * 0.1;
            let builder = RankedEngine::builder(0.1).threads(1);
            let mut engine = builder.radii(RadiusRule::Gather).build::<f64>(transport)?;
            let set = engine.add_point_set(&[[x, 0.0, 0.0]], None)?;
            // A tenth in `f32` is more than a tenth, and the message has the digits that say it.
            for refused in [
                engine.set_radii(set, &[0.1f32]),
                (engine.query_with_radii(&[[x; 3]], &[0.1f32], set)).map(drop),
            ] {
                let error = refused.unwrap_err().to_string();
                let digits =
                    "has the radius 0.10000000149011612: it must be positive and at most 0.1";
                assert!(error.contains(digits), "{error}");
            }
            engine.set_radii(set, &[0.1f64])?;
            assert_eq!(
                engine.count_neighbors(set, set)?,
                [1],
                "exactly a tenth away"
            );
            engine.set_radii(set, &[0.1f64.next_down()])?;
            assert_eq!(engine.count_neighbors(set, set)?, [0]);
            engine.set_radii(set, &[0.05f32])?;
            assert_eq!(engine.count_neighbors(set, set)?, [0]);
            let error = engine.set_radius(0.05).unwrap_err().to_string();
            let digits = "has the radius 0.05000000074505806, more than 0.05";
            assert!(error.contains(digits), "{error}");
            Ok(())
        });
        on_ranks(2, |transport| {
            let x = transport.rank() as f32 * 0.1;
            let builder = RankedEngine::builder(0.1).threads(1);
            let mut engine = builder.radii(RadiusRule::Gather).build::<f32>(transport)?;
            let set = engine.add_point_set(&[[x, 0.0, 0.0]], None)?;
            let error = engine.set_radii(set, &[0.11f64]).unwrap_err().to_string();
            assert!(error.contains("has the radius 0.11: "), "{error}");
            // Rounded, as the radius of the engine is.
            engine.set_radii(set, &[0.1f64])?;
            assert_eq!(engine.count_neighbors(set, set)?, [1]);
            Ok(())
        });
    });
}
