//! Radii, types, molecules and targets from arrays of the GPU do what the same data from the host
//! do, and what cannot be used is refused in the same words.

use crate::{
    device_filters::{Data, lists},
    fresh_seed, needs_gpu,
    on_gpu::{FromHost, start},
};
use nearfield::{
    PointSetId,
    device::{DeviceEngine, Progress},
    error::{cpu, gpu},
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};

/// Gives a set the data of a step from arrays of the GPU.
fn give(engine: &mut DeviceEngine, set: PointSetId, rule: RadiusRule, data: &Data) {
    let stream = engine.stream().clone();
    if rule == RadiusRule::Uniform {
        let types: Vec<i64> = data.types.iter().map(|&of| of.into()).collect();
        let types = stream.clone_htod(&types).unwrap();
        engine.set_types_from_device(set, &types.as_view()).unwrap();
    } else {
        let radii = stream.clone_htod(&data.radii).unwrap();
        engine.set_radii_from_device(set, &radii.as_view()).unwrap();
    }
    let molecules = stream.clone_htod(&data.molecules).unwrap();
    let molecules = molecules.as_view();
    engine.set_molecules_from_device(set, &molecules).unwrap();
    let mask: Vec<u8> = data
        .mask
        .iter()
        .map(|&chosen| 5 * u8::from(chosen))
        .collect();
    let mask = stream.clone_htod(&mask).unwrap();
    engine
        .set_target_mask_from_device(set, &mask.as_view())
        .unwrap();
}

#[test]
fn data_from_the_device_are_those_from_the_host() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let rules = [
        RadiusRule::Uniform,
        RadiusRule::Gather,
        RadiusRule::Scatter,
        RadiusRule::Symmetric,
    ];
    for (rule, count) in rules.into_iter().zip([40_000, 6_000, 40_000, 40_000]) {
        let mut points = Cloud::Lattice.points(count, 5);
        let periodic = [Some(40.0), None, Some(41.0)];
        let ascending = ListOrder::Ascending;
        let mut on_gpu = DeviceEngine::builder(2.0).periodic(periodic).radii(rule);
        let mut on_cpu = Engine::builder(2.0f32).periodic(periodic).radii(rule);
        if rule == RadiusRule::Uniform {
            let cutoffs = [[2.0, 1.0], [1.0, 0.0]];
            (on_gpu, on_cpu) = (on_gpu.cutoffs(&cutoffs), on_cpu.cutoffs(&cutoffs));
        }
        let mut on_gpu = start(on_gpu.list_order(ascending));
        let mut on_cpu = on_cpu.list_order(ascending).build().unwrap();
        let (of_gpu, of_cpu) = (on_gpu.add(&points), on_cpu.add_point_set(&points).unwrap());
        for step in 0..3u64 {
            drift(&mut points, 0.2, step);
            points.truncate(count - 1_000 * step as usize);
            let data = Data::draw(points.len(), 0.3, &mut random);
            on_gpu.put(of_gpu, &points);
            give(&mut on_gpu, of_gpu, rule, &data);
            on_cpu.update(of_cpu, &points).unwrap();
            match rule {
                RadiusRule::Uniform => on_cpu.set_types(of_cpu, &data.types).unwrap(),
                _ => on_cpu.set_radii(of_cpu, &data.radii).unwrap(),
            }
            on_cpu.set_molecules(of_cpu, &data.molecules).unwrap();
            on_cpu.set_target_mask(of_cpu, &data.mask).unwrap();
            on_cpu.find_neighbors().unwrap();
            let expected = on_cpu.neighbors(of_cpu, of_cpu).unwrap();
            let found = lists(&mut on_gpu, of_gpu);
            let same = found.iter().eq(expected.iter());
            assert!(same, "step {step}, {rule}, seed {seed}");
        }
    }
}

#[test]
fn data_from_the_device_that_cannot_be_used_are_found_by_finish() {
    needs_gpu!();
    let points = Cloud::Lattice.points(1_000, 6);
    let mut engine = start(DeviceEngine::builder(2.0).radii(RadiusRule::Symmetric));
    let set = engine.add(&points);
    let stream = engine.stream().clone();
    let mut radii = vec![1.0f32; 1_000];
    (radii[17], radii[900]) = (f32::NAN, 2.5);
    let good = stream.clone_htod(&vec![1.5f32; 1_000]).unwrap();
    let bad = stream.clone_htod(&radii).unwrap();
    let short = engine.set_radii_from_device(set, &good.slice(1..));
    let text = short.unwrap_err().to_string();
    assert!(text.contains("radii of points: 999 values"), "{text}");
    engine.set_radii_from_device(set, &bad.as_view()).unwrap();
    engine.find_neighbors(set, set).unwrap();
    let refused = engine.finish().unwrap_err();
    let ErrorKind::Radii { source, .. } = refused.kind() else {
        panic!("{refused}");
    };
    let cpu::ErrorKind::PointRadius {
        index,
        value,
        count,
        ..
    } = source.kind()
    else {
        panic!("{refused}");
    };
    assert!((*index, *count) == (17, 2) && value.get().is_nan());
    // Neither these radii nor those from before count.
    let text = engine.find_neighbors(set, set).unwrap_err().to_string();
    assert!(text.contains("has no radii for its 1000 points"), "{text}");
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    engine.set_radii_from_device(set, &good.as_view()).unwrap();
    let from_device = lists(&mut engine, set);
    engine.set_radii(set, &[1.5; 1_000]).unwrap();
    assert!(lists(&mut engine, set) == from_device);

    let mut engine = start(DeviceEngine::builder(1.0).cutoffs(&[[1.0, 1.0], [1.0, 0.5]]));
    let set = engine.add(&points);
    let types = engine.stream().clone_htod(&vec![2i32; 1_000]).unwrap();
    engine.set_types_from_device(set, &types.as_view()).unwrap();
    let text = engine.finish().unwrap_err().to_string();
    assert!(text.contains("point 0 has the type 2"), "{text}");
    engine.set_types(set, &[1u8; 1_000]).unwrap();
    let molecules: Vec<i64> = (0..1_000).map(|point| 3 - point).collect();
    let molecules = engine.stream().clone_htod(&molecules).unwrap();
    let molecules = molecules.as_view();
    engine.set_molecules_from_device(set, &molecules).unwrap();
    let refused = engine.finish().unwrap_err();
    let ErrorKind::OnDevice { source, .. } = refused.kind() else {
        panic!("{refused}");
    };
    let numbers = source.kind();
    assert!(matches!(
        numbers,
        gpu::ErrorKind::PointNumbers {
            first: 4,
            count: 996,
            ..
        }
    ));
    let text = engine.find_neighbors(set, set).unwrap_err().to_string();
    assert!(text.contains("exclusions"), "{text}");
}

/// What was refused is told of data that are still there, and of no others.
#[test]
fn refused_data_that_were_replaced_are_no_error_and_what_replaced_them_stays() {
    needs_gpu!();
    let points = Cloud::Lattice.points(1_000, 6);
    let mut engine = start(DeviceEngine::builder(2.0).radii(RadiusRule::Symmetric));
    let set = engine.add(&points);
    let stream = engine.stream().clone();
    let mut radii = vec![1.5f32; 1_000];
    radii[900] = 2.5;
    let bad = stream.clone_htod(&radii).unwrap();
    engine.set_radii(set, &[1.5; 1_000]).unwrap();
    let expected = lists(&mut engine, set);
    engine.set_radii_from_device(set, &bad.as_view()).unwrap();
    engine.find_neighbors(set, set).unwrap();
    engine.set_radii(set, &[1.5; 1_000]).unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    assert!(lists(&mut engine, set) == expected);
    // The same with good radii from the device, of which nothing is refused.
    let good = stream.clone_htod(&vec![1.5f32; 1_000]).unwrap();
    engine.set_radii_from_device(set, &bad.as_view()).unwrap();
    engine.find_neighbors(set, set).unwrap();
    engine.set_radii_from_device(set, &good.as_view()).unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    assert!(lists(&mut engine, set) == expected);

    // Exclusions that were cleared.
    let molecules: Vec<i64> = (0..1_000).map(|point| 3 - point).collect();
    let molecules = stream.clone_htod(&molecules).unwrap();
    let molecules = molecules.as_view();
    engine.set_molecules_from_device(set, &molecules).unwrap();
    engine.clear_exclusions(set).unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    assert!(lists(&mut engine, set) == expected);

    // Fewer points than there were radii.
    engine.set_radii_from_device(set, &bad.as_view()).unwrap();
    engine.put(set, &points[..20]);
    let text = engine.finish().unwrap_err().to_string();
    assert!(
        text.contains("point 900") && text.contains("of 1000 points"),
        "{text}"
    );
    engine.set_radii_from_device(set, &bad.slice(..20)).unwrap();
    assert!(lists(&mut engine, set).len() == 20);
    // The same with radii from the host in between.
    engine.put(set, &points);
    engine.set_radii_from_device(set, &bad.as_view()).unwrap();
    engine.put(set, &points[..20]);
    engine.set_radii(set, &[1.5; 20]).unwrap();
    assert_eq!(lists(&mut engine, set).len(), 20);

    let mut engine = start(DeviceEngine::builder(1.0).cutoffs(&[[1.0, 1.0], [1.0, 0.5]]));
    let set = engine.add(&points);
    let text = |refused: Result<Progress, Error>| refused.unwrap_err().to_string();
    let types = stream.clone_htod(&vec![-7i32; 1_000]).unwrap();
    engine.set_types_from_device(set, &types.as_view()).unwrap();
    let narrow = text(engine.finish());
    let types = stream.clone_htod(&vec![-7i64; 1_000]).unwrap();
    engine.set_types_from_device(set, &types.as_view()).unwrap();
    let wide = text(engine.finish());
    assert!(
        narrow == wide && wide.contains("negative"),
        "{narrow} {wide}"
    );
}
