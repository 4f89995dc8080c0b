//! The engine for data on a GPU against the engine on the CPU.

use crate::{
    needs_gpu,
    on_gpu::{FromHost, start, take_memory, upload},
};
use nearfield::{
    Device, Engine, ErrorKind, ListKind, ListOrder, Pair, PairKernel,
    device::{DeviceEngine, DeviceField, Progress},
    kernels::{Cuda, SphForce, WendlandC2},
};
use nearfield_testkit::cloud::{Cloud, drift};

/// Lists from the device, each ascending.
fn lists(
    engine: &DeviceEngine,
    targets: nearfield::PointSetId,
    sources: nearfield::PointSetId,
) -> Vec<Vec<u32>> {
    let stream = engine.stream();
    let found = engine.neighbors(targets, sources).unwrap();
    let start = stream.clone_dtoh(&found.start).unwrap();
    let count = stream.clone_dtoh(&found.count).unwrap();
    let entries = stream.clone_dtoh(&found.entries).unwrap();
    let list = |(start, count): (&u64, &u32)| {
        let begin = *start as usize;
        let mut list = entries[begin..begin + *count as usize].to_vec();
        list.sort_unstable();
        list
    };
    start.iter().zip(&count).map(list).collect()
}

fn expected(
    sets: &[Vec<[f32; 3]>],
    radius: f32,
    periodic: [Option<f64>; 3],
    (targets, sources): (usize, usize),
) -> Vec<Vec<u32>> {
    let mut engine = Engine::builder(radius)
        .periodic(periodic)
        .device(Device::Cpu)
        .list_order(ListOrder::Ascending)
        .build()
        .unwrap();
    let ids: Vec<_> = sets
        .iter()
        .map(|points| engine.add_point_set(points).unwrap())
        .collect();
    engine.find_neighbors().unwrap();
    let found = engine.neighbors(ids[targets], ids[sources]).unwrap();
    (0..sets[targets].len())
        .map(|target| found.of(target).to_vec())
        .collect()
}

const OPEN: [Option<f64>; 3] = [None; 3];

#[test]
fn lists_follow_points_that_move_step_by_step_and_then_far() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let mut points = Cloud::Lattice.points(8_000, 1);
    let set = engine.add(&points);
    let mut repeats = 0;
    for step in 0..6 {
        match step {
            // A jump out of all room there is.
            4 => points.iter_mut().for_each(|point| point[1] += 300.0),
            _ => drift(&mut points, 0.4, step),
        }
        engine.put(set, &points);
        repeats += engine.find(set, set);
        let exact = expected(std::slice::from_ref(&points), 2.0, OPEN, (0, 0));
        assert_eq!(lists(&engine, set, set), exact, "step {step}");
    }
    assert!(repeats > 0, "the jump went unnoticed");
}

#[test]
fn lists_that_outgrow_their_storage_are_written_again() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0).within([0.0; 3], [20.0; 3]));
    let mut points = Cloud::Lattice.points(8_000, 3);
    let set = engine.add(&points);
    assert_eq!(engine.find(set, set), 0);
    for point in &mut points {
        *point = point.map(|x| 0.5 * x);
    }
    engine.put(set, &points);
    assert!(matches!(
        engine
            .neighbors(set, set)
            .as_ref()
            .map_err(|error| error.kind()),
        Err(ErrorKind::NoLists { .. })
    ));
    assert_eq!(engine.find(set, set), 1);
    let exact = expected(&[points], 1.0, OPEN, (0, 0));
    assert_eq!(lists(&engine, set, set), exact);
}

#[test]
fn sets_search_each_other_in_a_periodic_box_also_when_points_leave_it() {
    needs_gpu!();
    let periodic = [Some(10.0), None, Some(7.5)];
    let mut engine = start(DeviceEngine::builder(1.1).periodic(periodic));
    let mut sets = [
        Cloud::Uniform.points(4_000, 5),
        Cloud::Uniform.points(900, 6),
    ];
    let ids = sets.each_ref().map(|points| engine.add(points));
    for shift in [0.0, 9.0, 95.0] {
        sets[0].iter_mut().for_each(|point| point[0] += shift);
        engine.put(ids[0], &sets[0]);
        for (targets, sources) in [(0, 0), (0, 1), (1, 0)] {
            engine.find(ids[targets], ids[sources]);
            let exact = expected(&sets, 1.1, periodic, (targets, sources));
            let found = lists(&engine, ids[targets], ids[sources]);
            assert_eq!(found, exact, "{targets} among {sources} after {shift}");
        }
    }
}

#[test]
fn sets_in_a_tilted_box_are_searched_as_on_the_cpu() {
    needs_gpu!();
    let vectors = [
        Some([10.0, 0.0, 0.0]),
        Some([3.5, 9.0, 0.0]),
        Some([-2.0, 1.5, 8.0]),
    ];
    let mut engine = start(DeviceEngine::builder(1.1).box_vectors(vectors));
    let mut points = Cloud::Uniform.points(3_000, 15);
    let set = engine.add(&points);
    for step in 0..3 {
        // Some of them leave the box.
        points
            .iter_mut()
            .for_each(|point| point[1] += 4.0 * step as f32);
        engine.put(set, &points);
        engine.find(set, set);
        let builder = Engine::builder(1.1)
            .box_vectors(vectors)
            .device(Device::Cpu);
        let mut on_cpu = builder.list_order(ListOrder::Ascending).build().unwrap();
        let reference = on_cpu.add_point_set(&points).unwrap();
        on_cpu.find_neighbors().unwrap();
        let exact = on_cpu.neighbors(reference, reference).unwrap();
        for (target, found) in lists(&engine, set, set).iter().enumerate() {
            assert_eq!(found, exact.of(target), "step {step}, target {target}");
        }
    }
}

#[test]
fn half_lists_and_counts_agree() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.3).lists(ListKind::Half));
    let stream = engine.stream().clone();
    let points = Cloud::Clusters.points(5_000, 7);
    let set = engine.add(&points);
    engine.find_neighbors(set, set).unwrap();
    let mut counts = stream.alloc_zeros::<u32>(points.len()).unwrap();
    engine
        .count_neighbors(set, set, &mut counts.as_view_mut())
        .unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    let half = lists(&engine, set, set);
    let lengths: Vec<u32> = half.iter().map(|list| list.len() as u32).collect();
    assert_eq!(stream.clone_dtoh(&counts).unwrap(), lengths);
    let full = expected(&[points], 1.3, OPEN, (0, 0));
    for (target, (half, full)) in half.iter().zip(full).enumerate() {
        let later: Vec<u32> = full.into_iter().filter(|&j| j as usize > target).collect();
        assert_eq!(*half, later, "target {target}");
    }
}

fn force() -> SphForce {
    SphForce {
        kernel: WendlandC2::with_support(2.0),
        h: 1.0,
        alpha_c: 0.1,
    }
}

#[test]
fn sums_over_strided_fields_are_those_of_the_cpu() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let stream = engine.stream().clone();
    let points = Cloud::PoolSpray.points(6_000, 9);
    // Velocity (3), density, pressure, mass; on the device with two numbers before and one behind.
    let state: Vec<[f32; 6]> = (points.iter().enumerate())
        .map(|(i, x)| {
            [
                x[1],
                -x[0],
                0.1 * x[2],
                1.0 + 0.01 * (i % 7) as f32,
                2.0,
                1.0,
            ]
        })
        .collect();
    let padded: Vec<f32> = state
        .iter()
        .flat_map(|s| [&[f32::NAN, f32::NAN], &s[..], &[f32::NAN]].concat())
        .collect();
    let set = engine.add(&points);
    let padded = stream.clone_htod(&padded).unwrap();
    let mut sums = stream.alloc_zeros::<f32>(3 * points.len()).unwrap();
    for _ in 0..2 {
        engine
            .traverse(&force(), set, set)
            .targets(DeviceField::new(padded.slice(2..), 9))
            .sources(DeviceField::new(padded.slice(2..), 9))
            .add_into(&mut sums.as_view_mut())
            .unwrap();
    }
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    let found = stream.clone_dtoh(&sums).unwrap();

    let mut on_cpu = Engine::builder(2.0).device(Device::Cpu).build().unwrap();
    let set = on_cpu.add_point_set(&points).unwrap();
    let velocity: Vec<[f32; 3]> = state.iter().map(|s| [s[0], s[1], s[2]]).collect();
    let column = |at: usize| -> Vec<f32> { state.iter().map(|s| s[at]).collect() };
    let (density, pressure, mass) = (column(3), column(4), column(5));
    let exact = on_cpu
        .traverse(&force(), set, set)
        .targets((&velocity, &density, &pressure))
        .sources((&velocity, &density, &pressure, &mass))
        .run()
        .unwrap();
    let size = exact
        .iter()
        .flatten()
        .fold(0.0f32, |most, x| most.max(x.abs()));
    for (target, exact) in exact.iter().enumerate() {
        for axis in 0..3 {
            let twice = found[3 * target + axis];
            assert!(
                (twice - 2.0 * exact[axis]).abs() <= 1e-5 * size,
                "target {target}"
            );
        }
    }
}

#[test]
fn coordinates_that_are_no_numbers_are_named_and_the_engine_goes_on() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0));
    let stream = engine.stream().clone();
    let good = Cloud::Uniform.points(1_000, 11);
    let set = engine.add(&good);
    let mut bad = good.clone();
    bad[417][2] = f32::NAN;
    engine.put(set, &bad);
    let error = engine.finish().unwrap_err().to_string();
    assert!(
        error.contains("point set 0") && error.contains("point 417"),
        "{error}"
    );
    let error = engine
        .add_point_set(&upload(&stream, &bad).as_view())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("point set 1") && error.contains("point 417"),
        "{error}"
    );
    assert_eq!(engine.point_sets(), 1);

    // The set has the points that were good, and what was computed in between does not stand.
    assert_eq!(engine.finish().unwrap(), Progress::Repeat);
    assert_eq!(engine.find(set, set), 0);
    let exact = expected(std::slice::from_ref(&good), 1.0, OPEN, (0, 0));
    assert_eq!(lists(&engine, set, set), exact);

    // Lists of points that turn out to be no numbers are no lists.
    engine.put(set, &bad[..500]);
    engine.find_neighbors(set, set).unwrap();
    engine.finish().unwrap_err();
    assert_eq!(engine.points(set).unwrap(), 1_000);
    assert!(matches!(
        engine
            .neighbors(set, set)
            .as_ref()
            .map_err(|error| error.kind()),
        Err(ErrorKind::NoLists { .. })
    ));

    engine.put(set, &good[..700]);
    assert_eq!(engine.find(set, set), 1);
    let exact = expected(&[good[..700].to_vec()], 1.0, OPEN, (0, 0));
    assert_eq!(lists(&engine, set, set), exact);
}

#[test]
fn results_of_a_failed_sort_are_not_valid_after_a_later_one() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0));
    let stream = engine.stream().clone();
    let good = Cloud::Uniform.points(2_000, 21);
    let set = engine.add(&good);
    let mut far = good.clone();
    far[5] = [1e6; 3];
    let mut sums = stream.alloc_zeros::<f32>(good.len()).unwrap();
    for between in [&far, &Vec::new()] {
        for points in [&far, between, &good] {
            engine.put(set, points);
            if points.len() == good.len() {
                engine
                    .traverse(&Ones, set, set)
                    .run_into(&mut sums.as_view_mut())
                    .unwrap();
            }
        }
        assert_eq!(engine.finish().unwrap(), Progress::Repeat);
        assert_eq!(engine.finish().unwrap(), Progress::Valid);
    }
}

#[test]
fn an_engine_that_runs_out_of_memory_keeps_its_points() {
    needs_gpu!(alone);
    let mut engine = start(DeviceEngine::builder(1.0));
    let stream = engine.stream().clone();
    let good = Cloud::Uniform.points(3_000, 23);
    let set = engine.add(&good);
    assert_eq!(engine.find(set, set), 0);
    let exact = expected(std::slice::from_ref(&good), 1.0, OPEN, (0, 0));
    // Their positions are there, but nothing else finds room.
    let many = stream.alloc_zeros::<f32>(3 * 20_000_000).unwrap();
    let taken = take_memory(&stream);
    for _ in 0..3 {
        let error = engine.update(set, &many.as_view()).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains("bytes"), "{error}");
        assert_eq!(engine.points(set).unwrap(), good.len());
        let error = engine.add_point_set(&many.as_view()).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        engine.find(set, set);
        assert_eq!(lists(&engine, set, set), exact);
    }
    drop((taken, many));
    stream.synchronize().unwrap();
    let more = Cloud::Uniform.points(5_000, 24);
    engine.put(set, &more);
    engine.find(set, set);
    assert_eq!(
        lists(&engine, set, set),
        expected(&[more], 1.0, OPEN, (0, 0))
    );
}

#[test]
fn the_number_of_points_may_change_and_be_none() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.5));
    let stream = engine.stream().clone();
    let all = Cloud::Lattice.points(4_000, 13);
    let set = engine.add(&all);
    for count in [4_000, 1_000, 1, 3_999] {
        let points = &all[..count];
        engine.put(set, points);
        engine.find(set, set);
        let exact = expected(&[points.to_vec()], 1.5, OPEN, (0, 0));
        assert_eq!(lists(&engine, set, set), exact, "{count} points");
    }
    let some = upload(&stream, &all);
    engine.update(set, &some.slice(0..0)).unwrap();
    assert_eq!(engine.points(set).unwrap(), 0);
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
}

/// Adds up 1 for every neighbour.
struct Ones;

impl PairKernel for Ones {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
        1.0
    }

    fn cuda(&self) -> Option<Cuda> {
        let text = "void one(const float*, const Pair&, const float*, const float*, float* result) \
                    { result[0] = 1.0f; }";
        // SAFETY: it reads the channels of the kernel and writes its result, nothing else.
        Some(unsafe { Cuda::new("ones.cu", text) }.function("one"))
    }
}

#[test]
fn the_order_of_the_cells_sorts_the_callers_arrays() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(1.0));
    let stream = engine.stream().clone();
    let points = Cloud::Uniform.points(2_000, 15);
    let given = upload(&stream, &points);
    let set = engine.add_point_set(&given.as_view()).unwrap();
    let mut order = stream.alloc_zeros::<u32>(points.len()).unwrap();
    let mut sorted = stream.alloc_zeros::<f32>(3 * points.len()).unwrap();
    engine.order(set, &mut order.as_view_mut()).unwrap();
    engine
        .reorder(set, 3, &given.as_view(), &mut sorted.as_view_mut())
        .unwrap();
    let (order, moved) = (
        stream.clone_dtoh(&order).unwrap(),
        stream.clone_dtoh(&sorted).unwrap(),
    );
    let mut seen = vec![false; points.len()];
    for (place, &index) in order.iter().enumerate() {
        assert!(
            !std::mem::replace(&mut seen[index as usize], true),
            "{index} comes twice"
        );
        assert_eq!(moved[3 * place..3 * place + 3], points[index as usize]);
    }
    // Sorted, the cells keep the order they are given.
    engine.update(set, &sorted.as_view()).unwrap();
    let mut order = stream.alloc_zeros::<u32>(points.len()).unwrap();
    engine.order(set, &mut order.as_view_mut()).unwrap();
    assert!(
        stream
            .clone_dtoh(&order)
            .unwrap()
            .iter()
            .enumerate()
            .all(|(i, &at)| at == i as u32)
    );
}

#[test]
fn arrays_that_do_not_fit_are_refused_by_name() {
    needs_gpu!();
    let mut engine = start(DeviceEngine::builder(2.0));
    let stream = engine.stream().clone();
    let numbers = stream.alloc_zeros::<f32>(301).unwrap();
    let error = engine
        .add_point_set(&numbers.as_view())
        .unwrap_err()
        .to_string();
    assert!(error.contains("301") && error.contains("303"), "{error}");
    let set = engine.add_point_set(&numbers.slice(0..300)).unwrap();
    let mut sums = stream.alloc_zeros::<f32>(99).unwrap();
    let run = engine
        .traverse(&Ones, set, set)
        .run_into(&mut sums.as_view_mut());
    let error = run.unwrap_err().to_string();
    assert!(
        error.contains("results") && error.contains("99") && error.contains("100"),
        "{error}"
    );
    let mut sums = stream.alloc_zeros::<f32>(300).unwrap();
    let run = engine
        .traverse(&force(), set, set)
        .targets(DeviceField::new(numbers.as_view(), 3))
        .run_into(&mut sums.as_view_mut());
    let error = run.unwrap_err().to_string();
    assert!(error.contains("fields of targets"), "{error}");
    // Coincident points are neighbours of each other.
    let mut sums = stream.alloc_zeros::<f32>(100).unwrap();
    engine
        .traverse(&Ones, set, set)
        .run_into(&mut sums.as_view_mut())
        .unwrap();
    assert_eq!(engine.finish().unwrap(), Progress::Valid);
    assert_eq!(stream.clone_dtoh(&sums).unwrap(), [99.0; 100]);
}
