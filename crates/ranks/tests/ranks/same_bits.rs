//! Lists and deterministic sums have the same bits on any number of ranks as in one engine, for all
//! conformance cases.

use crate::common::{
    Precise, Uneven, add_sets, at, dealt, fields, many, on_ranks, one_engine, within,
};
use nearfield_ranks::Error;
use nearfield_testkit::{
    conformance::{Case, Level},
    oracle::ListKind,
};

/// Numbers of ranks that cases are run on: all of them in full runs, two in quick ones.
const RANKS: [usize; 7] = [1, 2, 3, 4, 5, 7, 12];

/// By point: ids of neighbours, and the bits of the sums.
type ListsAndSums = Vec<(Vec<u64>, Option<[u32; 2]>)>;

fn bits(sums: &[[f32; 2]]) -> Vec<[u32; 2]> {
    sums.iter().map(|sum| sum.map(f32::to_bits)).collect()
}

/// Lists and sums of one engine. Half lists have no sums that ranks could have.
fn by_one<T: Precise>(case: &Case<T>) -> ListsAndSums {
    let (mut engine, sets) = one_engine(case);
    let (targets, sources) = (sets[case.target], sets[case.source]);
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(targets, sources).unwrap();
    let ids = lists
        .iter()
        .map(|list| list.iter().map(|j| u64::from(*j)).collect());
    let ids: Vec<Vec<u64>> = ids.collect();
    if case.list == ListKind::Half {
        return ids.into_iter().map(|list| (list, None)).collect();
    }
    let (of_targets, _, _) = fields(case.targets().len());
    let (_, velocities, masses) = fields(case.sources().len());
    let traversal = engine.traverse(&Uneven, targets, sources);
    let traversal = traversal
        .targets(&of_targets)
        .sources((&velocities, &masses));
    let sums = bits(&traversal.over_lists().run().unwrap());
    ids.into_iter().zip(sums.into_iter().map(Some)).collect()
}

/// The same on ranks, in the order of one engine. At `home` every rank gives the points that it
/// owns; otherwise most points are given by another one.
fn by_ranks<T: Precise>(case: &Case<T>, ranks: usize, home: bool) -> ListsAndSums {
    let full = case.list == ListKind::Full;
    let shares = on_ranks(ranks, |transport| {
        let mut engine = many(case).deterministic(full).build::<T>(transport)?;
        let sets = add_sets(&mut engine, case)?;
        let (targets, sources) = (sets[case.target], sets[case.source]);
        let mut given = Vec::new();
        for (set, points) in sets.iter().zip(&case.sets) {
            let mine = dealt(points.len(), engine.rank(), ranks);
            if home {
                let _ = engine.migrate(*set, &at(points, &mine))?;
            }
            let ids = engine.ids(*set)?.iter();
            given.push(ids.map(|id| *id as usize).collect::<Vec<_>>());
        }
        engine.find_neighbors()?;
        let lists = engine.lists_by_id(targets, sources)?;
        let counts = engine.count_neighbors(targets, sources)?;
        let mine = given[case.target].clone();
        if full {
            let lengths = (0..mine.len()).map(|k| lists.of(k).len() as u32);
            assert_eq!(counts, lengths.collect::<Vec<_>>(), "{}", case.name);
        }
        let sums = if full {
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
        let found = mine.into_iter().zip(sums).enumerate();
        let found = found.map(|(k, (index, sum))| (index, (lists.of(k).to_vec(), sum)));
        Ok::<_, Error>(found.collect::<Vec<_>>())
    });
    let mut all: Vec<_> = shares.into_iter().flatten().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, found)| found).collect()
}

fn all_cases<T: Precise>(level: Level) {
    for (number, case) in T::cases(level).cases().enumerate() {
        let expected = by_one(case);
        // The next case has the next two.
        let runs: Vec<(usize, bool)> = match level {
            Level::Quick => (2 * number..2 * number + 2)
                .map(|k| (RANKS[k % RANKS.len()], (k / RANKS.len() + k) % 2 == 1))
                .collect(),
            Level::Full => RANKS
                .iter()
                .flat_map(|&n| [(n, false), (n, true)])
                .collect(),
        };
        for (ranks, home) in runs {
            let found = by_ranks(case, ranks, home);
            if found != expected {
                let differs = |k: &usize| found.get(*k) != expected.get(*k);
                let k = (0..expected.len()).find(differs).unwrap_or(expected.len());
                panic!(
                    "{} on {ranks} ranks, {home}: point {k} has {:?} instead of {:?}",
                    case.name,
                    found.get(k),
                    expected.get(k)
                );
            }
        }
    }
}

#[test]
fn lists_and_sums_have_the_bits_of_one_engine() {
    within(1200, || all_cases::<f32>(Level::Quick));
}

#[test]
fn lists_and_sums_in_double_have_the_bits_of_one_engine() {
    within(1200, || all_cases::<f64>(Level::Quick));
}

/// `cargo test --release -p nearfield-ranks --test ranks -- --ignored full`
#[test]
#[ignore = "takes many minutes: the full set of cases"]
fn full_cases_have_the_bits_of_one_engine() {
    within(7200, || {
        all_cases::<f32>(Level::Full);
        all_cases::<f64>(Level::Full);
    });
}

/// `cargo test --release -p nearfield-ranks --test ranks -- --ignored hangs`
#[test]
#[ignore = "takes many minutes: the cases fifty times"]
fn no_run_of_twelve_ranks_hangs() {
    for _ in 0..50 {
        within(600, || {
            for case in f32::cases(Level::Quick).cases() {
                by_ranks(case, 12, true);
            }
        });
    }
}
