//! Names of sets, sets and points that are removed, and what is said of lists that are not there.

use nearfield::{
    error::MissingLists,
    lists::{Refresh, VerletLists},
    prelude::*,
};

const DEVICES: [&str; 2] = ["cpu", "emulated"];

fn row(xs: &[f32]) -> Vec<[f32; 3]> {
    xs.iter().map(|x| [*x, 0.0, 0.0]).collect()
}

fn engine(device: &str) -> Engine {
    let builder = Engine::builder(1.0).device(device.parse().unwrap());
    builder.threads(2).build().unwrap()
}

fn missing(engine: &Engine, targets: PointSetId, sources: PointSetId) -> MissingLists {
    match engine.neighbors(targets, sources).unwrap_err().kind() {
        ErrorKind::NoLists { why, .. } => *why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sets_of_other_engines_and_removed_ones_are_refused_by_name() {
    for device in DEVICES {
        let (mut one, mut other) = (engine(device), engine(device));
        let a = one.add_point_set(&row(&[0.0, 0.5])).unwrap();
        let b = one.add_point_set(&row(&[0.2])).unwrap();
        let foreign = other.add_point_set(&row(&[0.0])).unwrap();
        let refused = one.points(foreign).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::OtherEngine { .. }));
        one.find_neighbors().unwrap();
        one.remove_point_set(a).unwrap();
        let refused = one.neighbors(b, a).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::RemovedPointSet { .. }));
        assert_eq!(one.point_sets(), 1);
        assert!(one.neighbors(b, b).unwrap().of(0).is_empty());
        let c = one.add_point_set(&row(&[0.3, 5.0])).unwrap();
        assert_ne!(a, c);
        assert!(one.points(a).is_err() && one.point_set(a.number()).is_err());
        assert_eq!(one.point_set(c.number()).unwrap(), c);
        one.find_neighbors().unwrap();
        assert_eq!(one.neighbors(b, c).unwrap().of(0), &[0], "{device}");
        assert_eq!(one.report().sets.len(), 2);
    }
}

#[test]
fn points_that_are_kept_keep_their_order_and_their_radii() {
    for precision in [Precision::Single, Precision::Double] {
        let builder = Engine::builder(1.0).precision(precision);
        let mut engine = builder.device(Device::Cpu).build().unwrap();
        let set = engine
            .add_point_set(&row(&[3.0, 0.0, 2.2, 9.0, 2.5]))
            .unwrap();
        engine.find_neighbors().unwrap();
        assert_eq!(engine.retain_points(set, |_| true).unwrap(), 0);
        engine.neighbors(set, set).unwrap();
        assert_eq!(engine.retain_points(set, |i| i % 2 == 0).unwrap(), 2);
        assert_eq!(missing(&engine, set, set), MissingLists::Changed { set });
        engine.find_neighbors().unwrap();
        let mut found = engine.neighbors(set, set).unwrap().of(1).to_vec();
        found.sort_unstable();
        assert_eq!(found, [0, 2]);
    }
    let builder = Engine::builder(1.0).radii(RadiusRule::Gather);
    let mut engine = builder.device(Device::Cpu).build().unwrap();
    let set = engine.add_point_set(&row(&[7.0, 0.0, 0.6])).unwrap();
    engine.set_radii(set, &[0.1, 0.5, 1.0]).unwrap();
    engine.retain_points(set, |i| i > 0).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    assert_eq!((lists.of(0), lists.of(1)), (&[][..], &[0][..]));
}

#[test]
fn lists_that_are_not_there_say_why() {
    let mut engine = engine("cpu");
    let a = engine.add_point_set(&row(&[0.0, 0.5])).unwrap();
    let b = engine.add_point_set(&row(&[0.2])).unwrap();
    assert_eq!(missing(&engine, a, b), MissingLists::NotFound);
    engine.set_active(a, b, false).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(missing(&engine, a, b), MissingLists::Inactive);
    engine.update(b, &row(&[0.3])).unwrap();
    assert_eq!(missing(&engine, b, a), MissingLists::Changed { set: b });
    engine.neighbors(a, a).unwrap();
    engine.set_radius(2.0f32).unwrap();
    assert_eq!(missing(&engine, a, a), MissingLists::Radius);
    let text = engine.neighbors(b, a).unwrap_err().to_string();
    assert!(text.contains("set 1 has changed"), "{text}");
}

#[test]
fn lists_with_a_skin_lose_sets_too() {
    let mut lists = VerletLists::new(Engine::builder(1.0).device(Device::Cpu), 0.2).unwrap();
    let a = lists.add_point_set(&row(&[0.0])).unwrap();
    let b = lists.add_point_set(&row(&[0.5])).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    lists.remove_point_set(a).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    assert!(lists.candidates(b, a).is_err());
    let c = lists.add_point_set(&row(&[0.6, 0.7])).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    assert_eq!(lists.candidates(b, c).unwrap().pairs(), 2);
}

#[test]
fn every_target_gets_its_neighbours_and_its_own_value() {
    for device in DEVICES {
        let mut engine = engine(device);
        let xs: Vec<f32> = (0..1000).map(|i| 0.3 * i as f32).collect();
        let set = engine.add_point_set(&row(&xs)).unwrap();
        let mut sums = vec![0u64; xs.len()];
        let refused = engine.map_targets(set, set, &mut sums, |_, _, _| panic!("no lists yet"));
        assert!(matches!(
            refused.unwrap_err().kind(),
            ErrorKind::NoLists { .. }
        ));
        engine.find_neighbors().unwrap();
        let refused = engine.map_targets(set, set, &mut sums[1..], |_, _, _| panic!("too short"));
        assert!(refused.unwrap_err().to_string().contains("999 values"));
        let add = |i: usize, near: &[u32], sum: &mut u64| {
            *sum += i as u64 + near.iter().map(|&j| u64::from(j)).sum::<u64>();
        };
        engine.map_targets(set, set, &mut sums, add).unwrap();
        for (i, sum) in sums.iter().enumerate().skip(3).take(990) {
            assert_eq!(*sum, 7 * i as u64, "{device}");
        }
    }
}

#[test]
fn queries_use_their_memory_again() {
    let mut engine = engine("cpu");
    let set = engine.add_point_set(&row(&[0.0, 0.5])).unwrap();
    let mut scratch = nearfield::lists::QueryScratch::default();
    for (x, pairs) in [(0.9, 2), (1.2, 1), (9.0, 0)] {
        let lists = engine.query_into(&row(&[x, 50.0]), None, set, &mut scratch);
        assert_eq!(lists.unwrap().pairs(), pairs);
        assert!(
            engine
                .query_into(&row(&[f32::NAN]), None, set, &mut scratch)
                .is_err()
        );
    }
    let alone = engine.query(&row(&[0.9, 50.0]), set).unwrap();
    let again = engine
        .query_into(&row(&[0.9, 50.0]), None, set, &mut scratch)
        .unwrap();
    assert!(alone.iter().eq(again.iter()));
}

#[test]
fn engines_print_in_one_short_line() {
    let mut engine = engine("cpu");
    engine.add_point_set(&row(&[0.0; 100])).unwrap();
    let text = format!("{engine:?}");
    assert!(text.len() < 120 && text.contains("points: [100]"), "{text}");
}

/// Sets of one point each in a row, 0.6 apart. The first `near` sets search the next one.
fn chain(builder: nearfield::Builder, sets: usize, near: usize) -> (Engine, Vec<PointSetId>) {
    let mut engine = builder.build().unwrap();
    engine.set_all_active(false);
    let at = |k: usize| row(&[0.6 * k as f32]);
    let ids: Vec<_> = (0..sets)
        .map(|k| engine.add_point_set(&at(k)).unwrap())
        .collect();
    for k in 0..near {
        engine.set_active(ids[k], ids[k + 1], true).unwrap();
    }
    (engine, ids)
}

#[test]
fn thousands_of_sets_take_a_time_that_grows_with_their_number() {
    let plain = || Engine::builder(1.0).threads(1);
    let length = [Some(7000.0), None, None];
    for builder in [
        plain().device(Device::Cpu),
        plain().device(Device::Cpu).periodic(length),
        plain().precision(Precision::Double).device(Device::Cpu),
        plain().device("emulated".parse().unwrap()),
    ] {
        let begin = std::time::Instant::now();
        let (mut engine, ids) = chain(builder, 10_000, 20);
        engine.find_neighbors().unwrap();
        let report = engine.report();
        assert_eq!((report.pairs, report.jobs.len()), (20, 20));
        for id in &ids {
            engine
                .update(*id, &row(&[0.25 * id.number() as f32]))
                .unwrap();
        }
        engine.find_neighbors().unwrap();
        assert_eq!(engine.neighbors(ids[3], ids[4]).unwrap().of(0), &[0]);
        assert_eq!(missing(&engine, ids[4], ids[3]), MissingLists::Inactive);
        // A hundred times what it takes; it took hours when pairs of sets were a table.
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    }
}

#[test]
fn all_pairs_are_switched_at_once_and_single_ones_after() {
    let mut engine = engine("cpu");
    let a = engine.add_point_set(&row(&[0.0, 0.5])).unwrap();
    let b = engine.add_point_set(&row(&[0.2])).unwrap();
    engine.find_neighbors().unwrap();
    engine.set_all_active(false);
    assert_eq!(missing(&engine, a, a), MissingLists::Inactive);
    let c = engine.add_point_set(&row(&[0.3])).unwrap();
    assert!(!engine.is_active(c, a).unwrap());
    engine.set_active(c, a, true).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(c, a).unwrap().pairs(), 2);
    assert_eq!(engine.report().pairs, 2);
    // The name of a removed set takes its pairs along: the next one in its place has none.
    engine.remove_point_set(c).unwrap();
    let d = engine.add_point_set(&row(&[0.4])).unwrap();
    assert!(!engine.is_active(d, a).unwrap());
    engine.set_all_active(true);
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(b, d).unwrap().pairs(), 1);
    assert_eq!(engine.report().pairs, 12);
}
