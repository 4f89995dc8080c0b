//! Pair kernels over lists of the device see the pairs of the CPU, with the same bits.

use crate::{
    common::{Fingerprint, Precise, labels},
    fresh_seed, needs_gpu,
    on_gpu::{FromHost, start, upload},
};
use nearfield::{
    Builder, Engine, ErrorKind, ListKind, ListOrder, PointSetId,
    balance::Policy,
    device::{
        CpuHelper, DeviceEngine, DeviceEngineBuilder, DeviceField, GeometryQuantities,
        PositionNumber, Progress,
    },
    prelude::*,
};
use nearfield_testkit::random::Random;

/// A box, as both engines take it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Space {
    Open,
    Straight([Option<f64>; 3]),
    Tilted([Option<[f64; 3]>; 3]),
}

impl Space {
    pub(crate) fn on_device(self, radius: f32) -> DeviceEngineBuilder {
        let builder = DeviceEngine::builder(radius);
        match self {
            Self::Open => builder,
            Self::Straight(lengths) => builder.periodic(lengths),
            Self::Tilted(vectors) => builder.box_vectors(vectors),
        }
    }

    /// The CPU's; another device may be named after it.
    pub(crate) fn on_cpu(self, radius: f32) -> Builder {
        let builder = Engine::builder(f64::from(radius)).device(Device::Cpu);
        match self {
            Self::Open => builder,
            Self::Straight(lengths) => builder.periodic(lengths),
            Self::Tilted(vectors) => builder.box_vectors(vectors),
        }
    }
}

pub(crate) const SPACES: [Space; 5] = [
    Space::Open,
    Space::Straight([Some(10.0), None, Some(7.5)]),
    Space::Tilted([
        Some([10.0, 0.0, 0.0]),
        Some([3.5, 9.0, 0.0]),
        Some([-2.0, 1.5, 8.0]),
    ]),
    // So small that sources are near through several images.
    Space::Straight([Some(1.4), Some(10.0), None]),
    Space::Tilted([Some([1.5, 0.0, 0.0]), Some([0.4, 9.0, 0.0]), None]),
];

/// Points around a box of about ten, some of them beyond its faces.
pub(crate) fn points(random: &mut Random, count: usize) -> Vec<[f32; 3]> {
    let mut coordinate = || 12.0 * random.below(1 << 24) as f32 / (1 << 24) as f32 - 1.0;
    (0..count)
        .map(|_| [0; 3].map(|_: i32| coordinate()))
        .collect()
}

/// The fingerprints of two sets by the CPU.
pub(crate) fn expected(space: Space, radius: f32, sets: [&[[f32; 3]]; 2]) -> Vec<[f32; 3]> {
    let mut engine = space.on_cpu(radius).build().unwrap();
    let same = std::ptr::eq(sets[0], sets[1]);
    let targets = engine.add_point_set(sets[0]).unwrap();
    let sources = if same {
        targets
    } else {
        engine.add_point_set(sets[1]).unwrap()
    };
    let [of_targets, of_sources] = sets.map(labels);
    let traversal = engine.traverse(&Fingerprint, targets, sources);
    traversal
        .targets(&of_targets)
        .sources(&of_sources)
        .run()
        .unwrap()
}

/// The same over the lists of an engine on the device.
fn found(
    engine: &DeviceEngine,
    [targets, sources]: [PointSetId; 2],
    sets: [&[[f32; 3]]; 2],
) -> Vec<[f32; 3]> {
    let stream = engine.stream();
    let fields = sets.map(|points| stream.clone_htod(&labels(points)).unwrap());
    let mut results = stream.alloc_zeros::<f32>(3 * sets[0].len()).unwrap();
    let field = |at: usize| DeviceField::new(fields[at].as_view(), 1);
    let traversal = engine.traverse(&Fingerprint, targets, sources).over_lists();
    let traversal = traversal.targets(field(0)).sources(field(1));
    traversal.run_into(&mut results.as_view_mut()).unwrap();
    stream.clone_dtoh(&results).unwrap().as_chunks().0.to_vec()
}

#[test]
fn kernels_over_lists_see_the_pairs_that_the_cpu_sees() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (space, count) in SPACES
        .into_iter()
        .zip([20_000, 30_000, 20_000, 3_000, 2_500])
    {
        for kind in [ListKind::Full, ListKind::Half] {
            let order = match random.below(2) {
                0 => ListOrder::Ascending,
                _ => ListOrder::Unspecified,
            };
            let radius = 0.9;
            let builder = space.on_device(radius).lists(kind).list_order(order);
            let mut engine = start(builder);
            let mut sets = [points(&mut random, count), points(&mut random, count / 7)];
            let ids = sets.each_ref().map(|points| engine.add(points));
            for step in 0..2 {
                for (a, b) in [(0, 0), (0, 1), (1, 0)] {
                    let of = [sets[a].as_slice(), &sets[b]];
                    let exact = expected(space, radius, of);
                    let found = loop {
                        engine.find(ids[a], ids[b]);
                        let passes = [(); 2].map(|()| found(&engine, [ids[a], ids[b]], of));
                        // Full lists beside half ones may outgrow their storage.
                        if engine.finish().unwrap() == Progress::Valid {
                            break passes;
                        }
                    };
                    for (pass, found) in found.into_iter().enumerate() {
                        let same = found == exact;
                        assert!(same, "{space:?}, {kind:?}, {a} among {b}, {step}, {pass}");
                    }
                }
                sets[0] = points(&mut random, count + 100);
                engine.put(ids[0], &sets[0]);
            }
        }
    }
}

#[test]
fn kernels_over_filtered_lists_see_the_pairs_that_the_cpu_sees() {
    check_filtered::<f32>(&[2, 3]);
}

#[test]
fn kernels_over_lists_in_double_see_the_pairs_that_the_cpu_sees() {
    check_filtered::<f64>(&[0, 2, 3]);
}

/// Compares sums over lists with those of a search by the CPU, without filters, with cut-offs and
/// exclusions (2), and also with the nearest alone and chosen targets (3).
fn check_filtered<T: Precise + PositionNumber>(kinds: &[u32]) {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (space, count) in SPACES.into_iter().zip([9_000, 20_000, 9_000, 2_000, 1_500]) {
        for &kind in kinds {
            let mut on_gpu = space.on_device(0.9).precision(T::PRECISION);
            let mut on_cpu = space.on_cpu(0.9).precision(T::PRECISION);
            let cutoffs = [[0.9f32, 0.7], [0.7, 0.0]].map(|row| row.map(f64::from));
            if kind > 0 {
                (on_gpu, on_cpu) = (on_gpu.cutoffs(&cutoffs), on_cpu.cutoffs(&cutoffs));
            }
            if kind > 2 {
                (on_gpu, on_cpu) = (on_gpu.nearest(9), on_cpu.nearest(9));
            }
            let mut exact = |x: f32| T::round(f64::from(x) + 1e-9 * random.unit());
            let points = points(&mut Random::new(seed ^ u64::from(kind)), count);
            let given: Vec<[T; 3]> = points.iter().map(|at| at.map(&mut exact)).collect();
            let types: Vec<u8> = (0..count).map(|_| random.below(2) as u8).collect();
            let molecules: Vec<u32> = (0..count).map(|i| i as u32 / 3).collect();
            let mask: Vec<bool> = (0..count).map(|_| random.below(3) > 0).collect();
            let (mut on_gpu, mut on_cpu) = (start(on_gpu), on_cpu.build().unwrap());
            let sent = upload(on_gpu.stream(), &given);
            let of_gpu = on_gpu.add_point_set(&sent.as_view()).unwrap();
            let of_cpu = on_cpu.add_point_set(T::positions(&given)).unwrap();
            if kind > 0 {
                on_gpu.set_types(of_gpu, &types).unwrap();
                on_cpu.set_types(of_cpu, &types).unwrap();
                on_gpu.set_molecules(of_gpu, &molecules).unwrap();
                on_cpu.set_molecules(of_cpu, &molecules).unwrap();
            }
            if kind > 2 {
                on_gpu.set_target_mask(of_gpu, &mask).unwrap();
                on_cpu.set_target_mask(of_cpu, &mask).unwrap();
            }
            let of_points = labels(&given);
            let traversal = on_cpu.traverse(&Fingerprint, of_cpu, of_cpu);
            let exact = traversal
                .targets(&of_points)
                .sources(&of_points)
                .run()
                .unwrap();
            let found = loop {
                on_gpu.find_neighbors(of_gpu, of_gpu).unwrap();
                let found = found(&on_gpu, [of_gpu; 2], [&points, &points]);
                if on_gpu.finish().unwrap() == Progress::Valid {
                    break found;
                }
            };
            assert!(found == exact, "{space:?}, filters {kind}, seed {seed}");
        }
    }
}

#[test]
fn lists_with_geometry_serve_kernels_too_and_lists_of_other_points_do_not() {
    needs_gpu!();
    let mut random = Random::new(fresh_seed());
    let mut sets = [points(&mut random, 9_000), Vec::new()];
    let mut engine = start(SPACES[1].on_device(0.8));
    let set = engine.add(&sets[0]);
    let run = |engine: &DeviceEngine, set, results: &mut nearfield::device::DeviceBuffer<f32>| {
        let traversal = engine.traverse(&Fingerprint, set, set).over_lists();
        traversal.run_into(&mut results.as_view_mut())
    };
    let mut results = engine.stream().alloc_zeros::<f32>(27_000).unwrap();
    let missing = run(&engine, set, &mut results).unwrap_err();
    assert!(
        matches!(missing.kind(), ErrorKind::NoLists { .. }),
        "{missing}"
    );
    let mut wanted = GeometryQuantities::NONE;
    wanted.squares = true;
    while {
        engine.pair_geometry(set, set, wanted).unwrap();
        engine.finish().unwrap() == Progress::Repeat
    } {}
    let of = [sets[0].as_slice(); 2];
    assert_eq!(found(&engine, [set; 2], of), expected(SPACES[1], 0.8, of));
    // A set without sources, and one that has moved.
    let none = engine.add(&sets[1]);
    engine.find(set, none);
    let labels_of_targets = engine.stream().clone_htod(&labels(&sets[0])).unwrap();
    let traversal = engine.traverse(&Fingerprint, set, none).over_lists();
    let traversal = traversal.targets(DeviceField::new(labels_of_targets.as_view(), 1));
    traversal.run_into(&mut results.as_view_mut()).unwrap();
    let nothing = engine.stream().clone_dtoh(&results).unwrap();
    assert!(nothing.iter().all(|&x| x == 0.0));
    sets[0][0][1] += 0.5;
    engine.put(set, &sets[0]);
    let missing = run(&engine, set, &mut results).unwrap_err();
    assert!(
        matches!(missing.kind(), ErrorKind::NoLists { .. }),
        "{missing}"
    );
}

#[test]
fn results_over_lists_that_outgrow_their_storage_are_repeated() {
    needs_gpu!();
    let mut random = Random::new(fresh_seed());
    for kind in [ListKind::Full, ListKind::Half] {
        let mut sparse = points(&mut random, 4_000);
        let builder = Space::Open
            .on_device(0.7)
            .lists(kind)
            .within([-2.0; 3], [14.0; 3]);
        let mut engine = start(builder);
        let set = engine.add(&sparse);
        engine.find(set, set);
        found(&engine, [set; 2], [&sparse, &sparse]);
        sparse
            .iter_mut()
            .for_each(|point| *point = point.map(|x| 0.5 * x));
        engine.put(set, &sparse);
        let mut repeats = 0;
        let results = loop {
            engine.find_neighbors(set, set).unwrap();
            let results = found(&engine, [set; 2], [&sparse, &sparse]);
            match engine.finish().unwrap() {
                Progress::Valid => break results,
                Progress::Repeat => repeats += 1,
            }
        };
        assert!(repeats > 0, "{kind:?}");
        assert_eq!(
            results,
            expected(Space::Open, 0.7, [&sparse, &sparse]),
            "{kind:?}"
        );
    }
}

#[test]
fn a_helper_on_the_cpu_has_no_lists() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0));
    let set = engine.add(&[[0.0; 3], [0.5; 3]]);
    engine.find(set, set);
    let stream = engine.stream().clone();
    let field = upload(&stream, &[[1.0, 2.0, 0.0]]);
    let mut results = stream.alloc_zeros::<f32>(6).unwrap();
    let mut helper = CpuHelper::new(Policy::default(), 1).unwrap();
    let field = || DeviceField::new(field.slice(0..2), 1);
    let traversal = engine
        .with_cpu(&mut helper)
        .traverse(&Fingerprint, set, set);
    let traversal = traversal.over_lists().targets(field()).sources(field());
    let refused = traversal.run_into(&mut results.as_view_mut()).unwrap_err();
    assert!(refused.to_string().contains("helper"), "{refused}");
}
