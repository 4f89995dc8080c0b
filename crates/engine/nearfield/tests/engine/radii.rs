//! Radii of single points: how they are given, kept, forgotten and refused.

use nearfield::{
    kernels::SphDensity,
    lists::{PairGeometry, QueryScratch, VerletLists},
    prelude::*,
};
use nearfield_testkit::{cloud::Cloud, random::Random};

fn row(count: usize) -> Vec<[f32; 3]> {
    (0..count).map(|i| [i as f32, 0.0, 0.0]).collect()
}

fn engine(rule: RadiusRule) -> Engine {
    Engine::builder(3.0)
        .radii(rule)
        .list_order(ListOrder::Ascending)
        .build()
        .unwrap()
}

/// Three points in a row with the radii 2, 1 and 3/2.
fn three(rule: RadiusRule) -> (Engine, PointSetId) {
    let mut engine = engine(rule);
    let set = engine.add_point_set(&row(3)).unwrap();
    engine.set_radii(set, &[2.0, 1.0, 1.5]).unwrap();
    (engine, set)
}

fn lists(engine: &mut Engine, set: PointSetId) -> Vec<Vec<u32>> {
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    lists.iter().map(<[u32]>::to_vec).collect()
}

#[test]
fn a_rule_says_whose_radius_decides() {
    let of = |rule| {
        let (mut engine, set) = three(rule);
        lists(&mut engine, set)
    };
    assert_eq!(of(RadiusRule::Gather), [vec![1, 2], vec![0, 2], vec![1]]);
    assert_eq!(of(RadiusRule::Scatter), [vec![1], vec![0, 2], vec![0, 1]]);
    assert_eq!(of(RadiusRule::Symmetric), [[1, 2], [0, 2], [0, 1]]);
}

#[test]
fn half_lists_hold_each_pair_by_the_larger_radius_once() {
    let half = |rule| {
        Engine::builder(3.0)
            .radii(rule)
            .lists(ListKind::Half)
            .build()
    };
    let mut engine = half(RadiusRule::Symmetric).unwrap();
    let set = engine.add_point_set(&row(3)).unwrap();
    engine.set_radii(set, &[1.0, 1.0, 2.0]).unwrap();
    let mut found = lists(&mut engine, set);
    found.iter_mut().for_each(|list| list.sort_unstable());
    assert_eq!(found, [vec![1, 2], vec![2], vec![]]);
    for rule in [RadiusRule::Gather, RadiusRule::Scatter] {
        let error = half(rule).unwrap_err().to_string();
        let expected = format!("by the rule {rule} a point may find another");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn radii_are_refused_by_set_point_and_value_and_the_old_ones_stay() {
    let (mut engine, set) = three(RadiusRule::Gather);
    let before = lists(&mut engine, set);
    for (bad, said) in [
        (0.0, "the radius 0,"),
        (-1.0, "the radius -1,"),
        (f32::NAN, "the radius NaN,"),
        (f32::INFINITY, "the radius inf,"),
        (3.5, "the radius 3.5,"),
    ] {
        let error = engine.set_radii(set, &[1.0, bad, bad]).unwrap_err();
        let error = error.to_string();
        let expected = format!("point set 0: point 1 has {said}");
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("search radius 3 (2 of 3 points)"), "{error}");
    }
    let error = engine.set_radii(set, &[1.0]).unwrap_err().to_string();
    assert!(
        error.contains("point set 0: 1 radii for 3 points"),
        "{error}"
    );
    assert!(engine.neighbors(set, set).is_ok(), "nothing has changed");
    engine.update(set, &row(3)).unwrap();
    assert_eq!(lists(&mut engine, set), before);
    engine.set_radii(set, &[3.0, 0.01, 3.0]).unwrap();
    assert!(engine.neighbors(set, set).is_err(), "out of date");
    assert_eq!(lists(&mut engine, set), [vec![1, 2], vec![], vec![0, 1]]);
}

/// Everything an engine can be asked about a pair of sets.
fn ask(engine: &mut Engine, targets: PointSetId, sources: PointSetId) -> Vec<Result<(), Error>> {
    let density = SphDensity::with_support(3.0);
    let masses = vec![1.0f32; engine.points(sources).unwrap()];
    let traversal = engine.traverse(&density, targets, sources);
    let fields = &masses;
    let traversal = traversal.sources(fields).run().map(drop);
    vec![
        traversal,
        engine.count_neighbors(targets, sources).map(drop),
        engine.list_chunks(targets, sources).map(drop),
        engine.for_each_neighbor(targets, sources, 0, |_, _| ()),
        engine.pair_geometry(targets, sources, &mut PairGeometry::default()),
        engine.find_neighbors(),
    ]
}

#[test]
fn a_set_without_radii_is_refused_wherever_they_count() {
    for rule in [
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ] {
        let mut engine = engine(rule);
        let with = engine.add_point_set(&row(4)).unwrap();
        let without = engine.add_point_set(&row(5)).unwrap();
        engine.set_radii(with, &[1.0; 4]).unwrap();
        for (targets, sources) in [(with, with), (with, without), (without, with)] {
            for pair in [
                (with, with),
                (with, without),
                (without, with),
                (without, without),
            ] {
                let active = pair == (targets, sources);
                engine.set_active(pair.0, pair.1, active).unwrap();
            }
            let refused = (rule.needs_targets() && targets == without)
                || (rule.needs_sources() && sources == without);
            for (call, result) in ask(&mut engine, targets, sources).into_iter().enumerate() {
                match result {
                    Ok(()) => assert!(!refused, "{rule}, call {call}"),
                    Err(error) => {
                        assert!(refused, "{rule}, call {call}: {error}");
                        let error = error.to_string();
                        let expected = "point set 1 has no radii for its 5 points";
                        assert!(error.contains(expected), "{error}");
                        assert!(error.contains(rule.name()) && error.contains("set them"));
                    }
                }
            }
        }
    }
}

#[test]
fn radii_stay_with_the_indices_until_the_number_of_points_changes() {
    let (mut engine, set) = three(RadiusRule::Gather);
    let turned = [[2.0f32, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]];
    engine.update(set, &turned).unwrap();
    assert_eq!(lists(&mut engine, set), [vec![1, 2], vec![2], vec![0, 1]]);
    engine.update(set, &row(4)).unwrap();
    let error = engine.find_neighbors().unwrap_err().to_string();
    assert!(error.contains("no radii for its 4 points"), "{error}");
    engine.update(set, &row(3)).unwrap();
    assert!(engine.find_neighbors().is_err(), "they are forgotten");
    engine.set_radii(set, &[1.0; 3]).unwrap();
    assert_eq!(lists(&mut engine, set), [vec![1], vec![0, 2], vec![1]]);
    engine.update(set, &row(0)).unwrap();
    assert!(
        lists(&mut engine, set).is_empty(),
        "no point lacks a radius"
    );
    engine.update(set, &row(1)).unwrap();
    assert!(engine.find_neighbors().is_err());
}

#[test]
fn radii_follow_when_all_sets_are_sorted_anew() {
    let mut random = Random::new(5);
    let points = Cloud::Uniform.points(3_000, 1);
    let radii: Vec<f32> = points
        .iter()
        .map(|_| random.between(0.1, 1.0) as f32)
        .collect();
    let build = |radius| {
        let builder = Engine::builder(radius).radii(RadiusRule::Gather);
        let builder = builder.periodic([Some(15.0), None, None]);
        builder.list_order(ListOrder::Ascending).build().unwrap()
    };
    let mut engine = build(1.0);
    let set = engine.add_point_set(&points).unwrap();
    engine.set_radii(set, &radii).unwrap();
    let expected = lists(&mut engine, set);
    engine.set_radius(2.5).unwrap();
    assert_eq!(lists(&mut engine, set), expected);
    // A set that leaves the box moves all sets to a wider lattice.
    let far = engine.add_point_set(&[[9e5f32, 0.0, 0.0]]).unwrap();
    engine.set_radii(far, &[1.0]).unwrap();
    assert_eq!(lists(&mut engine, set), expected);
    let error = engine.set_radius(0.9).unwrap_err().to_string();
    let largest = radii.iter().position(|&radius| radius > 0.9).unwrap();
    assert!(
        error.contains(&format!("point set 0: point {largest} has the radius")),
        "{error}"
    );
    assert_eq!(engine.radius(), 2.5);
    assert_eq!(lists(&mut engine, set), expected);
}

#[test]
fn positions_of_a_query_have_radii_where_the_targets_count() {
    let probe = [[0.0f32, 0.0, 0.0]];
    for (rule, own, expected) in [
        (RadiusRule::Gather, Some(1.0), vec![0, 1]),
        (RadiusRule::Scatter, None, vec![0, 1]),
        (RadiusRule::Symmetric, Some(1.0), vec![0, 1]),
        (RadiusRule::Symmetric, Some(0.5), vec![0, 1]),
        (RadiusRule::Symmetric, Some(3.0), vec![0, 1, 2]),
        (RadiusRule::Uniform, None, vec![0, 1, 2]),
    ] {
        let mut engine = engine(rule);
        let set = engine.add_point_set(&row(3)).unwrap();
        if rule != RadiusRule::Uniform {
            engine.set_radii(set, &[0.5, 1.0, 1.5]).unwrap();
        }
        let mut scratch = QueryScratch::default();
        let mut query = |radii: Option<&[f32]>| {
            let lists = engine.query_into(&probe, radii.map(Into::into), set, &mut scratch);
            lists.map(|lists| lists.of(0).to_vec())
        };
        let error = match own {
            Some(_) => query(None),
            None => query(Some(&[1.0])),
        };
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("by the rule {rule}")), "{error}");
        let found = match own {
            Some(radius) => query(Some(&[radius])),
            None => query(None),
        };
        assert_eq!(found.unwrap(), expected, "{rule}");
        match own {
            Some(_) => assert!(engine.query(&probe, set).is_err(), "{rule}"),
            None => assert_eq!(engine.query(&probe, set).unwrap().of(0), expected),
        }
    }
    let (engine, set) = three(RadiusRule::Gather);
    let refused = |radii: &[f32]| {
        let mut scratch = QueryScratch::default();
        let lists = engine.query_into(&probe, Some(radii.into()), set, &mut scratch);
        lists.unwrap_err().to_string()
    };
    let error = refused(&[4.0]);
    assert!(error.contains("query: point 0 has the radius 4"), "{error}");
    let error = refused(&[]);
    assert!(error.contains("query: 0 radii for 1 points"), "{error}");
}

#[test]
fn radii_that_would_not_count_are_refused() {
    let mut engine = engine(RadiusRule::Uniform);
    let set = engine.add_point_set(&row(3)).unwrap();
    let error = engine.set_radii(set, &[1.0; 3]).unwrap_err().to_string();
    assert!(
        error.contains("by the rule uniform") && error.contains("another rule"),
        "{error}"
    );
    let builder = Engine::builder(1.0).radii(RadiusRule::Symmetric);
    let error = VerletLists::new(builder, 0.1).unwrap_err().to_string();
    assert!(
        error.contains("one radius only, not the rule symmetric"),
        "{error}"
    );
}

#[test]
fn a_traversal_over_lists_follows_the_radii() {
    let points = Cloud::Clusters.points(5_000, 2);
    let mut random = Random::new(8);
    let radii: Vec<f32> = points
        .iter()
        .map(|_| random.between(0.05, 1.0) as f32)
        .collect();
    let masses: Vec<f32> = (0..points.len()).map(|i| (i % 61) as f32).collect();
    for rule in [
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ] {
        let mut engine = Engine::builder(1.0).radii(rule).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.set_radii(set, &radii).unwrap();
        engine.find_neighbors().unwrap();
        let fields = &masses;
        let traversal = || engine.traverse(&Mass, set, set).sources(fields);
        let sums = traversal().run().unwrap();
        assert_eq!(traversal().over_lists().run().unwrap(), sums, "{rule}");
        let mut by_callback = vec![0.0; points.len()];
        for (point, sum) in by_callback.iter_mut().enumerate() {
            let add = |j, _| *sum += masses[j as usize];
            engine.for_each_neighbor(set, set, point, add).unwrap();
        }
        assert_eq!(by_callback, sums, "{rule}");
    }
}

/// Adds up whole numbers, which is exact in any order.
struct Mass;

impl PairKernel for Mass {
    type Target = ();
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, _: Pair, _: (), mass: f32) -> f32 {
        mass
    }
}

#[test]
fn the_report_counts_the_radii() {
    let (mut engine, set) = three(RadiusRule::Symmetric);
    let points = Cloud::Uniform.points(10_000, 1);
    engine.update(set, &points).unwrap();
    engine.set_radii(set, &vec![1.0; points.len()]).unwrap();
    let report = engine.report();
    let needed = 4 * (2 * points.len() + 16);
    assert_eq!(report.memory.radii, needed);
    assert!(report.memory.parts().contains(&("radii", needed)));
    assert!(report.sets[0].bytes >= needed + report.memory.sorted_points);
}
