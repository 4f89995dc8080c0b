//! A few radii far larger than all others, which a GPU keeps out of the cells of these: lists,
//! counts, geometry and sums are those of the CPU.

use crate::{
    GPU, assert_close, assert_on_gpu,
    common::as_vectors,
    device_filters::{lists, values},
    device_parts::named,
    engine_with, fresh_seed, needs_gpu,
    on_gpu::{start, upload},
};
use nearfield::{
    device::DeviceEngine,
    kernels::SphDensity,
    lists::{NeighborPair, PairGeometry},
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};

const RULES: [RadiusRule; 3] = [
    RadiusRule::Gather,
    RadiusRule::Scatter,
    RadiusRule::Symmetric,
];

/// The largest radius; the cloud fills a box of 40.
const LARGEST: f32 = 15.0;

/// Radii up to 2, but for some of 5 to 15: few enough in most steps, and sometimes none.
fn draw_radii(count: usize, step: u64, random: &mut Random) -> Vec<f32> {
    let mut radii: Vec<f32> = (0..count)
        .map(|_| random.between(0.5, 2.0) as f32)
        .collect();
    for _ in 0..[3, 0, 1, 40][step as usize % 4] {
        radii[random.below(count as u64) as usize] = random.between(5.0, 15.0) as f32;
    }
    radii
}

fn boxes() -> [[Option<f64>; 3]; 2] {
    [[None; 3], [Some(40.0), Some(41.0), None]]
}

#[test]
fn few_large_radii_of_host_data_give_what_the_cpu_finds() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (rule, periodic) in RULES
        .iter()
        .flat_map(|&rule| boxes().map(|one| (rule, one)))
    {
        for (kind, nearest) in [
            (ListKind::Full, None),
            (ListKind::Half, None),
            (ListKind::Full, Some(9)),
        ] {
            if kind == ListKind::Half && rule != RadiusRule::Symmetric {
                continue;
            }
            let mut points = Cloud::Lattice.points(60_000, 3);
            let mut engines = [GPU, Device::Cpu].map(|device| {
                let builder = Engine::builder(LARGEST).periodic(periodic).radii(rule);
                let builder = match nearest {
                    Some(k) => builder.nearest(k),
                    None => builder.list_order(ListOrder::Ascending).lists(kind),
                };
                engine_with(builder, device, &points)
            });
            for step in 0..4u64 {
                // Some leave the box.
                drift(&mut points, 0.6, step);
                let count = points.len();
                let radii = draw_radii(count, step, &mut random);
                let mask: Vec<bool> = (0..count).map(|_| random.unit() < 0.5).collect();
                let mass = vec![1.5f32; count];
                let [on_gpu, on_cpu] = engines.each_mut().map(|(engine, set)| {
                    engine.update(*set, &points).unwrap();
                    engine.set_radii(*set, &radii).unwrap();
                    if step > 1 {
                        engine.set_target_mask(*set, &mask).unwrap();
                    }
                    engine.find_neighbors().unwrap();
                    let lists = as_vectors(engine.neighbors(*set, *set).unwrap());
                    let counts = engine.count_neighbors(*set, *set).unwrap();
                    let mut geometry = PairGeometry::default();
                    engine.pair_geometry(*set, *set, &mut geometry).unwrap();
                    let pairs_of = |i: usize| {
                        let pair =
                            |pair: NeighborPair| (pair.index, pair.image, pair.d.map(f64::to_bits));
                        let mut pairs: Vec<_> = geometry.of(i).map(pair).collect();
                        pairs.sort_unstable();
                        pairs
                    };
                    let pairs: Vec<_> = (0..count).map(pairs_of).collect();
                    let kernel = SphDensity::with_support(LARGEST);
                    let mut sums = vec![-1.0f32; count];
                    let traversal = engine.traverse(&kernel, *set, *set).sources(&mass);
                    traversal.run_into(&mut sums).unwrap();
                    (lists, counts, pairs, sums)
                });
                assert_on_gpu(&engines[0].0);
                let what = format!("{rule}, {kind:?}, {nearest:?}, step {step}, seed {seed}");
                assert!(on_gpu.0 == on_cpu.0, "lists by {what}");
                assert!(on_gpu.1 == on_cpu.1, "counts by {what}");
                assert!(on_gpu.2 == on_cpu.2, "geometry by {what}");
                assert_close(&on_gpu.3, &on_cpu.3, 1e-5, 1e-6, &what);
            }
        }
    }
}

#[test]
fn few_large_radii_of_device_data_give_what_the_cpu_finds() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (rule, periodic) in RULES
        .iter()
        .flat_map(|&rule| boxes().map(|one| (rule, one)))
    {
        let mut points = Cloud::Lattice.points(60_000, 3);
        let on_gpu = DeviceEngine::builder(f64::from(LARGEST)).periodic(periodic);
        let mut on_gpu = start(on_gpu.radii(rule).list_order(ListOrder::Ascending));
        let on_cpu = Engine::builder(LARGEST).periodic(periodic).radii(rule);
        let mut on_cpu = on_cpu.list_order(ListOrder::Ascending).build().unwrap();
        let sent = upload(on_gpu.stream(), &points);
        let of_gpu = on_gpu.add_point_set(&sent.as_view()).unwrap();
        let of_cpu = on_cpu.add_point_set(&points).unwrap();
        for step in 0..4u64 {
            drift(&mut points, 0.6, step);
            let radii = draw_radii(points.len(), step, &mut random);
            let sent = upload(on_gpu.stream(), &points);
            on_gpu.update(of_gpu, &sent.as_view()).unwrap();
            on_gpu.set_radii(of_gpu, &radii).unwrap();
            on_cpu.update(of_cpu, &points).unwrap();
            on_cpu.set_radii(of_cpu, &radii).unwrap();
            let what = format!("{rule}, step {step}, seed {seed}");
            on_cpu.find_neighbors().unwrap();
            let expected = as_vectors(on_cpu.neighbors(of_cpu, of_cpu).unwrap());
            assert!(lists(&mut on_gpu, of_gpu) == expected, "lists by {what}");
            let (counts, sums) = values(&mut on_gpu, of_gpu);
            let expected_counts = on_cpu.count_neighbors(of_cpu, of_cpu).unwrap();
            assert!(counts == expected_counts, "counts by {what}");
            let mut expected_sums = vec![-1.0f32; points.len()];
            let mass = vec![1.5f32; points.len()];
            let kernel = SphDensity::with_support(2.0);
            let traversal = on_cpu.traverse(&kernel, of_cpu, of_cpu).sources(&mass);
            traversal.run_into(&mut expected_sums).unwrap();
            for sums in &sums {
                assert_close(sums, &expected_sums, 1e-5, 1e-6, &what);
            }
            // Also by threads, and some of those with the largest radii.
            let mut asked: Vec<i64> = (0..20_000).collect();
            let large = (0..points.len()).filter(|&k| radii[k] > 4.0).take(5);
            asked.extend(large.map(|k| k as i64));
            let found = named(&mut on_gpu, [of_gpu; 2], &asked);
            let of_asked = asked.iter().map(|&k| expected[k as usize].clone());
            assert!(found == of_asked.collect::<Vec<_>>(), "named by {what}");
        }
    }
}
