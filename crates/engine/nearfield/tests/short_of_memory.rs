//! Calls of several steps that fail in the middle, because memory is short there: the engine is
//! then as it was before. A process of its own, whose allocator refuses what the test tells it to.

use nearfield::prelude::*;
use nearfield_testkit::memory::Refusing;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// One test at a time: the allocator refuses memory to all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// A lattice of m³ points, `spacing` apart.
fn lattice(m: usize, spacing: f32) -> Vec<[f32; 3]> {
    let at = |k: usize| (k % m) as f32 * spacing;
    (0..m * m * m)
        .map(|i| [at(i), at(i / m), at(i / m / m)])
        .collect()
}

/// The lists of all pairs of two sets.
fn all_lists(engine: &mut Engine) -> Vec<Vec<Vec<u32>>> {
    engine.find_neighbors().unwrap();
    let sets = [0, 1].map(|set| engine.point_set(set).unwrap());
    let pairs = sets.iter().flat_map(|t| sets.iter().map(move |s| (*t, *s)));
    pairs
        .map(|(t, s)| {
            let lists = engine.neighbors(t, s).unwrap();
            lists.iter().map(<[u32]>::to_vec).collect()
        })
        .collect()
}

/// Every request from this on is made for a set as a whole: the smaller set has 8000 points.
const LARGE: usize = 8000 * 4;

#[test]
fn a_radius_that_memory_is_too_short_for_leaves_all_sets_on_the_old_one() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut engine = Engine::builder(1.5)
        .list_order(ListOrder::Ascending)
        .periodic([Some(40.0); 3])
        .threads(2)
        .build()
        .unwrap();
    engine.add_point_set(&lattice(20, 1.0)).unwrap();
    engine.add_point_set(&lattice(21, 0.9)).unwrap();
    let before = all_lists(&mut engine);
    let mut refused = 0;
    // Wherever memory runs out: at the first set, at the second, or nowhere.
    for granted in 0..40 {
        let set = MEMORY.while_short(LARGE, granted, || engine.set_radius(1.25));
        let Err(error) = set else {
            break;
        };
        assert!(error.is_out_of_memory(), "{error}");
        refused += 1;
        // The sets that could not be moved back are refused by name, and found again once they are
        // where the others are.
        if let Err(error) = engine.find_neighbors() {
            assert!(error.is_out_of_memory(), "{error}");
            engine.set_radius(1.5).unwrap();
        }
        assert_eq!(engine.radius(), 1.5);
        assert_eq!(all_lists(&mut engine), before, "{granted} requests granted");
    }
    assert!(refused >= 2, "only {refused} requests are large");
    assert_eq!(engine.radius(), 1.25);
    let mut other = Engine::builder(1.25)
        .list_order(ListOrder::Ascending)
        .periodic([Some(40.0); 3])
        .build()
        .unwrap();
    other.add_point_set(&lattice(20, 1.0)).unwrap();
    other.add_point_set(&lattice(21, 0.9)).unwrap();
    assert_eq!(all_lists(&mut engine), all_lists(&mut other));
}

#[test]
fn points_that_memory_is_too_short_to_remove_stay_with_their_radii() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (points, keep) = (lattice(21, 0.9), |index: usize| index % 3 != 1);
    let radii: Vec<f32> = (0..points.len())
        .map(|i| 1.0 + (i % 11) as f32 / 20.0)
        .collect();
    let build = || {
        Engine::builder(1.5)
            .radii(RadiusRule::Gather)
            .list_order(ListOrder::Ascending)
            .periodic([None, Some(40.0), None])
            .threads(2)
            .build()
            .unwrap()
    };
    let lists = |engine: &mut Engine, set| {
        engine.find_neighbors().unwrap();
        let lists = engine.neighbors(set, set).unwrap();
        lists.iter().map(<[u32]>::to_vec).collect::<Vec<_>>()
    };
    let mut engine = build();
    let set = engine.add_point_set(&points).unwrap();
    engine.set_radii(set, &radii).unwrap();
    let before = lists(&mut engine, set);
    let mut refused = 0;
    loop {
        let retain = MEMORY.while_short(GROWS, refused, || engine.retain_points(set, keep));
        let Err(error) = retain else {
            break;
        };
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(
            lists(&mut engine, set),
            before,
            "{refused} requests granted"
        );
        refused += 1;
    }
    assert!(refused >= 3, "only {refused} requests are large");
    let kept = |index: &usize| keep(*index);
    let points: Vec<_> = (0..points.len()).filter(kept).map(|i| points[i]).collect();
    let radii: Vec<_> = (0..radii.len()).filter(kept).map(|i| radii[i]).collect();
    let mut other = build();
    let of_other = other.add_point_set(&points).unwrap();
    other.set_radii(of_other, &radii).unwrap();
    assert_eq!(lists(&mut engine, set), lists(&mut other, of_other));
}

#[test]
fn lists_under_a_limit_need_no_more_memory_than_without_gaps() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let points = lattice(20, 1.0);
    let build = || {
        let builder = Engine::builder(1.5).threads(2).memory_limit(1 << 30);
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        // Scratch is allocated here, not while memory is short.
        engine.count_neighbors(set, set).unwrap();
        (engine, set)
    };
    let (mut engine, set) = build();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    let expected: Vec<_> = lists.iter().map(<[u32]>::to_vec).collect();
    let without_gaps = 4 * lists.pairs() as usize;
    assert!(lists.entry_bytes() > without_gaps, "written in one pass");
    // Room for gaps is refused, and room for the entries is not.
    let (mut engine, set) = build();
    let find = MEMORY.while_short(without_gaps + 1, 0, || engine.find_neighbors());
    find.unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    assert!(lists.iter().eq(expected.iter().map(Vec::as_slice)));
    assert_eq!(lists.entry_bytes(), without_gaps);
    // Neither is granted.
    let (mut engine, set) = build();
    let find = MEMORY.while_short(without_gaps, 0, || engine.find_neighbors());
    assert!(find.unwrap_err().is_out_of_memory());
    assert!(engine.neighbors(set, set).is_err());
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    assert!(lists.iter().eq(expected.iter().map(Vec::as_slice)));
}

/// From here on requests grow with the number of points, or of bricks; a controller takes 12 kB.
const GROWS: usize = 16_384;

#[test]
fn a_step_of_both_backends_that_memory_is_too_short_for_is_an_error() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let points = lattice(32, 0.9);
    // Bricks in a dense table, and bricks far apart.
    let far: Vec<[f32; 3]> = (points.iter().enumerate())
        .map(|(k, at)| at.map(|x| if k % 8 == 0 { x * 1e4 } else { x }))
        .collect();
    for (points, deterministic) in [(&points, true), (&points, false), (&far, true)] {
        let mut refused = Vec::new();
        let mut expected = None;
        for granted in (0..).step_by(2) {
            let builder = Engine::builder(1.0)
                .device("emulated".parse().unwrap())
                .deterministic(deterministic)
                .list_order(ListOrder::Ascending)
                .threads(1);
            let mut engine = builder.build().unwrap();
            let set = engine.add_point_set(points).unwrap();
            // Both backends sort at their first job.
            engine.count_neighbors(set, set).unwrap();
            let find = MEMORY.while_short(GROWS, granted, || engine.find_neighbors());
            let Err(error) = find else {
                assert!(engine.neighbors(set, set).unwrap().pairs() > 0);
                break;
            };
            assert!(error.is_out_of_memory(), "{error}");
            let text = error.to_string();
            assert!(text.contains("bytes are needed for"), "{text}");
            refused.push(text);
            if granted % 16 != 0 {
                continue;
            }
            // The next step does what this one could not.
            engine.find_neighbors().unwrap();
            let lists = engine.neighbors(set, set).unwrap();
            let lists: Vec<_> = lists.iter().map(<[u32]>::to_vec).collect();
            assert_eq!(*expected.get_or_insert_with(|| lists.clone()), lists);
        }
        for what in ["occupied cells", "a layout of bricks", "a plan of bricks"] {
            assert!(
                refused.iter().any(|text| text.contains(what)),
                "{what}: {refused:#?}"
            );
        }
    }
}
