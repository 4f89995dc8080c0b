//! Every way of asking the engine gives the contract's neighbours, bit for bit.

use nearfield::{
    Engine, ListKind, NeighborLists, Pair, PairKernel, PointSetId, SimdLevel, prelude::*,
};
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle,
};
use proptest::prelude::*;

/// What a run of a case is tried with.
#[derive(Clone, Copy)]
struct Settings {
    simd: SimdLevel,
    threads: usize,
    subdivision: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            simd: SimdLevel::detect(),
            threads: 2,
            subdivision: 1,
        }
    }
}

fn engine_for(
    case: &Case,
    settings: Settings,
) -> Result<(Engine, Vec<PointSetId>), nearfield::Error> {
    let kind = match case.list {
        oracle::ListKind::Full => ListKind::Full,
        oracle::ListKind::Half => ListKind::Half,
    };
    let builder = Engine::builder(case.radius);
    let builder = match case.vectors {
        Some(vectors) => builder.box_vectors(vectors),
        None => builder.periodic(case.periodic),
    };
    let mut engine = builder
        .threads(settings.threads)
        .simd(settings.simd)
        .subdivision(settings.subdivision)
        .lists(kind)
        .build()?;
    let sets = case
        .sets
        .iter()
        .map(|set| engine.add_point_set(set))
        .collect::<Result<_, _>>()?;
    Ok((engine, sets))
}

fn as_vectors(lists: &NeighborLists) -> Lists {
    lists.iter().map(<[u32]>::to_vec).collect()
}

fn lists(case: &Case, settings: Settings) -> Result<Lists, String> {
    let run = || {
        let (mut engine, sets) = engine_for(case, settings)?;
        engine.find_neighbors()?;
        Ok(as_vectors(
            engine.neighbors(sets[case.target], sets[case.source])?,
        ))
    };
    run().map_err(|error: nearfield::Error| error.to_string())
}

#[test]
fn lists_are_the_contracts_at_every_simd_level() {
    let runner = Runner::new(Level::Quick);
    for &simd in SimdLevel::available() {
        let settings = Settings {
            simd,
            ..Settings::default()
        };
        runner.run(|case| lists(case, settings)).unwrap();
    }
}

#[test]
fn lists_are_the_contracts_for_finer_cells() {
    let runner = Runner::new(Level::Quick);
    for subdivision in [2, 3] {
        let settings = Settings {
            subdivision,
            ..Settings::default()
        };
        runner.run(|case| lists(case, settings)).unwrap();
    }
}

#[test]
#[ignore = "minutes in a debug build; run with --release"]
fn lists_are_the_contracts_in_the_full_conformance_run() {
    let runner = Runner::new(Level::Full);
    runner.run(|case| lists(case, Settings::default())).unwrap();
}

#[test]
fn queries_by_callback_are_the_contracts() {
    Runner::new(Level::Quick)
        .keep(|case| case.list == oracle::ListKind::Full)
        .run(|case| {
            let run = || {
                let (engine, sets) = engine_for(case, Settings::default())?;
                let (targets, sources) = (sets[case.target], sets[case.source]);
                let mut found = vec![Vec::new(); engine.points(targets)?];
                for (point, list) in found.iter_mut().enumerate() {
                    engine.for_each_neighbor(targets, sources, point, |j, _| list.push(j))?;
                }
                Ok(found)
            };
            run().map_err(|error: nearfield::Error| error.to_string())
        })
        .unwrap();
}

#[test]
fn queries_of_free_positions_are_the_contracts() {
    Runner::new(Level::Quick)
        .keep(|case| case.target != case.source)
        .run(|case| {
            let run = || {
                let (mut engine, sets) = engine_for(case, Settings::default())?;
                Ok(as_vectors(
                    &engine.query(case.targets(), sets[case.source])?,
                ))
            };
            run().map_err(|error: nearfield::Error| error.to_string())
        })
        .unwrap();
}

/// Counts neighbours and sums the source's index and the displacement, so that a traversal that
/// visits a wrong pair, or the right pair with a wrong source or image, is found out.
struct Fingerprint;

impl PairKernel for Fingerprint {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: f32) -> [f32; 3] {
        let sign = if pair.d[0] + pair.d[1] > pair.d[2] {
            1.0
        } else {
            0.0
        };
        [1.0, source + 2.0 * target, sign]
    }
}

/// Small whole numbers, whose sums are exact in any order.
fn label(index: usize) -> f32 {
    (index % 61) as f32
}

#[test]
fn traversals_visit_the_contracts_pairs_at_every_simd_level() {
    let runner = Runner::new(Level::Quick).keep(|case| case.list == oracle::ListKind::Full);
    for case in runner.cases() {
        let expected: Vec<[f32; 3]> = case
            .problem()
            .neighbors()
            .iter()
            .enumerate()
            .map(|(i, list)| {
                let mut sum = [0.0; 3];
                for neighbor in list {
                    let (target, source) =
                        (case.targets()[i], case.sources()[neighbor.index as usize]);
                    let d = case.problem().displacement(target, source, neighbor.image);
                    let pair = Pair { d, d2: 0.0 };
                    let (i, j) = (label(i), label(neighbor.index as usize));
                    for (sum, value) in sum.iter_mut().zip(Fingerprint.pair(pair, i, j)) {
                        *sum += value;
                    }
                }
                sum
            })
            .collect();
        for &simd in SimdLevel::available() {
            let settings = Settings {
                simd,
                ..Settings::default()
            };
            let (engine, sets) = engine_for(case, settings).unwrap();
            let labels = |set: usize| (0..case.sets[set].len()).map(label).collect::<Vec<_>>();
            let (targets, sources) = (labels(case.target), labels(case.source));
            let found = engine
                .traverse(&Fingerprint, sets[case.target], sets[case.source])
                .target_fields(&[Field::from(&targets)])
                .source_fields(&[Field::from(&sources)])
                .run()
                .unwrap();
            assert!(found == expected, "case {} at {}", case.name, simd.name());
        }
    }
}

#[test]
fn counts_are_the_lengths_of_the_lists() {
    Runner::new(Level::Quick)
        .keep(|case| case.list == oracle::ListKind::Full)
        .run(|case| {
            let run = || {
                let (mut engine, sets) = engine_for(case, Settings::default())?;
                engine.find_neighbors()?;
                let (targets, sources) = (sets[case.target], sets[case.source]);
                let lists = engine.neighbors(targets, sources)?;
                let counts = engine.count_neighbors(targets, sources)?;
                assert_eq!(counts, lists.counts(), "{}", case.name);
                Ok(as_vectors(lists))
            };
            run().map_err(|error: nearfield::Error| error.to_string())
        })
        .unwrap();
}

#[test]
fn lists_and_their_order_do_not_depend_on_threads_or_simd() {
    let points = nearfield_testkit::cloud::Cloud::PoolSpray.points(30_000, 7);
    let case = Case::new("pool", 2.0, points).periodic([Some(31.0), None, None]);
    let reference = lists(
        &case,
        Settings {
            threads: 1,
            ..Settings::default()
        },
    )
    .unwrap();
    for threads in [1, 2, 5] {
        for &simd in SimdLevel::available() {
            let settings = Settings {
                threads,
                simd,
                ..Settings::default()
            };
            assert_eq!(
                lists(&case, settings).unwrap(),
                reference,
                "{threads} threads"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_points_in_any_domain_get_the_contracts_lists(
        case in nearfield_testkit::strategy::case(60),
        subdivision in 1u32..4,
    ) {
        let settings = Settings { subdivision, ..Settings::default() };
        case.check(lists(&case, settings).unwrap()).unwrap();
    }

    #[test]
    fn any_points_in_any_tilted_box_get_the_contracts_lists(
        case in nearfield_testkit::strategy::tilted_case(40),
        subdivision in 1u32..4,
    ) {
        let settings = Settings { subdivision, ..Settings::default() };
        case.check(lists(&case, settings).unwrap()).unwrap();
    }
}
