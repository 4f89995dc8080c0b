//! Lists with a skin give exactly the pairs within the radius, step after step.

use crate::common::{Fingerprint, Settings, builder_for, fingerprints, labels};
use nearfield::{
    Engine, Error, ErrorKind, ListKind,
    lists::{PairGeometry, Refresh, VerletLists},
    prelude::*,
};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Lists, Runner},
    oracle,
    random::Random,
    shapes, strategy,
};
use proptest::prelude::*;

/// Lists with a skin that hold the sets of a case.
fn verlet(case: &Case, skin: f32) -> Result<(VerletLists, Vec<PointSetId>), Error> {
    let mut lists = VerletLists::new(builder_for(case, Settings::default()), skin)?;
    let sets = case.sets.iter().map(|set| lists.add_point_set(set));
    let sets = sets.collect::<Result<_, _>>()?;
    Ok((lists, sets))
}

/// The pairs of a case that the lists give.
fn pairs(lists: &VerletLists, case: &Case, sets: &[PointSetId]) -> Result<Lists, Error> {
    let mut found = vec![Vec::new(); case.targets().len()];
    lists.for_each_pair(sets[case.target], sets[case.source], |i, j, _| {
        found[i as usize].push(j);
    })?;
    Ok(found)
}

/// Moves the sets to the positions of a case.
fn move_to(lists: &mut VerletLists, case: &Case, sets: &[PointSetId]) -> Result<Refresh, Error> {
    for (set, id) in case.sets.iter().zip(sets) {
        lists.update(*id, set)?;
    }
    lists.refresh()
}

/// A case whose points are off by `length`, each in a random direction.
fn off(case: &Case, length: f64, seed: u64) -> Case {
    let (mut off, mut random) = (case.clone(), Random::new(seed));
    for at in off.sets.iter_mut().flatten() {
        *at = moved(*at, shift(&mut random, length));
    }
    off
}

/// Whether a skin can serve a case.
fn of_one_radius(case: &Case) -> bool {
    case.rule == oracle::RadiusRule::Uniform
}

/// A displacement of length `length` in a random direction.
fn shift(random: &mut Random, length: f64) -> [f32; 3] {
    random.direction().map(|d| (d * length) as f32)
}

fn moved(at: [f32; 3], by: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|axis| at[axis] + by[axis])
}

/// Walks all sets of a case and compares every step with the oracle; returns the rebuilds.
fn walk(mut case: Case, skin: f32, stride: f64, steps: usize) -> u64 {
    let mut random = Random::new(9);
    let (mut lists, sets) = verlet(&case, skin).unwrap();
    for step in 0..steps {
        for (set, id) in case.sets.iter_mut().zip(&sets) {
            for at in set.iter_mut() {
                *at = moved(*at, shift(&mut random, stride));
            }
            lists.update(*id, &*set).unwrap();
        }
        let needed = lists.needs_rebuild();
        let done = lists.refresh().unwrap();
        assert_eq!(done == Refresh::Rebuilt, needed);
        assert!(!lists.needs_rebuild());
        case.check(pairs(&lists, &case, &sets).unwrap())
            .unwrap_or_else(|error| panic!("{} at step {step}: {error}", case.name));
        check_geometry(&lists, &case, &sets);
    }
    assert!(lists.builds() > 1, "{}: never rebuilt", case.name);
    assert!(lists.builds() < steps as u64, "{}: never kept", case.name);
    lists.builds()
}

/// Checks that the geometry of pairs has the same lists, and displacements of the contract.
fn check_geometry(lists: &VerletLists, case: &Case, sets: &[PointSetId]) {
    let mut geometry = PairGeometry::default();
    let (t, s) = (sets[case.target], sets[case.source]);
    lists.pair_geometry(t, s, &mut geometry).unwrap();
    let found = geometry.lists().iter().map(<[u32]>::to_vec).collect();
    case.check(found).unwrap();
    let problem = case.problem();
    for (target, &from) in case.targets().iter().enumerate() {
        for pair in geometry.of(target) {
            let to = case.sources()[pair.index as usize];
            let image = pair.image.map(i64::from);
            let d = problem.displacement(from, to, image);
            let d2 = problem.distance_squared(from, to, image);
            let bits = |d: [f32; 3]| d.map(|x| (x + 0.0).to_bits());
            let found = pair.d.map(|x| x as f32);
            assert_eq!(
                (bits(found), pair.d2 as f32),
                (bits(d), d2),
                "{}",
                case.name
            );
        }
    }
}

fn cube(points: usize, side: f32, seed: u64) -> Vec<[f32; 3]> {
    shapes::uniform_box(points, [[0.0; 3], [side; 3]], seed)
}

#[test]
fn random_walks_lose_no_pair() {
    let one = |name: &str| Case::new(name, 1.0, cube(400, 5.0, 1));
    walk(one("open"), 0.3, 0.02, 60);
    walk(one("open half").half(), 0.3, 0.02, 60);
    let box_of = |length| [Some(length), None, Some(length)];
    walk(one("periodic").periodic(box_of(5.0)), 0.3, 0.02, 60);
    walk(one("small box").periodic(box_of(1.7)), 0.3, 0.02, 40);
    walk(
        one("small box half").periodic(box_of(1.7)).half(),
        0.3,
        0.02,
        40,
    );
    let few = Case::new("tiny box", 1.0, cube(12, 0.6, 2)).periodic([Some(0.6); 3]);
    walk(few.clone(), 0.2, 0.03, 40);
    walk(few.half(), 0.2, 0.03, 40);
    let pair = Case {
        sets: vec![cube(300, 5.0, 3), cube(200, 5.0, 4)],
        source: 1,
        ..Case::new("two sets", 1.0, Vec::new())
    };
    walk(pair.clone(), 0.3, 0.02, 60);
    walk(pair.periodic([Some(5.0); 3]), 0.3, 0.02, 60);
    walk(one("tilted").tilted(LEANING), 0.3, 0.02, 60);
}

const LEANING: [Option<[f64; 3]>; 3] = [
    Some([6.0, 0.0, 0.0]),
    Some([2.0, 5.0, 0.0]),
    Some([-1.0, 1.5, 5.0]),
];

#[test]
fn a_move_along_an_axis_by_the_length_of_a_leaning_vector_is_no_way_back() {
    let mut case = Case::new("leaning", 1.0, cube(300, 5.0, 4)).tilted(LEANING);
    let (mut lists, sets) = verlet(&case, 0.2).unwrap();
    lists.refresh().unwrap();
    let length = 29f32.sqrt();
    case.sets[0][..150]
        .iter_mut()
        .for_each(|at| at[1] += length);
    lists.update(sets[0], &case.sets[0]).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    case.check(pairs(&lists, &case, &sets).unwrap()).unwrap();
    // By the vector itself, nothing has moved.
    for at in &mut case.sets[0][..150] {
        *at = moved(*at, [2.0, 5.0, 0.0]);
    }
    lists.update(sets[0], &case.sets[0]).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    case.check(pairs(&lists, &case, &sets).unwrap()).unwrap();
}

#[test]
fn every_conformance_case_is_found_through_lists_of_other_positions() {
    let (mut kept, mut rebuilt) = (0, 0);
    Runner::new(Level::Quick)
        .keep(of_one_radius)
        .run(|case| -> Result<_, Error> {
            let skin = 0.25 * case.radius;
            // Lists are built a little off, by just under half the skin and its margin.
            let (mut lists, sets) = verlet(&off(case, 0.499 * f64::from(skin), 5), skin)?;
            lists.refresh()?;
            match move_to(&mut lists, case, &sets)? {
                Refresh::Kept => kept += 1,
                Refresh::Rebuilt => rebuilt += 1,
            }
            pairs(&lists, case, &sets)
        })
        .unwrap();
    // Far from the origin coordinates are too coarse for so small a step: those are rebuilt.
    assert!(kept > 4 * rebuilt, "{kept} kept, {rebuilt} rebuilt");
}

#[test]
fn kernels_run_over_the_lists_at_the_positions_of_now() {
    let runner = Runner::new(Level::Quick)
        .keep(|case| case.list == oracle::ListKind::Full)
        .keep(of_one_radius);
    for case in runner.cases() {
        let skin = 0.25 * case.radius;
        let (mut lists, sets) = verlet(&off(case, 0.49 * f64::from(skin), 6), skin).unwrap();
        lists.refresh().unwrap();
        move_to(&mut lists, case, &sets).unwrap();
        let found = lists
            .traverse(&Fingerprint, sets[case.target], sets[case.source])
            .targets(&labels(case.targets()))
            .sources(&labels(case.sources()))
            .over_lists()
            .run()
            .unwrap();
        assert!(found == fingerprints(case), "case {}", case.name);
    }
}

/// Two points that approach each other to exactly the radius from just outside the list radius.
#[test]
fn no_approach_can_slip_through_the_skin() {
    let mut random = Random::new(11);
    let (mut kept, mut found) = (0, 0);
    for trial in 0..4000 {
        let far = [0.0f32, 100.0, -3000.0][trial % 3];
        let periodic = [None, Some(7.3)][trial % 2];
        let skin = 0.1f32;
        let direction = random.direction();
        let at = |distance: f64| -> [f32; 3] {
            std::array::from_fn(|axis| far + (direction[axis] * distance) as f32)
        };
        // Around the bound: together they come closer by a hair more or less than the skin.
        let start = 1.1 + random.between(-3e-7, 3e-7);
        let end = 1.0 + random.between(-3e-7, 3e-7);
        let half = 0.5 * (start - end);
        let builder = Engine::builder(1.0).periodic([periodic; 3]).threads(1);
        let mut lists = VerletLists::new(builder, skin).unwrap();
        let set = lists.add_point_set(&[at(0.0), at(start)]).unwrap();
        lists.refresh().unwrap();
        let now = vec![at(half), at(half + end)];
        lists.update(set, &now).unwrap();
        if lists.needs_rebuild() {
            continue;
        }
        kept += 1;
        let case = Case::new("approach", 1.0, now).periodic([periodic; 3]);
        let pairs = pairs(&lists, &case, &[set]).unwrap();
        found += pairs[0].len();
        case.check(pairs).unwrap();
    }
    assert!(kept > 100 && found > 20, "{kept} kept, {found} pairs");
}

#[test]
fn only_what_moved_too_far_needs_a_rebuild() {
    let points = cube(500, 6.0, 1);
    let mut lists = VerletLists::new(Engine::builder(1.0), 0.2).unwrap();
    let fluid = lists.add_point_set(&points).unwrap();
    assert!(lists.needs_rebuild(), "there are no lists yet");
    let error = lists.candidates(fluid, fluid).unwrap_err().to_string();
    assert!(error.contains("call refresh"), "{error}");
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    assert_eq!(
        (lists.radius(), lists.list_radius()),
        (1.0, f64::from(1.2f32))
    );

    // One point moves by just less, then by just more than half the skin.
    let mut now = points.clone();
    now[77][1] += 0.0999;
    lists.update(fluid, &now).unwrap();
    let moved = lists.displacement(fluid).unwrap();
    assert!((moved - 0.0999).abs() < 1e-5, "{moved}");
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    now[77][1] = points[77][1] + 0.1001;
    lists.update(fluid, &now).unwrap();
    let error = lists.candidates(fluid, fluid).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NeedsRefresh { moved, .. } if *moved > 0.2),
        "{error}"
    );
    // It need not be used, it may also come back.
    lists.update(fluid, &points).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    // A jump.
    now[77] = [40.0, -3.0, 2.0];
    lists.update(fluid, &now).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    // Another number of points, and as many as before again.
    now.pop();
    lists.update(fluid, &now).unwrap();
    assert_eq!(lists.displacement(fluid).unwrap(), f64::INFINITY);
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    assert_eq!(lists.candidates(fluid, fluid).unwrap().len(), 499);
    assert_eq!(lists.builds(), 3);
}

#[test]
fn beside_a_set_at_rest_the_other_may_use_up_the_whole_skin() {
    let mut lists = VerletLists::new(Engine::builder(1.0), 0.2).unwrap();
    let mut fluid = cube(200, 4.0, 1);
    let a = lists.add_point_set(&fluid).unwrap();
    let b = lists.add_point_set(&cube(100, 4.0, 2)).unwrap();
    lists.refresh().unwrap();
    fluid.iter_mut().for_each(|at| at[2] += 0.15);
    lists.update(a, &fluid).unwrap();
    assert!(lists.candidates(a, b).is_ok() && lists.candidates(b, b).is_ok());
    assert!(lists.candidates(a, a).is_err() && lists.needs_rebuild());
    lists.set_active(a, a, false).unwrap();
    assert_eq!(
        lists.refresh().unwrap(),
        Refresh::Kept,
        "the others are not asked for"
    );
    assert!(matches!(
        lists
            .candidates(a, a)
            .as_ref()
            .map_err(|error| error.kind()),
        Err(ErrorKind::NoLists { .. })
    ));
    lists.set_active(a, a, true).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    assert!(lists.candidates(a, a).is_ok());
}

#[test]
fn coordinates_may_be_wrapped_into_the_box_without_a_rebuild() {
    let periodic = [Some(5.0), Some(5.0), None];
    let mut case = Case::new("wrapped", 1.0, cube(300, 5.0, 8)).periodic(periodic);
    let (mut lists, sets) = verlet(&case, 0.2).unwrap();
    lists.refresh().unwrap();
    let mut wrapped = 0;
    for at in &mut case.sets[0] {
        for axis in 0..2 {
            at[axis] += 0.04;
            wrapped += usize::from(at[axis] >= 5.0);
            at[axis] = at[axis].rem_euclid(5.0);
        }
        at[0] += 15.0;
    }
    assert!(
        wrapped > 0,
        "no point crossed a face, so this test says nothing"
    );
    lists.update(sets[0], &case.sets[0]).unwrap();
    let moved = lists.displacement(sets[0]).unwrap();
    assert!((moved - 0.04 * 2f64.sqrt()).abs() < 1e-5, "{moved}");
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept);
    case.check(pairs(&lists, &case, &sets).unwrap()).unwrap();
}

#[test]
fn what_cannot_be_used_is_refused_and_changes_nothing() {
    for skin in [-0.1, f32::NAN, f32::INFINITY] {
        let error = VerletLists::new(Engine::builder(1.0), skin).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Skin(_)), "{error}");
    }
    assert!(VerletLists::new(Engine::builder(-1.0), 0.1).is_err());
    let points = cube(50, 2.0, 1);
    let mut lists = VerletLists::new(Engine::builder(1.0).lists(ListKind::Half), 0.1).unwrap();
    let set = lists.add_point_set(&points).unwrap();
    lists.refresh().unwrap();
    let mut bad = points.clone();
    bad[7][0] = f32::NAN;
    let error = lists.update(set, &bad).unwrap_err().to_string();
    assert!(
        error.contains("point set 0: point 7 has x = NaN"),
        "{error}"
    );
    let error = lists.add_point_set(&bad).unwrap_err().to_string();
    assert!(error.contains("point set 1: point 7"), "{error}");
    let mut visited = 0;
    lists
        .for_each_neighbor(set, set, 3, |_, _| visited += 1)
        .unwrap();
    assert!(visited > 0);
    let error = lists
        .for_each_neighbor(set, set, 50, |_, _| ())
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::UnknownPoint {
            point: 50,
            points: 50,
            ..
        }
    ));
    // Half lists serve both points of a pair.
    let labels = labels(&points);
    let found = lists
        .traverse(&Fingerprint, set, set)
        .targets(&labels)
        .sources(&labels)
        .run()
        .unwrap();
    let case = Case::new("half", 1.0, points);
    assert!(found == fingerprints(&case));
}

#[test]
fn without_a_skin_every_move_is_a_rebuild() {
    let mut case = Case::new("no skin", 2.0, Cloud::Lattice.points(1_000, 1));
    let (mut lists, sets) = verlet(&case, 0.0).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    lists.update(sets[0], &case.sets[0]).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Kept, "nothing moved");
    case.sets[0][500][0] += 0.01;
    lists.update(sets[0], &case.sets[0]).unwrap();
    assert_eq!(lists.refresh().unwrap(), Refresh::Rebuilt);
    case.check(pairs(&lists, &case, &sets).unwrap()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_points_that_moved_within_the_skin_lose_no_pair(
        case in strategy::case(40),
        skin in 0.0f32..0.5,
        share in 0.3f64..0.5,
        seed in 0u64..1000,
    ) {
        let skin = skin * case.radius;
        let off = off(&case, share * f64::from(skin), seed);
        let (mut lists, sets) = verlet(&off, skin).unwrap();
        lists.refresh().unwrap();
        move_to(&mut lists, &case, &sets).unwrap();
        case.check(pairs(&lists, &case, &sets).unwrap()).unwrap();
    }
}
