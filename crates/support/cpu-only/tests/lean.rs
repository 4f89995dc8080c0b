//! The crate without its cargo feature `gpu`: everything runs on the CPU, and a GPU that is asked
//! for by name is refused with the remedy.
//!
//! `cargo test --release -p nearfield-cpu-only --features alone`; not for the whole workspace, in
//! which other packages ask for the feature.

use nearfield::{
    balance::emulated::EmulatedSpec,
    kernels::{SphDensity, WendlandC2},
    prelude::*,
};

const RADIUS: f32 = 0.3;

/// Points of a lattice, each moved a little in a way of its own.
fn cloud() -> Vec<[f32; 3]> {
    let moved = |cell: u32, axis: u32| {
        let noise = (cell * 3 + axis).wrapping_mul(2_654_435_761) >> 8;
        0.05 * (noise as f32 / (1 << 24) as f32)
    };
    (0..512u32)
        .map(|cell| {
            let at = [cell % 8, cell / 8 % 8, cell / 64];
            [0, 1, 2].map(|axis| 0.125 * at[axis] as f32 + moved(cell, axis as u32))
        })
        .collect()
}

/// The squared distance as the engine's contract has it.
fn squared(a: [f32; 3], b: [f32; 3]) -> f32 {
    let d = [0, 1, 2].map(|axis| b[axis] - a[axis]);
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

fn neighbors(points: &[[f32; 3]], target: usize) -> Vec<u32> {
    let near = |source: &usize| {
        *source != target && squared(points[target], points[*source]) <= RADIUS * RADIUS
    };
    (0..points.len())
        .filter(near)
        .map(|source| source as u32)
        .collect()
}

/// Lists and densities of an engine on a device, compared with those of all pairs.
fn check(device: Device) -> Engine {
    let points = cloud();
    let mass: Vec<f32> = (0..points.len())
        .map(|point| 1.0 + point as f32 * 0.001)
        .collect();
    let mut engine = Engine::builder(RADIUS)
        .device(device)
        .threads(2)
        .list_order(ListOrder::Ascending)
        .build()
        .unwrap();
    let set = engine.add_point_set(&points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    for target in 0..points.len() {
        assert_eq!(lists.of(target), neighbors(&points, target), "{target}");
    }
    let wendland = WendlandC2::with_support(RADIUS);
    let kernel = SphDensity { kernel: wendland };
    let density = engine
        .traverse(&kernel, set, set)
        .sources(&mass)
        .run()
        .unwrap();
    for (target, &found) in density.iter().enumerate() {
        let expected: f64 = neighbors(&points, target)
            .into_iter()
            .map(|source| {
                let d2 = squared(points[target], points[source as usize]);
                f64::from(mass[source as usize]) * f64::from(wendland.value(d2))
            })
            .sum();
        let error = (f64::from(found) - expected).abs();
        assert!(error < 1e-4 * expected, "{target}: {found}, {expected}");
    }
    engine
}

#[test]
fn lists_and_kernels_run_on_the_cpu() {
    let engine = check(Device::Cpu);
    assert_eq!(engine.report().device, Device::Cpu);
    assert_eq!(engine.report().reason, "asked for");
}

#[test]
fn auto_is_the_cpu_and_says_why() {
    let mut engine = check(Device::Auto);
    let many: Vec<[f32; 3]> = (0..20_000).map(|point| [point as f32, 0.0, 0.0]).collect();
    let set = engine.add_point_set(&many).unwrap();
    // Steps of this size start a GPU where there is one.
    for _ in 0..3 {
        engine.update(set, &many).unwrap();
        engine.count_neighbors(set, set).unwrap();
    }
    let report = engine.report();
    assert_eq!(report.device, Device::Cpu);
    assert!(report.gpu.is_none());
    assert!(
        report
            .reason
            .contains("this build of nearfield has no GPU backend"),
        "{}",
        report.reason
    );
    let mut sums = Engine::all_pairs().build().unwrap();
    let pull = sums
        .gravity(&[[0.0f64; 3], [2.0, 0.0, 0.0]], &[1.0, 4.0], 0.0)
        .unwrap();
    assert_eq!(pull[0], [1.0, 0.0, 0.0]);
    let report = sums.report();
    assert_eq!((report.device, report.gpu), (Device::Cpu, None));
    assert!(
        report.reason.contains("no GPU backend"),
        "{}",
        report.reason
    );
}

#[test]
fn a_gpu_asked_for_by_name_is_refused_with_the_remedy() {
    for device in [Device::Gpu(0), Device::Gpu(7), Device::Hybrid(0)] {
        let engine = Engine::builder(RADIUS).device(device).build().map(drop);
        let sums = Engine::all_pairs().device(device).build().map(drop);
        for refused in [engine, sums] {
            let error = refused.unwrap_err();
            let ErrorKind::Unsupported(unsupported) = error.kind() else {
                panic!("{device}: {error}");
            };
            assert_eq!(unsupported.backend(), "GPU");
            assert!(unsupported.remedy().contains("cargo feature `gpu`"));
            let text = error.to_string();
            assert!(
                text.starts_with("this build of nearfield has no GPU backend: build it with"),
                "{text}"
            );
        }
    }
}

#[test]
fn the_emulated_device_shares_the_work_as_in_any_build() {
    let device = Device::Emulated(EmulatedSpec::default());
    let engine = check(device);
    let report = engine.report();
    assert_eq!((report.device, report.jobs.len()), (device, 2));
    assert!(report.jobs.iter().all(|job| job.split.is_some()));
}
