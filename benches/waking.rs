//! How long threads of the CPU backend take to copy numbers, waking included: where each wakes
//! another, and where the caller wakes all and copies too (`CpuBackend::at_once`), as positions,
//! fields and results of a GPU are copied.
//!
//! `cargo bench -p nearfield --bench waking`. Both in turn, after the threads had nothing to do for
//! a while; it prints medians in microseconds.

use nearfield_cpu::CpuBackend;
use rayon::prelude::*;
use std::{
    hint,
    sync::Mutex,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Numbers that one thread copies at a time.
const STRETCH: usize = 3 << 13;
const REPETITIONS: usize = 301;

/// Stretches of an array, each copied by the thread that takes it.
struct Copying<'a> {
    stretches: Vec<Mutex<(&'a mut [f32], &'a [f32])>>,
    next: AtomicUsize,
}

impl<'a> Copying<'a> {
    fn new(to: &'a mut [f32], from: &'a [f32]) -> Self {
        let stretches = to.chunks_mut(STRETCH).zip(from.chunks(STRETCH));
        Self {
            stretches: stretches.map(Mutex::new).collect(),
            next: AtomicUsize::new(0),
        }
    }

    fn copy(&self) {
        while let Some(stretch) = self
            .stretches
            .get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let (to, from) = &mut *stretch.lock().expect("no thread panics");
            nearfield_grid::copy_past_caches(to, from);
        }
    }
}

fn main() {
    let backend = CpuBackend::new(0).expect("threads");
    println!("{} threads beside the caller", backend.threads_beside());
    for megabytes in [4, 12] {
        let from = vec![1.0f32; megabytes << 18];
        let mut to = vec![0.0f32; from.len()];
        for pause in [50, 300, 2000].map(Duration::from_micros) {
            let mut times = [const { Vec::new() }; 2];
            for number in 0..2 * REPETITIONS {
                let rest = Instant::now();
                while rest.elapsed() < pause {
                    hint::spin_loop();
                }
                let begin = Instant::now();
                let copying = Copying::new(&mut to, &from);
                match number % 2 {
                    0 => {
                        let all = || (0..rayon::current_num_threads()).into_par_iter();
                        let work = || all().with_max_len(1).for_each(|_| copying.copy());
                        backend.beside(|| (), work);
                    }
                    _ => backend.at_once(usize::MAX, || copying.copy(), || copying.copy()),
                }
                times[number % 2].push(begin.elapsed().as_secs_f64() * 1e6);
            }
            let [each_other, at_once] = times.map(|mut times| {
                times.sort_by(f64::total_cmp);
                times[times.len() / 2]
            });
            println!(
                "{megabytes} MB after {pause:?}: {each_other:.0} waking each other, {at_once:.0} at once"
            );
        }
    }
}
