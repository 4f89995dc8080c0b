//! Every way of asking the engine gives the contract's neighbours, bit for bit, in both precisions.

use crate::common::{
    Precise, Settings, as_vectors, engine_for, fingerprints_of, lists_of, rule_of, traverse,
};
use nearfield::{Error, lists::QueryScratch, report::SimdLevel};
use nearfield_testkit::{
    conformance::{Case, Level, Lists},
    oracle, strategy,
};
use proptest::prelude::*;

pub(crate) fn lists<T: Precise>(case: &Case<T>, settings: Settings) -> Result<Lists, Error> {
    let (mut engine, sets) = engine_for(case, settings)?;
    lists_of(&mut engine, case, &sets)
}

fn is_full<T>(case: &Case<T>) -> bool {
    case.list == oracle::ListKind::Full
}

fn lists_at_every_simd_level<T: Precise>() {
    let runner = T::runner(Level::Quick);
    for &simd in SimdLevel::available() {
        runner.run(|case| lists(case, Settings::at(simd))).unwrap();
    }
}

#[test]
fn lists_are_the_contracts_at_every_simd_level() {
    lists_at_every_simd_level::<f32>();
}

#[test]
fn lists_in_double_are_the_contracts_at_every_simd_level() {
    lists_at_every_simd_level::<f64>();
}

fn lists_for_finer_cells<T: Precise>() {
    let runner = T::runner(Level::Quick);
    for subdivision in [2, 3] {
        let settings = Settings::finer(subdivision);
        runner.run(|case| lists(case, settings)).unwrap();
    }
}

#[test]
fn lists_are_the_contracts_for_finer_cells() {
    lists_for_finer_cells::<f32>();
}

#[test]
fn lists_in_double_are_the_contracts_for_finer_cells() {
    lists_for_finer_cells::<f64>();
}

#[test]
#[ignore = "minutes in a debug build; run with --release"]
fn lists_are_the_contracts_in_the_full_conformance_run() {
    let runner = f32::runner(Level::Full);
    runner.run(|case| lists(case, Settings::default())).unwrap();
}

#[test]
#[ignore = "minutes in a debug build; run with --release"]
fn lists_in_double_are_the_contracts_in_the_full_conformance_run() {
    let runner = f64::runner(Level::Full);
    for subdivision in 1..=3 {
        let settings = Settings::finer(subdivision);
        runner.run(|case| lists(case, settings)).unwrap();
    }
}

fn queries_by_callback<T: Precise>() {
    let run = |case: &Case<T>| -> Result<_, Error> {
        let (engine, sets) = engine_for(case, Settings::default())?;
        let (targets, sources) = (sets[case.target], sets[case.source]);
        let mut found = vec![Vec::new(); engine.points(targets)?];
        for (point, list) in found.iter_mut().enumerate() {
            engine.for_each_neighbor(targets, sources, point, |j, _| list.push(j))?;
        }
        Ok(found)
    };
    T::runner(Level::Quick).keep(is_full).run(run).unwrap();
}

#[test]
fn queries_by_callback_are_the_contracts() {
    queries_by_callback::<f32>();
}

#[test]
fn queries_by_callback_in_double_are_the_contracts() {
    queries_by_callback::<f64>();
}

fn queries_of_free_positions<T: Precise>() {
    let run = |case: &Case<T>| -> Result<_, Error> {
        let (engine, sets) = engine_for(case, Settings::default())?;
        let (positions, sources) = (T::positions(case.targets()), sets[case.source]);
        if !rule_of(case).needs_targets() {
            return Ok(as_vectors(&engine.query(positions, sources)?));
        }
        let radii = T::radii(case.radii_of(case.target));
        let mut scratch = QueryScratch::default();
        let lists = engine.query_into(positions, Some(radii), sources, &mut scratch)?;
        Ok(as_vectors(lists))
    };
    let runner = T::runner(Level::Quick);
    let runner = runner.keep(|case| case.target != case.source);
    runner.run(run).unwrap();
}

#[test]
fn queries_of_free_positions_are_the_contracts() {
    queries_of_free_positions::<f32>();
}

#[test]
fn queries_of_free_positions_in_double_are_the_contracts() {
    queries_of_free_positions::<f64>();
}

fn traversals_at_every_simd_level<T: Precise>() {
    let runner = T::runner(Level::Quick).keep(is_full);
    for (case, neighbors) in runner.with_neighbors() {
        let expected = fingerprints_of(case, neighbors);
        for &simd in SimdLevel::available() {
            let (engine, sets) = engine_for(case, Settings::at(simd)).unwrap();
            let found = traverse(&engine, case, &sets);
            assert!(found == expected, "case {} at {}", case.name, simd.name());
        }
    }
}

#[test]
fn traversals_visit_the_contracts_pairs_at_every_simd_level() {
    traversals_at_every_simd_level::<f32>();
}

#[test]
fn traversals_in_double_visit_the_contracts_pairs_at_every_simd_level() {
    traversals_at_every_simd_level::<f64>();
}

fn counts_of_lists<T: Precise>() {
    let run = |case: &Case<T>| -> Result<_, Error> {
        let (mut engine, sets) = engine_for(case, Settings::default())?;
        engine.find_neighbors()?;
        let (targets, sources) = (sets[case.target], sets[case.source]);
        let lists = engine.neighbors(targets, sources)?;
        let counts = engine.count_neighbors(targets, sources)?;
        assert_eq!(counts, lists.counts(), "{}", case.name);
        Ok(as_vectors(lists))
    };
    T::runner(Level::Quick).keep(is_full).run(run).unwrap();
}

#[test]
fn counts_are_the_lengths_of_the_lists() {
    counts_of_lists::<f32>();
}

#[test]
fn counts_in_double_are_the_lengths_of_the_lists() {
    counts_of_lists::<f64>();
}

/// Checks that the lists of a case and their order are the same at all of these thread counts and
/// at every SIMD level; returns them.
pub(crate) fn whatever_threads_and_simd<T: Precise>(case: &Case<T>, threads: &[usize]) -> Lists {
    let at = |threads, simd| {
        let settings = Settings::at(simd);
        lists(
            case,
            Settings {
                threads,
                ..settings
            },
        )
        .unwrap()
    };
    let reference = at(1, SimdLevel::detect());
    for &threads in threads {
        for &simd in SimdLevel::available() {
            assert_eq!(at(threads, simd), reference, "{threads} threads");
        }
    }
    reference
}

#[test]
fn lists_and_their_order_do_not_depend_on_threads_or_simd() {
    let points = nearfield_testkit::cloud::Cloud::PoolSpray.points(30_000, 7);
    let case = Case::new("pool", 2.0, points).periodic([Some(31.0), None, None]);
    whatever_threads_and_simd(&case, &[1, 2, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_points_in_any_domain_get_the_contracts_lists(
        case in strategy::case(60),
        subdivision in 1u32..4,
    ) {
        case.check(lists(&case, Settings::finer(subdivision)).unwrap()).unwrap();
    }

    #[test]
    fn any_points_with_any_radii_get_the_contracts_lists(
        case in strategy::radii_case(60),
        subdivision in 1u32..4,
        scalar in any::<bool>(),
    ) {
        let simd = if scalar { SimdLevel::Scalar } else { SimdLevel::detect() };
        let settings = Settings { subdivision, ..Settings::at(simd) };
        case.check(lists(&case, settings).unwrap()).unwrap();
    }

    #[test]
    fn any_points_in_any_tilted_box_get_the_contracts_lists(
        case in strategy::tilted_case(40),
        subdivision in 1u32..4,
    ) {
        case.check(lists(&case, Settings::finer(subdivision)).unwrap()).unwrap();
    }
}
