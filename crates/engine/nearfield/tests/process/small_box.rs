//! A box much smaller than the radius: every point has millions of images as neighbours.

use crate::system::{alone, peak_bytes, with_memory};
use nearfield::{
    Builder, ListKind, ListOrder, PairKernel, lists::PairGeometry, prelude::*, report::SimdLevel,
};
use std::ops::ControlFlow;

/// Number of neighbours.
#[derive(Debug)]
struct Count;

impl PairKernel for Count {
    type Target = ();
    type Source = f32;
    type Output = f32;

    fn pair(&self, _: Pair, (): (), one: f32) -> f32 {
        one
    }
}

/// Images of one point in a box of side 1 within a radius, the point itself left out.
fn images(radius: i64) -> u64 {
    let r2 = radius * radius;
    let mut count = 0u64;
    for z in -radius..=radius {
        for y in -radius..=radius {
            let rest = r2 - y * y - z * z;
            if rest >= 0 {
                count += 2 * (rest as f64).sqrt().floor() as u64 + 1;
            }
        }
    }
    count - 1
}

const MEGABYTE: u64 = 1 << 20;

#[test]
fn one_point_in_a_box_120_times_smaller_than_the_radius_takes_memory_for_one_list() {
    let name = "small_box::\
        one_point_in_a_box_120_times_smaller_than_the_radius_takes_memory_for_one_list";
    alone(name, || {
        let expected = images(120);
        assert!(expected > 7_000_000);
        let boxes = || [Some(1.0); 3];
        for precision in [Precision::Single, Precision::Double] {
            let builder = Engine::builder(120.0).precision(precision);
            let builder = builder.device(Device::Cpu).threads(1).periodic(boxes());
            let pairs = with_memory(400 * MEGABYTE, || {
                let mut engine = builder.build().unwrap();
                let set = engine.add_point_set(&[[0.25f32, 0.5, 0.75]]).unwrap();
                let counts = engine.count_neighbors(set, set).unwrap();
                assert_eq!(u64::from(counts[0]), expected);
                engine.find_neighbors().unwrap();
                let lists = engine.neighbors(set, set).unwrap();
                assert!(lists.of(0).iter().all(|&source| source == 0));
                lists.pairs()
            });
            assert_eq!(pairs, expected);
        }
        // A second copy of the list would take 28 more.
        assert!(peak_bytes() < 128 * MEGABYTE, "{} bytes", peak_bytes());
    });
}

#[test]
fn a_limit_is_kept_while_counting() {
    alone("small_box::a_limit_is_kept_while_counting", || {
        let builder = Engine::builder(200.0).device(Device::Cpu).threads(1);
        let builder = builder.periodic([Some(1.0); 3]).memory_limit(64 * MEGABYTE);
        let error = with_memory(96 * MEGABYTE, || {
            let mut engine = builder.build().unwrap();
            engine.add_point_set(&[[0.5f32; 3]]).unwrap();
            engine.find_neighbors().unwrap_err()
        });
        let text = error.to_string();
        assert!(
            matches!(error.kind(), ErrorKind::MemoryLimit { .. }),
            "{text}"
        );
    });
}

/// Everything that pairs can be asked for gives the same in a box so small that candidates come in
/// batches, whatever the level, the threads and the kind of lists.
#[test]
fn batches_of_images_lose_nothing_and_double_nothing() {
    let radius = 30;
    // Points that lie outside the box too: their images count from where they are.
    let points = [[0.0, 0.0, 0.0], [0.5, 0.25, 0.125], [3.0, -2.0, 0.5f32]];
    let double = points.map(|at| at.map(f64::from));
    // Every point of the three sees the images of itself and of the two others.
    let expected = brute_force(&double, f64::from(radius));
    for level in [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512] {
        let settings = [
            (1, Precision::Single),
            (2, Precision::Single),
            (1, Precision::Double),
        ];
        for (threads, precision) in settings {
            let builder = Engine::builder(radius).precision(precision);
            let builder = builder.device(Device::Cpu).threads(threads).simd(level);
            let builder = builder.periodic([Some(1.0); 3]);
            check(&builder, &points, &expected);
        }
    }
}

/// Counts of pairs (target, source).
fn brute_force(points: &[[f64; 3]; 3], radius: f64) -> [[u64; 3]; 3] {
    let reach = radius as i64 + 6;
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let d: [f64; 3] = std::array::from_fn(|axis| points[j][axis] - points[i][axis]);
            let mut count = 0;
            for z in -reach..=reach {
                for y in -reach..=reach {
                    for x in -reach..=reach {
                        let s = [d[0] + x as f64, d[1] + y as f64, d[2] + z as f64];
                        let near = s[0] * s[0] + s[1] * s[1] + s[2] * s[2] <= radius * radius;
                        count += u64::from(near && !(i == j && [x, y, z] == [0; 3]));
                    }
                }
            }
            count
        })
    })
}

fn check(builder: &Builder, points: &[[f32; 3]; 3], expected: &[[u64; 3]; 3]) {
    let of = |list: &[u32]| -> [u64; 3] {
        std::array::from_fn(|j| list.iter().filter(|&&source| source as usize == j).count() as u64)
    };
    let mut engine = builder.clone().build().unwrap();
    let set = engine.add_point_set(points).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine
        .take_neighbors(set, set, NeighborLists::default())
        .unwrap();
    for i in 0..3 {
        assert_eq!(of(lists.of(i)), expected[i], "list of {i}");
    }
    let counts = engine.count_neighbors(set, set).unwrap();
    let sums = expected.map(|row| row.iter().sum::<u64>());
    assert_eq!(counts.map_to(), sums, "counts");
    // Each pair once.
    let all: u64 = sums.iter().sum();
    let half = builder
        .clone()
        .lists(ListKind::Half)
        .list_order(ListOrder::Ascending);
    for builder in [half.clone(), half.memory_limit(MEGABYTE << 10)] {
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(points).unwrap();
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        assert_eq!(2 * lists.pairs(), all, "half lists");
        assert!((0..3).all(|i| lists.of(i).is_sorted()));
    }
    // Without storing lists, and with what belongs to every pair.
    let fields = &[1.0f32; 3];
    let values = engine
        .traverse(&Count, set, set)
        .sources(fields)
        .run()
        .unwrap();
    assert_eq!([0, 1, 2].map(|i| values[i] as u64), sums, "a traversal");
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    assert_eq!(geometry.lists().pairs(), all, "geometry");
    let mut near = 0;
    engine
        .for_each_neighbor(set, set, 1, |_, _| near += 1)
        .unwrap();
    assert_eq!(near, sums[1], "the neighbours of one point");
    assert_eq!(
        engine.query(points, set).unwrap().pairs(),
        all + 3,
        "a query"
    );
    let mut chunked = 0;
    let mut chunks = engine.list_chunks(set, set).unwrap();
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        chunked += chunk.pairs();
    }
    assert_eq!(chunked, all, "chunks");
    let batched = std::sync::atomic::AtomicU64::new(0);
    let flow = engine.for_each_batch(set, set, |batch| {
        let pairs = batch.sources.len() as u64;
        batched.fetch_add(pairs, std::sync::atomic::Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    assert_eq!(batched.into_inner(), all, "batches");
}

/// Counts as an array.
trait MapTo {
    fn map_to(&self) -> [u64; 3];
}

impl MapTo for Vec<u32> {
    fn map_to(&self) -> [u64; 3] {
        std::array::from_fn(|i| u64::from(self[i]))
    }
}
