//! Kernels get indices, images and random numbers on a GPU, with every strategy and with both
//! backends.

use super::{BOTH, GPU, engine_with, fresh_seed, needs_gpu};
use crate::common::drawn::{Drawn, Mirrored, expected};
use nearfield::{
    balance::{Policy, Strategy},
    kernels::{Images, Indices, Random},
    prelude::*,
};
use nearfield_testkit::cloud::Cloud;

#[test]
fn kernels_read_indices_images_and_random_numbers() {
    needs_gpu!();
    let seed = fresh_seed();
    let points = Cloud::Clusters.points(20_000, seed);
    let random = Random::new(seed, 5);
    let lean = [
        Some([100.0, 0.0, 0.0]),
        Some([30.0, 100.0, 0.0]),
        Some([-20.0, 10.0, 100.0]),
    ];
    let straight = [
        Some([100.0, 0.0, 0.0]),
        Some([0.0, 90.0, 0.0]),
        Some([0.0, 0.0, 80.0]),
    ];
    for vectors in [[None; 3], straight, lean] {
        let images = Images::of_vectors(vectors.map(Option::unwrap_or_default));
        let builder = || {
            Engine::builder(1.0)
                .box_vectors(vectors)
                .policy(Policy::Fixed { theta: 12.0 })
        };
        let (plain, set) = engine_with(builder(), Device::Cpu, &points);
        let expected = expected(&plain, random, [set; 2]);
        for strategy in [
            Strategy::Flat,
            Strategy::CellTasks,
            Strategy::HalfTiles,
            Strategy::ChildPerCell,
            Strategy::ChildAggregated,
        ] {
            for device in [GPU, BOTH] {
                let (engine, set) = engine_with(builder().strategy(strategy), device, &points);
                let fields = || (Indices, &points);
                let what = format!("seed {seed}, {vectors:?}, {strategy:?}, {device}");
                let kernel = Drawn::<true> { random, images };
                let traversal = engine.traverse(&kernel, set, set);
                let found = traversal.targets(fields()).sources(fields()).run().unwrap();
                let same = (found.iter().zip(&expected)).all(|(found, sums)| *found == sums.0);
                assert!(same, "{what}: drawn");
                let kernel = Mirrored { random, images };
                let traversal = engine.traverse(&kernel, set, set);
                let found = traversal.targets(fields()).sources(fields()).run().unwrap();
                let same = (found.iter().zip(&expected)).all(|(found, sums)| *found == sums.1);
                assert!(same, "{what}: mirrored");
                assert_eq!(engine.report().device, device, "{:?}", engine.report().gpu);
            }
        }
    }
}
