//! Neighbours of points that are named by their indices, and lists in chunks, on the device: those
//! of the CPU backend, whatever the filters.

use crate::{
    common::{Precise, as_vectors},
    device_filters::{Data, lists},
    fresh_seed, needs_gpu,
    on_gpu::{FromHost, start, upload},
};
use nearfield::{
    PointSetId,
    device::{
        DeviceEngine, DeviceListsView, DeviceValue, DeviceView, GeometryQuantities, PointNumber,
        PositionNumber, Progress, Stream,
    },
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};

fn read<T: DeviceValue + Default>(stream: &Stream, from: &DeviceView<'_, T>) -> Vec<T> {
    stream.clone_dtoh(from).unwrap()
}

fn vectors(stream: &Stream, found: &DeviceListsView<'_>) -> Vec<Vec<u32>> {
    let (start, count) = (read(stream, &found.start), read(stream, &found.count));
    let entries = read(stream, &found.entries);
    let list = |(&start, &count): (&u64, &u32)| {
        entries[start as usize..start as usize + count as usize].to_vec()
    };
    start.iter().zip(&count).map(list).collect()
}

/// The neighbours of some points, searched until they count.
pub(crate) fn named<T: PointNumber>(
    engine: &mut DeviceEngine,
    [targets, sources]: [PointSetId; 2],
    points: &[T],
) -> Vec<Vec<u32>> {
    let stream = engine.stream().clone();
    let points = stream.clone_htod(points).unwrap();
    loop {
        engine
            .find_neighbors_of(targets, sources, &points.as_view())
            .unwrap();
        if engine.finish().unwrap() == Progress::Valid {
            return vectors(&stream, &engine.neighbors_of(targets, sources).unwrap());
        }
    }
}

#[test]
fn points_that_are_named_have_the_neighbours_that_the_cpu_finds() {
    check_named::<f32>(&[
        (RadiusRule::Uniform, None),
        (RadiusRule::Uniform, Some(5)),
        (RadiusRule::Gather, Some(3)),
        (RadiusRule::Symmetric, None),
    ]);
    check_named::<f64>(&[
        (RadiusRule::Uniform, None),
        (RadiusRule::Uniform, Some(5)),
        (RadiusRule::Gather, None),
        (RadiusRule::Symmetric, None),
    ]);
}

fn check_named<T: Precise + PositionNumber>(kinds: &[(RadiusRule, Option<u32>)]) {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for &(rule, k) in kinds {
        let mut points = Cloud::Lattice.points(30_000, 3);
        let cutoffs = [[2.0, 1.0], [1.0, 0.0]];
        let periodic = [Some(40.0), None, Some(40.0)];
        let on_gpu = DeviceEngine::builder(2.0).precision(T::PRECISION);
        let mut on_gpu = on_gpu.periodic(periodic).radii(rule);
        let mut on_cpu = T::builder(T::round(2.0)).periodic(periodic).radii(rule);
        if rule == RadiusRule::Uniform {
            (on_gpu, on_cpu) = (on_gpu.cutoffs(&cutoffs), on_cpu.cutoffs(&cutoffs));
        }
        match k {
            Some(k) => (on_gpu, on_cpu) = (on_gpu.nearest(k), on_cpu.nearest(k)),
            None => {
                on_gpu = on_gpu.list_order(ListOrder::Ascending);
                on_cpu = on_cpu.list_order(ListOrder::Ascending);
            }
        }
        let (mut on_gpu, mut on_cpu) = (start(on_gpu), on_cpu.build().unwrap());
        let exactly = |points: &[[f32; 3]]| -> Vec<[T; 3]> {
            let exact = |x: f32| T::round(f64::from(x) + 1e-9);
            points.iter().map(|at| at.map(exact)).collect()
        };
        let given = exactly(&points);
        let sent = upload(on_gpu.stream(), &given);
        let of_gpu = on_gpu.add_point_set(&sent.as_view()).unwrap();
        let of_cpu = on_cpu.add_point_set(T::positions(&given)).unwrap();
        for step in 0..2u64 {
            drift(&mut points, 0.2, step);
            points.truncate(30_000 - 1_000 * step as usize);
            let data = Data::draw(points.len(), 0.5, &mut random);
            let given = exactly(&points);
            let sent = upload(on_gpu.stream(), &given);
            on_gpu.update(of_gpu, &sent.as_view()).unwrap();
            on_cpu.update(of_cpu, T::positions(&given)).unwrap();
            if rule == RadiusRule::Uniform {
                on_gpu.set_types(of_gpu, &data.types).unwrap();
                on_cpu.set_types(of_cpu, &data.types).unwrap();
            } else {
                on_gpu.set_radii(of_gpu, &data.radii).unwrap();
                on_cpu.set_radii(of_cpu, &data.radii).unwrap();
            }
            on_gpu.set_molecules(of_gpu, &data.molecules).unwrap();
            on_cpu.set_molecules(of_cpu, &data.molecules).unwrap();
            // Whoever is chosen, all that are named are searched for.
            on_gpu.set_target_mask(of_gpu, &data.mask).unwrap();
            // Few, which get a warp each, as many others, more than there are points, and none.
            for count in [300, 300, 40_000, 0] {
                let draw = |_| random.below(points.len() as u64) as u32;
                let asked: Vec<u32> = (0..count).map(draw).collect();
                let wide: Vec<i64> = asked.iter().map(|&index| index.into()).collect();
                let found = match count {
                    300 => named(&mut on_gpu, [of_gpu; 2], &asked),
                    _ => named(&mut on_gpu, [of_gpu; 2], &wide),
                };
                let expected = on_cpu.neighbors_of(of_cpu, of_cpu, &asked).unwrap();
                let same = found == as_vectors(&expected);
                assert!(same, "{rule}, {k:?} nearest, step {step}, {count} points");
            }
        }
    }
}

#[test]
fn points_that_there_are_not_are_found_by_finish() {
    needs_gpu!();
    let points = Cloud::Lattice.points(1_000, 6);
    let mut engine = start(DeviceEngine::builder(2.0).lists(ListKind::Half));
    let set = engine.add(&points);
    let none = engine.add(&[]);
    let stream = engine.stream().clone();
    for (bad, value) in [(1_000i64, 1_000usize), (-1, u32::MAX as usize)] {
        let asked = stream.clone_htod(&[5, bad, 7]).unwrap();
        engine
            .find_neighbors_of(set, set, &asked.as_view())
            .unwrap();
        let refused = engine.finish().unwrap_err();
        let ErrorKind::UnknownPoint { point, points, .. } = refused.kind() else {
            panic!("{refused}");
        };
        assert_eq!((*point, *points), (value, 1_000));
        assert!(engine.neighbors_of(set, set).is_err());
        assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    }
    // Full lists also here; and among no points there are none.
    let found = named(&mut engine, [set; 2], &[3u32, 3]);
    assert!(found[0] == found[1] && found[0].len() > 6, "{found:?}");
    assert_eq!(
        named(&mut engine, [set, none], &[3u32, 999]),
        [[0u32; 0]; 2]
    );
    let asked = stream.clone_htod(&[0u32]).unwrap();
    let refused = engine.find_neighbors_of(none, set, &asked.as_view());
    assert!(refused.unwrap_err().to_string().contains("indices"));
    engine.put(set, &points);
    assert!(engine.neighbors_of(set, none).is_err());
}

#[test]
fn chunks_have_all_lists_within_the_limit() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut points = Cloud::Lattice.points(25_000, 3);
    drift(&mut points, 0.3, seed);
    let data = Data::draw(points.len(), 0.5, &mut random);
    let limit = 200_000;
    for kind in 0..4 {
        let builder = || {
            let builder = DeviceEngine::builder(2.0).periodic([Some(40.0), None, Some(40.0)]);
            match kind {
                0 => builder.lists(ListKind::Half),
                1 => builder.nearest(6),
                2 => builder.list_order(ListOrder::Ascending),
                _ => builder.cutoffs(&[[2.0, 1.0], [1.0, 0.0]]),
            }
        };
        let (mut whole, mut engine) = (start(builder()), start(builder().memory_limit(limit)));
        let set = whole.add(&points);
        let of_whole = set;
        let set = engine.add(&points);
        for (engine, set) in [(&mut whole, of_whole), (&mut engine, set)] {
            if kind == 3 {
                engine.set_types(set, &data.types).unwrap();
                engine.set_target_mask(set, &data.mask).unwrap();
            }
        }
        let mut expected = lists(&mut whole, of_whole);
        let refused = engine.find_neighbors(set, set).unwrap_err();
        let ErrorKind::MemoryLimit { needed, .. } = refused.kind() else {
            panic!("{refused}");
        };
        assert!(*needed > limit, "{refused}");
        let mut chunks = engine.list_chunks(set, set).unwrap();
        let mut found = vec![None; points.len()];
        let (mut pairs, mut count) = (0, 0);
        while let Some(chunk) = chunks.next_chunk(&engine).unwrap() {
            let targets = read(engine.stream(), &chunk.targets);
            let of_chunk = vectors(engine.stream(), &chunk.lists);
            let entries = chunk.lists.entries.len();
            assert!(8 + 16 * targets.len() + 4 * entries <= limit as usize);
            pairs += entries as u64;
            count += 1;
            for (target, list) in targets.into_iter().zip(of_chunk) {
                assert!(found[target as usize].replace(list).is_none(), "{target}");
            }
        }
        assert!(pairs == chunks.pairs() && count > 3, "{count} chunks");
        assert!(chunks.next_chunk(&engine).unwrap().is_none());
        let mut found: Vec<Vec<u32>> = (found.into_iter())
            .map(|list| list.unwrap_or_default())
            .collect();
        if kind == 0 || kind == 3 {
            let sort = |lists: &mut Vec<Vec<u32>>| lists.iter_mut().for_each(|l| l.sort_unstable());
            sort(&mut found);
            sort(&mut expected);
        }
        assert!(found == expected, "kind {kind}");
    }
}

#[test]
fn chunks_have_the_geometry_of_their_pairs_and_are_refused_after_a_change() {
    needs_gpu!();
    let points = Cloud::Lattice.points(5_000, 8);
    let builder = DeviceEngine::builder(2.0).list_order(ListOrder::Ascending);
    let mut engine = start(builder.periodic([Some(17.0); 3]));
    let set = engine.add(&points);
    let mut wanted = GeometryQuantities::NONE;
    (wanted.displacements, wanted.images) = (true, true);
    while {
        engine.pair_geometry(set, set, wanted).unwrap();
        engine.finish().unwrap() == Progress::Repeat
    } {}
    let stream = engine.stream().clone();
    let whole = engine.geometry(set, set).unwrap();
    let start_of = read(&stream, &whole.lists.start);
    let count_of = read(&stream, &whole.lists.count);
    let entries = read(&stream, &whole.lists.entries);
    let images = read(&stream, &whole.pairs.images.unwrap());
    let displacements = read(&stream, &whole.pairs.displacements.unwrap());
    let limit = Some(100_000);
    let mut chunks = engine.list_chunks_within(set, set, wanted, limit).unwrap();
    let mut targets = 0;
    while let Some(chunk) = chunks.next_chunk(&engine).unwrap() {
        let start = read(&stream, &chunk.lists.start);
        let of_chunk = read(&stream, &chunk.lists.entries);
        let of_images = read(&stream, &chunk.pairs.images.unwrap());
        let of_pairs = read(&stream, &chunk.pairs.displacements.unwrap());
        for (k, target) in read(&stream, &chunk.targets).into_iter().enumerate() {
            let target = target as usize;
            let (from, len) = (start_of[target] as usize, count_of[target] as usize);
            let (here, there) = (start[k] as usize..start[k] as usize + len, from..from + len);
            assert_eq!(of_chunk[here.clone()], entries[there.clone()]);
            assert_eq!(of_images[here.clone()], images[there.clone()]);
            assert_eq!(of_pairs[here], displacements[there]);
            targets += 1;
        }
    }
    assert_eq!(targets, points.len());
    let long = engine.list_chunks_within(set, set, wanted, Some(100));
    let text = long.unwrap_err().to_string();
    assert!(text.contains("memory limit is 100"), "{text}");
    let mut chunks = engine.list_chunks(set, set).unwrap();
    engine.put(set, &points);
    let changed = chunks.next_chunk(&engine).unwrap_err();
    assert!(
        matches!(changed.kind(), ErrorKind::NoLists { .. }),
        "{changed}"
    );
}
