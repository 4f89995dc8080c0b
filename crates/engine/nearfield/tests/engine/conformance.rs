//! Every way of asking the engine gives the contract's neighbours, bit for bit.

use crate::common::{
    Fingerprint, Settings, as_vectors, engine_for, fingerprints_of, labels, rule_of,
};
use nearfield::SimdLevel;
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle,
};
use proptest::prelude::*;

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
                let (engine, sets) = engine_for(case, Settings::default())?;
                let (positions, sources) = (case.targets(), sets[case.source]);
                let lists = match rule_of(case).needs_targets() {
                    false => engine.query(positions, sources)?,
                    true => {
                        engine.query_with_radii(positions, case.radii_of(case.target), sources)?
                    }
                };
                Ok(as_vectors(&lists))
            };
            run().map_err(|error: nearfield::Error| error.to_string())
        })
        .unwrap();
}

#[test]
fn traversals_visit_the_contracts_pairs_at_every_simd_level() {
    let runner = Runner::new(Level::Quick).keep(|case| case.list == oracle::ListKind::Full);
    for (case, neighbors) in runner.with_neighbors() {
        let expected = fingerprints_of(case, neighbors);
        for &simd in SimdLevel::available() {
            let settings = Settings {
                simd,
                ..Settings::default()
            };
            let (engine, sets) = engine_for(case, settings).unwrap();
            let (targets, sources) = (labels(case.targets()), labels(case.sources()));
            let found = engine
                .traverse(&Fingerprint, sets[case.target], sets[case.source])
                .targets(&targets)
                .sources(&sources)
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
    fn any_points_with_any_radii_get_the_contracts_lists(
        case in nearfield_testkit::strategy::radii_case(60),
        subdivision in 1u32..4,
        scalar in any::<bool>(),
    ) {
        let simd = if scalar { SimdLevel::Scalar } else { SimdLevel::detect() };
        let settings = Settings { subdivision, simd, ..Settings::default() };
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
