//! Sums over all pairs, on grids too, and potentials within a cut-off.

use super::{BOTH, GPU, assert_close, fresh_seed, needs_gpu};
use nearfield::{
    all_pairs::{AllPairs, Arithmetic, PairSum, Real, SampleGrid, Sources},
    kernels::{ChargeField, ChargePotential},
    prelude::*,
};
use nearfield_testkit::random::Random;

fn all_pairs(device: Device, arithmetic: Arithmetic) -> AllPairs {
    let builder = Engine::all_pairs().device(device);
    builder.arithmetic(arithmetic).build().unwrap()
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
                        let mut sums = all_pairs(device, arithmetic);
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
                    for device in [GPU, BOTH] {
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
    needs_gpu!();
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
                let mut sums = all_pairs(device, arithmetic);
                let potentials = sums.coulomb(&grid, &at, &charges, T::default()).unwrap();
                let mut field = vec![[T::default(); 3]; grid.len()];
                let atoms = Sources {
                    points: &at,
                    weights: &charges,
                };
                sums.coulomb_field_rows(&grid, 0..grid.rows(), atoms, T::default(), &mut field)
                    .unwrap();
                assert_eq!(sums.report().failed, None);
                (potentials, field)
            };
            let what = format!("seed {seed}, {} {dims:?} x {atoms}", T::NAME);
            let expected = run(Device::Cpu, Arithmetic::Exact);
            for device in [GPU, BOTH] {
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
    needs_gpu!();
    let seed = fresh_seed();
    grids_agree::<f32>(seed, 1e-5);
    grids_agree::<f64>(seed, 1e-13);
}

#[test]
fn potentials_within_a_cut_off_are_the_cpus() {
    needs_gpu!();
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
    let what = format!("seed {seed}");
    assert_close(&found, &expected, 1e-5, 0.0, &what);
    let expected = expected_field.as_flattened();
    assert_close(field.as_flattened(), expected, 0.0, 1e-5, &what);
}
