//! An engine is used by several jobs of one rayon pool, and by the callbacks of its own jobs: every
//! job comes to an end, and its results are those it would have alone.

use crate::common::{Fingerprint, labels};
use nearfield::{Engine, prelude::*};
use nearfield_testkit::shapes;
use rayon::prelude::*;
use std::{
    ops::ControlFlow,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Far longer than the jobs take.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs `work` on a thread of its own and returns its result; panics if it does not end.
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(DEADLINE).expect("it stands still")
}

fn points() -> Vec<[f32; 3]> {
    shapes::uniform_box(6000, [[0.0; 3], [9.0; 3]], 5)
}

fn engine(device: &str) -> (Engine, PointSetId) {
    let settings = Engine::builder(1.0).threads(2);
    let device = device.parse().unwrap();
    let mut engine = settings.device(device).build().unwrap();
    let set = engine.add_point_set(&points()).unwrap();
    // Work is divided between both backends from the first step on.
    engine.update(set, &points()).unwrap();
    engine.find_neighbors().unwrap();
    (engine, set)
}

fn sums(engine: &Engine, set: PointSetId, labels: &[f32], listed: bool) -> Vec<[f32; 3]> {
    let fields = labels;
    let run = engine
        .traverse(&Fingerprint, set, set)
        .targets(fields)
        .sources(fields);
    match listed {
        true => run.over_lists().run().unwrap(),
        false => run.run().unwrap(),
    }
}

const DEVICES: [&str; 3] = ["cpu", "auto", "emulated:speed=2"];

/// Those that do what only the CPU backend does.
const WITH_CALLBACKS: [&str; 2] = ["cpu", "auto"];

#[test]
fn jobs_of_one_pool_share_an_engine() {
    let labels = labels(&points());
    for device in DEVICES {
        let (engine, set) = engine(device);
        let counts = engine.count_neighbors(set, set).unwrap();
        let expected = sums(&engine, set, &labels, false);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            let (engine, set) = self::engine(device);
            let (engine, labels) = (std::sync::Arc::new(engine), labels.clone());
            let (counts, expected) = (counts.clone(), expected.clone());
            in_time(move || {
                pool.install(|| {
                    (0..48usize)
                        .into_par_iter()
                        .with_max_len(1)
                        .for_each(|job| match job % 4 {
                            0 => assert_eq!(engine.count_neighbors(set, set).unwrap(), counts),
                            1 => assert_eq!(engine.report().points(), counts.len()),
                            kind => {
                                let listed = kind == 3 && WITH_CALLBACKS.contains(&device);
                                let found = sums(&engine, set, &labels, listed);
                                assert!(found == expected, "job {job} on {device}");
                            }
                        });
                });
            });
        }
    }
}

/// A step of a solver that runs on the engine's own workers, from one thread and from several.
#[test]
fn whole_steps_run_on_the_workers_of_their_engine() {
    let labels = labels(&points());
    let (engine, set) = engine("cpu");
    let expected = sums(&engine, set, &labels, false);
    for threads in [1, 2, 5] {
        let settings = Engine::builder(1.0).threads(threads);
        let mut engine = settings.device(Device::Cpu).build().unwrap();
        let (labels, expected) = (labels.clone(), expected.clone());
        in_time(move || {
            let workers = engine.workers().expect("the CPU does everything");
            // The first of them begins before any thread was worth starting.
            for _ in 0..3 {
                let found = workers.install_for(points().len(), || {
                    let set = engine.add_point_set(&points()).unwrap();
                    engine.update(set, &points()).unwrap();
                    let found = sums(&engine, set, &labels, false);
                    let refused = engine.update(set, &[[f32::NAN; 3]]);
                    assert!(refused.is_err(), "a position is NaN");
                    found
                });
                assert!(found == expected, "{threads} threads");
            }
        });
    }
    let shared = self::engine("emulated:speed=2").0;
    assert!(
        shared.workers().is_none(),
        "this thread drives the other backend"
    );
}

#[test]
fn callbacks_use_the_engine_that_calls_them() {
    let labels = labels(&points());
    for device in WITH_CALLBACKS {
        let (engine, set) = engine(device);
        let labels = labels.clone();
        let nested = in_time(move || {
            let expected = sums(&engine, set, &labels, false);
            let counts = engine.count_neighbors(set, set).unwrap();
            let (batches, nested) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let visit = |batch: nearfield::lists::PairBatch<'_>| {
                let first = batch.targets[0] as usize;
                let mut found = 0;
                let count = |_, _| found += 1;
                engine.for_each_neighbor(set, set, first, count).unwrap();
                assert_eq!(found, counts[first]);
                if batches.fetch_add(1, Ordering::Relaxed) % 16 == 0 {
                    assert_eq!(engine.count_neighbors(set, set).unwrap(), counts);
                    assert!(sums(&engine, set, &labels, false) == expected);
                    assert!(engine.report().jobs.len() <= 8);
                    nested.fetch_add(1, Ordering::Relaxed);
                }
                ControlFlow::Continue(())
            };
            let flow = engine.for_each_batch(set, set, visit).unwrap();
            assert!(flow.is_continue());
            nested.into_inner()
        });
        assert!(nested > 1, "{nested} batches of {device} have asked again");
    }
}
