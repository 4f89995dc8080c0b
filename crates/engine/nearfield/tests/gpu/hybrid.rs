//! Both backends on one step, and what comes to one of them because the other cannot.

use super::{BOTH, GPU, OnCpu, assert_close, needs_gpu, splits, uniform};
use crate::common::{Settings, as_vectors, builder_for, fill, fingerprints, lists_of, traverse};
use crate::on_gpu::take_memory;
use nearfield::device::Context;
use nearfield::{
    balance::{Policy, Strategy},
    kernels::{SphDensity, SphForce, WendlandC2},
    prelude::*,
    report::SplitReport,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level, Runner},
    oracle,
};

/// Cases whose work two backends share.
fn shared(case: &Case) -> bool {
    uniform(case) && !case.is_slanted()
}

/// Fields that several sides share, some of them alone on theirs, of one set and of two.
#[test]
fn fields_reach_the_gpu_as_they_are() {
    needs_gpu!();
    let clouds = [30_000, 11_000].map(|points| Cloud::PoolSpray.points(points, 5));
    let wave = |i: usize, period: usize| (i % period) as f32 / period as f32;
    let state = clouds.each_ref().map(|points| {
        let all = 0..points.len();
        let velocity: Vec<[f32; 3]> = all
            .clone()
            .map(|i| [wave(i, 7) - 0.5, wave(i, 11) - 0.5, wave(i, 13) - 0.5])
            .collect();
        let density: Vec<f32> = all.clone().map(|i| 1.0 + wave(i, 17)).collect();
        let pressure: Vec<f32> = all.clone().map(|i| wave(i, 19)).collect();
        let mass: Vec<f32> = all.map(|i| 1.0 + wave(i, 5)).collect();
        (velocity, density, pressure, mass)
    });
    let kernel = WendlandC2::with_support(2.0);
    let force = SphForce {
        kernel,
        h: 1.0,
        alpha_c: 0.1,
    };
    let devices = [Device::Cpu, GPU, BOTH];
    let found = devices.map(|device| {
        let builder = Engine::builder(2.0).device(device);
        let policy = Policy::Fixed { theta: 20.0 };
        let mut engine = builder.policy(policy).build().unwrap();
        let sets = clouds
            .each_ref()
            .map(|points| engine.add_point_set(points).unwrap());
        let mut found = Vec::new();
        for (targets, sources) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let (velocity, density, pressure, _) = &state[targets];
            let traversal = engine.traverse(&force, sets[targets], sets[sources]);
            let traversal = traversal.targets((velocity, density, pressure));
            let (velocity, density, pressure, mass) = &state[sources];
            let forces = traversal.sources((velocity, density, pressure, mass)).run();
            found.extend(forces.unwrap().into_iter().flatten());
            let sum = SphDensity { kernel };
            let traversal = engine.traverse(&sum, sets[targets], sets[sources]);
            found.extend(traversal.sources(mass).run().unwrap());
        }
        assert_eq!(engine.report().device, device, "{:?}", engine.report().gpu);
        if let Device::Hybrid(_) = device {
            let splits = splits(&engine);
            let both = |split: &SplitReport| (0.01..0.99).contains(&split.share);
            assert!(splits.iter().any(both), "{splits:?}");
        }
        found
    });
    let (expected, others) = found.split_first().unwrap();
    assert!(expected.iter().any(|&x| x != 0.0));
    for (found, device) in others.iter().zip(&devices[1..]) {
        assert_close(found, expected, 1e-5, 2e-6, &device.to_string());
    }
}

#[test]
fn bad_coordinates_are_refused_as_on_the_cpu() {
    needs_gpu!();
    // More points than one worker looks at together, and the bad one among them.
    let points = Cloud::Uniform.points(40_000, 11);
    let mut bad = Cloud::Uniform.points(50_000, 12);
    bad[31_234][1] = f32::NAN;
    for device in [GPU, BOTH] {
        let mut engine = Engine::builder(2.0).device(device).build().unwrap();
        let error = engine.add_point_set(&bad).unwrap_err().to_string();
        assert!(error.contains("point 31234 has y = NaN"), "{error}");
        let set = engine.add_point_set(&points).unwrap();
        let counts = engine.count_neighbors(set, set).unwrap();
        let error = engine.update(set, &bad).unwrap_err().to_string();
        assert!(error.contains("point 31234 has y = NaN"), "{error}");
        assert_eq!(engine.count_neighbors(set, set).unwrap(), counts);
        assert_eq!(engine.report().device, device, "{:?}", engine.report().gpu);
        engine.update(set, &bad[..31_234]).unwrap();
        engine.update(set, &points).unwrap();
        assert_eq!(engine.count_neighbors(set, set).unwrap(), counts);
        let mut on_cpu = Engine::builder(2.0).device(Device::Cpu).build().unwrap();
        let on_cpu_set = on_cpu.add_point_set(&points).unwrap();
        let expected = on_cpu.count_neighbors(on_cpu_set, on_cpu_set).unwrap();
        assert_eq!(counts, expected, "{device}");
    }
}

#[test]
fn a_gpu_that_runs_out_of_memory_steps_aside_and_is_tried_again() {
    needs_gpu!(alone);
    let stream = Context::open(0).unwrap().new_stream().unwrap();
    for device in [GPU, BOTH] {
        let policy = Policy::Fixed { theta: 0.0 };
        let builder = Engine::builder(1.0).policy(policy);
        let build = |device| builder.clone().device(device).build().unwrap();
        let (mut engine, mut exact) = (build(device), build(Device::Cpu));
        let still = Cloud::Uniform.points(500, 31);
        let few = Cloud::Uniform.points(2_000, 32);
        // More than is left, and so far apart that the CPU is soon done.
        let many: Vec<[f32; 3]> = (0..8_000_000)
            .map(|i| [3.0 * (i % 4000) as f32, 3.0 * (i / 4000) as f32, 0.0])
            .collect();
        let sets = [&still, &few].map(|points| engine.add_point_set(points).unwrap());
        let of_exact = [&still, &few].map(|points| exact.add_point_set(points).unwrap());
        let mut same = |engine: &mut Engine, points: &[[f32; 3]]| {
            engine.update(sets[1], points).unwrap();
            exact.update(of_exact[1], points).unwrap();
            for (targets, sources) in [(0, 1), (1, 1), (1, 0)] {
                let expected = exact.count_neighbors(of_exact[targets], of_exact[sources]);
                let expected = expected.unwrap();
                let (targets, sources) = (sets[targets], sets[sources]);
                let found = engine.count_neighbors(targets, sources).unwrap();
                assert!(found == expected, "{device}: {targets} among {sources}");
            }
        };
        same(&mut engine, &few);
        assert_eq!(engine.report().device, device);
        let taken = take_memory(&stream);
        for _ in 0..2 {
            same(&mut engine, &many);
            let gpu = engine.report().gpu.unwrap();
            assert_eq!(engine.report().device, Device::Cpu);
            let failed = gpu.failed.unwrap();
            assert!(
                failed.contains("memory") && failed.contains("tried again"),
                "{failed}"
            );
        }
        drop(taken);
        stream.synchronize().unwrap();
        let mut steps = 0;
        while engine.report().device != device {
            steps += 1;
            assert!(steps < 100, "{:?}", engine.report().gpu);
            same(&mut engine, &few);
        }
        same(&mut engine, &few);
        let gpu = engine.report().gpu.unwrap();
        assert!(gpu.failed.is_none() && gpu.faults > 0, "{gpu:?}");
        assert!(gpu.last_fault.unwrap().contains("memory"));
    }
}

/// Both backends on one step; the GPU has not failed.
fn hybrid_for(
    case: &Case,
    strategy: Strategy,
    theta: f64,
) -> Result<(Engine, Vec<PointSetId>), Error> {
    let builder = builder_for(case, Settings::default())
        .device(BOTH)
        .policy(Policy::Fixed { theta })
        .strategy(strategy);
    fill(builder.build()?, case)
}

#[test]
fn auto_reports_the_kernels_that_it_leaves_to_the_cpu() {
    needs_gpu!();
    let points = Cloud::Lattice.points(30_000, 1);
    let mut engine = Engine::builder(1.5).device(Device::Auto).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while engine.report().gpu.is_none() {
        assert!(
            std::time::Instant::now() < deadline,
            "the GPU does not start"
        );
        engine.update(set, &points).unwrap();
        engine.find_neighbors().unwrap();
    }
    let sums = engine.traverse(&OnCpu, set, set).run().unwrap();
    assert_eq!(sums.len(), points.len());
    let report = engine.report();
    assert_eq!(report.device, Device::Cpu);
    let refused = report.jobs.iter().find(|job| job.job.contains("OnCpu"));
    let refused = refused.unwrap();
    assert_eq!(refused.device, Device::Cpu);
    assert!(refused.reason.contains("PairKernel::cuda"), "{refused:?}");
    assert!(report.to_json().contains("OnCpu"));
}

#[test]
fn both_backends_together_write_the_contracts_lists_by_every_strategy() {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let runner = Runner::new(Level::Quick).keep(shared);
    let mut shared = 0;
    for (strategy, theta) in [
        (Strategy::Flat, 4.0),
        (Strategy::Flat, 20.5),
        (Strategy::ChildPerCell, 9.0),
        (Strategy::ChildAggregated, 12.0),
    ] {
        for case in runner.cases() {
            let (mut engine, sets) = hybrid_for(case, strategy, theta).unwrap();
            let lists = lists_of(&mut engine, case, &sets).unwrap();
            let report = engine.report();
            assert_eq!(report.device, BOTH, "{:?}", report.gpu);
            let both = |split: &&SplitReport| split.backends.iter().all(|one| one.points > 0);
            shared += splits(&engine).iter().filter(both).count();
            case.check(lists)
                .unwrap_or_else(|error| panic!("{strategy}, theta {theta}: {error}"));
        }
    }
    assert!(shared > 100, "both backends had work {shared} times only");
}

#[test]
fn both_backends_together_visit_the_contracts_pairs() {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let full = |case: &Case| shared(case) && case.list == oracle::ListKind::Full;
    let strategies = [Strategy::Flat, Strategy::ChildAggregated];
    for (number, case) in Runner::new(Level::Quick).keep(full).cases().enumerate() {
        let expected = fingerprints(case);
        let strategy = strategies[number % strategies.len()];
        let (engine, sets) = hybrid_for(case, strategy, 9.0).unwrap();
        let (target, source) = (sets[case.target], sets[case.source]);
        for time in ["first", "second"] {
            let found = traverse(&engine, case, &sets);
            assert!(found == expected, "{strategy}: case {}, {time}", case.name);
        }
        let counts = engine.count_neighbors(target, source).unwrap();
        let alone: Vec<u32> = expected.iter().map(|sums| sums[0] as u32).collect();
        assert_eq!(counts, alone, "{strategy}: case {}", case.name);
        assert_eq!(engine.report().device, BOTH);
    }
}

#[test]
fn policies_move_bricks_and_the_lists_stay_right() {
    needs_gpu!();
    let policies = [Policy::Model, Policy::Fraction, "band".parse().unwrap()];
    for policy in policies {
        for (cloud, radius) in [(Cloud::Lattice, 2.0), (Cloud::PoolSpray, 2.0)] {
            let mut points = cloud.points(60_000, 11);
            let builder = || Engine::builder(radius).list_order(ListOrder::Ascending);
            let mut hybrid = builder().device(BOTH).policy(policy).build().unwrap();
            let mut cpu = builder().device(Device::Cpu).build().unwrap();
            let set = hybrid.add_point_set(&points).unwrap();
            let exact = cpu.add_point_set(&points).unwrap();
            let (mut reasons, mut together) = (Vec::new(), 0);
            for step in 0..40 {
                for (engine, set) in [(&mut hybrid, set), (&mut cpu, exact)] {
                    engine.update(set, &points).unwrap();
                    engine.find_neighbors().unwrap();
                }
                let (found, expected) = (hybrid.neighbors(set, set), cpu.neighbors(exact, exact));
                let same = found.unwrap().iter().eq(expected.unwrap().iter());
                assert!(same, "{policy}, {}: lists of step {step}", cloud.name());
                // A policy may give a step to one backend; a fault would be no policy.
                let report = hybrid.report();
                together += usize::from(report.device == BOTH);
                let gpu = report.gpu.unwrap();
                assert_eq!((gpu.faults, &gpu.failed), (0, &None), "{gpu:?}");
                reasons.push(splits(&hybrid)[0].reason.clone());
                drift(&mut points, 0.05, step);
            }
            let last = splits(&hybrid).remove(0);
            println!("{policy}, {}: {last:?}", cloud.name());
            assert_eq!(last.steps, 40, "{reasons:?}");
            assert!(together > 0, "{reasons:?}");
        }
    }
}

#[test]
fn auto_takes_a_gpu_in_once_it_is_ready_and_loses_nothing() {
    needs_gpu!();
    let mut fluid = Cloud::Lattice.points(60_000, 12);
    let walls = Cloud::Lattice.points(8_000, 13);
    let builder = || Engine::builder(2.0).list_order(ListOrder::Ascending);
    let mut auto = builder().build().unwrap();
    let mut cpu = builder().device(Device::Cpu).build().unwrap();
    for points in [&fluid, &walls] {
        cpu.add_point_set(points).unwrap();
        auto.add_point_set(points).unwrap();
    }
    let set = |engine: &Engine, number| engine.point_set(number).unwrap();
    assert_eq!(auto.report().device, Device::Cpu, "no call waits for a GPU");
    let (mut after, mut of_gpu) = (0, 0);
    for step in 0..2000 {
        for engine in [&mut auto, &mut cpu] {
            engine.update(set(engine, 0), &fluid).unwrap();
            engine.find_neighbors().unwrap();
        }
        for pair in [(0, 0), (0, 1), (1, 0)] {
            let of = |engine: &Engine| {
                let (targets, sources) = (set(engine, pair.0), set(engine, pair.1));
                as_vectors(engine.neighbors(targets, sources).unwrap())
            };
            assert!(of(&auto) == of(&cpu), "{pair:?} in step {step}");
        }
        // A kernel for the CPU backend alone is no mistake where any device will do.
        let run = |engine: &Engine| {
            let (fluid, walls) = (set(engine, 0), set(engine, 1));
            engine.traverse(&OnCpu, fluid, walls).run().unwrap()
        };
        assert!(run(&auto) == run(&cpu), "step {step}");
        let report = auto.report();
        // A step may still be the work of one backend alone.
        after += usize::from(report.reason.starts_with("a GPU is there"));
        // It is tried; in the end so few points may be left to the CPU.
        of_gpu += splits(&auto)
            .iter()
            .map(|split| split.backends[1].points)
            .sum::<usize>();
        if after == 40 {
            break;
        }
        drift(&mut fluid, 0.03, step);
    }
    let report = auto.report();
    assert_eq!(after, 40, "{}", report.reason);
    println!("{}: {:?}", report.reason, report.jobs);
    assert!(of_gpu > 0, "{:?}", report.jobs);
}
