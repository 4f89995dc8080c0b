//! The geometry of pairs on the device has the bits of the CPU backend.

use crate::{
    needs_gpu,
    on_gpu::{FromHost, start},
};
use nearfield::{
    Builder, Engine, ErrorKind, ListKind, ListOrder, PointSetId,
    device::{DeviceEngine, DeviceView, GeometryQuantities, Progress},
    error::{MissingLists, gpu},
    lists::{PairArrays, PairGeometry},
    prelude::*,
};
use nearfield_testkit::cloud::{Cloud, drift};

const ALL: GeometryQuantities = GeometryQuantities {
    targets: true,
    images: true,
    shifts: true,
    displacements: true,
    squares: true,
    distances: true,
};

/// Index, image, and the bits of displacement, square and distance.
type Bits = (u32, [i32; 3], [u32; 3], u32, u32);

fn values<T: nearfield::device::DeviceValue>(
    engine: &DeviceEngine,
    array: Option<&DeviceView<'_, T>>,
) -> Vec<T> {
    let array = array.expect("it was asked for");
    engine.stream().clone_dtoh(array).unwrap()
}

/// All pairs on the device, by target, ascending.
fn on_device(engine: &DeviceEngine, targets: PointSetId, sources: PointSetId) -> Vec<Vec<Bits>> {
    let found = engine.geometry(targets, sources).unwrap();
    let stream = engine.stream();
    let start = stream.clone_dtoh(&found.lists.start).unwrap();
    let count = stream.clone_dtoh(&found.lists.count).unwrap();
    let entries = stream.clone_dtoh(&found.lists.entries).unwrap();
    let of = values(engine, found.pairs.targets.as_ref());
    let images = values(engine, found.pairs.images.as_ref());
    let displacements = values(engine, found.pairs.displacements.as_ref());
    let squares = values(engine, found.pairs.squares.as_ref());
    let distances = values(engine, found.pairs.distances.as_ref());
    assert_eq!(entries.len(), squares.len());
    let list = |(target, (&start, &count)): (usize, (&u64, &u32))| {
        let mut list: Vec<_> = (start as usize..start as usize + count as usize)
            .map(|at| {
                assert_eq!(of[at] as usize, target);
                let d = displacements[at].map(f32::to_bits);
                let (square, distance) = (squares[at].to_bits(), distances[at].to_bits());
                (entries[at], images[at], d, square, distance)
            })
            .collect();
        list.sort_unstable();
        list
    };
    start.iter().zip(&count).enumerate().map(list).collect()
}

/// The same by the CPU backend.
fn on_cpu(builder: Builder, sets: &[&[[f32; 3]]]) -> Vec<Vec<Bits>> {
    let builder = builder.device(Device::Cpu);
    let mut engine = builder.list_order(ListOrder::Ascending).build().unwrap();
    let ids: Vec<_> = (sets.iter())
        .map(|&points| engine.add_point_set(points).unwrap())
        .collect();
    let mut found = PairGeometry::default();
    engine
        .pair_geometry(ids[0], ids[ids.len() - 1], &mut found)
        .unwrap();
    let PairArrays::Single {
        displacement,
        distance_squared,
    } = found.arrays()
    else {
        panic!("the engine is in single precision");
    };
    let lists = found.lists();
    let pair = |at: usize| {
        let (d, square) = (displacement[at].map(f32::to_bits), distance_squared[at]);
        let distance = square.sqrt().to_bits();
        let (index, image) = (lists.storage()[at], found.images()[at]);
        (index, image, d, square.to_bits(), distance)
    };
    (0..lists.len())
        .map(|i| {
            let begin = lists.starts()[i] as usize;
            let mut list: Vec<_> = (begin..begin + lists.count(i)).map(pair).collect();
            list.sort_unstable();
            list
        })
        .collect()
}

/// Writes geometry until it is valid; returns how often it had to be repeated.
fn write(engine: &mut DeviceEngine, targets: PointSetId, sources: PointSetId) -> usize {
    let mut repeats = 0;
    loop {
        engine.pair_geometry(targets, sources, ALL).unwrap();
        match engine.finish().unwrap() {
            Progress::Valid => return repeats,
            Progress::Repeat => repeats += 1,
        }
    }
}

#[test]
fn geometry_follows_points_that_move_and_then_come_together() {
    needs_gpu!();
    // Few points, whose lists warps find, and many, whose lists come from masks.
    for count in [6_000, 40_000] {
        for kind in [ListKind::Full, ListKind::Half] {
            let mut engine = start(DeviceEngine::builder(2.0).lists(kind));
            let mut points = Cloud::Lattice.points(count, 1);
            let set = engine.add(&points);
            let mut repeats = 0;
            for step in 0..5 {
                match step {
                    3 => points.iter_mut().for_each(|at| *at = at.map(|x| 0.7 * x)),
                    _ => drift(&mut points, 0.3, step),
                }
                engine.put(set, &points);
                repeats += write(&mut engine, set, set);
                let expected = on_cpu(Engine::builder(2.0).lists(kind), &[&points]);
                let same = on_device(&engine, set, set) == expected;
                assert!(same, "{count} points, {kind:?}, step {step}");
            }
            assert!(repeats > 0, "the storage was outgrown");
        }
    }
}

#[test]
fn images_of_points_in_and_outside_of_boxes_are_those_of_the_cpu() {
    needs_gpu!();
    let straight = [Some(24.0), Some(24.0), None];
    let tilted = [
        Some([24.0, 0.0, 0.0]),
        Some([6.5, 23.0, 0.0]),
        Some([-5.0, 4.5, 22.0]),
    ];
    for count in [3_000, 40_000] {
        let points = Cloud::Uniform.points(count, 15);
        let edge = points.iter().flatten().copied().fold(0.0, f32::max);
        let scaled = |at: &[f32; 3]| at.map(|x| 24.0 * x / edge);
        let mut points: Vec<_> = points.iter().map(scaled).collect();
        let others: Vec<_> = points
            .iter()
            .step_by(3)
            .map(|at| at.map(|x| x + 0.1))
            .collect();
        let mut boxed = start(DeviceEngine::builder(1.2).periodic(straight));
        let mut leaning = start(DeviceEngine::builder(1.2).box_vectors(tilted));
        let ids = [boxed.add(&points), boxed.add(&others)];
        let set = leaning.add(&points);
        for step in 0..3 {
            let moved = points.iter_mut().step_by(5);
            moved.for_each(|at| at[1] += 17.0 * step as f32);
            boxed.put(ids[0], &points);
            leaning.put(set, &points);
            let builder = || Engine::builder(1.2).periodic(straight);
            write(&mut boxed, ids[0], ids[0]);
            let expected = on_cpu(builder(), &[&points]);
            assert!(on_device(&boxed, ids[0], ids[0]) == expected, "step {step}");
            write(&mut boxed, ids[0], ids[1]);
            let expected = on_cpu(builder(), &[&points, &others]);
            assert!(
                on_device(&boxed, ids[0], ids[1]) == expected,
                "two sets, step {step}"
            );
            write(&mut leaning, set, set);
            let expected = on_cpu(Engine::builder(1.2).box_vectors(tilted), &[&points]);
            assert!(
                on_device(&leaning, set, set) == expected,
                "tilted, step {step}"
            );
        }
    }
}

#[test]
fn lists_without_geometry_and_other_quantities_are_told_apart() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let set = engine.add(&Cloud::Lattice.points(8_000, 3));
    let missing = |engine: &DeviceEngine| match engine.geometry(set, set).unwrap_err().kind() {
        ErrorKind::NoLists { why, .. } => *why,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(&engine), MissingLists::NotFound);
    assert_eq!(engine.find(set, set), 0);
    assert_eq!(missing(&engine), MissingLists::Geometry);
    write(&mut engine, set, set);
    let whole = on_device(&engine, set, set);
    let squares = GeometryQuantities {
        squares: true,
        ..GeometryQuantities::NONE
    };
    engine.pair_geometry(set, set, squares).unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    let found = engine.geometry(set, set).unwrap();
    assert!(found.pairs.images.is_none() && found.pairs.displacements.is_none());
    let squares = values(&engine, found.pairs.squares.as_ref());
    let mut bits: Vec<_> = squares.iter().map(|square| square.to_bits()).collect();
    let pairs = whole.iter().map(Vec::len).sum();
    bits.truncate(pairs);
    bits.sort_unstable();
    let mut expected: Vec<_> = whole.iter().flatten().map(|pair| pair.3).collect();
    expected.sort_unstable();
    assert_eq!(bits, expected);
    let bytes = engine.bytes();
    assert_eq!(engine.find(set, set), 0);
    assert!(engine.bytes() < bytes, "the array is given back");
    assert_eq!(missing(&engine), MissingLists::Geometry);
}

#[test]
fn images_beyond_32_bits_are_an_error_and_no_number() {
    needs_gpu!();
    let boxes = 2f32.powi(30);
    let mut engine = start(DeviceEngine::builder(0.25).periodic([Some(1.0), None, None]));
    let points = [[-boxes, 0.0, 0.0], [boxes, 0.125, 0.0]];
    let set = engine.add(&points);
    let wanted = GeometryQuantities {
        displacements: true,
        ..GeometryQuantities::NONE
    };
    engine.pair_geometry(set, set, wanted).unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Valid, "without images");
    engine.pair_geometry(set, set, ALL).unwrap();
    let error = engine.finish().unwrap_err();
    let ErrorKind::Gpu(source) = error.kind() else {
        panic!("{error}");
    };
    // So far away whole numbers of boxes are rounded: each point is near 193 images of the other,
    // of which 128 are below -2^31 for one and 129 from 2^31 on for the other.
    let far = matches!(source.kind(), gpu::ErrorKind::FarImages { pairs: 257 });
    assert!(far, "{error}");
    assert!(engine.geometry(set, set).is_err());
    // The engine goes on.
    engine.put(set, &[[0.0; 3], [0.1, 0.0, 0.0]]);
    write(&mut engine, set, set);
    assert_eq!(on_device(&engine, set, set)[0].len(), 1);
}

/// Lists and geometry of every target as they lie in the storage.
fn as_they_lie(engine: &DeviceEngine, set: PointSetId) -> Vec<Vec<(u32, [i32; 3], u32)>> {
    let found = engine.geometry(set, set).unwrap();
    let stream = engine.stream();
    let start = stream.clone_dtoh(&found.lists.start).unwrap();
    let count = stream.clone_dtoh(&found.lists.count).unwrap();
    let entries = stream.clone_dtoh(&found.lists.entries).unwrap();
    let images = values(engine, found.pairs.images.as_ref());
    let squares = values(engine, found.pairs.squares.as_ref());
    let list = |(&start, &count): (&u64, &u32)| {
        (start as usize..start as usize + count as usize)
            .map(|at| (entries[at], images[at], squares[at].to_bits()))
            .collect()
    };
    start.iter().zip(&count).map(list).collect()
}

#[test]
fn ascending_lists_and_geometry_are_those_of_the_cpu_in_their_order() {
    needs_gpu!();
    // Few and many points, lists of hundreds, and a box so small that sources stand in a list once
    // per image.
    let uniform = |count, edge: f32, seed| {
        nearfield_testkit::shapes::uniform_box(count, [[0.0; 3], [edge; 3]], seed)
    };
    let cases = [
        ([None; 3], 1.2, uniform(4_000, 10.0, 1)),
        ([None; 3], 1.2, uniform(40_000, 22.0, 2)),
        ([None; 3], 3.0, uniform(6_000, 6.0, 3)),
        ([Some(24.0); 3], 1.2, uniform(40_000, 24.0, 4)),
        ([Some(1.5), Some(1.5), None], 2.0, uniform(300, 1.5, 5)),
    ];
    for (periodic, radius, points) in cases {
        let builder = DeviceEngine::builder(radius).periodic(periodic);
        let mut engine = start(builder.list_order(ListOrder::Ascending));
        let set = engine.add(&points);
        for _ in 0..2 {
            write(&mut engine, set, set);
            let expected = on_cpu(Engine::builder(radius).periodic(periodic), &[&points]);
            let found = as_they_lie(&engine, set);
            for (target, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let expected: Vec<_> = expected
                    .iter()
                    .map(|pair| (pair.0, pair.1, pair.3))
                    .collect();
                assert_eq!(*found, expected, "{periodic:?}, {radius}, target {target}");
            }
        }
        // Displacements alone are in the same order, without images to sort by.
        let wanted = GeometryQuantities {
            displacements: true,
            ..GeometryQuantities::NONE
        };
        engine.pair_geometry(set, set, wanted).unwrap();
        assert_eq!(engine.finish().unwrap(), Progress::Valid);
        let found = engine.geometry(set, set).unwrap();
        assert!(found.pairs.images.is_none(), "they were not asked for");
        let displacements = values(&engine, found.pairs.displacements.as_ref());
        let starts = engine.stream().clone_dtoh(&found.lists.start).unwrap();
        let expected = on_cpu(Engine::builder(radius).periodic(periodic), &[&points]);
        for (&start, expected) in starts.iter().zip(&expected) {
            for (k, pair) in expected.iter().enumerate() {
                let d = displacements[start as usize + k].map(f32::to_bits);
                assert_eq!(d, pair.2, "{periodic:?}, {radius}");
            }
        }
        // And lists alone.
        assert_eq!(engine.find(set, set), 0);
        let lists = engine.neighbors(set, set).unwrap();
        let stream = engine.stream();
        let start = stream.clone_dtoh(&lists.start).unwrap();
        let entries = stream.clone_dtoh(&lists.entries).unwrap();
        for (&start, expected) in start.iter().zip(&expected) {
            let list = &entries[start as usize..start as usize + expected.len()];
            assert!(list.iter().eq(expected.iter().map(|pair| &pair.0)));
        }
    }
}
