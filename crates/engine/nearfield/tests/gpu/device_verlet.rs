//! Lists with a skin on a GPU serve points that move, through every image, and are built anew
//! before a pair is missing.

use crate::{
    common::{Fingerprint, Precise, labels},
    device_filters::Data,
    fresh_seed, needs_gpu,
    on_gpu::upload,
    over_lists::{SPACES, Space, expected, points},
};
use nearfield::{
    ErrorKind, ListKind, PointSetId, RadiusRule,
    device::{
        DeviceEngine, DeviceEngineBuilder, DeviceField, DeviceVerletLists, PositionNumber, Progress,
    },
    lists::Refresh,
};
use nearfield_testkit::random::Random;

fn start(space: Space, radius: f32, skin: f32) -> DeviceVerletLists {
    let settings = space.on_device(radius);
    DeviceVerletLists::new(settings, skin, |settings| settings.on_gpu(0)).unwrap()
}

/// Fingerprints over the lists, run until they count; how often they were repeated.
fn found(
    lists: &mut DeviceVerletLists,
    [targets, sources]: [PointSetId; 2],
    sets: [&[[f32; 3]]; 2],
) -> (Vec<[f32; 3]>, usize) {
    let stream = lists.engine().stream().clone();
    let fields = sets.map(|points| stream.clone_htod(&labels(points)).unwrap());
    let mut results = stream.alloc_zeros::<f32>(3 * sets[0].len()).unwrap();
    let mut repeats = 0;
    loop {
        let field = |at: usize| DeviceField::new(fields[at].as_view(), 1);
        let traversal = lists.traverse(&Fingerprint, targets, sources);
        let traversal = traversal.targets(field(0)).sources(field(1));
        traversal.run_into(&mut results.as_view_mut()).unwrap();
        let found = stream.clone_dtoh(&results).unwrap();
        if lists.finish().unwrap() == Progress::Valid {
            return (found.as_chunks().0.to_vec(), repeats);
        }
        // Kernels over lists that may miss a pair do nothing.
        assert!(found.iter().all(|&x| x == 0.0));
        repeats += 1;
    }
}

/// Moves every point by up to `step` along each axis.
fn drift(random: &mut Random, points: &mut [[f32; 3]], step: f32) {
    for coordinate in points.as_flattened_mut() {
        *coordinate += step * (random.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0);
    }
}

#[test]
fn lists_follow_points_and_are_built_when_a_pair_could_be_missing() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (space, count) in SPACES
        .into_iter()
        .zip([20_000, 30_000, 20_000, 3_000, 2_500])
    {
        let (radius, skin) = (0.8, 0.2);
        let mut lists = start(space, radius, skin);
        let mut sets = [points(&mut random, count), points(&mut random, count / 9)];
        let stream = lists.engine().stream().clone();
        let add = |points: &Vec<_>| {
            let points = upload(&stream, points);
            lists.add_point_set(&points.as_view()).unwrap()
        };
        let ids = sets.each_ref().map(add);
        lists.set_active(ids[1], ids[1], false).unwrap();
        assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
        let steps = 12;
        for step in 0..steps {
            let mut repeats = 0;
            for (set, points) in ids.into_iter().zip(&mut sets) {
                drift(&mut random, points, 0.02);
                let now = upload(&stream, points);
                lists.update(set, &now.as_view()).unwrap();
            }
            for (a, b) in [(0, 0), (0, 1), (1, 0)] {
                let of = [sets[a].as_slice(), &sets[b]];
                let (results, again) = found(&mut lists, [ids[a], ids[b]], of);
                repeats += again;
                let same = results == expected(space, radius, of);
                assert!(same, "{space:?}, step {step}, {a} among {b}");
            }
            assert!(repeats <= 1, "lists are built once per step");
        }
        let builds = lists.builds();
        assert!((2..steps).contains(&builds), "{space:?}: {builds} builds");
        let moved = lists.displacement(ids[0]).unwrap();
        assert!((0.0..0.1).contains(&moved), "{moved}");
    }
}

#[test]
fn lists_in_either_precision_leave_out_what_filters_do_also_after_they_have_changed() {
    check_filtered::<f32>();
    check_filtered::<f64>();
}

fn check_filtered<T: Precise + PositionNumber>() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let leaning = Space::Tilted([Some([10.0, 2.5, 1.0]), None, Some([0.0, -3.0, 9.0])]);
    let spaces = SPACES.into_iter().chain([leaning]);
    let (radius, skin) = (0.8f32, 0.2);
    let cutoffs = [[0.8, 0.5], [0.5, 0.0]];
    for (space, count) in spaces.zip([20_000, 20_000, 20_000, 3_000, 2_500, 20_000]) {
        let settings = space.on_device(radius).precision(T::PRECISION);
        let start = |settings: DeviceEngineBuilder| settings.on_gpu(0);
        let mut lists = DeviceVerletLists::new(settings.cutoffs(&cutoffs), skin, start).unwrap();
        let on_cpu = space.on_cpu(radius).precision(T::PRECISION);
        let mut on_cpu = on_cpu.cutoffs(&cutoffs).build().unwrap();
        let mut set = points(&mut random, count);
        let exactly = |points: &[[f32; 3]]| -> Vec<[T; 3]> {
            let exact = |x: f32| T::round(f64::from(x) + 1e-9);
            points.iter().map(|at| at.map(exact)).collect()
        };
        let stream = lists.engine().stream().clone();
        let first = upload(&stream, &exactly(&set));
        let id = lists.add_point_set(&first.as_view()).unwrap();
        let of_cpu = on_cpu.add_point_set(T::positions(&exactly(&set))).unwrap();
        let missing = lists.refresh().unwrap_err();
        assert!(
            matches!(missing.kind(), ErrorKind::NoTypes { .. }),
            "{missing}"
        );
        for step in 0..6 {
            if step % 3 == 0 {
                let data = Data::draw(count, 0.5, &mut random);
                lists.set_types(id, &data.types).unwrap();
                lists.set_molecules(id, &data.molecules).unwrap();
                on_cpu.set_types(of_cpu, &data.types).unwrap();
                on_cpu.set_molecules(of_cpu, &data.molecules).unwrap();
                lists.refresh().unwrap();
            }
            drift(&mut random, &mut set, 0.03);
            let now = exactly(&set);
            lists.update(id, &upload(&stream, &now).as_view()).unwrap();
            on_cpu.update(of_cpu, T::positions(&now)).unwrap();
            let (results, _) = found(&mut lists, [id; 2], [&set; 2]);
            let of_points = labels(&set);
            let traversal = on_cpu.traverse(&Fingerprint, of_cpu, of_cpu);
            let traversal = traversal.targets(&of_points).sources(&of_points);
            assert!(
                results == traversal.run().unwrap(),
                "{space:?}, step {step}"
            );
        }
        assert!(
            (2..6).contains(&lists.builds()),
            "{space:?}: {}",
            lists.builds()
        );
    }
}

#[test]
fn coordinates_may_be_wrapped_and_other_numbers_of_points_are_other_points() {
    needs_gpu!();
    let mut random = Random::new(fresh_seed());
    let space = SPACES[1];
    let mut lists = start(space, 0.8, 0.2);
    let mut set = points(&mut random, 9_000);
    let stream = lists.engine().stream().clone();
    let id = lists
        .add_point_set(&upload(&stream, &set).as_view())
        .unwrap();
    let refused = lists.traverse(&Fingerprint, id, id);
    let mut results = stream.alloc_zeros::<f32>(27_000).unwrap();
    let refused = refused.run_into(&mut results.as_view_mut()).unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::NeedsRefresh { .. }),
        "{refused}"
    );
    lists.refresh().unwrap();
    // By whole boxes, and a little: nothing is built.
    for (at, point) in set.iter_mut().enumerate() {
        if at % 3 > 0 {
            point[0] += if point[0] < 5.0 { 10.0 } else { -10.0 };
            point[2] += if point[2] < 5.0 { 7.5 } else { -7.5 };
        }
        point[0] += 0.05;
    }
    lists.update(id, &upload(&stream, &set).as_view()).unwrap();
    let (results, repeats) = found(&mut lists, [id; 2], [&set; 2]);
    assert_eq!((repeats, lists.builds()), (0, 1));
    assert!(results == expected(space, 0.8, [&set, &set]));
    // Farther than a box beyond where they were.
    set[17][0] += 300.0;
    lists.update(id, &upload(&stream, &set).as_view()).unwrap();
    assert_eq!(lists.displacement(id).unwrap(), f64::INFINITY);
    let (results, repeats) = found(&mut lists, [id; 2], [&set; 2]);
    assert_eq!((repeats, lists.builds()), (1, 2));
    assert!(results == expected(space, 0.8, [&set, &set]));
    // One point more, and the same points in another order.
    set.push([1.0, 2.0, 3.0]);
    lists.update(id, &upload(&stream, &set).as_view()).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    set.reverse();
    lists.replace(id, &upload(&stream, &set).as_view()).unwrap();
    assert_eq!(lists.finish().unwrap(), Progress::Repeat);
    let (results, repeats) = found(&mut lists, [id; 2], [&set; 2]);
    assert_eq!((repeats, lists.builds()), (0, 4));
    assert!(results == expected(space, 0.8, [&set, &set]));
}

#[test]
fn coordinates_that_are_no_numbers_are_named_and_the_lists_go_on() {
    needs_gpu!();
    let mut random = Random::new(fresh_seed());
    let mut lists = start(Space::Open, 0.8, 0.2);
    let good = points(&mut random, 5_000);
    let stream = lists.engine().stream().clone();
    let id = lists
        .add_point_set(&upload(&stream, &good).as_view())
        .unwrap();
    lists.refresh().unwrap();
    let mut bad = good.clone();
    bad[417][1] = f32::NAN;
    lists.update(id, &upload(&stream, &bad).as_view()).unwrap();
    let error = lists.finish().unwrap_err().to_string();
    assert!(error.contains("point 417"), "{error}");
    lists.update(id, &upload(&stream, &good).as_view()).unwrap();
    lists.refresh().unwrap();
    let (results, _) = found(&mut lists, [id; 2], [&good; 2]);
    assert!(results == expected(Space::Open, 0.8, [&good, &good]));
}

#[test]
fn a_skin_of_nothing_keeps_lists_while_no_coordinate_changes() {
    needs_gpu!();
    let mut random = Random::new(fresh_seed());
    let mut lists = start(SPACES[2], 0.8, 0.0);
    let mut set = points(&mut random, 3_000);
    let stream = lists.engine().stream().clone();
    let id = lists
        .add_point_set(&upload(&stream, &set).as_view())
        .unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    lists.update(id, &upload(&stream, &set).as_view()).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    set[5][1] = set[5][1].next_up();
    lists.update(id, &upload(&stream, &set).as_view()).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
}

#[test]
fn settings_that_cannot_serve_are_refused() {
    let start =
        |builder, skin| DeviceVerletLists::new(builder, skin, |settings| settings.on_gpu(0));
    let negative = start(DeviceEngine::builder(1.0), -0.5).unwrap_err();
    assert!(matches!(negative.kind(), ErrorKind::Skin(_)), "{negative}");
    let half = start(DeviceEngine::builder(1.0).lists(ListKind::Half), 0.5).unwrap_err();
    assert!(matches!(half.kind(), ErrorKind::Combined { .. }), "{half}");
    let radii = DeviceEngine::builder(1.0).radii(RadiusRule::Gather);
    for refused in [radii, DeviceEngine::builder(1.0).nearest(3)] {
        let refused = start(refused, 0.5).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::Combined { .. }),
            "{refused}"
        );
    }
    let cutoffs = start(DeviceEngine::builder(1.0).cutoffs(&[[1.2]]), 0.5).unwrap_err();
    assert!(matches!(cutoffs.kind(), ErrorKind::Cpu(_)), "{cutoffs}");
    let radius = start(DeviceEngine::builder(0.0), 0.5).unwrap_err();
    assert!(matches!(radius.kind(), ErrorKind::Setup(_)), "{radius}");
}
