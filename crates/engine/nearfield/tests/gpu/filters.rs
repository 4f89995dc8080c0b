//! Filters and radii of single points on a GPU: what the oracle keeps, in lists, counts, geometry
//! and sums.

use super::{GPU, assert_on_gpu, engine_with, fresh_seed, needs_gpu};
use crate::common::{
    Precise, Settings, as_vectors, builder_for, fill,
    filters::{comparable, draw, indices},
    fingerprints_of, traverse,
};
use nearfield::{balance::Strategy, kernels::SphDensity, lists::PairGeometry, prelude::*};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::Level,
    oracle::{self, Neighbor},
    random::Random,
};

#[test]
fn what_filters_keep_of_every_case_is_what_the_oracle_keeps() {
    check_filters::<f32>();
}

#[test]
fn what_filters_keep_in_double_is_what_the_oracle_keeps() {
    check_filters::<f64>();
}

/// Compares what a GPU keeps of a case with filters with what the oracle keeps.
fn check_filters<T: Precise>() {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let runner = T::runner(Level::Quick);
    for (number, (case, neighbors)) in runner.with_neighbors().enumerate() {
        // Sometimes none, for radii alone.
        let drawn = draw(case, random.below(32) as u32, &mut random);
        let ordered = drawn.filters.nearest.is_some();
        let settings = Settings {
            subdivision: 1 + number as u32 % 3,
            ..Settings::default()
        };
        let builder = drawn.settings(builder_for(case, settings)).device(GPU);
        let (mut engine, sets) = fill(builder.build().unwrap(), case).unwrap();
        drawn.give(&mut engine, case, &sets);
        let expected = case.problem().without(&drawn.filters, neighbors.to_vec());
        let (name, t, s) = (&case.name, sets[case.target], sets[case.source]);
        // The nearest of images that have no 32-bit numbers are the CPU's work.
        let is_far = |near: &Neighbor| near.image.iter().any(|&n| i32::try_from(n).is_err());
        let by_cpu = ordered && neighbors.iter().flatten().any(is_far);
        let check_device = |engine: &Engine| {
            if !by_cpu {
                assert_on_gpu(engine);
            }
        };
        // The data are on the device already the second time.
        for _ in 0..2 {
            engine.find_neighbors().unwrap();
            let found = as_vectors(engine.neighbors(t, s).unwrap());
            let wanted = indices(&expected);
            assert!(
                comparable(found, ordered) == wanted,
                "lists of {name}, seed {seed}"
            );
        }
        check_device(&engine);
        if case.list == oracle::ListKind::Full {
            let counts = engine.count_neighbors(t, s).unwrap();
            let wanted: Vec<u32> = expected.iter().map(|list| list.len() as u32).collect();
            assert!(counts == wanted, "counts of {name}, seed {seed}");
            let sums = traverse(&engine, case, &sets);
            assert!(
                sums == fingerprints_of(case, &expected),
                "sums of {name}, seed {seed}"
            );
            check_device(&engine);
        }
        let mut geometry = PairGeometry::default();
        if let Err(error) = engine.pair_geometry(t, s, &mut geometry) {
            assert!(
                error.to_string().contains("boxes apart along an axis"),
                "{error}"
            );
            continue;
        }
        for (i, wanted) in expected.iter().enumerate() {
            let mut found: Vec<Neighbor> = (geometry.of(i))
                .map(|pair| Neighbor {
                    index: pair.index,
                    image: pair.image.map(i64::from),
                })
                .collect();
            if !ordered {
                found.sort_unstable();
            }
            assert_eq!(&found, wanted, "geometry of {i} in {name}, seed {seed}");
        }
    }
}

/// Many points that move, with new data in between; sums of targets that are not chosen stay.
#[test]
fn steps_with_filters_and_radii_are_those_of_the_cpu() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for rule in [
        RadiusRule::Uniform,
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ] {
        for periodic in [[None; 3], [Some(40.0), Some(40.0), None]] {
            let mut points = Cloud::Lattice.points(60_000, 3);
            let mut engines = [GPU, Device::Cpu].map(|device| {
                let builder = Engine::builder(2.0).periodic(periodic).radii(rule);
                let builder = match rule {
                    RadiusRule::Uniform => builder.cutoffs(&[[2.0, 1.0], [1.0, 0.0]]),
                    _ => builder,
                };
                engine_with(builder.list_order(ListOrder::Ascending), device, &points)
            });
            for step in 0..4u64 {
                drift(&mut points, 0.2, step);
                points.truncate(60_000 - 2_000 * step as usize);
                let count = points.len();
                let radii: Vec<f32> = (0..count)
                    .map(|_| random.between(0.5, 2.0) as f32)
                    .collect();
                let types: Vec<u8> = (0..count).map(|_| random.below(2) as u8).collect();
                let molecules: Vec<u32> = (0..count).map(|i| i as u32 / 3).collect();
                let bonds: Vec<[u32; 2]> = (1..count).map(|i| [i as u32 - 1, i as u32]).collect();
                let share = [0.01, 0.5][step as usize % 2];
                let mask: Vec<bool> = (0..count).map(|_| random.unit() < share).collect();
                let mass = vec![1.5f32; count];
                let [on_gpu, on_cpu] = engines.each_mut().map(|(engine, set)| {
                    engine.update(*set, &points).unwrap();
                    match rule {
                        RadiusRule::Uniform => engine.set_types(*set, &types).unwrap(),
                        _ => engine.set_radii(*set, &radii).unwrap(),
                    }
                    match step % 2 {
                        0 => engine.set_molecules(*set, &molecules).unwrap(),
                        _ => engine.exclude_pairs(*set, &bonds).unwrap(),
                    }
                    match step {
                        0 => engine.clear_targets(*set).unwrap(),
                        _ => engine.set_target_mask(*set, &mask).unwrap(),
                    }
                    engine.find_neighbors().unwrap();
                    let lists = as_vectors(engine.neighbors(*set, *set).unwrap());
                    let counts = engine.count_neighbors(*set, *set).unwrap();
                    let kernel = SphDensity::with_support(2.0);
                    let mut sums = vec![-0.0f32; count];
                    let traversal = engine.traverse(&kernel, *set, *set).sources(&mass);
                    traversal.add_into(&mut sums).unwrap();
                    (lists, counts, sums)
                });
                assert_on_gpu(&engines[0].0);
                assert!(
                    on_gpu.0 == on_cpu.0,
                    "lists of step {step}, {rule}, seed {seed}"
                );
                assert!(
                    on_gpu.1 == on_cpu.1,
                    "counts of step {step}, {rule}, seed {seed}"
                );
                let what = format!("sums of step {step}, {rule}, seed {seed}");
                super::assert_close(&on_gpu.2, &on_cpu.2, 1e-5, 1e-6, &what);
                let left = (0..count).filter(|&i| step > 0 && !mask[i]);
                for i in left {
                    assert_eq!(on_gpu.2[i].to_bits(), (-0.0f32).to_bits(), "{what}: {i}");
                }
            }
        }
    }
}

#[test]
fn a_strategy_by_cells_is_refused_with_filters_by_name() {
    needs_gpu!();
    let builder = Engine::builder(1.0).strategy(Strategy::ChildPerCell);
    let (mut engine, set) = engine_with(builder, GPU, &[[0.0; 3], [0.5, 0.0, 0.0]]);
    engine.set_molecules(set, &[1, 1]).unwrap();
    let text = engine.find_neighbors().unwrap_err().to_string();
    assert!(
        text.contains("child-per-cell") && text.contains("Strategy::Flat"),
        "{text}"
    );
    engine.clear_exclusions(set).unwrap();
    engine.find_neighbors().unwrap();
}
