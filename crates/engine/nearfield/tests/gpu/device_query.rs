//! Free positions on the device have the neighbours that the CPU backend finds.

use crate::{
    common::as_vectors,
    fresh_seed, needs_gpu,
    on_gpu::{FromHost, start, upload},
};
use nearfield::{
    ListKind, PointSetId,
    device::{DeviceEngine, DeviceEngineBuilder, Progress},
    lists::QueryScratch,
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};

/// Queries until the lists are valid; returns them sorted, and how often it was repeated.
fn query(
    engine: &mut DeviceEngine,
    positions: &[[f32; 3]],
    radii: Option<&[f32]>,
    sources: PointSetId,
) -> (Vec<Vec<u32>>, usize) {
    let on_device = upload(engine.stream(), positions);
    for repeats in 0..5 {
        let queried = match radii {
            None => engine.query(&on_device.as_view(), sources),
            Some(radii) => engine.query_with_radii(&on_device.as_view(), radii, sources),
        };
        let queried = queried.unwrap();
        if engine.finish().unwrap() == Progress::Repeat {
            continue;
        }
        let lists = engine.neighbors(queried, sources).unwrap();
        let start = engine.stream().clone_dtoh(&lists.start).unwrap();
        let count = engine.stream().clone_dtoh(&lists.count).unwrap();
        let entries = engine.stream().clone_dtoh(&lists.entries).unwrap();
        let list = |(&start, &count): (&u64, &u32)| {
            let mut list = entries[start as usize..start as usize + count as usize].to_vec();
            list.sort_unstable();
            list
        };
        return (start.iter().zip(&count).map(list).collect(), repeats);
    }
    panic!("the lists never were valid");
}

/// Queries of changing positions in a cloud that moves.
fn check(of_device: DeviceEngineBuilder, of_cpu: nearfield::Builder) {
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut points = Cloud::Lattice.points(40_000, seed);
    let mut on_device = start(of_device.lists(ListKind::Half));
    let of_cpu = of_cpu.device(Device::Cpu).list_order(ListOrder::Ascending);
    let mut on_cpu = of_cpu.build().unwrap();
    let on_device_set = on_device.add(&points);
    let on_cpu_set = on_cpu.add_point_set(&points).unwrap();
    let mut repeated = 0;
    for step in 0..4 {
        drift(&mut points, 0.1, step);
        on_device.put(on_device_set, &points);
        on_cpu.update(on_cpu_set, &points).unwrap();
        // Few, which get a warp each, and many, in other places each time.
        for count in [300, 20_000] {
            let mut positions = Cloud::Uniform.points(count, seed + step);
            positions.iter_mut().for_each(|at| at[0] *= 0.5);
            let (found, repeats) = query(&mut on_device, &positions, None, on_device_set);
            let expected = as_vectors(&on_cpu.query(&positions, on_cpu_set).unwrap());
            assert!(found == expected, "step {step}, {count} positions");
            repeated += repeats;
        }
        // Lists of the set are as without queries.
        on_device.find(on_device_set, on_device_set);
    }
    // Only the first lists of a length have no room.
    assert!(repeated <= 2, "{repeated}");
    assert_eq!(on_device.point_sets(), 2);
}

#[test]
fn free_positions_with_radii_find_what_the_cpu_finds() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let points = Cloud::Lattice.points(20_000, seed);
    let mut draw = |count: usize| -> Vec<f32> {
        let radius = |_| random.between(0.4, 2.0) as f32;
        (0..count).map(radius).collect()
    };
    for rule in [
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ] {
        let mut on_device = start(DeviceEngine::builder(2.0).radii(rule));
        let of_cpu = Engine::builder(2.0f32).radii(rule).device(Device::Cpu);
        let mut on_cpu = of_cpu.list_order(ListOrder::Ascending).build().unwrap();
        let on_device_set = on_device.add(&points);
        let on_cpu_set = on_cpu.add_point_set(&points).unwrap();
        let radii = draw(points.len());
        on_device.set_radii(on_device_set, &radii).unwrap();
        on_cpu.set_radii(on_cpu_set, &radii).unwrap();
        for count in [200, 18_000, 100] {
            let positions = Cloud::Uniform.points(count, seed);
            let radii = draw(count);
            let radii = rule.needs_targets().then_some(&radii[..]);
            let (found, _) = query(&mut on_device, &positions, radii, on_device_set);
            let mut scratch = QueryScratch::default();
            let radii = radii.map(Into::into);
            let expected = on_cpu.query_into(&positions, radii, on_cpu_set, &mut scratch);
            let expected = as_vectors(expected.unwrap());
            assert!(found == expected, "{rule}, {count} positions");
        }
    }
}

#[test]
fn free_positions_in_an_open_domain_find_what_the_cpu_finds() {
    needs_gpu!();
    check(DeviceEngine::builder(2.0), Engine::builder(2.0));
}

#[test]
fn free_positions_in_a_periodic_box_find_what_the_cpu_finds() {
    needs_gpu!();
    let lengths = [Some(40.0), None, Some(36.0)];
    check(
        DeviceEngine::builder(2.0).periodic(lengths),
        Engine::builder(2.0).periodic(lengths),
    );
}

#[test]
fn positions_that_cannot_be_used_leave_the_engine_as_it_was() {
    needs_gpu!();
    let points = Cloud::Lattice.points(5_000, 1);
    let mut engine = start(DeviceEngine::builder(2.0));
    let set = engine.add(&points);
    let bad = upload(engine.stream(), &[[0.0, f32::NAN, 0.0]]);
    assert!(engine.query(&bad.as_view(), set).is_err());
    assert_eq!(engine.point_sets(), 1);
    let (found, _) = query(&mut engine, &points[..10], None, set);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(k, list)| list.contains(&(k as u32)))
    );
    let queried = engine.query(&bad.as_view(), set).unwrap();
    assert!(engine.finish().is_err(), "found when it is looked at");
    // Once it was removed, the next query makes another.
    engine.remove_point_set(queried).unwrap();
    let (again, _) = query(&mut engine, &points[..10], None, set);
    assert_eq!(again, found);
    // A query far away from all points finds nothing.
    let (far, _) = query(&mut engine, &[[1e6; 3]], None, set);
    assert_eq!(far, [[0u32; 0]]);
}
