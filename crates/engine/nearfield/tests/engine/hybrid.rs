//! Both backends on one step, with an emulated device: the contract's neighbours whatever the
//! threshold, whatever moves, and whatever fails.

use crate::common::{
    Fingerprint, Settings, as_vectors, builder_for, fill, fingerprints, fingerprints_of, labels,
    traverse,
};
use nearfield::{
    ListOrder,
    balance::{Policy, emulated::EmulatedSpec},
    kernels::SphDensity,
    lists::VerletLists,
    prelude::*,
    report::SplitReport,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level, Runner},
    oracle,
};

fn device(text: &str) -> Device {
    text.parse().unwrap()
}

/// How a step is divided.
#[derive(Debug, Clone, Copy)]
struct Division {
    theta: f64,
    brick_edge: u32,
    subregions: usize,
}

const DIVISIONS: [Division; 4] = [
    Division {
        theta: 0.0,
        brick_edge: 2,
        subregions: 32,
    },
    Division {
        theta: 2.5,
        brick_edge: 1,
        subregions: 5,
    },
    Division {
        theta: 12.0,
        brick_edge: 2,
        subregions: 32,
    },
    Division {
        theta: 30.25,
        brick_edge: 3,
        subregions: 2,
    },
];

fn engine_for(
    case: &Case,
    settings: Settings,
    division: Division,
) -> Result<(Engine, Vec<PointSetId>), Error> {
    let builder = builder_for(case, settings)
        .device(device("emulated"))
        .policy(Policy::Fixed {
            theta: division.theta,
        })
        .brick_edge(division.brick_edge)
        .subregions(division.subregions);
    fill(builder.build()?, case)
}

fn uniform(case: &Case) -> bool {
    case.rule == oracle::RadiusRule::Uniform
}

/// The report of the only job, whose backends have worked on all targets between them.
fn only_job(engine: &Engine, targets: usize) -> SplitReport {
    let mut jobs = engine.report().jobs;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let job = jobs.remove(0).split.expect("both backends share it");
    let points: usize = job.backends.iter().map(|backend| backend.points).sum();
    assert_eq!(points, targets, "{job:?}");
    job
}

#[test]
fn lists_are_the_contracts_at_every_threshold() {
    let runner = Runner::new(Level::Quick).keep(uniform);
    let mut shared = 0;
    for (number, division) in DIVISIONS.into_iter().enumerate() {
        let settings = Settings::finer(1 + number as u32 % 2);
        let run = |case: &Case| -> Result<_, Error> {
            let (mut engine, sets) = engine_for(case, settings, division)?;
            let (targets, sources) = (sets[case.target], sets[case.source]);
            for &one in &sets {
                for &other in &sets {
                    engine.set_active(one, other, (one, other) == (targets, sources))?;
                }
            }
            engine.find_neighbors()?;
            let points = engine.points(targets)?;
            let work = only_job(&engine, points);
            shared += usize::from(work.backends.iter().all(|backend| backend.points > 0));
            Ok(as_vectors(engine.neighbors(targets, sources)?))
        };
        let all = runner.run(run);
        all.unwrap_or_else(|error| panic!("{division:?}: {error}"));
    }
    assert!(
        shared > 100,
        "both backends had work in {shared} cases only"
    );
}

#[test]
fn counts_and_traversals_visit_the_contracts_pairs() {
    let runner =
        Runner::new(Level::Quick).keep(|case| uniform(case) && case.list == oracle::ListKind::Full);
    for (number, (case, neighbors)) in runner.with_neighbors().enumerate() {
        let division = DIVISIONS[1 + number % 2];
        let expected = fingerprints_of(case, neighbors);
        let (engine, sets) = engine_for(case, Settings::default(), division).unwrap();
        let (cpu, _) = cpu_engine(case);
        let (target, source) = (sets[case.target], sets[case.source]);
        let of = |engine: &Engine| same_sets(engine, [target, source]);
        let (targets, sources) = (labels(case.targets()), labels(case.sources()));

        let traverse = |engine: &Engine, onto: &[_]| {
            let mut sums = onto.to_vec();
            let [target, source] = of(engine);
            engine
                .traverse(&Fingerprint, target, source)
                .targets(&targets)
                .sources(&sources)
                .add_into(&mut sums)
                .unwrap();
            sums
        };
        let nothing = vec![Default::default(); expected.len()];
        let once = traverse(&engine, &nothing);
        assert!(once == expected, "case {}", case.name);
        let twice = traverse(&engine, &once);
        assert!(twice == traverse(&cpu, &once), "case {}: added", case.name);
        let counts = engine.count_neighbors(target, source).unwrap();
        let [target, source] = of(&cpu);
        assert_eq!(counts, cpu.count_neighbors(target, source).unwrap());
    }
}

/// The sets of an engine that have the numbers of these sets.
fn same_sets<const N: usize>(engine: &Engine, sets: [PointSetId; N]) -> [PointSetId; N] {
    sets.map(|set| engine.point_set(set.number()).unwrap())
}

fn cpu_engine(case: &Case) -> (Engine, Vec<PointSetId>) {
    let builder = builder_for(case, Settings::default()).device(Device::Cpu);
    fill(builder.build().unwrap(), case).unwrap()
}

/// An engine on `device`, and one on the CPU that says what is right.
fn pair(radius: f32, device: Device, policy: Policy) -> [Engine; 2] {
    let builder = || {
        Engine::builder(radius)
            .threads(2)
            .list_order(ListOrder::Ascending)
    };
    [
        builder().device(device).policy(policy).build().unwrap(),
        builder().device(Device::Cpu).build().unwrap(),
    ]
}

/// Steps of points that move, with everything compared in each.
fn steps(
    mut points: Vec<[f32; 3]>,
    [hybrid, cpu]: &mut [Engine; 2],
    count: u64,
    mut change: impl FnMut(u64, &mut Vec<[f32; 3]>),
    mut look: impl FnMut(u64, &Engine),
) {
    let set = hybrid.add_point_set(&points).unwrap();
    let exact = cpu.add_point_set(&points).unwrap();
    for step in 0..count {
        for (engine, set) in [(&mut *hybrid, set), (&mut *cpu, exact)] {
            engine.update(set, &points).unwrap();
            engine.find_neighbors().unwrap();
        }
        let (found, expected) = (hybrid.neighbors(set, set), cpu.neighbors(exact, exact));
        let (found, expected) = (found.unwrap(), expected.unwrap());
        assert!(found.iter().eq(expected.iter()), "lists of step {step}");
        assert_eq!(found.pairs(), expected.pairs());
        look(step, hybrid);
        change(step, &mut points);
    }
}

#[test]
fn every_policy_keeps_the_lists_right_while_points_move() {
    let policies = [
        Policy::Model,
        Policy::Fraction,
        "band".parse().unwrap(),
        Policy::Fixed { theta: 9.0 },
    ];
    for policy in policies {
        let mut engines = pair(2.0, device("emulated:speed=3,jitter=0.1"), policy);
        let mut both = 0;
        steps(
            Cloud::PoolSpray.points(6_000, 3),
            &mut engines,
            24,
            |step, points| drift(points, 0.3, step),
            |_, engine| {
                let work = only_job(engine, 6_000);
                assert_eq!(work.policy, policy);
                both += usize::from(work.backends.iter().all(|backend| backend.points > 0));
            },
        );
        // So few points gain little from two backends: `band` leaves them to one.
        let least = if matches!(policy, Policy::Band { .. }) {
            2
        } else {
            8
        };
        assert!(
            both > least,
            "{policy}: both backends had work in {both} steps only"
        );
        assert!(matches!(engines[0].report().device, Device::Emulated(_)));
    }
}

#[test]
fn points_may_leave_the_cells_that_a_plan_was_made_of() {
    let mut engines = pair(1.0, device("emulated"), Policy::Fixed { theta: 40.0 });
    let far = |step: u64, points: &mut Vec<[f32; 3]>| {
        for (i, point) in points.iter_mut().enumerate() {
            // Into places where nothing was, below zero and far out.
            point[i % 3] += [35.0, -60.0, 900.0][(i + step as usize) % 3];
        }
    };
    steps(
        Cloud::Clusters.points(3_000, 5),
        &mut engines,
        6,
        far,
        |_, engine| {
            only_job(engine, 3_000);
        },
    );
}

#[test]
fn sets_may_grow_shrink_and_be_empty() {
    let mut engines = pair(2.0, device("emulated:speed=1"), Policy::Model);
    let all = Cloud::Lattice.points(8_000, 2);
    let sizes = [8_000, 7_900, 100, 1, 0, 0, 5_000, 8_000];
    let mut next = sizes.iter().skip(1);
    steps(
        all.clone(),
        &mut engines,
        sizes.len() as u64,
        |_, points| {
            if let Some(&size) = next.next() {
                *points = all[..size].to_vec();
            }
        },
        |_, _| {},
    );
}

#[test]
fn a_device_that_runs_out_of_memory_loses_no_result_and_gets_less() {
    let device = device("emulated:speed=20,bandwidth=60,fail=oom@6");
    let mut engines = pair(2.0, device, Policy::Model);
    let mut seen = Vec::new();
    steps(
        Cloud::Lattice.points(8_000, 2),
        &mut engines,
        14,
        |step, points| drift(points, 0.03, step),
        |_, engine| seen.push(only_job(engine, 8_000)),
    );
    let fault = seen
        .iter()
        .position(|work| work.reason.contains("ran out of memory"));
    assert_eq!(
        fault,
        Some(6),
        "{:?}",
        seen.iter().map(|w| &w.reason).collect::<Vec<_>>()
    );
    // In some steps the CPU backend is tried alone.
    let with_device = seen[7..].iter().filter(|work| work.backends[1].points > 0);
    assert!(with_device.count() >= 4, "it goes on with less: {seen:?}");
}

#[test]
fn a_device_that_is_lost_loses_no_result_and_is_left_alone() {
    for at in [0, 3] {
        let device = device(&format!("emulated:speed=20,fail=lost@{at}"));
        let mut engines = pair(2.0, device, Policy::Model);
        let mut seen = Vec::new();
        steps(
            Cloud::Clusters.points(8_000, 2),
            &mut engines,
            8,
            |step, points| drift(points, 0.03, step),
            |_, engine| seen.push(only_job(engine, 8_000)),
        );
        let last = seen.last().unwrap();
        assert!(last.reason.contains("lost"), "{last:?}");
        assert_eq!(last.backends[0].points, 8_000, "{last:?}");
    }
}

#[test]
fn sums_survive_a_fault_too() {
    for fault in ["oom@0", "lost@0"] {
        let points = Cloud::Clusters.points(5_000, 4);
        let case = Case::new("clusters", 1.0, points.clone());
        let builder = builder_for(&case, Settings::default())
            .device(device(&format!("emulated:fail={fault}")))
            .policy(Policy::Fixed { theta: 60.0 });
        let (engine, sets) = fill(builder.build().unwrap(), &case).unwrap();
        let labels = labels(&points);
        let expected = fingerprints(&case);
        let mut found = expected.clone();
        for _ in 0..2 {
            engine
                .traverse(&Fingerprint, sets[0], sets[0])
                .targets(&labels)
                .sources(&labels)
                .run_into(&mut found)
                .unwrap();
            assert!(found == expected, "{fault}");
        }
        let counts = engine.count_neighbors(sets[0], sets[0]).unwrap();
        let (cpu, sets) = cpu_engine(&case);
        assert_eq!(counts, cpu.count_neighbors(sets[0], sets[0]).unwrap());
    }
}

#[test]
fn threads_may_traverse_at_once() {
    let points = Cloud::Lattice.points(8_000, 6);
    let case = Case::new("lattice", 2.0, points.clone());
    let builder = builder_for(&case, Settings::default())
        .device(device("emulated"))
        .policy(Policy::Fixed { theta: 64.0 });
    let (engine, sets) = fill(builder.build().unwrap(), &case).unwrap();
    let expected = fingerprints(&case);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert!(traverse(&engine, &case, &sets) == expected);
                }
            });
        }
    });
}

/// Checks that an engine on an emulated device refuses a job that only the CPU backend does.
fn check_refused<T>(result: Result<T, Error>, feature: &str) {
    let Err(error) = result else {
        panic!("{feature}: it was done");
    };
    let text = error.to_string();
    let ErrorKind::Unsupported(refused) = error.kind() else {
        panic!("{feature}: {text}");
    };
    assert!(refused.feature().contains(feature), "{text}");
    assert!(
        text.contains("emulated backend") && text.contains("Device::Cpu"),
        "{text}"
    );
}

#[test]
fn what_the_device_cannot_do_is_refused_by_name() {
    let builder = || Engine::builder(2.0).device(Device::Emulated(EmulatedSpec::default()));
    let double = Engine::builder(1.0)
        .precision(Precision::Double)
        .device(Device::Emulated(EmulatedSpec::default()));
    check_refused(double.build(), "single precision");
    let rule = nearfield::RadiusRule::Gather;
    check_refused(builder().radii(rule).build(), "radii of single points");
    check_refused(VerletLists::new(builder(), 0.1), "lists with a skin");
    let sums = Engine::all_pairs().device(Device::Emulated(EmulatedSpec::default()));
    check_refused(sums.build(), "sums over all pairs");
    let points = Cloud::Uniform.points(500, 1);
    let mut limited = builder().memory_limit(1 << 20).build().unwrap();
    let set = limited.add_point_set(&points).unwrap();
    check_refused(limited.find_neighbors(), "memory limit");
    let mut geometry = nearfield::lists::PairGeometry::default();
    let within = limited.pair_geometry(set, set, &mut geometry);
    check_refused(within, "memory limit");
    assert_eq!(limited.count_neighbors(set, set).unwrap().len(), 500);

    let mut engine = builder().build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let over = engine.traverse(&Fingerprint, set, set).over_lists().run();
    check_refused(over, "stored lists");
    // It is as it was.
    let jobs = engine.report().jobs;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert!(matches!(jobs[0].device, Device::Emulated(_)));
    assert!(engine.neighbors(set, set).unwrap().pairs() > 0);
}

#[test]
fn auto_tells_of_every_job_where_it_ran_and_why() {
    let points = Cloud::Uniform.points(500, 1);
    let mut engine = Engine::builder(2.0).deterministic(true).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    engine.count_neighbors(set, set).unwrap();
    engine.query(&points, set).unwrap();
    let jobs = engine.report().jobs;
    let names: Vec<&str> = jobs.iter().map(|job| &job.job[..]).collect();
    assert_eq!(names, ["lists", "counts", "query"]);
    for job in &jobs {
        assert_eq!(job.device, Device::Cpu);
        assert!(job.reason.contains("the same on every machine"), "{job:?}");
    }
}

#[test]
fn deterministic_steps_do_not_depend_on_what_they_took() {
    // Machines that compare very differently, one of them whimsical.
    let machines = ["emulated:speed=0.1", "emulated:speed=40,jitter=0.3,seed=5"];
    let mut points = Cloud::Clusters.points(4000, 8);
    let kernel = SphDensity::with_support(1.0);
    let build = |text: &str| {
        let builder = Engine::builder(1.0).device(device(text));
        let mut engine = builder.deterministic(true).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        (engine, set)
    };
    let mut engines = machines.map(build);
    let masses: Vec<f32> = (0..4000).map(|i| 0.1 + i as f32).collect();
    for step in 0..70 {
        let [one, other] = engines.each_mut().map(|(engine, set)| {
            engine.update(*set, &points).unwrap();
            engine.find_neighbors().unwrap();
            let sums = engine
                .traverse(&kernel, *set, *set)
                .sources(&masses)
                .run()
                .unwrap();
            let jobs = engine.report().jobs;
            let splits = jobs.iter().map(|job| job.split.as_ref().unwrap());
            let all_work = |split: &SplitReport| split.backends.iter().all(|b| b.points > 0);
            assert!(splits.into_iter().all(all_work));
            (as_vectors(engine.neighbors(*set, *set).unwrap()), sums)
        });
        assert!(one.0 == other.0, "lists of step {step}");
        assert!(one.1 == other.1, "sums of step {step}");
        drift(&mut points, 0.05, step);
    }
}

#[test]
fn strided_positions_reach_a_device_like_packed_ones() {
    // Of more points than one thread copies at a time; strides that are no multiple of a float's
    // size, or that let positions overlap, are packed by the host.
    let points = Cloud::Lattice.points(30_000, 5);
    let builder = || Engine::builder(2.0).device(Device::Emulated(EmulatedSpec::default()));
    let mut engine = builder().build().unwrap();
    let packed = engine.add_point_set(&points).unwrap();
    let expected = engine.count_neighbors(packed, packed).unwrap();
    for (offset, stride) in [(0, 12), (1, 12), (4, 16), (3, 32), (0, 13), (5, 27)] {
        let mut bytes = vec![0xff; offset + stride * points.len()];
        for (point, position) in points.iter().enumerate() {
            let at = offset + point * stride;
            bytes[at..at + 12].copy_from_slice(bytemuck::cast_slice(position));
        }
        let positions = Positions::strided(&bytes, offset, stride, points.len()).unwrap();
        let mut engine = builder().build().unwrap();
        let set = engine.add_point_set(positions).unwrap();
        let counts = engine.count_neighbors(set, set).unwrap();
        assert!(counts == expected, "offset {offset}, stride {stride}");
        assert!(matches!(engine.report().device, Device::Emulated(_)));

        let at = offset + 20_000 * stride;
        bytes[at..at + 4].copy_from_slice(&f32::NAN.to_ne_bytes());
        let bad = Positions::strided(&bytes, offset, stride, points.len()).unwrap();
        let refused = engine.update(set, bad).unwrap_err().to_string();
        assert!(refused.contains("20000"), "{refused}");
        let kept = engine.count_neighbors(set, set).unwrap();
        assert!(kept == expected, "the set keeps its positions");
    }
    // Overlapping: the second point begins inside the first.
    let numbers: Vec<f32> = (0..40).map(|k| k as f32).collect();
    let bytes = bytemuck::cast_slice(&numbers);
    let overlapping = Positions::strided(bytes, 0, 4, 38).unwrap();
    let mut engine = builder().build().unwrap();
    let set = engine.add_point_set(overlapping).unwrap();
    let counts = engine.count_neighbors(set, set).unwrap();
    // Points are the square root of three apart.
    assert_eq!((counts[0], counts[1], counts[37]), (1, 2, 1));
}
