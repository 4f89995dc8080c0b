//! Loops on a pool, on one thread, and never on the global pool.

use nearfield_grid::parallel::*;
use rayon::prelude::*;
use std::sync::Mutex;
use std::thread;

/// The results of all loops for the numbers below 1000, and the threads that were seen.
fn loops() -> (Vec<usize>, usize, usize) {
    let numbers = || (0..1000usize).into_par_iter().with_max_len(1);
    let seen = Mutex::new(Vec::new());
    numbers().run(|number| seen.lock().unwrap().push((number, thread::current().id())));
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable_by_key(|&(number, _)| number);
    assert!(seen.iter().map(|&(number, _)| number).eq(0..1000));
    let mut threads: Vec<_> = seen.into_iter().map(|(_, thread)| thread).collect();
    threads.dedup();
    let listed = numbers().zip(1..1001usize).map(|(a, b)| a * b).listed();
    let sum = numbers().combined(|| 0, |a, b| a + b);
    (listed, sum, threads.len())
}

#[test]
fn loops_give_the_same_on_a_pool_and_alone() {
    let (listed, sum, threads) = loops();
    assert_eq!((sum, threads), (499_500, 1), "no pool, one thread");
    assert_eq!(nearfield_grid::parallel::threads(), 1);
    let pool = start(3, "test").unwrap();
    within(pool.as_ref(), || {
        assert_eq!(nearfield_grid::parallel::threads(), 3);
        let (same, sum, _) = loops();
        assert_eq!((same, sum), (listed.clone(), 499_500));
        let (same, sum, threads) = alone(loops);
        assert_eq!((same, sum, threads), (listed.clone(), 499_500, 1));
        assert!(is_shared(), "alone has ended");
    });
    assert!(start(1, "test").unwrap().is_none());
}

#[test]
fn what_stood_alone_is_forgotten_when_it_panics() {
    let pool = start(2, "test").unwrap();
    within(pool.as_ref(), || {
        let died = std::panic::catch_unwind(|| alone(|| panic!("on purpose")));
        assert!(died.is_err() && is_shared());
    });
}
