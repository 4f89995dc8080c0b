//! Cut-offs per pair of types, exclusions, chosen targets and the k nearest: what the oracle keeps,
//! in every form in which neighbours go out.

use crate::common::{
    Precise, Settings, as_vectors, builder_for, fill,
    filters::{Drawn, comparable, draw, indices},
    fingerprints_of, labels, levels_in_turn, traverse,
};
use nearfield::{
    Builder,
    lists::{PairGeometry, VerletLists},
    prelude::*,
};
use nearfield_testkit::{
    conformance::{Case, Level},
    oracle::{self, Filters, Neighbor},
    random::Random,
};
use std::{ops::ControlFlow, sync::Mutex};

/// Asks an engine in every way and compares with the lists that the oracle keeps.
fn compare<T: Precise>(case: &Case<T>, drawn: &Drawn<T>, settings: Settings) -> usize {
    let builder = drawn.settings(builder_for(case, settings));
    let (mut engine, sets) = fill(builder.build().unwrap(), case).unwrap();
    drawn.give(&mut engine, case, &sets);
    let expected = case.problem().filtered(&drawn.filters);
    let (ordered, name) = (drawn.filters.nearest.is_some(), &case.name);
    let (t, s) = (sets[case.target], sets[case.source]);
    engine.find_neighbors().unwrap();
    let found = as_vectors(engine.neighbors(t, s).unwrap());
    let wanted = indices(&expected);
    assert_eq!(comparable(found, ordered), wanted, "lists of {name}");

    let mut chunks = vec![Vec::new(); wanted.len()];
    let mut listing = engine.list_chunks(t, s).unwrap();
    while let Some(chunk) = listing.next_chunk().unwrap() {
        for (target, list) in chunk.iter() {
            chunks[target as usize] = list.to_vec();
        }
    }
    drop(listing);
    assert_eq!(comparable(chunks, ordered), wanted, "chunks of {name}");

    let mut geometry = PairGeometry::default();
    let written = engine.pair_geometry(t, s, &mut geometry);
    let is_far = |error: &nearfield::Error| error.to_string().contains("boxes apart along an axis");
    if written.as_ref().is_err_and(is_far) {
        return 0;
    }
    written.unwrap();
    for (i, wanted) in expected.iter().enumerate() {
        let mut found: Vec<Neighbor> = (geometry.of(i))
            .map(|pair| Neighbor {
                index: pair.index,
                image: pair.image.map(i64::from),
            })
            .collect();
        if !ordered {
            found.sort_unstable();
        }
        assert_eq!(&found, wanted, "geometry of {i} in {name}");
        for pair in geometry.of(i) {
            let (from, to) = (case.targets()[i], case.sources()[pair.index as usize]);
            let image = pair.image.map(i64::from);
            let d2 = case.problem().distance_squared(from, to, image);
            assert_eq!(pair.d2, d2.to_f64(), "{name}");
        }
    }
    if case.list == oracle::ListKind::Full {
        compare_sums(case, drawn, &engine, &sets, &expected);
    }
    wanted.iter().map(Vec::len).sum()
}

/// Neighbours of points that are named, chosen or not.
fn compare_visits<T: Precise>(
    case: &Case<T>,
    drawn: &Drawn<T>,
    engine: &Engine,
    sets: &[PointSetId],
) {
    let (ordered, name) = (drawn.filters.nearest.is_some(), &case.name);
    let (t, s) = (sets[case.target], sets[case.source]);
    let filters = Filters {
        chosen: Vec::new(),
        ..drawn.filters.clone()
    };
    let mut wanted = indices(&case.problem().filtered(&filters));
    wanted.truncate(20);
    let named: Vec<u32> = (0..wanted.len() as u32).collect();
    let visited = named.iter().map(|&point| {
        let mut list = Vec::new();
        let add = |source, _| list.push(source);
        engine.for_each_neighbor(t, s, point as usize, add).unwrap();
        list
    });
    let visited = comparable(visited.collect(), ordered);
    assert_eq!(visited, wanted, "neighbours of each in {name}");
    let lists = as_vectors(&engine.neighbors_of(t, s, &named).unwrap());
    let lists = comparable(lists, ordered);
    assert_eq!(lists, wanted, "neighbours of named points in {name}");
}

/// Counts, batches, visits and sums, which are those of full lists.
fn compare_sums<T: Precise>(
    case: &Case<T>,
    drawn: &Drawn<T>,
    engine: &Engine,
    sets: &[PointSetId],
    expected: &[Vec<Neighbor>],
) {
    let (ordered, name) = (drawn.filters.nearest.is_some(), &case.name);
    let (t, s) = (sets[case.target], sets[case.source]);
    let wanted = indices(expected);
    let counts = engine.count_neighbors(t, s).unwrap();
    let lengths: Vec<u32> = wanted.iter().map(|list| list.len() as u32).collect();
    assert_eq!(counts, lengths, "counts of {name}");
    let batches = Mutex::new(vec![Vec::new(); wanted.len()]);
    let flow = engine.for_each_batch(t, s, |batch| {
        let mut batches = batches.lock().unwrap();
        for (k, &target) in batch.targets.iter().enumerate() {
            let list = batch.offsets[k] as usize..batch.offsets[k + 1] as usize;
            batches[target as usize] = batch.sources[list].to_vec();
        }
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    let batches = comparable(batches.into_inner().unwrap(), ordered);
    assert_eq!(batches, wanted, "batches of {name}");
    compare_visits(case, drawn, engine, sets);
    let sums = fingerprints_of(case, expected);
    assert_eq!(traverse(engine, case, sets), sums, "sums of {name}");
    let over_lists = engine
        .traverse(&crate::common::Fingerprint, t, s)
        .targets(&labels(case.targets()))
        .sources(&labels(case.sources()))
        .over_lists()
        .run();
    match over_lists {
        Ok(found) => assert_eq!(found, sums, "sums over lists of {name}"),
        Err(error) => {
            let refused = matches!(error.kind(), ErrorKind::Combined { .. });
            assert!(refused && ordered, "{name}: {error}");
        }
    }
}

/// Every second conformance case, from one on, with a combination of filters; returns the pairs
/// that were kept.
fn conform<T: Precise>(first: usize) -> usize {
    let runner = T::runner(Level::Quick);
    let (mut random, mut kept, mut number) = (Random::new(5), 0, 0);
    let cases = runner.with_neighbors().skip(first).step_by(2);
    for ((case, _), simd) in cases.zip(levels_in_turn()) {
        if case.targets().len() > 3000 {
            continue;
        }
        number = (number + 7) % 32;
        let drawn = draw(case, number, &mut random);
        kept += compare(case, &drawn, Settings::at(simd));
    }
    kept
}

#[test]
fn engines_keep_what_the_oracle_keeps() {
    assert!(conform::<f32>(0) > 25_000);
}

#[test]
fn engines_in_f64_keep_what_the_oracle_keeps() {
    assert!(conform::<f64>(1) > 25_000);
}

/// A pair kernel that is evaluated once for both points where it may be.
struct Both;

impl PairKernel for Both {
    const SYMMETRIC: bool = true;
    type Target = f32;
    type Source = f32;
    type Output = [f32; 2];

    fn pair(&self, _: Pair, target: f32, source: f32) -> [f32; 2] {
        [target + source, target * source]
    }
}

fn cube() -> Vec<[f32; 3]> {
    (0..1000)
        .map(|i| [i % 10, i / 10 % 10, i / 100].map(|k| k as f32))
        .collect()
}

#[test]
fn symmetric_kernels_are_right_with_every_filter() {
    let points = cube();
    let labels: Vec<f32> = (0..1000).map(|i| (i % 13) as f32).collect();
    let types: Vec<u8> = (0..1000).map(|i| (i % 3) as u8).collect();
    let molecules: Vec<u32> = (0..1000).map(|i| i / 4).collect();
    let chosen: Vec<u32> = (0..1000).filter(|i| i % 5 < 2).collect();
    let cutoffs = [[1.5, 1.0, 0.0], [1.0, 1.0, 1.5], [0.0, 1.5, 1.5]];
    for kinds in 0..16 {
        for periodic in [[None; 3], [Some(10.0); 3]] {
            let mut builder = Engine::builder(1.5).periodic(periodic);
            if kinds & 1 != 0 {
                builder = builder.cutoffs(&cutoffs);
            }
            if kinds & 2 != 0 {
                builder = builder.nearest(5);
            }
            let mut engine = builder.build().unwrap();
            let set = engine.add_point_set(&points).unwrap();
            if kinds & 1 != 0 {
                engine.set_types(set, &types).unwrap();
            }
            if kinds & 4 != 0 {
                engine.set_molecules(set, &molecules).unwrap();
            }
            if kinds & 8 != 0 {
                engine.set_targets(set, &chosen).unwrap();
            }
            engine.find_neighbors().unwrap();
            let lists = engine.neighbors(set, set).unwrap();
            // Values before the traversal, which targets that are not chosen keep.
            let mut expected = vec![[7.0, 9.0]; 1000];
            for (i, sum) in expected.iter_mut().enumerate() {
                if kinds & 8 != 0 && i % 5 >= 2 {
                    assert!(lists.of(i).is_empty());
                    continue;
                }
                *sum = [0.0; 2];
                for &j in lists.of(i) {
                    sum[0] += labels[i] + labels[j as usize];
                    sum[1] += labels[i] * labels[j as usize];
                }
            }
            for over_lists in [false, true] {
                let mut found = vec![[7.0, 9.0]; 1000];
                let traversal = engine.traverse(&Both, set, set);
                let traversal = traversal.targets(&labels).sources(&labels);
                let traversal = if over_lists {
                    traversal.over_lists()
                } else {
                    traversal
                };
                traversal.run_into(&mut found).unwrap();
                assert_eq!(found, expected, "filters {kinds}, lists: {over_lists}");
            }
        }
    }
}

#[test]
fn half_lists_with_types_and_exclusions_give_every_pair_to_both_points() {
    let points = cube();
    let labels = vec![1.0f32; 1000];
    let types: Vec<u16> = (0..1000).map(|i| (i % 2) as u16).collect();
    let of = |kind| {
        let builder = Engine::builder(1.5).periodic([Some(10.0), None, Some(10.0)]);
        let builder = builder.cutoffs(&[[1.5, 1.0], [1.0, 0.0]]).lists(kind);
        let mut engine = builder.build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.set_types(set, &types).unwrap();
        engine.set_exclusions(set, &[0; 1001], &[]).unwrap();
        engine
            .set_molecules(set, &(0..1000).map(|i| i / 2).collect::<Vec<_>>())
            .unwrap();
        engine.find_neighbors().unwrap();
        let traversal = engine
            .traverse(&Both, set, set)
            .targets(&labels)
            .sources(&labels);
        let sums = traversal.over_lists().run().unwrap();
        (engine.neighbors(set, set).unwrap().pairs(), sums)
    };
    let (full, half) = (of(ListKind::Full), of(ListKind::Half));
    assert_eq!(full.0, 2 * half.0);
    assert_eq!(full.1, half.1);
    assert!(full.0 > 1000);
}

fn refused<T>(result: Result<T, nearfield::Error>, words: &[&str]) {
    let Err(error) = result else {
        panic!("{words:?} is not refused");
    };
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn what_cannot_be_combined_is_refused_by_both_names() {
    let nearest = || Engine::builder(1.0).nearest(3);
    let typed = || Engine::builder(1.0).cutoffs(&[[1.0]]);
    let with = "cannot be combined with";
    refused(
        nearest().lists(ListKind::Half).build(),
        &["k nearest", with, "half lists"],
    );
    refused(
        nearest().list_order(ListOrder::Ascending).build(),
        &["k nearest", with, "ascending"],
    );
    refused(
        typed().radii(RadiusRule::Gather).build(),
        &["cut-offs", with, "radii of single"],
    );
    refused(
        VerletLists::new(nearest(), 0.1),
        &["skin", with, "k nearest"],
    );
    refused(VerletLists::new(typed(), 0.1), &["skin", with, "cut-offs"]);
    refused(Engine::builder(1.0).nearest(0).build(), &["at least 1"]);
    let mut half = Engine::builder(1.0).lists(ListKind::Half).build().unwrap();
    let set = half.add_point_set(&cube()).unwrap();
    refused(
        half.set_targets(set, &[1]),
        &["chosen targets", with, "half lists"],
    );
    refused(half.set_types(set, &[0u8; 1000]), &["without cut-offs"]);
    let mut small = nearest().periodic([Some(1.5), None, None]).build().unwrap();
    let set = small
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0]])
        .unwrap();
    small.find_neighbors().unwrap();
    let labels = [1.0f32; 2];
    let traversal = small
        .traverse(&Both, set, set)
        .targets(&labels)
        .sources(&labels);
    refused(
        traversal.over_lists().run(),
        &["k nearest", with, "smaller than two radii"],
    );
}

#[test]
fn devices_refuse_filters_by_name_or_leave_them_to_the_cpu() {
    let emulated: Device = "emulated:speed=8".parse().unwrap();
    refused(
        Engine::builder(1.0)
            .cutoffs(&[[1.0]])
            .device(emulated)
            .build(),
        &["does not support cut-offs per pair of types", "Device::Cpu"],
    );
    refused(
        Engine::builder(1.0).nearest(2).device(emulated).build(),
        &["does not support the k nearest", "Device::Cpu"],
    );
    let mut engine = Engine::builder(1.0).device(emulated).build().unwrap();
    let set = engine.add_point_set(&cube()).unwrap();
    refused(
        engine.set_molecules(set, &[0; 1000]),
        &["does not support exclusions"],
    );
    refused(
        engine.set_targets(set, &[0]),
        &["does not support chosen targets"],
    );
    engine.find_neighbors().unwrap();
    let auto = Engine::builder(1.0).nearest(2).build().unwrap();
    let reason = auto.report().reason;
    assert!(reason.contains("k nearest"), "{reason}");
}

#[test]
fn data_that_cannot_be_are_refused_by_set_and_point_and_the_old_stay() {
    let mut engine = Engine::builder(1.0)
        .cutoffs(&[[1.0, 1.0], [1.0, 0.0]])
        .build()
        .unwrap();
    let set = engine
        .add_point_set(&[[0.0f32; 3], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
        .unwrap();
    refused(
        engine.find_neighbors(),
        &["point set 0 has no types for its 3 points"],
    );
    refused(engine.count_neighbors(set, set), &["has no types"]);
    engine.set_types(set, &[0u32, 1, 1]).unwrap();
    engine.set_exclusions(set, &[0, 1, 2, 2], &[1, 0]).unwrap();
    engine.set_target_mask(set, &[true, true, false]).unwrap();
    engine.find_neighbors().unwrap();
    refused(
        engine.set_types(set, &[0u8, 2, 9]),
        &["point set 0: point 1 has the type 2"],
    );
    refused(
        engine.set_types(set, &[0u8; 2]),
        &["point set 0", "for 2 points", "has 3"],
    );
    let exclude = |engine: &mut Engine, offsets: &[u64], indices: &[u32]| {
        engine.set_exclusions(set, offsets, indices)
    };
    refused(
        exclude(&mut engine, &[0, 1, 1, 1], &[1]),
        &["point 0 excludes point 1, which"],
    );
    refused(
        exclude(&mut engine, &[0, 1, 1, 1], &[3]),
        &["point 0 excludes point 3, but"],
    );
    refused(
        exclude(&mut engine, &[0, 2, 3, 4], &[2, 1, 0, 0]),
        &["point 0 must ascend"],
    );
    refused(
        exclude(&mut engine, &[0, 1], &[0]),
        &["point set 0", "for 1 points"],
    );
    refused(exclude(&mut engine, &[], &[]), &["offsets"]);
    refused(engine.set_molecules(set, &[0; 4]), &["for 4 points"]);
    refused(
        engine.set_targets(set, &[0, 3]),
        &["number 1 has the index 3"],
    );
    refused(engine.set_target_mask(set, &[true; 2]), &["for 2 points"]);
    // Nothing has changed, not even the lists.
    let lists = engine.neighbors(set, set).unwrap();
    assert_eq!(
        (lists.of(0), lists.of(1), lists.of(2)),
        (&[2][..], &[][..], &[][..])
    );
    refused(engine.set_radius(0.9), &["cut-off of types 0 and 0 is 1"]);
    assert_eq!(engine.radius(), 1.0);
    engine.set_radius(1.1).unwrap();
    assert_eq!(engine.count_neighbors(set, set).unwrap(), [1, 0, 0]);
}

#[test]
fn data_follow_points_that_are_kept_and_are_asked_for_when_their_number_changes() {
    let row: Vec<[f32; 3]> = (0..6).map(|i| [i as f32, 0.0, 0.0]).collect();
    let mut engine = Engine::builder(1.0)
        .cutoffs(&[[1.0, 1.0], [1.0, 0.0]])
        .build()
        .unwrap();
    let set = engine.add_point_set(&row).unwrap();
    let wall = engine.add_point_set(&[[0.0f32, 0.5, 0.0]]).unwrap();
    engine.set_types(wall, &[0u8]).unwrap();
    engine.set_types(set, &[1u8, 0, 0, 0, 0, 1]).unwrap();
    engine
        .set_exclusions(set, &[0, 0, 0, 1, 2, 2, 2], &[3, 2])
        .unwrap();
    engine.set_targets(set, &[1, 2, 3, 5]).unwrap();
    let counts = |engine: &Engine| engine.count_neighbors(set, set).unwrap();
    assert_eq!(counts(&engine), [0, 2, 1, 1, 0, 1]);
    // Sorting and an update with as many points change nothing.
    engine.z_sort(set).unwrap();
    engine.update(set, &row).unwrap();
    assert_eq!(counts(&engine), [0, 2, 1, 1, 0, 1]);
    assert_eq!(engine.retain_points(set, |i| i != 0).unwrap(), 1);
    assert_eq!(counts(&engine), [1, 1, 1, 0, 1]);
    // Fewer points, and as many again: what was given is for others.
    engine.update(set, &row[..3]).unwrap();
    engine.update(set, &row[1..]).unwrap();
    refused(
        engine.count_neighbors(set, set),
        &["has no types for its 5 points"],
    );
    engine.set_types(set, &[0u8; 5]).unwrap();
    refused(
        engine.count_neighbors(set, set),
        &["exclusions of point set 0", "clear them"],
    );
    engine.clear_exclusions(set).unwrap();
    refused(
        engine.count_neighbors(set, wall),
        &["chosen targets of point set 0", "5 that it has"],
    );
    engine.set_targets(set, &[4]).unwrap();
    assert_eq!(counts(&engine), [0, 0, 0, 0, 1]);
    engine.clear_targets(set).unwrap();
    assert_eq!(counts(&engine), [1, 2, 2, 2, 1]);
    // A set that takes the place of a removed one has none of its data.
    engine.set_targets(set, &[4]).unwrap();
    engine.set_molecules(set, &[0; 5]).unwrap();
    engine.remove_point_set(set).unwrap();
    let other = engine.add_point_set(&row[1..]).unwrap();
    engine.set_types(other, &[0u8; 5]).unwrap();
    assert_eq!(
        engine.count_neighbors(other, other).unwrap(),
        [1, 2, 2, 2, 1]
    );
}

#[test]
fn a_query_has_the_nearest_and_no_other_filter() {
    let mut engine = Engine::builder(2.0)
        .nearest(2)
        .cutoffs(&[[0.0]])
        .memory_limit(1 << 20)
        .build()
        .unwrap();
    let row = [
        [0.0f32; 3],
        [1.0, 0.0, 0.0],
        [1.5, 0.0, 0.0],
        [1.0, 0.0, 0.0],
    ];
    let set = engine.add_point_set(&row).unwrap();
    engine.set_types(set, &[0u8; 4]).unwrap();
    engine.set_molecules(set, &[0; 4]).unwrap();
    engine.set_targets(set, &[]).unwrap();
    assert_eq!(engine.count_neighbors(set, set).unwrap(), [0; 4]);
    let lists = engine
        .query(&[[1.1f32, 0.0, 0.0], [-1.0, 0.0, 0.0]], set)
        .unwrap();
    assert_eq!((lists.of(0), lists.of(1)), (&[1, 3][..], &[0, 1][..]));
}

#[test]
fn cut_offs_decide_to_the_bit_and_strictly() {
    // 0.1 is not a float: the cut-off is rounded as a radius is, and so is its square.
    let r = 0.1f32;
    let on = [
        [0.0f32; 3],
        [r, 0.0, 0.0],
        [0.0, r.next_up(), 0.0],
        [0.0, 0.0, r.next_down()],
    ];
    let of = |builder: Builder| {
        let mut engine = builder.cutoffs(&[[0.1]]).build().unwrap();
        let set = engine.add_point_set(&on).unwrap();
        engine.set_types(set, &[0u8; 4]).unwrap();
        engine.count_neighbors(set, set).unwrap()[0]
    };
    assert_eq!(of(Engine::builder(1.0)), 2);
    assert_eq!(of(Engine::builder(1.0).strictly_within()), 1);
    // Coincident points are neighbours, but not where the cut-off means never.
    let mut engine = Engine::builder(1.0)
        .cutoffs(&[[1.0, 0.0], [0.0, 0.0]])
        .build()
        .unwrap();
    let set = engine.add_point_set(&[[0.0f32; 3]; 4]).unwrap();
    engine.set_types(set, &[0u8, 0, 1, 1]).unwrap();
    assert_eq!(engine.count_neighbors(set, set).unwrap(), [1, 1, 0, 0]);
}
