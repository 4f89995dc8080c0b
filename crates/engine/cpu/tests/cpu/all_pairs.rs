//! Sums at every level against brute force in double precision.

use nearfield_cpu::{CpuBackend, SimdLevel};
use nearfield_pairs::{Arithmetic, PairSum, PairSumSettings, Real, SampleGrid, Sources};
use nearfield_testkit::random::Random;

/// Numbers of targets and sources that leave vectors, groups, tiles and chunks part full.
const SIZES: [(usize, usize); 9] = [
    (0, 5),
    (1, 0),
    (1, 1),
    (17, 127),
    (33, 128),
    (100, 129),
    (513, 300),
    (64, 1000),
    (1100, 700),
];

struct Scene<T> {
    targets: Vec<[T; 3]>,
    sources: Vec<[T; 3]>,
    weights: Vec<T>,
}

/// Sources of either sign; every seventh lies on a target.
fn scene<T: Real>(targets: usize, sources: usize, seed: u64) -> Scene<T> {
    let mut random = Random::new(seed);
    let mut point = || [0; 3].map(|_| T::of(random.between(-1.0, 3.0)));
    let mut found = Scene {
        targets: (0..targets).map(|_| point()).collect(),
        sources: (0..sources).map(|_| point()).collect(),
        weights: Vec::new(),
    };
    for n in (0..sources.min(targets)).step_by(7) {
        found.sources[n] = found.targets[n];
    }
    found.weights = (0..sources)
        .map(|n| T::of(1.0 + (n % 5) as f64 - 2.5))
        .collect();
    found
}

/// The sum for one target, and that of the terms' absolute values.
fn brute<T: Real>(
    sum: PairSum,
    softening: f64,
    target: [T; 3],
    scene: &Scene<T>,
) -> ([f64; 3], f64) {
    let (mut found, mut terms) = ([0.0; 3], 0.0);
    for (source, weight) in scene.sources.iter().zip(&scene.weights) {
        let d: [f64; 3] = std::array::from_fn(|axis| source[axis].double() - target[axis].double());
        let d2 = d.iter().map(|d| d * d).sum::<f64>() + softening * softening;
        if d2 == 0.0 {
            continue;
        }
        let weight = weight.double();
        match sum {
            PairSum::Potential => {
                found[0] += weight / d2.sqrt();
                terms += weight.abs() / d2.sqrt();
            }
            PairSum::Pull => {
                for axis in 0..3 {
                    found[axis] += weight * d[axis] / (d2 * d2.sqrt());
                }
                terms += weight.abs() / d2;
            }
        }
    }
    (found, terms)
}

/// Largest error of any number relative to the sum of the terms' absolute values.
fn worst<T: Real>(
    settings: PairSumSettings<T>,
    targets: &[[T; 3]],
    results: &[T],
    scene: &Scene<T>,
) -> f64 {
    let components = settings.sum.components();
    let errors = targets
        .iter()
        .zip(results.chunks(components))
        .map(|(target, found)| {
            let (expected, terms) =
                brute(settings.sum, settings.softening.double(), *target, scene);
            let error = (0..components).map(|c| (found[c].double() - expected[c]).abs());
            error.fold(0.0, f64::max) / if terms > 0.0 { terms } else { 1.0 }
        });
    errors.fold(0.0, f64::max)
}

fn every_setting<T: Real>(mut check: impl FnMut(PairSumSettings<T>)) {
    for sum in [PairSum::Potential, PairSum::Pull] {
        for arithmetic in [Arithmetic::Fast, Arithmetic::Exact] {
            for softening in [0.0, 0.125] {
                let softening = T::of(softening);
                check(PairSumSettings {
                    sum,
                    arithmetic,
                    softening,
                });
            }
        }
    }
}

fn backends() -> Vec<CpuBackend> {
    let levels = SimdLevel::available().iter();
    levels
        .map(|&level| CpuBackend::new(2).unwrap().with_level(level))
        .collect()
}

/// Every level gives what brute force gives, and in the exact form the same bits.
fn points_agree<T: Real>(most: f64) {
    for (targets, sources) in SIZES {
        let scene = scene::<T>(targets, sources, (targets + sources) as u64);
        every_setting(|settings| {
            let mut exact: Option<Vec<T>> = None;
            for backend in backends() {
                let mut results = vec![T::of(7.0); settings.sum.components() * targets];
                let all = Sources {
                    points: &scene.sources,
                    weights: &scene.weights,
                };
                backend
                    .sum_pairs(settings, &scene.targets, all, &mut results)
                    .unwrap();
                let worst = worst(settings, &scene.targets, &results, &scene);
                let what = format!("{settings:?}, {targets} x {sources}, {:?}", backend.level());
                assert!(worst <= most, "{what}: {worst:e}");
                if settings.arithmetic == Arithmetic::Exact {
                    let first = exact.get_or_insert_with(|| results.clone());
                    assert_eq!(first, &results, "{what}");
                }
            }
        });
    }
}

#[test]
fn sums_at_points_in_f32_are_those_of_f64() {
    points_agree::<f32>(1e-5);
}

#[test]
fn sums_at_points_in_f64_are_right_to_the_last_digits() {
    points_agree::<f64>(2e-14);
}

/// The same on grids, whole and in parts, of odd sizes; sources lie on grid points.
fn grids_agree<T: Real>(most: f64) {
    for dims in [[1, 1, 1], [5, 3, 2], [16, 1, 3], [67, 5, 3], [600, 2, 1]] {
        let grid = SampleGrid {
            dims,
            spacing: 0.25,
            origin: [-1.0, 0.5, 0.0],
        };
        let targets = grid.points::<T>(0..grid.rows()).unwrap();
        for sources in [0, 1, 301] {
            let mut scene = scene::<T>(0, sources, 5);
            for (n, source) in scene.sources.iter_mut().enumerate().step_by(3) {
                *source = targets[(n * 31) % targets.len()];
            }
            let all = Sources {
                points: &scene.sources,
                weights: &scene.weights,
            };
            every_setting(|settings| {
                let components = settings.sum.components();
                let mut exact: Option<Vec<T>> = None;
                for backend in backends() {
                    let mut results = vec![T::of(7.0); components * grid.len()];
                    let split = grid.rows() / 2;
                    let (low, high) = results.split_at_mut(components * split * dims[0]);
                    backend
                        .sum_pairs_on_grid(settings, &grid, 0..split, all, low)
                        .unwrap();
                    backend
                        .sum_pairs_on_grid(settings, &grid, split..grid.rows(), all, high)
                        .unwrap();
                    let worst = worst(settings, &targets, &results, &scene);
                    let what = format!("{settings:?}, {dims:?} x {sources}, {:?}", backend.level());
                    assert!(worst <= most, "{what}: {worst:e}");
                    if settings.arithmetic == Arithmetic::Exact {
                        let first = exact.get_or_insert_with(|| results.clone());
                        assert_eq!(first, &results, "{what}");
                    }
                }
            });
        }
    }
}

#[test]
fn sums_on_grids_in_f32_are_those_of_f64() {
    grids_agree::<f32>(1e-5);
}

#[test]
fn sums_on_grids_in_f64_are_right_to_the_last_digits() {
    grids_agree::<f64>(2e-14);
}

#[test]
fn a_long_sum_of_one_sign_keeps_its_accuracy() {
    let mut random = Random::new(3);
    let mut point = || [0; 3].map(|_| random.between(0.0, 1.0) as f32);
    let scene = Scene {
        targets: (0..40).map(|_| point()).collect(),
        sources: (0..200_000).map(|_| point()).collect(),
        weights: vec![1.0; 200_000],
    };
    let backend = CpuBackend::new(2).unwrap();
    for sum in [PairSum::Potential, PairSum::Pull] {
        let settings = PairSumSettings {
            sum,
            arithmetic: Arithmetic::Fast,
            softening: 0.01,
        };
        let mut results = vec![0.0; 40 * sum.components()];
        let all = Sources {
            points: &scene.sources,
            weights: &scene.weights,
        };
        backend
            .sum_pairs(settings, &scene.targets, all, &mut results)
            .unwrap();
        let worst = worst(settings, &scene.targets, &results, &scene);
        assert!(worst <= 2e-6, "{sum:?}: {worst:e}");
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let backend = CpuBackend::new(1).unwrap();
    let settings = PairSumSettings {
        sum: PairSum::Pull,
        arithmetic: Arithmetic::Fast,
        softening: 0.0,
    };
    let points = [[0.0f32; 3]; 4];
    let lacking = Sources {
        points: &points,
        weights: &[1.0; 3],
    };
    let error = backend
        .sum_pairs(settings, &points, lacking, &mut [0.0; 12])
        .unwrap_err();
    assert!(
        error.to_string().contains("3 points") && error.to_string().contains('4'),
        "{error}"
    );
    let all = Sources {
        points: &points,
        weights: &[1.0; 4],
    };
    let error = backend
        .sum_pairs(settings, &points, all, &mut [0.0; 11])
        .unwrap_err();
    assert!(error.to_string().contains("11"), "{error}");
}
