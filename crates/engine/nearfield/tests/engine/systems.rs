//! Many systems in one search find what an engine of each system alone finds.

use crate::common::Precise;
use nearfield::{
    Device, ErrorKind, ListKind, ListOrder,
    error::cpu,
    lists::PairGeometry,
    systems::{self, Quantities, SystemPairs, SystemReal, SystemSearch, Systems},
};
use nearfield_testkit::random::Random;

/// Systems of up to forty points, and one of two thousand.
fn systems_are_searched_as_by_engines<T: Precise + SystemReal>() {
    let random = &mut Random::new(17);
    let (mut positions, mut offsets) = (Vec::new(), vec![0]);
    let (mut cells, mut periodic, mut radii) = (Vec::new(), Vec::new(), Vec::new());
    for system in 0..40 {
        let points = if system == 20 { 2000 } else { random.below(40) };
        let size = (points as f64).cbrt() + 0.4;
        let lean = |random: &mut Random| random.between(-3.0, 3.0) * size;
        let cell = [
            [-size, 0.0, 0.0],
            [lean(random), size, 0.0],
            [lean(random), 0.3, size],
        ];
        periodic.push([system % 2 == 0, system % 3 == 0, system % 5 == 0]);
        for _ in 0..points {
            let at: [f64; 3] = [0; 3].map(|_| random.between(-0.2, 1.3) * size);
            positions.push(at.map(T::round));
        }
        cells.push(cell);
        offsets.push(positions.len() as i64);
        radii.push(random.between(0.5, 1.3));
    }
    let systems = Systems::new(&positions, &offsets, &radii).in_cells(&cells, &periodic);
    for kind in [ListKind::Full, ListKind::Half] {
        let builder = SystemSearch::builder().lists(kind).threads(2);
        let builder = builder.list_order(ListOrder::Ascending);
        let mut search = builder.build().unwrap();
        let mut pairs = SystemPairs::<T, i32>::default();
        search
            .neighbors(&systems, Quantities::ALL, &mut pairs)
            .unwrap();
        for system in 0..radii.len() {
            let (begin, end) = (offsets[system] as usize, offsets[system + 1] as usize);
            let vectors = [0, 1, 2].map(|k| periodic[system][k].then_some(cells[system][k]));
            let engine = T::builder(T::round(radii[system])).box_vectors(vectors);
            let engine = engine.lists(kind).list_order(ListOrder::Ascending);
            let mut engine = engine.device(Device::Cpu).threads(1).build().unwrap();
            let set = engine.add_point_set(<T as Precise>::positions(&positions[begin..end]));
            let (set, mut geometry) = (set.unwrap(), PairGeometry::default());
            engine.pair_geometry(set, set, &mut geometry).unwrap();
            let mut alone = SystemPairs::<T, i32>::default();
            alone.copy_geometry(&geometry, Quantities::ALL).unwrap();
            let own = pairs.offsets()[begin] as usize..pairs.offsets()[end] as usize;
            assert_eq!(alone.len(), own.len());
            assert!(alone.distances() == &pairs.distances()[own.clone()]);
            assert!(alone.displacements() == &pairs.displacements()[own.clone()]);
            assert!(alone.images() == &pairs.images()[own.clone()]);
            let shifted = |index: &i32| index + begin as i32;
            assert!(
                alone
                    .sources()
                    .iter()
                    .map(shifted)
                    .eq(pairs.sources()[own.clone()].iter().copied())
            );
            assert!(
                alone
                    .targets()
                    .iter()
                    .map(shifted)
                    .eq(pairs.targets()[own].iter().copied())
            );
            for point in begin..end {
                let expected = geometry.of(point - begin);
                assert_eq!(pairs.of(point).len(), expected.len());
                for (k, expected) in pairs.of(point).zip(expected) {
                    assert_eq!(pairs.targets()[k], point as i32);
                    assert_eq!(pairs.sources()[k], (begin + expected.index as usize) as i32);
                    assert_eq!(pairs.images()[k], expected.image);
                    assert_eq!(pairs.displacements()[k].map(T::to_f64), expected.d);
                    let distance = T::round(expected.distance());
                    assert_eq!(pairs.distances()[k], distance);
                }
            }
        }
    }
}

#[test]
fn the_pairs_of_a_system_are_those_of_an_engine_of_it_alone() {
    systems_are_searched_as_by_engines::<f32>();
    systems_are_searched_as_by_engines::<f64>();
}

#[test]
fn a_refusal_names_the_system_and_leaves_the_search_usable() {
    let positions = [[0.0f32, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, f32::NAN, 0.0]];
    let mut search = SystemSearch::builder().build().unwrap();
    let mut pairs = SystemPairs::<f32, u32>::default();
    let bad = Systems::new(&positions, &[0, 2, 2, 3], &[1.0]);
    let error = search.neighbors(&bad, Quantities::ALL, &mut pairs);
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string().split(':').take(2).collect::<Vec<_>>(),
        ["system 2", " point 2 has y = NaN"]
    );
    let ErrorKind::Cpu(inner) = error.kind() else {
        panic!("{error}")
    };
    assert!(matches!(
        inner.kind(),
        cpu::ErrorKind::System { system: 2, .. }
    ));
    let good = Systems::new(&positions[..2], &[0, 2], &[1.0]);
    search
        .neighbors(&good, Quantities::LISTS, &mut pairs)
        .unwrap();
    assert_eq!(pairs.sources(), [1, 0]);
    assert_eq!(search.report().device, Device::Cpu);
}

#[test]
fn a_device_that_cannot_search_systems_is_refused_by_name() {
    let device = "emulated".parse().unwrap();
    let error = SystemSearch::builder().device(device).build().unwrap_err();
    assert!(
        error.to_string().contains("pairs of many systems"),
        "{error}"
    );
    for device in [Device::Auto, Device::Cpu] {
        let search = SystemSearch::builder().device(device).build().unwrap();
        assert_eq!(search.report().requested, device);
    }
    let pairs = systems::neighbors(&Systems::<f64>::new(&[], &[0], &[]), Quantities::ALL);
    assert!(pairs.unwrap().is_empty());
}

#[test]
fn the_geometry_of_an_engine_in_the_other_precision_is_refused() {
    let mut engine = nearfield::Engine::builder(1.0).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])
        .unwrap();
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    let mut pairs = SystemPairs::<f64, u32>::default();
    let error = pairs.copy_geometry(&geometry, Quantities::ALL).unwrap_err();
    assert!(matches!(
        error.kind(),
        cpu::ErrorKind::GeometryPrecision { found: "single" }
    ));
    assert!(pairs.is_empty());
}

/// Systems whose points move are searched by lists with a skin as anew in every step.
fn lists_with_a_skin_find_the_pairs_of_a_search<T: Precise + SystemReal>() {
    let random = &mut Random::new(23);
    let sizes = [1, 40, 0, 900, 7];
    let (mut offsets, mut cells, mut positions) = (vec![0], Vec::new(), Vec::new());
    for points in sizes {
        let size = (points as f64).cbrt() + 0.5;
        let lean = random.between(-2.0, 2.0) * size;
        cells.push([[size, 0.0, 0.0], [lean, -size, 0.0], [0.0, 0.3, size]]);
        positions.extend((0..points).map(|_| [0; 3].map(|_| random.between(-0.2, 1.3) * size)));
        offsets.push(positions.len() as i64);
    }
    let radii = [1.0, 1.2, 1.0, 1.3, 2.0];
    let periodic = [
        [true; 3],
        [true, false, true],
        [false; 3],
        [true; 3],
        [true; 3],
    ];
    let settings = || {
        let settings = SystemSearch::builder().threads(2);
        settings.list_order(ListOrder::Ascending)
    };
    let mut fresh = settings().build().unwrap();
    let mut kept = settings().with_skin::<T>(0.2).unwrap();
    let (mut found, mut expected) = (
        SystemPairs::<T, u32>::default(),
        SystemPairs::<T, u32>::default(),
    );
    for step in 0..8 {
        let at: Vec<[T; 3]> = positions.iter().map(|at| at.map(T::round)).collect();
        let systems = Systems::new(&at, &offsets, &radii).in_cells(&cells, &periodic);
        let systems = Systems {
            strict: step > 5,
            ..systems
        };
        kept.neighbors(&systems, Quantities::ALL, &mut found)
            .unwrap();
        fresh
            .neighbors(&systems, Quantities::ALL, &mut expected)
            .unwrap();
        assert!(found.len() > 1000);
        assert!(found.offsets() == expected.offsets() && found.targets() == expected.targets());
        assert!(found.sources() == expected.sources() && found.images() == expected.images());
        assert!(found.displacements() == expected.displacements());
        assert!(found.distances() == expected.distances());
        let moved = positions.iter_mut().flatten();
        moved.for_each(|x| *x += random.between(-0.02, 0.02));
    }
    // Once at the beginning, once for the last steps, which are strict, and perhaps once between.
    assert!((2..=4).contains(&kept.builds()), "{}", kept.builds());
    let at = [[T::round(f64::NAN); 3]; 2];
    let wrong = kept.neighbors(
        &Systems::new(&at, &[0, 2], &[1.0]),
        Quantities::ALL,
        &mut found,
    );
    assert!(wrong.is_err() && found.is_empty());
}

#[test]
fn lists_with_a_skin_find_the_pairs_of_a_search_in_both_precisions() {
    lists_with_a_skin_find_the_pairs_of_a_search::<f32>();
    lists_with_a_skin_find_the_pairs_of_a_search::<f64>();
    for skin in [-1.0, f64::NAN] {
        let refused = SystemSearch::builder().with_skin::<f32>(skin);
        assert!(matches!(refused.unwrap_err().kind(), ErrorKind::Skin(_)));
    }
    // What only the radius and the skin together cannot do names the skin.
    let cell = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]];
    let systems = Systems::new(&[[0.5f32; 3]], &[0, 1], &[0.5]);
    let systems = systems.in_cells(&cell, &[[true; 3]]);
    let mut found = SystemPairs::<f32, u32>::default();
    for skin in [2_000.0, 1e30] {
        let mut kept = SystemSearch::builder().with_skin::<f32>(skin).unwrap();
        let refused = kept.neighbors(&systems, Quantities::ALL, &mut found);
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("system 0") && text.contains("smaller skin"),
            "{text}"
        );
    }
}
