//! Lists under a memory limit: complete within it, refused with the bytes needed beyond it.

use crate::common::{Settings, as_vectors, builder_for, fill};
use nearfield::{Engine, Error, ErrorKind, ListKind, ListOrder};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Lists, Runner},
};

/// Bytes of lists without gaps: a start and a count per target, an index per neighbour.
fn exact(targets: usize, pairs: usize) -> u64 {
    (12 * targets + 4 * pairs) as u64
}

/// Lists put together from chunks of at most `limit` bytes.
fn from_chunks(case: &Case, limit: u64) -> Result<Lists, Error> {
    let builder = builder_for(case, Settings::default()).memory_limit(limit);
    let (engine, sets) = fill(builder.build()?, case)?;
    let mut chunks = engine.list_chunks(sets[case.target], sets[case.source])?;
    let mut lists: Vec<Option<Vec<u32>>> = vec![None; case.targets().len()];
    let (total, storage) = (chunks.pairs(), chunks.bytes());
    let mut pairs = 0;
    while let Some(chunk) = chunks.next_chunk()? {
        assert!(!chunk.is_empty(), "{}: an empty chunk", case.name);
        assert!(chunk.bytes() <= limit, "{}: {}", case.name, chunk.bytes());
        pairs += chunk.pairs();
        for (k, (target, list)) in chunk.iter().enumerate() {
            assert_eq!((chunk.targets()[k], chunk.of(k)), (target, list));
            let old = lists[target as usize].replace(list.to_vec());
            assert!(old.is_none(), "{}: target {target} twice", case.name);
        }
    }
    assert!(chunks.next_chunk()?.is_none(), "the end stays the end");
    assert_eq!(pairs, total);
    assert_eq!(chunks.bytes(), storage, "one storage for all chunks");
    assert!(storage as u64 <= limit, "{}: {storage} bytes", case.name);
    Ok(lists.into_iter().map(Option::unwrap).collect())
}

#[test]
fn chunks_make_up_the_contracts_lists_within_any_limit() {
    for (number, (case, expected)) in Runner::new(Level::Quick).with_lists().enumerate() {
        let longest = expected.iter().map(Vec::len).max().unwrap_or(0) as u64;
        // No longer than the longest list, and in turn with a few more beside it, with most of
        // them, and with every other list.
        let tight = 16 + 4 * longest;
        let others = [2 * tight + 100, 5_000 + 4 * longest, u64::MAX];
        for limit in [tight, others[number % others.len()]] {
            let found = from_chunks(case, limit).unwrap();
            case.check_against(expected, found)
                .unwrap_or_else(|error| panic!("{}, {limit} bytes: {error}", case.name));
        }
    }
}

#[test]
fn chunks_are_sorted_on_request_and_need_no_limit() {
    let case = Case::new("clusters", 1.0, Cloud::Clusters.points(6_000, 4));
    let expected = case.expected();
    let builder = builder_for(&case, Settings::default()).list_order(ListOrder::Ascending);
    for (limit, several) in [(None, false), (Some(40_000), true)] {
        let builder = match limit {
            Some(limit) => builder.clone().memory_limit(limit),
            None => builder.clone(),
        };
        let (engine, sets) = fill(builder.build().unwrap(), &case).unwrap();
        let mut chunks = engine.list_chunks(sets[0], sets[0]).unwrap();
        let mut count = 0;
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            count += 1;
            for (target, list) in chunk.iter() {
                assert_eq!(list, expected[target as usize]);
            }
        }
        assert_eq!(count > 1, several, "{count} chunks");
    }
}

#[test]
fn a_list_that_no_chunk_can_hold_is_refused_with_its_size() {
    let mut points = vec![[0.0f32; 3]; 50];
    points.extend((0..100).map(|i| [10.0 + i as f32, 0.0, 0.0]));
    let chunks = |limit| {
        let mut engine = Engine::builder(0.5).memory_limit(limit).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.list_chunks(set, set).map(|chunks| chunks.pairs())
    };
    let needed = 16 + 4 * 49;
    assert_eq!(chunks(needed).unwrap(), 50 * 49);
    let error = chunks(needed - 1).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::ListTooLong { neighbors: 49, point, needed: n, .. }
            if *point < 50 && *n == needed),
        "{error}"
    );
    assert!(error.to_string().contains("212 bytes"), "{error}");
}

#[test]
fn limited_searches_return_the_contracts_lists() {
    for (case, expected) in Runner::new(Level::Quick).with_lists() {
        let run = |limit| {
            let builder = builder_for(case, Settings::default()).memory_limit(limit);
            let (mut engine, sets) = fill(builder.build()?, case)?;
            for targets in &sets {
                for sources in &sets {
                    let wanted = (*targets, *sources) == (sets[case.target], sets[case.source]);
                    engine.set_active(*targets, *sources, wanted)?;
                }
            }
            engine.find_neighbors()?;
            assert!(engine.report().list_bytes as u64 <= limit, "{}", case.name);
            let lists = engine.neighbors(sets[case.target], sets[case.source])?;
            Ok::<_, Error>(as_vectors(lists))
        };
        let needed = exact(expected.len(), expected.iter().map(Vec::len).sum());
        match run(needed - u64::from(needed > 0)) {
            Err(error) if matches!(error.kind(), ErrorKind::MemoryLimit { needed: told, .. } if *told == needed) =>
                {}
            Ok(_) if needed == 0 => {}
            other => panic!("{}: one byte less gave {other:?}", case.name),
        }
        case.check_against(expected, run(needed).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

#[test]
fn all_lists_of_an_engine_share_the_limit_and_room_is_given_back() {
    let row =
        |count: usize| -> Vec<[f32; 3]> { (0..count).map(|i| [i as f32, 0.0, 0.0]).collect() };
    let (long, short) = (row(1_000), row(100));
    let of = |n: usize| exact(n, 2 * (n - 1));
    let mut engine = Engine::builder(1.0)
        .memory_limit(of(1_000) + of(100))
        .build()
        .unwrap();
    let a = engine.add_point_set(&long).unwrap();
    let b = engine.add_point_set(&short).unwrap();
    engine.set_active(a, b, false).unwrap();
    engine.set_active(b, a, false).unwrap();
    // Whichever of both sets is the long one: the room of the other must go.
    for step in 0..4 {
        let (of_a, of_b) = if step % 2 == 0 {
            (&long, &short)
        } else {
            (&short, &long)
        };
        engine.update(a, of_a).unwrap();
        engine.update(b, of_b).unwrap();
        engine.find_neighbors().unwrap();
        assert_eq!(
            engine.neighbors(a, a).unwrap().pairs(),
            2 * (of_a.len() as u64 - 1)
        );
        assert_eq!(
            engine.neighbors(b, b).unwrap().pairs(),
            2 * (of_b.len() as u64 - 1)
        );
        assert!(engine.report().list_bytes as u64 <= of(1_000) + of(100));
    }
    engine.update(a, &long).unwrap();
    engine.update(b, &row(101)).unwrap();
    let error = engine.find_neighbors().unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::MemoryLimit { needed, .. } if *needed == of(1_000) + of(101)),
        "{error}"
    );
    assert!(engine.neighbors(a, a).is_err(), "nothing was written");
    engine.update(b, &short).unwrap();
    engine.find_neighbors().unwrap();
    assert_eq!(engine.neighbors(b, b).unwrap().of(50).len(), 2);
}

#[test]
fn the_steady_state_under_a_limit_allocates_no_storage() {
    let still = Cloud::Lattice.points(8_000, 1);
    let mut moved = still.clone();
    nearfield_testkit::cloud::drift(&mut moved, 0.05, 1);
    let mut engine = Engine::builder(2.0).memory_limit(10 << 20).build().unwrap();
    let set = engine.add_point_set(&still).unwrap();
    let mut storage = Vec::new();
    for step in 0..6 {
        let points = if step % 2 == 0 { &still } else { &moved };
        engine.update(set, points).unwrap();
        engine.find_neighbors().unwrap();
        storage.push(engine.neighbors(set, set).unwrap().storage().as_ptr());
    }
    assert!(storage[1..].windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn lists_are_the_same_with_any_room_under_the_limit() {
    // Clusters that thin out and grow dense again: the storage of one step is too small for the
    // next, with limits that one pass fits, that two fit, and between both.
    let dense = Cloud::Clusters.points(6_000, 4);
    let thin: Vec<[f32; 3]> = (dense.iter()).map(|at| at.map(|x| 4.0 * x)).collect();
    let (a, b) = dense.split_at(2_000);
    let (thin_a, thin_b) = thin.split_at(2_000);
    for order in [ListOrder::Unspecified, ListOrder::Ascending] {
        for kind in [ListKind::Full, ListKind::Half] {
            let run = |limit: Option<u64>| {
                let builder = Engine::builder(1.0)
                    .threads(2)
                    .list_order(order)
                    .lists(kind);
                let builder = match limit {
                    Some(limit) => builder.memory_limit(limit),
                    None => builder,
                };
                let mut engine = builder.build()?;
                let sets = [engine.add_point_set(a)?, engine.add_point_set(b)?];
                let (mut found, mut needed) = (Vec::new(), 0);
                for [of_a, of_b] in [[a, b], [thin_a, thin_b], [a, b], [a, b], [thin_a, b]] {
                    engine.update(sets[0], of_a)?;
                    engine.update(sets[1], of_b)?;
                    engine.find_neighbors()?;
                    let held = engine.report().list_bytes as u64;
                    assert!(limit.is_none_or(|limit| held <= limit), "{held} bytes");
                    let mut bytes = 0;
                    for targets in sets {
                        for sources in sets {
                            let lists = engine.neighbors(targets, sources)?;
                            bytes += exact(lists.len(), lists.pairs() as usize);
                            found.push(as_vectors(lists));
                        }
                    }
                    needed = bytes.max(needed);
                }
                Ok::<_, Error>((found, needed))
            };
            let (expected, needed) = run(None).unwrap();
            for limit in [
                needed,
                needed + needed / 20,
                needed + needed / 4,
                4 * needed,
            ] {
                let (found, _) = run(Some(limit)).unwrap();
                assert!(found == expected, "{order:?}, {kind:?}, {limit} bytes");
            }
            let error = run(Some(needed - 1)).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::MemoryLimit { needed: told, .. } if *told == needed),
                "{error}"
            );
        }
    }
}

#[test]
fn a_query_beyond_the_limit_is_refused() {
    let points = Cloud::Uniform.points(2_000, 3);
    let query = |limit| {
        let mut engine = Engine::builder(2.0).memory_limit(limit).build().unwrap();
        let set = engine.add_point_set(&points).unwrap();
        engine.query(&points[..100], set).map(|lists| lists.pairs())
    };
    let pairs = query(1 << 30).unwrap();
    let needed = exact(100, pairs as usize);
    assert_eq!(query(needed).unwrap(), pairs);
    assert_eq!(query(2 * needed).unwrap(), pairs);
    let error = query(needed - 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MemoryLimit { needed: told, .. } if *told == needed));
}
