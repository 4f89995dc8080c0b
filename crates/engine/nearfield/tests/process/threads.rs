//! Threads that engines start: their own workers, and none besides.

use crate::{
    system::{alone, threads},
    uses::{self, Input},
};
use nearfield::NeighborLists;

/// Fails when anything has started rayon's global pool.
fn no_global_pool() {
    let built = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global();
    assert!(built.is_ok(), "something has started the global pool");
}

#[test]
fn one_thread_is_the_calling_one_whatever_is_done() {
    alone(
        "threads::one_thread_is_the_calling_one_whatever_is_done",
        || {
            let input = Input::new(20_000);
            let before = threads();
            uses::all(&input, 1);
            assert_eq!(threads(), before, "a thread was started");
            no_global_pool();
        },
    );
}

#[test]
fn an_engine_starts_as_many_threads_as_it_is_told() {
    alone(
        "threads::an_engine_starts_as_many_threads_as_it_is_told",
        || {
            let input = Input::new(20_000);
            let before = threads();
            let mut engine = uses::on_cpu(&input, 3).build().unwrap();
            let set = engine.add_point_set(&input.single).unwrap();
            engine.find_neighbors().unwrap();
            let lists = engine.neighbors(set, set).unwrap();
            lists.to_csr().unwrap();
            assert_eq!(threads(), before + 3);
            assert_eq!(engine.report().threads, 3);
            drop(engine);
            uses::all(&input, 3);
            for (_, of) in uses::HYBRID {
                of(&input, uses::on_both(&input, 2)).unwrap();
            }
            no_global_pool();
        },
    );
}

#[test]
fn threads_are_started_by_work_that_is_worth_it() {
    alone(
        "threads::threads_are_started_by_work_that_is_worth_it",
        || {
            let input = Input::new(20_000);
            let before = threads();
            let few = uses::on_cpu(&input, 3);
            let mut engine = few.clone().build().unwrap();
            let set = engine.add_point_set(&input.single[..1_000]).unwrap();
            for _ in 0..10 {
                engine.update(set, &input.single[..1_000]).unwrap();
                engine.find_neighbors().unwrap();
            }
            let lists = engine.neighbors(set, set).unwrap();
            lists.to_csr().unwrap();
            assert_eq!(engine.report().threads, 3);
            assert_eq!(threads(), before, "a search of one task was divided");
            // A single search of three tasks does without; a repeated one does not.
            let mut engine = few.build().unwrap();
            let set = engine.add_point_set(&input.single[..2_100]).unwrap();
            engine.find_neighbors().unwrap();
            assert_eq!(threads(), before, "threads were started for one search");
            let first = engine.neighbors(set, set).unwrap().to_csr().unwrap();
            engine.update(set, &input.single[..2_100]).unwrap();
            engine.find_neighbors().unwrap();
            assert_eq!(threads(), before + 3);
            let second = engine.neighbors(set, set).unwrap().to_csr().unwrap();
            assert_eq!(
                (first.offsets, first.indices),
                (second.offsets, second.indices)
            );
        },
    );
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let input = Input::new(20_000);
    assert_eq!(uses::all(&input, 1), uses::all(&input, 3));
}

#[test]
fn an_engine_of_one_thread_works_on_a_thread_of_another_pool() {
    let input = Input::new(5_000);
    let alone = uses::on_cpu(&input, 1);
    let expected = uses::SINGLE[0].1(&input, alone.clone()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap();
    let found = pool.install(|| {
        let twice = || uses::SINGLE[0].1(&input, alone.clone()).unwrap();
        rayon::join(twice, twice)
    });
    assert_eq!(found, (expected, expected));
}

#[test]
fn lists_that_outlive_their_engine_are_still_copied_and_sorted() {
    let input = Input::new(5_000);
    let mut engine = uses::on_cpu(&input, 2).build().unwrap();
    let set = engine.add_point_set(&input.single).unwrap();
    engine.find_neighbors().unwrap();
    let expected = engine.neighbors(set, set).unwrap().to_csr().unwrap();
    let mut lists = engine
        .take_neighbors(set, set, NeighborLists::default())
        .unwrap();
    drop(engine);
    assert_eq!(lists.to_csr().unwrap().indices, expected.indices);
    lists.sort();
    let longest = (0..lists.len())
        .map(|i| lists.of(i))
        .max_by_key(|list| list.len());
    assert!(longest.unwrap().is_sorted());
}
