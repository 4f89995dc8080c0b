//! The geometry of pairs is the contract's, images included.

use crate::common::{Settings, builder_for, fill, levels_in_turn};
use nearfield::{
    Device, Engine, Error, ErrorKind, ListOrder,
    lists::{NeighborPair, PairArrays, PairGeometry},
};
use nearfield_testkit::{
    conformance::{Case, Level, Runner},
    oracle, strategy,
};
use proptest::prelude::*;

/// The geometry of a case, found once over leftovers of a larger one.
fn geometry(case: &Case, settings: Settings, order: ListOrder) -> Result<PairGeometry, Error> {
    let builder = builder_for(case, settings).list_order(order);
    let (engine, sets) = fill(builder.build()?, case)?;
    let mut geometry = PairGeometry::default();
    for _ in 0..2 {
        engine.pair_geometry(sets[case.target], sets[case.source], &mut geometry)?;
    }
    Ok(geometry)
}

/// An image in the counts that geometry holds.
pub(crate) fn narrowed(image: [i64; 3]) -> [i32; 3] {
    image.map(|boxes| i32::try_from(boxes).unwrap())
}

/// Whether all images of a case have such counts.
pub(crate) fn has_narrow_images(neighbors: &[Vec<oracle::Neighbor>]) -> bool {
    let mut counts = neighbors.iter().flatten().flat_map(|pair| pair.image);
    counts.all(|boxes| i32::try_from(boxes).is_ok())
}

/// Geometry of a pair by the contract.
fn by_definition(case: &Case, target: usize, neighbor: &oracle::Neighbor) -> NeighborPair {
    let from = case.targets()[target];
    let to = case.sources()[neighbor.index as usize];
    let d = case.problem().displacement(from, to, neighbor.image);
    let d2 = case.problem().distance_squared(from, to, neighbor.image);
    NeighborPair {
        index: neighbor.index,
        image: narrowed(neighbor.image),
        d: d.map(f64::from),
        d2: d2.into(),
    }
}

/// Geometry of a case by the contract.
pub(crate) fn expected(case: &Case, lists: &[Vec<oracle::Neighbor>]) -> Vec<Vec<NeighborPair>> {
    let list = |(target, list): (usize, &Vec<oracle::Neighbor>)| {
        let pairs = list.iter().map(|pair| by_definition(case, target, pair));
        pairs.collect()
    };
    lists.iter().enumerate().map(list).collect()
}

pub(crate) fn check(
    case: &Case,
    expected: &[Vec<NeighborPair>],
    settings: Settings,
    order: ListOrder,
) {
    let found = geometry(case, settings, order).unwrap();
    assert_eq!(found.lists().len(), expected.len(), "{}", case.name);
    for (target, expected) in expected.iter().enumerate() {
        let mut found: Vec<_> = found.of(target).collect();
        if order == ListOrder::Unspecified {
            found.sort_by_key(|neighbor| (neighbor.index, neighbor.image));
        }
        assert!(
            found == *expected,
            "{}, target {target}: {found:?} instead of {expected:?}",
            case.name
        );
    }
}

#[test]
fn geometry_is_the_contracts_at_every_simd_level_and_cell_size() {
    let runner = Runner::new(Level::Quick);
    for ((case, neighbors), simd) in runner.with_neighbors().zip(levels_in_turn()) {
        if !has_narrow_images(neighbors) {
            let error = geometry(case, Settings::default(), ListOrder::Unspecified).unwrap_err();
            assert!(error.to_string().contains("boxes apart"), "{error}");
            continue;
        }
        let expected = expected(case, neighbors);
        let settings = Settings::at(simd);
        check(case, &expected, settings, ListOrder::Unspecified);
        let settings = Settings {
            subdivision: 2,
            threads: 3,
            ..Settings::default()
        };
        check(case, &expected, settings, ListOrder::Ascending);
    }
}

#[test]
fn an_emulated_device_gives_the_contracts_geometry() {
    let uniform = |case: &Case| case.rule == oracle::RadiusRule::Uniform;
    let runner = Runner::new(Level::Quick).keep(uniform);
    for ((case, neighbors), order) in (runner.with_neighbors()).zip(
        [ListOrder::Unspecified, ListOrder::Ascending]
            .into_iter()
            .cycle(),
    ) {
        let device: Device = "emulated".parse().unwrap();
        let builder = builder_for(case, Settings::default()).device(device);
        let (engine, sets) = fill(builder.list_order(order).build().unwrap(), case).unwrap();
        let (targets, sources) = (sets[case.target], sets[case.source]);
        let mut found = PairGeometry::default();
        let written = engine.pair_geometry(targets, sources, &mut found);
        if !has_narrow_images(neighbors) {
            let error = written.unwrap_err();
            assert!(error.to_string().contains("boxes apart"), "{error}");
            continue;
        }
        written.unwrap();
        let report = engine.report();
        assert_eq!(report.device, device);
        assert_eq!(report.jobs[0].job, "pair_geometry");
        let expected = expected(case, neighbors);
        for (target, expected) in expected.iter().enumerate() {
            let mut found: Vec<_> = found.of(target).collect();
            if order == ListOrder::Unspecified {
                found.sort_by_key(|neighbor| (neighbor.index, neighbor.image));
            }
            assert!(found == *expected, "{}, target {target}", case.name);
        }
    }
}

#[test]
fn a_device_that_shares_its_jobs_leaves_geometry_to_the_cpu_and_says_so() {
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])
        .unwrap();
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    assert_eq!(geometry.lists().pairs(), 2);
    let jobs = engine.report().jobs;
    assert_eq!(
        (&*jobs[0].job, jobs[0].device),
        ("pair_geometry", Device::Cpu)
    );
    assert!(!jobs[0].reason.is_empty());
}

/// The contract adds an image vector of zeros, which makes +0 of −0; searches leave it out where
/// no box is in the way.
#[test]
fn a_displacement_of_nothing_is_positive_on_every_path() {
    let points = [[0.0f32, 0.0, 0.0], [-0.0, 0.5, -0.0]];
    for periodic in [[None; 3], [Some(8.0), None, None]] {
        let mut engine = Engine::builder(1.0).periodic(periodic).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        let mut geometry = PairGeometry::default();
        engine.pair_geometry(set, set, &mut geometry).unwrap();
        for target in 0..2 {
            for pair in geometry.of(target) {
                let [x, _, z] = pair.d;
                assert!(
                    x.is_sign_positive() && z.is_sign_positive(),
                    "{periodic:?}: {pair:?}"
                );
            }
        }
    }
}

#[test]
fn a_source_stands_once_per_image_in_a_box_smaller_than_the_radius() {
    let mut engine = Engine::builder(1.0)
        .periodic([Some(0.75), None, None])
        .list_order(ListOrder::Ascending)
        .build()
        .unwrap();
    let set = engine
        .add_point_set(&[[0.5f32, 0.0, 0.0], [0.5, 0.25, 0.0]])
        .unwrap();
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    let of_first: Vec<_> = geometry.of(0).map(|n| (n.index, n.image[0], n.d)).collect();
    let expected = [
        (0, -1, [-0.75, 0.0, 0.0]),
        (0, 1, [0.75, 0.0, 0.0]),
        (1, -1, [-0.75, 0.25, 0.0]),
        (1, 0, [0.0, 0.25, 0.0]),
        (1, 1, [0.75, 0.25, 0.0]),
    ];
    assert_eq!(of_first, expected);
}

#[test]
fn the_arrays_are_parallel_to_the_lists() {
    let case = Case::new(
        "cube",
        1.0,
        nearfield_testkit::shapes::uniform_box(500, [[0.0; 3], [4.0; 3]], 1),
    );
    let found = geometry(&case, Settings::default(), ListOrder::Unspecified).unwrap();
    let lists = found.lists();
    let storage = lists.storage().len();
    assert_eq!(found.images().len(), storage);
    let PairArrays::Single {
        displacement,
        distance_squared,
    } = found.arrays()
    else {
        panic!("the engine is in single precision");
    };
    assert_eq!(
        (displacement.len(), distance_squared.len()),
        (storage, storage)
    );
    for i in 0..lists.len() {
        let begin = lists.starts()[i] as usize;
        for (k, (neighbor, &index)) in found.of(i).zip(lists.of(i)).enumerate() {
            assert_eq!(neighbor.index, index);
            assert_eq!(neighbor.pair().d, displacement[begin + k]);
            assert_eq!(neighbor.pair().d2, distance_squared[begin + k]);
            assert_eq!(neighbor.image, found.images()[begin + k]);
            assert_eq!(neighbor.distance(), neighbor.d2.sqrt());
        }
    }
}

#[test]
fn geometry_stays_within_the_memory_limit_or_is_refused() {
    let row =
        |count: usize| -> Vec<[f32; 3]> { (0..count).map(|i| [i as f32, 0.0, 0.0]).collect() };
    let needed = 12 * 100 + 32 * 198;
    let run = |limit, geometry: &mut PairGeometry| {
        let mut engine = Engine::builder(1.0).memory_limit(limit).build().unwrap();
        let set = engine.add_point_set(&row(100)).unwrap();
        engine.pair_geometry(set, set, geometry)
    };
    let mut geometry = PairGeometry::default();
    run(needed, &mut geometry).unwrap();
    assert_eq!(geometry.bytes() as u64, needed);
    let error = run(needed - 1, &mut geometry).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MemoryLimit { needed: told, .. } if *told == needed));
    assert_eq!(
        geometry.lists().pairs(),
        198,
        "a refused request changes nothing"
    );

    let mut large = PairGeometry::default();
    let mut engine = Engine::builder(1.0).build().unwrap();
    let set = engine.add_point_set(&row(1000)).unwrap();
    engine.pair_geometry(set, set, &mut large).unwrap();
    run(needed, &mut large).unwrap();
    assert_eq!(
        large.bytes() as u64,
        needed,
        "room beyond the limit is given back"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_points_in_any_domain_get_the_contracts_geometry(
        case in prop_oneof![strategy::case(50), strategy::radii_case(50)],
        subdivision in 1u32..4,
    ) {
        let settings = Settings { subdivision, ..Settings::default() };
        check(&case, &expected(&case, &case.problem().neighbors()), settings, ListOrder::Ascending);
    }
}
