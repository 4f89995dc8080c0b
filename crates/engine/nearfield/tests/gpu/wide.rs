//! A few radii far larger than all others, which a GPU keeps out of the cells of these: lists,
//! counts, geometry and sums are those of the CPU.

use crate::{
    GPU, assert_close, assert_on_gpu,
    common::as_vectors,
    device_filters::{lists, values},
    device_parts::named,
    engine_with, fresh_seed, needs_gpu,
    on_gpu::{FromHost, start, upload},
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

/// A whole lattice, and enough for cells of their own, as tests of the choice say
/// (`backend/gpu/bulk.rs`).
const POINTS: usize = 58 * 58 * 58;

/// A box that they fill, and the largest radius where it is open and where it is periodic.
const BOXES: [([Option<f64>; 3], f32); 2] =
    [([None; 3], 50.0), ([Some(59.0), Some(60.0), None], 27.0)];

/// Steps, in which so many radii are large.
const LARGE: [usize; 4] = [3, 0, 12, 4];

/// Radii up to 1.2, but for some that are large.
fn draw_radii(largest: f32, large: usize, random: &mut Random) -> Vec<f32> {
    let mut radii: Vec<f32> = (0..POINTS)
        .map(|_| random.between(0.4, 1.2) as f32)
        .collect();
    for _ in 0..large {
        let radius = f64::from(largest) * random.between(0.4, 1.0);
        radii[random.below(POINTS as u64) as usize] = radius as f32;
    }
    radii
}

fn give_from_device(engine: &mut DeviceEngine, set: PointSetId, radii: &[f32]) {
    let sent = engine.stream().clone_htod(radii).unwrap();
    engine.set_radii_from_device(set, &sent.as_view()).unwrap();
}

/// Index, image and displacement of a pair.
type Seen = (u32, [i32; 3], [u64; 3]);

/// The pairs of every target with their images and displacements, by index and image.
fn pairs(engine: &mut Engine, set: PointSetId) -> Vec<Vec<Seen>> {
    let mut geometry = PairGeometry::default();
    engine.pair_geometry(set, set, &mut geometry).unwrap();
    let pair = |pair: NeighborPair| (pair.index, pair.image, pair.d.map(f64::to_bits));
    (0..POINTS)
        .map(|i| {
            let mut pairs: Vec<_> = geometry.of(i).map(pair).collect();
            pairs.sort_unstable();
            pairs
        })
        .collect()
}

#[test]
fn few_large_radii_of_host_data_give_what_the_cpu_finds() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let [gather, scatter, symmetric] = RULES;
    let (full, half) = (ListKind::Full, ListKind::Half);
    for (rule, kind, nearest) in [
        (gather, full, None),
        (scatter, full, None),
        (symmetric, full, None),
        (symmetric, half, None),
        (symmetric, full, Some(9)),
    ] {
        for (periodic, largest) in BOXES {
            let mut points = Cloud::Lattice.points(POINTS, 3);
            let mut engines = [GPU, Device::Cpu].map(|device| {
                let builder = Engine::builder(largest).periodic(periodic).radii(rule);
                let builder = match nearest {
                    Some(k) => builder.nearest(k),
                    None => builder.list_order(ListOrder::Ascending).lists(kind),
                };
                engine_with(builder, device, &points)
            });
            for (step, large) in LARGE.into_iter().enumerate() {
                // Some leave the box.
                drift(&mut points, 0.6, step as u64);
                let radii = draw_radii(largest, large, &mut random);
                let mask: Vec<bool> = (0..POINTS).map(|_| random.unit() < 0.5).collect();
                let mass = vec![1.5f32; POINTS];
                let masked = step == 2 && kind == full;
                let [on_gpu, on_cpu] = engines.each_mut().map(|(engine, set)| {
                    engine.update(*set, &points).unwrap();
                    engine.set_radii(*set, &radii).unwrap();
                    if masked {
                        engine.set_target_mask(*set, &mask).unwrap();
                    }
                    engine.find_neighbors().unwrap();
                    let lists = as_vectors(engine.neighbors(*set, *set).unwrap());
                    let counts = engine.count_neighbors(*set, *set).unwrap();
                    let pairs = (step == 2).then(|| pairs(engine, *set));
                    let kernel = SphDensity::with_support(largest);
                    let mut sums = vec![-1.0f32; POINTS];
                    let traversal = engine.traverse(&kernel, *set, *set).sources(&mass);
                    traversal.run_into(&mut sums).unwrap();
                    (lists, counts, pairs, sums)
                });
                assert_on_gpu(&engines[0].0);
                let what = format!("{rule}, {kind:?}, {nearest:?}, step {step}, seed {seed}");
                assert!(on_gpu.0 == on_cpu.0, "lists by {what}");
                assert!(on_gpu.1 == on_cpu.1, "counts by {what}");
                assert!(on_gpu.2 == on_cpu.2, "geometry by {what}");
                assert_close(&on_gpu.3, &on_cpu.3, 5e-5, 1e-6, &what);
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
    for (rule, (periodic, largest)) in RULES
        .into_iter()
        .flat_map(|rule| BOXES.map(|one| (rule, one)))
    {
        let mut points = Cloud::Lattice.points(POINTS, 3);
        let on_gpu = DeviceEngine::builder(f64::from(largest)).periodic(periodic);
        let mut on_gpu = start(on_gpu.radii(rule).list_order(ListOrder::Ascending));
        let on_cpu = Engine::builder(largest).periodic(periodic).radii(rule);
        let mut on_cpu = on_cpu.list_order(ListOrder::Ascending).build().unwrap();
        let sent = upload(on_gpu.stream(), &points);
        let of_gpu = on_gpu.add_point_set(&sent.as_view()).unwrap();
        let of_cpu = on_cpu.add_point_set(&points).unwrap();
        for (step, large) in LARGE.into_iter().enumerate() {
            drift(&mut points, 0.6, step as u64);
            let radii = draw_radii(largest, large, &mut random);
            let sent = upload(on_gpu.stream(), &points);
            on_gpu.update(of_gpu, &sent.as_view()).unwrap();
            if step % 2 == 0 {
                on_gpu.set_radii(of_gpu, &radii).unwrap();
            } else {
                give_from_device(&mut on_gpu, of_gpu, &radii);
            }
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
                assert_close(sums, &expected_sums, 5e-5, 1e-6, &what);
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

/// The device counts radii that come from its arrays, and the host learns of it by `finish`.
#[test]
fn large_radii_from_the_device_choose_the_cells_that_those_from_the_host_do() {
    needs_gpu!();
    let points = Cloud::Lattice.points(POINTS, 4);
    let mut random = Random::new(11);
    // The engine that is told by the device, and the one that is told by the host.
    let engines = [(); 2].map(|()| {
        let mut engine = start(DeviceEngine::builder(50.0).radii(RadiusRule::Symmetric));
        let set = engine.add(&points);
        (engine, set)
    });
    let [(mut told, of_told), (mut other, of_other)] = engines;
    let on_cpu = Engine::builder(50.0f32).radii(RadiusRule::Symmetric);
    let mut on_cpu = on_cpu.list_order(ListOrder::Ascending).build().unwrap();
    let of_cpu = on_cpu.add_point_set(&points).unwrap();
    // More than kernels compare one by one come while there are cells for a few.
    let few = draw_radii(40.0, 3, &mut random);
    let mut many = few.clone();
    for radius in many.iter_mut().step_by(60) {
        *radius = 3.0;
    }
    for (step, (radii, repeats)) in [(&few, 1), (&few, 0), (&many, 1), (&few, 1)]
        .into_iter()
        .enumerate()
    {
        give_from_device(&mut told, of_told, radii);
        other.set_radii(of_other, radii).unwrap();
        on_cpu.set_radii(of_cpu, radii).unwrap();
        on_cpu.find_neighbors().unwrap();
        let found = told.find(of_told, of_told);
        // The storage for lists may have grown too.
        assert!(found >= repeats, "step {step}: {found} repeats");
        let found = lists(&mut told, of_told);
        assert!(found == lists(&mut other, of_other), "step {step}");
        let expected = on_cpu.neighbors(of_cpu, of_cpu).unwrap();
        let same = found.iter().zip(expected.iter()).all(|(found, expected)| {
            let mut found = found.clone();
            found.sort_unstable();
            found == *expected
        });
        assert!(same, "step {step}");
    }
}
