//! Cut-offs, exclusions, chosen targets and the k nearest on ranks: what the oracle keeps, and the
//! sums of one engine, for all conformance cases, wherever points are and after they have moved.

use crate::common::{
    Precise, Uneven, add_sets, at, dealt, fields,
    filtered::{give, one_filtered, with_filters},
    filters::{Drawn, draw},
    many, on_ranks, within,
};
use nearfield::{Engine, PointSetId};
use nearfield_ranks::{Error, ErrorKind, RankedEngine, RankedSet, transport::threads};
use nearfield_testkit::{
    conformance::{Case, Level},
    oracle::ListKind,
    random::Random,
};

/// Numbers of ranks, in turn.
const RANKS: [usize; 6] = [2, 3, 1, 5, 4, 7];

/// By point: ids of neighbours, their number, and the bits of the sums.
type Found = Vec<(Vec<u64>, u32, Option<[u32; 2]>)>;

fn bits(sums: &[[f32; 2]]) -> Vec<[u32; 2]> {
    sums.iter().map(|sum| sum.map(f32::to_bits)).collect()
}

/// What the oracle and one engine find. Half lists have no sums that ranks could have, and the
/// nearest in a small box none over lists.
fn expected<T: Precise>(case: &Case<T>, drawn: &Drawn<T>) -> Found {
    let lists = case.problem().filtered(&drawn.filters);
    let lists = lists.iter();
    let lists: Vec<Vec<u64>> = lists
        .map(|list| list.iter().map(|near| u64::from(near.index)).collect())
        .collect();
    let (mut engine, sets) = one_filtered(case, drawn);
    let (targets, sources) = (sets[case.target], sets[case.source]);
    let counts = engine.count_neighbors(targets, sources).unwrap();
    engine.find_neighbors().unwrap();
    let sums = sums_of_one(case, &engine, [targets, sources]);
    let all = lists.into_iter().zip(counts).zip(sums);
    all.map(|((list, count), sum)| (list, count, sum)).collect()
}

fn sums_of_one<T: Precise>(
    case: &Case<T>,
    engine: &Engine,
    [targets, sources]: [PointSetId; 2],
) -> Vec<Option<[u32; 2]>> {
    let points = case.targets().len();
    if case.list == ListKind::Half {
        return vec![None; points];
    }
    let of_targets = fields(points).0;
    let (_, velocities, masses) = fields(case.sources().len());
    let traversal = engine.traverse(&Uneven, targets, sources);
    let traversal = traversal
        .targets(&of_targets)
        .sources((&velocities, &masses));
    match traversal.over_lists().run() {
        Ok(sums) => bits(&sums).into_iter().map(Some).collect(),
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("smaller than two radii"), "{message}");
            vec![None; points]
        }
    }
}

/// What ranks find, in the order of one engine. At `home` points are with their owners, and have
/// come there with their data.
fn by_ranks<T: Precise>(
    case: &Case<T>,
    drawn: &Drawn<T>,
    ranks: usize,
    (home, with_sums): (bool, bool),
) -> Found {
    let shares = on_ranks(ranks, |transport| {
        let builder = with_filters(drawn, many(case)).deterministic(with_sums);
        let mut engine = builder.build::<T>(transport)?;
        let sets = add_sets(&mut engine, case)?;
        let mut given = Vec::new();
        give(&mut engine, &sets, case, drawn)?;
        for (set, points) in sets.iter().zip(&case.sets) {
            let mine = dealt(points.len(), engine.rank(), ranks);
            if home {
                let _ = engine.migrate(*set, &at(points, &mine))?;
            }
            let ids = engine.ids(*set)?.iter();
            given.push(ids.map(|id| *id as usize).collect::<Vec<_>>());
        }
        let (targets, sources) = (sets[case.target], sets[case.source]);
        engine.find_neighbors()?;
        let lists = engine.lists_by_id(targets, sources)?;
        let counts = engine.count_neighbors(targets, sources)?;
        let mine = given[case.target].clone();
        let sums = if with_sums {
            let others = &given[case.source];
            let of_targets = at(&fields(case.targets().len()).0, &mine);
            let (_, velocities, masses) = fields(case.sources().len());
            let (velocities, masses) = (at(&velocities, others), at(&masses, others));
            let traversal = engine.traverse(&Uneven, targets, sources);
            let traversal = traversal
                .targets(&of_targets)
                .sources((&velocities, &masses));
            bits(&traversal.run()?).into_iter().map(Some).collect()
        } else {
            vec![None; mine.len()]
        };
        let found = mine.into_iter().zip(counts).zip(sums).enumerate();
        let found = found.map(|(k, ((index, count), sum))| {
            let list = lists.of(k).to_vec();
            (index, (list, count, sum))
        });
        Ok::<_, Error>(found.collect::<Vec<_>>())
    });
    let mut all: Vec<_> = shares.into_iter().flatten().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, found)| found).collect()
}

fn all_cases<T: Precise>(level: Level, seed: u64) {
    let mut random = Random::new(seed);
    let (mut kinds_seen, mut left_out) = (0, 0);
    for (number, case) in T::cases(level).cases().enumerate() {
        // Every kind alone, then any of them together.
        let kinds = match number % 3 {
            0 => 1 << (number / 3 % 5),
            _ => random.below(32) as u32,
        };
        let drawn = draw(case, kinds, &mut random);
        let expected = expected(case, &drawn);
        kinds_seen |= kinds;
        let all = case.problem().neighbors();
        let all: usize = all.iter().map(Vec::len).sum();
        left_out += all - expected.iter().map(|(list, ..)| list.len()).sum::<usize>();
        let with_sums = expected.iter().any(|(.., sum)| sum.is_some());
        // In turn: with points where the others left them, and with their owners.
        let (ranks, home) = (RANKS[number % RANKS.len()], number / 2 % 2 == 1);
        // Also without deterministic sums, which need all points around the border anyway.
        let with_sums = with_sums && number % 2 == 0;
        let mut found = by_ranks(case, &drawn, ranks, (home, with_sums));
        let name = format!("{} on {ranks} ranks, {home}, kinds {kinds:b}", case.name);
        if !with_sums {
            let sums = expected.iter().map(|(.., sum)| *sum);
            found
                .iter_mut()
                .zip(sums)
                .for_each(|(found, sum)| found.2 = sum);
        }
        assert_eq!(found.len(), expected.len(), "{name}");
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{name}: point {k}");
        }
    }
    assert_eq!(kinds_seen, 31);
    assert!(left_out > 1000, "{left_out} pairs were left out");
}

#[test]
fn filtered_lists_counts_and_sums_are_those_of_the_oracle() {
    within(1200, || all_cases::<f32>(Level::Quick, 5));
}

#[test]
fn filtered_lists_counts_and_sums_in_double_are_those_of_the_oracle() {
    within(1200, || all_cases::<f64>(Level::Quick, 6));
}

/// `cargo test --release -p nearfield-ranks --test ranks -- --ignored random_filters`
#[test]
#[ignore = "takes minutes: other filters, ten times"]
fn random_filters_of_many_seeds_are_those_of_the_oracle() {
    for seed in 100..110 {
        within(1200, move || all_cases::<f32>(Level::Quick, seed));
    }
}

const SPACING: f32 = 0.7;

/// A chain of points that winds through space, moved on by a number of steps.
fn chain(points: usize, step: usize) -> Vec<[f32; 3]> {
    let place = |k: usize| {
        let (k, shift) = (k as f32, 0.9 * step as f32);
        let row = (k / 40.0).floor();
        let x = SPACING * (k - 40.0 * row) + shift;
        [x, 0.6 * row, 0.3 * (k * 0.618).fract() + 0.2 * shift]
    };
    (0..points).map(place).collect()
}

/// Data of the points of a chain, by id.
struct Data {
    types: Vec<u32>,
    bonds: Vec<[u32; 2]>,
    mask: Vec<bool>,
}

impl Data {
    fn of(points: usize) -> Self {
        let all = || 0..points as u32;
        Self {
            types: all().map(|k| k % 3).collect(),
            // To the next point, and to the one in the next row.
            bonds: all()
                .flat_map(|k| [[k, k + 1], [k + 40, k]])
                .filter(|pair| pair.iter().all(|k| (*k as usize) < points))
                .collect(),
            mask: all().map(|k| k % 5 != 0).collect(),
        }
    }
}

const CUTOFFS: [[f64; 3]; 3] = [[1.5, 1.0, 1.5], [1.0, 0.0, 1.2], [1.5, 1.2, 1.5]];

#[test]
fn filters_follow_points_that_move_between_ranks() {
    within(120, || {
        let points = 600;
        let data = Data::of(points);
        for ranks in [1, 2, 3, 5] {
            let found = on_ranks(ranks, |transport| {
                let builder = RankedEngine::builder(1.5).cutoffs(&CUTOFFS).threads(1);
                let mut engine = builder.build::<f32>(transport)?;
                let mine = dealt(points, engine.rank(), ranks);
                let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
                let set = engine.add_point_set(&at(&chain(points, 0), &mine), Some(&ids))?;
                engine.set_types(set, &at(&data.types, &mine))?;
                engine.set_target_mask(set, &at(&data.mask, &mine))?;
                let bonds: &[[u32; 2]] = match engine.rank() + 1 == ranks {
                    true => &data.bonds,
                    false => &[],
                };
                let bonds: Vec<[u64; 2]> = bonds.iter().map(|pair| pair.map(u64::from)).collect();
                engine.exclude_pairs(set, &bonds)?;
                let mut steps = Vec::new();
                for step in 0..8 {
                    let now = chain(points, step);
                    let places = |engine: &RankedEngine, set| -> Result<Vec<usize>, Error> {
                        Ok(engine.ids(set)?.iter().map(|id| *id as usize).collect())
                    };
                    let mine = at(&now, &places(&engine, set)?);
                    match step {
                        0 | 1 => engine.update(set, &mine)?,
                        4 => {
                            engine.rebalance()?;
                            engine.update(set, &mine)?;
                        }
                        _ => drop(engine.migrate(set, &mine)?),
                    }
                    if step == 6 {
                        engine.clear_exclusions(set)?;
                    }
                    if step == 7 {
                        engine.clear_targets(set)?;
                        engine.set_molecules(set, &vec![7; mine_len(&engine, set)?])?;
                    }
                    engine.find_neighbors()?;
                    let lists = engine.lists_by_id(set, set)?;
                    let ids = engine.ids(set)?.iter().enumerate();
                    let found = ids.map(|(k, id)| (*id, lists.of(k).to_vec()));
                    steps.push(found.collect::<Vec<_>>());
                }
                Ok(steps)
            });
            for step in 0..8 {
                let builder = Engine::builder(1.5).cutoffs(&CUTOFFS).threads(1);
                let builder = builder.list_order(nearfield::ListOrder::Ascending);
                let mut one = builder.build().unwrap();
                let set = one.add_point_set(&chain(points, step)).unwrap();
                one.set_types(set, &data.types).unwrap();
                match step {
                    0..=5 => one.exclude_pairs(set, &data.bonds).unwrap(),
                    6 => {}
                    _ => one.set_molecules(set, &vec![7; points]).unwrap(),
                }
                if step < 7 {
                    one.set_target_mask(set, &data.mask).unwrap();
                }
                one.find_neighbors().unwrap();
                let lists = one.neighbors(set, set).unwrap();
                assert_eq!(lists.pairs() == 0, step == 7, "step {step}");
                let mut all: Vec<_> = found.iter().flat_map(|steps| &steps[step]).collect();
                all.sort();
                assert_eq!(all.len(), points);
                for (id, list) in all {
                    let expected = lists.of(*id as usize).iter().map(|j| u64::from(*j));
                    assert!(
                        expected.eq(list.iter().copied()),
                        "point {id} on {ranks} ranks, step {step}: {list:?}"
                    );
                }
            }
        }
    });
}

fn mine_len(engine: &RankedEngine, set: RankedSet) -> Result<usize, Error> {
    Ok(engine.ids(set)?.len())
}

/// The refusal of a call on this rank: rank, id of the point, and message.
fn refusal<R: std::fmt::Debug>(result: Result<R, Error>) -> (usize, Option<u64>, String) {
    match result.unwrap_err().kind() {
        ErrorKind::Refused {
            rank,
            point,
            message,
        } => (*rank, point.map(|point| point.id), message.clone()),
        other => panic!("{other}"),
    }
}

#[test]
fn bad_data_of_one_rank_are_the_same_error_on_all_and_change_nothing() {
    within(60, || {
        let (points, ranks) = (300, 3);
        let said = on_ranks(ranks, |transport| {
            let builder = RankedEngine::builder(1.5).cutoffs(&CUTOFFS).threads(1);
            let mut engine = builder.build::<f32>(transport)?;
            let mine = dealt(points, engine.rank(), ranks);
            let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
            let set = engine.add_point_set(&at(&chain(points, 0), &mine), Some(&ids))?;
            let mut said = vec![refusal(engine.find_neighbors())];
            let types = at(&Data::of(points).types, &mine);
            engine.set_types(set, &types)?;
            engine.exclude_pairs(set, &[[0, 1]])?;
            let before = engine.count_neighbors(set, set)?;
            let last = engine.rank() + 1 == ranks;
            let mut wrong = types.clone();
            wrong[4] = if last { 3 } else { 0 };
            said.push(refusal(engine.set_types(set, &wrong)));
            let short = &types[usize::from(last)..];
            said.push(refusal(engine.set_types(set, short)));
            said.push(refusal(engine.set_molecules(set, short)));
            let unknown: &[[u64; 2]] = if last { &[[5, 6], [7, 300]] } else { &[[8, 9]] };
            said.push(refusal(engine.exclude_pairs(set, unknown)));
            let place = if last { mine.len() as u32 } else { 0 };
            said.push(refusal(engine.set_targets(set, &[place])));
            let mask = vec![true; mine.len() - usize::from(last)];
            said.push(refusal(engine.set_target_mask(set, &mask)));
            assert_eq!(engine.count_neighbors(set, set)?, before);
            // Other points have none of the data of these.
            engine.replace(set, &at(&chain(points, 0), &mine), Some(&ids))?;
            said.push(refusal(engine.count_neighbors(set, set)));
            engine.set_types(set, &types)?;
            let after = engine.count_neighbors(set, set)?;
            let more = before
                .iter()
                .zip(&after)
                .map(|(before, after)| after - before);
            let mut sum = [f64::from(more.sum::<u32>())];
            engine.sum(&mut sum)?;
            assert_eq!(sum, [2.0], "points 0 and 1 find each other");
            Ok(said)
        });
        assert!(said.iter().all(|of_rank| *of_rank == said[0]), "{said:?}");
        let parts = [
            (0, None, "types"),
            (
                2,
                Some(14),
                "point 4 has the type 3, but cut-offs are for the types below 3",
            ),
            (2, None, "99 types for 100 points"),
            (2, None, "99 molecules for 100 points"),
            (
                0,
                None,
                "rank 2 excludes the pair of 300 and 7, but no point has the id 300",
            ),
            (2, None, "there is no point 100: this rank gives 100"),
            (2, None, "99 elements of a mask for 100 points"),
            (0, None, "types"),
        ];
        assert_eq!(said[0].len(), parts.len());
        for ((rank, id, message), (who, point, part)) in said[0].iter().zip(parts) {
            assert_eq!((*rank, *id), (who, point), "{message}");
            assert!(message.contains(part), "{message}");
        }
    });
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    within(20, || {
        let refused = on_ranks(2, |transport| {
            let builder = RankedEngine::builder(1.0).threads(1);
            let mut engine = builder
                .lists(nearfield::ListKind::Half)
                .build::<f32>(transport)?;
            let set = engine.add_point_set(&[[engine.rank() as f32; 3]], None)?;
            let types = refusal(engine.set_types(set, &[0u32])).2;
            Ok([refusal(engine.set_targets(set, &[0])).2, types])
        });
        for [targets, types] in refused {
            assert!(
                targets.contains("chosen targets have no half lists"),
                "{targets}"
            );
            assert!(types.contains("RankedBuilder::cutoffs"), "{types}");
        }
        let built = threads::run(2, |transport| {
            let builder = RankedEngine::builder(1.0)
                .lists(nearfield::ListKind::Half)
                .nearest(3);
            builder.build::<f32>(transport).map(drop)
        });
        for built in built {
            let message = refusal(built.unwrap()).2;
            assert!(message.contains("half lists"), "{message}");
        }
    });
}
