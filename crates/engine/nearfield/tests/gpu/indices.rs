//! Kernels get indices, images and random numbers on a GPU, with every strategy and with both
//! backends.

use super::{BOTH, GPU, engine_with, fresh_seed, needs_gpu};
use crate::common::drawn::{Drawn, Mirrored, Point, expected};
use nearfield::{
    balance::{Policy, Strategy},
    device::{CpuHelper, DeviceBuffer, DeviceEngine, DeviceField, Progress},
    kernels::{Channels, Images, Indices, Random},
    prelude::*,
};
use nearfield_testkit::cloud::Cloud;

/// Vectors of a box, as engines take them.
type Vectors = [Option<[f64; 3]>; 3];

const BOXES: [Vectors; 3] = [
    [None; 3],
    [
        Some([100.0, 0.0, 0.0]),
        Some([0.0, 90.0, 0.0]),
        Some([0.0, 0.0, 80.0]),
    ],
    [
        Some([100.0, 0.0, 0.0]),
        Some([30.0, 100.0, 0.0]),
        Some([-20.0, 10.0, 100.0]),
    ],
];

#[test]
fn kernels_read_indices_images_and_random_numbers() {
    needs_gpu!();
    let seed = fresh_seed();
    let points = Cloud::Clusters.points(20_000, seed);
    let random = Random::new(seed, 5);
    for vectors in BOXES {
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

/// A set on the device, and where its positions are.
struct OnDevice {
    set: PointSetId,
    /// Three numbers a point.
    positions: DeviceBuffer<f32>,
    /// The same behind another number, and one behind them.
    padded: DeviceBuffer<f32>,
    points: usize,
}

impl OnDevice {
    #[allow(
        clippy::disallowed_methods,
        reason = "copies of a test need no counting"
    )]
    fn new(engine: &mut DeviceEngine, points: &[[f32; 3]]) -> Self {
        let padded: Vec<[f32; 5]> = points
            .iter()
            .map(|&[x, y, z]| [f32::NAN, x, y, z, f32::NAN])
            .collect();
        let stream = engine.stream().clone();
        let positions = stream.clone_htod(points.as_flattened()).unwrap();
        Self {
            set: engine.add_point_set(&positions.as_view()).unwrap(),
            positions,
            padded: stream.clone_htod(padded.as_flattened()).unwrap(),
            points: points.len(),
        }
    }

    /// Sums of a kernel by the GPU, or by both backends.
    #[allow(
        clippy::disallowed_methods,
        reason = "copies of a test need no counting"
    )]
    fn sums<K: PairKernel<Target = Point, Source = Point>>(
        &self,
        engine: &mut DeviceEngine,
        helper: Option<&mut CpuHelper>,
        kernel: &K,
        sources: &Self,
    ) -> Vec<f32> {
        let stream = engine.stream().clone();
        let mut sums = stream
            .alloc_zeros::<f32>(self.points * K::Output::COUNT)
            .unwrap();
        let traversal = match helper {
            None => engine.traverse(kernel, self.set, sources.set),
            Some(helper) => {
                let both = engine.with_cpu(helper);
                both.traverse(kernel, self.set, sources.set)
            }
        };
        let of_sources = DeviceField::new(sources.positions.as_view(), 3);
        let traversal = traversal.sources((Indices, of_sources));
        let of_targets = DeviceField::new(self.padded.slice(1..), 5).channels(3);
        let traversal = traversal.targets((Indices, of_targets));
        traversal.run_into(&mut sums.as_view_mut()).unwrap();
        assert_eq!(engine.finish().unwrap(), Progress::Valid);
        stream.clone_dtoh(&sums).unwrap()
    }
}

#[test]
fn kernels_read_indices_images_and_random_numbers_where_data_live_on_a_gpu() {
    needs_gpu!();
    let seed = fresh_seed();
    let points = Cloud::Clusters.points(20_000, seed);
    let others = Cloud::Clusters.points(7_000, seed + 1);
    let random = Random::new(seed, 5);
    for vectors in BOXES {
        let images = Images::of_vectors(vectors.map(Option::unwrap_or_default));
        let builder = Engine::builder(1.0).box_vectors(vectors);
        let (mut plain, a) = engine_with(builder, Device::Cpu, &points);
        let b = plain.add_point_set(&others).unwrap();
        plain.find_neighbors().unwrap();
        let alone = expected(&plain, random, [a; 2]);
        let across = expected(&plain, random, [a, b]);
        for strategy in [Strategy::Flat, Strategy::ChildAggregated] {
            let builder = DeviceEngine::builder(1.0).box_vectors(vectors);
            let mut engine = builder.strategy(strategy).on_gpu(0).unwrap();
            let a = OnDevice::new(&mut engine, &points);
            let b = OnDevice::new(&mut engine, &others);
            let mut helper = CpuHelper::new(Policy::Fixed { theta: 12.0 }, 2).unwrap();
            for (sources, expected) in [(&a, &alone), (&b, &across)] {
                for both in [false, true] {
                    let what = format!("seed {seed}, {vectors:?}, {strategy:?}, both: {both}");
                    let mut with = both.then_some(&mut helper);
                    let kernel = Drawn::<true> { random, images };
                    let found = a.sums(&mut engine, with.as_deref_mut(), &kernel, sources);
                    let expected_drawn = expected.iter().flat_map(|sums| sums.0);
                    assert!(found.into_iter().eq(expected_drawn), "{what}: drawn");
                    let kernel = Mirrored { random, images };
                    let found = a.sums(&mut engine, with, &kernel, sources);
                    let expected_mirrored = expected.iter().flat_map(|sums| sums.1);
                    assert!(found.into_iter().eq(expected_mirrored), "{what}: mirrored");
                }
            }
        }
    }
}

/// The index of a source.
struct Named;

#[nearfield::pair_kernel]
impl PairKernel for Named {
    type Target = ();
    type Source = u32;
    type Output = f32;

    fn pair(&self, _: Pair, (): (), j: u32) -> f32 {
        j as f32
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]
fn fields_on_a_gpu_that_do_not_fit_the_kernel_are_refused_by_name() {
    needs_gpu!();
    let mut engine = DeviceEngine::builder(1.0).on_gpu(0).unwrap();
    let points = OnDevice::new(&mut engine, &Cloud::Uniform.points(100, 1));
    let mut sums = (engine.stream()).alloc_zeros::<f32>(points.points).unwrap();
    let field = |stride| DeviceField::new(points.positions.as_view(), stride);
    // Each has too many channels, a stride shorter than its channels, or too few numbers.
    for fields in [
        vec![DeviceField::indices(), DeviceField::indices()],
        vec![field(1), DeviceField::indices()],
        vec![field(3).channels(2)],
        vec![field(3).channels(0)],
        vec![DeviceField::indices().channels(0)],
        vec![DeviceField::indices().channels(2)],
        vec![field(0)],
        vec![field(4).channels(1)],
        vec![field(usize::MAX), field(usize::MAX)],
        vec![field(usize::MAX)],
        vec![],
    ] {
        let what = format!("{fields:?}");
        let traversal = engine.traverse(&Named, points.set, points.set);
        let run = traversal.sources(fields).run_into(&mut sums.as_view_mut());
        let error = run.unwrap_err().to_string();
        assert!(error.contains("fields of sources"), "{what}: {error}");
    }
    for fields in [
        vec![DeviceField::indices()],
        vec![field(0).channels(0), DeviceField::indices()],
    ] {
        let traversal = engine.traverse(&Named, points.set, points.set);
        let run = traversal.sources(fields).run_into(&mut sums.as_view_mut());
        run.unwrap();
    }
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
}
