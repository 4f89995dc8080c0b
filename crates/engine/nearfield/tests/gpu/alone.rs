//! The GPU alone: every strategy, steps that move, results that come in pieces.

use super::{GPU, OnCpu, assert_close, assert_on_gpu, engine_with, fresh_seed, needs_gpu, uniform};
use crate::common::{
    Precise, Settings, as_vectors, builder_for, fill, fingerprints, lists_of, traverse,
};
use nearfield::{
    balance::Strategy,
    kernels::SphDensity,
    lists::{NeighborPair, PairGeometry},
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level},
    oracle,
    random::Random,
};

fn engine_for<T: Precise>(
    case: &Case<T>,
    strategy: Strategy,
) -> Result<(Engine, Vec<PointSetId>), Error> {
    let builder = builder_for(case, Settings::default());
    fill(builder.device(GPU).strategy(strategy).build()?, case)
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_a_remedy() {
    let error = Engine::builder(1.0)
        .device(Device::Gpu(99))
        .build()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("gpu:99") && (text.contains("driver") || text.contains("GPU 99")),
        "{text}"
    );
}

fn lists_by_every_strategy<T: Precise>() {
    needs_gpu!();
    // Programs stay loaded while an engine uses the GPU.
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let runner = T::runner(Level::Quick).keep(uniform);
    for strategy in Strategy::ALL {
        let run = |case: &Case<T>| -> Result<_, Error> {
            let (mut engine, sets) = engine_for(case, strategy)?;
            let lists = lists_of(&mut engine, case, &sets)?;
            assert_on_gpu(&engine);
            let counts = engine.count_neighbors(sets[case.target], sets[case.source])?;
            if case.list == oracle::ListKind::Full {
                assert!(
                    lists
                        .iter()
                        .map(Vec::len)
                        .eq(counts.iter().map(|&n| n as usize))
                );
            }
            Ok(lists)
        };
        runner.run(run).unwrap();
    }
}

#[test]
fn lists_are_the_contracts_by_every_strategy() {
    lists_by_every_strategy::<f32>();
}

#[test]
fn lists_in_double_are_the_contracts_by_every_strategy() {
    lists_by_every_strategy::<f64>();
}

/// The geometry of a pair, with the bits of its numbers.
fn bits(pair: &NeighborPair) -> (u32, [i32; 3], [u64; 3], u64) {
    (
        pair.index,
        pair.image,
        pair.d.map(f64::to_bits),
        pair.d2.to_bits(),
    )
}

#[test]
fn geometry_has_the_bits_of_the_cpu_by_every_strategy() {
    geometry_by_every_strategy::<f32>();
}

#[test]
fn geometry_in_double_has_the_bits_of_the_cpu_by_every_strategy() {
    geometry_by_every_strategy::<f64>();
}

fn geometry_by_every_strategy<T: Precise>() {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    for strategy in Strategy::ALL {
        for case in T::runner(Level::Quick).keep(uniform).cases() {
            let builder = || {
                let builder = builder_for(case, Settings::default());
                builder.list_order(ListOrder::Ascending)
            };
            let on_gpu = builder().device(GPU).strategy(strategy).build().unwrap();
            let (on_gpu, sets) = fill(on_gpu, case).unwrap();
            let on_cpu = builder().device(Device::Cpu).build().unwrap();
            let (on_cpu, same) = fill(on_cpu, case).unwrap();
            let [(targets, sources), of_cpu] =
                [sets, same].map(|sets| (sets[case.target], sets[case.source]));
            let [mut found, mut expected] = [PairGeometry::default(), PairGeometry::default()];
            let by_cpu = on_cpu.pair_geometry(of_cpu.0, of_cpu.1, &mut expected);
            for _ in 0..2 {
                let by_gpu = on_gpu.pair_geometry(targets, sources, &mut found);
                assert_eq!(
                    by_gpu.as_ref().map_err(ToString::to_string),
                    by_cpu.as_ref().map_err(ToString::to_string),
                    "{}",
                    case.name
                );
            }
            if by_cpu.is_err() {
                continue;
            }
            assert_on_gpu(&on_gpu);
            for target in 0..case.targets().len() {
                let [found, expected] = [&found, &expected].map(|geometry| {
                    geometry
                        .of(target)
                        .map(|pair| bits(&pair))
                        .collect::<Vec<_>>()
                });
                assert_eq!(
                    found, expected,
                    "{}, target {target}, {strategy}",
                    case.name
                );
            }
        }
    }
}

/// Many points, whose lists come from masks, in steps; lists and geometry of one engine in turns.
#[test]
fn geometry_of_a_moving_cloud_is_that_of_the_cpu() {
    needs_gpu!();
    for periodic in [[None; 3], [Some(40.0), Some(40.0), None]] {
        let mut points = Cloud::Lattice.points(60_000, 3);
        let mut engines = [GPU, Device::Cpu].map(|device| {
            let builder = Engine::builder(2.0).periodic(periodic);
            engine_with(builder.list_order(ListOrder::Ascending), device, &points)
        });
        let mut geometry = [PairGeometry::default(), PairGeometry::default()];
        for step in 0..4 {
            drift(&mut points, 0.2, step);
            points.truncate(60_000 - 2_000 * step as usize);
            for ((engine, set), geometry) in engines.iter_mut().zip(&mut geometry) {
                engine.update(*set, &points).unwrap();
                engine.pair_geometry(*set, *set, geometry).unwrap();
                engine.find_neighbors().unwrap();
                let lists = engine.neighbors(*set, *set).unwrap();
                assert_eq!(lists.pairs(), geometry.lists().pairs());
                assert_eq!(lists.of(7), geometry.lists().of(7));
            }
            assert_on_gpu(&engines[0].0);
            for target in 0..points.len() {
                let [found, expected] = geometry.each_ref().map(|geometry| {
                    geometry
                        .of(target)
                        .map(|pair| bits(&pair))
                        .collect::<Vec<_>>()
                });
                assert_eq!(found, expected, "step {step}, target {target}");
            }
        }
    }
}

#[test]
fn traversals_visit_the_contracts_pairs() {
    traversals::<f32>();
}

#[test]
fn traversals_in_double_visit_the_contracts_pairs() {
    traversals::<f64>();
}

fn traversals<T: Precise>() {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    for case in T::runner(Level::Quick).keep(uniform).cases() {
        if case.list == oracle::ListKind::Half {
            continue;
        }
        let (engine, sets) = engine_for(case, Strategy::Flat).unwrap();
        let found = traverse(&engine, case, &sets);
        assert_on_gpu(&engine);
        assert_eq!(found, fingerprints(case), "{}", case.name);
    }
}

/// Fresh random points that lie up to three boxes outside of theirs, or far from the origin, in
/// straight, tilted and half-open boxes: lists, geometry, counts and sums are those of the CPU, for
/// as many points as have a thread each.
fn strays_are_those_of_the_cpu<T: Precise>() {
    needs_gpu!();
    let seed = fresh_seed();
    let mut random = Random::new(seed);
    let straight = [[20.0, 0.0, 0.0], [0.0, 22.0, 0.0], [0.0, 0.0, 18.0]].map(Some);
    let tilted = [[20.0, 0.0, 0.0], [6.0, 21.0, 0.0], [-4.0, 3.0, 19.0]].map(Some);
    let half_open = [straight[0], None, straight[2]];
    for (vectors, spread) in [
        (straight, 3.0),
        (tilted, 3.0),
        (half_open, 3.0),
        (straight, 5e3),
    ] {
        let mut point = || {
            let mut at = [0; 3].map(|_| 20.0 * random.unit());
            for vector in vectors.into_iter().flatten() {
                let boxes = random.between(-spread, spread + 1.0).floor();
                at = [0, 1, 2].map(|axis| at[axis] + boxes * vector[axis]);
            }
            at.map(T::round)
        };
        let points: Vec<[T; 3]> = (0..30_000).map(|_| point()).collect();
        let engines = [GPU, Device::Cpu].map(|device| {
            let builder = T::builder(T::round(1.1))
                .box_vectors(vectors)
                .device(device);
            let mut engine = builder.list_order(ListOrder::Ascending).build().unwrap();
            let set = engine.add_point_set(T::positions(&points)).unwrap();
            engine.find_neighbors().unwrap();
            let mut geometry = PairGeometry::default();
            engine.pair_geometry(set, set, &mut geometry).unwrap();
            let mass = vec![1.5f32; points.len()];
            let kernel = SphDensity::with_support(1.1);
            let density = engine
                .traverse(&kernel, set, set)
                .sources(&mass)
                .run()
                .unwrap();
            (engine, set, geometry, density)
        });
        assert_on_gpu(&engines[0].0);
        let [found, expected] = engines.each_ref().map(|(engine, set, ..)| {
            (
                as_vectors(engine.neighbors(*set, *set).unwrap()),
                engine.count_neighbors(*set, *set).unwrap(),
            )
        });
        assert!(found == expected, "seed {seed}, {vectors:?}, {spread}");
        for target in 0..points.len() {
            let [found, expected] = engines.each_ref().map(|(_, _, geometry, _)| {
                geometry
                    .of(target)
                    .map(|pair| bits(&pair))
                    .collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "seed {seed}, target {target}");
        }
        assert_close(&engines[0].3, &engines[1].3, 1e-5, 1e-6, "density");
    }
}

#[test]
fn points_outside_the_box_have_the_neighbours_that_the_cpu_finds() {
    strays_are_those_of_the_cpu::<f32>();
}

#[test]
fn points_in_double_outside_the_box_have_the_neighbours_that_the_cpu_finds() {
    strays_are_those_of_the_cpu::<f64>();
}

#[test]
fn the_strategy_auto_tries_ways_and_settles_on_one() {
    needs_gpu!();
    let mut points = Cloud::Lattice.points(40_000, 3);
    let mut engines = [(GPU, Strategy::Auto), (Device::Cpu, Strategy::Flat)].map(|(device, by)| {
        let builder = Engine::builder(3.0).strategy(by);
        engine_with(builder.list_order(ListOrder::Ascending), device, &points)
    });
    for step in 0..24 {
        drift(&mut points, 0.05, step);
        let [found, expected] = engines.each_mut().map(|(engine, set)| {
            engine.update(*set, &points).unwrap();
            engine.find_neighbors().unwrap();
            as_vectors(engine.neighbors(*set, *set).unwrap())
        });
        assert_eq!(found, expected, "step {step}");
    }
    assert_on_gpu(&engines[0].0);
    let report = engines[0].0.report().gpu.unwrap();
    assert!(report.trials.len() >= 3, "{report:?}");
    let chosen: Vec<_> = report.trials.iter().filter(|one| one.chosen).collect();
    assert_eq!(chosen.len(), 1, "{report:?}");
    assert_eq!(
        (report.strategy, report.subdivision),
        (
            chosen[0].configuration.strategy,
            chosen[0].configuration.subdivision
        )
    );
    println!("{:#?}", report.trials);
}

#[test]
fn steps_of_a_moving_cloud_are_those_of_the_cpu() {
    needs_gpu!();
    let mut points = Cloud::PoolSpray.points(30_000, 3);
    let mut engines = [GPU, Device::Cpu].map(|device| {
        let builder = Engine::builder(2.0).list_order(ListOrder::Ascending);
        engine_with(builder, device, &points)
    });
    let kernel = SphDensity::with_support(2.0);
    for step in 0..6 {
        drift(&mut points, 0.2, step);
        // The number of points changes too.
        points.truncate(30_000 - 1000 * step as usize);
        let mass = vec![1.5f32; points.len()];
        let [on_gpu, on_cpu] = engines.each_mut().map(|(engine, set)| {
            engine.update(*set, &points).unwrap();
            engine.find_neighbors().unwrap();
            let lists = as_vectors(engine.neighbors(*set, *set).unwrap());
            let counts = engine.count_neighbors(*set, *set).unwrap();
            let density = engine
                .traverse(&kernel, *set, *set)
                .sources(&mass)
                .run()
                .unwrap();
            (lists, counts, density)
        });
        assert_on_gpu(&engines[0].0);
        assert_eq!(on_gpu.0, on_cpu.0, "lists of step {step}");
        assert_eq!(on_gpu.1, on_cpu.1, "counts of step {step}");
        // Near the end of its support the kernel is a small difference of large numbers.
        assert_close(&on_gpu.2, &on_cpu.2, 1e-5, 1e-6, &format!("step {step}"));
    }
}

/// Enough points that their results come to the host in pieces, the last of them shorter than the
/// others.
#[test]
fn results_that_come_in_pieces_are_complete_and_combined_once() {
    needs_gpu!();
    let mut points = Cloud::Clusters.points(333_333, fresh_seed());
    let mass: Vec<f32> = (0..points.len()).map(|i| (1 + i % 5) as f32).collect();
    let before: Vec<f32> = (0..points.len()).map(|i| (i % 11) as f32).collect();
    let kernel = SphDensity::with_support(1.0);
    let mut engines =
        [GPU, Device::Cpu].map(|device| engine_with(Engine::builder(1.0), device, &points));
    for step in 0..3 {
        drift(&mut points, 0.1, step);
        let found = engines.each_mut().map(|(engine, set)| {
            let set = *set;
            engine.update(set, &points).unwrap();
            let counts = engine.count_neighbors(set, set).unwrap();
            // Poisoned, so that what is not written is not taken for a result.
            let (mut written, mut combined) = (vec![f32::NAN; points.len()], before.clone());
            let fields = &mass;
            let sums = || engine.traverse(&kernel, set, set).sources(fields);
            sums().run_into(&mut written).unwrap();
            sums().add_into(&mut combined).unwrap();
            (counts, written, combined)
        });
        assert_on_gpu(&engines[0].0);
        let [on_gpu, on_cpu] = found;
        assert!(on_gpu.0 == on_cpu.0, "counts of step {step}");
        let largest = on_cpu.1.iter().copied().fold(0.0, f32::max);
        for (i, density) in on_cpu.1.iter().enumerate() {
            let most = 1e-5 * density + 2e-6 * largest;
            let expected = [*density, before[i] + density];
            for (found, expected) in [on_gpu.1[i], on_gpu.2[i]].into_iter().zip(expected) {
                let error = (found - expected).abs();
                assert!(
                    error <= most + 1e-6 * expected,
                    "{found} for {expected} in step {step}"
                );
            }
        }
    }
}

#[test]
fn a_kernel_without_cuda_text_is_refused_by_name() {
    needs_gpu!();
    let points = [[0.0; 3], [0.5, 0.0, 0.0]];
    let (engine, set) = engine_with(Engine::builder(1.0), GPU, &points);
    let error = engine
        .traverse(&OnCpu, set, set)
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("OnCpu") && error.contains("PairKernel::cuda"),
        "{error}"
    );
    assert!(
        error.contains("the GPU backend does not support"),
        "{error}"
    );
    assert_eq!(
        engine.count_neighbors(set, set).unwrap(),
        [1, 1],
        "usable again"
    );
}
