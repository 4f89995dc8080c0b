//! Engines on a GPU give the contract's neighbours too. Without a GPU the tests do nothing, or fail
//! if `NEARFIELD_REQUIRE_GPU=1`.

mod common;
mod on_gpu;

use common::{Fingerprint, Settings, as_vectors, builder_for, fill, fingerprints, labels};
use nearfield::device::cudarc::driver::CudaContext;
use nearfield::{
    Pair, Strategy,
    all_pairs::{Arithmetic, PairSum, Real, SampleGrid, Sources},
    balance::Policy,
    kernels::{ChargeField, ChargePotential, SphDensity, SphForce, WendlandC2},
    prelude::*,
    report::SplitReport,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level, Runner},
    oracle,
    random::Random,
};
use on_gpu::take_memory;
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
    case.rule == oracle::RadiusRule::Uniform && !case.is_slanted()
}

/// The GPU did the work: nothing fell back to the CPU backend.
fn assert_on_gpu(engine: &Engine) {
    let report = engine.report();
    assert_eq!(report.device, GPU, "{:?}", report.gpu);
}

/// How both backends shared every job.
fn splits(engine: &Engine) -> Vec<SplitReport> {
    let jobs = engine.report().jobs.into_iter();
    jobs.filter_map(|job| job.split).collect()
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
            .targets(&targets)
            .sources(&sources)
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
    assert!(report.trials.len() >= 3, "{report:?}");
    let chosen: Vec<_> = report.trials.iter().filter(|one| one.chosen).collect();
    assert_eq!(chosen.len(), 1, "{report:?}");
    assert_eq!(
        (report.strategy, report.subdivision),
        (chosen[0].way.strategy, chosen[0].way.subdivision)
    );
    println!("{:#?}", report.trials);
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
                .sources(&mass)
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

/// Enough points that their results come to the host in pieces, the last of them shorter than the
/// others.
#[test]
fn results_that_come_in_pieces_are_complete_and_combined_once() {
    if !gpu() {
        return;
    }
    let mut points = Cloud::Clusters.points(333_333, fresh_seed());
    let mass: Vec<f32> = (0..points.len()).map(|i| (1 + i % 5) as f32).collect();
    let before: Vec<f32> = (0..points.len()).map(|i| (i % 11) as f32).collect();
    let kernel = SphDensity {
        kernel: WendlandC2::with_support(1.0),
    };
    let mut engines = [GPU, Device::Cpu].map(|device| {
        let mut engine = Engine::builder(1.0).device(device).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        (engine, set)
    });
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

/// Fields that several sides share, some of them alone on theirs, of one set and of two.
#[test]
fn fields_reach_the_gpu_as_they_are() {
    if !gpu() {
        return;
    }
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
    let devices = [Device::Cpu, GPU, Device::Hybrid(0)];
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
    let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    assert!(largest > 0.0);
    for (found, device) in others.iter().zip(&devices[1..]) {
        assert_eq!(found.len(), expected.len());
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!(
                (a - b).abs() <= 1e-5 * b.abs() + 2e-6 * largest,
                "{device}: value {i} is {a}, not {b}"
            );
        }
    }
}

#[test]
fn bad_coordinates_are_refused_as_on_the_cpu() {
    if !gpu() {
        return;
    }
    // More points than one worker looks at together, and the bad one among them.
    let points = Cloud::Uniform.points(40_000, 11);
    let mut bad = Cloud::Uniform.points(50_000, 12);
    bad[31_234][1] = f32::NAN;
    for device in [GPU, Device::Hybrid(0)] {
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
    if !gpu() {
        return;
    }
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    for device in [Device::Gpu(0), Device::Hybrid(0)] {
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
        .device(Device::Hybrid(0))
        .policy(Policy::Fixed { theta })
        .strategy(strategy);
    fill(builder.build()?, case)
}

/// A kernel that only the CPU backend can run.
struct OnlyHere;

impl PairKernel for OnlyHere {
    type Target = ();
    type Source = ();
    type Output = f32;

    #[inline(always)]
    fn pair(&self, _: Pair, _: (), _: ()) -> f32 {
        1.0
    }
}

#[test]
fn auto_reports_the_kernels_that_it_leaves_to_the_cpu() {
    if !gpu() {
        return;
    }
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
    let sums = engine.traverse(&OnlyHere, set, set).run().unwrap();
    assert_eq!(sums.len(), points.len());
    let report = engine.report();
    assert_eq!(report.device, Device::Cpu);
    let refused = report.jobs.iter().find(|job| job.job.contains("OnlyHere"));
    let refused = refused.unwrap();
    assert_eq!(refused.device, Device::Cpu);
    assert!(refused.reason.contains("PairKernel::cuda"), "{refused:?}");
    assert!(report.to_json().contains("OnlyHere"));
}

#[test]
fn both_backends_together_write_the_contracts_lists_by_every_strategy() {
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
            let both = |split: &&SplitReport| split.backends.iter().all(|one| one.points > 0);
            shared += splits(&engine).iter().filter(both).count();
            let lists = engine
                .neighbors(sets[case.target], sets[case.source])
                .unwrap();
            case.check(as_vectors(lists))
                .unwrap_or_else(|error| panic!("{strategy}, theta {theta}: {error}"));
        }
    }
    assert!(shared > 100, "both backends had work {shared} times only");
}

#[test]
fn both_backends_together_visit_the_contracts_pairs() {
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
                .targets(&targets)
                .sources(&sources)
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
            let exact = cpu.add_point_set(&points).unwrap();
            let mut reasons = Vec::new();
            for step in 0..40 {
                for (engine, set) in [(&mut hybrid, set), (&mut cpu, exact)] {
                    engine.update(set, &points).unwrap();
                    engine.find_neighbors().unwrap();
                }
                let (found, expected) = (hybrid.neighbors(set, set), cpu.neighbors(exact, exact));
                let same = found.unwrap().iter().eq(expected.unwrap().iter());
                assert!(same, "{policy}, {}: lists of step {step}", cloud.name());
                let report = hybrid.report();
                assert_eq!(report.device, Device::Hybrid(0), "{:?}", report.gpu);
                reasons.push(splits(&hybrid)[0].reason.clone());
                drift(&mut points, 0.05, step);
            }
            let last = splits(&hybrid).remove(0);
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

/// Random numbers that differ from run to run; a failure prints the seed.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64)
}

/// Points in a cube, a few of them in the same place.
fn cube<T: Real>(random: &mut Random, points: usize) -> Vec<[T; 3]> {
    let mut found: Vec<[T; 3]> = (0..points)
        .map(|_| [0; 3].map(|_| T::of(random.between(-1.0, 1.0))))
        .collect();
    for n in (0..points / 2).step_by(97) {
        found[n] = found[points - 1 - n];
    }
    found
}

/// The sums of both backends: the same bits in the exact form, and close to each other in the fast
/// one, relative to the sums with all weights positive.
fn sums_agree<T: Real>(seed: u64, most: f64) {
    let mut random = Random::new(seed);
    for (targets, sources) in [(1, 1), (1000, 777), (140_000, 300), (33, 20_000)] {
        let at = cube::<T>(&mut random, targets);
        let mut from = cube::<T>(&mut random, sources);
        for n in (0..targets.min(sources)).step_by(5) {
            from[n] = at[n];
        }
        // Of one weight, and of many.
        for spread in [0.0, 1.0] {
            let weight = |random: &mut Random| T::of(1.0 - spread * random.between(0.0, 1.5));
            let weights: Vec<T> = (0..sources).map(|_| weight(&mut random)).collect();
            let positive: Vec<T> = weights.iter().map(|w| T::of(w.double().abs())).collect();
            for sum in [PairSum::Potential, PairSum::Pull] {
                for softening in [0.0, 0.01].map(T::of) {
                    let run = |device, arithmetic, sum, weights: &[T]| {
                        let mut sums = Engine::all_pairs()
                            .device(device)
                            .arithmetic(arithmetic)
                            .build()
                            .unwrap();
                        let mut results = vec![T::default(); sum_len(sum, targets)];
                        let all = Sources {
                            points: &from,
                            weights,
                        };
                        sums.sum(sum, &at, all, softening, &mut results).unwrap();
                        assert_eq!(sums.report().failed, None);
                        results
                    };
                    let what = format!(
                        "seed {seed}, {} {sum:?} {targets} x {sources}, {softening}, {spread}",
                        T::NAME
                    );
                    let expected = run(Device::Cpu, Arithmetic::Exact, sum, &weights);
                    for device in [GPU, Device::Hybrid(0)] {
                        assert!(
                            run(device, Arithmetic::Exact, sum, &weights) == expected,
                            "{what} on {device}"
                        );
                    }
                    let components = expected.len() / targets;
                    let fast = run(GPU, Arithmetic::Fast, sum, &weights);
                    // |pull| of a term is at most its potential times the largest 1/d there is.
                    let scale = run(Device::Cpu, Arithmetic::Fast, PairSum::Potential, &positive);
                    for n in 0..targets {
                        let nearest = nearest(at[n], &from, softening);
                        let unit = scale[n].double() * if components == 3 { nearest } else { 1.0 };
                        for c in n * components..(n + 1) * components {
                            let error = (fast[c].double() - expected[c].double()).abs();
                            assert!(error <= most * unit, "{what}: {n}: {error:e} of {unit}");
                        }
                    }
                }
            }
        }
    }
}

fn sum_len(sum: PairSum, targets: usize) -> usize {
    sum.components() * targets
}

/// One over the least distance from a target to a source elsewhere.
fn nearest<T: Real>(at: [T; 3], from: &[[T; 3]], softening: T) -> f64 {
    let square = |x: &[T; 3]| {
        let d2 = (0..3)
            .map(|axis| (x[axis].double() - at[axis].double()).powi(2))
            .sum::<f64>();
        d2 + softening.double().powi(2)
    };
    let least = from
        .iter()
        .map(square)
        .filter(|d2| *d2 > 0.0)
        .fold(f64::INFINITY, f64::min);
    1.0 / least.sqrt()
}

#[test]
fn sums_over_all_pairs_are_the_cpus() {
    if !gpu() {
        return;
    }
    let seed = fresh_seed();
    sums_agree::<f32>(seed, 1e-5);
    sums_agree::<f64>(seed, 1e-13);
}

/// Potentials and fields on grids of odd sizes, atoms on grid points among them.
fn grids_agree<T: Real>(seed: u64, most: f64) {
    let mut random = Random::new(seed);
    for dims in [
        [1, 1, 1],
        [5, 3, 2],
        [100, 7, 2],
        [129, 5, 1],
        [1031, 3, 1],
        [4099, 2, 1],
    ] {
        let grid = SampleGrid {
            dims,
            spacing: 0.01,
            origin: [-0.5, 0.0, 0.25],
        };
        let points = grid.points::<T>(0..grid.rows()).unwrap();
        for atoms in [0, 1, 700] {
            let mut at = cube::<T>(&mut random, atoms);
            for n in (0..atoms).step_by(3) {
                at[n] = points[n * 131 % points.len()];
            }
            let charges: Vec<T> = (0..atoms)
                .map(|_| T::of(random.between(0.5, 1.0)))
                .collect();
            let run = |device, arithmetic| {
                let mut sums = Engine::all_pairs()
                    .device(device)
                    .arithmetic(arithmetic)
                    .build()
                    .unwrap();
                let potentials = sums.coulomb(&grid, &at, &charges, T::default()).unwrap();
                let mut field = vec![[T::default(); 3]; grid.len()];
                sums.coulomb_field_rows(
                    &grid,
                    0..grid.rows(),
                    (&at, &charges),
                    T::default(),
                    &mut field,
                )
                .unwrap();
                assert_eq!(sums.report().failed, None);
                (potentials, field)
            };
            let what = format!("seed {seed}, {} {dims:?} x {atoms}", T::NAME);
            let expected = run(Device::Cpu, Arithmetic::Exact);
            for device in [GPU, Device::Hybrid(0)] {
                assert!(
                    run(device, Arithmetic::Exact) == expected,
                    "{what} on {device}"
                );
            }
            let (fast, _) = run(GPU, Arithmetic::Fast);
            for (n, (found, expected)) in fast.iter().zip(&expected.0).enumerate() {
                let error = (found.double() - expected.double()).abs();
                assert!(
                    error <= most * expected.double(),
                    "{what}: {n}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn potentials_on_grids_are_the_cpus() {
    if !gpu() {
        return;
    }
    let seed = fresh_seed();
    grids_agree::<f32>(seed, 1e-5);
    grids_agree::<f64>(seed, 1e-13);
}

#[test]
fn potentials_within_a_cut_off_are_the_cpus() {
    if !gpu() {
        return;
    }
    let seed = fresh_seed();
    let mut random = Random::new(seed);
    let atoms = cube::<f32>(&mut random, 3000);
    let charges: Vec<f32> = atoms
        .iter()
        .map(|_| random.between(0.5, 1.0) as f32)
        .collect();
    let grid = SampleGrid {
        dims: [37, 21, 5],
        spacing: 0.05,
        origin: [-0.9, -0.5, 0.0],
    };
    let run = |device| {
        let mut engine = Engine::builder(0.2).device(device).build().unwrap();
        let points = engine
            .add_point_set(&grid.points::<f32>(0..grid.rows()).unwrap())
            .unwrap();
        let atoms = engine.add_point_set(&atoms).unwrap();
        let charges = &charges;
        let kernel = ChargePotential::default();
        let potential = engine.traverse(&kernel, points, atoms);
        let potential = potential.sources(charges).run().unwrap();
        let kernel = ChargeField::default();
        let field = engine.traverse(&kernel, points, atoms);
        (potential, field.sources(charges).run().unwrap())
    };
    let ((found, field), (expected, expected_field)) = (run(GPU), run(Device::Cpu));
    for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!(
            (found - expected).abs() <= 1e-5 * expected,
            "seed {seed}: {n}: {found} {expected}"
        );
    }
    let largest = expected_field
        .iter()
        .flatten()
        .fold(0.0f32, |most, x| most.max(x.abs()));
    for (found, expected) in field.iter().flatten().zip(expected_field.iter().flatten()) {
        assert!(
            (found - expected).abs() <= 1e-5 * largest,
            "seed {seed}: {found} {expected}"
        );
    }
}
