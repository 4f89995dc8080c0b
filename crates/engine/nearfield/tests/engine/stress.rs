//! Engines used from many threads at once, with a deadline: what hangs fails.
//!
//! Every result is compared with that of an engine that was used alone.

use nearfield::{Device, Engine, ListOrder, PointSetId, balance::Policy, kernels::SphDensity};
use nearfield_testkit::cloud::Cloud;
use rayon::prelude::*;
use std::{sync::mpsc, thread, time::Duration};

/// A generous limit: these take a second or two each.
const DEADLINE: Duration = Duration::from_secs(300);

const RADIUS: f32 = 2.0;

/// The devices that need no hardware.
fn devices() -> [(Device, Policy); 4] {
    let emulated = "emulated:speed=2".parse().unwrap();
    [
        (Device::Cpu, Policy::Model),
        (emulated, Policy::Model),
        (emulated, Policy::Fixed { theta: 40.0 }),
        ("emulated:fail=oom@2".parse().unwrap(), Policy::Model),
    ]
}

/// Runs `work` on a thread of its own.
///
/// # Panics
/// When `work` does, or has not ended at the deadline.
fn in_time(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match wait.recv_timeout(DEADLINE) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!(
                "{what} hangs: nothing came of it in {} s",
                DEADLINE.as_secs()
            )
        }
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Answers that are compared: lists, counts and densities.
#[derive(Debug, Clone, PartialEq)]
struct Answers {
    lists: Vec<Vec<u32>>,
    counts: Vec<u32>,
    density: Vec<f32>,
}

impl Answers {
    /// Whether they are the same, densities up to rounding: backends may sum in another order.
    fn agree(&self, other: &Self) -> bool {
        let mut sums = self.density.iter().zip(&other.density);
        self.lists == other.lists
            && self.counts == other.counts
            && sums.all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs())
    }
}

fn engine(device: Device, policy: Policy, threads: usize) -> Engine {
    let builder = Engine::builder(RADIUS).device(device).policy(policy);
    let builder = builder.threads(threads).list_order(ListOrder::Ascending);
    builder.build().unwrap()
}

fn points(seed: u64) -> Vec<[f32; 3]> {
    Cloud::Lattice.points(2_000, seed)
}

/// Answers of an engine through a shared reference.
fn asked(engine: &Engine, set: PointSetId) -> (Vec<u32>, Vec<f32>) {
    let kernel = SphDensity::with_support(RADIUS);
    let masses = vec![1.0f32; engine.points(set).unwrap()];
    let density = engine.traverse(&kernel, set, set);
    let density = density.sources(&masses).run();
    (engine.count_neighbors(set, set).unwrap(), density.unwrap())
}

/// Several steps of an engine, and the answers of the last.
fn steps(engine: &mut Engine, points: &[[f32; 3]]) -> Answers {
    let set = engine.add_point_set(points).unwrap();
    for _ in 0..4 {
        engine.update(set, points).unwrap();
        engine.find_neighbors().unwrap();
        asked(engine, set);
    }
    let (counts, density) = asked(engine, set);
    let lists = engine.neighbors(set, set).unwrap();
    Answers {
        lists: lists.iter().map(<[u32]>::to_vec).collect(),
        counts,
        density,
    }
}

fn expected(seed: u64) -> Answers {
    steps(&mut engine(Device::Cpu, Policy::Model, 1), &points(seed))
}

#[test]
fn one_engine_answers_many_threads_at_once() {
    in_time("an engine that many threads ask", || {
        let expected = expected(1);
        for (device, policy) in devices() {
            let mut engine = engine(device, policy, 2);
            assert!(steps(&mut engine, &points(1)).agree(&expected), "{device}");
            let (engine, set) = (&engine, engine.point_set(0).unwrap());
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..4 {
                            let (counts, density) = asked(engine, set);
                            let lists = expected.lists.clone();
                            let found = Answers {
                                lists,
                                counts,
                                density,
                            };
                            assert!(found.agree(&expected), "{device}");
                            let mut list = Vec::new();
                            let visited =
                                engine.for_each_neighbor(set, set, 7, |near, _| list.push(near));
                            visited.unwrap();
                            list.sort_unstable();
                            assert_eq!(list, expected.lists[7]);
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn many_engines_work_at_once_on_threads_of_their_own() {
    in_time("engines side by side", || {
        thread::scope(|scope| {
            for n in 0..12 {
                scope.spawn(move || {
                    let (device, policy) = devices()[n % 4];
                    let mut engine = engine(device, policy, 1 + n % 3);
                    let found = steps(&mut engine, &points(n as u64 % 3));
                    assert!(found.agree(&expected(n as u64 % 3)), "{device}");
                });
            }
        });
    });
}

#[test]
fn engines_work_inside_the_jobs_of_another_pool() {
    in_time("engines in the jobs of a pool", || {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .build()
            .unwrap();
        let agrees = |n: usize| {
            let (device, policy) = devices()[n % 4];
            // As many threads as the pool, one, and as many as there are cores.
            let mut engine = engine(device, policy, [2, 1, 0][n % 3]);
            steps(&mut engine, &points(n as u64 % 3)).agree(&expected(n as u64 % 3))
        };
        let agree = pool.install(|| (0..16usize).into_par_iter().map(agrees).collect::<Vec<_>>());
        assert_eq!(agree, [true; 16]);
    });
}

#[test]
fn one_engine_answers_several_jobs_of_one_pool() {
    in_time("an engine in several jobs of a pool", || {
        let expected = expected(2);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .build()
            .unwrap();
        for (device, policy) in devices() {
            let mut engine = engine(device, policy, 2);
            steps(&mut engine, &points(2));
            let (engine, set) = (&engine, engine.point_set(0).unwrap());
            let agree = pool.install(|| {
                let jobs = (0..24usize).into_par_iter().with_max_len(1);
                jobs.map(|_| {
                    let (counts, density) = asked(engine, set);
                    let lists = expected.lists.clone();
                    Answers {
                        lists,
                        counts,
                        density,
                    }
                    .agree(&expected)
                })
                .collect::<Vec<_>>()
            });
            assert_eq!(agree, [true; 24], "{device}");
        }
    });
}

#[test]
fn engines_are_made_and_dropped_while_others_work() {
    in_time("engines made and dropped", || {
        let expected = expected(0);
        thread::scope(|scope| {
            for n in 0..4 {
                let expected = &expected;
                scope.spawn(move || {
                    for round in 0..6 {
                        let (device, policy) = devices()[(n + round) % 4];
                        let mut engine = engine(device, policy, 2);
                        assert!(steps(&mut engine, &points(0)).agree(expected), "{device}");
                    }
                });
            }
        });
    });
}
