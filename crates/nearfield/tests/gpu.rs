//! Engines on a GPU give the contract's neighbours too. Without a GPU the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_GPU=1`.

mod common;

use common::{Fingerprint, Settings, as_vectors, builder_for, fill, fingerprints, labels};
use nearfield::{Pair, Policy, SphDensity, Strategy, WendlandC2, WorkReport, prelude::*};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level, Runner},
    oracle,
};
use std::env;

const GPU: Device = Device::Gpu(0);

/// Whether there is a GPU to test on.
fn gpu() -> bool {
    let required = env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match Engine::builder(1.0).device(GPU).build() {
        Ok(_) => true,
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

fn uniform(case: &Case) -> bool {
    case.rule == oracle::RadiusRule::Uniform
}

/// The GPU did the work: nothing fell back to the CPU lane.
fn assert_on_gpu(engine: &Engine) {
    let report = engine.report();
    assert_eq!(report.device, GPU, "{:?}", report.gpu);
}

fn engine_for(case: &Case, strategy: Strategy) -> Result<(Engine, Vec<PointSetId>), Error> {
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

#[test]
fn lists_are_the_contracts_by_every_strategy() {
    if !gpu() {
        return;
    }
    // Programs stay loaded while an engine uses the GPU.
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let runner = Runner::new(Level::Quick).keep(uniform);
    for strategy in Strategy::ALL {
        runner
            .run(|case| {
                let run = || {
                    let (mut engine, sets) = engine_for(case, strategy)?;
                    engine.find_neighbors()?;
                    assert_on_gpu(&engine);
                    Ok(as_vectors(
                        engine.neighbors(sets[case.target], sets[case.source])?,
                    ))
                };
                run().map_err(|error: Error| error.to_string())
            })
            .unwrap();
    }
}

#[test]
fn traversals_visit_the_contracts_pairs() {
    if !gpu() {
        return;
    }
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    for case in Runner::new(Level::Quick).keep(uniform).cases() {
        if case.list == oracle::ListKind::Half {
            continue;
        }
        let (engine, sets) = engine_for(case, Strategy::Flat).unwrap();
        let (targets, sources) = (labels(case.targets()), labels(case.sources()));
        let found = engine
            .traverse(&Fingerprint, sets[case.target], sets[case.source])
            .target_fields(&[Field::from(&targets)])
            .source_fields(&[Field::from(&sources)])
            .run()
            .unwrap();
        assert_on_gpu(&engine);
        assert_eq!(found, fingerprints(case), "{}", case.name);
    }
}

#[test]
fn the_strategy_auto_tries_ways_and_settles_on_one() {
    if !gpu() {
        return;
    }
    let mut points = Cloud::Lattice.points(40_000, 3);
    let mut engines = [(GPU, Strategy::Auto), (Device::Cpu, Strategy::Flat)].map(|(device, by)| {
        let builder = Engine::builder(3.0)
            .device(device)
            .strategy(by)
            .list_order(ListOrder::Ascending);
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        (engine, set)
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
    assert!(report.tried.len() >= 3, "{report:?}");
    let chosen: Vec<_> = report.tried.iter().filter(|one| one.chosen).collect();
    assert_eq!(chosen.len(), 1, "{report:?}");
    assert_eq!(
        (report.strategy, report.subdivision),
        (chosen[0].way.strategy, chosen[0].way.subdivision)
    );
    println!("{:#?}", report.tried);
}

#[test]
fn steps_of_a_moving_cloud_are_those_of_the_cpu() {
    if !gpu() {
        return;
    }
    let mut points = Cloud::PoolSpray.points(30_000, 3);
    let mut engines = [GPU, Device::Cpu].map(|device| {
        let builder = Engine::builder(2.0)
            .device(device)
            .list_order(ListOrder::Ascending);
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        (engine, set)
    });
    let kernel = SphDensity {
        kernel: WendlandC2::with_support(2.0),
    };
    for step in 0..6 {
        drift(&mut points, 0.2, step);
        // The number of points changes too.
        points.truncate(30_000 - 1000 * step as usize);
        let mass = vec![1.5f32; points.len()];
        let mut results = Vec::new();
        for (engine, set) in &mut engines {
            engine.update(*set, &points).unwrap();
            engine.find_neighbors().unwrap();
            let lists = as_vectors(engine.neighbors(*set, *set).unwrap());
            let counts = engine.count_neighbors(*set, *set).unwrap();
            let density = engine
                .traverse(&kernel, *set, *set)
                .source_fields(&[Field::from(&mass)])
                .run()
                .unwrap();
            results.push((lists, counts, density));
        }
        assert_on_gpu(&engines[0].0);
        let [on_gpu, on_cpu] = &results[..] else {
            unreachable!()
        };
        assert_eq!(on_gpu.0, on_cpu.0, "lists of step {step}");
        assert_eq!(on_gpu.1, on_cpu.1, "counts of step {step}");
        // Near the end of its support the kernel is a small difference of large numbers.
        let largest = on_cpu.2.iter().copied().fold(0.0, f32::max);
        for (a, b) in on_gpu.2.iter().zip(&on_cpu.2) {
            let error = (a - b).abs();
            assert!(
                error <= 1e-5 * b + 1e-6 * largest,
                "{a} and {b} in step {step}"
            );
        }
    }
}

/// A kernel that exists for the CPU alone.
struct OnCpu;

impl PairKernel for OnCpu {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        pair.d2
    }
}

#[test]
fn a_kernel_without_cuda_text_is_refused_by_name() {
    if !gpu() {
        return;
    }
    let mut engine = Engine::builder(1.0).device(GPU).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])
        .unwrap();
    let error = engine
        .traverse(&OnCpu, set, set)
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("OnCpu") && error.contains("PairKernel::cuda"),
        "{error}"
    );
    assert_eq!(
        engine.count_neighbors(set, set).unwrap(),
        [1, 1],
        "usable again"
    );
}

#[test]
fn bad_coordinates_are_refused_as_on_the_cpu() {
    if !gpu() {
        return;
    }
    let mut engine = Engine::builder(1.0).device(GPU).build().unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])
        .unwrap();
    let bad = [[0.0f32; 3], [f32::NAN, 0.0, 0.0]];
    let error = engine.update(set, &bad).unwrap_err().to_string();
    assert!(error.contains("point 1 has x = NaN"), "{error}");
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(set, set).unwrap().of(0), &[1]);
    assert_on_gpu(&engine);
}

/// Both lanes on one step; the GPU has not failed.
fn hybrid_for(
    case: &Case,
    strategy: Strategy,
    theta: f64,
) -> Result<(Engine, Vec<PointSetId>), Error> {
    let builder = builder_for(case, Settings::default())
        .device(Device::Hybrid(0))
        .policy(Policy::Fixed { theta })
        .strategy(strategy);
    fill(builder.build()?, case)
}

#[test]
fn both_lanes_together_write_the_contracts_lists_by_every_strategy() {
    if !gpu() {
        return;
    }
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let runner = Runner::new(Level::Quick).keep(uniform);
    let mut shared = 0;
    for (strategy, theta) in [
        (Strategy::Flat, 4.0),
        (Strategy::Flat, 20.5),
        (Strategy::CellTasks, 9.0),
        (Strategy::ChildPerCell, 9.0),
        (Strategy::ChildAggregated, 12.0),
    ] {
        for case in runner.cases() {
            let (mut engine, sets) = hybrid_for(case, strategy, theta).unwrap();
            engine.find_neighbors().unwrap();
            let report = engine.report();
            assert_eq!(report.device, Device::Hybrid(0), "{:?}", report.gpu);
            let both = |work: &&WorkReport| work.lanes.iter().all(|lane| lane.points > 0);
            shared += report.works.iter().filter(both).count();
            let lists = engine
                .neighbors(sets[case.target], sets[case.source])
                .unwrap();
            case.check(as_vectors(lists))
                .unwrap_or_else(|error| panic!("{strategy}, theta {theta}: {error}"));
        }
    }
    assert!(shared > 100, "both lanes had work {shared} times only");
}

#[test]
fn both_lanes_together_visit_the_contracts_pairs() {
    if !gpu() {
        return;
    }
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let full = |case: &Case| uniform(case) && case.list == oracle::ListKind::Full;
    let strategies = [
        Strategy::Flat,
        Strategy::CellTasks,
        Strategy::ChildAggregated,
    ];
    for (number, case) in Runner::new(Level::Quick).keep(full).cases().enumerate() {
        let expected = fingerprints(case);
        let strategy = strategies[number % strategies.len()];
        let (engine, sets) = hybrid_for(case, strategy, 9.0).unwrap();
        let (target, source) = (sets[case.target], sets[case.source]);
        let (targets, sources) = (labels(case.targets()), labels(case.sources()));
        let traverse = || {
            engine
                .traverse(&Fingerprint, target, source)
                .target_fields(&[Field::from(&targets)])
                .source_fields(&[Field::from(&sources)])
                .run()
                .unwrap()
        };
        assert!(traverse() == expected, "{strategy}: case {}", case.name);
        assert!(
            traverse() == expected,
            "{strategy}: case {} again",
            case.name
        );
        let counts = engine.count_neighbors(target, source).unwrap();
        let alone: Vec<u32> = expected.iter().map(|sums| sums[0] as u32).collect();
        assert_eq!(counts, alone, "{strategy}: case {}", case.name);
        assert_eq!(engine.report().device, Device::Hybrid(0));
    }
}

#[test]
fn policies_move_bricks_and_the_lists_stay_right() {
    if !gpu() {
        return;
    }
    let policies = [Policy::Model, Policy::Fraction, "band".parse().unwrap()];
    for policy in policies {
        for (cloud, radius) in [(Cloud::Lattice, 2.0), (Cloud::PoolSpray, 2.0)] {
            let mut points = cloud.points(60_000, 11);
            let builder = || Engine::builder(radius).list_order(ListOrder::Ascending);
            let mut hybrid = builder()
                .device(Device::Hybrid(0))
                .policy(policy)
                .build()
                .unwrap();
            let mut cpu = builder().device(Device::Cpu).build().unwrap();
            let set = hybrid.add_point_set(&points).unwrap();
            cpu.add_point_set(&points).unwrap();
            let mut reasons = Vec::new();
            for step in 0..40 {
                for engine in [&mut hybrid, &mut cpu] {
                    engine.update(set, &points).unwrap();
                    engine.find_neighbors().unwrap();
                }
                let (found, expected) = (hybrid.neighbors(set, set), cpu.neighbors(set, set));
                let same = found.unwrap().iter().eq(expected.unwrap().iter());
                assert!(same, "{policy}, {}: lists of step {step}", cloud.name());
                let report = hybrid.report();
                assert_eq!(report.device, Device::Hybrid(0), "{:?}", report.gpu);
                reasons.push(report.works[0].reason.clone());
                drift(&mut points, 0.05, step);
            }
            let last = hybrid.report().works.remove(0);
            println!("{policy}, {}: {last:?}", cloud.name());
            assert_eq!(last.steps, 40, "{reasons:?}");
        }
    }
}

#[test]
fn auto_takes_a_gpu_in_once_it_is_ready_and_loses_nothing() {
    if !gpu() {
        return;
    }
    let mut fluid = Cloud::Lattice.points(60_000, 12);
    let walls = Cloud::Lattice.points(8_000, 13);
    let builder = || Engine::builder(2.0).list_order(ListOrder::Ascending);
    let mut auto = builder().build().unwrap();
    let mut cpu = builder().device(Device::Cpu).build().unwrap();
    let [set, still] = [&fluid, &walls].map(|points| {
        cpu.add_point_set(points).unwrap();
        auto.add_point_set(points).unwrap()
    });
    assert_eq!(auto.report().device, Device::Cpu, "nobody waits for a GPU");
    let mut after = 0;
    for step in 0..2000 {
        for engine in [&mut auto, &mut cpu] {
            engine.update(set, &fluid).unwrap();
            engine.find_neighbors().unwrap();
        }
        for pair in [(set, set), (set, still), (still, set)] {
            let of = |engine: &Engine| as_vectors(engine.neighbors(pair.0, pair.1).unwrap());
            assert!(of(&auto) == of(&cpu), "{pair:?} in step {step}");
        }
        // A kernel for the CPU lane alone is no mistake where any device will do.
        let run = |engine: &Engine| engine.traverse(&OnCpu, set, still).run().unwrap();
        assert!(run(&auto) == run(&cpu), "step {step}");
        after += usize::from(auto.report().device == Device::Hybrid(0));
        if after == 40 {
            break;
        }
        drift(&mut fluid, 0.03, step);
    }
    let report = auto.report();
    assert_eq!(after, 40, "{}", report.reason);
    println!("{}: {:?}", report.reason, report.works);
    let gpu_points: usize = report.works.iter().map(|work| work.lanes[1].points).sum();
    assert!(gpu_points > 0, "{:?}", report.works);
}
