//! Strided fields on a GPU give the sums of packed ones.

use super::{BOTH, GPU, engine_with, fresh_seed, needs_gpu};
use crate::common::scattered::Scattered;
use nearfield::{balance::Policy, kernels::Field, prelude::*};
use nearfield_testkit::{cloud::Cloud, random::Random};

/// A sum that tells every channel of a pair apart. Values are small whole numbers, so sums are
/// exact in any order.
struct Weighted;

#[nearfield::pair_kernel]
impl PairKernel for Weighted {
    type Target = ([f32; 3], f32);
    type Source = (f32, [f32; 2], [f32; 3]);
    type Output = [f32; 2];

    fn pair(&self, _: Pair, (t, u): Self::Target, (m, [a, b], s): Self::Source) -> [f32; 2] {
        [
            t[0] + 2.0 * t[1] + 3.0 * t[2] + 4.0 * u,
            m + 2.0 * a + 3.0 * b + 4.0 * s[0] + 5.0 * s[1] + 6.0 * s[2],
        ]
    }
}

/// Small whole numbers for every point.
fn numbers<const CHANNELS: usize>(random: &mut Random, points: usize) -> Vec<[f32; CHANNELS]> {
    let number = |_| [0; CHANNELS].map(|_| random.below(8) as f32);
    (0..points).map(number).collect()
}

#[test]
fn strided_fields_give_the_sums_of_packed_ones() {
    needs_gpu!();
    let seed = fresh_seed();
    let random = &mut Random::new(seed);
    let points = Cloud::Clusters.points(50_000, seed);
    let (t, u) = (
        numbers::<3>(random, points.len()),
        numbers::<1>(random, points.len()),
    );
    let (m, a) = (
        numbers::<1>(random, points.len()),
        numbers::<2>(random, points.len()),
    );
    let packed = [Field::from(&t), Field::from(u.as_flattened())];
    let sources = [Field::from(m.as_flattened()), Field::from(&a), packed[0]];
    let run = |device, targets: [Field; 2], sources: [Field; 3]| {
        let builder = Engine::builder(1.0).policy(Policy::Fixed { theta: 12.0 });
        let (engine, set) = engine_with(builder, device, &points);
        let traversal = engine.traverse(&Weighted, set, set);
        let sums = traversal.targets(&targets).sources(&sources).run().unwrap();
        assert_eq!(engine.report().device, device, "{:?}", engine.report().gpu);
        sums
    };
    let expected = run(Device::Cpu, packed, sources);
    for round in 0..3 {
        let (t, u) = (Scattered::new(random, &t), Scattered::new(random, &u));
        let (m, a) = (Scattered::new(random, &m), Scattered::new(random, &a));
        let strided = [m.field(), a.field(), t.field()];
        for device in [GPU, BOTH] {
            let found = run(device, [t.field(), u.field()], strided);
            assert!(
                found == expected,
                "seed {seed}, round {round}, {device}: strided"
            );
            let found = run(device, packed, [strided[0], sources[1], strided[2]]);
            assert!(
                found == expected,
                "seed {seed}, round {round}, {device}: mixed"
            );
        }
    }
}
