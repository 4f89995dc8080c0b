//! Engines in double precision: every way of asking them gives the contract's neighbours in `f64`,
//! bit for bit, and an engine in single precision refuses `f64` rather than round it.

use crate::common::{
    Fingerprint, Precise, Settings, as_vectors, builder_for, engine_for, fingerprints,
    fingerprints_of, labels,
};
use crate::conformance::{lists, whatever_threads_and_simd};
use nearfield::{
    Builder, Error, ErrorKind, Precision,
    lists::{PairArrays, PairGeometry, Refresh, VerletLists},
    prelude::*,
};
use nearfield_testkit::{
    conformance::{Case, Level, Lists, Runner},
    oracle::{self, Neighbor},
    random::Random,
};
use proptest::prelude::*;

fn builder(radius: f64) -> Builder {
    Engine::builder(radius).precision(Precision::Double)
}

#[test]
fn geometry_is_the_contracts_in_double_precision() {
    for (case, neighbors) in Runner::in_double(Level::Quick).with_neighbors() {
        let settings = builder_for(case, Settings::default()).list_order(ListOrder::Ascending);
        let engine = settings.build().unwrap();
        let (engine, sets) = crate::common::fill(engine, case).unwrap();
        let mut geometry = PairGeometry::default();
        let written = engine.pair_geometry(sets[case.target], sets[case.source], &mut geometry);
        assert_eq!(
            written.is_ok(),
            crate::geometry::has_narrow_images(neighbors),
            "{}",
            case.name
        );
        if written.is_err() {
            continue;
        }
        for (target, expected) in neighbors.iter().enumerate() {
            let found: Vec<_> = geometry.of(target).collect();
            let of = |neighbor: &Neighbor| {
                let (from, to) = (
                    case.targets()[target],
                    case.sources()[neighbor.index as usize],
                );
                let problem = case.problem();
                nearfield::lists::NeighborPair {
                    index: neighbor.index,
                    image: crate::geometry::narrowed(neighbor.image),
                    d: problem.displacement(from, to, neighbor.image),
                    d2: problem.distance_squared(from, to, neighbor.image),
                }
            };
            let expected: Vec<_> = expected.iter().map(of).collect();
            assert_eq!(found, expected, "{}: {target}", case.name);
        }
    }
}

#[test]
fn memory_of_geometry_is_that_of_the_precision_and_serves_both() {
    let points = |x: f64| [[0.0, 0.0, 0.0], [x, 0.0, 0.0]];
    let (mut geometry, near) = (PairGeometry::default(), 1.0 + 2f64.powi(-30));
    for (precision, bytes) in [(Precision::Double, 48), (Precision::Single, 32)].repeat(2) {
        let needed = 12 * 2 + bytes * 2;
        let builder = Engine::builder(1.5).precision(precision);
        let mut engine = builder.memory_limit(needed).build().unwrap();
        let set = match precision {
            Precision::Double => engine.add_point_set(&points(near)).unwrap(),
            Precision::Single => {
                (engine.add_point_set(&points(near).map(|at| at.map(|x| x as f32)))).unwrap()
            }
        };
        engine.pair_geometry(set, set, &mut geometry).unwrap();
        assert_eq!(geometry.bytes() as u64, needed, "{precision}");
        let double = matches!(geometry.arrays(), PairArrays::Double { .. });
        assert_eq!(double, precision == Precision::Double);
        let distance = geometry.of(0).next().unwrap().distance();
        assert_eq!(distance == near, double, "{distance}");
    }
}

#[test]
fn chunks_within_a_limit_hold_the_same_lists() {
    let case = Case::new("cloud", 0.1, cloud(3000, 1e8, 1.5)).periodic([Some(1.5), None, None]);
    let expected = case.expected();
    let settings = builder_for(&case, Settings::default());
    let engine = settings.memory_limit(1 << 13).build().unwrap();
    let (engine, sets) = crate::common::fill(engine, &case).unwrap();
    let mut chunks = engine.list_chunks(sets[0], sets[0]).unwrap();
    let (mut seen, mut number) = (0, 0);
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        number += 1;
        for (target, list) in chunk.iter() {
            let mut list = list.to_vec();
            list.sort_unstable();
            assert_eq!(list, expected[target as usize]);
            seen += 1;
        }
    }
    assert!(number > 3 && seen == 3000, "{number} chunks");
}

/// Points in a cube of this side from (`from`, `from`, `from`) on.
fn cloud(points: usize, from: f64, side: f64) -> Vec<[f64; 3]> {
    let mut random = Random::new(17);
    let mut point = || [0; 3].map(|_| random.between(from, from + side));
    (0..points).map(|_| point()).collect()
}

#[test]
fn lists_and_their_order_do_not_depend_on_threads_simd_or_the_past() {
    let points = cloud(20_000, -3e7, 2.0);
    let case = Case::new("cloud", 0.1, points).periodic([None, Some(2.0), None]);
    let reference = whatever_threads_and_simd(&case, &[1, 5]);
    let mut engine = builder_for(&case, Settings::default()).build().unwrap();
    let points = engine.add_point_set(&cloud(500, 2e9, 1.0)).unwrap();
    for from in [-1e3, -1.5e9, 0.0] {
        engine.update(points, &cloud(300, from, 9.0)).unwrap();
        engine.find_neighbors().unwrap();
    }
    engine
        .update(points, f64::positions(case.targets()))
        .unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(points, points).unwrap();
    assert_eq!(as_vectors(lists), reference);
}

#[test]
fn sets_that_move_apart_and_come_back_stay_exact() {
    let near = cloud(200, 0.0, 1.0);
    let mut engine = builder(0.2).threads(2).build().unwrap();
    let first = engine.add_point_set(&near).unwrap();
    let second = engine.add_point_set(&near).unwrap();
    for by in [0.0, 1e4, 1e9, 3e15, -2e6, 0.01] {
        let moved: Vec<_> = near.iter().map(|at| at.map(|x| x + by)).collect();
        engine.update(second, &moved).unwrap();
        engine.find_neighbors().unwrap();
        for (targets, sources) in [(first, second), (second, second), (first, first)] {
            let mut case = Case::new(format!("moved by {by}"), 0.2, vec![]);
            case.sets = vec![near.clone(), moved.clone()];
            (case.target, case.source) = (targets.number() as usize, sources.number() as usize);
            let found = as_vectors(engine.neighbors(targets, sources).unwrap());
            case.check(found).unwrap();
        }
    }
}

#[test]
fn candidates_stay_few_however_far_away_a_cloud_is() {
    // Were the cells lost to rounding, every point would be a candidate of every other, and this
    // would take hours.
    let points = cloud(200_000, 1e8, 0.02);
    let mut engine = builder(4e-4).threads(2).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    assert!(engine.report().sets[0].cells > 50_000);
    let mean = engine.neighbors(set, set).unwrap().pairs() as f64 / 200_000.0;
    assert!((5.0..7.0).contains(&mean), "{mean}");
}

#[test]
fn positions_in_f32_are_widened_and_every_layout_is_the_same() {
    let packed = cloud(300, 0.1, 1.0);
    let reference = Case::new("layouts", 0.3, packed.clone()).expected();
    let found = |positions: Positions<'_>| {
        let mut engine = builder(0.3).build().unwrap();
        let set = engine.add_point_set(positions).unwrap();
        engine.find_neighbors().unwrap();
        let mut lists = as_vectors(engine.neighbors(set, set).unwrap());
        lists.iter_mut().for_each(|list| list.sort_unstable());
        lists
    };
    let vectors: Vec<glam::DVec3> = packed.iter().map(|&at| at.into()).collect();
    let strided: Vec<[f64; 4]> = packed.iter().map(|&[x, y, z]| [9.0, x, y, z]).collect();
    let bytes: Vec<u8> = (strided.iter().flatten())
        .flat_map(|x| x.to_ne_bytes())
        .collect();
    assert_eq!(found((&packed).into()), reference);
    assert_eq!(found((&vectors).into()), reference);
    assert_eq!(
        found(Positions::strided_f64(&bytes, 8, 32, 300).unwrap()),
        reference
    );
    let single: Vec<[f32; 3]> = packed.iter().map(|at| at.map(|x| x as f32)).collect();
    let widened = Case::new("f32", 0.3_f32, single.clone()).widened();
    let mut case = widened;
    case.radius = 0.3;
    assert_eq!(found((&single).into()), case.expected());
}

#[test]
fn an_f32_engine_refuses_f64_and_keeps_its_state() {
    let points = [[0.0f32; 3], [0.5, 0.0, 0.0]];
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let double = [[0.0f64; 3]];
    for error in [
        engine.add_point_set(&double).unwrap_err(),
        engine.update(set, &double).unwrap_err(),
        engine.query(&double, set).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(message.contains("search in f64"), "{message}");
    }
    assert_eq!((engine.point_sets(), engine.radius()), (1, 1.0));
    assert_eq!(engine.neighbors(set, set).unwrap().of(0), &[1]);
    let mut lists = VerletLists::new(Engine::builder(1.0), 0.1).unwrap();
    assert!(lists.add_point_set(&double).is_err());
}

#[test]
fn what_f64_does_not_go_with_is_refused_by_name() {
    for rule in [
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ] {
        let error = VerletLists::new(builder(1.0).radii(rule), 0.1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::SkinWithRadii(refused) if *refused == rule));
    }
    let error = builder(1.0).device(Device::Hybrid(0)).build();
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported(what) if what.feature().contains("single precision")),
        "{error}"
    );
    let auto = builder(1.0).device(Device::Auto);
    assert_eq!(auto.build().unwrap().report().device, Device::Cpu);
}

#[test]
fn bad_input_in_f64_is_named_with_all_its_digits() {
    let mut engine = builder(0.1).build().unwrap();
    let error = engine
        .add_point_set(&[[0.0; 3], [1.0, f64::NAN, 0.0]])
        .unwrap_err();
    assert!(error.to_string().contains("point 1 has y = NaN"), "{error}");
    let error = builder(-0.123_456_789_012).build().unwrap_err();
    assert!(error.to_string().contains("-0.123456789012"), "{error}");
    let tiny = builder(1.0).periodic([Some(1e-9), None, None]);
    let error = tiny.build().unwrap_err();
    assert!(error.to_string().contains("1000000000 images"), "{error}");
    let periodic = builder(1e-3).periodic([Some(0.1), None, None]);
    let mut engine = periodic.build().unwrap();
    let error = engine.add_point_set(&[[1.25e8 + 0.125, 0.0, 0.0]]);
    let message = error.unwrap_err().to_string();
    assert!(message.contains("x = 125000000.125,"), "{message}");
}

#[test]
fn traversals_over_lists_visit_the_contracts_pairs() {
    let runner = Runner::in_double(Level::Quick).keep(|case| case.list == oracle::ListKind::Full);
    for (case, neighbors) in runner.with_neighbors() {
        let (mut engine, sets) = engine_for(case, Settings::default()).unwrap();
        engine.find_neighbors().unwrap();
        let found = engine
            .traverse(&Fingerprint, sets[case.target], sets[case.source])
            .targets(&labels(case.targets()))
            .sources(&labels(case.sources()))
            .over_lists()
            .run()
            .unwrap();
        let expected = fingerprints_of(case, neighbors);
        assert!(found == expected, "case {}", case.name);
    }
}

/// Every position moved by up to `most` in a random direction.
fn moved(case: &Case<f64>, most: f64, seed: u64) -> Case<f64> {
    let (mut case, mut random) = (case.clone(), Random::new(seed));
    for at in case.sets.iter_mut().flatten() {
        let way = random.direction();
        *at = std::array::from_fn(|axis| at[axis] + most * way[axis]);
    }
    case
}

/// Lists with a skin that hold the sets of a case.
fn with_skin(case: &Case<f64>, skin: f64) -> Result<(VerletLists, Vec<PointSetId>), Error> {
    let settings = builder_for(case, Settings::default());
    let mut lists = VerletLists::new(settings, skin as f32)?;
    let sets = (case.sets.iter())
        .map(|set| lists.add_point_set(f64::positions(set)))
        .collect::<Result<_, _>>()?;
    lists.refresh()?;
    Ok((lists, sets))
}

/// The pairs of a case that lists with a skin give at its positions.
fn pairs_at(
    lists: &mut VerletLists,
    case: &Case<f64>,
    sets: &[PointSetId],
) -> Result<(Lists, Refresh), Error> {
    for (set, id) in case.sets.iter().zip(sets) {
        lists.update(*id, f64::positions(set))?;
    }
    let done = lists.refresh()?;
    let mut found = vec![Vec::new(); case.targets().len()];
    lists.for_each_pair(sets[case.target], sets[case.source], |i, j, _| {
        found[i as usize].push(j);
    })?;
    Ok((found, done))
}

#[test]
fn lists_with_a_skin_give_the_contracts_pairs_at_other_positions() {
    let (mut kept, mut rebuilt) = (0, 0);
    // Radius and skin together are a radius too, at most 2⁶³.
    // Points at the limit may be moved beyond it.
    Runner::in_double(Level::Quick)
        .keep(|case| case.rule == oracle::RadiusRule::Uniform)
        .keep(|case| 1.25 * case.radius < 63f64.exp2() && !case.name.starts_with("2^30"))
        .run(|case| -> Result<_, Error> {
            let skin = 0.25 * case.radius;
            let (mut lists, sets) = with_skin(&moved(case, 0.499 * skin, 5), skin)?;
            let (found, done) = pairs_at(&mut lists, case, &sets)?;
            match done {
                Refresh::Kept => kept += 1,
                Refresh::Rebuilt => rebuilt += 1,
            }
            if case.list == oracle::ListKind::Full {
                let traversed = lists
                    .traverse(&Fingerprint, sets[case.target], sets[case.source])
                    .targets(&labels(case.targets()))
                    .sources(&labels(case.sources()))
                    .run()?;
                assert!(traversed == fingerprints(case), "case {}", case.name);
            }
            Ok(found)
        })
        .unwrap();
    assert!(kept > 2 * rebuilt, "{kept} kept, {rebuilt} rebuilt");
}

#[test]
fn lists_with_a_skin_lose_no_pair_step_after_step() {
    let points = cloud(300, 1e7, 5.0);
    let leaning = [
        Some([5.0, 0.0, 0.0]),
        Some([2.5, 5.0, 0.0]),
        Some([-1.0, 1.5, 5.0]),
    ];
    let one = |name: &str| Case::new(name, 1.0, points.clone());
    for mut case in [
        one("open"),
        one("periodic").periodic([Some(5.0), None, Some(5.0)]),
        one("small box").periodic([Some(1.7); 3]).half(),
        one("tilted").tilted(leaning),
    ] {
        let (mut lists, sets) = with_skin(&case, 0.3).unwrap();
        for step in 0..40 {
            case = moved(&case, 0.02, step);
            let (found, _) = pairs_at(&mut lists, &case, &sets).unwrap();
            case.check(found)
                .unwrap_or_else(|error| panic!("{} at step {step}: {error}", case.name));
        }
        let builds = lists.builds();
        assert!((2..20).contains(&builds), "{}: {builds}", case.name);
    }
}

#[test]
fn the_radius_keeps_its_digits() {
    let mut engine = builder(0.1).build().unwrap();
    assert_eq!(engine.precision(), Precision::Double);
    assert_eq!(engine.report().precision, Precision::Double);
    assert_eq!(engine.radius(), 0.1);
    let points = [[0.0; 3], [0.3, 0.0, 0.0]];
    let set = engine.add_point_set(&points).unwrap();
    engine.set_radius(0.3).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(set, set).unwrap().of(0), &[1]);
    engine.set_radius(0.3f64.next_down()).unwrap();
    engine.find_neighbors().unwrap();
    assert!(engine.neighbors(set, set).unwrap().of(0).is_empty());
    engine.set_radius(0.5).unwrap();
    assert_eq!(engine.radius(), 0.5);
    assert!(engine.set_radius(f64::NAN).is_err());
    assert_eq!(engine.radius(), 0.5);
    let mut single = Engine::builder(0.1).build().unwrap();
    assert_eq!(single.precision(), Precision::Single);
    assert_eq!(single.radius(), f64::from(0.1f32));
    single.set_radius(0.3f32.next_up()).unwrap();
    assert_eq!(single.radius(), f64::from(0.3f32.next_up()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_points_in_any_domain_get_the_contracts_lists(
        case in nearfield_testkit::strategy::double_case(60),
        subdivision in 1u32..4,
    ) {
        case.check(lists(&case, Settings::finer(subdivision)).unwrap()).unwrap();
    }

    #[test]
    fn any_points_that_moved_within_the_skin_lose_no_pair(
        case in nearfield_testkit::strategy::double_case(40),
        skin in 0.0..0.5,
        share in 0.3..0.5,
        seed in 0u64..1000,
    ) {
        let skin = skin * case.radius;
        let (mut lists, sets) = with_skin(&moved(&case, share * skin, seed), skin).unwrap();
        case.check(pairs_at(&mut lists, &case, &sets).unwrap().0).unwrap();
    }
}
