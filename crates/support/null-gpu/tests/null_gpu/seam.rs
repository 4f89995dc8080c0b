//! Engines that are asked for a GPU: what it cannot do is refused or left to the CPU, and what both
//! backends share goes through the code that production runs.
//!
//! The null GPU computes nothing, so results of its part are empty; those of the CPU's part are
//! right.

use crate::common::{answers, counts, fail, on_null_gpu, reset};
use nearfield::{
    Device, Engine, Error, Pair, PairKernel, RadiusRule,
    balance::{Policy, Strategy},
    kernels::SphDensity,
    lists::VerletLists,
};

const GPU: Device = Device::Gpu(0);
const BOTH: Device = Device::Hybrid(0);

/// A kernel that only the CPU can run.
struct OnCpu;

impl PairKernel for OnCpu {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        1.0
    }
}

/// A grid of points, the spacing 1.
fn points() -> Vec<[f32; 3]> {
    (0..8000)
        .map(|k| [k % 20, k / 20 % 20, k / 400].map(|x| x as f32))
        .collect()
}

#[test]
fn a_gpu_that_a_kernel_ended_is_opened_anew_when_nobody_uses_it() {
    on_null_gpu("seam::failed_gpu");
}

#[test]
#[ignore = "runs in a child"]
fn failed_gpu() {
    let engine = || Engine::builder(1.5).device(GPU).build().unwrap();
    drop(engine());
    fail();
    // Were the old context kept, the driver would still refuse to answer in it.
    drop(engine());
    assert_eq!(counts().contexts, 1);
    assert!(answers(), "the context is a new one");
}

#[test]
fn a_gpu_stays_open_until_another_library_resets_it() {
    on_null_gpu("seam::reset_gpu");
}

#[test]
#[ignore = "runs in a child"]
fn reset_gpu() {
    let engine = || Engine::builder(1.5).device(GPU).build().unwrap();
    for _ in 0..3 {
        engine();
        assert_eq!(counts().contexts, 1);
    }
    let beside = engine();
    reset();
    assert_eq!(counts().contexts, 0);
    for _ in 0..2 {
        engine();
        assert_eq!(counts().contexts, 1, "opened anew");
    }
    drop(beside);
    assert_eq!(counts().contexts, 1, "the new context is not the old one's");
}

fn check_refused<T>(result: Result<T, Error>, feature: &str) {
    let Err(error) = result else {
        panic!("{feature}: it was done");
    };
    let text = error.to_string();
    for part in ["the GPU backend does not support", feature, "Device::Cpu"] {
        assert!(text.contains(part), "{feature}: {text}");
    }
}

#[test]
fn a_gpu_that_was_named_refuses_what_it_cannot_do() {
    on_null_gpu("seam::refusals");
}

#[test]
#[ignore = "runs in a child"]
fn refusals() {
    let builder = || Engine::builder(1.5).device(GPU);
    let points = points();
    let by_cells = builder().strategy(Strategy::ChildPerCell);
    let mut by_cells = by_cells.radii(RadiusRule::Gather).build().unwrap();
    let set = by_cells.add_point_set(&points).unwrap();
    by_cells.set_radii(set, &vec![1.0; points.len()]).unwrap();
    check_refused(by_cells.count_neighbors(set, set), "child-per-cell");
    let mut engine = builder().build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let kernel = engine.traverse(&OnCpu, set, set).run();
    check_refused(kernel, "PairKernel::cuda");
    // The engine goes on, and its report says where.
    engine.find_neighbors().unwrap();
    check_refused(
        engine.traverse(&OnCpu, set, set).over_lists().run(),
        "PairKernel::cuda",
    );
    let mut lists = VerletLists::new(builder(), 0.1).unwrap();
    let skin = lists.add_point_set(&points).unwrap();
    lists.refresh().unwrap();
    check_refused(lists.traverse(&OnCpu, skin, skin).run(), "PairKernel::cuda");
    let report = engine.report();
    assert_eq!(report.device, GPU);
    assert_eq!(report.jobs.len(), 1, "{:?}", report.jobs);
    assert_eq!(report.jobs[0].device, GPU);
}

#[test]
fn the_step_that_takes_a_gpu_in_loads_no_program_and_page_locks_no_memory() {
    on_null_gpu("seam::taken_in");
}

#[test]
#[ignore = "runs in a child"]
fn taken_in() {
    let mut engine = Engine::builder(1.5).threads(2).build().unwrap();
    let edge = 28;
    let all = (0..edge * edge * edge).map(|k| [k % edge, k / edge % edge, k / edge / edge]);
    let points: Vec<[f32; 3]> = all.map(|place| place.map(|x| x as f32)).collect();
    let set = engine.add_point_set(&points).unwrap();
    let density = SphDensity::with_support(1.5);
    let mass = vec![1.0f32; points.len()];
    let step = |engine: &mut Engine| {
        engine.update(set, &points).unwrap();
        engine.find_neighbors().unwrap();
        engine.count_neighbors(set, set).unwrap();
        let traversal = engine.traverse(&density, set, set).sources(&mass);
        traversal.run().unwrap();
        engine.report().gpu.is_some()
    };
    let copy = size_of_val(&points[..]) as u64;
    // A step that begins before the GPU is ready is the CPU's.
    let mut before = counts();
    while !step(&mut engine) {
        // The thread that starts it ends in the middle of one of these, and not between two lines.
        std::thread::sleep(std::time::Duration::from_millis(100));
        before = counts();
    }
    for number in 0..4 {
        let after = counts();
        assert!(
            after.to_device > before.to_device,
            "step {number}: {after:?}"
        );
        let made = after.page_locked - before.page_locked;
        // Where the CPU has the larger part of lists their memory grows once.
        assert!(
            number > 0 || made < copy,
            "{made} bytes, {copy} are a copy of the points"
        );
        assert_eq!(after.modules, before.modules, "step {number}");
        before = counts();
        step(&mut engine);
    }
}

#[test]
fn both_backends_share_jobs_and_leave_others_to_the_cpu() {
    on_null_gpu("seam::shared");
}

#[test]
#[ignore = "runs in a child"]
fn shared() {
    let builder = Engine::builder(1.5).device(BOTH).threads(2);
    // A plan of lists, then of counts and sums, each with bricks for either backend.
    let mut engine = builder
        .policy(Policy::Fixed { theta: 26.0 })
        .build()
        .unwrap();
    let points = points();
    let set = engine.add_point_set(&points).unwrap();
    let density = SphDensity::with_support(1.5);
    let mass = vec![1.0f32; points.len()];
    for _ in 0..3 {
        engine.update(set, &points).unwrap();
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        let counts = engine.count_neighbors(set, set).unwrap();
        let sums = engine
            .traverse(&density, set, set)
            .sources(&mass)
            .run()
            .unwrap();
        assert!(sums.iter().all(|sum| sum.is_finite()));
        // The CPU's targets have all their neighbours, the others none.
        let has_all = |len: usize| len == 0 || (6..=18).contains(&len);
        assert!(lists.iter().all(|list| has_all(list.len())));
        assert!(lists.pairs() > 0, "{:?}", engine.report().jobs);
        assert!(counts.iter().all(|&count| has_all(count as usize)));
    }
    // The CPU does the job that the GPU cannot, and the report says so.
    let sums = engine.traverse(&OnCpu, set, set).run().unwrap();
    assert!(sums.iter().all(|&sum| sum >= 6.0));
    assert_eq!(engine.query(&points, set).unwrap().len(), points.len());
    let report = engine.report();
    assert_eq!(report.device, Device::Cpu);
    let gpu = report.gpu.as_ref().unwrap();
    assert_eq!((gpu.faults, &gpu.failed), (0, &None));
    for job in &report.jobs {
        let on_cpu = job.job == "query" || job.job.contains("OnCpu");
        let device = if on_cpu { Device::Cpu } else { BOTH };
        assert_eq!(job.device, device, "{job:?}");
        assert_eq!(job.split.is_some(), !on_cpu, "{job:?}");
        assert!(
            !on_cpu || job.reason.contains("does not support"),
            "{job:?}"
        );
    }
    let mut sums = Engine::all_pairs().device(BOTH).threads(2).build().unwrap();
    sums.gravity(&points[..3000], &mass[..3000], 0.1).unwrap();
    let report = sums.report();
    assert_eq!(report.device, BOTH);
    assert!(report.cpu_share > 0.0 && report.cpu_share < 1.0);
}
