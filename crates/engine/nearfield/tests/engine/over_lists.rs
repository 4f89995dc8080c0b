//! Kernels over stored lists give what fused traversals give.

use crate::common::{
    Fingerprint, Settings, engine_for, fingerprints, fingerprints_of, labels, levels_in_turn,
};
use nearfield::{Engine, ListKind, Reduce, kernels::SphDensity, prelude::*, report::SimdLevel};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Runner},
    oracle, strategy,
};
use proptest::prelude::*;

/// The fingerprints of a case over its lists.
fn found(case: &Case, settings: Settings) -> Vec<[f32; 3]> {
    let (mut engine, sets) = engine_for(case, settings).unwrap();
    engine.find_neighbors().unwrap();
    engine
        .traverse(&Fingerprint, sets[case.target], sets[case.source])
        .targets(&labels(case.targets()))
        .sources(&labels(case.sources()))
        .over_lists()
        .run()
        .unwrap()
}

#[test]
fn traversals_over_lists_visit_the_contracts_pairs() {
    let runner = Runner::new(Level::Quick).keep(|case| case.list == oracle::ListKind::Full);
    for ((case, neighbors), simd) in runner.with_neighbors().zip(levels_in_turn()) {
        let expected = fingerprints_of(case, neighbors);
        for settings in [Settings::at(simd), Settings::finer(3)] {
            let found = found(case, settings);
            assert!(found == expected, "case {} with {settings:?}", case.name);
        }
    }
}

#[test]
fn sums_over_lists_are_those_of_the_fused_traversal_but_for_rounding() {
    let points = Cloud::Clusters.points(20_000, 3);
    let masses: Vec<f32> = (0..points.len())
        .map(|i| 1.0 + (i % 97) as f32 * 0.013)
        .collect();
    let kernel = SphDensity::with_support(1.0);
    let fields = &masses;
    let run = |threads, simd| {
        let builder = Engine::builder(1.0).threads(threads).simd(simd);
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.find_neighbors().unwrap();
        let traversal = || engine.traverse(&kernel, set, set).sources(fields);
        (
            traversal().over_lists().run().unwrap(),
            traversal().run().unwrap(),
        )
    };
    let (reference, fused) = run(1, SimdLevel::Scalar);
    for (i, (over_lists, fused)) in reference.iter().zip(&fused).enumerate() {
        // Positive terms, at most 2⁹ of them: each sum is off by less than 2⁹ roundings.
        let tolerance = 512.0 * f32::EPSILON * fused;
        assert!(
            (over_lists - fused).abs() <= tolerance,
            "{i}: {over_lists} and {fused}"
        );
    }
    for threads in [1, 2, 5] {
        for &simd in SimdLevel::available() {
            let (sums, _) = run(threads, simd);
            let same = sums
                .iter()
                .zip(&reference)
                .all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{threads} threads, {}", simd.name());
        }
    }
}

/// The smallest label among the neighbours.
struct Smallest;

impl PairKernel for Smallest {
    type Target = ();
    type Source = f32;
    type Output = f32;
    const REDUCE: Reduce = Reduce::Min;

    fn pair(&self, _: Pair, _: (), label: f32) -> f32 {
        label
    }
}

#[test]
fn results_over_lists_are_combined_as_the_kernel_says() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [1.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
        .unwrap();
    engine.find_neighbors().unwrap();
    let labels = [5.0f32, 7.0, 1.0];
    let fields = &labels;
    let traversal = || {
        engine
            .traverse(&Smallest, set, set)
            .sources(fields)
            .over_lists()
    };
    assert_eq!(traversal().run().unwrap(), [7.0, 5.0, f32::INFINITY]);
    let mut values = vec![6.0f32; 3];
    traversal().add_into(&mut values).unwrap();
    assert_eq!(values, [6.0, 5.0, 6.0]);
    let error = traversal().run_into(&mut [0.0; 2]).unwrap_err().to_string();
    assert!(
        error.contains("output holds 2 values, but there are 3 targets"),
        "{error}"
    );
    let error = engine
        .traverse(&Smallest, set, set)
        .over_lists()
        .run()
        .unwrap_err()
        .to_string();
    assert!(error.contains("source fields have 0 channels"), "{error}");
}

#[test]
fn lists_that_cannot_serve_are_refused() {
    let points = [[0.0f32; 3], [0.5, 0.0, 0.0]];
    let labels = [1.0f32, 2.0];
    let fields = &labels;
    let mut engine = Engine::builder(1.0).lists(ListKind::Half).build().unwrap();
    let a = engine.add_point_set(&points).unwrap();
    let b = engine.add_point_set(&points).unwrap();
    let run = |engine: &Engine, targets, sources| {
        let traversal = engine.traverse(&Smallest, targets, sources);
        traversal.sources(fields).over_lists().run()
    };
    let error = run(&engine, a, b).unwrap_err().to_string();
    assert!(error.contains("call find_neighbors"), "{error}");
    engine.find_neighbors().unwrap();
    assert_eq!(
        run(&engine, a, a).unwrap(),
        [2.0, 1.0],
        "half lists serve both points of a pair"
    );
    assert_eq!(
        run(&engine, a, b).unwrap(),
        [1.0, 1.0],
        "lists of two sets are full anyway"
    );
    engine.update(b, &points).unwrap();
    assert!(run(&engine, a, b).is_err(), "out of date");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_points_in_any_domain_are_traversed_over_their_lists(
        case in prop_oneof![strategy::case(50), strategy::radii_case(50)],
    ) {
        if case.list == oracle::ListKind::Full {
            let found = found(&case, Settings::default());
            prop_assert_eq!(found, fingerprints(&case));
        }
    }
}
