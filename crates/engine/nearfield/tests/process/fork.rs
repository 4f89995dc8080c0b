//! Engines in forked children, as Python's multiprocessing makes them.

use crate::{
    system::{alone, in_fork, threads},
    uses::{self, Input},
};
use nearfield::prelude::*;

#[test]
fn everything_works_in_a_child_after_it_was_done_in_the_parent() {
    alone(
        "fork::everything_works_in_a_child_after_it_was_done_in_the_parent",
        || {
            let input = Input::new(20_000);
            for workers in [1, 2] {
                let expected = uses::all(&input, workers);
                let child = in_fork(|| assert_eq!(uses::all(&input, workers), expected));
                assert_eq!(child, None, "{workers} threads");
            }
            for (name, of) in uses::HYBRID {
                let run = || of(&input, uses::on_both(&input, 2)).unwrap();
                let expected = run();
                let child = in_fork(|| {
                    run();
                });
                assert_eq!(child, None, "both backends: {name}, {expected}");
            }
        },
    );
}

#[test]
fn an_inherited_engine_works_and_starts_threads_of_its_own() {
    alone(
        "fork::an_inherited_engine_works_and_starts_threads_of_its_own",
        || {
            let input = Input::new(20_000);
            for builder in [
                uses::on_cpu(&input, 2),
                uses::on_both(&input, 2),
                uses::on_cpu(&input, 1),
            ] {
                let mut engine = builder.build().unwrap();
                let set = engine.add_point_set(&input.single).unwrap();
                engine.find_neighbors().unwrap();
                let expected = engine.neighbors(set, set).unwrap().pairs();
                let work = |engine: &mut Engine| {
                    let lists = engine.neighbors(set, set).unwrap().to_csr().unwrap();
                    assert_eq!(lists.indices.len() as u64, expected);
                    engine.update(set, &input.single).unwrap();
                    engine.find_neighbors().unwrap();
                    assert_eq!(engine.neighbors(set, set).unwrap().pairs(), expected);
                };
                let mut held = Some(engine);
                let child = in_fork(|| {
                    let mut engine = held.take().unwrap();
                    work(&mut engine);
                    assert_eq!(engine.report().threads, if threads() > 1 { 2 } else { 1 });
                    // And once more in a child of the child.
                    let mut held = Some(engine);
                    let grandchild = in_fork(|| {
                        work(held.as_mut().unwrap());
                        drop(held.take());
                    });
                    assert_eq!(grandchild, None);
                    drop(held);
                });
                assert_eq!(child, None);
                // A child that does nothing but let go of it.
                let child = in_fork(|| drop(held.take()));
                assert_eq!(child, None);
                work(held.as_mut().unwrap());
            }
        },
    );
}

#[test]
fn children_forked_while_another_thread_works_are_not_held_up() {
    alone(
        "fork::children_forked_while_another_thread_works_are_not_held_up",
        || {
            let input = Input::new(20_000);
            let stop = std::sync::atomic::AtomicBool::new(false);
            let order = std::sync::atomic::Ordering::Relaxed;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(order) {
                        uses::SINGLE[0].1(&input, uses::on_cpu(&input, 2)).unwrap();
                    }
                });
                for _ in 0..20 {
                    let child = in_fork(|| {
                        uses::SINGLE[0].1(&input, uses::on_cpu(&input, 2)).unwrap();
                    });
                    if child.is_some() {
                        stop.store(true, order);
                    }
                    assert_eq!(child, None);
                }
                stop.store(true, order);
            });
        },
    );
}
